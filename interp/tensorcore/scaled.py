"""Block-scaled products: what a scale is, and the sum of kinds mxf4 and mxf4nvf4.

64 products of e2m1 numbers are four groups of 16. A group's sum is exact; its exponent is that of its two scales alone,
and it counts for the largest exponent if a product and both scales are not zero, even where the products cancel. Every
group, times the scales' significands, and c are cut toward zero at 35 fraction bits below the largest exponent (or the
floor, -139), added exactly, and rounded toward zero to f32. A NaN among the scales or in c gives NaN; ue4m3 ignores its
sign bit.

Kind mxf8f6f4 is a block of the ordinary law (`model.dot_block`) with the scales' exponents added to every product's.

Source: MMA-Sim 2.1.1 (arXiv 2511.10909); no second source is known for the 35 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.runtime.raw import load_u8, native
from interp.tensorcore.model import F32, FINITE, INFINITE, NOT_A_NUMBER, cut, decode, round_sum

Word = Any

FRACTION, FLOOR, GROUP = 35, -139, 16


@native
def scale_exponent(byte: Word) -> Word:
    """Exponent of a ue8m0 scale in the low byte, 128 for NaN."""
    return (np.int64(byte) & 0xFF) - 127


@native
def e2m1_doubled(nibble: Word) -> Word:
    """Twice the value of an e2m1 number."""
    x = np.int64(nibble)
    field, fraction = x >> 1 & 3, x & 1
    size = fraction if field == 0 else (2 | fraction) << (field - 1)
    return -size if x & 8 else size


@native
def grouped_dot(a: int, b: int, scale_a: Word, scale_b: Word, vector: int, float_scale: int, c: Word) -> Word:
    """f32 word of the sum of 64 products of nibbles at a and b (a byte each) and c; scales from the low byte up,
    `vector` of them."""
    nan = np.uint32(0x7FFFFFFF)
    class_c, sign_c, exponent_c, significand_c = decode(c, F32)
    if class_c == NOT_A_NUMBER:
        return nan
    largest = np.int64(FLOOR)
    if class_c == FINITE:
        largest = max(largest, exponent_c)
    total = np.int64(0)
    for passing in range(2):  # the largest exponent, then the sum
        if passing == 1:
            total = cut(significand_c, exponent_c - 23 - largest + FRACTION)
            total = -total if sign_c else total
        for group in range(4):
            which = 8 * (group * vector // 4)
            x, y = np.int64(scale_a) >> which & 0xFF, np.int64(scale_b) >> which & 0xFF
            significand, exponent = np.int64(64), x + y - 254
            if float_scale:
                x, y = x & 0x7F, y & 0x7F
                if x == 0x7F or y == 0x7F:
                    return nan
                ex, ey = x >> 3, y >> 3
                significand = (x & 7 | (8 if ex else 0)) * (y & 7 | (8 if ey else 0))
                exponent = max(ex, np.int64(1)) + max(ey, np.int64(1)) - 14
            elif x == 0xFF or y == 0xFF:
                return nan
            products, present = np.int64(0), False
            for i in range(GROUP * group, GROUP * group + GROUP):
                product = e2m1_doubled(load_u8(a + i)) * e2m1_doubled(load_u8(b + i))
                products += product
                present = present or product != 0
            if not present or significand == 0:
                continue
            if passing == 0:
                largest = max(largest, exponent)
            else:
                # quarters of the products, sixty-fourths of the significands
                term = cut(abs(products) * significand, exponent - 8 - largest + FRACTION)
                total += term if products > 0 else -term
    if class_c == INFINITE:
        return c
    return round_sum(total, largest - FRACTION, F32, 23)
