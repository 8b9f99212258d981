"""ZLUDA's PTX tests with expected values (`ptx/src/test/spirv_run`): exact equality, or the reason why not.

Run from an outside checkout, never copied (tests/outside/checkout.py). ZLUDA runs them on NVIDIA GPUs too; the reasons
below were checked with NVIDIA's assembler.
"""

from __future__ import annotations

import numpy as np
import pytest

from interp.launch import Module
from ptx.errors import GpuemuError
from tests.outside.checkout import checkout
from tests.outside.rust_tests import Case, read

pytestmark = pytest.mark.judge

EXCEPTIONS = {
    "reg_local": "a register plus a constant as a value: the manual's grammar has no such operand",
    "vote_ballot_nosync": "`vote` without `.sync`: the assembler refuses it from sm_70 on",
    "ldmatrix": "64 threads read 64 words from the second half of a table of 64 words: out of bounds, as is reported",
    "vector8_extract": "`mov.v8`: ptxas 13.4 refuses it, illegal vector size; refused here, too",
    "ldmatrix_trans": "parts `.x`, `.y` of scalar registers: not in the manual",
}
ROOM = 4096
"""Bytes behind an output buffer that a launch of two warps may write: the tables are for one."""


def _cases() -> list[Case]:
    folder = checkout("ZLUDA") / "ptx/src/test/spirv_run"
    return list(read((folder / "mod.rs").read_text()))


def _run(case: Case) -> tuple[np.ndarray, tuple[object, ...]]:
    text = (checkout("ZLUDA") / f"ptx/src/test/spirv_run/{case.name}.ptx").read_text()
    module = Module.from_ptx(text, device="sm_120" if ".target sm_120" in text else "sm_90")
    entry = module[case.name] if case.name in module else next(iter(module.values()))
    assert case.expected is not None
    out = np.zeros(case.expected.nbytes + ROOM, np.uint8)
    args = [0 if case.given is None else case.given, out][-len(entry.kernel.params) :]
    result = entry.launch((1,), (case.threads,), args, shared=1024)
    return out[: case.expected.nbytes], result.findings


def test_every_case_with_expected_values() -> None:
    cases = [c for c in _cases() if c.expected is not None]
    assert len(cases) > 150
    wrong = {}
    for case in cases:
        try:
            out, findings = _run(case)
        except GpuemuError as error:
            wrong[case.name] = str(error).splitlines()[0]
            continue
        if findings or out.tobytes() != case.expected.tobytes():  # type: ignore[union-attr]
            wrong[case.name] = f"{findings or out}"
    print(f"\nspirv_run: {len(cases) - len(wrong)} of {len(cases)} cases equal; not: {', '.join(sorted(wrong))}")
    assert sorted(wrong) == sorted(EXCEPTIONS), wrong
