"""PTX `.approx` and `.full` instructions: the special-function unit plus the code that ptxas puts round it.

Scalar functions of raw words. f32 forms: uint32 -> uint32; 16-bit forms: uint16 -> uint16 (packed forms are two of
them); f64 seeds: the upper uint32 word, the result's lower word is 0. `PTX` maps each instruction to its function.

Source: SASS of ptxas 12.9, the same for sm_75 to sm_120. Forms with `.ftz` are the bare machine instruction; the
others scale subnormal (rcp, div.full: also huge) arguments. sin and cos multiply by 1/(2 pi), rounded toward zero,
with and without `.ftz`.

Limits: `rsqrt.approx.f64` without `.ftz` (a longer software sequence) and the `.2pi` forms are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from interp.formats.directed import f32_mul_ftz
from interp.formats.rounding import RN
from interp.runtime.raw import bit_length, f32_add, f32_multiply, native, native_inline
from interp.special import unit
from interp.special.unit import INF, NAN, Word

ONE, TWO24, QUARTER, TWO12, TWO_12, HALF = 0x3F800000, 0x4B800000, 0x3E800000, 0x45800000, 0x39800000, 0x3F000000
MINUS24 = 0xC1C00000
TURN = 0xA2F983  # significand of 1/(2 pi) as the code has it, 0x3E22F983 = TURN * 2**-26


@native_inline
def _is_small(word: Word) -> Word:
    return (np.int64(word) & 0x7F800000) == 0


@native
def rcp_approx(word: Word) -> Word:
    """rcp.approx.f32: s * RCP(s * x), with s chosen so that the unit sees a normal argument and gives a normal
    result."""
    x = np.int64(word)
    a = x & 0x7FFFFFFF
    scale: Word = QUARTER if (a > 0x7E800000) & (a <= INF) else ONE
    scale = TWO24 if _is_small(x) else scale
    return f32_multiply(np.uint32(scale), unit.rcp(f32_multiply(np.uint32(scale), np.uint32(x))))


@native
def rsqrt_approx(word: Word) -> Word:
    """rsqrt.approx.f32: subnormals are scaled by 2**24."""
    small = _is_small(word)
    y = unit.rsq(f32_multiply(np.uint32(word), np.uint32(TWO24 if small else ONE)))
    return f32_multiply(y, np.uint32(TWO12 if small else ONE))


@native
def sqrt_approx(word: Word) -> Word:
    """sqrt.approx.f32: subnormals are scaled by 2**24."""
    small = _is_small(word)
    y = unit.sqrt(f32_multiply(np.uint32(word), np.uint32(TWO24 if small else ONE)))
    return f32_multiply(y, np.uint32(TWO_12 if small else ONE))


@native
def ex2_approx(word: Word) -> Word:
    """ex2.approx.f32: below -126 the square of ex2(x / 2), so that subnormal results appear."""
    x = np.int64(word)
    low = (x > 0xC2FC0000) & (x <= 0xFF800000)
    y = unit.ex2(f32_multiply(np.uint32(x), np.uint32(HALF if low else ONE)))
    return f32_multiply(y, y if low else np.uint32(ONE))


@native
def lg2_approx(word: Word) -> Word:
    """lg2.approx.f32: subnormals are scaled by 2**24, and 24 is subtracted."""
    small = _is_small(word)
    y = unit.lg2(f32_multiply(np.uint32(word), np.uint32(TWO24 if small else ONE)))
    return f32_add(y, np.uint32(MINUS24)) if small else y


@native_inline
def _turns(word: Word) -> Word:
    """x / (2 pi) toward zero; results below the normal range come out as zeros, which is how the unit reads them
    anyway."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    p = (f | 0x800000) * TURN
    long = p >> 47
    exponent = e - 3 + long
    w: Word = (exponent << 23) + ((p >> (23 + long)) & 0x7FFFFF)
    w = 0 if (e == 0) | (exponent <= 0) else w
    special = NAN if f > 0 else INF
    w = special if e == 255 else w
    return np.uint32(w | s << 31)


@native
def sin_approx(word: Word) -> Word:
    """sin.approx(.ftz).f32."""
    return unit.sin(_turns(word))


@native
def cos_approx(word: Word) -> Word:
    """cos.approx(.ftz).f32."""
    return unit.cos(_turns(word))


@native_inline
def widen_f16(half: Word) -> Word:
    """The f32 word of an f16 word, exactly; NaN payloads move along."""
    h = np.int64(half)
    s, e, f = h >> 15, h >> 10 & 31, h & 0x3FF
    n = bit_length(f)
    subnormal = ((n + 102) << 23) + ((f << (24 - n)) & 0x7FFFFF)
    subnormal = subnormal if f > 0 else 0
    w = ((e + 112) << 23) | f << 13 if e > 0 else subnormal
    w = INF | f << 13 if e == 31 else w
    return np.uint32(w | s << 31)


