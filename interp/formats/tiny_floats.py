"""Conversions between f32, f16 or bf16 and the formats of 8 bits and less: FP8, FP6, FP4, ue8m0 and s2f6.

Words: the small formats in uint8 (FP6 in the low six bits, FP4 in the low four), f32 in uint32, f16 and bf16 in uint16.
A float format is named by a number: E4M3 ... E2M1.

Semantics: PTX ISA 9.1, `cvt`. Results are rounded as if the format had no largest number, then saturate. NaN becomes
0x7F in FP8 and the largest positive number in FP6, FP4 and s2f6, which have no NaN; ue8m0 has 0xFF for it.

* ue8m0 has no sign and no zero: the byte is the exponent of |x|, toward zero or up; up to 2^-127 it is 0.
* s2f6 is a two's complement byte in units of 1/64. It saturates at 127 and -128.
* A scale is a ue8m0 byte: targets are divided by it, sources multiplied. The NaN scale gives NaN.
* Stochastic rounding adds random bits to the discarded bits of the significand, both aligned at their tops, and drops
  the sum's fraction. 13 bits for f16, 16 for all others. The manual shows the alignment only in figures: where as
  many bits are discarded as there are random ones no other is possible; for the rest it, and which random bit goes
  where (`random_bits`), is what a public emulator reports from a B200 (its function `ptx_cvt_rs_randoms`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import RN, exponent_of, round_pack, shift_round, significand_of
from interp.runtime.raw import leading_bit, native, native_inline

Word = Any

E4M3, E5M2, E2M3, E3M2, E2M1 = 0, 1, 2, 3, 4
CODES = {"e4m3": E4M3, "e5m2": E5M2, "e2m3": E2M3, "e3m2": E3M2, "e2m1": E2M1}
"""PTX element type -> number of the format."""
F32_INF = 0x7F800000
NAN_SCALE = 0xFF


@native_inline
def precision_of(kind: int) -> int:
    """Bits of the significand, hidden bit included."""
    return 4 if (kind == E4M3) | (kind == E2M3) else (2 if kind == E2M1 else 3)


@native_inline
def emin_of(kind: int) -> int:
    """Exponent of the smallest normal number."""
    if kind == E4M3:
        return -6
    if kind == E5M2:
        return -14
    return -2 if kind == E3M2 else 0


@native_inline
def largest_of(kind: int) -> int:
    """Word of the largest finite number."""
    if kind == E4M3:
        return 0x7E
    if kind == E5M2:
        return 0x7B
    return 7 if kind == E2M1 else 0x1F


@native_inline
def sign_bit_of(kind: int) -> int:
    """Place of the sign bit."""
    return 7 if kind <= E5M2 else (3 if kind == E2M1 else 5)


@native_inline
def _finish(kind: int, word: Word, sign: Word, a: Word) -> Word:
    """The rounded magnitude `word` with saturation, sign and special values; a: the f32 word without its sign."""
    largest = largest_of(kind)
    w: Word = np.int64(word)
    w = largest if (w > largest) | (a == F32_INF) else w
    w = w | sign << sign_bit_of(kind)
    nan = 0x7F if kind <= E5M2 else largest
    return np.uint8(nan if a > F32_INF else w)


@native
def f32_to_tiny(word: Word, kind: int) -> Word:
    """cvt.rn.satfinite.*.f32."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    w = round_pack(s, exponent_of(a, 24, -126), significand_of(a, 24), precision_of(kind), emin_of(kind), 20, RN)
    return _finish(kind, w, s, a)


