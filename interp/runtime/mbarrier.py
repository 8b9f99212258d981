"""mbarrier objects in shared memory: arrivals, transaction bytes, phases.

Source: PTX ISA 'Parallel Synchronization and Communication Instructions: mbarrier'. An object is 64 opaque bits; here:

    bits  0-19  arrivals that the current phase still waits for
    bits 20-39  arrivals that each phase expects
    bits 40-60  transaction count (bytes still to come), two's complement
    bit  63     parity of the current phase

A phase completes when no arrivals and no bytes are pending; then the next begins. All ones (what shared memory is
filled with, and what `inval` leaves) is not a barrier: using it is a fault. The state that an arrival returns is the
object before it, of which waiting uses the parity.

A wait that would fail first completes the bulk copies that were issued on this barrier (`interp.runtime.bulk`): that is
where they are guaranteed to have happened, so it is when they happen under `late`.
"""

from __future__ import annotations

from interp.runtime.access import fault, get, locate
from interp.runtime.bulk_list import complete_in_cluster
from interp.runtime.layout import FAULT_BAD_MBARRIER
from interp.runtime.mbarrier_word import ABSENT, arrive, expect, load_barrier, parity_of, transact
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, load_u64, native, native_inline, store_u32, store_u64, u32, u64
from interp.runtime.waiting import note_event, wait_for

_MOST = (1 << 20) - 1


@native
def find_barrier(ctx: int, warp: int, site: int, lane: int, space: int, address: int) -> int:
    """Host address of a valid barrier, or 0 after a fault."""
    at = locate(ctx, warp, site, lane, space, address, 8, True)
    if at != 0 and load_barrier(at) == ABSENT:
        fault(ctx, warp, site, lane, FAULT_BAD_MBARRIER, address, 8)
        return i64(0)
    return at


@symbol("mbarrier_init")
def mbarrier_init(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: address, count. A barrier whose phase 0 waits for `count` arrivals."""
    for i in range(32):
        if mask >> i & 1:
            address, count = get(operands + 8 * i), u64(load_u32(operands + 256 + 4 * i))
            at = locate(ctx, warp, site, i, space, address, 8, True)
            if at == 0:
                return
            if count < 1 or count > _MOST:
                fault(ctx, warp, site, i, FAULT_BAD_MBARRIER, address, 8)
                return
            store_u64(at, count | count << u64(20))
            note_event(ctx)


@symbol("mbarrier_inval")
def mbarrier_inval(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, p1: int, p2: int, p3: int
) -> None:
    """Operand: address. The memory is free for other use."""
    for i in range(32):
        if mask >> i & 1:
            at = find_barrier(ctx, warp, site, i, space, get(operands + 8 * i))
            if at == 0:
                return
            store_u64(at, u64(ABSENT))


@native_inline
def _arrive_lanes(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, drop: int, expects: bool
) -> None:
    """Operands: address, and bytes to expect before one arrival or else the number of arrivals."""
    for i in range(32):
        store_u64(results + 8 * i, u64(0))
        if mask >> i & 1:
            address = get(operands + 8 * i)
            at = find_barrier(ctx, warp, site, i, space, address)
            if at == 0:
                return
            store_u64(results + 8 * i, load_u64(at))
            word = load_u32(operands + 256 + 4 * i)
            if expects:
                expect(at, i64(word))
            if not arrive(at, u64(1) if expects else u64(word), drop):
                fault(ctx, warp, site, i, FAULT_BAD_MBARRIER, address, 8)
                return
            note_event(ctx)


@symbol("mbarrier_arrive")
def mbarrier_arrive(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, drop: int, p2: int, p3: int
) -> None:
    """Operands: address, count. Result: the state before. `drop`: later phases expect fewer arrivals as well."""
    _arrive_lanes(ctx, warp, site, mask, results, operands, space, drop, False)


@symbol("mbarrier_arrive_expect")
def mbarrier_arrive_expect(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, drop: int, p2: int, p3: int
) -> None:
    """Operands: address, bytes. Result: the state before. Expects bytes, then arrives once."""
    _arrive_lanes(ctx, warp, site, mask, results, operands, space, drop, True)


@symbol("mbarrier_transact")
def mbarrier_transact(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, completes: int, p2: int, p3: int
) -> None:
    """Operands: address, bytes. expect_tx (completes = 0) or complete_tx (1)."""
    for i in range(32):
        if mask >> i & 1:
            at = find_barrier(ctx, warp, site, i, space, get(operands + 8 * i))
            if at == 0:
                return
            count = i64(load_u32(operands + 256 + 4 * i))
            if completes:
                transact(at, count)
            else:
                expect(at, count)
            note_event(ctx)


@symbol("mbarrier_wait")
def mbarrier_wait(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, by_parity: int, p2: int, p3: int
) -> None:
    """Operands: address, parity (32 bits) or state (64 bits). Result: whether that phase has completed."""
    done_lanes = u32(0)
    for i in range(32):
        if not mask >> i & 1:
            continue
        address = get(operands + 8 * i)
        at = find_barrier(ctx, warp, site, i, space, address)
        if at == 0:
            return
        parity = i64(load_u32(operands + 256 + 4 * i)) & 1 if by_parity else parity_of(load_u64(operands + 256 + 8 * i))
        if parity_of(load_u64(at)) == parity:
            complete_in_cluster(ctx, at, parity)
        if parity_of(load_u64(at)) != parity:
            done_lanes |= u32(1) << u32(i)
        else:
            wait_for(ctx, warp, site, address, parity)
    store_u32(results, done_lanes)


@symbol("mbarrier_pending")
def mbarrier_pending(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Operand: a state. Result: arrivals that were pending in it."""
    for i in range(32):
        store_u32(results + 4 * i, u32(load_u64(operands + 8 * i) & u64(_MOST)))
