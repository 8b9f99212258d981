"""Rows of a `tcgen05.mma` that have no vector code: one result after the other by the scalar law
(`interp.tensorcore.blocks`, `scaled`): scaled kinds, 4- and 6-bit types, scale-input-d, and sparse products of all
kinds, whose rows of A each multiply other columns.

Scales lie in tensor memory by 32 rows: that of row r of A at lane r mod 32, column r / 32, in the byte that the
instruction descriptor says, and that of column n of B likewise. Each of the four quarters of the lanes has to hold a
copy; a result reads that of its own quarter, so a forgotten copy gives wrong results. The scales of K = 96 go on, byte
by byte, in the next word, which is behind those of all 128 (of B with N > 128: 256) rows (CUTLASS, `tmem_sf_frg` and
`sm103_blockscaled_mma_warpspecialized.hpp`).

A sparse product is the dense one of what is stored of A, with the columns of B that its metadata names, in one block as
a dense instruction is. So it is on an H200 for `mma.sp` of f16, bf16, tf32 and integers; for this unit it is a guess.
A scale of a sparse product goes with twice as many logical columns, which are as many stored ones.
"""

from __future__ import annotations

from interp.runtime.access import get
from interp.runtime.layout import CTX
from interp.runtime.raw import (
    i64,
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    native,
    stack_scratch,
    store_u8,
    store_u32,
    store_u64,
    u32,
)
from interp.runtime.tcgen05 import (
    T_D,
    T_ENABLE,
    T_FLAGS,
    T_FLOOR,
    T_FLOOR_HALF,
    T_IDESC,
    T_METADATA,
    T_NUMBERS,
    T_SCALE_A,
    T_SCALE_B,
)
from interp.runtime.tcgen05_matrix import TWO, row_lane
from interp.runtime.tcgen05_metadata import find_columns
from interp.runtime.tcgen05_rows import element_kind, is_disabled, out_kind_of
from interp.runtime.tcgen05_rules import (
    BLOCK_SHIFT,
    KIND_I8,
    KIND_MXF4,
    KIND_MXF8F6F4,
    SCALE_D_SHIFT,
    SPARSE,
    column_chunks,
    columns_of,
    element_size,
    is_deep,
    row_chunks,
)
from interp.runtime.tensor_memory import CELLS, cell
from interp.tensorcore.blocks import decode_row, dot_terms, small_fraction
from interp.tensorcore.model import F16
from interp.tensorcore.scaled import decode_nibbles, dot_groups

_MEMORY = 8 * CTX["TENSOR_MEMORY"]
_NAN_SCALE = 0xFF


@native
def scale_columns(kind: int, idesc: int, rows: int) -> int:
    """Columns of tensor memory that the scales of `rows` rows of A, or columns of B, may take."""
    if is_deep(kind, idesc):
        return 2 * i64(8 if rows > 128 else 4)
    return (rows + 31) // 32


@native
def _scale_word(cells: int, address: int, quarter: int, row: int, first: int, deep: bool, rows: int) -> int:
    """The scales of a row from byte `first` of its word on, the first lowest."""
    lane, column = 32 * quarter + (row & 31), (address & 0xFFFF) + (row >> 5)
    word = i64(load_u32(cell(cells, lane, column)))
    if deep:
        word |= i64(load_u32(cell(cells, lane, column + (8 if rows > 128 else 4)))) << 32
        return word >> 8 * first & 0xFFFFFFFFFFFF
    return word >> 8 * first


@native
def _whole(address: int, is_signed: bool) -> int:
    x = i64(load_u8(address))
    return x - 256 if is_signed and x > 127 else x


@native
def _integer_sum(a: int, b: int, length: int, idesc: int, c: int) -> int:
    """Word of c plus a sum of products of bytes, wrapping or clamped."""
    total = c - (1 << 32) if c >> 31 & 1 else c
    for k in range(length):
        total += _whole(a + k, idesc >> 7 & 1 != 0) * _whole(b + k, idesc >> 10 & 1 != 0)
    if idesc >> 3 & 1:
        total = min(max(total, i64(-0x80000000)), i64(0x7FFFFFFF))
    return total & 0xFFFFFFFF


@native
def _decode(source: int, kind: int, type_: int, count: int, negate: bool, out: int) -> None:
    """A row to what is multiplied: bytes of integers, bytes of twice the value of packed numbers, or pairs of i32."""
    if kind == KIND_I8:
        for i in range(count):
            store_u8(out + i, load_u8(source + i))
    elif kind >= KIND_MXF4:
        decode_nibbles(source, count, negate, out)
    else:
        decode_row(source, type_, count, negate, out)