@native_inline
def cut_to_f16(word: Word) -> Word:
    """f32 to f16 by dropping bits: subnormal results kept, overflow to Inf, NaN to 0x7FFF."""
    x = np.int64(word)
    s, e, f = x >> 31, x >> 23 & 255, x & 0x7FFFFF
    drop: Word = 126 - e
    drop = 40 if drop > 40 else drop
    drop = 0 if drop < 0 else drop
    subnormal = (f | 0x800000) >> drop if e > 0 else 0
    w = ((e - 112) << 10) | f >> 13 if e >= 113 else subnormal
    w = 0x7C00 if e >= 143 else w
    w = w | s << 15
    w = 0x7FFF if (e == 255) & (f > 0) else w
    return np.uint16(w)


@native
def ex2_f16(half: Word) -> Word:
    """ex2.approx.f16: the f32 function, cut (not rounded) to f16."""
    return cut_to_f16(unit.ex2(widen_f16(half)))


@native
def tanh_f16(half: Word) -> Word:
    """tanh.approx.f16."""
    return cut_to_f16(unit.tanh(widen_f16(half)))


@native
def ex2_bf16(half: Word) -> Word:
    """ex2.approx.ftz.bf16: the upper half of the f32 function's word."""
    return np.uint16(np.int64(unit.ex2(np.uint32(np.int64(half) << 16))) >> 16)


@native
def tanh_bf16(half: Word) -> Word:
    """tanh.approx.bf16."""
    return np.uint16(np.int64(unit.tanh(np.uint32(np.int64(half) << 16))) >> 16)


@native
def div_approx(a: Word, b: Word) -> Word:
    """div.approx.f32: a * RCP(b), both scaled by 2**24 first if b is zero or subnormal."""
    scale = np.uint32(TWO24 if _is_small(b) else ONE)
    return f32_multiply(f32_multiply(a, scale), unit.rcp(f32_multiply(b, scale)))


@native
def div_approx_ftz(a: Word, b: Word) -> Word:
    """div.approx.ftz.f32: a * RCP(b)."""
    return f32_mul_ftz(a, unit.rcp(np.uint32(b)), RN)


@native_inline
def _full_scale(b: Word, small: Word) -> Word:
    m = np.int64(b) & 0x7FFFFFFF
    scale = QUARTER if (m > 0x7E800000) & (m <= INF) else ONE
    return np.uint32(small if m < 0x00800000 else scale)


@native
def div_full(a: Word, b: Word) -> Word:
    """div.full.f32: as div.approx, and both scaled by 0.25 if |b| is above 2**126."""
    scale = _full_scale(b, TWO24)
    return f32_multiply(f32_multiply(a, scale), unit.rcp(f32_multiply(b, scale)))


@native
def div_full_ftz(a: Word, b: Word) -> Word:
    """div.full.ftz.f32."""
    scale = _full_scale(b, ONE)
    return f32_mul_ftz(f32_mul_ftz(a, scale, RN), unit.rcp(f32_mul_ftz(b, scale, RN)), RN)


PTX: dict[str, Callable[..., Any]] = {
    "rcp.approx.ftz.f32": unit.rcp,
    "rcp.approx.f32": rcp_approx,
    "rsqrt.approx.ftz.f32": unit.rsq,
    "rsqrt.approx.f32": rsqrt_approx,
    "sqrt.approx.ftz.f32": unit.sqrt,
    "sqrt.approx.f32": sqrt_approx,
    "ex2.approx.ftz.f32": unit.ex2,
    "ex2.approx.f32": ex2_approx,
    "lg2.approx.ftz.f32": unit.lg2,
    "lg2.approx.f32": lg2_approx,
    "sin.approx.ftz.f32": sin_approx,
    "sin.approx.f32": sin_approx,
    "cos.approx.ftz.f32": cos_approx,
    "cos.approx.f32": cos_approx,
    "tanh.approx.f32": unit.tanh,
    "ex2.approx.f16": ex2_f16,
    "tanh.approx.f16": tanh_f16,
    "ex2.approx.ftz.bf16": ex2_bf16,
    "tanh.approx.bf16": tanh_bf16,
    "rcp.approx.ftz.f64": unit.rcp64h,
    "rsqrt.approx.ftz.f64": unit.rsq64h,
    "div.approx.f32": div_approx,
    "div.approx.ftz.f32": div_approx_ftz,
    "div.full.f32": div_full,
    "div.full.ftz.f32": div_full_ftz,
}
"""PTX instruction -> scalar function of raw words."""
