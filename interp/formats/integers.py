"""Conversions between integers and floats, and rounding to integral values. PTX ISA 9.0, `cvt`.

Integers of any width travel as 64-bit words here: the caller sign- or zero-extends narrower ones, and takes the low
bits of a result. Out-of-range values clamp to the destination's range. NaN gives 0, unless the source is f64 or the
destination has 64 bits: then 1 << (bits - 1), for unsigned destinations too."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import exponent_of, round_pack, shift_round, significand_of
from interp.formats.small_floats import f16_to_f32
from interp.runtime.raw import leading_bit, native, native_inline

Word = Any


@native_inline
def _magnitude(word: Word) -> Word:
    w = np.uint64(word)
    return ~w + np.uint64(1) if (w >> np.uint64(63)) != np.uint64(0) else w


@native
def s64_to_f32(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f32.s{8,16,32,64} of a sign-extended word."""
    s = np.int64(np.uint64(word) >> np.uint64(63))
    return np.uint32(round_pack(s, 0, _magnitude(word), 24, -126, 127, mode) | np.uint64(s << 31))


@native
def u64_to_f32(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f32.u{8,16,32,64} of a zero-extended word."""
    return np.uint32(round_pack(0, 0, np.uint64(word), 24, -126, 127, mode))


@native
def s64_to_f64(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f64.s{8,16,32,64} of a sign-extended word."""
    s = np.int64(np.uint64(word) >> np.uint64(63))
    return round_pack(s, 0, _magnitude(word), 53, -1022, 1023, mode) | np.uint64(s) << np.uint64(63)


@native
def u64_to_f64(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f64.u{8,16,32,64} of a zero-extended word."""
    return round_pack(0, 0, np.uint64(word), 53, -1022, 1023, mode)


@native
def s64_to_f16(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f16.s{8,16,32,64} of a sign-extended word."""
    s = np.int64(np.uint64(word) >> np.uint64(63))
    return np.uint16(round_pack(s, 0, _magnitude(word), 11, -14, 15, mode) | np.uint64(s << 15))


@native
def u64_to_f16(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.f16.u{8,16,32,64} of a zero-extended word."""
    return np.uint16(round_pack(0, 0, np.uint64(word), 11, -14, 15, mode))


@native
def s64_to_bf16(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.bf16.s{8,16,32,64} of a sign-extended word."""
    s = np.int64(np.uint64(word) >> np.uint64(63))
    return np.uint16(round_pack(s, 0, _magnitude(word), 8, -126, 127, mode) | np.uint64(s << 15))


@native
def u64_to_bf16(word: Word, mode: int) -> Word:
    """cvt.{rn,rz,rm,rp}.bf16.u{8,16,32,64} of a zero-extended word."""
    return np.uint16(round_pack(0, 0, np.uint64(word), 8, -126, 127, mode))


@native_inline
def _to_integer(sign: Word, exponent: Word, significand: Word, mode: int, bits: int, signed: int) -> Word:
    """Rounded and clamped integer of a finite number, as a 64-bit word (sign-extended if signed)."""
    sig = np.uint64(significand)
    huge = exponent + leading_bit(sig) >= 64
    up = exponent if exponent > 0 else 0
    down = -exponent if exponent < 0 else 0
    magnitude = shift_round(sign, sig, down, mode) << np.uint64(up if up < 63 else 63)
    one = np.uint64(1)
    top = one << np.uint64(bits - 1)
    positive_limit = top - one if signed else (top - one) * np.uint64(2) + one
    negative_limit = top if signed else np.uint64(0)
    limit = negative_limit if sign else positive_limit
    magnitude = limit if huge | (magnitude > limit) else magnitude
    negated = ~(magnitude - one) if magnitude != np.uint64(0) else magnitude
    return negated if sign else magnitude


@native
def f32_to_integer(word: Word, mode: int, bits: int, signed: int) -> Word:
    """cvt.{rni,rzi,rmi,rpi}.{s,u}{8,16,32,64}.f32, as uint64 (sign-extended if signed)."""
    a, s = np.int64(word) & 0x7FFFFFFF, np.int64(word) >> 31 & 1
    exponent = exponent_of(a, 24, -126)
    # an infinity decodes as 2**128: huge, hence clamped
    w = _to_integer(s, exponent, significand_of(a, 24), mode, bits, signed)
    nan = np.uint64(0x8000000000000000 if bits == 64 else 0)
    return nan if a > 0x7F800000 else w


@native
def f16_to_integer(half: Word, mode: int, bits: int, signed: int) -> Word:
    """cvt.{rni,rzi,rmi,rpi}.{s,u}{8,16,32,64}.f16, as uint64 (sign-extended if signed)."""
    return f32_to_integer(f16_to_f32(half), mode, bits, signed)


@native
def bf16_to_integer(half: Word, mode: int, bits: int, signed: int) -> Word:
    """cvt.{rni,rzi,rmi,rpi}.{s,u}{8,16,32,64}.bf16, as uint64 (sign-extended if signed)."""
    return f32_to_integer(np.uint32(np.int64(half) << 16), mode, bits, signed)


@native
def f64_to_integer(word: Word, mode: int, bits: int, signed: int) -> Word:
    """cvt.{rni,rzi,rmi,rpi}.{s,u}{8,16,32,64}.f64, as uint64 (sign-extended if signed)."""
    a, s = np.uint64(word) & np.uint64(0x7FFFFFFFFFFFFFFF), np.int64(np.uint64(word) >> np.uint64(63))
    w = _to_integer(s, exponent_of(a, 53, -1022), significand_of(a, 53), mode, bits, signed)
    one = np.uint64(1)
    nan = one << np.uint64(bits - 1)
    nan = ~nan + one if signed else nan
    return nan if a > np.uint64(0x7FF0000000000000) else w


@native
def f32_to_integral(word: Word, mode: int) -> Word:
    """cvt.{rni,rzi,rmi,rpi}.f32.f32: the nearest integral value as f32, sign of zero kept, NaN canonical."""
    x = np.int64(word)
    a, s = x & 0x7FFFFFFF, x >> 31 & 1
    exponent = exponent_of(a, 24, -126)
    down = -exponent if exponent < 0 else 0
    whole = shift_round(s, significand_of(a, 24), down, mode)
    w = np.int64(round_pack(0, 0, whole, 24, -126, 127, mode)) | s << 31
    w = x if exponent >= 0 else w
    return np.uint32(0x7FFFFFFF if a > 0x7F800000 else w)


@native
def f64_to_integral(word: Word, mode: int) -> Word:
    """cvt.{rni,rzi,rmi,rpi}.f64.f64: the nearest integral value as f64, sign of zero kept; NaN keeps its payload, made
    quiet."""
    x = np.uint64(word)
    a, s = x & np.uint64(0x7FFFFFFFFFFFFFFF), np.int64(x >> np.uint64(63))
    exponent = exponent_of(a, 53, -1022)
    down = -exponent if exponent < 0 else 0
    whole = shift_round(s, significand_of(a, 53), down, mode)
    w = round_pack(0, 0, whole, 53, -1022, 1023, mode) | np.uint64(s) << np.uint64(63)
    w = x if exponent >= 0 else w
    return x | np.uint64(1 << 51) if a > np.uint64(0x7FF0000000000000) else w


@native
def f16_to_integral(half: Word, mode: int) -> Word:
    """cvt.{rni,rzi,rmi,rpi}.f16.f16."""
    h = np.int64(half)
    a, s = h & 0x7FFF, h >> 15 & 1
    exponent = exponent_of(a, 11, -14)
    down = -exponent if exponent < 0 else 0
    whole = shift_round(s, significand_of(a, 11), down, mode)
    w = np.int64(round_pack(0, 0, whole, 11, -14, 15, mode)) | s << 15
    w = h if exponent >= 0 else w
    return np.uint16(0x7FFF if a > 0x7C00 else w)
