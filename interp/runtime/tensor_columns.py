"""Columns of pixels copied by a tensor map: im2col mode, im2col::w and im2col::w::128.

Source: PTX ISA 'Tensors', 'im2col mode', 'im2col::w and im2col::w::128 modes'. A tensor is a batch of N images of
pixels (W, HW or DHW), each with C channels. The map's corners bound a box in each image:
[lower, size - 1 + upper] in each of D, H, W. The walk begins at the pixel that the coordinates name, which must lie in
the box, and goes on in W by W's traversal stride; past the box's end it begins again at the box's lower corner in W and
goes on in H, then D, then N, each by its own stride. Every pixel of the walk is a row of the map's channels in shared
memory. Offsets are added to the position after the walk: the place in the convolution's filter. So a pixel may lie
outside the image, or behind the last one: it is filled.

Stores and reductions have no offsets (im2col_no_offs); their box must lie in the tensor and no coordinate be negative.

In the wide modes (sm_100) the walk goes along W and N only, at the D and H of the coordinates; wOffset moves the box
and the start along W. The start may lie to the left of the box. im2col::w goes on for wHalo pixels after the column's;
im2col::w::128 takes 128 pixels whatever the map says.

im2col mode is byte for byte that of an H200 (tests/hardware), the stride in N included, of which the manual says
nothing. The wide modes are written from the manual and not measured.
"""

from __future__ import annotations

from interp.runtime.access import get, put
from interp.runtime.copy_reasons import (
    HALO_128,
    MAP_FIELDS,
    NEGATIVE,
    OFFSET,
    OUTSIDE_BOX,
    STEPPED_ROWS,
    STORED_CORNERS,
)
from interp.runtime.layout import FAULT_BAD_COORDINATE, FAULT_BAD_TENSOR_MAP, FAULT_UNMODELLED
from interp.runtime.raw import i32, i64, load_u16, load_u32, native, stack_scratch
from interp.runtime.tensor_layout import (
    ADDRESS,
    CHANNELS,
    IM2COL,
    IM2COL_W128,
    LOAD,
    LOWER,
    PIXELS,
    SIZES,
    STEPS,
    STRIDES,
    UPPER,
    check_place,
    pitch,
    refuse,
    row_bytes,
)
from interp.runtime.tensor_rows import move_row

WIDE_PIXELS = 128
"""Pixels of an im2col::w::128 copy."""


@native
def _corner(at: int) -> int:
    word = i64(load_u16(at))
    return word - 0x10000 if word >= 0x8000 else word


@native
def _low(map_: int, d: int) -> int:
    """First coordinate of the bounding box in dimension `d` (1: W)."""
    return _corner(map_ + LOWER + 2 * (d - 1))


@native
def _high(map_: int, d: int) -> int:
    """Last coordinate of the bounding box in dimension `d`."""
    return i64(load_u32(map_ + SIZES + 4 * d)) - 1 + _corner(map_ + UPPER + 2 * (d - 1))


@native
def pixel_count(map_: int, mode: int, halo: int) -> int:
    """Pixels of a copy."""
    if mode == IM2COL:
        return i64(load_u32(map_ + PIXELS))
    return (WIDE_PIXELS if mode == IM2COL_W128 else i64(load_u32(map_ + PIXELS))) + halo


