"""Arriving at a named barrier without waiting there (`bar.arrive`). Those that wait are parked by emitted code."""

from __future__ import annotations

import numpy as np

from interp.runtime.access import get, put
from interp.runtime.layout import CTX
from interp.runtime.native import symbol
from interp.runtime.raw import load_u32
from interp.runtime.waiting import note_event

_ARRIVED, _EXPECTED = 8 * CTX["ARRIVED"], 8 * CTX["EXPECTED"]


@symbol("barrier_arrive")
def barrier_arrive(ctx, warp, site, mask, results, operands, p0, p1, p2, p3):
    """Operands: barrier number, threads that release it. Each executing lane arrives."""
    for i in range(32):
        if mask >> i & 1:
            number = np.int64(load_u32(operands + 4 * i)) & 15
            at = ctx + _ARRIVED + 8 * number
            put(at, get(at) + 1)
            put(ctx + _EXPECTED + 8 * number, np.int64(load_u32(operands + 128 + 4 * i)))
    note_event(ctx)
