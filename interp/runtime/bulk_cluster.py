"""Asynchronous copies between the CTAs of a cluster: `st.async`, `red.async`, `cp.async.bulk` from shared to shared
memory.

Source: PTX ISA 'st.async', 'red.async', 'cp.async.bulk'. All complete on an mbarrier in the memory that they write to,
so under `late` they happen when that CTA would otherwise wait in vain (`interp.runtime.bulk`). The words of `st.async`
and `red.async` are those of the moment when it is issued; a bulk copy reads its source when it happens.
"""

from __future__ import annotations

from interp.runtime.access import get, locate, move, put
from interp.runtime.bulk import barrier_at, issue, shared_at
from interp.runtime.bulk_list import (
    E_BARRIER,
    E_BYTES,
    E_CODE,
    E_GLOBAL,
    E_HOST,
    E_MAP,
    SEND,
    WORDS,
    WORDS_REDUCE,
    new_entry,
)
from interp.runtime.layout import SPACE_CLUSTER, SPACE_GENERIC, SPACE_SHARED
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, native


@symbol("async_bulk_words")
def async_bulk_words(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, size: int, count: int, p2: int, p3: int
) -> None:
    """st.async. Operands: address, barrier (64 bits each), `count` words of `size` bytes."""
    _words(ctx, warp, site, mask, operands, size, count, WORDS, 0)


@symbol("async_bulk_words_reduce")
def async_bulk_words_reduce(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, size: int, code: int, p2: int, p3: int
) -> None:
    """red.async. Operands as of st.async, one word; code: as of `tile_reduce`."""
    _words(ctx, warp, site, mask, operands, size, 1, WORDS_REDUCE, code)


@native
def _words(
    ctx: int, warp: int, site: int, mask: int, operands: int, size: int, count: int, kind: int, code: int
) -> None:
    for i in range(32):
        if not mask >> i & 1:
            continue
        address = get(operands + 8 * i)
        space = i64(SPACE_GENERIC if address >> 32 else SPACE_CLUSTER)
        host = locate(ctx, warp, site, i, space, address, size * count, True)
        barrier = barrier_at(ctx, warp, site, i, SPACE_CLUSTER, get(operands + 256 + 8 * i))
        if host == 0 or barrier == 0:
            return
        entry = new_entry(ctx, warp, site, i, kind)
        if entry == 0:
            return
        for c in range(count):
            source = operands + 512 + (32 * c + i) * size
            if size == 4:
                move(entry + E_MAP + 4 * c, source, 4)
            else:
                move(entry + E_MAP + 8 * c, source, 8)
        put(entry + E_BARRIER, barrier)
        put(entry + E_HOST, host)
        put(entry + E_CODE, code)
        put(entry + E_BYTES, size * count)
        issue(ctx, entry)


@symbol("async_bulk_send")
def async_bulk_send(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Own shared memory to that of a CTA of the cluster. Operands: target, source, barrier (64 bits each), bytes."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        size = i64(load_u32(operands + 768 + 4 * i))
        host = shared_at(ctx, warp, site, i, SPACE_CLUSTER, get(operands + 8 * i), size, True)
        source = shared_at(ctx, warp, site, i, SPACE_SHARED, get(operands + 256 + 8 * i), size, False)
        barrier = barrier_at(ctx, warp, site, i, SPACE_CLUSTER, get(operands + 512 + 8 * i))
        if host == 0 or source == 0 or barrier == 0:
            return
        entry = new_entry(ctx, warp, site, i, SEND)
        if entry == 0:
            return
        put(entry + E_BARRIER, barrier)
        put(entry + E_HOST, host)
        put(entry + E_GLOBAL, source)
        put(entry + E_BYTES, size)
        issue(ctx, entry)
