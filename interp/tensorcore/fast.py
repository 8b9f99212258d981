"""Warp-level matrix multiply-accumulate at run time: equal to `model.py` bit for bit, eight columns at a time.

Operands are addresses of consecutive vectors of 32 words: register r of lane l at address + (r * 32 + l) * 4 (`fragments.py`). `out`
may be the same as `c`, and must not overlap `a` or `b`.

Why it is exact. A product of two operands has at most 22 significant bits, so its f32 (or, for widely spread exponents, f64) product
is exact; so is scaling by 2**(F - X), unless the result falls below the normal range, where the cut gives zero in any case; the
conversion to integer is the cut. A term is below 2**(F + 2) <= 2**27 in magnitude: sixteen fit an int32 sum. Sums of such sums are
exact in f64. Rounding toward zero clears low bits of the f64 significand.

What the vectors do not handle goes to the model, row by row or the whole tile: NaN and Inf operands, and subnormal f32 results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.runtime.raw import (
    load_f32,
    load_u16,
    load_u32,
    load_u64,
    native,
    native_inline,
    stack_scratch,
    store_u64,
)
from interp.tensorcore.model import E4M3, E5M2, F16, TF32, dot, store_result
from interp.tensorcore.operands import NOTHING, decode_columns, decode_rows
from interp.tensorcore.vector import (
    Doubles,
    Ints,
    add,
    add_long,
    and_long,
    any_lane,
    bit_and,
    bit_or,
    bit_xor,
    both,
    dadd,
    dmul,
    doubles_of_bits,
    doubles_of_floats,
    doubles_of_ints,
    dsub,
    either,
    equal,
    floats_of_bits,
    floats_of_doubles,
    fmul,
    greater,
    ints_of_floats,
    join,
    load_floats,
    load_halves,
    load_ints,
    longs_of_doubles,
    max_long,
    maximum,
    minimum,
    or_long,
    select,
    shl,
    shl_long,
    shr_long,
    shr_s,
    shr_u,
    splat_double,
    splat_float,
    splat_int,
    splat_long,
    store_halves,
    sub,
    swap_halves,
    truncate,
    truncate_doubles,
    widen_ints,
)

CHUNK = 16  # terms that fit an int32 sum


@native_inline
def _word(value: Any) -> Ints:
    return splat_int(np.int32(value))


@native_inline
def _load_c(c: int, row: int, out_kind: int) -> Ints:
    """The accumulator words of a row, columns in the order 0 2 4 6 1 3 5 7."""
    if out_kind == F16:
        words = load_halves(c + (row >> 3) * 128 + (row & 7) * 16, c + (row >> 3) * 128 + (row & 7) * 16)
        return bit_and(shr_u(words, _halves_shift()), _word(0xFFFF))
    place = c + (row >> 3) * 256 + (row & 7) * 16
    return load_halves(place, place + 128)


@native_inline
def _halves_shift() -> Ints:
    """0 in the first four lanes, 16 in the others."""
    return join(_word(0), _word(16))


@native_inline
def _accumulator(word: Ints, out_kind: int) -> Any:
    """(exponent or NOTHING, significand in units of 2**(exponent - 25), sign as 0 / -1, NaN or Inf?)."""
    if out_kind == F16:
        a = bit_and(word, _word(0x7FFF))
        field = shr_u(a, _word(10))
        fraction = shl(bit_and(a, _word(0x3FF)), _word(13))
        sign = sub(_word(0), shr_u(word, _word(15)))
        special = greater(a, _word(0x7BFF))
        bias = 15
    else:
        a = bit_and(word, _word(0x7FFFFFFF))
        field = shr_u(a, _word(23))
        fraction = bit_and(a, _word(0x7FFFFF))
        sign = shr_s(word, _word(31))
        special = greater(a, _word(0x7F7FFFFF))
        bias = 127
    hidden = select(equal(field, _word(0)), _word(0), _word(0x800000))
    exponent = sub(maximum(field, _word(1)), _word(bias))
    exponent = select(equal(a, _word(0)), _word(NOTHING), exponent)
    return exponent, shl(bit_or(fraction, hidden), _word(2)), sign, special


@native_inline
def _term_of_c(exponent: Ints, significand: Ints, sign: Ints, largest: Ints, fraction: int) -> Ints:
    """The accumulator cut to a multiple of 2**(largest - fraction)."""
    drop = minimum(add(sub(largest, exponent), _word(25 - fraction)), _word(31))
    t = shr_u(significand, drop)
    return sub(bit_xor(t, sign), sign)


@native_inline
def _round_f32(total: Doubles, exponent: Ints, out_fraction: int) -> Any:
    """(word, subnormal?) of total * 2**exponent toward zero."""
    mask = np.int64(-1) << np.int64(52 - out_fraction)
    cut = doubles_of_bits(and_long(longs_of_doubles(total), splat_long(mask)))
    bits = ints_of_floats(floats_of_doubles(cut))  # exact: at most 24 bits, below 2**35
    field = add(bit_and(shr_u(bits, _word(23)), _word(0xFF)), exponent)
    zero = equal(bits, _word(0))
    tiny = greater(_word(1), field)
    infinite = greater(field, _word(254))
    infinity = bit_or(bit_and(bits, _word(-0x80000000)), _word(0x7F800000))
    word = select(infinite, infinity, add(bits, shl(exponent, _word(23))))
    return select(zero, _word(0), word), both(tiny, greater(bit_and(bits, _word(0x7FFFFFFF)), _word(0)))


@native_inline
def _round_f16(total: Doubles, exponent: Ints) -> Ints:
    """f16 words of total * 2**exponent to nearest-even; what rounds to zero is +0."""
    scale = shl_long(add_long(widen_ints(exponent), splat_long(np.int64(1023))), splat_long(np.int64(52)))
    y = dmul(total, doubles_of_bits(scale))
    field = and_long(shr_long(longs_of_doubles(y), splat_long(np.int64(52))), splat_long(np.int64(0x7FF)))
    field = max_long(field, splat_long(np.int64(1023 - 14)))
    # adding 1.5 * 2**(e + 42) leaves 10 fraction bits below 2**e, rounded
    magic = shl_long(add_long(field, splat_long(np.int64(42))), splat_long(np.int64(52)))
    magic_value = doubles_of_bits(or_long(magic, splat_long(np.int64(0x8000000000000))))
    rounded = dsub(dadd(y, magic_value), magic_value)
    bits = ints_of_floats(floats_of_doubles(rounded))
    a = bit_and(bits, _word(0x7FFFFFFF))
    normal = shr_u(sub(a, _word(112 << 23)), _word(13))
    units = dmul(doubles_of_floats(floats_of_bits(minimum(a, _word(0x38800000)))), splat_double(16777216.0))
    word = select(greater(a, _word(0x387FFFFF)), normal, truncate_doubles(units))
    word = select(greater(a, _word(0x477FFFFF)), _word(0x7C00), word)
    sign = shl(shr_u(bits, _word(31)), _word(15))
    return select(equal(word, _word(0)), word, bit_or(word, sign))


@native_inline
def _row(
    values_a: int, exponents_a: int, values_b: int, exponents_b: int, word: Ints,
    k: int, block: int, fraction: int, floor: int, out_kind: int, out_fraction: int, wide: int,
) -> Any:
    """(result words, lanes that the model must do) of one row of A against eight columns of B."""
    redo = greater(_word(0), _word(0))
    start = 0
    while start < k:
        n = min(block, k - start)
        exponent_c, significand_c, sign_c, special = _accumulator(word, out_kind)
        redo = either(redo, special)
        largest = maximum(exponent_c, _word(floor))
        for p in range(start, start + n):
            x = add(_word(load_u32(exponents_a + p * 4)), load_ints(exponents_b + p * 32))
            largest = maximum(largest, x)
        total = doubles_of_ints(_term_of_c(exponent_c, significand_c, sign_c, largest, fraction))
        up = sub(_word(fraction), largest)
        begin = start
        while begin < start + n:
            end = min(begin + CHUNK, start + n)
            partial = _word(0)
            if wide:
                bits = shl_long(add_long(widen_ints(up), splat_long(np.int64(1023))), splat_long(np.int64(52)))
                scale_wide = doubles_of_bits(bits)
                for p in range(begin, end):
                    a_wide = splat_double(np.float64(load_f32(values_a + p * 4)))
                    product_wide = dmul(a_wide, doubles_of_floats(load_floats(values_b + p * 32)))
                    partial = add(partial, truncate_doubles(dmul(product_wide, scale_wide)))
            else:
                # without a non-zero product the scale may be out of range; any will do
                scale = floats_of_bits(shl(minimum(add(up, _word(127)), _word(254)), _word(23)))
                for p in range(begin, end):
                    product = fmul(splat_float(load_f32(values_a + p * 4)), load_floats(values_b + p * 32))
                    partial = add(partial, truncate(fmul(product, scale)))
            total = dadd(total, doubles_of_ints(partial))
            begin = end
        if out_kind == F16:
            word = _round_f16(total, sub(_word(0), up))
        else:
            word, tiny = _round_f32(total, sub(_word(0), up), out_fraction)
            redo = either(redo, tiny)
        start += n
    return word, redo


@native_inline
def _store_row(out: int, row: int, word: Ints, out_kind: int) -> None:
    if out_kind == F16:
        packed = bit_or(word, shl(swap_halves(word), _word(16)))
        place = out + (row >> 3) * 128 + (row & 7) * 16
        store_halves(place, place, join(packed, packed))
    else:
        place = out + (row >> 3) * 256 + (row & 7) * 16
        store_halves(place, place + 128, word)


@native
def _copy_group_rows(source: int, stride: int, groups: int, target: int) -> None:
    for group in range(groups):
        store_u64(target + group * 16, load_u64(source + group * stride))
        store_u64(target + group * 16 + 8, load_u64(source + group * stride + 8))


@native
def element_bytes(kind: int) -> int:
    """Bytes of one element of an input kind."""
    if kind == TF32:
        return 4
    return 1 if kind == E4M3 or kind == E5M2 else 2


@native
def row_by_model(
    out: int, a: int, b: int, c: int, row: int, groups: int, kind_a: int, kind_b: int,
    block: int, fraction: int, floor: int, out_kind: int, out_fraction: int,
) -> None:
    """One row of `mma` through the model."""
    room = stack_scratch(128)
    step_a, step_b = element_bytes(kind_a), element_bytes(kind_b)
    _copy_group_rows(a + (row >> 3) * 128 + (row & 7) * 16, 256, groups, room)
    for column in range(8):
        _copy_group_rows(b + column * 16, 128, groups, room + 64)
        if out_kind == F16:
            place = (row >> 3) * 128 + (row & 7) * 16 + column * 2
            word = np.uint32(load_u16(c + place))
        else:
            place = (row >> 3) * 256 + (column & 1) * 128 + (row & 7) * 16 + (column >> 1) * 4
            word = load_u32(c + place)
        word = dot(
            room, room + 64, step_a, step_b, groups * 16 // step_a, kind_a, kind_b, word,
            out_kind, block, fraction, floor, out_fraction,
        )
        store_result(out + place, word, out_kind)


@native
def mma(
    out: int, a: int, b: int, c: int, groups: int, kind_a: int, kind_b: int,
    block: int, fraction: int, floor: int, out_kind: int, out_fraction: int,
) -> None:
    """m16n8 matrix multiply-accumulate of one warp, any float kinds.

    groups: 16-byte groups of k, i.e. registers of B (A has twice as many). kind_a, kind_b: `model.F16` ... of equal size. out_kind:
    `model.F16` or `model.F32`, of c and out. block, fraction, floor, out_fraction: L, F, e0 and the result's fraction bits (`table.py`).
    """
    values_a = stack_scratch(2048)
    exponents_a = stack_scratch(2048)
    values_b = stack_scratch(1024)
    exponents_b = stack_scratch(1024)
    moderate_a, special_a = decode_rows(a, groups, values_a, exponents_a, kind_a)
    moderate_b, special_b = decode_columns(b, groups, values_b, exponents_b, kind_b)
    k = groups * 16 // element_bytes(kind_a)
    wide = 0 if moderate_a and moderate_b else 1
    for row in range(16):
        redo = special_a or special_b
        if not redo:
            word, lanes = _row(
                values_a + row * k * 4, exponents_a + row * k * 4, values_b, exponents_b, _load_c(c, row, out_kind),
                k, block, fraction, floor, out_kind, out_fraction, wide,
            )
            redo = any_lane(lanes)
            if not redo:
                _store_row(out, row, word, out_kind)
        if redo:
            row_by_model(
                out, a, b, c, row, groups, kind_a, kind_b, block, fraction, floor, out_kind, out_fraction
            )
