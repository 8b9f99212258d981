"""Write what `accounting_on_gpu.py` needs: `python -m tests.hardware.export_accounting DIR`.

Attributes: every kernel of `examples/` for each of its dtypes, lowered for the GPU's architecture, assembled as
`gpuemu diff` assembles, with our static numbers. Counts: the ten kernels of `tests/accounting/counted_kernels.py`, and
launches of `tests/hardware/cases.py`, with a counter before every stretch of code, assembled with `-fmad=false`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.delta_study import Lowering
from benchmarks.worker import ROOT
from gpuemu.conform import on_gpu
from gpuemu.conform.bundle import write_launch
from gpuemu.gate.cases import Case, shapes_of
from gpuemu.gate.declare import Op
from gpuemu.gate.discover import load_file
from gpuemu.gate.inputs import make_arguments
from gpuemu.replay.portable import portable_ptx
from interp.launch import LaunchRecord, Module, recording
from interp.ops import ISA
from ptx.accounting import assemble
from ptx.accounting.account import Account, account
from ptx.accounting.resources import read_usage_banks
from ptx.decode import decode
from ptx.lower.triton import Lowered
from tests.accounting.counted_kernels import KERNELS
from tests.accounting.ptx_texts import many_live, text
from tests.hardware.cases import CASES
from tests.hardware.counted import VARIABLE, Counted, with_counters

TARGET = "sm_90"
COUNTED_CASES = (
    "attention_sm90", "attention_sm89", "attention_3_stages_sm90", "cumsum_sm80", "dropout_sm80",
    "flash_attention_f16_sm80", "gelu_f32_sm80", "layernorm_f16_sm80", "layernorm_sm90", "matmul_bf16_sm90",
    "matmul_e4m3_sm90", "matmul_f16_3_stages_sm90", "matmul_f16_sm80", "matmul_f16_tails_sm90",
    "matmul_persistent_sm90", "matmul_s8_sm90", "matmul_scaled_sm90", "matmul_tf32_sm90", "softmax_f32_sm80",
    "softmax_sm90", "host_descriptors_sm90",
)  # fmt: skip
"""One launch each. Not among them: kernels in which a lane waits for another one in a loop, since how often it asks is
the scheduler's business."""


# ------------------------------------------------------------------------------------------------ attributes
def examples() -> Iterator[tuple[str, Lowered]]:
    """(name, kernel) of every kernel that an op of examples/ launches at its largest shape, by dtype."""
    for path in sorted((ROOT / "examples").glob("*.py")):
        for op in load_file(path):
            for dtype in op.dtypes:
                for i, kernel in enumerate(_launched(op, dtype)):
                    yield f"{op.name}.{dtype}.{i}", kernel


def _launched(op: Op, dtype: str) -> list[Lowered]:
    case = Case(
        index=0, op=op.name, file=op.file, dims=shapes_of(op)[-1], dtype=dtype, distribution="regular", target=TARGET,
        device=None, option=dict(op.options[0]), seed=0,
    )  # fmt: skip
    run = Lowering(TARGET)
    op.call("launcher", {**case.dims, **case.option, **{n: a.view for n, a in make_arguments(op, case).items()}}, run)
    return run.kernels


def kernels() -> Iterator[tuple[str, str, str, bool]]:
    """(name, PTX, entry, contraction) of everything whose attributes are asked for."""
    for name, kernel in examples():
        yield name, portable_ptx(kernel.ptx, ROOT), kernel.entry, bool(kernel.metadata["enable_fp_fusion"])
    yield from own_texts()


def own_texts() -> Iterator[tuple[str, str, str, bool]]:
    """Those that do not need Triton's compiler."""
    for counted in KERNELS:
        yield f"ten_{counted.name}", counted.ptx, "k", False
    for name, ptx in WITNESSES.items():
        yield name, ptx, "k", True


