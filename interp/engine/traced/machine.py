"""The step loop: runs one warp of a traced program until it ends, waits, runs out of fuel or faults.

    int64 run_warp_traced(ctx, warp) -> STATUS_*, as the compiled engine's `run_warp` (interp/engine/control.py)

The rules are those of the compiled engine, written again: of all regions with pending lanes the lowest runs next
(thread frontiers); a region that starts with an instruction for several lanes runs once for each member mask whose
live lanes have arrived; a back edge burns fuel; after the last fuel the search starts behind the region that burned
it; a polling edge gives way to other lanes of the warp from time to time. A fault ends the warp at the end of its
region, as it does there.

Every instruction is a call of its handler. A guard narrows the mask; an instruction whose guard holds nowhere is
called all the same, with no lanes.

Observation: when the context has a hook (`CTX["HOOK"]`), it is called before and after every instruction and at the
transfers of control, see OBSERVE_*. A hook that answers non-zero stops the launch (FAULT_STOPPED). Nothing is
observed after a fault.
"""

from __future__ import annotations

from interp.engine.control import PATIENCE, POLLS, TURNS
from interp.engine.traced.tables import BARRIER, EXIT, INST, PROGRAM, REGION, SPLIT, SPLIT_EXIT, SPLIT_TRAP, TRAP
from interp.kits.words import call_address
from interp.runtime import layout as L
from interp.runtime.access import get, put
from interp.runtime.layout import CTX, WARP, WARP_WORDS
from interp.runtime.measured import count_lanes, note_branch
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, native, store_u32, u32

OBSERVE_BEFORE, OBSERVE_AFTER, OBSERVE_BRANCH, OBSERVE_BARRIER = range(4)
"""Events: before and after an instruction; a branch or exit (`extra`: lanes that take it); arrival at a barrier
(`extra`: its number, threads in the upper 32 bits)."""

RUN_WARP = "run_warp_traced"
_PENDING = 8 * WARP_WORDS
_C_PROGRAM, _C_HOOK, _C_FAULT, _C_FAULT_SITE, _C_FUEL = (
    8 * CTX[n] for n in ("PROGRAM", "HOOK", "FAULT", "FAULT_SITE", "FUEL")
)
_C_COUNTERS, _C_LIVE, _C_ARRIVED, _C_EXPECTED = (8 * CTX[n] for n in ("COUNTERS", "LIVE", "ARRIVED", "EXPECTED"))
_W_LIVE, _W_CURSOR = 8 * WARP["LIVE"], 8 * WARP["CURSOR"]
_P_REGIONS, _P_NREGIONS, _P_INSTS, _P_COUNTS, _P_GUARDED, _P_DIVERGES, _P_FAIR, _P_MEASURED = (
    8 * PROGRAM[n] for n in PROGRAM
)
_INST_BYTES, _REGION_BYTES = 8 * len(INST), 8 * len(REGION)
_I_HANDLER, _I_OPS, _I_GUARD, _I_NEGATED, _I_COUNTER, _I_SITE = (8 * INST[n] for n in INST)
(
    _R_FIRST,
    _R_COUNT,
    _R_KIND,
    _R_TAKEN,
    _R_NEXT,
    _R_BACK,
    _R_POLLS,
    _R_GUARD,
    _R_NEGATED,
    _R_WAITS,
    _R_MEMBERS,
    _R_ALIKE,
    _R_SITE,
    _R_NUMBER,
    _R_THREADS,
    _R_COUNTER,
) = (8 * REGION[n] for n in REGION)
_FULL = 0xFFFFFFFF

call_handler = call_address(5, False)
call_hook = call_address(6, True)


@native
def row_of(warp: int, word: int) -> int:
    """Address of the row that a row word names."""
    return word - 1 if word & 1 else warp + word


@native
def guarded(warp: int, word: int, negated: int, mask: int) -> int:
    """The lanes of `mask` for which a guard holds."""
    bits = i64(load_u32(row_of(warp, word)))
    return mask & (bits ^ _FULL if negated else bits)


@native
def first_lane(warp: int, word: int, mask: int) -> int:
    """The 32-bit word of the first lane of the mask."""
    lane = i64(0)
    while lane < 31 and not mask >> lane & 1:
        lane += 1
    return i64(load_u32(row_of(warp, word) + 4 * lane))


@native
def observe(ctx: int, warp: int, event: int, site: int, mask: int, extra: int) -> None:
    """Tell the hook, if there is one and no fault yet."""
    hook = get(ctx + _C_HOOK)
    if hook != 0 and get(ctx + _C_FAULT) == 0 and call_hook(hook, ctx, warp, event, site, mask, extra) != 0:
        put(ctx + _C_FAULT, L.FAULT_STOPPED)
        put(ctx + _C_FAULT_SITE, site)


@native
def add_lanes(address: int, mask: int) -> None:
    """OR lanes into a 32-bit mask in memory."""
    store_u32(address, u32(load_u32(address) | u32(mask)))


@native
def count_guarded(ctx: int, program: int, index: int, lanes: int) -> None:
    """Count the lanes for which the guard of an instruction holds."""
    counter = get(ctx + _C_COUNTERS) + 8 * (get(program + _P_GUARDED) + index)
    put(counter, get(counter) + count_lanes(lanes))


