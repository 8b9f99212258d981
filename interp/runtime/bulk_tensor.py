"""Tensor copies of a CTA as entries of the list of bulk copies: maps are read and checked when a copy is issued.

Source: PTX ISA 'cp.async.bulk.tensor', 'cp.reduce.async.bulk.tensor'. When they take effect: `interp.runtime.bulk`;
four rows: `interp.runtime.tensor_gather`.
"""

from __future__ import annotations

from interp.runtime.access import get, locate, put
from interp.runtime.bulk import barrier_at, destination, issue, shared_at
from interp.runtime.bulk_list import (
    E_BARRIER,
    E_BYTES,
    E_CODE,
    E_COORDS,
    E_HOST,
    E_MAP,
    E_OFFSETS,
    E_RANK,
    E_SHARED,
    new_entry,
)
from interp.runtime.layout import SPACE_GENERIC, SPACE_SHARED
from interp.runtime.native import symbol
from interp.runtime.raw import i32, i64, load_u32, native
from interp.runtime.tensor_columns import check_columns
from interp.runtime.tensor_copy import check_tile
from interp.runtime.tensor_layout import IM2COL, LOAD, REDUCE, STORE, TILE, check_layout, footprint


@native
def offset_count(rank: int, mode: int) -> int:
    """Offset operands of a load."""
    if mode == TILE:
        return i64(0)
    return rank - 2 if mode == IM2COL else i64(2)


@native
def tensor_entry(
    ctx: int, warp: int, site: int, lane: int, kind: int, map_address: int, space: int, shared: int, rank: int,
    coords: int, mode: int, op: int,
) -> int:  # fmt: skip
    """An entry with a checked copy of the tensor map; its size in E_BYTES. 0 after a fault. `coords`: vectors of 32
    lanes, innermost first, and of a load in im2col mode its offsets behind them; `op`: of a reduction."""
    source = locate(ctx, warp, site, lane, SPACE_GENERIC, map_address, 64, False)
    if source == 0 or locate(ctx, warp, site, lane, SPACE_GENERIC, map_address + 64, 64, False) == 0:
        return i64(0)
    if not check_layout(ctx, warp, site, lane, source, map_address, rank, mode, kind, op):
        return i64(0)
    offsets = coords + 128 * rank
    if mode == TILE:
        size = check_tile(ctx, warp, site, lane, kind, source, map_address, shared, rank, coords)
    else:
        size = check_columns(
            ctx, warp, site, lane, kind, source, map_address, shared, rank, mode, coords, offsets
        )
    if size == 0:
        return size
    host = shared_at(ctx, warp, site, lane, space, shared, footprint(source, size), kind == LOAD)
    if host == 0:
        return host
    entry = new_entry(ctx, warp, site, lane, kind)
    if entry == 0:
        return entry
    for w in range(16):
        put(entry + E_MAP + 8 * w, get(source + 8 * w))
    for c in range(rank):
        put(entry + E_COORDS + 8 * c, i64(i32(load_u32(coords + 128 * c + 4 * lane))))
    for c in range(offset_count(rank, mode) if kind == LOAD else i64(0)):
        put(entry + E_OFFSETS + 8 * c, i64(load_u32(offsets + 128 * c + 4 * lane)))
    put(entry + E_RANK, rank)
    put(entry + E_HOST, host)
    put(entry + E_SHARED, shared & 0xFFFFFFFF)
    put(entry + E_BYTES, size)
    put(entry + E_CODE, op)
    return entry


@symbol("async_tensor_load")
def async_tensor_load(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, rank: int, space: int, many: int, mode: int
) -> None:
    """Operands: shared address, map address, barrier (64 bits each), coordinates, offsets; `many`: as for
    `async_bulk_load`; `mode`: of `tensor_layout`."""
    masks = operands + 768 + 128 * (rank + offset_count(rank, mode))
    for i in range(32):
        if not mask >> i & 1:
            continue
        ranks = i64(load_u32(masks + 4 * i)) if many else i64(0)
        for other in range(16 if many else 1):
            if many and not ranks >> other & 1:
                continue
            bar = destination(get(operands + 512 + 8 * i), ranks, other)
            barrier = barrier_at(ctx, warp, site, i, space, bar)
            if barrier == 0:
                return
            to, map_ = destination(get(operands + 8 * i), ranks, other), get(operands + 256 + 8 * i)
            entry = tensor_entry(
                ctx, warp, site, i, i64(LOAD), map_, space, to, rank, operands + 768, mode, i64(-1)
            )
            if entry == 0:
                return
            put(entry + E_BARRIER, barrier)
            issue(ctx, entry)


@native
def _tensor_store(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, rank: int, op: int, mode: int, p3: int
) -> None:
    """Operands: map address, shared address (64 bits each), coordinates. op: -1, or an atomic operation's number;
    `mode`: of `tensor_layout`."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        kind = i64(STORE) if op < 0 else i64(REDUCE)
        map_, shared = get(operands + 8 * i), get(operands + 256 + 8 * i)
        entry = tensor_entry(
            ctx, warp, site, i, kind, map_, i64(SPACE_SHARED), shared, rank, operands + 512, mode, op
        )
        if entry == 0:
            return
        issue(ctx, entry)


@symbol("async_tensor_store")
def async_tensor_store(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, rank: int, op: int, mode: int, p3: int
) -> None:
    _tensor_store(ctx, warp, site, mask, results, operands, rank, op, mode, p3)


@symbol("async_tensor_reduce")
def async_tensor_reduce(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, rank: int, op: int, mode: int, p3: int
) -> None:
    _tensor_store(ctx, warp, site, mask, results, operands, rank, op, mode, p3)
