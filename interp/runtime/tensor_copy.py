"""Tensor maps, and tiles copied by them between global and shared memory.

Source: PTX ISA 'Tensors' (tiled mode: bounding box, traversal strides, out-of-bound access, swizzling modes) and
'tensormap.replace'. The 128 bytes of a map are opaque on hardware. Here, little endian:

    0 global address u64    8 element type, rank - 1, interleave, swizzle, fill mode (u8 each)
    16 sizes u32[5]   36 box u32[5]   56 traversal strides u32[5]   80 strides in bytes u64[4] (of dimensions 1 ...)

all with the numbers of `tensormap.replace`; dimension 0 is the innermost. `interp.tensormap` makes one on the host.

A box is dense in shared memory, dimension 0 fastest, and then swizzled by the address: bits 4-6 (64-byte mode: 4-5,
32-byte mode: 4) are xored with bits 7-9 (7-8, 7). Elements outside the tensor are filled on a load, with zeros or with
0x7FF7 in every 16 bits (a NaN in f16, bf16, f32 and f64, which `fma.oob` knows), and left out on a store; they count as
transferred bytes all the same. A box begins at a multiple of 16 bytes in the innermost dimension; elsewhere an H200
stops with an illegal instruction, whether the coordinate is negative or not.

Not modelled, refused with a fault: interleaved layouts, im2col, packed 4- and 6-bit types, flushing and tf32 types.
"""

from __future__ import annotations

from interp.runtime.access import fault, get, locate_bytes, note_write
from interp.runtime.layout import (
    CTX,
    FAULT_BAD_COORDINATE,
    FAULT_BAD_TENSOR_MAP,
    FAULT_MISALIGNED,
    FAULT_UNMODELLED,
    TENSOR_MAP_BYTES,
)
from interp.runtime.raw import i64, load_u8, load_u32, load_u64, native, store_u8, store_u64, u64
from interp.runtime.tile_reduce import combine

ADDRESS, TYPE, RANK, INTERLEAVE, SWIZZLE, FILL = 0, 8, 9, 10, 11, 12
SIZES, BOX, STEPS, STRIDES = 16, 36, 56, 80
LOAD, STORE, REDUCE = 1, 2, 3
_WATCH_HI = 8 * CTX["WATCH_HI"]


@native
def type_bytes(kind: int) -> int:
    """Bytes of an element, 0 for types that are not modelled."""
    if kind == 0:
        return 1
    if kind == 1 or kind == 6 or kind == 10:
        return 2
    if kind == 2 or kind == 3 or kind == 7:
        return 4
    return 8 if kind == 4 or kind == 5 or kind == 9 else 0


@native
def _number_class(kind: int) -> int:
    """The atomics' class of an element type that reductions take, or -1."""
    if kind == 2 or kind == 4:
        return 0
    if kind == 3 or kind == 5:
        return 1
    if kind == 7 or kind == 9:
        return 2
    if kind == 6:
        return 5
    return 6 if kind == 10 else -1


@native
def _extent(map_: int, d: int) -> int:
    """Elements of dimension `d` that a box has in shared memory."""
    box, step = i64(load_u32(map_ + BOX + 4 * d)), i64(load_u32(map_ + STEPS + 4 * d))
    return (box + step - 1) // step


@native
def check_map(
    ctx: int, warp: int, site: int, lane: int, map_: int, address: int, shared: int, rank: int, first: int
) -> int:
    """Bytes that a box takes in shared memory; 0 after a fault. `address`: the map's, for the report; `first`: the
    innermost coordinate."""
    size = type_bytes(i64(load_u8(map_ + TYPE)))
    swizzle = i64(load_u8(map_ + SWIZZLE))
    if size == 0 or load_u8(map_ + INTERLEAVE) != 0 or swizzle > 3:
        fault(ctx, warp, site, lane, FAULT_UNMODELLED, address, TENSOR_MAP_BYTES)
        return i64(0)
    good = i64(load_u8(map_ + RANK)) + 1 == rank and get(map_ + ADDRESS) & 15 == 0
    total = i64(size)
    for d in range(rank):
        box, step = load_u32(map_ + BOX + 4 * d), load_u32(map_ + STEPS + 4 * d)
        if box < 1 or box > 256 or step < 1 or step > 8 or load_u32(map_ + SIZES + 4 * d) == 0:
            good = False
        elif good:
            total *= _extent(map_, d)
        if d > 0 and load_u64(map_ + STRIDES + 8 * (d - 1)) & u64(15) != 0:
            good = False
    if good:
        row = _extent(map_, 0) * size
        if row & 15 != 0 or (swizzle != 0 and row > 16 << swizzle):
            good = False
    if not good:
        fault(ctx, warp, site, lane, FAULT_BAD_TENSOR_MAP, address, TENSOR_MAP_BYTES)
        return i64(0)
    if shared & 127 != 0:
        fault(ctx, warp, site, lane, FAULT_MISALIGNED, shared, 128)
        return i64(0)
    if first * size & 15 != 0:
        fault(ctx, warp, site, lane, FAULT_BAD_COORDINATE, first, size)
        return i64(0)
    return total


