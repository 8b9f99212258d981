"""Conversions between f64 and the other float formats, in every rounding mode. PTX ISA 9.0, `cvt`.

Unlike other conversions these keep a NaN's sign and the top of its payload, and make it quiet (H200).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import exponent_of, round_pack, significand_of
from interp.runtime.raw import leading_bit, native

Word = Any

F64_INF = 0x7FF0000000000000
F64_ABS = 0x7FFFFFFFFFFFFFFF


@native
def f64_to_f32(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f32.f64."""
    a, s = np.uint64(word) & np.uint64(F64_ABS), np.int64(np.uint64(word) >> np.uint64(63))
    w = round_pack(s, exponent_of(a, 53, -1022), significand_of(a, 53), 24, -126, 127, mode)
    w = np.uint64(0x7F800000) if a == np.uint64(F64_INF) else w
    nan = np.uint64(0x7FC00000) | (a >> np.uint64(29)) & np.uint64(0x3FFFFF)
    w = nan if a > np.uint64(F64_INF) else w
    return np.uint32(w | np.uint64(s << 31))


@native
def f64_to_f16(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f16.f64, one rounding."""
    a, s = np.uint64(word) & np.uint64(F64_ABS), np.int64(np.uint64(word) >> np.uint64(63))
    w = round_pack(s, exponent_of(a, 53, -1022), significand_of(a, 53), 11, -14, 15, mode)
    w = np.uint64(0x7C00) if a == np.uint64(F64_INF) else w
    nan = np.uint64(0x7E00) | (a >> np.uint64(42)) & np.uint64(0x1FF)
    w = nan if a > np.uint64(F64_INF) else w
    return np.uint16(w | np.uint64(s << 15))


@native
def f64_to_bf16(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.bf16.f64, one rounding."""
    a, s = np.uint64(word) & np.uint64(F64_ABS), np.int64(np.uint64(word) >> np.uint64(63))
    w = round_pack(s, exponent_of(a, 53, -1022), significand_of(a, 53), 8, -126, 127, mode)
    w = np.uint64(0x7F80) if a == np.uint64(F64_INF) else w
    nan = np.uint64(0x7FC0) | (a >> np.uint64(45)) & np.uint64(0x3F)
    w = nan if a > np.uint64(F64_INF) else w
    return np.uint16(w | np.uint64(s << 15))


@native
def f32_to_f64(word: Word) -> Word:
    """cvt.f64.f32, exact."""
    x = np.uint64(word)
    a, s = x & np.uint64(0x7FFFFFFF), x >> np.uint64(31)
    n = leading_bit(a)
    shift = np.uint64(52 - n if a > np.uint64(0) else 0)
    subnormal = (np.uint64(n + 874) << np.uint64(52)) + ((a << shift) & np.uint64(0xFFFFFFFFFFFFF))
    subnormal = subnormal if a > np.uint64(0) else np.uint64(0)
    w = (a << np.uint64(29)) + np.uint64(896 << 52) if a >= np.uint64(0x800000) else subnormal
    w = (a << np.uint64(29)) | np.uint64(F64_INF) if a >= np.uint64(0x7F800000) else w
    w = w | np.uint64(1 << 51) if a > np.uint64(0x7F800000) else w
    return w | s << np.uint64(63)


@native
def f16_to_f64(half: Word) -> Word:
    """cvt.f64.f16, exact."""
    h = np.uint64(half)
    a, s = h & np.uint64(0x7FFF), h >> np.uint64(15)
    n = leading_bit(a)
    shift = np.uint64(52 - n if a > np.uint64(0) else 0)
    subnormal = (np.uint64(n + 999) << np.uint64(52)) + ((a << shift) & np.uint64(0xFFFFFFFFFFFFF))
    subnormal = subnormal if a > np.uint64(0) else np.uint64(0)
    w = (a << np.uint64(42)) + np.uint64(1008 << 52) if a >= np.uint64(0x400) else subnormal
    w = (a << np.uint64(42)) | np.uint64(F64_INF) if a >= np.uint64(0x7C00) else w
    w = w | np.uint64(1 << 51) if a > np.uint64(0x7C00) else w
    return w | s << np.uint64(63)
