"""Bulk asynchronous copies of a CTA: the list of those that are outstanding, and when they take effect.

Source: PTX ISA 'cp.async.bulk', 'cp.async.bulk.tensor', 'cp.reduce.async.bulk', their groups,
'cp.async.mbarrier.arrive'.

Loads name an mbarrier; under `late` completion they happen when a wait on that barrier would otherwise fail. So do
copies to the shared memory of other CTAs of the cluster, whose barrier lies there (`interp.runtime.bulk_cluster` issues
them). A multicast is one load for each CTA that its mask names. Stores and
reductions belong to the issuing thread's groups; they happen at the `wait_group` that covers them, `.read` or not (so a
wait that lacks only the guarantee of visibility is not noticed), and at the end of the CTA at the latest. Descriptors
are read and checked when a copy is issued, data when it happens.

The list itself is `interp.runtime.bulk_list`.
"""

from __future__ import annotations

from interp.runtime.access import get, locate, locate_bytes, note_write, put
from interp.runtime.async_copy import complete_before
from interp.runtime.bulk_list import (
    ARRIVAL,
    COMMIT,
    COMMITTED,
    COUNT,
    DONE,
    E_BARRIER,
    E_BYTES,
    E_CODE,
    E_COORDS,
    E_GLOBAL,
    E_GROUP,
    E_HOST,
    E_KIND,
    E_LANE,
    E_MAP,
    E_OFFSETS,
    E_RANK,
    E_SHARED,
    E_SITE,
    E_WARP,
    ENTRY_BYTES,
    FIRST,
    HEADER_BYTES,
    SEND,
    TENSOR,
    WORDS,
    WORDS_REDUCE,
    forget_done,
    new_entry,
    perform,
)
from interp.runtime.indirect import STEP_SIGNATURE, call_by_address
from interp.runtime.layout import CTX, RANK_SHIFT, SPACE_GENERIC, SPACE_SHARED, WARP
from interp.runtime.mbarrier_word import ABSENT, add_pending, arrive, load_barrier, transact
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u8, load_u32, load_u64, native, store_u8, store_u32, store_u64, u32, u64
from interp.runtime.tensor_columns import copy_columns
from interp.runtime.tensor_copy import copy_tile
from interp.runtime.tensor_layout import LOAD, MODE, REDUCE, STORE, TILE
from interp.runtime.tile_reduce import combine
from interp.runtime.waiting import note_event, right_away

_BULK, _WATCH_HI, _TENSOR_STEP = 8 * CTX["BULK"], 8 * CTX["WATCH_HI"], 8 * CTX["TENSOR_STEP"]
_WARP_ID, _QUEUE = 8 * WARP["ID"], 8 * WARP["ASYNC"]


@symbol("bulk_perform", STEP_SIGNATURE)
def bulk_perform(ctx: int, entry: int) -> int:
    """Let an entry take effect; entry 0: the CTA has ended, with stores and reductions that nobody waited for."""
    if entry != 0:
        _perform(ctx, entry)
        return 0
    bulk = get(ctx + _BULK)
    for e in range(get(bulk + FIRST), get(bulk + COUNT)):
        entry = bulk + HEADER_BYTES + e * ENTRY_BYTES
        kind = get(entry + E_KIND)
        if kind in (STORE, REDUCE):
            _perform(ctx, entry)
    return 0


