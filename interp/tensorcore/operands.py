"""From register fragments to what the fast path computes with: values as f32, exponents as int32, one scratch array each.

A warp's operand is stored as consecutive vectors of 32 words: register r of lane l at address + (r * 32 + l) * 4. In `mma.sync`
fragments (`fragments.py`) lane l holds row (of A) or column (of B) l // 4, so four consecutive words are four neighbouring k of one
row: a register is eight rows of 16 bytes. A's registers 2g and 2g + 1 (rows 0-7, 8-15) and B's register g hold "group" g of k:
4, 8 or 16 of them for 32-, 16- and 8-bit elements.

Scratch order, the same for both operands: within a group, element s of word q goes to position 4 * s + q. The order of k inside a
block does not matter, since a maximum and an exact sum are taken, and blocks are whole groups or, for 4-element
blocks of 32-bit elements, groups themselves.
    A: f32[16][K] at `values`, int32[16][K] at `exponents`
    B: f32[K][8] and int32[K][8], columns in the order 0 2 4 6 1 3 5 7 (that of two accumulator registers in a row)

Exponents are those of the model: subnormals have the smallest normal number's, zeros have NOTHING. The functions return the
largest and smallest exponent of non-zero elements, and whether a NaN or an infinity is among the elements (then values are void).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.runtime.raw import native, native_inline
from interp.tensorcore.model import BF16, E4M3, E5M2, F16, TF32
from interp.tensorcore.vector import (
    Ints,
    add,
    any_lane,
    bit_and,
    bit_or,
    either,
    equal,
    floats_of_bits,
    fmul,
    fsub,
    greater,
    ints_of_floats,
    load_ints,
    maximum,
    minimum,
    select,
    shl,
    shr_u,
    splat_float,
    splat_int,
    store_halves,
    store_ints,
    sub,
    unpack_high,
    unpack_high_pairs,
    unpack_low,
    unpack_low_pairs,
)

NOTHING = -4096  # exponent of a zero: far below any floor, and two of them still fit


@native_inline
def _word(value: int) -> Ints:
    return splat_int(np.int32(value))


@native_inline
def _small(a: Ints, unit: float) -> Ints:
    """Bits of the f32 a * unit, for small integers a: through the f32 whose last place is one, so that no subnormal is touched."""
    whole = fsub(floats_of_bits(bit_or(a, _word(0x4B000000))), splat_float(np.float32(8388608.0)))
    return ints_of_floats(fmul(whole, splat_float(np.float32(unit))))


@native_inline
def _narrow_value(h: Ints, sign_bit: int, fraction: int, bias: int, unit: float) -> Ints:
    """f32 bits of a finite f16 or FP8 word with `fraction` fraction bits."""
    a = bit_and(h, _word((1 << sign_bit) - 1))
    normal = add(shl(a, _word(23 - fraction)), _word((127 - bias) << 23))
    bits = select(greater(a, _word((1 << fraction) - 1)), normal, _small(a, unit))
    return bit_or(bits, shl(bit_and(h, _word(1 << sign_bit)), _word(31 - sign_bit)))


@native_inline
def _exponent(a: Ints, fraction: int, bias: int) -> Ints:
    """Exponent of a word without its sign; NOTHING for zero."""
    e = sub(maximum(shr_u(a, _word(fraction)), _word(1)), _word(bias))
    return select(equal(a, _word(0)), _word(NOTHING), e)


@native_inline
def _decode(words: Ints, part: int, kind: int) -> Any:
    """(f32 bits, exponent, magnitude beyond the largest finite one?) of element `part` of each word."""
    if kind == F16:
        h = bit_and(shr_u(words, _word(16 * part)), _word(0xFFFF))
        a = bit_and(h, _word(0x7FFF))
        return _narrow_value(h, 15, 10, 15, 2.0**-24), _exponent(a, 10, 15), greater(a, _word(0x7BFF))
    if kind == BF16:
        h = bit_and(shr_u(words, _word(16 * part)), _word(0xFFFF))
        a = bit_and(h, _word(0x7FFF))
        return shl(h, _word(16)), _exponent(a, 7, 127), greater(a, _word(0x7F7F))
    if kind == E4M3:
        h = bit_and(shr_u(words, _word(8 * part)), _word(0xFF))
        a = bit_and(h, _word(0x7F))
        return _narrow_value(h, 7, 3, 7, 2.0**-9), _exponent(a, 3, 7), greater(a, _word(0x7E))
    if kind == E5M2:
        h = bit_and(shr_u(words, _word(8 * part)), _word(0xFF))
        a = bit_and(h, _word(0x7F))
        return _narrow_value(h, 7, 2, 15, 2.0**-16), _exponent(a, 2, 15), greater(a, _word(0x7B))
    w = bit_and(words, _word(-0x2000))
    a = bit_and(w, _word(0x7FFFFFFF))
    return w, _exponent(a, 23, 127), greater(a, _word(0x7F7FFFFF))


@native_inline
def _per_word(kind: int) -> int:
    if kind == TF32:
        return 1
    return 4 if kind == E4M3 or kind == E5M2 else 2


@native_inline
def _range(largest: Ints, smallest: Ints) -> Any:
    """Whether all exponents of non-zero elements are within -50 ... 50: then f32 products neither overflow nor lose bits."""
    outside = greater(largest, _word(50))
    below = greater(_word(-50), smallest)
    return not (any_lane(outside) or any_lane(below))


@native_inline
def _spread_rows(source: int, groups: int, values: int, exponents: int, kind: int) -> Any:
    per = _per_word(kind)
    width = groups * per * 16  # bytes of a scratch row
    largest, smallest = _word(NOTHING), _word(-NOTHING)
    beyond = greater(largest, smallest)
    for register in range(2 * groups):
        for pair in range(4):
            words = load_ints(source + register * 128 + pair * 32)
            row = (register & 1) * 8 + pair * 2
            place = row * width + (register >> 1) * per * 16
            for part in range(per):
                bits, exponent, special = _decode(words, part, kind)
                store_halves(values + place + part * 16, values + place + width + part * 16, bits)
                store_halves(exponents + place + part * 16, exponents + place + width + part * 16, exponent)
                largest = maximum(largest, exponent)
                smallest = minimum(smallest, select(equal(exponent, _word(NOTHING)), _word(0), exponent))
                beyond = either(beyond, special)
    return _range(largest, smallest), any_lane(beyond)


@native_inline
def _spread_columns(source: int, groups: int, values: int, exponents: int, kind: int) -> Any:
    per = _per_word(kind)
    largest, smallest = _word(NOTHING), _word(-NOTHING)
    beyond = greater(largest, smallest)
    for group in range(groups):
        v0, v1 = load_ints(source + group * 128), load_ints(source + group * 128 + 32)
        v2, v3 = load_ints(source + group * 128 + 64), load_ints(source + group * 128 + 96)
        # columns 2j and 2j + 1 are the two halves of vector j: transposing each half gives columns 0 2 4 6 1 3 5 7
        low01, high01 = unpack_low(v0, v1), unpack_high(v0, v1)
        low23, high23 = unpack_low(v2, v3), unpack_high(v2, v3)
        for q in range(4):
            if q == 0:
                words = unpack_low_pairs(low01, low23)
            elif q == 1:
                words = unpack_high_pairs(low01, low23)
            elif q == 2:
                words = unpack_low_pairs(high01, high23)
            else:
                words = unpack_high_pairs(high01, high23)
            for part in range(per):
                bits, exponent, special = _decode(words, part, kind)
                place = ((group * per + part) * 4 + q) * 32
                store_ints(values + place, bits)
                store_ints(exponents + place, exponent)
                largest = maximum(largest, exponent)
                smallest = minimum(smallest, select(equal(exponent, _word(NOTHING)), _word(0), exponent))
                beyond = either(beyond, special)
    return _range(largest, smallest), any_lane(beyond)


@native
def rows_f16(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode A of f16; -> (moderate exponents?, NaN or Inf present?)."""
    return _spread_rows(source, groups, values, exponents, F16)


