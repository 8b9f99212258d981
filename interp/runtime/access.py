"""Loads and stores: every access of a kernel, checked against the allocations, lane by lane.

Source: PTX ISA 'State Spaces', 'Addresses as Operands', 'ld', 'st' (natural alignment is required). Device addresses
are translated by the allocation table: an access is in bounds when all its bytes lie in one allocation. Each access
site remembers the table row that it hit last, so the search runs once a tensor and site.

An access outside all allocations, misaligned, or a store into read-only memory records a *fault* in the context (the
first one wins) and has no effect: the load gives zero, the store is dropped, the warp stops at the end of its region.

Lanes are served in ascending order; when several lanes store to one address the highest lane's value stays (hardware
leaves the choice open; a fixed one keeps results the same everywhere).
"""

from __future__ import annotations

from interp.runtime.layout import (
    ALLOC_ROW,
    ALLOC_WRITABLE,
    CTX,
    FAULT_EXITED_CTA,
    FAULT_MISALIGNED,
    FAULT_OUT_OF_BOUNDS,
    FAULT_READ_ONLY,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_BASE,
    SHARED_WINDOW,
    SPACE_CLUSTER,
    SPACE_GENERIC,
    SPACE_LOCAL,
    SPACE_PARAM,
    SPACE_SHARED,
    WARP,
)
from interp.runtime.native import symbol
from interp.runtime.raw import (
    i64,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    native,
    native_inline,
    store_i64,
    store_u8,
    store_u16,
    store_u32,
    store_u64,
    u64,
)

_ALLOCS, _NALLOCS, _SITES = 8 * CTX["ALLOCS"], 8 * CTX["NALLOCS"], 8 * CTX["SITES"]
_SHARED, _SHARED_SIZE, _SHARED_LOW = 8 * CTX["SHARED"], 8 * CTX["SHARED_SIZE"], 8 * CTX["SHARED_LOW"]
_RANK, _RANKS, _SLOT_BYTES, _LIVE = (
    8 * CTX[n] for n in ("CLUSTER_CTARANK", "CLUSTER_NCTARANK", "SLOT_BYTES", "LIVE")
)
_LOCAL, _LOCAL_SIZE = 8 * CTX["LOCAL"], 8 * CTX["LOCAL_SIZE"]
_PARAMS, _PARAMS_SIZE = 8 * CTX["PARAMS"], 8 * CTX["PARAMS_SIZE"]
_FAULT, _FAULT_SITE, _FAULT_WARP = 8 * CTX["FAULT"], 8 * CTX["FAULT_SITE"], 8 * CTX["FAULT_WARP"]
_FAULT_LANE, _FAULT_ADDRESS, _FAULT_BYTES = 8 * CTX["FAULT_LANE"], 8 * CTX["FAULT_ADDRESS"], 8 * CTX["FAULT_BYTES"]
_WATCH_LO, _WATCH_HI, _WATCH_SITE = 8 * CTX["WATCH_LO"], 8 * CTX["WATCH_HI"], 8 * CTX["WATCH_SITE"]
_ZERO = CTX["ZERO"]
_WATCH_CTA, _LINEAR = 8 * CTX["WATCH_CTA"], 8 * CTX["LINEAR"]
_WARP_ID = 8 * WARP["ID"]
_ROW = 8 * ALLOC_ROW
_FULL = 0xFFFFFFFF
_WINDOW = 0x1_0000_0000


get, put = load_i64, store_i64
"""Signed 64-bit words at host addresses: fields of contexts, frames and tables."""


@native
def fault(ctx: int, warp: int, site: int, lane: int, kind: int, address: int, size: int) -> None:
    """Record the first fault of a CTA; later ones are consequences and are dropped."""
    if get(ctx + _FAULT) == 0:
        put(ctx + _FAULT, kind)
        put(ctx + _FAULT_SITE, site)
        put(ctx + _FAULT_WARP, get(warp + _WARP_ID))
        put(ctx + _FAULT_LANE, lane)
        put(ctx + _FAULT_ADDRESS, address)
        put(ctx + _FAULT_BYTES, size)


@native
def _find_row(ctx: int, site: int, address: int, size: int) -> int:
    """Row of the allocation that holds [address, address + size), or -1; remembered for the site."""
    table, low, high = get(ctx + _ALLOCS), i64(0), get(ctx + _NALLOCS)
    while low < high:
        middle = (low + high) >> 1
        if get(table + middle * _ROW) <= address:
            low = middle + 1
        else:
            high = middle
    row = low - 1
    if row < 0 or address + size > get(table + row * _ROW + 8):
        return i64(-1)
    put(get(ctx + _SITES) + 8 * site, row)
    return row


