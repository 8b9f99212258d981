"""Rows of a `tcgen05.mma` in one CTA: from gathered operands to cells of tensor memory.

Types and kinds that `mma.sync` and `wgmma` also have go, in strips of 16 rows, through their vector code
(`interp.tensorcore.fast`, `integers`), from the same fragments; the rest goes one result at a time (`tcgen05_law`).

D in f16 is the lower half of a cell; the upper half becomes zero (not measured).
"""

from __future__ import annotations

from interp.runtime.access import get
from interp.runtime.layout import CTX
from interp.runtime.raw import (
    i64,
    load_u16,
    load_u32,
    load_u64,
    native,
    stack_scratch,
    store_u16,
    store_u32,
    store_u64,
    u32,
    u64,
)
from interp.runtime.tcgen05 import T_D, T_ENABLE, T_FLAGS, T_FLOOR, T_FLOOR_HALF, T_IDESC, T_MASKS, T_NUMBERS
from interp.runtime.tcgen05_matrix import ROW_BYTES, TWO, row_lane
from interp.runtime.tcgen05_rules import (
    KIND_F8F6F4,
    KIND_F16,
    KIND_I8,
    KIND_TF32,
    MASKS_SHIFT,
    columns_of,
    element_size,
)
from interp.runtime.tensor_memory import CELLS, cell
from interp.tensorcore.blocks import E2M1, E2M3, E3M2
from interp.tensorcore.fast import mma_tiles
from interp.tensorcore.integers import mma_s8
from interp.tensorcore.model import BF16, E4M3, E5M2, F16, F32, TF32

_MEMORY = 8 * CTX["TENSOR_MEMORY"]


@native
def element_kind(kind: int, code: int) -> int:
    """Type of A or B by the kind of the instruction and the descriptor's number."""
    if kind == KIND_F16:
        return i64(BF16 if code == 1 else F16)
    if kind == KIND_TF32:
        return i64(TF32)
    if code == 0:
        return i64(E4M3)
    if code == 1:
        return i64(E5M2)
    return i64(E2M3 if code == 3 else E3M2 if code == 4 else E2M1)


@native
def out_kind_of(kind: int, idesc: int) -> int:
    """Type of D, of kinds of floats."""
    return i64(F16 if kind in (KIND_F16, KIND_F8F6F4) and idesc >> 4 & 3 == 0 else F32)


@native
def _negate(rows: int, count: int, size: int) -> None:
    """Flip the signs of `count` rows of elements of `size` bytes."""
    flip = u64(0x8000000080000000 if size == 4 else 0x8000800080008000 if size == 2 else 0x8080808080808080)
    for i in range(count * ROW_BYTES >> 3):
        store_u64(rows + 8 * i, load_u64(rows + 8 * i) ^ flip)


@native
def _fragment(rows: int, count: int, step: int, target: int) -> None:
    """`count` rows in eights: 16 bytes of a row after those of the one before, the second half of k `step` bytes on."""
    for row in range(count):
        at = target + (row >> 3) * (128 if step == 256 else 256) + (row & 7) * 16
        for w in range(4):
            word = load_u64(rows + ROW_BYTES * row + 8 * w)
            store_u64(at + (w >> 1) * step + 8 * (w & 1), word)


@native
def is_disabled(entry: int, half: int, lane: int) -> bool:
    """Whether disable-output-lane names a lane."""
    if get(entry + T_FLAGS) >> MASKS_SHIFT & 15 == 0:
        return False
    return load_u32(entry + T_MASKS + 16 * half + 4 * (lane >> 5)) >> u32(lane & 31) & u32(1) != u32(0)


@native
def _tile_word(half_words: bool, row: int, n: int) -> int:
    """Offset of a result in the accumulators of a strip, as `fast.mma_tiles` has them."""
    if half_words:
        return 256 * (n >> 3) + (row >> 3) * 128 + (row & 7) * 16 + (n & 7) * 2
    return 512 * (n >> 3) + (row >> 3) * 256 + (n & 1) * 128 + (row & 7) * 16 + (n & 6) * 2


@native
def multiply_by_strips(
    ctx: int, entry: int, a: int, b: int, rows: int, layout: int, width: int, half: int
) -> None:
    """Rows of A times columns of B (both as gathered, and changed here) by the vector code."""
    flags, idesc, d = get(entry + T_FLAGS), get(entry + T_IDESC), get(entry + T_D)
    kind, n, enable = flags & 7, columns_of(idesc), get(entry + T_ENABLE) != 0
    size, out_kind = element_size(kind), out_kind_of(kind, idesc)
    halves = out_kind == F16
    fragment_a, fragment_b, tiles = stack_scratch(512), stack_scratch(8192), stack_scratch(16384)
    if idesc >> 13 & 1:
        _negate(a, rows, size)
    if idesc >> 14 & 1 and half == 0:  # a pair's second CTA gets the same columns, changed already
        _negate(b, n, size)
    _fragment(b, n, 128, fragment_b)
    cells = get(ctx + _MEMORY) + CELLS
    numbers, floor = get(entry + T_NUMBERS), get(entry + (T_FLOOR_HALF if halves else T_FLOOR))
    for strip in range(0, rows, 16):
        _fragment(a + ROW_BYTES * strip, 16, 256, fragment_a)
        lane = row_lane(layout, d >> 16, strip)
        if not enable:
            for i in range(n * 8 if not halves else n * 4):
                store_u64(tiles + 8 * i, u64(0))
        else:
            for j in range(n):
                part = j // width
                source = cell(cells, lane + part * (64 if layout == TWO else 32), (d & 0xFFFF) + j - part * width)
                for i in range(16):
                    at = tiles + _tile_word(halves, i, j)
                    if halves:
                        store_u16(at, load_u16(source + 4 * i))
                    else:
                        store_u32(at, load_u32(source + 4 * i))
        if kind == KIND_I8:
            for t in range(n >> 3):
                tile = tiles + 512 * t
                mma_s8(tile, fragment_a, fragment_b + 256 * t, tile, 2, idesc >> 7 & 1, idesc >> 10 & 1, idesc >> 3 & 1)
        else:
            mma_tiles(
                tiles, fragment_a, fragment_b, tiles, n >> 3, 2, element_kind(kind, idesc >> 7 & 7),
                element_kind(kind, idesc >> 10 & 7), (numbers >> 8) // size, numbers & 255, floor, out_kind, 23,
            )  # fmt: skip
        for j in range(n):
            part = j // width
            first = lane + part * (64 if layout == TWO else 32)
            target = cell(cells, first, (d & 0xFFFF) + j - part * width)
            for i in range(16):
                if not is_disabled(entry, half, first + i):
                    at = tiles + _tile_word(halves, i, j)
                    store_u32(target + 4 * i, u32(load_u16(at)) if halves else load_u32(at))