@native
def rows_bf16(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode A of bf16."""
    return _spread_rows(source, groups, values, exponents, BF16)


@native
def rows_tf32(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode A of tf32."""
    return _spread_rows(source, groups, values, exponents, TF32)


@native
def rows_e4m3(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode A of e4m3."""
    return _spread_rows(source, groups, values, exponents, E4M3)


@native
def rows_e5m2(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode A of e5m2."""
    return _spread_rows(source, groups, values, exponents, E5M2)


@native
def columns_f16(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode B of f16."""
    return _spread_columns(source, groups, values, exponents, F16)


@native
def columns_bf16(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode B of bf16."""
    return _spread_columns(source, groups, values, exponents, BF16)


@native
def columns_tf32(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode B of tf32."""
    return _spread_columns(source, groups, values, exponents, TF32)


@native
def columns_e4m3(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode B of e4m3."""
    return _spread_columns(source, groups, values, exponents, E4M3)


@native
def columns_e5m2(source: int, groups: int, values: int, exponents: int) -> Any:
    """Decode B of e5m2."""
    return _spread_columns(source, groups, values, exponents, E5M2)


@native
def decode_rows(source: int, groups: int, values: int, exponents: int, kind: int) -> Any:
    """Decode A of any kind; -> (moderate exponents?, NaN or Inf present?)."""
    if kind == F16:
        return rows_f16(source, groups, values, exponents)
    if kind == BF16:
        return rows_bf16(source, groups, values, exponents)
    if kind == TF32:
        return rows_tf32(source, groups, values, exponents)
    if kind == E4M3:
        return rows_e4m3(source, groups, values, exponents)
    return rows_e5m2(source, groups, values, exponents)


@native
def decode_columns(source: int, groups: int, values: int, exponents: int, kind: int) -> Any:
    """Decode B of any kind; -> (moderate exponents?, NaN or Inf present?)."""
    if kind == F16:
        return columns_f16(source, groups, values, exponents)
    if kind == BF16:
        return columns_bf16(source, groups, values, exponents)
    if kind == TF32:
        return columns_tf32(source, groups, values, exponents)
    if kind == E4M3:
        return columns_e4m3(source, groups, values, exponents)
    return columns_e5m2(source, groups, values, exponents)