_INDEX = "ld.param.u32 %r1, [n]; cvt.u64.u32 %d1, %r1;"
_LOCAL = f"{_INDEX} st.local.u32 [own], %r1; mov.u64 %d2, own; add.u64 %d2, %d2, %d1;"
_CONST = f"{_INDEX} mov.u64 %d2, table; add.u64 %d2, %d2, %d1; ld.const.u32 %r2, [%d2];"
_OUT = "ld.param.u64 %d0, [x]; st.global.u32 [%d0], %r2; ret;"
WITNESSES = {
    "many_registers": many_live(150, target=TARGET),
    "all_registers": many_live(240, target=TARGET),
    "spills": many_live(120, ".maxntid 256 .maxnreg 40", target=TARGET),
    "threads_512": many_live(60, ".maxntid 512", target=TARGET),
    "local_array": text(f".local .align 8 .b8 own[400]; {_LOCAL} ld.local.u32 %r2, [%d2]; {_OUT}", target=TARGET),
    "constants": text(f"{_CONST} {_OUT}", target=TARGET).replace(
        ".visible .entry", ".const .align 4 .b8 table[260];\n.visible .entry"
    ),
    "static_shared": text(
        f".shared .align 8 .b8 area[20000]; ld.param.u32 %r1, [n]; st.shared.u32 [area], %r1; bar.sync 0; "
        f"ld.shared.u32 %r2, [area+16000]; {_OUT}", target=TARGET,
    ),
}  # fmt: skip
"""Texts with what no example has: spills, local and constant memory, static shared memory, no block size."""


def numbers(ptx: str, entry: str, fmad: bool) -> dict[str, int]:
    """Our static numbers under the names of the driver's attributes."""
    found = account(ptx, TARGET, ISA, kernel=entry, fmad=fmad)
    assert isinstance(found, Account), found
    assembled = assemble.assemble(ptx, decode(ptx), TARGET, fmad)
    assert isinstance(assembled, assemble.Assembled)
    return {
        "registers": int(found.metrics["launch__registers_per_thread"]),
        "local": int(found.metrics["ptxas__stack_bytes"]),
        "shared": int(found.metrics["launch__shared_mem_per_block_static"]),
        "const": read_usage_banks(assembled.usage, entry).get(3, 0),
        "max_threads": int(found.metrics["ptxas__max_threads"]),
    }


def write_attributes(folder: Path) -> None:
    (folder / "attributes").mkdir(parents=True, exist_ok=True)
    listed: dict[str, Any] = {}
    for name, ptx, entry, fmad in kernels():
        code = assemble.object_code(ptx, decode(ptx), TARGET, fmad)
        assert isinstance(code, bytes), code
        (folder / "attributes" / f"{name}.cubin").write_bytes(code)
        listed[name] = {"entry": entry, "expected": numbers(ptx, entry, fmad)}
        print("attributes", name, listed[name]["expected"], flush=True)
    (folder / "attributes.json").write_text(json.dumps(listed, indent=1))


# ------------------------------------------------------------------------------------------------ counts
def counted_launches(names: tuple[str, ...] = COUNTED_CASES) -> Iterator[tuple[str, LaunchRecord]]:
    """(name, launch) of the ten kernels and of some of the cases."""
    for kernel in KERNELS:
        with recording() as log:
            Module.from_ptx(kernel.ptx, fmad="off")["k"].launch(kernel.grid, kernel.block, kernel.arrays())
        yield f"ten_{kernel.name}", log.launches[0]
    for name in names:
        with recording() as log:
            CASES[name]()
        for i, record in enumerate(log.launches):
            yield (f"{name}.{i}" if len(log.launches) > 1 else name), record


def counting(record: LaunchRecord) -> tuple[Counted, LaunchRecord, np.ndarray[Any, Any]]:
    """(the text with counters, the same launch of it, what the counters must hold)."""
    assert record.result is not None and record.result.counters is not None and record.result.findings == ()
    counted = with_counters(record.ptx, record.entry)
    module = Module.from_ptx(counted.text, device=record.device, fmad="off")
    return counted, dataclasses.replace(record, module=module), counted.expected(record.result.counters)


def counters_of(module: Module) -> np.ndarray[Any, Any]:
    """The counters that a module holds on the emulator."""
    return next(array for name, array, _ in module.globals.named if name == VARIABLE)


def write_counts(folder: Path) -> None:
    (folder / "counts").mkdir(parents=True, exist_ok=True)
    for name, record in counted_launches():
        counted, launch, expected = counting(record)
        special = record.target[-1] if record.target[-1] in "af" else ""
        write_launch(folder / "counts", name, launch, record.device + special, expected=expected)
        here = counters_of(launch.module)
        assert (here == expected.astype(np.uint64)).all(), name
        print("counts", name, len(counted.points), "counters", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    write_counts(folder)
    write_attributes(folder)
    for script in (Path(on_gpu.__file__), Path(__file__).with_name("accounting_on_gpu.py")):
        shutil.copy(script, folder / script.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
