"""The machine instructions of the special-function unit: MUFU.RCP, RSQ, SQRT, EX2, LG2, SIN, COS, TANH and the f64
seeds.

Every function takes and returns raw words (uint32: an f32, or the upper word of an f64) and computes in 64-bit
integers, with selection instead of branches, so that a loop over lanes vectorises. No libm, no floating point. The
formulas and what was checked against the hardware are in `coefficients.py`; this file adds the argument reduction,
exponents and special values:

* the unit reads subnormals as zeros and returns signed zeros instead of subnormals, except tanh, which passes them
  through;
* NaN of either sign and any payload, rsqrt, sqrt and lg2 of negative normal numbers, and sin and cos of Inf give
  0x7FFFFFFF;
* the final shift drops bits; the only rounding is the constant in the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.runtime.raw import bit_length, native, native_inline
from interp.special.coefficients import TABLES, TANH_FIRST, TANH_INDEX_BITS

Word = Any

NAN = 0x7FFFFFFF
INF = 0x7F800000
NEGATIVE = 0x80000000

RCP0, RCP1, RCP2 = TABLES["rcp"]
RSQ0, RSQ1, RSQ2 = TABLES["rsqrt"]
SQRT0, SQRT1, SQRT2 = TABLES["sqrt"]
EX0, EX1, EX2 = TABLES["ex2"]
LG0, LG1, LG2 = TABLES["lg2"]
SIN0, SIN1, SIN2 = TABLES["sin"]
TANH0, TANH1, TANH2 = TABLES["tanh"]


@native_inline
def square(r: Word) -> Word:
    """The unit's truncating squarer, about r*r / 2**19 for 0 <= r < 2**17.

    Each set bit i of r adds r >> (18 - i), and the sum loses its last bit. That keeps the partial products of bits i
    and j with i + j >= 18: with r = h * 2**9 + l, all of h * h, and of the two equal cross sums what is left of each h
    bit times l."""
    r = np.int32(r)
    h, low = r >> np.int32(9), r & np.int32(0x1FF)
    total = (h * h) >> np.int32(1)
    for a in range(1, 8):
        total += (low >> np.int32(9 - a)) & -((h >> np.int32(a)) & np.int32(1))
    return np.int64(total)


@native_inline
def shift_cut(v: Word, n: Word) -> Word:
    """v * 2**n for v >= 0, bits below the point dropped; |n| < 63."""
    left = n if n > 0 else 0
    right = -n if n < 0 else 0
    return (v << left) >> right


@native_inline
def pack(sign: Word, e: Word, f: Word) -> Word:
    """f32 word from a biased exponent and a 24-bit significand (2**24 allowed); underflow gives a signed 0, overflow
    Inf."""
    up = f >> 24
    e = e + up
    f = f >> up
    w = INF if e >= 255 else (e << 23) + (f & 0x7FFFFF)
    w = 0 if (e <= 0) | (f == 0) else w
    return w | sign << 31


@native
def rcp(word: Word) -> Word:
    """MUFU.RCP: reciprocal."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    r, seg = f & 0xFFFF, f >> 16
    w = pack(s, 253 - e, (RCP0[seg] + RCP1[seg] * r + RCP2[seg] * square(r << 1)) >> 15)
    w = s << 31 | INF if e == 0 else w
    special = NAN if f > 0 else s << 31
    w = special if e == 255 else w
    return np.uint32(w)


@native
def rsq(word: Word) -> Word:
    """MUFU.RSQ: reciprocal square root; powers of 4 are exact."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    u = e - 127
    m = f | (u & 1) << 23
    r, seg = m & 0x1FFFF, m >> 17
    v = (RSQ0[seg] + RSQ1[seg] * r + RSQ2[seg] * square(r)) >> 16
    w = pack(0, 126 - (u >> 1), v)
    w = (127 - (u >> 1)) << 23 if m == 0 else w
    w = 0 if e == 255 else w
    w = NAN if s > 0 else w
    w = s << 31 | INF if e == 0 else w
    w = NAN if (e == 255) & (f > 0) else w
    return np.uint32(w)


@native
def sqrt(word: Word) -> Word:
    """MUFU.SQRT: square root."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    u = e - 127
    odd = u & 1
    r, seg = f & 0x1FFFF, odd << 6 | f >> 17
    v = (SQRT0[seg] + SQRT1[seg] * r + SQRT2[seg] * square(r)) >> (17 - odd)
    w = pack(0, 127 + (u >> 1), v)
    w = INF if e == 255 else w
    w = NAN if s > 0 else w
    w = s << 31 if e == 0 else w
    w = NAN if (e == 255) & (f > 0) else w
    return np.uint32(w)


