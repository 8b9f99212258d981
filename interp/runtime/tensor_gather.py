"""Tensor copies of four rows that need not be neighbours: tile::gather4 and tile::scatter4.

Source: PTX ISA, '.tile::scatter4 and .tile::gather4 modes'. The map's box is one row; the coordinates are a column and
four rows. Each row is an entry of its own in the list of bulk copies (`interp.runtime.bulk`), and lies behind the one
before in shared memory, swizzled by its address.
"""

from __future__ import annotations

from interp.runtime.access import get, put
from interp.runtime.bulk import barrier_at, destination, issue, shared_at
from interp.runtime.bulk_list import E_BARRIER, E_HOST, E_MAP, E_SHARED
from interp.runtime.bulk_tensor import tensor_entry
from interp.runtime.copy_reasons import NOT_ONE_ROW
from interp.runtime.layout import FAULT_BAD_TENSOR_MAP, SPACE_SHARED
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, native, stack_scratch, store_u32, u32
from interp.runtime.tensor_layout import BOX, LOAD, STORE, TILE, pitch, refuse


@native
def _four_rows(
    ctx: int, warp: int, site: int, lane: int, kind: int, map_address: int, space: int, shared: int, barrier: int,
    coords: int,
) -> bool:  # fmt: skip
    """Queue the four boxes of one row of tile::gather4 (LOAD) or tile::scatter4 (STORE), one behind the other in shared
    memory. coords: the column, then four rows. False after a fault."""
    room = stack_scratch(256)
    for r in range(4):
        store_u32(room + 4 * lane, load_u32(coords + 4 * lane))
        store_u32(room + 128 + 4 * lane, load_u32(coords + 128 * (r + 1) + 4 * lane))
        entry = tensor_entry(
            ctx, warp, site, lane, kind, map_address, space, shared, i64(2), room, i64(TILE), i64(-1)
        )
        if entry == 0:
            return False
        step = pitch(entry + E_MAP)
        if load_u32(entry + E_MAP + BOX + 4) != u32(1):
            return refuse(ctx, warp, site, lane, FAULT_BAD_TENSOR_MAP, map_address, NOT_ONE_ROW)
        if r == 0 and shared_at(ctx, warp, site, lane, space, shared, 4 * step, kind == LOAD) == 0:
            return False
        put(entry + E_HOST, get(entry + E_HOST) + r * step)
        put(entry + E_SHARED, get(entry + E_SHARED) + r * step)
        put(entry + E_BARRIER, barrier)
        issue(ctx, entry)
    return True


@symbol("async_tensor_gather")
def async_tensor_gather(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, many: int, p2: int, p3: int
) -> None:
    """Operands: shared address, map address, barrier (64 bits each), a column and four rows; `many`: then the ranks of
    the CTAs that get them, as a mask."""
    for i in range(32):
        if not mask >> i & 1:
            continue
        at, shared, bar = get(operands + 256 + 8 * i), get(operands + 8 * i), get(operands + 512 + 8 * i)
        ranks = i64(load_u32(operands + 768 + 640 + 4 * i)) if many else i64(0)
        for other in range(16 if many else 1):
            if many and not ranks >> other & 1:
                continue
            barrier = barrier_at(ctx, warp, site, i, space, destination(bar, ranks, other))
            to = destination(shared, ranks, other)
            if barrier == 0:
                return
            if not _four_rows(ctx, warp, site, i, i64(LOAD), at, space, to, barrier, operands + 768):
                return


@symbol("async_tensor_scatter")
def async_tensor_scatter(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Operands: map address, shared address (64 bits each), a column and four rows."""
    for i in range(32):
        if mask >> i & 1:
            at, shared = get(operands + 8 * i), get(operands + 256 + 8 * i)
            if not _four_rows(ctx, warp, site, i, i64(STORE), at, i64(SPACE_SHARED), shared, i64(0), operands + 512):
                return
