"""Measured launches: ten kernels against counts made by hand, rules for sectors and wavefronts, engines, exports."""

from __future__ import annotations

import builtins
import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from interp.launch import Module
from interp.metrics import Metrics
from ptx.accounting.metrics import (
    DERIVED,
    DYNAMIC,
    METRICS,
    SUMS,
    conflicts,
    data_bytes,
    requests,
    sectors,
    wavefronts,
)
from ptx.errors import Unsupported
from tests.accounting.counted_kernels import KERNELS, Counted
from tests.engine.assembly import PROLOGUE_LENGTH, text


def measured(kernel: Counted, engine: str = "compiled") -> Metrics:
    result = Module.from_ptx(kernel.ptx)["k"].launch(
        kernel.grid, kernel.block, kernel.arrays(), metrics=True, engine=engine
    )
    assert result.findings == () and result.metrics is not None
    return result.metrics


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_counts_made_by_hand(kernel: Counted) -> None:
    found = measured(kernel)
    lanes = [i.values.get("smsp__thread_inst_executed_pred_on", 0) for i in found.instructions]
    assert lanes == [kernel.threads] * PROLOGUE_LENGTH + kernel.lanes
    assert {name: found.totals[name] for name in kernel.totals} == kernel.totals


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_both_engines_measure_the_same(kernel: Counted) -> None:
    assert measured(kernel, "traced").to_json() == measured(kernel).to_json()


def access(body: str, block: int = 32, bytes: int = 4096, engine: str = "compiled") -> dict[str, int | float]:
    """Totals of a launch; %r1 is the lane's number, %rd0 the array, %r2 a shared array of 8 KiB."""
    start = ".shared .align 128 .b8 area[8192]; mov.u32 %r1, %r0; mov.u32 %r2, area;"
    module = Module.from_ptx(text(f"{start}\n{body}\nret;", target="sm_90"))
    result = module["k"].launch(1, block, [np.zeros(bytes, np.uint8)], metrics=True, engine=engine)
    assert result.findings == () and result.metrics is not None
    return result.metrics.totals


def _global(stride: int, start: int, opcode: str = "ld.global.u32 %r4, [%rd2];") -> str:
    return f"mad.wide.u32 %rd2, %r1, {stride}, %rd0; add.u64 %rd2, %rd2, {start}; {opcode}"


SECTORS = [
    ("neighbours", _global(4, 0), 4),
    ("neighbours, one word late", _global(4, 4), 5),
    ("every other word", _global(8, 0), 8),
    ("a sector each", _global(32, 0), 32),
    ("one word for all", _global(0, 0), 1),
    ("16 bytes a lane", _global(16, 0, "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2];"), 16),
    ("bytes", _global(1, 0, "ld.global.u8 %h1, [%rd2];"), 1),
    ("bytes across two sectors", _global(1, 16, "ld.global.u8 %h1, [%rd2];"), 2),
    ("generic", _global(4, 0, "ld.u32 %r4, [%rd2];"), 4),
    ("eight lanes", "setp.lt.u32 %p1, %r1, 8;" + _global(32, 0, "@%p1 ld.global.u32 %r4, [%rd2];"), 8),
    ("no lane", "setp.gt.u32 %p1, %r1, 99;" + _global(32, 0, "@%p1 ld.global.u32 %r4, [%rd2];"), 0),
]


@pytest.mark.parametrize("body, expected", [s[1:] for s in SECTORS], ids=[s[0] for s in SECTORS])
def test_sectors(body: str, expected: int) -> None:
    totals = access(body)
    assert totals[sectors("global", "ld")] == expected
    assert totals[requests("global", "ld")] == (1 if expected else 0)
    assert totals["ptx__bytes_global_sectors"] == 32 * expected


def _shared(stride: int, opcode: str = "ld.shared.u32 %r4, [%r3];") -> str:
    return f"mad.lo.u32 %r3, %r1, {stride}, %r2; {opcode}"


