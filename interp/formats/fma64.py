"""f64 fused multiply-add in every rounding mode, by 128-bit integer arithmetic on pairs of words.

The product of two significands (106 bits) and the addend are put into 128-bit fields with the leading bit at position
124 or 125; the smaller is shifted right with a sticky last bit. Where the shift loses bits the sum cancels by at most
two places, so the sticky bit stays far below the last place of the result and the one rounding in `round_pack` is
exact.

NaN results are 0xFFF8000000000000; which operand's payload is passed on is the caller's business.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import RM, exponent_of, normalise, round_pack, significand_of
from interp.runtime.raw import leading_bit, native, native_inline

Word = Any

ABS = 0x7FFFFFFFFFFFFFFF
INF = 0x7FF0000000000000
NAN = 0xFFF8000000000000


@native_inline
def _product(a: Word, b: Word) -> Word:
    """Both 64-bit halves of a product."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    low, cross, other = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> half) + (cross & mask) + (other & mask)
    return a1 * b1 + (cross >> half) + (other >> half) + (carry >> half), (carry << half) | (low & mask)


@native_inline
def _shift_right(high: Word, low: Word, drop: Word) -> Word:
    """A 128-bit word shifted right; what falls off becomes a sticky last bit."""
    zero, one = np.uint64(0), np.uint64(1)
    if drop >= 64:
        lost = low
        low, high = high, zero
        drop = drop - 64 if drop < 128 else 64
    else:
        lost = zero
    if drop >= 64:
        lost = lost | low
        low = zero
    elif drop > 0:
        d, up = np.uint64(drop), np.uint64(64 - drop)
        lost = lost | (low << up)
        low = (low >> d) | (high << up)
        high = high >> d
    return high, low | (one if lost != zero else zero)


@native_inline
def _top(word: Word) -> Word:
    """Exponent of the leading bit of a finite word without its sign."""
    return exponent_of(word, 53, -1022) + leading_bit(significand_of(word, 53))


@native
def f64_fma_directed(a: Word, b: Word, c: Word, mode: int) -> Word:
    """fma.{rn,rz,rm,rp}.f64."""
    xa, xb, xc = np.uint64(a) & np.uint64(ABS), np.uint64(b) & np.uint64(ABS), np.uint64(c) & np.uint64(ABS)
    inf, zero, one, c63 = np.uint64(INF), np.uint64(0), np.uint64(1), np.uint64(63)
    sign_p = np.int64((np.uint64(a) ^ np.uint64(b)) >> c63)
    sign_c = np.int64(np.uint64(c) >> c63)
    product_inf = (xa == inf) | (xb == inf)
    nan = (xa > inf) | (xb > inf) | (xc > inf) | (product_inf & ((xa == zero) | (xb == zero)))
    if nan | (product_inf & (xc == inf) & (sign_p != sign_c)):
        return np.uint64(NAN)
    if product_inf:
        return inf | np.uint64(sign_p) << c63
    if xc == inf:
        return np.uint64(c)
    high, low = _product(normalise(significand_of(xa, 53), 62), normalise(significand_of(xb, 53), 62))
    # bit 124 of each field weighs 2**top
    top = _top(xa) + _top(xb)
    other, other_low, top_c = normalise(significand_of(xc, 53), 60), zero, _top(xc)
    product_zero = (xa == zero) | (xb == zero)
    if xc != zero and (product_zero or top_c > top):
        high, low = _shift_right(high, low, top_c - top if not product_zero else 0)
        top = top_c
    elif xc != zero:
        other, other_low = _shift_right(other, other_low, top - top_c)
    if sign_p == sign_c:
        low = low + other_low
        high = high + other + (one if low < other_low else zero)
        sign = sign_p
    else:
        borrow = one if low < other_low else zero
        low = low - other_low
        high = high - other - borrow
        negative = (high >> c63) != zero
        sign = sign_c if negative else sign_p
        if negative:
            low = ~low + one
            high = ~high + (one if low == zero else zero)
        cancelled = np.int64(1 if mode == RM else 0)
        sign = cancelled if (high | low) == zero else sign
    # the 64 bits from the leading one on, the rest sticky
    empty = high == zero
    kept, rest = (low, zero) if empty else (high, low)
    weight = top - 124 if empty else top - 60
    up = 63 - leading_bit(kept) if kept != zero else 0
    if up > 0:
        kept = (kept << np.uint64(up)) | (rest >> np.uint64(64 - up))
        rest = rest << np.uint64(up)
        weight = weight - up
    kept = kept | (one if rest != zero else zero)
    return round_pack(sign, weight, kept, 53, -1022, 1023, mode) | np.uint64(sign) << c63