@native
def _perform(ctx: int, entry: int) -> None:
    kind, warp, lane, site = get(entry + E_KIND), get(entry + E_WARP), get(entry + E_LANE), get(entry + E_SITE)
    barrier = get(entry + E_BARRIER)
    if kind in (TENSOR, COMMIT):
        call_by_address(get(ctx + _TENSOR_STEP), ctx, entry)
    put(entry + E_KIND, i64(DONE))
    if kind == TENSOR:
        return
    if kind == COMMIT:
        if load_barrier(barrier) != ABSENT:
            arrive(barrier, u64(1), 0)
            note_event(ctx)
        return
    if kind == ARRIVAL:
        complete_before(get(warp + _QUEUE), i64(1) << lane, get(entry + E_BYTES))
        if load_barrier(barrier) != ABSENT:
            arrive(barrier, u64(1), 0)
            note_event(ctx)
        return
    size = get(entry + E_BYTES)
    if kind == WORDS:
        copy_bytes(get(entry + E_HOST), entry + E_MAP, size)
    elif kind == WORDS_REDUCE:
        combine(ctx, get(entry + E_CODE), get(entry + E_HOST), entry + E_MAP, size)
    elif kind == SEND:
        copy_bytes(get(entry + E_HOST), get(entry + E_GLOBAL), size)
    elif get(entry + E_RANK) != 0:
        _copy_tensor(ctx, warp, site, lane, kind, entry)
    else:
        address = get(entry + E_GLOBAL)
        at = locate_bytes(ctx, warp, site, lane, address, size, kind != LOAD)
        host = get(entry + E_HOST)
        if at == 0:
            return
        if kind == LOAD:
            copy_bytes(host, at, size)
        elif kind == STORE:
            copy_bytes(at, host, size)
        else:
            combine(ctx, get(entry + E_CODE), at, host, size)
        if kind != LOAD and get(ctx + _WATCH_HI):
            note_write(ctx, site, address, size)
    if (kind == LOAD or kind >= WORDS) and load_barrier(barrier) != ABSENT:
        transact(barrier, size)
        note_event(ctx)


@native
def _copy_tensor(ctx: int, warp: int, site: int, lane: int, kind: int, entry: int) -> None:
    map_, rank, mode = entry + E_MAP, get(entry + E_RANK), i64(load_u8(entry + E_MAP + MODE))
    host, shared, op = get(entry + E_HOST), get(entry + E_SHARED), get(entry + E_CODE)
    if mode == TILE:
        copy_tile(ctx, warp, site, lane, kind, map_, rank, entry + E_COORDS, host, shared, op)
    else:
        copy_columns(
            ctx, warp, site, lane, kind, map_, rank, mode, entry + E_COORDS, entry + E_OFFSETS, host, shared, op
        )


@native
def copy_bytes(target: int, source: int, size: int) -> None:
    """Copy bytes, eight at a time where there are."""
    at = i64(0)
    while at + 8 <= size:
        store_u64(target + at, load_u64(source + at))
        at += 8
    while at < size:
        store_u8(target + at, load_u8(source + at))
        at += 1


@native
def issue(ctx: int, entry: int) -> None:
    if right_away(ctx):
        perform(ctx, entry)
        forget_done(get(ctx + _BULK))


@native
def barrier_at(ctx: int, warp: int, site: int, lane: int, space: int, address: int) -> int:
    """Host address of an mbarrier operand (in a shared space, or generic)."""
    return locate(ctx, warp, site, lane, SPACE_GENERIC if address >> 32 else space, address, 8, True)


@native
def shared_at(ctx: int, warp: int, site: int, lane: int, space: int, address: int, size: int, writes: int) -> int:
    """Host address of `size` bytes of shared memory, 16-byte aligned, or 0 after a fault."""
    space = i64(SPACE_GENERIC) if address >> 32 else i64(space)
    at = locate(ctx, warp, site, lane, space, address, 16, writes)
    if at != 0 and size > 16:
        last = locate(ctx, warp, site, lane, space, address + size - 16, 16, writes)
        if last == 0:
            return last
    return at


@native
def destination(address: int, ranks: int, rank: int) -> int:
    """A shared or generic address for the CTA of a rank; `ranks` 0: no multicast, as it is."""
    if ranks == 0:
        return address
    return address & ~(i64(0xFF) << RANK_SHIFT) | rank << RANK_SHIFT


@native
def _load_bulk(
    ctx: int, warp: int, site: int, lane: int, space: int, shared: int, address: int, bar: int, size: int
) -> bool:
    """Queue one copy from global memory; False after a fault."""
    host = shared_at(ctx, warp, site, lane, space, shared, size, True)
    barrier = barrier_at(ctx, warp, site, lane, space, bar)
    if host == 0 or barrier == 0:
        return False
    entry = new_entry(ctx, warp, site, lane, LOAD)
    if entry == 0:
        return False
    put(entry + E_BARRIER, barrier)
    put(entry + E_HOST, host)
    put(entry + E_BYTES, size)
    put(entry + E_GLOBAL, address)
    issue(ctx, entry)
    return True


