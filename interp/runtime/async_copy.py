"""`cp.async` with late completion: a copy is queued at issue and done by the wait that guarantees it.

Source: PTX ISA 'cp.async', 'cp.async.commit_group', 'cp.async.wait_group'. Groups belong to threads, so each lane has
its own count of committed groups; an entry of the queue holds one instruction's copies of up to 32 lanes and the group
each belongs to. Bounds are checked at issue, where the fault's line is; data are read at completion.

Queue of a warp: 32 words of header (number of entries, number ever issued, 32 committed counts as u32 from byte 64),
then entries of ENTRY_BYTES.
"""

from __future__ import annotations

from interp.runtime.access import fault, get, locate, put
from interp.runtime.layout import ASYNC_ENTRIES, FAULT_QUEUE_FULL, SPACE_GLOBAL, SPACE_SHARED, WARP
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u8, load_u32, load_u64, native, store_u8, store_u32, store_u64, u8, u32, u64
from interp.runtime.waiting import right_away

HEADER_BYTES = 256
ENTRY_BYTES = 16 + 32 * (4 + 4 + 8 + 8)
QUEUE_BYTES = HEADER_BYTES + ASYNC_ENTRIES * ENTRY_BYTES
_QUEUE = 8 * WARP["ASYNC"]
_GROUP, _COUNT, _TARGET, _SOURCE = 16, 144, 272, 528
_COMMITTED = 64


@symbol("async_copy")
def async_copy(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, size: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: shared address, global address (64-bit words), bytes to read (32-bit words). Parameter: bytes to
    write."""
    queue = get(warp + _QUEUE)
    entries = get(queue)
    if entries == ASYNC_ENTRIES:
        fault(ctx, warp, site, 0, FAULT_QUEUE_FULL, i64(0), size)
        return
    entry = queue + HEADER_BYTES + entries * ENTRY_BYTES
    lanes = i64(0)
    for i in range(32):
        if not mask >> i & 1:
            continue
        count = i64(load_u32(operands + 512 + 4 * i))
        count = min(count, size)
        target = locate(ctx, warp, site, i, SPACE_SHARED, get(operands + 8 * i), size, True)
        source = i64(1)
        if count > 0:
            source = locate(ctx, warp, site, i, SPACE_GLOBAL, get(operands + 256 + 8 * i), size, False)
        if target == 0 or source == 0:
            return
        store_u32(entry + _GROUP + 4 * i, load_u32(queue + _COMMITTED + 4 * i))
        store_u32(entry + _COUNT + 4 * i, u32(count))
        store_u64(entry + _TARGET + 8 * i, u64(target))
        store_u64(entry + _SOURCE + 8 * i, u64(source))
        lanes |= i64(1) << i
    if right_away(ctx):
        for i in range(32):
            if lanes >> i & 1:
                _copy_lane(entry, i, size)
        return
    issued = get(queue + 8) + 1
    put(queue + 8, issued)
    put(entry, lanes)
    put(entry + 8, size | issued << 8)
    put(queue, entries + 1)


@symbol("async_commit")
def async_commit(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Close the open group of each active lane."""
    queue = get(warp + _QUEUE)
    for i in range(32):
        if mask >> i & 1:
            at = queue + _COMMITTED + 4 * i
            store_u32(at, u32(load_u32(at) + u32(1)))


@native
def _copy_lane(entry: int, lane: int, size: int) -> None:
    """Perform one lane's copy; bytes beyond its count are zero."""
    target, source = get(entry + _TARGET + 8 * lane), get(entry + _SOURCE + 8 * lane)
    count = i64(load_u32(entry + _COUNT + 4 * lane))
    if count == size and size >= 8:
        for b in range(0, size, 8):
            store_u64(target + b, load_u64(source + b))
        return
    for b in range(size):
        store_u8(target + b, load_u8(source + b) if b < count else u8(0))


@native
def complete(queue: int, mask: int, pending: int) -> None:
    """Complete the copies of the lanes in `mask` but those of their `pending` most recent groups; -1: all copies."""
    kept = i64(0)
    for e in range(get(queue)):
        entry = queue + HEADER_BYTES + e * ENTRY_BYTES
        lanes, size = get(entry), get(entry + 8) & 255
        for i in range(32):
            if not (lanes & mask) >> i & 1:
                continue
            group = i64(load_u32(entry + _GROUP + 4 * i))
            committed = i64(load_u32(queue + _COMMITTED + 4 * i))
            if pending < 0 or group < committed - pending:
                _copy_lane(entry, i, size)
                lanes &= ~(i64(1) << i)
        put(entry, lanes)
        if lanes:
            if kept != e:
                move_to = queue + HEADER_BYTES + kept * ENTRY_BYTES
                for b in range(0, ENTRY_BYTES, 8):
                    put(move_to + b, get(entry + b))
            kept += 1
    put(queue, kept)


@native
def complete_before(queue: int, mask: int, issued: int) -> None:
    """Complete the copies of the lanes in `mask` that were among the first `issued` of the warp."""
    for e in range(get(queue)):
        entry = queue + HEADER_BYTES + e * ENTRY_BYTES
        lanes = get(entry)
        if get(entry + 8) >> 8 > issued:
            return
        for i in range(32):
            if (lanes & mask) >> i & 1:
                _copy_lane(entry, i, get(entry + 8) & 255)
        put(entry, lanes & ~mask)


@symbol("async_wait")
def async_wait(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, pending: int, p1: int, p2: int, p3: int
) -> None:
    """cp.async.wait_group (pending >= 0) or wait_all (-1)."""
    complete(get(warp + _QUEUE), mask, pending)
