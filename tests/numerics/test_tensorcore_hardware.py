"""Matrix instructions against what an H200 answered: `mma.sync` of every type and shape, and wgmma through the
model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from interp.tensorcore import model
from interp.tensorcore.table import arithmetic, plan
from tests.numerics import hardware
from tests.numerics.plans import FUNCTIONS, mma_by_model, run, split

MMA = [name for name in hardware.description() if name.startswith("mma.")]
WGMMA = [name for name in hardware.description() if name.startswith("wgmma.")]
EDGES = [name for name in hardware.edge_names() if name.startswith("mma.") and "m8n8k4.row" not in name]


def hopper_plan(name: str):  # type: ignore[no-untyped-def]
    """The sm_90 plan of a case's instruction."""
    types = name.split("#")[0].split(".")
    if types[1] == "f64":
        return plan(90, types[2], "f64", "f64", "f64")
    shape = re.search(r"m\d+n\d+k\d+", name)
    assert shape is not None
    return plan(90, shape[0], types[-3], types[-2], types[-4], satfinite="satfinite" in name)


@pytest.mark.parametrize("name", MMA)
def test_mma_as_the_hardware(name: str) -> None:
    inputs, results = hardware.lanes(name)
    how = hopper_plan(name)
    count = len(inputs) // 32 * 32
    operands = split(hardware.warps(inputs[:count]), how)
    got = run(FUNCTIONS[how.function], how, *operands)
    np.testing.assert_array_equal(hardware.lanes_of(got), results[:count])
    if how.function == "mma":
        np.testing.assert_array_equal(run(mma_by_model, how, *operands), got)


@pytest.mark.parametrize("name", EDGES)
def test_edge_mma_as_the_hardware(name: str) -> None:
    inputs: Any
    results: Any
    inputs, results = hardware.edge_lanes(name)
    how = hopper_plan(name)
    if how.function == "mma_f64":
        inputs, results = (np.ascontiguousarray(x).view(np.uint64) for x in (inputs, results))
    got = run(FUNCTIONS[how.function], how, *split(hardware.warps(inputs), how))
    np.testing.assert_array_equal(hardware.lanes_of(got), results)


@pytest.mark.parametrize("name", WGMMA)
def test_wgmma_as_the_hardware(name: str) -> None:
    about = hardware.description()[name]
    accumulators, results = hardware.lanes(name)
    a, b = (np.ascontiguousarray(words[0]) for words in hardware.wgmma_operands(name))
    # core matrices of 8 rows x 16 bytes, the two along K next to each other
    a_bytes = a.view(np.uint8).reshape(8, 2, 8, 16).transpose(0, 2, 1, 3).reshape(64, 32)
    b_bytes = b.view(np.uint8).reshape(2, 8, 16).transpose(1, 0, 2).reshape(8, 32)
    half = about["d"] == "f16"
    per = 2 if half else 1
    warp, lane = np.divmod(np.arange(128), 32)
    for register in range(about["outputs"]):
        for part in range(per):
            index = register * per + part
            row = warp * 16 + lane // 4 + 8 * (index >> 1)
            column = lane % 4 * 2 + (index & 1)
            shift = 16 * part
            for thread in range(128):
                c = accumulators[thread, register] >> shift & (0xFFFF if half else 0xFFFFFFFF)
                want = results[thread, register] >> shift & (0xFFFF if half else 0xFFFFFFFF)
                x, y = a_bytes[row[thread]].copy(), b_bytes[column[thread]].copy()
                if about["a"] == "s8":
                    total = int(x.view(np.int8).astype(int) @ y.view(np.int8).astype(int)) + int(c.view(np.int32))
                    assert total & 0xFFFFFFFF == want
                    continue
                numbers = arithmetic(90, about["a"], about["d"], unit="wgmma")
                kinds = model.KINDS[about["a"]], model.KINDS[about["b"]]
                size = 32 // about["k"]
                got = model.dot(
                    x.ctypes.data, y.ctypes.data, size, size, about["k"], *kinds, np.uint32(c), model.KINDS[about["d"]],
                    numbers.block, numbers.fraction, numbers.floor, numbers.out_fraction,
                )  # fmt: skip
                assert got == want
