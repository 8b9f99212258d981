"""Operations across the lanes of a warp: shuffle, vote, match, reduction, and the clock.

Source: PTX ISA 'shfl.sync', 'vote.sync', 'match.sync', 'redux.sync', 'activemask'. The lanes that take part are those of
the active mask; the engine lets a `.sync` instruction run only once all lanes of its member mask have arrived, and the
member mask must name every executing lane (undefined behaviour otherwise, a fault here).
"""

from __future__ import annotations

import numpy as np

from interp.runtime.access import fault, get, put
from interp.runtime.layout import CTX, FAULT_BAD_MEMBER_MASK
from interp.runtime.native import symbol
from interp.runtime.raw import load_u32, load_u64, native, store_u32, store_u64

_CLOCK = 8 * CTX["CLOCK"]
SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX = range(4)
SHFL_MODES = {"up": SHFL_UP, "down": SHFL_DOWN, "bfly": SHFL_BFLY, "idx": SHFL_IDX}
REDUX_OPS = {"add": 0, "min": 1, "max": 2, "and": 3, "or": 4, "xor": 5}
VOTE_MODES = {"ballot": 0, "all": 1, "any": 2, "uni": 3}


@native
def check_members(ctx, warp, site, mask, members):
    """Every executing lane must be named by its own member mask."""
    for i in range(32):
        if mask >> i & 1 and not load_u32(members + 4 * i) >> i & 1:
            fault(ctx, warp, site, i, FAULT_BAD_MEMBER_MASK, np.int64(load_u32(members + 4 * i)), 0)


@symbol("warp_shfl")
def warp_shfl(ctx, warp, site, mask, results, operands, mode, p1, p2, p3):
    """Operands: value, lane or delta, clamp and segment mask, member mask. Results: value, predicate (lane mask).

    A lane that reads an inactive lane gets that lane's register (hardware: undefined)."""
    check_members(ctx, warp, site, mask, operands + 384)
    inside = np.uint32(0)
    for i in range(32):
        lane = np.int64(i)
        b = np.int64(load_u32(operands + 128 + 4 * i)) & 31
        c = np.int64(load_u32(operands + 256 + 4 * i))
        clamp, segment = c & 31, c >> 8 & 31
        top = (lane & segment) | (clamp & ~segment)
        bottom = lane & segment
        if mode == SHFL_UP:
            j = lane - b
            ok = j >= top
        elif mode == SHFL_DOWN:
            j = lane + b
            ok = j <= top
        elif mode == SHFL_BFLY:
            j = lane ^ b
            ok = j <= top
        else:
            j = bottom | (b & ~segment)
            ok = j <= top
        if not ok:
            j = lane
        store_u32(results + 4 * i, load_u32(operands + 4 * (j & 31)))
        if ok:
            inside |= np.uint32(1) << np.uint32(i)
    store_u32(results + 128, inside)


@symbol("warp_vote")
def warp_vote(ctx, warp, site, mask, results, operands, mode, p1, p2, p3):
    """Operands: predicate (lane mask), member mask. Result: a word for ballot, else a predicate."""
    check_members(ctx, warp, site, mask, operands + 32)
    active = np.uint32(mask)
    votes = load_u32(operands) & active
    if mode == 0:
        for i in range(32):
            store_u32(results + 4 * i, votes)
        return
    answer = False
    if mode == 1:
        answer = votes == active
    elif mode == 2:
        answer = votes != 0
    else:
        answer = votes == 0 or votes == active
    store_u32(results, np.uint32(0xFFFFFFFF) if answer else np.uint32(0))


@symbol("warp_elect")
def warp_elect(ctx, warp, site, mask, results, operands, p0, p1, p2, p3):
    """Operand: member mask. Results: the lowest executing lane, and the predicate (lane mask) that is true there."""
    check_members(ctx, warp, site, mask, operands)
    leader = np.int64(0)
    while leader < 31 and not mask >> leader & 1:
        leader += 1
    for i in range(32):
        store_u32(results + 4 * i, np.uint32(leader))
    store_u32(results + 128, np.uint32(1) << np.uint32(leader))


@symbol("warp_activemask")
def warp_activemask(ctx, warp, site, mask, results, operands, p0, p1, p2, p3):
    """The active mask, in every lane."""
    for i in range(32):
        store_u32(results + 4 * i, np.uint32(mask))


@symbol("warp_match_any")
def warp_match_any(ctx, warp, site, mask, results, operands, size, p1, p2, p3):
    """Operands: value (4 or 8 bytes), member mask. Result: lanes with the same value."""
    check_members(ctx, warp, site, mask, operands + 32 * size)
    for i in range(32):
        same = np.uint32(0)
        for j in range(32):
            if mask >> j & 1:
                if size == 8:
                    equal = load_u64(operands + 8 * i) == load_u64(operands + 8 * j)
                else:
                    equal = load_u32(operands + 4 * i) == load_u32(operands + 4 * j)
                if equal:
                    same |= np.uint32(1) << np.uint32(j)
        store_u32(results + 4 * i, same)


@symbol("warp_match_all")
def warp_match_all(ctx, warp, site, mask, results, operands, size, p1, p2, p3):
    """As match.any; results: the member mask if all values are equal, else 0, and the predicate."""
    check_members(ctx, warp, site, mask, operands + 32 * size)
    first = np.int64(-1)
    equal = True
    for i in range(32):
        if mask >> i & 1:
            if first < 0:
                first = np.int64(i)
            elif size == 8:
                equal = equal and load_u64(operands + 8 * i) == load_u64(operands + 8 * first)
            else:
                equal = equal and load_u32(operands + 4 * i) == load_u32(operands + 4 * first)
    for i in range(32):
        store_u32(results + 4 * i, np.uint32(mask) if equal else np.uint32(0))
    store_u32(results + 128, np.uint32(0xFFFFFFFF) if equal else np.uint32(0))


@symbol("warp_redux")
def warp_redux(ctx, warp, site, mask, results, operands, op, signed, p2, p3):
    """Operands: value, member mask. Result: the reduction over the executing lanes, in every lane."""
    check_members(ctx, warp, site, mask, operands + 128)
    started = False
    total = np.uint32(0)
    flip = np.uint32(0x80000000) if signed else np.uint32(0)
    for i in range(32):
        if mask >> i & 1:
            v = load_u32(operands + 4 * i)
            if not started:
                total, started = v, True
            elif op == 0:
                total = np.uint32(total + v)
            elif op == 1:
                total = v if (v ^ flip) < (total ^ flip) else total
            elif op == 2:
                total = v if (v ^ flip) > (total ^ flip) else total
            elif op == 3:
                total = total & v
            elif op == 4:
                total = total | v
            else:
                total = total ^ v
    for i in range(32):
        store_u32(results + 4 * i, total)


@symbol("read_clock")
def read_clock(ctx, warp, site, mask, results, operands, p0, p1, p2, p3):
    """A deterministic clock: it advances by 16 at every reading, so that differences are positive and loops end."""
    now = get(ctx + _CLOCK) + 16
    put(ctx + _CLOCK, now)
    for i in range(32):
        store_u64(results + 8 * i, np.uint64(now))
