"""Tiles copied by a tensor map between global and shared memory: tiled mode.

Source: PTX ISA 'Tensors' (tiled mode: bounding box, traversal strides, out-of-bound access). A box lies in shared
memory with dimension 0 fastest, row by row (`tensor_rows`), and begins at a multiple of 16 bytes in the innermost
dimension; elsewhere an H200 stops with an illegal instruction, whether the coordinate is negative or not, and so it
does for a store or reduction with any negative coordinate.
"""

from __future__ import annotations

from interp.runtime.access import get
from interp.runtime.copy_reasons import MAP_FIELDS, NEGATIVE
from interp.runtime.layout import FAULT_BAD_COORDINATE, FAULT_BAD_TENSOR_MAP
from interp.runtime.raw import i32, i64, load_u32, native
from interp.runtime.tensor_layout import (
    ADDRESS,
    BOX,
    LOAD,
    SIZES,
    STEPS,
    STRIDES,
    check_place,
    extent,
    pitch,
    refuse,
    row_bytes,
)
from interp.runtime.tensor_rows import move_row


@native
def check_tile(
    ctx: int, warp: int, site: int, lane: int, kind: int, map_: int, address: int, shared: int, rank: int, coords: int
) -> int:
    """Bytes that a copy of a box transfers; 0 after a fault. `coords`: signed 32-bit vectors of 32 lanes, innermost
    first. The rest of the map must have been checked (`tensor_layout.check_layout`)."""
    total = row_bytes(map_)
    for d in range(rank):
        box, step = load_u32(map_ + BOX + 4 * d), load_u32(map_ + STEPS + 4 * d)
        if box < 1 or box > 256 or step < 1 or step > 8:
            refuse(ctx, warp, site, lane, FAULT_BAD_TENSOR_MAP, address, MAP_FIELDS)
            return i64(0)
        if d > 0:
            total *= extent(map_, d)
    if not check_place(ctx, warp, site, lane, map_, shared, i64(i32(load_u32(coords + 4 * lane)))):
        return i64(0)
    for d in range(rank):
        x = i64(i32(load_u32(coords + 128 * d + 4 * lane)))
        if kind != LOAD and x < 0:
            refuse(ctx, warp, site, lane, FAULT_BAD_COORDINATE, x, NEGATIVE)
            return i64(0)
    return total


@native
def copy_tile(
    ctx: int, warp: int, site: int, lane: int, kind: int, map_: int, rank: int, coords: int, host: int, shared: int,
    op: int,
) -> None:  # fmt: skip
    """Copy (LOAD: to shared, STORE: to global) or REDUCE one box; `coords`: signed 64-bit words, innermost first."""
    size = row_bytes(map_) // i64(load_u32(map_ + BOX))
    n0, c0 = extent(map_, 0), get(coords)
    first, last = max(i64(0), -c0) * size, min(n0, i64(load_u32(map_ + SIZES)) - c0) * size
    rows, step = i64(1), pitch(map_)
    for d in range(1, rank):
        rows *= extent(map_, d)
    for row in range(rows):
        rest, address, inside = i64(row), get(map_ + ADDRESS) + c0 * size, first < last
        for d in range(1, rank):
            n = extent(map_, d)
            x = get(coords + 8 * d) + rest % n * i64(load_u32(map_ + STEPS + 4 * d))
            rest //= n
            inside = inside and 0 <= x < i64(load_u32(map_ + SIZES + 4 * d))
            address += x * get(map_ + STRIDES + 8 * (d - 1))
        end = last if inside else first
        if not move_row(ctx, warp, site, lane, kind, map_, op, host, shared, row * step, address, first, end):
            return