@native
def check_columns(
    ctx: int, warp: int, site: int, lane: int, kind: int, map_: int, address: int, shared: int, rank: int, mode: int,
    coords: int, offsets: int,
) -> int:  # fmt: skip
    """As `tensor_copy.check_tile`. `offsets`: unsigned 32-bit vectors; of the wide modes wHalo and wOffset."""
    pixels, channels = load_u32(map_ + PIXELS), load_u32(map_ + CHANNELS)
    good = 3 <= rank <= 5 and 1 <= pixels <= 1024 and channels <= 256
    stored, stepped = True, False
    for d in range(1, rank):
        step = load_u32(map_ + STEPS + 4 * d)
        good = good and 1 <= step <= 8
        stepped = stepped or (d > 1 and step != 1)
        if d < rank - 1 and (mode == IM2COL or d == 1):
            good = good and _low(map_, d) <= _high(map_, d)
            stored = stored and _corner(map_ + LOWER + 2 * (d - 1)) >= 0 and _corner(map_ + UPPER + 2 * (d - 1)) <= 0
    if not good or (kind != LOAD and not stored):
        reason = i64(STORED_CORNERS) if good else i64(MAP_FIELDS)
        refuse(ctx, warp, site, lane, FAULT_BAD_TENSOR_MAP, address, reason)
        return i64(0)
    if not check_place(ctx, warp, site, lane, map_, shared, i64(i32(load_u32(coords + 4 * lane)))):
        return i64(0)
    if mode != IM2COL and (stepped or (mode == IM2COL_W128 and load_u32(offsets + 4 * lane) != 0)):
        refuse(ctx, warp, site, lane, FAULT_UNMODELLED, address, STEPPED_ROWS if stepped else HALO_128)
        return i64(0)
    for d in range(rank):
        x, reason = i64(i32(load_u32(coords + 128 * d + 4 * lane))), i64(0)
        if kind != LOAD and x < 0:
            reason = i64(NEGATIVE)
        elif 0 < d < rank - 1 and (mode == IM2COL or d == 1):
            if x > _high(map_, d) or (mode == IM2COL and x < _low(map_, d)):
                reason = i64(OUTSIDE_BOX)
            elif kind == LOAD and mode == IM2COL:
                most = 65535 if rank == 3 else 255 if rank == 4 else 31
                if i64(load_u32(offsets + 128 * (d - 1) + 4 * lane)) > most:
                    x, reason = i64(load_u32(offsets + 128 * (d - 1) + 4 * lane)), i64(OFFSET)
        if reason != 0:
            refuse(ctx, warp, site, lane, FAULT_BAD_COORDINATE, x, reason)
            return i64(0)
    halo = i64(load_u32(offsets + 4 * lane)) if mode != IM2COL else i64(0)
    return pixel_count(map_, mode, halo) * row_bytes(map_)


@native
def copy_columns(
    ctx: int, warp: int, site: int, lane: int, kind: int, map_: int, rank: int, mode: int, coords: int, offsets: int,
    host: int, shared: int, op: int,
) -> None:  # fmt: skip
    """Copy or REDUCE the pixels of one walk; `coords`, `offsets`: 64-bit words, innermost first."""
    size = row_bytes(map_) // i64(load_u32(map_ + CHANNELS))
    c0 = get(coords)
    first, last = max(i64(0), -c0) * size, min(i64(load_u32(map_ + CHANNELS)), i64(load_u32(map_ + SIZES)) - c0) * size
    at, step, wide = stack_scratch(64), pitch(map_), mode != IM2COL
    for d in range(1, rank):
        put(at + 8 * d, get(coords + 8 * d))
    for pixel in range(pixel_count(map_, mode, get(offsets) if wide else i64(0))):
        address, inside = get(map_ + ADDRESS) + c0 * size, first < last
        for d in range(1, rank):
            x = get(at + 8 * d)
            if wide:
                x += get(offsets + 8) if d == 1 else i64(0)
            elif kind == LOAD and d < rank - 1:
                x += get(offsets + 8 * (d - 1))
            inside = inside and 0 <= x < i64(load_u32(map_ + SIZES + 4 * d))
            address += x * get(map_ + STRIDES + 8 * (d - 1))
        end = last if inside else first
        if not move_row(ctx, warp, site, lane, kind, map_, op, host, shared, pixel * step, address, first, end):
            return
        d = 1
        while d < rank:
            x = get(at + 8 * d) + i64(load_u32(map_ + STEPS + 4 * d))
            if d == rank - 1 or x <= _high(map_, d):
                put(at + 8 * d, x)
                break
            put(at + 8 * d, _low(map_, d))
            d = rank - 1 if wide else d + 1