_V2, _V4 = "ld.shared.v2.u32 {%r4, %r5}, [%r3];", "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];"
WAVEFRONTS = [
    ("neighbours", _shared(4), 1, 0),
    ("one word for all", _shared(0), 1, 0),
    ("bytes share words", _shared(1, "ld.shared.u8 %h1, [%r3];"), 1, 0),
    ("two words apart", _shared(8), 2, 1),
    ("three words apart", _shared(12), 1, 0),
    ("one bank", _shared(128), 32, 31),
    ("8 bytes a lane", _shared(8, _V2), 2, 0),
    ("8 bytes, every other", _shared(16, _V2), 4, 2),
    ("16 bytes a lane", _shared(16, _V4), 4, 0),
    ("16 bytes, every other", _shared(32, _V4), 8, 4),
    ("16 bytes for all", _shared(0, _V4), 4, 0),
    ("half of the warp", "setp.lt.u32 %p1, %r1, 16;" + _shared(8, "@%p1 " + _V2), 1, 0),
    ("generic", "cvta.shared.u64 %rd3, 0;" + _shared(8, "cvt.u64.u32 %rd4, %r3; add.u64 %rd3, %rd3, %rd4;")
     + "ld.u32 %r4, [%rd3];", 2, 1),
    ("ldmatrix, rows of 32 bytes", _shared(32, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4, %r5}, [%r3];"), 4, 2),
]  # fmt: skip


@pytest.mark.parametrize("body, passes, extra", [w[1:] for w in WAVEFRONTS], ids=[w[0] for w in WAVEFRONTS])
def test_wavefronts(body: str, passes: int, extra: int) -> None:
    totals = access(body)
    assert (totals[wavefronts("ld")], totals[conflicts("ld")]) == (passes, extra)


def test_local_memory_lies_lane_by_lane() -> None:
    own = ".local .align 16 .b8 own[64];"
    same = access(own + "mov.u32 %r3, own; st.local.u32 [%r3], %r1; ld.local.v2.u32 {%r4, %r5}, [%r3];")
    assert same[sectors("local", "st")] == 4 and same[sectors("local", "ld")] == 8
    assert same[data_bytes("local", "ld")] == 256 and same[requests("local", "ld")] == 1
    apart = access(own + "mov.u32 %r5, own; and.b32 %r3, %r1, 7; mad.lo.u32 %r3, %r3, 4, %r5; st.local.u32 [%r3], %r1;")
    assert apart[sectors("local", "st")] == 32  # each of eight neighbours has a word, and a sector, of its own


def test_an_asynchronous_copy_is_a_read_and_a_write() -> None:
    body = "mad.wide.u32 %rd2, %r1, 16, %rd0; mad.lo.u32 %r3, %r1, 16, %r2; setp.lt.u32 %p1, %r1, 8;"
    body += "selp.b32 %r4, 16, 0, %p1; cp.async.cg.shared.global [%r3], [%rd2], 16, %r4; cp.async.wait_all;"
    totals = access(body)
    assert totals[sectors("global", "ldgsts")] == 4 and totals[data_bytes("global", "ldgsts")] == 8 * 16
    assert totals[data_bytes("shared", "ldgsts")] == 512 and totals[wavefronts("ldgsts")] == 4


def test_atomics_have_sectors_and_no_wavefronts() -> None:
    body = "atom.global.add.u32 %r4, [%rd0], 1; red.global.add.u32 [%rd0], 1; atom.shared.add.u32 %r5, [%r2], 1;"
    totals = access(body)
    assert (totals[sectors("global", "atom")], totals[sectors("global", "red")]) == (1, 1)
    assert totals[data_bytes("shared", "atom")] == 128 and "wavefronts" not in str([n for n, v in totals.items() if v])


def test_operations_by_type() -> None:
    body = """
        fma.rn.f32 %f1, %f1, %f2, %f3; mul.rn.f32 %f1, %f1, %f2; div.rn.f32 %f1, %f1, %f2; neg.f32 %f1, %f1;
        add.f64 %fd1, %fd1, %fd2; fma.rn.f16x2 %r4, %r4, %r5, %r6; add.f16 %h1, %h1, %h2; add.u32 %r4, %r4, 1;
        fma.rn.bf16 %h1, %h2, %h3, %h1; max.f32 %f1, %f1, %f2;
    """
    totals = access(body, block=48)
    assert {t: totals[f"ptx__flops_{t}"] / 48 for t in ("fp32", "fp64", "fp16", "bf16")} == {
        "fp32": 3, "fp64": 1, "fp16": 5, "bf16": 2,
    }  # fmt: skip
    assert totals["ptx__flops"] == 11 * 48 and "ptx__arithmetic_intensity" not in totals


def test_registers_count_where_code_ran() -> None:
    heavy = "".join(f"ld.global.u32 %r{i}, [%rd0+{4 * i}];" for i in range(10, 40))
    heavy += "".join(f"st.global.u32 [%rd0+{4 * i}], %r{i};" for i in range(10, 40))
    body = f"setp.gt.u32 %p1, %r0, LIMIT; @!%p1 bra OUT; {heavy} OUT:"
    skipped, ran = (access(body.replace("LIMIT", n)) for n in ("99", "0"))
    name = "ptx__registers_live_max_executed"
    assert skipped[name] < 12 and ran[name] > 30


def test_measuring_changes_nothing_and_is_not_in_plain_code() -> None:
    kernel = KERNELS[7]
    entry = Module.from_ptx(kernel.ptx)["k"]
    plain, seen = kernel.arrays(), kernel.arrays()
    without = entry.launch(kernel.grid, kernel.block, plain)
    result = entry.launch(kernel.grid, kernel.block, seen, metrics=True)
    assert plain[0].tobytes() == seen[0].tobytes() and without.metrics is None
    assert without.counters is not None and result.counters is not None
    assert without.counters.instructions == result.counters.instructions
    assert not any(s.startswith("measured") for s in entry.compiled(True).recipe.symbols)
    assert "measured_access" in entry.compiled(True, False, True).recipe.symbols


# ------------------------------------------------------------------------------------------------ exports
def test_exports_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(KERNELS[6])
    told = json.loads(found.to_json())
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(rows) == len(told["instructions"]) == len(found.instructions)
    for name in (m.name for m in SUMS):
        total = sum(int(r[name]) for r in rows)
        assert total == told["totals"][name] == sum(i["metrics"].get(name, 0) for i in told["instructions"])
        assert total == sum(line["metrics"].get(name, 0) for line in told["lines"])
    peak = told["registers_live_max_at"]
    assert peak["units"] == told["totals"]["ptx__registers_live_max_executed"] > 0
    assert set(told["totals"]) <= {m.name for m in DYNAMIC}

    real = builtins.__import__

    def without_pandas(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(Unsupported, match="pandas is not installed"):
        found.to_pandas()


def test_a_data_frame() -> None:
    pytest.importorskip("pandas")
    found = measured(KERNELS[0])
    frame = found.to_pandas()
    assert len(frame) == len(found.instructions)
    assert int(frame["smsp__inst_executed"].sum()) == found.totals["smsp__inst_executed"]


def test_names_are_unique() -> None:
    names = [m.name for m in (*METRICS, *SUMS, *DERIVED)]
    assert len(set(names)) == len(names)
