"""f32 and f64 add, multiply and fused multiply-add in every rounding mode, by exact integer arithmetic.

Operands are normalised to a leading bit at position 61 of a 64-bit significand and aligned; what falls off an end
becomes a sticky bit far below the target's last place, so the one rounding in `round_pack` is exact. f32 products are
exact in 48 bits, f64 products in 106, of which the lowest 44 become sticky where that is enough.

NaN results: f32 0x7FFFFFFF. f64 as an H200 does: a NaN operand is passed on, made quiet, the second one before the
first; otherwise 0xFFF8000000000000. An exact zero of operands with different signs is +0, with RM -0.

`.ftz` (the `_ftz` functions): an H200 judges tininess after rounding to 24 bits as if the exponent were unbounded,
also where the subnormal grid would round up: 2**-126 * (1 - 2**-24) becomes zero, although it rounds to 2**-126. Sums
of f32 are exact there, so only products and fma need this; flushing the result of a plain operation is wrong for them.

Limits: f64 fma in directed modes is not offered, since it needs 160-bit sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import RM, exponent_of, normalise, round_pack, shift_sticky, significand_of
from interp.runtime.raw import leading_bit, native, native_inline

Word = Any

TOP = 61  # leading bit of normalised operands: a sum of two still fits 63 bits
DEEP = -600  # an emin below every sum and product of f32
F32_NAN = 0x7FFFFFFF
F64_NAN = 0xFFF8000000000000


@native_inline
def _flush(word: Word) -> Word:
    x = np.int64(word)
    return x & 0x80000000 if (x & 0x7F800000) == 0 else x


@native_inline
def _rebias(word: Word) -> Word:
    """f32 magnitude from one packed with emin DEEP: below the normal range it becomes 0."""
    offset = np.uint64((-126 - DEEP) << 23)
    normal = word >= offset + np.uint64(0x800000)
    return word - offset if normal else np.uint64(0)


@native_inline
def _sum(
    sign_a: Word,
    top_a: Word,
    a: Word,
    sign_b: Word,
    top_b: Word,
    b: Word,
    precision: int,
    emin: int,
    emax: int,
    mode: int,
) -> Word:
    """Rounded word with sign at bit 63 of a + b; a, b normalised significands (or 0) whose leading bits weigh
    2**top."""
    swap = (b != np.uint64(0)) & ((a == np.uint64(0)) | (top_b > top_a))
    big, small = (b, a) if swap else (a, b)
    top, low = (top_b, top_a) if swap else (top_a, top_b)
    sign, other = (sign_b, sign_a) if swap else (sign_a, sign_b)
    small = shift_sticky(small, top - low if small != np.uint64(0) else 0)
    negative = (sign != other) & (small > big)  # equal leading bits
    difference = small - big if small > big else big - small
    total = big + small if sign == other else difference
    sign = sign ^ 1 if negative else sign
    cancelled = np.int64(1 if mode == RM else 0)
    zero_sign = sign if sign == other else cancelled
    sign = zero_sign if total == np.uint64(0) else sign
    word = round_pack(sign, top - TOP, total, precision, emin, emax, mode)
    return word | np.uint64(sign) << np.uint64(63)


@native_inline
def _top(word: Word, precision: int, emin: int) -> Word:
    """Exponent of the leading bit of a finite word without its sign."""
    return exponent_of(word, precision, emin) + leading_bit(significand_of(word, precision))


@native_inline
def _f32_fma(a: Word, b: Word, c: Word, mode: int, emin: int) -> Word:
    """fma rounded in a format with that emin, as uint64 with the sign at bit 63; NaN and Inf already as f32 words."""
    xa, xb, xc = np.int64(a) & 0x7FFFFFFF, np.int64(b) & 0x7FFFFFFF, np.int64(c) & 0x7FFFFFFF
    sign_p, sign_c = (np.int64(a) ^ np.int64(b)) >> 31 & 1, np.int64(c) >> 31 & 1
    inf = 0x7F800000
    nan = (xa > inf) | (xb > inf) | (xc > inf)
    nan = nan | ((xa == inf) & (xb == 0)) | ((xb == inf) & (xa == 0))
    product_inf = (xa == inf) | (xb == inf)
    nan = nan | (product_inf & (xc == inf) & (sign_p != sign_c))
    flat = np.uint64((-126 - emin) << 23)  # undone by `_rebias`
    if nan:
        return np.uint64(F32_NAN) + flat
    if product_inf:
        return (np.uint64(inf) + flat) | np.uint64(sign_p) << np.uint64(63)
    if xc == inf:
        return (np.uint64(inf) + flat) | np.uint64(sign_c) << np.uint64(63)
    product = significand_of(xa, 24) * significand_of(xb, 24)
    top_p = exponent_of(xa, 24, -126) + exponent_of(xb, 24, -126) + leading_bit(product)
    significand_c = normalise(significand_of(xc, 24), TOP)
    return _sum(sign_p, top_p, normalise(product, TOP), sign_c, _top(xc, 24, -126), significand_c, 24, emin, 127, mode)


@native
def f32_fma_directed(a: Word, b: Word, c: Word, mode: int) -> Word:
    """fma.{rn,rz,rm,rp}.f32."""
    w = _f32_fma(a, b, c, mode, -126)
    return np.uint32(w | w >> np.uint64(32))


@native
def f32_fma_ftz(a: Word, b: Word, c: Word, mode: int) -> Word:
    """fma.{rn,rz,rm,rp}.ftz.f32."""
    w = _f32_fma(_flush(a), _flush(b), _flush(c), mode, DEEP)
    magnitude = _rebias(w & np.uint64(0x7FFFFFFFFFFFFFFF))
    return np.uint32(magnitude | w >> np.uint64(63) << np.uint64(31))


@native
def f32_add_directed(a: Word, b: Word, mode: int) -> Word:
    """add.{rn,rz,rm,rp}.f32 (sub: flip the sign of b first)."""
    return f32_fma_directed(a, np.uint32(0x3F800000), b, mode)


@native_inline
def _f32_mul(a: Word, b: Word, mode: int, emin: int) -> Word:
    xa, xb = np.int64(a) & 0x7FFFFFFF, np.int64(b) & 0x7FFFFFFF
    sign = (np.int64(a) ^ np.int64(b)) >> 31 & 1
    inf = 0x7F800000
    product = significand_of(xa, 24) * significand_of(xb, 24)
    w = round_pack(sign, exponent_of(xa, 24, -126) + exponent_of(xb, 24, -126), product, 24, emin, 127, mode)
    w = w if emin == -126 else _rebias(w)
    infinite = (xa == inf) | (xb == inf)
    w = np.uint64(inf) if infinite else w
    nan = (xa > inf) | (xb > inf) | (infinite & ((xa == 0) | (xb == 0)))
    return np.uint32(np.uint64(F32_NAN) if nan else w | np.uint64(sign << 31))


@native
def f32_mul_directed(a: Word, b: Word, mode: int) -> Word:
    """mul.{rn,rz,rm,rp}.f32."""
    return _f32_mul(a, b, mode, -126)


@native
def f32_mul_ftz(a: Word, b: Word, mode: int) -> Word:
    """mul.{rn,rz,rm,rp}.ftz.f32."""
    return _f32_mul(_flush(a), _flush(b), mode, DEEP)


@native
def f64_nan(a: Word, b: Word, c: Word) -> Word:
    """The f64 NaN that an operation gives: a NaN operand made quiet, b before c before a (H200); otherwise
    0xFFF8000000000000.

    Operations of two operands pass a number for c.
    """
    low, inf, quiet = np.uint64(0x7FFFFFFFFFFFFFFF), np.uint64(0x7FF0000000000000), np.uint64(1 << 51)
    if np.uint64(b) & low > inf:
        return np.uint64(b) | quiet
    if np.uint64(c) & low > inf:
        return np.uint64(c) | quiet
    if np.uint64(a) & low > inf:
        return np.uint64(a) | quiet
    return np.uint64(F64_NAN)


@native
def f64_add_directed(a: Word, b: Word, mode: int) -> Word:
    """add.{rn,rz,rm,rp}.f64 (sub: flip the sign of b first)."""
    low = np.uint64(0x7FFFFFFFFFFFFFFF)
    inf = np.uint64(0x7FF0000000000000)
    xa, xb = np.uint64(a) & low, np.uint64(b) & low
    sign_a, sign_b = np.int64(np.uint64(a) >> np.uint64(63)), np.int64(np.uint64(b) >> np.uint64(63))
    if (xa > inf) | (xb > inf) | ((xa == inf) & (xb == inf) & (sign_a != sign_b)):
        return f64_nan(a, b, np.uint64(0))
    if xa == inf:
        return np.uint64(a)
    if xb == inf:
        return np.uint64(b)
    sa, sb = normalise(significand_of(xa, 53), TOP), normalise(significand_of(xb, 53), TOP)
    return _sum(sign_a, _top(xa, 53, -1022), sa, sign_b, _top(xb, 53, -1022), sb, 53, -1022, 1023, mode)


@native_inline
def _high_product(a: Word, b: Word) -> Word:
    """Upper 64 bits of the product of two 64-bit words, with a sticky last bit for the lower 64."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    low, cross, other = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> half) + (cross & mask) + (other & mask)
    high = a1 * b1 + (cross >> half) + (other >> half) + (carry >> half)
    rest = (low & mask) | (carry & mask)
    return high | np.uint64(1 if rest != np.uint64(0) else 0)


@native
def f64_mul_directed(a: Word, b: Word, mode: int) -> Word:
    """mul.{rn,rz,rm,rp}.f64."""
    low = np.uint64(0x7FFFFFFFFFFFFFFF)
    inf = np.uint64(0x7FF0000000000000)
    xa, xb = np.uint64(a) & low, np.uint64(b) & low
    sign = np.int64((np.uint64(a) ^ np.uint64(b)) >> np.uint64(63))
    zero = np.uint64(0)
    infinite = (xa == inf) | (xb == inf)
    if (xa > inf) | (xb > inf) | (infinite & ((xa == zero) | (xb == zero))):
        return f64_nan(a, b, np.uint64(0))
    product = _high_product(normalise(significand_of(xa, 53), 63), normalise(significand_of(xb, 53), 63))
    # both leading bits at 63: the product's bit 126 (bit 62 of the upper half) weighs the sum of both
    w = round_pack(sign, _top(xa, 53, -1022) + _top(xb, 53, -1022) - 62, product, 53, -1022, 1023, mode)
    w = inf if infinite else w
    return w | np.uint64(sign) << np.uint64(63)
