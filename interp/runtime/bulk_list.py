"""The list of a CTA's outstanding bulk copies: its layout in memory, entries in order of issue.

64 words of header (number of entries, first that may be outstanding), committed groups (u32 a thread), then entries of
ENTRY_WORDS words: kind, issuing warp and lane, its group, and what the copy needs. What an entry does when it takes
effect is `bulk_perform`, reached by its address in the context (`interp.runtime.indirect`).
"""

from __future__ import annotations

from interp.runtime.access import fault, get, peer, put
from interp.runtime.indirect import call_by_address
from interp.runtime.layout import BULK_ENTRIES, CTX, FAULT_QUEUE_FULL, WARP
from interp.runtime.mbarrier_word import parity_of
from interp.runtime.raw import i64, load_u32, load_u64, native

HEADER_BYTES = 512 + 4 * 1024
ENTRY_WORDS = 40
ENTRY_BYTES = 8 * ENTRY_WORDS
BULK_BYTES = HEADER_BYTES + BULK_ENTRIES * ENTRY_BYTES
_BULK, _PERFORM, _WARP_ID = 8 * CTX["BULK"], 8 * CTX["PERFORM"], 8 * WARP["ID"]
_RANK, _RANKS = 8 * CTX["CLUSTER_CTARANK"], 8 * CTX["CLUSTER_NCTARANK"]
COUNT, FIRST, COMMITTED = 0, 8, 512

DONE, ARRIVAL, WORDS, SEND, WORDS_REDUCE, TENSOR, COMMIT = 0, 4, 5, 6, 7, 8, 9
"""Kinds of entries, besides those of `tensor_copy`; the last two are of `tcgen05`."""
(
    E_KIND, E_WARP, E_LANE, E_GROUP, E_BARRIER, E_HOST, E_SHARED, E_BYTES, E_GLOBAL, E_SITE, E_CODE, E_RANK, E_COORDS,
    _, _, _, _, E_MAP,
) = (8 * i for i in range(18))  # fmt: skip
E_OFFSETS = E_MAP + 128
"""Three words of an im2col copy, or wHalo and wOffset; E_COORDS has five words, E_MAP the 16 of a tensor map."""


@native
def new_entry(ctx: int, warp: int, site: int, lane: int, kind: int) -> int:
    """Address of a fresh entry of the list, or 0 after a fault."""
    bulk = get(ctx + _BULK)
    count = get(bulk + COUNT)
    if count == BULK_ENTRIES:
        kept = i64(0)
        for e in range(get(bulk + FIRST), count):
            entry = bulk + HEADER_BYTES + e * ENTRY_BYTES
            if get(entry) != DONE:
                for i in range(ENTRY_WORDS):
                    put(bulk + HEADER_BYTES + kept * ENTRY_BYTES + 8 * i, get(entry + 8 * i))
                kept += 1
        put(bulk + FIRST, i64(0))
        count = kept
        if count == BULK_ENTRIES:
            fault(ctx, warp, site, lane, FAULT_QUEUE_FULL, i64(0), 0)
            return i64(0)
    entry = bulk + HEADER_BYTES + count * ENTRY_BYTES
    put(bulk + COUNT, count + 1)
    put(entry + E_KIND, kind)
    put(entry + E_WARP, warp)
    put(entry + E_LANE, lane)
    put(entry + E_SITE, site)
    thread = get(warp + _WARP_ID) * 32 + lane
    put(entry + E_GROUP, i64(load_u32(bulk + COMMITTED + 4 * thread)))
    put(entry + E_RANK, i64(0))
    put(entry + E_BARRIER, i64(0))
    return entry


@native
def forget_done(bulk: int) -> None:
    """Move past entries that are done; an empty list starts again at its beginning."""
    first, count = get(bulk + FIRST), get(bulk + COUNT)
    while first < count and get(bulk + HEADER_BYTES + first * ENTRY_BYTES) == DONE:
        first += 1
    if first == count:
        first = i64(0)
        put(bulk + COUNT, first)
    put(bulk + FIRST, first)


@native
def perform(ctx: int, entry: int) -> None:
    """Let an entry take effect."""
    call_by_address(get(ctx + _PERFORM), ctx, entry)


@native
def complete_for_barrier(ctx: int, barrier: int, parity: int) -> None:
    """Complete what was issued on a barrier, in order, until its phase of that parity is over."""
    bulk = get(ctx + _BULK)
    if bulk == 0 or get(bulk + COUNT) == 0:
        return
    for e in range(get(bulk + FIRST), get(bulk + COUNT)):
        entry = bulk + HEADER_BYTES + e * ENTRY_BYTES
        if get(entry + E_KIND) != DONE and get(entry + E_BARRIER) == barrier:
            perform(ctx, entry)
            if parity_of(load_u64(barrier)) != parity:
                break
    forget_done(bulk)


@native
def complete_in_cluster(ctx: int, barrier: int, parity: int) -> None:
    """As `complete_for_barrier`, with what other CTAs of the cluster have issued on the barrier."""
    complete_for_barrier(ctx, barrier, parity)
    for rank in range(get(ctx + _RANKS)):
        if parity_of(load_u64(barrier)) != parity:
            return
        if rank != get(ctx + _RANK):
            complete_for_barrier(peer(ctx, rank), barrier, parity)


@native
def reset_bulk(ctx: int) -> None:
    """An empty list for a new CTA."""
    bulk = get(ctx + _BULK)
    if bulk != 0:
        for i in range(HEADER_BYTES >> 3):
            put(bulk + 8 * i, i64(0))