@native
def peer(ctx: int, rank: int) -> int:
    """The context of the CTA of a rank in the same cluster."""
    return ctx + (rank - get(ctx + _RANK)) * get(ctx + _SLOT_BYTES)


@native
def _locate_in_cluster(ctx: int, warp: int, site: int, lane: int, given: int, address: int, size: int) -> int:
    """Host address of an access to the shared memory of another CTA of the cluster, or 0 after recording a fault."""
    rank, offset = address >> RANK_SHIFT, (address & ((1 << RANK_SHIFT) - 1)) - SHARED_BASE
    if rank < 0 or rank >= get(ctx + _RANKS) or offset < 0 or offset + size > get(ctx + _SHARED_SIZE):
        fault(ctx, warp, site, lane, FAULT_OUT_OF_BOUNDS, given, size)
        return i64(0)
    other = peer(ctx, rank)
    if get(other + _LIVE) == 0:
        fault(ctx, warp, site, lane, FAULT_EXITED_CTA, given, size)
        return i64(0)
    return get(other + _SHARED) + offset


@native
def in_shared(space: int, address: int) -> bool:
    """Whether an access of a state space lies in shared memory, by its space or by its generic address."""
    generic = space == SPACE_GENERIC and SHARED_WINDOW <= address < SHARED_WINDOW + _WINDOW
    return generic or space in (SPACE_SHARED, SPACE_CLUSTER)


@native
def locate(ctx: int, warp: int, site: int, lane: int, space: int, address: int, size: int, writes: int) -> int:
    """Host address of a lane's access of `size` bytes, or 0 after recording a fault."""
    if address & (size - 1):
        fault(ctx, warp, site, lane, FAULT_MISALIGNED, address, size)
        return i64(0)
    given = address
    offset = i64(-1)
    limit = i64(0)
    base = i64(0)
    if space == SPACE_GENERIC and SHARED_WINDOW <= address < SHARED_WINDOW + _WINDOW:
        space, address = i64(SPACE_CLUSTER), address - SHARED_WINDOW
    elif space == SPACE_GENERIC and LOCAL_WINDOW <= address < LOCAL_WINDOW + _WINDOW:
        space, address = i64(SPACE_LOCAL), address - LOCAL_WINDOW
    elif space == SPACE_GENERIC and PARAM_WINDOW <= address < PARAM_WINDOW + _WINDOW:
        space, address = i64(SPACE_PARAM), address - PARAM_WINDOW
    if space in (SPACE_SHARED, SPACE_CLUSTER):
        offset, limit, base = address - get(ctx + _SHARED_LOW), get(ctx + _SHARED_SIZE), get(ctx + _SHARED)
        if space == SPACE_CLUSTER and (offset < 0 or offset + size > limit) and get(ctx + _RANKS) > 1:
            return _locate_in_cluster(ctx, warp, site, lane, given, address, size)
    elif space == SPACE_LOCAL:
        limit = get(ctx + _LOCAL_SIZE)
        offset, base = address, get(ctx + _LOCAL) + limit * (get(warp + _WARP_ID) * 32 + lane)
    elif space == SPACE_PARAM:
        offset, limit, base = address, get(ctx + _PARAMS_SIZE), get(ctx + _PARAMS)
    else:
        row = _find_row(ctx, site, address, size)
        if row < 0:
            fault(ctx, warp, site, lane, FAULT_OUT_OF_BOUNDS, address, size)
            return i64(0)
        at = get(ctx + _ALLOCS) + row * _ROW
        if writes and not get(at + 24) & ALLOC_WRITABLE:
            fault(ctx, warp, site, lane, FAULT_READ_ONLY, address, size)
            return i64(0)
        return address + get(at + 16)
    if offset < 0 or offset + size > limit:
        fault(ctx, warp, site, lane, FAULT_OUT_OF_BOUNDS, given, size)
        return i64(0)
    return base + offset


@native
def locate_bytes(ctx: int, warp: int, site: int, lane: int, address: int, size: int, writes: int) -> int:
    """Host address of `size` bytes of global memory, any alignment, or 0 after recording a fault."""
    row = _find_row(ctx, site, address, size)
    if row < 0:
        fault(ctx, warp, site, lane, FAULT_OUT_OF_BOUNDS, address, size)
        return i64(0)
    at = get(ctx + _ALLOCS) + row * _ROW
    if writes and not get(at + 24) & ALLOC_WRITABLE:
        fault(ctx, warp, site, lane, FAULT_READ_ONLY, address, size)
        return i64(0)
    return address + get(at + 16)


