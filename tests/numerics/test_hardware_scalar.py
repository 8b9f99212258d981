"""Scalar functions against what an H200 answered: the stored subset always, all 4,096 lanes of each case where the
full files are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.numerics import hardware
from tests.numerics.cases import CASES, EDGES, Function

SHARED = Path(__file__).parents[3] / "shared" / "h200"


def disagreements(function: Function, inputs: hardware.Words, results: hardware.Words) -> list[str]:
    """One line for each lane whose result differs."""
    expected = results.astype(np.uint64) @ (np.uint64(1) << np.arange(0, 32 * results.shape[1], 32, dtype=np.uint64))
    lines = []
    for words, want in zip(inputs, expected.tolist(), strict=True):
        got = function(*words)
        if got != want:
            lines.append(f"{[hex(w) for w in words]} -> {got:#x}, hardware {want:#x}")
    return lines


@pytest.mark.parametrize("name", CASES)
def test_answers_as_the_hardware(name: str) -> None:
    assert disagreements(CASES[name], *hardware.lanes(name)) == []


@pytest.mark.parametrize("name", EDGES)
def test_edge_cases_as_the_hardware(name: str) -> None:
    assert disagreements(EDGES[name], *hardware.edge_lanes(name)) == []


@pytest.fixture(scope="module")
def full_cases() -> tuple[ModuleType, dict[str, hardware.Words]]:
    """The generator of the inputs, and all results."""
    if not (SHARED / "instr.py").exists():
        pytest.skip(f"the full answers are not at {SHARED}")
    spec = importlib.util.spec_from_file_location("h200_instr", SHARED / "instr.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["h200_instr"] = module
    spec.loader.exec_module(module)
    with np.load(SHARED / "instr_seed1.npz") as f:
        return module, {name: f[name] for name in f.files}


def test_all_lanes_as_the_hardware(full_cases: tuple[ModuleType, dict[str, hardware.Words]]) -> None:
    module, results = full_cases
    bad = {}
    for case in module.CASES:
        if case[0] in CASES:
            differing = disagreements(CASES[case[0]], module.inputs(case, 1, 4096), results[case[0]])
            if differing:
                bad[case[0]] = differing[:3]
    assert bad == {}