@native
def tiny_to_f32(byte: Word, kind: int) -> Word:
    """The number as an f32 word, exactly; NaN becomes 0x7FFFFFFF. Bits above the format are ignored."""
    place = sign_bit_of(kind)
    a, s = np.int64(byte) & ((1 << place) - 1), np.int64(byte) >> place & 1
    fraction = precision_of(kind) - 1
    field = a >> fraction
    # the significand in units of the last place of its binade, normalised into f32
    sig = a & ((1 << fraction) - 1) | (1 << fraction if field > 0 else 0)
    exponent = (field if field > 1 else 1) - 1 + emin_of(kind) - fraction
    n = leading_bit(sig)
    w = (exponent + n + 127 << 23) + (sig << 23 - n & 0x7FFFFF) if sig > 0 else 0
    infinite = (kind == E5M2) & (a == 0x7C)
    nan = ((kind == E5M2) & (a > 0x7C)) | ((kind == E4M3) & (a == 0x7F))
    w = F32_INF if infinite else w
    return np.uint32(0x7FFFFFFF if nan else w | s << 31)


@native
def tiny_to_f16(byte: Word, kind: int) -> Word:
    """cvt.rn.f16.*, exact; NaN becomes 0x7FFF."""
    x = np.int64(tiny_to_f32(byte, kind))
    a, s = x & 0x7FFFFFFF, x >> 31
    w = round_pack(s, exponent_of(a, 24, -126), significand_of(a, 24), 11, -14, 15, RN)
    w = np.uint64(0x7C00) if a == F32_INF else w
    return np.uint16(np.uint64(0x7FFF) if a > F32_INF else w | np.uint64(s << 15))


@native_inline
def _scaled_bf16(sign: Word, exponent: Word, significand: Word, scale: Word) -> Word:
    """bf16 word of a number times a ue8m0 scale, one rounding to nearest-even; overflow gives Inf."""
    w = round_pack(sign, exponent + np.int64(scale) - 127, significand, 8, -126, 127, RN)
    w = w | np.uint64(sign << 15)
    return np.uint16(np.uint64(0x7FFF) if np.int64(scale) == NAN_SCALE else w)


@native
def tiny_to_bf16(byte: Word, scale: Word, kind: int) -> Word:
    """cvt.rn.scaled::n2::ue8m0.bf16.*; NaN of either operand becomes 0x7FFF."""
    x = np.int64(tiny_to_f32(byte, kind))
    a, s = x & 0x7FFFFFFF, x >> 31
    w = np.int64(_scaled_bf16(s, exponent_of(a, 24, -126), significand_of(a, 24), scale))
    infinite = (a == F32_INF) & (np.int64(scale) != NAN_SCALE)
    w = 0x7F80 | s << 15 if infinite else w
    return np.uint16(0x7FFF if a > F32_INF else w)


# ------------------------------------------------------------------------------------------------ ue8m0
@native
def f32_to_ue8m0(word: Word, up: int, finite: int) -> Word:
    """cvt.{rz,rp}{.satfinite}.ue8m0.f32: `up` for rp, `finite` for satfinite. NaN, and what overflows, is 0xFF."""
    a = np.int64(word) & 0x7FFFFFFF
    e: Word = a >> 23
    grows = (up != 0) & (a > 0x400000) & ((a & 0x7FFFFF) != 0) & (a < F32_INF)
    e = e + 1 if grows else e
    e = 0xFE if (finite != 0) & (e == 0xFF) else e
    return np.uint8(0xFF if a > F32_INF else e)


@native
def ue8m0_to_bf16(byte: Word) -> Word:
    """cvt.rn.bf16.ue8m0, exact: 2^-127 is subnormal."""
    e = np.int64(byte)
    w = e << 7 if e > 0 else 0x40
    return np.uint16(0x7FFF if e == 0xFF else w)


