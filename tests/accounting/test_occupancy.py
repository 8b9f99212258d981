"""Theoretical occupancy against hand-made figures by the rules of the CUDA toolkit's calculator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptx.accounting.occupancy import largest_block, occupancy
from ptx.device import DEVICES

KIB = 1024
ROWS = [
    # target, threads, registers, shared -> CTAs, warps, what limits
    ("sm_80", 128, 32, 0, 16, 64, ("registers", "warps")),
    ("sm_80", 128, 33, 0, 12, 48, ("registers",)),  # 33 x 32 = 1,056 -> 1,280: 12 warps a part
    ("sm_80", 128, 116, 0, 4, 16, ("registers",)),  # 3,840: 4 warps a part
    ("sm_80", 256, 255, 0, 1, 8, ("registers",)),
    ("sm_80", 1024, 64, 0, 1, 32, ("registers",)),
    ("sm_80", 1024, 65, 0, 0, 0, ("registers",)),  # 7 warps a part, 8 are needed: cannot be launched
    ("sm_80", 32, 16, 0, 32, 32, ("blocks",)),
    ("sm_80", 128, 32, 48 * KIB, 3, 12, ("shared_mem",)),  # 49 KiB with the system's, 3 x 49 = 147 of 164
    ("sm_80", 128, 32, 163 * KIB, 1, 4, ("shared_mem",)),
    ("sm_80", 128, 32, 163 * KIB + 1, 0, 0, ("shared_mem",)),
    ("sm_75", 128, 32, 0, 8, 32, ("warps",)),
    ("sm_75", 128, 32, 16 * KIB, 4, 16, ("shared_mem",)),  # nothing reserved
    ("sm_86", 128, 40, 0, 12, 48, ("registers", "warps")),
    ("sm_86", 32, 16, 0, 16, 16, ("blocks",)),
    ("sm_89", 64, 128, 0, 8, 16, ("registers",)),
    ("sm_90", 384, 168, 200 * KIB, 1, 12, ("registers", "shared_mem")),
    ("sm_90", 33, 32, 0, 32, 64, ("registers", "warps", "blocks")),  # 33 threads are two warps
    ("sm_100", 256, 64, 0, 4, 32, ("registers",)),
    ("sm_120", 128, 80, 0, 6, 24, ("registers",)),
    ("sm_90", 2048, 16, 0, 0, 0, ("warps",)),
]


@pytest.mark.parametrize("target, threads, registers, shared, ctas, warps, limiters", ROWS)
def test_figures(
    target: str, threads: int, registers: int, shared: int, ctas: int, warps: int, limiters: tuple[str, ...]
) -> None:
    found = occupancy(DEVICES[target], threads, registers, shared)
    assert (found.ctas, found.warps_held, found.limiters) == (ctas, warps, limiters)


@given(
    st.sampled_from(sorted(DEVICES)), st.integers(1, 1024), st.integers(1, 255), st.integers(0, 227 * KIB),
    st.integers(0, 64), st.integers(0, 8 * KIB),
)  # fmt: skip
def test_more_of_anything_never_helps(
    name: str, threads: int, registers: int, shared: int, more: int, bytes_: int
) -> None:
    device = DEVICES[name]
    found = occupancy(device, threads, registers, shared)
    assert occupancy(device, threads, registers + more, shared + bytes_).ctas <= found.ctas
    assert 0 <= found.warps_held <= found.warps_possible
    assert found.ctas * (shared + device.reserved) <= device.shared_per_multiprocessor
    assert found.ctas * registers * threads <= device.registers


@pytest.mark.parametrize(
    "registers, threads", [(16, 1024), (64, 1024), (72, 896), (119, 512), (168, 384), (190, 256), (254, 256), (256, 0)]
)
def test_the_largest_block_is_that_of_an_h200s_driver(registers: int, threads: int) -> None:
    assert largest_block(DEVICES["sm_90"], registers) == threads