@native
def run_region(ctx: int, warp: int, program: int, region: int, index: int, mask: int) -> None:
    """Count and run the instructions of a region in the lanes of `mask`."""
    counts = get(program + _P_COUNTS)
    counters = get(ctx + _C_COUNTERS)
    if counts:
        put(counters + 16 * index, get(counters + 16 * index) + 1)
        put(counters + 16 * index + 8, get(counters + 16 * index + 8) + count_lanes(mask))
    inst = get(program + _P_INSTS) + get(region + _R_FIRST) * _INST_BYTES
    hooked = get(ctx + _C_HOOK) != 0
    for _ in range(get(region + _R_COUNT)):
        lanes = mask
        site = get(inst + _I_SITE)
        guard = get(inst + _I_GUARD)
        if guard != -1:
            lanes = guarded(warp, guard, get(inst + _I_NEGATED), mask)
            if counts:
                count_guarded(ctx, program, get(inst + _I_COUNTER), lanes)
        if hooked:
            observe(ctx, warp, OBSERVE_BEFORE, site, lanes, 0)
        call_handler(get(inst + _I_HANDLER), ctx, warp, site, lanes, get(inst + _I_OPS))
        if hooked:
            observe(ctx, warp, OBSERVE_AFTER, site, lanes, 0)
        inst += _INST_BYTES


@native
def gather(ctx: int, warp: int, region: int, index: int, count: int, mask: int) -> int:
    """Park the lanes at a region until a member mask is complete: the lanes that go on, or 0. Other lanes are pending
    again."""
    parked = warp + _PENDING + 4 * (count + index)
    add_lanes(parked, mask)
    here = i64(load_u32(parked))
    store_u32(parked + 4 * count, u32(_FULL))
    absent = get(warp + _W_LIVE) & ~here
    members = get(region + _R_MEMBERS)
    todo = here
    while todo:
        wanted = i64(_FULL)
        if members != -1:
            wanted = first_lane(warp, members, todo)
        group = here
        if not get(region + _R_ALIKE):
            group = here & (wanted | todo & -todo)
        if not absent & wanted:
            store_u32(parked, u32(0))
            add_lanes(warp + _PENDING + 4 * index, here ^ group)
            return group
        todo &= ~group
    return i64(0)


@native
def end_lanes(ctx: int, warp: int, program: int, count: int, mask: int) -> int:
    """The lanes of `mask` end; those that waited for them look again: the lanes that are pending now."""
    put(warp + _W_LIVE, get(warp + _W_LIVE) ^ mask)
    put(ctx + _C_LIVE, get(ctx + _C_LIVE) - count_lanes(mask))
    freed = i64(0)
    for r in range(count):
        if get(get(program + _P_REGIONS) + r * _REGION_BYTES + _R_WAITS):
            parked = warp + _PENDING + 4 * (count + r)
            lanes = load_u32(parked)
            if lanes and load_u32(parked + 4 * count) == u32(_FULL):
                store_u32(parked, u32(0))
                add_lanes(warp + _PENDING + 4 * r, lanes)
                freed |= i64(lanes)
    return freed


@native
def arrive(ctx: int, warp: int, region: int, count: int, mask: int) -> None:
    """Lanes arrive at a CTA barrier, or wait at the cluster's, and are parked at the region behind it."""
    parked = warp + _PENDING + 4 * (count + get(region + _R_TAKEN))
    if get(region + _R_NUMBER) == -1:
        observe(ctx, warp, OBSERVE_BARRIER, get(region + _R_SITE), mask, L.CLUSTER_BARRIER)
        add_lanes(parked, mask)
        store_u32(parked + 4 * count, u32(L.CLUSTER_BARRIER))
        return
    number = first_lane(warp, get(region + _R_NUMBER), mask) & 15
    threads = i64(0)
    if get(region + _R_THREADS) != -1:
        threads = first_lane(warp, get(region + _R_THREADS), mask)
    observe(ctx, warp, OBSERVE_BARRIER, get(region + _R_SITE), mask, number | threads << 32)
    add_lanes(parked, mask)
    store_u32(parked + 4 * count, u32(number))
    put(ctx + _C_ARRIVED + 8 * number, get(ctx + _C_ARRIVED + 8 * number) + count_lanes(mask))
    put(ctx + _C_EXPECTED + 8 * number, threads)


@native
def nothing_pending(warp: int, count: int) -> int:
    """Why a warp cannot go on: it has ended, waits at a barrier, or for lanes that never come."""
    if get(warp + _W_LIVE) == 0:
        return i64(L.STATUS_DONE)
    for r in range(count):
        parked = warp + _PENDING + 4 * (count + r)
        if load_u32(parked) and load_u32(parked + 4 * count) != u32(_FULL):
            return i64(L.STATUS_BARRIER)
    return i64(L.STATUS_STUCK)


@native
def trap(ctx: int, site: int) -> int:
    """The launch ends with a trap."""
    put(ctx + _C_FAULT, L.FAULT_TRAP)
    put(ctx + _C_FAULT_SITE, site)
    return i64(L.STATUS_FAULT)


