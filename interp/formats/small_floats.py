"""Conversions between f32 and the smaller formats: f16, bf16, tf32, e4m3, e5m2.

Words: f32 and tf32 in uint32, f16 and bf16 in uint16, FP8 in uint8. `mode` is one of `rounding.RN` ... `RNA`; called
from compiled code with a constant it folds away. Modifiers are functions on the result: `relu_*`, `sat_*` (clamp to
[0, 1], NaN to 0) and `satfinite_*` (Inf to the largest finite number).

Semantics: PTX ISA 9.0, `cvt`. NaN becomes 0x7FFF, in FP8 0x7F, of either sign; `cvt.f32.bf16` is a shift and keeps
payloads. FP8 targets always round to nearest-even as if unbounded, then saturate. `cvt.rna.tf32` adds half a unit to
the word and masks (SASS), so that a NaN whose payload is all in the low 13 bits becomes Inf."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import RN, RNA, exponent_of, round_pack, shift_round, significand_of
from interp.runtime.raw import leading_bit, native

Word = Any

F32_INF = 0x7F800000


@native
def f32_to_f16(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f16.f32."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    w = round_pack(s, exponent_of(a, 24, -126), significand_of(a, 24), 11, -14, 15, mode)
    w = np.uint64(0x7C00) if a == F32_INF else w
    w = w | np.uint64(s << 15)
    return np.uint16(np.uint64(0x7FFF) if a > F32_INF else w)


@native
def f32_to_bf16(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.bf16.f32. The formats share exponents, so rounding acts on the word itself."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    w = shift_round(s, a, 16, mode)
    toward = (mode == 1) | ((mode == 2) & (s == 0)) | ((mode == 3) & (s != 0))
    w = np.uint64(0x7F7F) if (w >= np.uint64(0x7F80)) & toward & (a < F32_INF) else w
    w = w | np.uint64(s << 15)
    return np.uint16(np.uint64(0x7FFF) if a > F32_INF else w)


@native
def f16_to_f32(half: Word) -> Word:
    """cvt.f32.f16, exact; NaN becomes 0x7FFFFFFF."""
    h = np.int64(half)
    a, s = h & 0x7FFF, h >> 15 & 1
    n = leading_bit(a)
    subnormal = ((n + 103) << 23) + ((a << (23 - n)) & 0x7FFFFF) if a > 0 else 0
    w = (a << 13) + (112 << 23) if a >= 0x400 else subnormal
    w = F32_INF if a == 0x7C00 else w
    w = w | s << 31
    return np.uint32(0x7FFFFFFF if a > 0x7C00 else w)


@native
def bf16_to_f32(half: Word) -> Word:
    """cvt.f32.bf16: a shift."""
    return np.uint32(np.int64(half) << 16)


@native
def f32_to_tf32(word: Word, mode: int) -> Word:
    """cvt.{rna,rn,rz}.tf32.f32, low 13 bits 0."""
    x = np.int64(word)
    a, s = x & 0x7FFFFFFF, x >> 31 & 1
    rounded: Word = np.int64(shift_round(s, a, 13, mode)) << 13
    rounded = rounded | s << 31
    exact = 0x7FFFE000 if a > F32_INF else x
    special = x & 0xFFFFE000 if mode == RNA else exact
    return np.uint32(rounded if a < F32_INF else special)


@native
def f32_to_e4m3(word: Word) -> Word:
    """cvt.rn.satfinite.e4m3.f32."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    # rounding happens in a format of the same grid with one more binade; what exceeds 448 saturates
    w: Word = np.int64(round_pack(s, exponent_of(a, 24, -126), significand_of(a, 24), 4, -6, 9, RN))
    w = 0x7E if (w > 0x7E) | (a == F32_INF) else w
    w = w | s << 7
    return np.uint8(0x7F if a > F32_INF else w)


@native
def f32_to_e5m2(word: Word) -> Word:
    """cvt.rn.satfinite.e5m2.f32."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    w: Word = np.int64(round_pack(s, exponent_of(a, 24, -126), significand_of(a, 24), 3, -14, 15, RN))
    w = 0x7B if (w > 0x7B) | (a == F32_INF) else w
    w = w | s << 7
    return np.uint8(0x7F if a > F32_INF else w)


@native
def f16_to_e4m3(half: Word) -> Word:
    """cvt.rn.satfinite.e4m3.f16."""
    return f32_to_e4m3(f16_to_f32(half))


@native
def f16_to_e5m2(half: Word) -> Word:
    """cvt.rn.satfinite.e5m2.f16."""
    return f32_to_e5m2(f16_to_f32(half))


@native
def e5m2_to_f16(byte: Word) -> Word:
    """cvt.rn.f16.e5m2: a shift; NaN becomes 0x7FFF."""
    b = np.int64(byte)
    return np.uint16(0x7FFF if (b & 0x7F) > 0x7C else b << 8)


@native
def e4m3_to_f16(byte: Word) -> Word:
    """cvt.rn.f16.e4m3, exact; NaN becomes 0x7FFF."""
    b = np.int64(byte)
    a, s = b & 0x7F, b >> 7 & 1
    n = leading_bit(a)
    subnormal = ((n + 6) << 10) + ((a << (10 - n)) & 0x3FF) if a > 0 else 0
    w = (a << 7) + (8 << 10) if a >= 8 else subnormal
    w = w | s << 15
    return np.uint16(0x7FFF if a == 0x7F else w)


@native
def relu_f32(word: Word) -> Word:
    """`.relu` on a converted f32 or tf32 word: negative to +0; NaN is already canonical."""
    w = np.int64(word)
    return np.uint32(0 if w >> 31 else w)


@native
def relu_half(half: Word) -> Word:
    """`.relu` on an f16 or bf16 result: negative to +0; NaN is already canonical."""
    h = np.int64(half)
    return np.uint16(0 if h >> 15 else h)


@native
def relu_fp8(byte: Word) -> Word:
    """`.relu` on an FP8 result."""
    b = np.int64(byte)
    return np.uint8(0 if b >> 7 else b)


@native
def sat_f16(half: Word) -> Word:
    """`.sat` on f16: clamp to [0, 1], NaN to 0."""
    h = np.int64(half)
    return np.uint16(0 if h > 0x7C00 else (0x3C00 if h > 0x3C00 else h))


@native
def sat_bf16(half: Word) -> Word:
    """`.sat` on bf16: clamp to [0, 1], NaN to 0."""
    h = np.int64(half)
    return np.uint16(0 if h > 0x7F80 else (0x3F80 if h > 0x3F80 else h))


@native
def sat_f32(word: Word) -> Word:
    """`.sat` on f32: clamp to [0, 1], NaN to 0."""
    w = np.int64(word)
    return np.uint32(0 if w > 0x7F800000 else (0x3F800000 if w > 0x3F800000 else w))


@native
def satfinite_f16(half: Word) -> Word:
    """`.satfinite` on f16: Inf to +-65504."""
    h = np.int64(half)
    return np.uint16(h - 1 if (h & 0x7FFF) == 0x7C00 else h)


@native
def satfinite_bf16(half: Word) -> Word:
    """`.satfinite` on bf16: Inf to the largest finite number."""
    h = np.int64(half)
    return np.uint16(h - 1 if (h & 0x7FFF) == 0x7F80 else h)


@native
def satfinite_tf32(word: Word) -> Word:
    """`.satfinite` on tf32: a word that is Inf or NaN loses one unit (SASS), so Inf becomes the largest finite
    number."""
    w = np.int64(word)
    return np.uint32(w - 0x2000 if (w & 0x7F800000) == 0x7F800000 else w)
