"""Arriving at a named barrier without waiting there (`bar.arrive`), and the predicates of `bar.red`. Those that wait
are parked by emitted code.

Contributions to a barrier are counted in the context until it lets go; the scheduler then leaves the outcome in each
warp that waited, since another round of the same barrier may begin before a warp has looked.
"""

from __future__ import annotations

from interp.runtime.access import fault, get, put
from interp.runtime.layout import CTX, FAULT_BAD_BARRIER, WARP
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, store_u32, u32
from interp.runtime.waiting import note_event

_ARRIVED, _EXPECTED, _TRUE = 8 * CTX["ARRIVED"], 8 * CTX["EXPECTED"], 8 * CTX["TRUE"]
_W_TRUE, _W_CAME = 8 * WARP["TRUE"], 8 * WARP["CAME"]
OUTCOMES = {"popc": 0, "and": 1, "or": 2}


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


@symbol("barrier_check")
def barrier_check(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Operand: barrier number, which must be 0 to 15 in every executing lane."""
    for i in range(32):
        number = i64(load_u32(operands + 4 * i))
        if mask >> i & 1 and number > 15:
            fault(ctx, warp, site, i, FAULT_BAD_BARRIER, number, 0)
            return


@symbol("barrier_contribute")
def barrier_contribute(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: barrier number, predicate (lane mask). Each executing lane's predicate is counted."""
    values = i64(load_u32(operands + 128))
    for i in range(32):
        if mask & values & (i64(1) << i):
            at = ctx + _TRUE + 8 * (i64(load_u32(operands + 4 * i)) & 15)
            put(at, get(at) + 1)


@symbol("barrier_outcome")
def barrier_outcome(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, kind: int, p1: int, p2: int, p3: int
) -> None:
    """Result: how many predicates were true, or as a predicate whether all or any were, at the barrier just left."""
    true = get(warp + _W_TRUE)
    if kind == 0:
        for i in range(32):
            store_u32(results + 4 * i, u32(true))
    else:
        answer = true == get(warp + _W_CAME) if kind == 1 else true > 0
        store_u32(results, u32(0xFFFFFFFF) if answer else u32(0))