@native
def lanes_pending(warp: int, count: int) -> int:
    """All lanes that want to run."""
    lanes = i64(0)
    for r in range(count):
        lanes |= i64(load_u32(warp + _PENDING + 4 * r))
    return lanes


@native
def next_pending(warp: int, count: int, first: int) -> int:
    """The first region with pending lanes, from `first` on and then from 0; there is one."""
    index = first
    while True:
        if index >= count:
            index = i64(0)
        if load_u32(warp + _PENDING + 4 * index):
            return index
        index += 1


@symbol(RUN_WARP, "int64(int64, int64)")
def run_warp_traced(ctx: int, warp: int) -> int:
    """Run a warp; see the module's description."""
    program = get(ctx + _C_PROGRAM)
    count, regions, fair = get(program + _P_NREGIONS), get(program + _P_REGIONS), get(program + _P_FAIR)
    pending = warp + _PENDING
    first = get(warp + _W_CURSOR)
    put(warp + _W_CURSOR, 0)
    waiting = lanes_pending(warp, count)
    base = turns = i64(0)
    patience, polls = i64(PATIENCE), i64(POLLS)
    target = i64(-1)  # the region that all lanes go on to, if they are together
    while True:
        if target < 0:
            if waiting == 0:
                return nothing_pending(warp, count)
            target = next_pending(warp, count, first)
            first = i64(0)
            if fair and turns > 0:
                first = base
                turns -= 1
        here, target = target, i64(-1)
        mask = i64(load_u32(pending + 4 * here))
        store_u32(pending + 4 * here, u32(0))
        waiting ^= mask
        region = regions + here * _REGION_BYTES
        if get(region + _R_WAITS):
            mask = gather(ctx, warp, region, here, count, mask)
            waiting |= i64(load_u32(pending + 4 * here))
            if mask == 0:
                continue
        run_region(ctx, warp, program, region, here, mask)
        site, kind = get(region + _R_SITE), get(region + _R_KIND)
        taken = mask
        if kind >= SPLIT:
            taken = guarded(warp, get(region + _R_GUARD), get(region + _R_NEGATED), mask)
            if get(program + _P_COUNTS):
                count_guarded(ctx, program, get(region + _R_COUNTER), taken)
            if get(program + _P_MEASURED) and kind == SPLIT:
                note_branch(ctx, site, mask, taken)
        if site >= 0:
            observe(ctx, warp, OBSERVE_BEFORE, site, mask, 0)
            if kind != BARRIER:
                observe(ctx, warp, OBSERVE_BRANCH, site, mask, taken)
        rest = mask ^ taken
        if kind == SPLIT and taken and rest and not get(program + _P_DIVERGES):
            put(ctx + _C_FAULT, L.FAULT_SPLIT)
            put(ctx + _C_FAULT_SITE, site)
        if get(ctx + _C_FAULT) != 0:
            return i64(L.STATUS_FAULT)
        if kind == BARRIER:
            arrive(ctx, warp, region, count, mask)
            if get(ctx + _C_FAULT) != 0:
                return i64(L.STATUS_FAULT)
            continue
        if kind == EXIT:
            waiting |= end_lanes(ctx, warp, program, count, mask)
            continue
        if kind == TRAP or kind == SPLIT_TRAP and taken:
            if rest:
                add_lanes(pending + 4 * get(region + _R_TAKEN), rest)
            return trap(ctx, site)
        back, polling = get(region + _R_BACK), get(region + _R_POLLS)
        if taken and rest:
            if kind == SPLIT:
                add_lanes(pending + 4 * get(region + _R_TAKEN), taken)
                add_lanes(pending + 4 * get(region + _R_NEXT), rest)
            else:
                add_lanes(pending + 4 * get(region + _R_TAKEN), rest)
                waiting |= rest | end_lanes(ctx, warp, program, count, taken)
                continue
            waiting |= mask
        else:
            edge = 1 if kind == SPLIT and rest else 0
            if kind == SPLIT_EXIT and taken:
                waiting |= end_lanes(ctx, warp, program, count, taken)
                continue
            follow = get(region + _R_NEXT) if edge else get(region + _R_TAKEN)
            back, polling = back >> edge & 1, polling >> edge & 1
            together = waiting == 0
            add_lanes(pending + 4 * follow, mask)
            waiting |= mask
            if together and (not back or get(ctx + _C_FUEL) > 0) and (not polling or polls > 0):
                target = follow
                if back:
                    put(ctx + _C_FUEL, get(ctx + _C_FUEL) - 1)
                if polling:
                    polls -= 1
                continue
        if back:
            left = get(ctx + _C_FUEL) - 1
            put(ctx + _C_FUEL, left)
            if polling:
                polls -= 1
            if left < 0 or polling and polls < 0:
                put(warp + _W_CURSOR, here + 1)
                return i64(L.STATUS_FUEL)
            if polling and fair:
                patience -= 1
                if patience < 0:
                    patience = i64(PATIENCE)
                    base = first = here + 1
                    turns = i64(TURNS)
