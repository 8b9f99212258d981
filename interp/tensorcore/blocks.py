"""The law of the tensor core for small types and one scale a row: one result at a time, from operands decoded once.

Extends `model.py` (whose steps it repeats) by what `tcgen05` has beside the plain kinds, after numerics of MMA-Sim
2.1.1 (arXiv 2511.10909) and the PTX ISA; not compared with hardware here:

* 6- and 4-bit types (e2m3, e3m2, e2m1): no infinity, no NaN; subnormals keep the exponent of the smallest normal
  number.
* One scale a row and a column (kind::mxf8f6f4): its exponents are added to those of the products, before the largest
  is taken. The accumulator is not scaled.
* `scale-input-d`: the exponent of the accumulator is lowered. (A guess: no model has it.)

Kinds mxf4 and mxf4nvf4: `scaled.py`.

An operand row is decoded to pairs of i32, significand with its sign and exponent; zero has the exponent NOTHING, an
infinity INFINITY, a NaN NAN.
"""

from __future__ import annotations

from typing import Any

from interp.runtime.raw import i32, i64, load_u8, load_u32, native, store_u32, u32
from interp.tensorcore.model import E4M3, E5M2, F16, F32, NOT_A_NUMBER, cut, decode, fraction_bits, load_word, round_sum
from interp.tensorcore.model import INFINITE as CLASS_INFINITE
from interp.tensorcore.model import ZERO as CLASS_ZERO

Word = Any

E2M3, E3M2, E2M1 = 6, 7, 8
"""Kinds beside those of `model.py`: bytes with the number in bits 5:0 (e2m1: 5:2)."""
NOTHING, INFINITY, NAN = -(1 << 14), 1 << 14, 1 << 15


@native
def small_fraction(kind: int) -> int:
    """Fraction bits of the significands that `decode_row` gives."""
    if kind in (E2M3, E2M1):
        return i64(3)
    if kind == E3M2:
        return i64(2)
    return i64(fraction_bits(kind))


@native
def _put(out: int, k: int, significand: int, exponent: int) -> None:
    store_u32(out + 8 * k, u32(significand))
    store_u32(out + 8 * k + 4, u32(exponent))


@native
def decode_row(source: int, kind: int, count: int, negate: bool, out: int) -> None:
    """Decode `count` consecutive elements."""
    for k in range(count):
        if kind >= E2M3:
            w = i64(load_u8(source + k))
            if kind == E2M1:
                w &= 0x3C  # four bits in 5:2 are e2m3 with two zeros behind
            fraction = 2 if kind == E3M2 else 3
            bias = 3 if kind == E3M2 else 1
            field, significand = (w & 31) >> fraction, w & ((1 << fraction) - 1)
            exponent = i64(1 - bias)
            if field:
                exponent, significand = field - bias, significand | 1 << fraction
            elif significand == 0:
                exponent = i64(NOTHING)
            sign = w >> 5 & 1
        else:
            size = 1 if kind in (E4M3, E5M2) else 2 if kind < 2 else 4
            class_, sign, exponent, significand = decode(load_word(source + k * size, kind), kind)
            if class_ == CLASS_ZERO:
                exponent = i64(NOTHING)
            elif class_ == CLASS_INFINITE:
                exponent, significand = i64(INFINITY), i64(1)
            elif class_ == NOT_A_NUMBER:
                exponent = i64(NAN)
        if negate:
            sign ^= 1
        _put(out, k, -significand if sign else significand, exponent)


@native
def _signed(address: int) -> int:
    return i64(i32(load_u32(address)))


@native
def _special(a: int, b: int, length: int, c: Word, out_kind: int) -> Word:
    """The result where NaN or infinities take part: NaN, or an infinity."""
    nan = u32(0x7FFF if out_kind == F16 else 0x7FFFFFFF)
    class_, sign, _e, _s = decode(c, F16 if out_kind == F16 else F32)
    positive, negative = class_ == CLASS_INFINITE and sign == 0, class_ == CLASS_INFINITE and sign == 1
    if class_ == NOT_A_NUMBER:
        return nan
    for k in range(length):
        ea, eb = _signed(a + 8 * k + 4), _signed(b + 8 * k + 4)
        if ea == NAN or eb == NAN:
            return nan
        if ea == INFINITY or eb == INFINITY:
            if ea == NOTHING or eb == NOTHING:
                return nan
            if (_signed(a + 8 * k) < 0) != (_signed(b + 8 * k) < 0):
                negative = True
            else:
                positive = True
    if positive and negative:
        return nan
    infinity = u32(0x7C00 if out_kind == F16 else 0x7F800000)
    return infinity | u32(0x8000 if out_kind == F16 else 0x80000000) if negative else infinity


@native
def dot_terms(
    a: int, b: int, length: int, scale_bits: int, c: Word, out_kind: int, shift: int, c_shift: int, fraction: int,
    floor: int,
) -> Word:  # fmt: skip
    """One block: the sum of `length` products times 2**shift, plus c times 2**c_shift, in the output kind (F16 or F32).

    a, b: decoded rows; scale_bits: fraction bits of a product of their significands."""
    class_, sign_c, exponent_c, significand_c = decode(c, F16 if out_kind == F16 else F32)
    largest, beyond = i64(NOTHING), class_ >= CLASS_INFINITE
    for k in range(length):
        e = _signed(a + 8 * k + 4) + _signed(b + 8 * k + 4)
        largest = max(largest, e)
    if beyond or largest >= INFINITY // 2:
        return _special(a, b, length, c, out_kind)
    for k in range(length):  # an infinity times zero is not large
        if _signed(a + 8 * k + 4) >= INFINITY or _signed(b + 8 * k + 4) >= INFINITY:
            return _special(a, b, length, c, out_kind)
    top = i64(floor)
    if largest > NOTHING // 2:
        top = max(top, largest + shift)
    if class_ != CLASS_ZERO:
        top = max(top, exponent_c + c_shift)
    total = cut(significand_c, exponent_c + c_shift - (10 if out_kind == F16 else 23) - top + fraction)
    if sign_c:
        total = -total
    base = shift - scale_bits - top + fraction
    for k in range(length):
        product = _signed(a + 8 * k) * _signed(b + 8 * k)
        if product != 0:
            term = cut(abs(product), _signed(a + 8 * k + 4) + _signed(b + 8 * k + 4) + base)
            total = total - term if product < 0 else total + term
    return round_sum(total, top - fraction, out_kind, 23)