# ------------------------------------------------------------------------------------------------ s2f6
@native
def f32_to_s2f6(word: Word, scale: Word) -> Word:
    """cvt.rn.satfinite.scaled::n2::ue8m0.s2f6.f32: the quotient in units of 1/64, to nearest-even, clamped."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    exponent = exponent_of(a, 24, -126) + 6 - (np.int64(scale) - 127)
    sig = significand_of(a, 24)
    # a significand of 24 bits from 2^-16 on is beyond the largest number
    big = (exponent > -16) & (sig != np.uint64(0))
    drop = -exponent if exponent < 0 else np.int64(0)
    size: Word = np.int64(shift_round(s, sig, drop, RN))
    size = 128 if big | (a == F32_INF) | (size > 128) else size
    w = -size if s == 1 else (127 if size > 127 else size)
    nan = (a > F32_INF) | (np.int64(scale) == NAN_SCALE)
    return np.uint8(127 if nan else w & 0xFF)


@native
def s2f6_to_bf16(byte: Word, scale: Word) -> Word:
    """cvt.rn.scaled::n2::ue8m0.bf16.s2f6."""
    x = np.int64(byte)
    s = x >> 7
    size = 256 - x if s == 1 else x
    return _scaled_bf16(s, np.int64(-6), np.uint64(size), scale)


# ------------------------------------------------------------------------------------------------ stochastic rounding
@native_inline
def _stochastic(significand: Word, drop: Word, random: Word, bits: int) -> Word:
    """significand * 2**-drop, its fraction plus the random one carried into it, as int64; drop >= bits.

    From bits + 24 dropped bits on nothing can carry."""
    d = drop if drop < bits + 24 else np.int64(0)
    total = (np.int64(significand) + (np.int64(random) << d - bits if d > 0 else 0)) >> d
    return total if d > 0 else np.int64(0)


@native_inline
def _word_stochastic(a: Word, precision: int, emin: int, random: Word, bits: int) -> Word:
    """Magnitude word of a finite f32 magnitude in a format without largest number."""
    exponent = exponent_of(a, 24, -126)
    sig = significand_of(a, 24)
    top = exponent + leading_bit(sig)
    binade = top if top > emin else np.int64(emin)
    quantum = binade - (precision - 1)
    kept = _stochastic(sig, quantum - exponent, random, bits)
    return (binade - emin << precision - 1) + kept if sig != np.uint64(0) else np.int64(0)


@native
def f32_to_half_stochastic(word: Word, random: Word, brain: int) -> Word:
    """cvt.rs.f16.f32 (`brain` 0: 13 random bits) and cvt.rs.bf16.f32 (16); overflow gives Inf, NaN 0x7FFF."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    if brain:
        rounded = a + (np.int64(random) & 0xFFFF) >> 16
        inf = 0x7F80
    else:
        rounded = _word_stochastic(a, 11, -14, np.int64(random) & 0x1FFF, 13)
        inf = 0x7C00
    w = inf if (rounded > inf) | (a == F32_INF) else rounded
    return np.uint16(0x7FFF if a > F32_INF else w | s << 15)


@native_inline
def _reverse16(x: Word) -> Word:
    """The low 16 bits in reverse order."""
    x = (x & 0x5555) << 1 | x >> 1 & 0x5555
    x = (x & 0x3333) << 2 | x >> 2 & 0x3333
    x = (x & 0x0F0F) << 4 | x >> 4 & 0x0F0F
    return (x & 0x00FF) << 8 | x >> 8 & 0x00FF


@native
def random_bits(word: Word, kind: int, element: int) -> Word:
    """The 16 random bits of an element (0 to 3: a, b, e, f) of an x4 conversion, as int64.

    Two neighbours share 16 bits, which the first of them reads in reverse. Of FP8 and FP6 these are the upper half for
    a and b and the lower for e and f; of FP4 the upper bytes of both halves, and the lower ones."""
    x = np.int64(word)
    first = element < 2
    half = x >> 16 & 0xFFFF if first else x & 0xFFFF
    bytes_ = (x >> 8 & 0xFF | x >> 16 & 0xFF00) if first else (x & 0xFF | x >> 8 & 0xFF00)
    chosen = bytes_ if kind == E2M1 else half
    return chosen if element & 1 else _reverse16(chosen)


@native
def f32_to_tiny_stochastic(word: Word, random: Word, kind: int, element: int) -> Word:
    """cvt.rs.satfinite.*.f32 of one element, with the whole random word."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    bits = random_bits(random, kind, element)
    finite = a if a < F32_INF else np.int64(0)
    w = _word_stochastic(finite, precision_of(kind), emin_of(kind), bits, 16)
    return _finish(kind, w, s, a)
