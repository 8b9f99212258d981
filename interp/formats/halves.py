"""f16 and bf16 arithmetic, rounded to nearest-even: scalar functions of uint16 words.

Why one rounding is enough. f16 sums and products are rounded from f32, which has 24 >= 2 * 11 + 2 bits, a width at
which rounding twice cannot differ; f16 fma from f64: the product is exact there, and where the sum is not, it is so
close to the f16 number c that both round to c, or overflows either way. bf16 has f32's exponent range, so its
subnormals would be rounded twice: sums, products and fma go through an f64 rounded to odd, which keeps what a later
rounding needs.

NaN results are 0x7FFF. Source: PTX ISA 9.0, half-precision instructions; compared with an H200.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.doubles import f16_to_f64, f32_to_f64, f64_to_bf16, f64_to_f16
from interp.formats.rounding import RN
from interp.formats.small_floats import f16_to_f32, f32_to_f16
from interp.runtime.raw import bits_from_f64, f32_add, f32_multiply, f64_from_bits, native, native_inline

Word = Any

NAN = 0x7FFF


@native_inline
def _canonical(half: Word, inf: int) -> Word:
    """A conversion from f64 keeps NaN payloads; arithmetic does not."""
    h = np.int64(half)
    return np.uint16(NAN if (h & 0x7FFF) > inf else h)


@native
def f16_add(a: Word, b: Word) -> Word:
    """add.rn.f16."""
    return f32_to_f16(f32_add(f16_to_f32(a), f16_to_f32(b)), RN)


@native
def f16_sub(a: Word, b: Word) -> Word:
    """sub.rn.f16."""
    return f16_add(a, np.uint16(np.int64(b) ^ 0x8000))


@native
def f16_mul(a: Word, b: Word) -> Word:
    """mul.rn.f16."""
    return f32_to_f16(f32_multiply(f16_to_f32(a), f16_to_f32(b)), RN)


@native_inline
def _wide_f16(half: Word) -> Word:
    return f64_from_bits(f16_to_f64(half))


@native
def _product(x: Word, y: Word) -> Word:
    """x * y; compiled always, because plain Python warns of invalid operations."""
    return x * y


@native
def _multiply_add(x: Word, y: Word, z: Word) -> Word:
    """Bits of the f64 x * y + z, two operations."""
    return bits_from_f64(x * y + z)


@native
def f16_fma(a: Word, b: Word, c: Word) -> Word:
    """fma.rn.f16."""
    return _canonical(f64_to_f16(np.uint64(_multiply_add(_wide_f16(a), _wide_f16(b), _wide_f16(c))), RN), 0x7C00)


@native_inline
def _wide_bf16(half: Word) -> Word:
    return f64_from_bits(f32_to_f64(np.uint32(np.int64(half) << 16)))


@native
def _sum_to_odd(x: Word, y: Word) -> Word:
    """Bits of the f64 x + y, made odd if inexact: then rounding again to fewer bits is as if from the exact sum."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    bits = bits_from_f64(total)
    even = (bits & np.uint64(1)) == np.uint64(0)
    inexact = (error != 0.0) & (error == error)
    # the exact sum is beyond an even neighbour on the side of the error: step to the odd word there
    outward = (error > 0.0) == (total > 0.0)
    if inexact & even:
        return bits + np.uint64(1) if outward else bits - np.uint64(1)
    return bits


@native
def bf16_fma(a: Word, b: Word, c: Word) -> Word:
    """fma.rn.bf16; the product of two bf16 is exact in f64."""
    return _canonical(
        f64_to_bf16(np.uint64(_sum_to_odd(_product(_wide_bf16(a), _wide_bf16(b)), _wide_bf16(c))), RN), 0x7F80
    )


@native
def bf16_add(a: Word, b: Word) -> Word:
    """add.rn.bf16."""
    return _canonical(f64_to_bf16(np.uint64(_sum_to_odd(_wide_bf16(a), _wide_bf16(b))), RN), 0x7F80)


@native
def bf16_sub(a: Word, b: Word) -> Word:
    """sub.rn.bf16."""
    return bf16_add(a, np.uint16(np.int64(b) ^ 0x8000))


@native
def bf16_mul(a: Word, b: Word) -> Word:
    """mul.rn.bf16."""
    return _canonical(f64_to_bf16(bits_from_f64(_product(_wide_bf16(a), _wide_bf16(b))), RN), 0x7F80)


@native_inline
def _order(half: Word) -> Word:
    """A key that sorts like the number, with -0 below +0."""
    h = np.int64(half)
    return (h & 0x7FFF) ^ -(h >> 15 & 1)


@native_inline
def _choose(a: Word, b: Word, inf: int, largest: int, propagate: int) -> Word:
    first = (_order(a) >= _order(b)) if largest else (_order(a) <= _order(b))
    chosen = np.int64(a) if first else np.int64(b)
    nan_a, nan_b = (np.int64(a) & 0x7FFF) > inf, (np.int64(b) & 0x7FFF) > inf
    chosen = np.int64(a) if nan_b else chosen
    chosen = np.int64(b) if nan_a else chosen
    nan = (nan_a | nan_b) if propagate else (nan_a & nan_b)
    return np.uint16(NAN if nan else chosen)


@native
def f16_min(a: Word, b: Word, propagate: int) -> Word:
    """min{.NaN}.f16: a NaN operand loses, with `propagate` it wins; -0 is less than +0."""
    return _choose(a, b, 0x7C00, 0, propagate)


@native
def f16_max(a: Word, b: Word, propagate: int) -> Word:
    """max{.NaN}.f16."""
    return _choose(a, b, 0x7C00, 1, propagate)


@native
def bf16_min(a: Word, b: Word, propagate: int) -> Word:
    """min{.NaN}.bf16."""
    return _choose(a, b, 0x7F80, 0, propagate)


@native
def bf16_max(a: Word, b: Word, propagate: int) -> Word:
    """max{.NaN}.bf16."""
    return _choose(a, b, 0x7F80, 1, propagate)


@native
def xorsign_abs(a: Word, b: Word, chosen: Word) -> Word:
    """`.xorsign.abs`: `chosen` is min or max of |a| and |b|; the sign is that of a * b, and a NaN stays canonical."""
    c = np.int64(chosen)
    return np.uint16(c if c == NAN else c | ((np.int64(a) ^ np.int64(b)) & 0x8000))


@native
def flush_f16(half: Word) -> Word:
    """`.ftz` on f16: subnormals become zeros of the same sign."""
    h = np.int64(half)
    return np.uint16(h & 0x8000 if (h & 0x7C00) == 0 else h)