@native
def swizzled(mode: int, address: int) -> int:
    """A shared address under a swizzling mode: 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes."""
    return address ^ (address >> 3 & ((16 << mode) - 16))


@native
def _fill_word(map_: int) -> int:
    """What an element outside the tensor is, repeated to 64 bits."""
    return u64(0) if load_u8(map_ + FILL) == 0 else u64(0x7FF7_7FF7_7FF7_7FF7)


@native
def _load_row(map_: int, host: int, shared: int, offset: int, first: int, last: int, width: int, source: int) -> None:
    """A row of `width` bytes at `offset` of the box: bytes [first, last) from `source` on, the rest filled."""
    mode = i64(load_u8(map_ + SWIZZLE))
    fill = _fill_word(map_)
    for chunk in range(0, width, 16):
        target = host + swizzled(mode, shared + offset + chunk) - shared
        if first <= chunk and chunk + 16 <= last:
            store_u64(target, load_u64(source + chunk - first))
            store_u64(target + 8, load_u64(source + chunk - first + 8))
            continue
        store_u64(target, fill)
        store_u64(target + 8, fill)
        for b in range(max(chunk, first), min(chunk + 16, last)):
            store_u8(target + b - chunk, load_u8(source + b - first))


@native
def _store_row(map_: int, host: int, shared: int, offset: int, first: int, last: int, target: int) -> None:
    """Bytes [first, last) of a row to `target` on."""
    mode = i64(load_u8(map_ + SWIZZLE))
    b = first
    while b < last:
        source = host + swizzled(mode, shared + offset + b) - shared
        if b & 7 == 0 and b + 8 <= last:
            store_u64(target + b - first, load_u64(source))
            b += 8
        else:
            store_u8(target + b - first, load_u8(source))
            b += 1


@native
def _reduce_row(
    ctx: int, map_: int, op: int, host: int, shared: int, offset: int, first: int, last: int, target: int
) -> None:
    """As `_store_row`, combining; 16 bytes, which swizzling keeps together, at a time."""
    mode = i64(load_u8(map_ + SWIZZLE))
    kind = i64(load_u8(map_ + TYPE))
    code = op + 16 * _number_class(kind)
    if type_bytes(kind) == 8:
        code |= 256
    b = first
    while b < last:
        end = min((b | 15) + 1, last)
        combine(ctx, code, target + b - first, host + swizzled(mode, shared + offset + b) - shared, end - b)
        b = end


@native
def copy_tile(
    ctx: int, warp: int, site: int, lane: int, kind: int, map_: int, coords: int, host: int, shared: int, op: int
) -> None:
    """Copy (LOAD: to shared, STORE: to global) or REDUCE one box; `coords`: signed 64-bit words, innermost first.

    A traversal stride of the innermost dimension other than 1 makes every element a row of its own."""
    rank = i64(load_u8(map_ + RANK)) + 1
    size = type_bytes(i64(load_u8(map_ + TYPE)))
    if kind == REDUCE and _number_class(i64(load_u8(map_ + TYPE))) < 0:
        fault(ctx, warp, site, lane, FAULT_BAD_TENSOR_MAP, get(map_ + ADDRESS), TENSOR_MAP_BYTES)
        return
    step0 = i64(load_u32(map_ + STEPS))
    if step0 != 1:
        fault(ctx, warp, site, lane, FAULT_UNMODELLED, get(map_ + ADDRESS), TENSOR_MAP_BYTES)
        return
    n0, size0, c0 = _extent(map_, 0), i64(load_u32(map_ + SIZES)), get(coords)
    first, last = max(i64(0), -c0), min(n0, size0 - c0)
    rows = i64(1)
    for d in range(1, rank):
        rows *= _extent(map_, d)
    for row in range(rows):
        rest, address, inside = i64(row), get(map_ + ADDRESS) + c0 * size, first < last
        for d in range(1, rank):
            n = _extent(map_, d)
            x = get(coords + 8 * d) + rest % n * i64(load_u32(map_ + STEPS + 4 * d))
            rest //= n
            inside = inside and 0 <= x < i64(load_u32(map_ + SIZES + 4 * d))
            address += x * get(map_ + STRIDES + 8 * (d - 1))
        offset = row * n0 * size
        begin = first * size if inside else i64(0)
        end = last * size if inside else i64(0)
        at = i64(0)
        if inside:
            at = locate_bytes(ctx, warp, site, lane, address + begin, end - begin, kind != LOAD)
            if at == 0:
                return
        if kind == LOAD:
            _load_row(map_, host, shared, offset, begin, end, n0 * size, at)
        elif inside:
            if kind == STORE:
                _store_row(map_, host, shared, offset, begin, end, at)
            else:
                _reduce_row(ctx, map_, op, host, shared, offset, begin, end, at)
            if get(ctx + _WATCH_HI):
                note_write(ctx, site, address + begin, end - begin)
