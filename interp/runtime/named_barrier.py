"""Arriving at a named barrier without waiting there (`bar.arrive`). Those that wait are parked by emitted code."""

from __future__ import annotations

from interp.runtime.access import get, put
from interp.runtime.layout import CTX
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32
from interp.runtime.waiting import note_event

_ARRIVED, _EXPECTED = 8 * CTX["ARRIVED"], 8 * CTX["EXPECTED"]


@symbol("barrier_arrive")
def barrier_arrive(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: barrier number, threads that release it. Each executing lane arrives."""
    for i in range(32):
        if mask >> i & 1:
            number = i64(load_u32(operands + 4 * i)) & 15
            at = ctx + _ARRIVED + 8 * number
            put(at, get(at) + 1)
            put(ctx + _EXPECTED + 8 * number, i64(load_u32(operands + 128 + 4 * i)))
    note_event(ctx)