@native
def _pick(source: int, columns: int, count: int, size: int, out: int) -> None:
    """The elements of a decoded column of B that a sparse row multiplies."""
    for i in range(count):
        at = i64(load_u8(columns + i))
        if size == 8:
            store_u64(out + 8 * i, load_u64(source + 8 * at))
        else:
            store_u8(out + i, load_u8(source + at))


@native
def multiply_by_law(ctx: int, entry: int, a: int, b: int, rows: int, layout: int, width: int, half: int) -> None:
    """Rows of A times columns of B (both as gathered), one result after the other."""
    flags, idesc, d = get(entry + T_FLAGS), get(entry + T_IDESC), get(entry + T_D)
    kind, n, enable = flags & 7, columns_of(idesc), get(entry + T_ENABLE) != 0
    row_a, all_b, columns, picked = stack_scratch(512), stack_scratch(131072), stack_scratch(128), stack_scratch(512)
    packed, scaled, sparse = kind >= KIND_MXF4, kind >= KIND_MXF8F6F4, flags & SPARSE != 0
    size = i64(1 if packed or kind == KIND_I8 else 8)
    bytes_a, bytes_b = 16 * row_chunks(kind, idesc), 16 * column_chunks(flags, idesc)
    length = 2 * bytes_a if packed else bytes_a // element_size(kind)
    length_b = 2 * length if sparse else length
    known = packed or kind == KIND_I8
    kind_a = i64(0) if known else element_kind(kind, idesc >> 7 & 7)
    kind_b = i64(0) if known else element_kind(kind, idesc >> 10 & 7)
    negate_a, negate_b = idesc >> 13 & 1 != 0, idesc >> 14 & 1 != 0
    stride = size * length_b
    for j in range(n):
        _decode(b + bytes_b * j, kind, kind_b, length_b, negate_b, all_b + stride * j)
    out_kind, c_shift = out_kind_of(kind, idesc), -(flags >> SCALE_D_SHIFT & 15)
    floor, fraction = get(entry + (T_FLOOR_HALF if out_kind == F16 else T_FLOOR)), get(entry + T_NUMBERS) & 255
    scale_bits = i64(0) if known else small_fraction(kind_a) + small_fraction(kind_b)
    ue4m3, per_scale = idesc >> 23 & 1 == 0, (flags >> BLOCK_SHIFT & 255) // 16
    id_a, id_b, deep = idesc >> 29 & 3, idesc >> 4 & 3, is_deep(kind, idesc)
    cells = get(ctx + _MEMORY) + CELLS
    for row in range(rows):
        _decode(a + bytes_a * row, kind, kind_a, length, negate_a, row_a)
        for part in range(n // width):
            offset = part * (64 if layout == TWO else 32)
            lane = row_lane(layout, d >> 16, row) + offset
            if is_disabled(entry, half, lane):
                continue
            if sparse:
                find_columns(cells, get(entry + T_METADATA), idesc & 3, kind, row, offset, length, columns)
            scale_a, scale_b = i64(0), i64(0)
            if scaled:
                scale_a = _scale_word(cells, get(entry + T_SCALE_A), lane >> 5, row, id_a, deep, rows)
            for column in range(width):
                right = all_b + stride * (part * width + column)
                if sparse:
                    _pick(right, columns, length, size, picked)
                    right = picked
                at = cell(cells, lane, (d & 0xFFFF) + column)
                c = u32(0)
                if enable:
                    c = u32(load_u16(at)) if out_kind == F16 else load_u32(at)
                if scaled:
                    scale_b = _scale_word(cells, get(entry + T_SCALE_B), lane >> 5, column, id_b, deep, n)
                if packed:
                    word = dot_groups(row_a, right, scale_a, scale_b, per_scale, ue4m3, c, length // 16)
                elif kind == KIND_I8:
                    word = u32(_integer_sum(row_a, right, length, idesc, i64(c)))
                elif scaled and (scale_a & 255 == _NAN_SCALE or scale_b & 255 == _NAN_SCALE):
                    word = u32(0x7FFFFFFF)
                else:
                    shift = (scale_a & 255) + (scale_b & 255) - 254 if scaled else i64(0)
                    word = dot_terms(
                        row_a, right, length, scale_bits, c, out_kind, shift, c_shift, fraction, floor
                    )
                store_u32(at, u32(word))