@native
def ex2(word: Word) -> Word:
    """MUFU.EX2: 2**x. |x| is cut to a multiple of 2**-23; a negative x takes the one's complement of its fraction."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    m = f | 0x800000 if e > 0 else 0
    n: Word = e - 127
    n = 7 if n > 7 else n
    n = -40 if n < -40 else n
    v = shift_cut(m, n)
    whole, g = v >> 23, v & 0x7FFFFF
    inexact = 1 if g > 0 else 0
    below = -whole - inexact
    whole = below if s > 0 else whole
    g = g ^ 0x7FFFFF if (s > 0) & (g > 0) else g
    r, seg = g & 0x1FFFF, g >> 17
    w = pack(0, 127 + whole, (EX0[seg] + EX1[seg] * r + EX2[seg] * square(r)) >> 15)
    limit = 0 if s > 0 else INF
    w = limit if e >= 134 else w
    w = NAN if (e == 255) & (f > 0) else w
    return np.uint32(w)


@native
def lg2(word: Word) -> Word:
    """MUFU.LG2: log2(x). Exponent plus fraction is fixed point with 36 bits; a negative sum is complemented, not
    negated."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    r, seg = f & 0x1FFFF, f >> 17
    v = (LG0[seg] + LG1[seg] * r + LG2[seg] * square(r)) >> 2
    v = 0 if (e == 127) & (f == 0) else v
    v = v + ((e - 127) << 36)
    neg = 1 if v < 0 else 0
    v = v ^ -neg
    n = bit_length(v)
    w = pack(neg, 126 + n - 36, shift_cut(v, 24 - n))
    w = INF if e == 255 else w
    w = NAN if s > 0 else w
    w = NEGATIVE | INF if e == 0 else w
    w = NAN if (e == 255) & (f > 0) else w
    return np.uint32(w)


@native_inline
def _sine(word: Word, quarter: Word) -> Word:
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    m = f | 0x800000 if e > 0 else 0
    n: Word = e - 125
    n = 25 if n > 25 else n
    n = -40 if n < -40 else n
    v = shift_cut(m, n) & 0x1FFFFFF  # quarter turns, 23 bits below the point, whole turns dropped
    q, g = (v >> 23) + quarter, v & 0x7FFFFF
    g = g ^ (-(q & 1) & 0x7FFFFF)
    s = (s * (1 - quarter)) ^ (q >> 1 & 1)
    r, seg = g & 0x1FFFF, g >> 17
    p = SIN0[seg] + SIN1[seg] * r + SIN2[seg] * square(r)  # 37 bits below the point
    n = bit_length(p)
    w = pack(s, 126 + n - 37, shift_cut(p, 24 - n))
    w = NAN if e == 255 else w
    return np.uint32(w)


@native
def sin(word: Word) -> Word:
    """MUFU.SIN: the argument is in turns."""
    return _sine(word, 0)


@native
def cos(word: Word) -> Word:
    """MUFU.COS: the argument is in turns."""
    return _sine(word, 1)


@native
def tanh(word: Word) -> Word:
    """MUFU.TANH: the argument itself below 2**-8 (subnormals too), one from 8 on."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    b: Word = e - 119
    b = 0 if b < 0 else b
    b = 10 if b > 10 else b
    k = TANH_INDEX_BITS[b]
    seg = TANH_FIRST[b] + (f >> (23 - k))
    r = f >> (6 - k) & 0x1FFFF
    p = TANH0[seg] + TANH1[seg] * r + TANH2[seg] * square(r)  # 40 bits below the point
    n = bit_length(p)
    w = pack(0, 126 + n - 40, shift_cut(p, 24 - n))
    w = e << 23 | f if e < 119 else w
    w = 127 << 23 if e >= 130 else w
    w = w | s << 31
    w = NAN if (e == 255) & (f > 0) else w
    return np.uint32(w)


@native_inline
def _pack_upper(s: Word, e: Word, f: Word) -> Word:
    up = f >> 24
    e = e + up
    m = (f >> up) >> 3 & 0xFFFFF
    w = (e << 20) + m if e > 0 else 0
    return w | s << 31


@native
def rcp64h(word: Word) -> Word:
    """MUFU.RCP64H: upper word of the f64 reciprocal seed; the argument's lower word is ignored, the result's is 0."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 20 & 2047, (x & 0xFFFFF) << 3
    r, seg = f & 0xFFFF, f >> 16
    w = _pack_upper(s, 2045 - e, (RCP0[seg] + RCP1[seg] * r + RCP2[seg] * square(r << 1)) >> 15)
    w = s << 31 | 0x7FF00000 if e == 0 else w
    special = NAN if f > 0 else s << 31
    w = special if e == 2047 else w
    return np.uint32(w)


@native
def rsq64h(word: Word) -> Word:
    """MUFU.RSQ64H: upper word of the f64 reciprocal square root seed."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 20 & 2047, (x & 0xFFFFF) << 3
    u = e - 1023
    m = f | (u & 1) << 23
    r, seg = m & 0x1FFFF, m >> 17
    v = (RSQ0[seg] + RSQ1[seg] * r + RSQ2[seg] * square(r)) >> 16
    w = _pack_upper(0, 1022 - (u >> 1), v)
    w = (1023 - (u >> 1)) << 20 if m == 0 else w
    w = 0 if e == 2047 else w
    w = NAN if s > 0 else w
    w = s << 31 | 0x7FF00000 if e == 0 else w
    w = NAN if (e == 2047) & (f > 0) else w
    return np.uint32(w)
