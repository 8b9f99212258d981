"""Is the difference that a change makes the same on every architecture? `python -m benchmarks.delta_study`

The claim under test: 'Δregisters and Δinstructions are architecture-independent for the same PTX'. Measured on the
examples' pairs of a control and its twin with one planted bug: both kernels are lowered at one shape, by calling the
op's own launcher with a `run` that lowers and does not execute. Then, three times:

    the same PTX    both lowered for the lowest target that the op allows, those two texts assembled for all targets, by
                    the assemblers that Triton takes (one release below sm_90, another from there on)
    one assembler   the same texts by one release on all targets, so that only the architecture differs
    each its own    both lowered anew for each target, as a team would build them

For each pair and metric there is a Δ on each target. The table has, by metric, in how many pairs the Δ is *identical*
on all targets, has the same *sign* on all (zero being a sign), and is *opposite* somewhere (a rise and a fall). Virtual
numbers of the same PTX are identical by construction; they are there as the control of the experiment.

A pair whose Δ is zero everywhere says nothing in favour of the claim that any change would not, so those are counted
apart: 'of which zero'. The verdict looks at the rest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.worker import ROOT
from gpuemu.gate.cases import Case, shapes_of
from gpuemu.gate.declare import Op
from gpuemu.gate.discover import load_file
from gpuemu.gate.inputs import make_arguments
from gpuemu.replay.portable import portable_ptx
from gpuemu.triton_run import bind_call
from interp.ops import ISA
from ptx.accounting.account import Absent, account
from ptx.accounting.assemble import TARGETS
from ptx.accounting.metrics import BY_NAME
from ptx.errors import GpuemuError
from ptx.lower import toolchain
from ptx.lower.triton import Lowered, lower_call

PAIRS = (
    ("attention", "attention_bug"),
    ("flash_attention", "flash_attention_bug"),
    ("flash_attention:flash_attention_causal", "flash_attention_masked_bug"),
    ("layernorm", "layernorm_bug"),
    ("matmul", "matmul_bug"),
    ("matmul_fp8", "matmul_fp8_bug"),
    ("matmul_fp8", "matmul_fp8_scale_bug"),
    ("rmsnorm", "rmsnorm_bug"),
    ("rmsnorm", "rmsnorm_mean_bug"),
    ("softmax", "softmax_bug"),
)
"""Control and twin: files of examples/, with the op where a file has several."""
METRICS = (
    "ptx__registers_live_max", "ptx__inst", "launch__registers_per_thread", "ptxas__spill_stores_bytes", "sass__inst",
    "sass__inst_fp32", "sass__inst_int", "sass__inst_move", "sass__code_bytes", "occupancy__ctas_per_sm",
)  # fmt: skip
_LOWEST, _LOWEST_FP8 = "sm_80", "sm_89"

Deltas = dict[str, dict[str, float]]  # metric -> target -> difference


@dataclass
class Lowering:
    """What a launcher calls instead of `gpuemu.run`: keeps the kernels that it would launch, for one target."""

    target: str
    kernels: list[Lowered] = field(default_factory=list)

    def __call__(
        self, kernel: Any, grid: Any, *args: Any, num_warps: int = 4, num_stages: int = 3, **named: Any
    ) -> None:
        fusion = named.pop("enable_fp_fusion", None)
        options = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": 1}
        bound, _ = bind_call(kernel, args, named, options, fusion, self.target)
        self.kernels.append(lower_call(bound))


@cache
def op_of(name: str) -> Op:
    """`file` or `file:op`."""
    file, _, wanted = name.partition(":")
    ops = load_file(ROOT / "examples" / f"{file}.py")
    return next(op for op in ops if op.name == (wanted or ops[0].name))


@cache
def lowered(name: str, dtype: str, target: str) -> Lowered:
    """The kernel that an op launches at its largest shape."""
    op = op_of(name)
    case = Case(
        index=0, op=op.name, file=op.file, dims=shapes_of(op)[-1], dtype=dtype, distribution="regular", target=target,
        device=None, option=dict(op.options[0]), seed=0,
    )  # fmt: skip
    run = Lowering(target)
    op.call("launcher", {**case.dims, **case.option, **{n: a.view for n, a in make_arguments(op, case).items()}}, run)
    (kernel,) = run.kernels
    return kernel


@contextmanager
def one_assembler() -> Iterator[None]:
    """The newer assembler for all targets; only for texts that are lowered already, since Triton asks it, too."""
    variable = "TRITON_PTXAS_PATH"
    before = os.environ.get(variable)
    os.environ[variable] = str(toolchain.tool("ptxas-blackwell"))
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def numbers(kernel: Lowered, target: str) -> dict[str, float] | str:
    """The metrics of a lowered kernel on a target, or why there are none."""
    found = account(
        portable_ptx(kernel.ptx, ROOT), target, ISA, kernel=kernel.entry, shared=int(kernel.metadata["shared"]),
        fmad=bool(kernel.metadata["enable_fp_fusion"]),
    )  # fmt: skip
    return found.reason if isinstance(found, Absent) else {m: found.metrics[m] for m in METRICS}


def measured(control: str, twin: str, dtype: str, targets: Sequence[str], same_text: bool) -> Iterator[tuple[str, Any]]:
    """(target, metric -> Δ, or why not) of one pair."""
    lowest = _LOWEST_FP8 if dtype.startswith("float8") else _LOWEST
    for target in targets:
        try:
            both = [numbers(lowered(n, dtype, lowest if same_text else target), target) for n in (control, twin)]
        except GpuemuError as error:
            yield target, error.diagnostic.what
            continue
        reasons = [b for b in both if isinstance(b, str)]
        if reasons:
            yield target, reasons[0]
        else:
            old, new = both
            assert isinstance(old, dict) and isinstance(new, dict)
            yield target, {m: new[m] - old[m] for m in METRICS}


def study(targets: Sequence[str], dtypes: Sequence[str], same_text: bool) -> tuple[dict[str, Deltas], list[str]]:
    """Pair -> metric -> target -> Δ, and what could not be measured."""
    out: dict[str, Deltas] = {}
    gaps: list[str] = []
    for control, twin in PAIRS:
        own = op_of(control).dtypes
        for dtype in [d for d in dtypes if d in own]:
            label = f"{twin} {dtype}"
            deltas: Deltas = {m: {} for m in METRICS}
            for target, found in measured(control, twin, dtype, targets, same_text):
                if isinstance(found, str):
                    gaps.append(f"{label} on {target}: {found}")
                    continue
                for metric, delta in found.items():
                    deltas[metric][target] = delta
            out[label] = deltas
            print(f"{label}: {len(deltas[METRICS[0]])} targets", file=sys.stderr, flush=True)
    return out, gaps


def sign(x: float) -> int:
    return (x > 0) - (x < 0)


def table(found: dict[str, Deltas], targets: Sequence[str]) -> list[str]:
    """Markdown: Δ by pair and target for the three numbers of the claim, then a line a metric."""
    lines = []
    for metric in ("launch__registers_per_thread", "sass__inst", "ptx__inst"):
        lines += [f"Δ `{metric}`", "", "| twin | " + " | ".join(targets) + " |", "|---" + "|--:" * len(targets) + "|"]
        for label, deltas in found.items():
            cells = [f"{deltas[metric][t]:+g}" if t in deltas[metric] else "" for t in targets]
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [
        "| metric | level | pairs | Δ identical | of which zero | same sign | opposite | largest spread of Δ |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for metric in METRICS:
        rows = [list(d[metric].values()) for d in found.values() if len(d[metric]) > 1]
        same = sum(len(set(r)) == 1 for r in rows)
        zero = sum(not any(r) for r in rows)
        signs = [{sign(x) for x in r} for r in rows]
        spread = max((max(r) - min(r) for r in rows), default=0)
        one, opposite = sum(len(s) == 1 for s in signs), sum({-1, 1} <= s for s in signs)
        cells = [f"`{metric}`", BY_NAME[metric].level, len(rows), same, zero, one, opposite, f"{spread:g}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def verdict(metric: str, found: dict[str, Deltas]) -> str:
    """One line about a metric."""
    rows = [list(d[metric].values()) for d in found.values() if len(d[metric]) > 1]
    moved = [r for r in rows if any(r)]
    if not moved:
        return f"- `{metric}`: no pair changes it on any target; nothing can be said"
    same = sum(len(set(r)) == 1 for r in moved)
    signs = sum(len({sign(x) for x in r}) == 1 for r in moved)
    word = "holds" if same == len(moved) else "does not hold"
    return (
        f"- `{metric}`: {word}: of the {len(moved)} pairs that change it somewhere, the Δ is identical on all targets "
        f"in {same}, and has one sign in {signs}"
    )


def summary(found: dict[str, Deltas], targets: Sequence[str]) -> str:
    """The finding in one sentence, for one cell of a table: what `gpuemu study --deltas` shows beside claim P4."""
    parts = []
    for metric in ("launch__registers_per_thread", "sass__inst"):
        rows = [list(d[metric].values()) for d in found.values() if len(d[metric]) > 1]
        moved = [r for r in rows if any(r)]
        same = sum(len(set(r)) == 1 for r in moved)
        opposite = sum({-1, 1} <= {sign(x) for x in r} for r in moved)
        parts.append(
            f"`{metric}` changes in {len(moved)}, by the same number on all targets in {same}, up on one and down on "
            f"another in {opposite}"
        )
    pairs = f"{len(found)} pairs of control and bug, the same PTX assembled for {len(targets)} targets"
    return f"{pairs}: {'; '.join(parts)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", action="append", help="default: float16, and float8_e4m3fn for the FP8 ops")
    parser.add_argument("--target", action="append", help="default: sm_80 and all above it")
    parser.add_argument("--output", type=Path, help="write the Markdown there, too")
    parser.add_argument("--summary", type=Path, help="write one sentence on the same PTX by Triton's assemblers there")
    options = parser.parse_args()
    dtypes = options.dtype or ["float16", "float8_e4m3fn"]
    targets = options.target or [t for t in TARGETS if t != "sm_75"]
    lines = [f"Pairs of `examples/` as {', '.join(dtypes)}; targets {', '.join(targets)}.", ""]
    parts = (
        ("The same PTX on every target, by Triton's assemblers", True, nullcontext()),
        ("The same PTX on every target, by one assembler", True, one_assembler()),
        ("Lowered anew for each target", False, nullcontext()),
    )
    for title, same_text, assembler in parts:
        with assembler:
            found, gaps = study(targets, dtypes, same_text)
        if options.summary is not None and title == parts[0][0]:
            options.summary.write_text(summary(found, targets) + "\n", encoding="utf-8")
        lines += [f"### {title}", "", *table(found, targets), "", *(verdict(m, found) for m in METRICS), ""]
        if gaps:
            lines += ["Not measured:", "", *(f"- {gap}" for gap in gaps), ""]
    text = "\n".join(lines)
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
