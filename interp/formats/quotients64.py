"""f64 division and square root in every rounding mode, digit by digit: scalar functions of uint64 words.

55 bits of the quotient, or of the root, and a sticky last bit for the remainder make the one rounding in `round_pack`
exact. Invalid operations give 0xFFF8000000000000; which NaN operand is passed on is the caller's business. Source: PTX
ISA, `div`, `rcp`, `sqrt`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import exponent_of, normalise, round_pack, significand_of
from interp.runtime.raw import leading_bit, native

Word = Any

ABS = 0x7FFFFFFFFFFFFFFF
INF = 0x7FF0000000000000
NAN = 0xFFF8000000000000
BITS = 55


@native
def f64_div_directed(a: Word, b: Word, mode: int) -> Word:
    """div.{rn,rz,rm,rp}.f64."""
    xa, xb = np.uint64(a) & np.uint64(ABS), np.uint64(b) & np.uint64(ABS)
    sign = np.int64((np.uint64(a) ^ np.uint64(b)) >> np.uint64(63))
    inf, zero, one = np.uint64(INF), np.uint64(0), np.uint64(1)
    if (xa > inf) | (xb > inf) | ((xa == inf) & (xb == inf)) | ((xa == zero) & (xb == zero)):
        return np.uint64(NAN)
    signed = np.uint64(sign) << np.uint64(63)
    if (xa == inf) | (xb == zero):
        return inf | signed
    if (xb == inf) | (xa == zero):
        return signed
    top_a = exponent_of(xa, 53, -1022) + leading_bit(significand_of(xa, 53))
    top_b = exponent_of(xb, 53, -1022) + leading_bit(significand_of(xb, 53))
    rest, divisor = normalise(significand_of(xa, 53), 52), normalise(significand_of(xb, 53), 52)
    quotient = zero
    for _ in range(BITS):
        take = rest >= divisor
        rest = rest - divisor if take else rest
        quotient = quotient << one | (one if take else zero)
        rest = rest << one
    # the first digit weighs 2**(top_a - top_b); the sticky bit stands below the last one
    sticky = one if rest != zero else zero
    w = round_pack(sign, top_a - top_b - BITS, quotient << one | sticky, 53, -1022, 1023, mode)
    return w | signed


@native
def f64_sqrt_directed(a: Word, mode: int) -> Word:
    """sqrt.{rn,rz,rm,rp}.f64."""
    word = np.uint64(a)
    x, inf, zero, one, two = word & np.uint64(ABS), np.uint64(INF), np.uint64(0), np.uint64(1), np.uint64(2)
    if x == zero:
        return word
    if (x > inf) | (word != x):
        return np.uint64(NAN)
    if x == inf:
        return inf
    top = exponent_of(x, 53, -1022) + leading_bit(significand_of(x, 53))
    odd = top & 1
    # an even exponent, the leading digit (1, 2 or 3) in the two highest bits
    digits = normalise(significand_of(x, 53), 62) << np.uint64(odd)
    root, rest = zero, zero
    for _ in range(BITS):
        rest = rest << two | digits >> np.uint64(62)
        digits = digits << two
        trial = root << two | one
        take = rest >= trial
        rest = rest - trial if take else rest
        root = root << one | (one if take else zero)
    sticky = one if rest != zero else zero
    return round_pack(np.int64(0), (top - odd >> 1) - BITS, root << one | sticky, 53, -1022, 1023, mode)
