"""Operations across the lanes of a warp: shuffle, vote, match, reduction, and the clock.

Source: PTX ISA 'shfl.sync', 'vote.sync', 'match.sync', 'redux.sync', 'activemask'. The lanes that take part are those
of the active mask; the engine lets a `.sync` instruction run only once all lanes of its member mask have arrived, and
the member mask must name every executing lane (undefined behaviour otherwise, a fault here).
"""

from __future__ import annotations

from interp.runtime.access import fault, get, put
from interp.runtime.layout import CTX, FAULT_BAD_MEMBER_MASK
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, load_u64, native, store_u32, store_u64, u32, u64

_CLOCK = 8 * CTX["CLOCK"]
SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX = range(4)
SHFL_MODES = {"up": SHFL_UP, "down": SHFL_DOWN, "bfly": SHFL_BFLY, "idx": SHFL_IDX}
REDUX_OPS = {"add": 0, "min": 1, "max": 2, "and": 3, "or": 4, "xor": 5}
VOTE_MODES = {"ballot": 0, "all": 1, "any": 2, "uni": 3}


@native
def check_members(ctx: int, warp: int, site: int, mask: int, members: int) -> None:
    """Every executing lane must be named by its own member mask."""
    for i in range(32):
        if mask >> i & 1 and not load_u32(members + 4 * i) >> i & 1:
            fault(ctx, warp, site, i, FAULT_BAD_MEMBER_MASK, i64(load_u32(members + 4 * i)), 0)


@symbol("warp_shfl")
def warp_shfl(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, mode: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: value, lane or delta, clamp and segment mask, member mask. Results: value, predicate (lane mask).

    A lane that reads an inactive lane gets 0. Hardware leaves it open; here it must not depend on where an engine keeps
    registers, or on what it leaves in lanes that do not run."""
    check_members(ctx, warp, site, mask, operands + 384)
    inside = u32(0)
    for i in range(32):
        lane = i64(i)
        b = i64(load_u32(operands + 128 + 4 * i)) & 31
        c = i64(load_u32(operands + 256 + 4 * i))
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
        store_u32(results + 4 * i, load_u32(operands + 4 * (j & 31)) if mask >> (j & 31) & 1 else u32(0))
        if ok:
            inside |= u32(1) << u32(i)
    store_u32(results + 128, inside)


@symbol("warp_vote")
def warp_vote(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, mode: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: predicate (lane mask), member mask. Result: a word for ballot, else a predicate."""
    check_members(ctx, warp, site, mask, operands + 32)
    active = u32(mask)
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
    store_u32(results, u32(0xFFFFFFFF) if answer else u32(0))


@symbol("warp_elect")
def warp_elect(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Operand: member mask. Results: the lowest executing lane, and the predicate (lane mask) that is true there."""
    check_members(ctx, warp, site, mask, operands)
    leader = i64(0)
    while leader < 31 and not mask >> leader & 1:
        leader += 1
    for i in range(32):
        store_u32(results + 4 * i, u32(leader))
    store_u32(results + 128, u32(1) << u32(leader))


@symbol("warp_activemask")
def warp_activemask(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """The active mask, in every lane."""
    for i in range(32):
        store_u32(results + 4 * i, u32(mask))


@symbol("warp_match_any")
def warp_match_any(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, size: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: value (4 or 8 bytes), member mask. Result: lanes with the same value."""
    check_members(ctx, warp, site, mask, operands + 32 * size)
    for i in range(32):
        same = u32(0)
        for j in range(32):
            if mask >> j & 1:
                if size == 8:
                    equal = load_u64(operands + 8 * i) == load_u64(operands + 8 * j)
                else:
                    equal = load_u32(operands + 4 * i) == load_u32(operands + 4 * j)
                if equal:
                    same |= u32(1) << u32(j)
        store_u32(results + 4 * i, same)


@symbol("warp_match_all")
def warp_match_all(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, size: int, p1: int, p2: int, p3: int
) -> None:
    """As match.any; results: the member mask if all values are equal, else 0, and the predicate."""
    check_members(ctx, warp, site, mask, operands + 32 * size)
    first = i64(-1)
    equal = True
    for i in range(32):
        if mask >> i & 1:
            if first < 0:
                first = i64(i)
            elif size == 8:
                equal = equal and load_u64(operands + 8 * i) == load_u64(operands + 8 * first)
            else:
                equal = equal and load_u32(operands + 4 * i) == load_u32(operands + 4 * first)
    for i in range(32):
        store_u32(results + 4 * i, u32(mask) if equal else u32(0))
    store_u32(results + 128, u32(0xFFFFFFFF) if equal else u32(0))


@symbol("warp_redux")
def warp_redux(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, op: int, signed: int, p2: int, p3: int
) -> None:
    """Operands: value, member mask. Result: the reduction over the executing lanes, in every lane."""
    check_members(ctx, warp, site, mask, operands + 128)
    started = False
    total = u32(0)
    flip = u32(0x80000000) if signed else u32(0)
    for i in range(32):
        if mask >> i & 1:
            v = load_u32(operands + 4 * i)
            if not started:
                total, started = v, True
            elif op == 0:
                total = u32(total + v)
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


@symbol("warp_redux_f32")
def warp_redux_f32(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, largest: int, magnitudes: int, nan: int,
    p3: int,
) -> None:  # fmt: skip
    """Operands: f32 value, member mask. Result: the least or largest over the executing lanes, in every lane; NaNs are
    left out (nan = 0) or win, and nothing but NaNs gives NaN."""
    check_members(ctx, warp, site, mask, operands + 128)
    total, best, started, beyond = u32(0x7FFFFFFF), u32(0), False, False
    for i in range(32):
        if mask >> i & 1:
            v = load_u32(operands + 4 * i)
            if magnitudes:
                v = v & u32(0x7FFFFFFF)
            if v & u32(0x7FFFFFFF) > u32(0x7F800000):
                beyond = True
                continue
            # sign and magnitude to an order of unsigned words
            key = v ^ u32(0xFFFFFFFF) if v >> u32(31) else v | u32(0x80000000)
            if not started or (key > best if largest else key < best):
                total, best, started = v, key, True
    if beyond and nan:
        total = u32(0x7FFFFFFF)
    for i in range(32):
        store_u32(results + 4 * i, total)


@symbol("read_clock")
def read_clock(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """A deterministic clock: it advances by 16 at every reading, so that differences are positive and loops end."""
    now = get(ctx + _CLOCK) + 16
    put(ctx + _CLOCK, now)
    for i in range(32):
        store_u64(results + 8 * i, u64(now))
