"""Registers and counts against a real H200: `h200_accounting.json` is `results.json` of `accounting_on_gpu.py`.

Attributes: what the driver says of the loaded cubins equals our static numbers. Counts: the same launches, with an
atomic counter before every stretch of code, counted on the GPU, equal the emulator's thread-level counts. Without the
answers the comparison is skipped, not passed. That the counters stand where they must is tested here on the emulator.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

from ptx.errors import Unsupported
from tests.accounting.counted_kernels import KERNELS
from tests.accounting.ptx_texts import text, tools
from tests.hardware import export_accounting as export
from tests.hardware.counted import with_counters

__all__ = ["tools"]

FILE = Path(__file__).with_name("h200_accounting.json")
ANSWERS: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"attributes": {}, "counts": {}}
answered = pytest.mark.skipif(not FILE.exists(), reason="no answers of a GPU are recorded in h200_accounting.json")
QUICK = ("layernorm_sm90", "matmul_e4m3_sm90")


@pytest.mark.parametrize("name", [f"ten_{k.name}" for k in KERNELS])
def test_a_text_that_counts_itself_counts_what_the_emulator_counts(name: str) -> None:
    record = dict(export.counted_launches(()))[name]
    counted, launch, expected = export.counting(record)
    launch.after()
    assert export.counters_of(launch.module).tolist() == expected.tolist()
    assert {site for site, _ in counted.points} <= set(range(len(launch.module[launch.entry].sites)))
    assert expected.sum() > 0


def test_every_instruction_belongs_to_a_counter() -> None:
    """A stretch ends at every jump, so the count at its start is that of all its instructions."""
    for kernel in KERNELS:
        record = dict(export.counted_launches(()))[f"ten_{kernel.name}"]
        counted, _, expected = export.counting(record)
        assert record.result is not None and record.result.counters is not None
        at_start = {site: int(n) for (site, guard), n in zip(counted.points, expected, strict=True) if not guard}
        now = 0
        for site, count in enumerate(record.result.counters.instructions):
            now = at_start.get(site, now)
            assert count.issued_lanes == now, (kernel.name, count)


def test_an_instruction_that_shares_its_line_is_refused() -> None:
    with pytest.raises(Unsupported, match="a counter needs an instruction that has its line for itself"):
        with_counters(text("mov.u32 %r1, 1; ret;"), "k")


@answered
@pytest.mark.parametrize(
    "name",
    [n if n.startswith("ten_") or n in QUICK else pytest.param(n, marks=pytest.mark.judge) for n in ANSWERS["counts"]],
)
def test_counts_are_those_of_an_h200(name: str) -> None:
    told = ANSWERS["counts"][name]
    records = export.counted_launches(() if name.startswith("ten_") else (name.partition(".")[0],))
    _, _, expected = export.counting(dict(records)[name])
    assert told.get("error") is None and told["bytes_differing"] == 0
    np.testing.assert_array_equal(np.array(told["counts"], np.int64), expected)


@answered
@pytest.mark.parametrize("group", ["quick", pytest.param("all", marks=pytest.mark.judge)])
def test_static_numbers_are_those_of_the_driver(tools: None, group: str) -> None:
    asked = list(export.kernels()) if group == "all" else list(export.own_texts())
    assert {name for name, *_ in asked} <= set(ANSWERS["attributes"])
    wrong = {}
    for name, ptx, entry, fmad in asked:
        told = ANSWERS["attributes"][name]
        ours = export.numbers(ptx, entry, fmad)
        if different := {k: (told.get(k), n) for k, n in ours.items() if told.get(k) != n}:
            wrong[name] = different
    assert wrong == {}