@native
def note_write(ctx: int, site: int, address: int, size: int) -> None:
    """Remember the site of the last write that touched the watched range."""
    if address < get(ctx + _WATCH_HI) and address + size > get(ctx + _WATCH_LO):
        put(ctx + _WATCH_SITE, site)
        put(ctx + _WATCH_CTA, get(ctx + _LINEAR))


@native
def fast_delta(ctx: int, site: int, mask: int, operands: int, space: int, size: int, writes: int) -> int:
    """Host minus device address when all 32 lanes are active, aligned and inside the allocation that the site hit
    last; 0 when the lanes have to be looked at one by one."""
    if mask != _FULL:
        return i64(0)
    if space == SPACE_SHARED:
        low, length = get(ctx + _SHARED_LOW), get(ctx + _SHARED_SIZE)
        delta = get(ctx + _SHARED) - low
    elif space in (SPACE_PARAM, SPACE_LOCAL, SPACE_CLUSTER):
        return i64(0)
    else:
        at = get(ctx + _ALLOCS) + get(get(ctx + _SITES) + 8 * site) * _ROW
        low = get(at)
        length = get(at + 8) - low
        delta = get(at + 16)
        if writes and not get(at + 24) & ALLOC_WRITABLE:
            return i64(0)
    if length < size:
        return i64(0)
    limit = u64(length - size)
    unaligned = u64(0)
    outside = u64(0)
    for i in range(32):
        address = load_u64(operands + 8 * i)
        unaligned |= address
        outside |= u64(address - u64(low) > limit)
    if outside or unaligned & u64(size - 1):
        return i64(0)
    return delta


@native_inline
def move(target: int, source: int, size: int) -> None:
    """Copy one element of 1, 2, 4 or 8 bytes (a literal)."""
    if size == 1:
        store_u8(target, load_u8(source))
    elif size == 2:
        store_u16(target, load_u16(source))
    elif size == 4:
        store_u32(target, load_u32(source))
    else:
        store_u64(target, load_u64(source))


@native_inline
def _load(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, size: int
) -> None:
    delta = fast_delta(ctx, site, mask, operands, space, size * count, False)
    if delta:
        for i in range(32):
            source = get(operands + 8 * i) + delta
            for c in range(count):
                move(results + (c * 32 + i) * size, source + c * size, size)
        return
    for i in range(32):
        source = i64(0)
        if mask >> i & 1:
            source = locate(ctx, warp, site, i, space, get(operands + 8 * i), size * count, False)
        zero = ctx + 8 * _ZERO
        for c in range(count):
            move(results + (c * 32 + i) * size, source + c * size if source else zero, size)


@native_inline
def _store(ctx: int, warp: int, site: int, mask: int, operands: int, space: int, count: int, size: int) -> None:
    delta = fast_delta(ctx, site, mask, operands, space, size * count, True)
    watched = get(ctx + _WATCH_HI) != 0 and space not in (SPACE_SHARED, SPACE_CLUSTER)
    values = operands + 256
    stride = 32 * max(size, 1)
    for i in range(32):
        address = get(operands + 8 * i)
        if delta:
            target = address + delta
        elif mask >> i & 1:
            target = locate(ctx, warp, site, i, space, address, size * count, True)
        else:
            target = i64(0)
        if target:
            for c in range(count):
                move(target + c * size, values + c * stride + i * size, size)
            if watched:
                note_write(ctx, site, address, size * count)


@symbol("load_b8")
def load_b8(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, p2: int, p3: int
) -> None:
    _load(ctx, warp, site, mask, results, operands, space, count, 1)


@symbol("load_b16")
def load_b16(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, p2: int, p3: int
) -> None:
    _load(ctx, warp, site, mask, results, operands, space, count, 2)


@symbol("load_b32")
def load_b32(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, p2: int, p3: int
) -> None:
    _load(ctx, warp, site, mask, results, operands, space, count, 4)


@symbol("load_b64")
def load_b64(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, p2: int, p3: int
) -> None:
    _load(ctx, warp, site, mask, results, operands, space, count, 8)


@symbol("store_b8")
def store_b8(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, p2: int, p3: int
) -> None:
    _store(ctx, warp, site, mask, operands, space, count, 1)


@symbol("store_b16")
def store_b16(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, p2: int, p3: int
) -> None:
    _store(ctx, warp, site, mask, operands, space, count, 2)


@symbol("store_b32")
def store_b32(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, p2: int, p3: int
) -> None:
    _store(ctx, warp, site, mask, operands, space, count, 4)


@symbol("store_b64")
def store_b64(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, count: int, p2: int, p3: int
) -> None:
    _store(ctx, warp, site, mask, operands, space, count, 8)