@symbol("async_bulk_load")
def async_bulk_load(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, many: int, p2: int, p3: int
) -> None:
    """Global to shared. Operands: shared address, global address, barrier (64 bits each), bytes; `many`: the ranks of
    the CTAs that get a copy, as a mask."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        size = i64(load_u32(operands + 768 + 4 * i))
        shared, bar = get(operands + 8 * i), get(operands + 512 + 8 * i)
        ranks = i64(load_u32(operands + 896 + 4 * i)) if many else i64(0)
        for rank in range(16 if many else 1):
            if many and not ranks >> rank & 1:
                continue
            to, at = destination(shared, ranks, rank), destination(bar, ranks, rank)
            if not _load_bulk(ctx, warp, site, i, space, to, get(operands + 256 + 8 * i), at, size):
                return


@native
def _bulk_store(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, code: int, p1: int, p2: int, p3: int
) -> None:
    """Shared to global. Operands: global address, shared address (64 bits), bytes. code: -1, or an atomic's."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        size = i64(load_u32(operands + 512 + 4 * i))
        host = shared_at(ctx, warp, site, i, SPACE_SHARED, get(operands + 256 + 8 * i), size, False)
        if host == 0:
            return
        entry = new_entry(ctx, warp, site, i, STORE if code < 0 else REDUCE)
        if entry == 0:
            return
        put(entry + E_HOST, host)
        put(entry + E_BYTES, size)
        put(entry + E_GLOBAL, get(operands + 8 * i))
        put(entry + E_CODE, code)
        issue(ctx, entry)


@symbol("async_bulk_store")
def async_bulk_store(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, code: int, p1: int, p2: int, p3: int
) -> None:
    _bulk_store(ctx, warp, site, mask, results, operands, code, p1, p2, p3)


@symbol("async_bulk_reduce")
def async_bulk_reduce(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, code: int, p1: int, p2: int, p3: int
) -> None:
    _bulk_store(ctx, warp, site, mask, results, operands, code, p1, p2, p3)


@symbol("async_bulk_commit")
def async_bulk_commit(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Close the open bulk group of each active thread."""
    at = get(ctx + _BULK) + COMMITTED + 128 * get(warp + _WARP_ID)
    for i in range(32):
        if mask >> i & 1:
            store_u32(at + 4 * i, u32(load_u32(at + 4 * i) + u32(1)))


@symbol("async_bulk_wait")
def async_bulk_wait(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, pending: int, p1: int, p2: int, p3: int
) -> None:
    """Complete all but the `pending` most recent bulk groups of each active thread."""
    bulk = get(ctx + _BULK)
    for e in range(get(bulk + FIRST), get(bulk + COUNT)):
        entry = bulk + HEADER_BYTES + e * ENTRY_BYTES
        kind, lane = get(entry + E_KIND), get(entry + E_LANE)
        if kind in (STORE, REDUCE) and get(entry + E_WARP) == warp and mask >> lane & 1:
            thread = get(warp + _WARP_ID) * 32 + lane
            if get(entry + E_GROUP) < i64(load_u32(bulk + COMMITTED + 4 * thread)) - pending:
                perform(ctx, entry)
    forget_done(bulk)


@symbol("async_copy_arrive")
def async_copy_arrive(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, noinc: int, p2: int, p3: int
) -> None:
    """cp.async.mbarrier.arrive: an arrival when the thread's earlier cp.async are complete. Operand: barrier."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        barrier = locate(ctx, warp, site, i, space, get(operands + 8 * i), 8, True)
        if barrier == 0:
            return
        entry = new_entry(ctx, warp, site, i, ARRIVAL)
        if entry == 0:
            return
        if not noinc:
            add_pending(barrier, 1)
        put(entry + E_BARRIER, barrier)
        put(entry + E_BYTES, get(get(warp + _QUEUE) + 8))
        issue(ctx, entry)
