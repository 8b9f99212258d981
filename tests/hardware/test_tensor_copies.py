"""Tensor copies against a real H200, byte for byte, and the arguments of maps against its driver.

Every answer in `make judges`, every eighth always. What hardware leaves open or the manual forbids is named here.
"""

from __future__ import annotations

import numpy as np
import pytest

import gpuemu
from tests.hardware.tensor_copies import REFUSED, described, digest, emulated, stored

CASES = len(stored()["cases"])
LARGE_OFFSETS = {"too large offsets 5d", "too large offsets 4d"}
"""Offsets beyond the manual's ranges, which an H200 takes and this emulator does not."""


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.judge) for n in range(1, 8))], ids=lambda n: f"from_{n}"
)
def test_copies_are_those_of_an_h200(first: int) -> None:
    told = stored()
    wrong = []
    for number in range(first, CASES, 8):
        case, want = told["cases"][number], told["answers"][number]
        got = emulated(case)
        if case.get("why") in LARGE_OFFSETS:
            assert got == "fault"
        elif (got if isinstance(got, str) else digest(got)) != want:
            wrong.append((number, case.get("why"), case["op"], case["map"], want))
    assert not wrong


def test_maps_are_refused_as_the_driver_refuses_them() -> None:
    told = stored()
    wrong = []
    for m, code in zip(told["encodes"], told["codes"], strict=True):
        try:
            described(m, np.zeros(16, np.uint8)).encode(m.get("base", 0) + 1024)
            taken = True
        except gpuemu.Unsupported:
            continue  # not modelled, whatever the driver says
        except REFUSED:
            taken = False
        if m["mode"] == "wide" and m["swizzle"] == 0:
            assert not taken  # the manual forbids it, the driver does not
        elif taken != (code == 0):
            wrong.append((m, code))
    assert not wrong
