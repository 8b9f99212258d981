"""Block-scaled products: what a scale is, and the sum of kinds mxf4 and mxf4nvf4.

64 products of e2m1 numbers are four groups of 16. A group's sum is exact; its exponent is that of its two scales alone,
and it counts for the largest exponent if a product and both scales are not zero, even where the products cancel. Every
group, times the scales' significands, and c are cut toward zero at 35 fraction bits below the largest exponent (or the
floor, -139), added exactly, and rounded toward zero to f32. A NaN among the scales or in c gives NaN; ue4m3 ignores its
sign bit.

Kind mxf8f6f4 is a block of the ordinary law (`model.dot_block`) with the scales' exponents added to every product's.

K = 96 of sm_103 is taken to be the same with six groups (a guess: no model has it).

Source: MMA-Sim 2.1.1 (arXiv 2511.10909); no second source is known for the 35 bits."""

from __future__ import annotations

from typing import Any

from interp.runtime.raw import i64, load_u8, native, store_u8, u8, u32
from interp.tensorcore.model import F32, FINITE, INFINITE, NOT_A_NUMBER, ZERO, cut, decode, round_sum

Word = Any

FRACTION, FLOOR, GROUP = 35, -139, 16


@native
def scale_exponent(byte: Word) -> Word:
    """Exponent of a ue8m0 scale in the low byte, 128 for NaN."""
    return (i64(byte) & 0xFF) - 127


@native
def e2m1_doubled(nibble: Word) -> Word:
    """Twice the value of an e2m1 number."""
    x = i64(nibble)
    field, fraction = x >> 1 & 3, x & 1
    size = fraction if field == 0 else (2 | fraction) << (field - 1)
    return -size if x & 8 else size


@native
def decode_nibbles(source: int, count: int, negate: bool, out: int) -> None:
    """`count` packed e2m1 numbers, the lower nibble first, to bytes: twice their value."""
    for k in range(count):
        value = e2m1_doubled(load_u8(source + (k >> 1)) >> 4 * (k & 1) & 15)
        store_u8(out + k, u8(-value if negate else value))


@native
def _signed_byte(address: int) -> int:
    w = i64(load_u8(address))
    return w - 256 if w > 127 else w


@native
def _scale_parts(byte: int, ue4m3: bool) -> Word:
    """(class, exponent, significand in eighths) of a scale."""
    if not ue4m3:
        return i64(NOT_A_NUMBER if byte == 0xFF else FINITE), scale_exponent(byte), i64(8)
    w = byte & 0x7F
    if w == 0x7F:
        return i64(NOT_A_NUMBER), i64(0), i64(0)
    field, fraction = w >> 3, w & 7
    if field == 0:
        return i64(FINITE if fraction else ZERO), i64(-6), fraction
    return i64(FINITE), field - 7, fraction | 8


@native
def dot_groups(
    a: int, b: int, scales_a: Word, scales_b: Word, per_scale: int, ue4m3: bool, c: Word, groups: int = 4
) -> Word:
    """f32 word of the sum of 16 * groups products and c (an f32 word).

    a, b: addresses of as many bytes, each twice the value of an e2m1 number; scales_a, scales_b: words with one scale a
    byte, the first lowest; per_scale: groups that share a scale."""
    nan = u32(0x7FFFFFFF)
    class_c, sign_c, exponent_c, significand_c = decode(c, F32)
    if class_c == NOT_A_NUMBER:
        return nan
    largest, total = i64(FLOOR), i64(0)
    if class_c == FINITE:
        largest = max(largest, exponent_c)
    for passing in range(2):  # the largest exponent, then the sum
        if passing == 1:
            total = cut(significand_c, exponent_c - 23 - largest + FRACTION)
            total = -total if sign_c else total
        for group in range(groups):
            at = 8 * (group // per_scale)
            class_x, exponent_x, x = _scale_parts(i64(scales_a) >> at & 0xFF, ue4m3)
            class_y, exponent_y, y = _scale_parts(i64(scales_b) >> at & 0xFF, ue4m3)
            if class_x == NOT_A_NUMBER or class_y == NOT_A_NUMBER:
                return nan
            exponent = exponent_x + exponent_y
            products, present = i64(0), False
            for i in range(GROUP * group, GROUP * group + GROUP):
                product = _signed_byte(a + i) * _signed_byte(b + i)
                products += product
                present = present or product != 0
            if not present or class_x == ZERO or class_y == ZERO:
                continue
            if passing == 0:
                largest = max(largest, exponent)
            else:
                # quarters of the products, sixty-fourths of the significands
                term = cut(abs(products) * x * y, exponent - 8 - largest + FRACTION)
                total += term if products > 0 else -term
    if class_c == INFINITE:
        return c
    return round_sum(total, largest - FRACTION, F32, 23)
