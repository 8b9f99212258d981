"""One row of a tensor copy, between global memory and its place in shared memory: the same in all modes.

Elements outside the tensor are filled on a load, with zeros or with 0x7FF7 in every 16 bits (a NaN in f16, bf16, f32
and f64, which `fma.oob` knows), and left out on a store; they count as transferred bytes all the same. In the innermost
dimension a store or reduction ends at 16 bytes: an H200 writes (and combines) up to the next multiple of 16 behind the
tensor's last element. The gap up to the next row is at least that long, as strides are multiples of 16 bytes, too.

Loads of the tf32 types round to tf32, to nearest even; NaN becomes 0x7FFFE000, subnormals are kept, with `.ftz`, too.
Stores of them are those of f32, and so are reductions, in which `.ftz` flushes (an H200 again).
"""

from __future__ import annotations

from interp.runtime.access import get, locate_bytes, note_write
from interp.runtime.layout import CTX
from interp.runtime.raw import i64, load_u8, load_u32, load_u64, native, store_u8, store_u32, store_u64, u32, u64
from interp.runtime.tensor_layout import (
    ATOMICITY,
    F32,
    FILL,
    LOAD,
    STORE,
    SWIZZLE,
    TF32,
    TYPE,
    number_class,
    placed,
    row_bytes,
    swizzled,
    type_bytes,
)
from interp.runtime.tile_reduce import SUBNORMALS, WIDE, combine

_WATCH_HI = 8 * CTX["WATCH_HI"]


@native
def move_row(
    ctx: int, warp: int, site: int, lane: int, kind: int, map_: int, op: int, host: int, shared: int, offset: int,
    address: int, first: int, last: int,
) -> bool:  # fmt: skip
    """Move the row at `offset` of a box in shared memory. `address`: of its first byte in global memory; bytes
    [first, last) of it are in the tensor (first >= last: none). False after a fault."""
    width = row_bytes(map_)
    if kind != LOAD:
        last = min((last + 15) & ~15, width)
    if first >= last:
        if kind == LOAD:
            _load_row(map_, host, shared, offset, i64(0), i64(0), width, i64(0))
        return True
    at = locate_bytes(ctx, warp, site, lane, address + first, last - first, kind != LOAD)
    if at == 0:
        return False
    if kind == LOAD:
        _load_row(map_, host, shared, offset, first, last, width, at)
        return True
    if kind == STORE:
        _store_row(map_, host, shared, offset, first, last, at)
    else:
        _reduce_row(ctx, map_, op, host, shared, offset, first, last, at)
    if get(ctx + _WATCH_HI):
        note_write(ctx, site, address + first, last - first)
    return True


@native
def _load_row(map_: int, host: int, shared: int, offset: int, first: int, last: int, width: int, source: int) -> None:
    """A row of `width` bytes at `offset` of the box: bytes [first, last) from `source` on, the rest filled."""
    fill = u64(0) if load_u8(map_ + FILL) == 0 else u64(0x7FF7_7FF7_7FF7_7FF7)
    rounds = load_u8(map_ + TYPE) >= TF32
    plain, mode = load_u8(map_ + ATOMICITY) == 0, i64(load_u8(map_ + SWIZZLE))
    for chunk in range(0, width, 16):
        place = shared + offset + chunk
        target = host + (swizzled(mode, place) if plain else placed(map_, place)) - shared
        if first <= chunk and chunk + 16 <= last:
            store_u64(target, load_u64(source + chunk - first))
            store_u64(target + 8, load_u64(source + chunk - first + 8))
        else:
            store_u64(target, fill)
            store_u64(target + 8, fill)
            for b in range(max(chunk, first), min(chunk + 16, last)):
                store_u8(target + b - chunk, load_u8(source + b - first))
        if rounds:
            for b in range(max(chunk, first), min(chunk + 16, last), 4):
                store_u32(target + b - chunk, _to_tf32(load_u32(target + b - chunk)))


@native
def _to_tf32(word: int) -> int:
    """An f32 word rounded to tf32."""
    if word & u32(0x7FFFFFFF) > u32(0x7F800000):
        return u32(0x7FFFE000)
    return u32(word + u32(0xFFF) + (word >> u32(13) & u32(1))) & u32(0xFFFFE000)


@native
def _store_row(map_: int, host: int, shared: int, offset: int, first: int, last: int, target: int) -> None:
    """Bytes [first, last) of a row to `target` on."""
    b = first
    while b < last:
        source = host + placed(map_, shared + offset + b) - shared
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
    kind = i64(load_u8(map_ + TYPE))
    code = op + 16 * number_class(kind)
    if type_bytes(kind) == 8:
        code |= WIDE
    if kind in (F32, TF32):
        code |= SUBNORMALS
    b = first
    while b < last:
        end = min((b | 15) + 1, last)
        combine(ctx, code, target + b - first, host + placed(map_, shared + offset + b) - shared, end - b)
        b = end
