"""The law of the tensor core: align, cut, add, round once. Scalar and obvious; the fast path must equal it bit for bit.

One step ("block") takes up to L products and an accumulator c:

1. Every operand is sign, significand, exponent. Subnormals keep the exponent of the smallest normal number and are not
   renormalised.
2. A product has the exact product of the significands and the sum x of the exponents.
3. NaN operands, Inf * 0 and infinities of both signs give NaN; otherwise an infinity gives that infinity.
4. X is the largest exponent among non-zero products, c if it is not zero, and the floor e0.
5. Every term is cut toward zero to a multiple of 2**(X - F), each by itself.
6. The cut terms are added exactly.
7. The sum is rounded once: f32 toward zero to 23 (some FP8 instructions: 13) fraction bits, with subnormals and
   overflow to Inf; f16 to nearest-even. A sum of zero, and one that rounds to zero, is +0.

Blocks are chained over ascending k, the result of one being the c of the next.

Sources: FTTN (arXiv 2403.00232), Khattak and Mikaitis (arXiv 2512.07004), MMA-Sim (arXiv 2511.10909); compared here
with an H200's answers. The numbers L, F, e0 by architecture are in `table.py`.

Input kinds are small integers (`F16` ...). Operand words are uint32: an f16, bf16, f32 (tf32) or FP8 word in the low
bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.formats.rounding import RN, RZ, round_pack
from interp.runtime.raw import load_u8, load_u16, load_u32, native, native_inline, store_u16, store_u32

Word = Any

F16, BF16, TF32, E4M3, E5M2, F32, E2M3, E3M2, E2M1 = range(9)
KINDS = {
    "f16": F16, "bf16": BF16, "tf32": TF32, "e4m3": E4M3, "e5m2": E5M2, "f32": F32, "e2m3": E2M3, "e3m2": E3M2,
    "e2m1": E2M1,
}  # fmt: skip
"""PTX operand type -> input kind. FP6 stands in bits 5:0 of a byte, FP4 in bits 5:2 (kind::f8f6f4)."""

ZERO, FINITE, INFINITE, NOT_A_NUMBER = 0, 1, 2, 3


@native
def decode(word: Word, kind: int) -> Word:
    """(class, sign, exponent, significand): value = significand * 2**(exponent - fraction_bits(kind))."""
    w = np.int64(word)
    if kind == TF32:
        w = w & 0xFFFFE000  # the unit drops the low bits, so a NaN can become an infinity
    if kind == F16:
        width, fraction_bits = 16, 10
    elif kind == BF16:
        width, fraction_bits = 16, 7
    elif kind == E4M3:
        width, fraction_bits = 8, 3
    elif kind == E5M2:
        width, fraction_bits = 8, 2
    elif kind == E2M3:
        width, fraction_bits = 6, 3
    elif kind == E3M2:
        width, fraction_bits = 6, 2
    elif kind == E2M1:
        width, fraction_bits = 4, 1
        w = w >> 2
    else:
        width, fraction_bits = 32, 23
    sign = w >> (width - 1) & 1
    field_bits = width - 1 - fraction_bits
    field = w >> fraction_bits & ((1 << field_bits) - 1)
    fraction = w & ((1 << fraction_bits) - 1)
    bias = (1 << (field_bits - 1)) - 1
    full = (1 << field_bits) - 1
    if kind == E4M3:  # no infinity; only the last code is NaN
        special = field == full and fraction == 7
        infinite = False
    elif kind >= E2M3:  # every code is a number
        special = infinite = False
    else:
        special = field == full
        infinite = special and fraction == 0
    if special:
        return INFINITE if infinite else NOT_A_NUMBER, sign, np.int64(0), np.int64(0)
    if field == 0:
        return (ZERO if fraction == 0 else FINITE), sign, np.int64(1 - bias), fraction
    return FINITE, sign, field - bias, fraction | 1 << fraction_bits


@native
def fraction_bits(kind: int) -> int:
    """Fraction bits of the significand that `decode` returns."""
    if kind == F16:
        return 10
    if kind == BF16:
        return 7
    if kind in (E4M3, E2M3):
        return 3
    if kind in (E5M2, E3M2):
        return 2
    return 1 if kind == E2M1 else 23


@native
def cut(significand: Word, shift: Word) -> Word:
    """significand * 2**shift toward zero."""
    if shift >= 0:
        return significand << shift
    return significand >> -shift if shift > -63 else np.int64(0)


@native
def round_sum(total: Word, exponent: Word, out_kind: int, out_fraction: int) -> Word:
    """total * 2**exponent in the result format, as a word: f32 toward zero to `out_fraction` bits, f16 to
    nearest-even."""
    sign = np.int64(1 if total < 0 else 0)
    magnitude = np.uint64(-total if total < 0 else total)
    if out_kind == F16:
        w = np.int64(round_pack(sign, exponent, magnitude, 11, -14, 15, RN))
        return np.uint32(w | sign << 15 if w else 0)
    w = np.int64(round_pack(sign, exponent, magnitude, out_fraction + 1, -126, 127, RZ)) << (23 - out_fraction)
    if w == ((0xFF << out_fraction) - 1) << (23 - out_fraction) and overflows(magnitude, exponent):
        w = np.int64(0x7F800000)  # overflow is an infinity although rounding is toward zero
    return np.uint32(w | sign << 31 if w else 0)


@native
def overflows(magnitude: Word, exponent: Word) -> bool:
    """Whether magnitude * 2**exponent >= 2**128."""
    need = 128 - exponent
    if need <= 0:
        return bool(magnitude != np.uint64(0))
    return bool(need < 64 and (magnitude >> np.uint64(need)) != np.uint64(0))


@native
def dot_block(
    a: int,
    b: int,
    step_a: int,
    step_b: int,
    length: int,
    kind_a: int,
    kind_b: int,
    c: Word,
    out_kind: int,
    fraction: int,
    floor: int,
    out_fraction: int,
    shift: int = 0,
) -> Word:
    """One block: `length` products of the words at a + i*step_a and b + i*step_b (decoded as in `load_word`), times
    2**shift, plus c."""
    nan = np.uint32(0x7FFF if out_kind == F16 else 0x7FFFFFFF)
    class_c, sign_c, exponent_c, significand_c = decode(c, F16 if out_kind == F16 else F32)
    bits_c = 10 if out_kind == F16 else 23
    largest = np.int64(floor)
    positive, negative = False, False
    if class_c == NOT_A_NUMBER:
        return nan
    if class_c == INFINITE:
        positive, negative = sign_c == 0, sign_c == 1
    elif class_c == FINITE:
        largest = max(largest, exponent_c)
    for i in range(length):
        class_a, sign_a, exponent_a, _sa = decode(load_word(a + i * step_a, kind_a), kind_a)
        class_b, sign_b, exponent_b, _sb = decode(load_word(b + i * step_b, kind_b), kind_b)
        low, high = min(class_a, class_b), max(class_a, class_b)
        if high == NOT_A_NUMBER or (high == INFINITE and low == ZERO):
            return nan
        if high == INFINITE:
            if sign_a ^ sign_b:
                negative = True
            else:
                positive = True
        elif low == FINITE:
            largest = max(largest, exponent_a + exponent_b + shift)
    if positive and negative:
        return nan
    if positive or negative:
        infinity = 0x7C00 if out_kind == F16 else 0x7F800000
        return np.uint32(infinity | (1 << (15 if out_kind == F16 else 31) if negative else 0))
    total = cut(significand_c, exponent_c - bits_c - largest + fraction)
    if sign_c:
        total = -total
    scale = fraction_bits(kind_a) + fraction_bits(kind_b)
    for i in range(length):
        _ca, sign_a, exponent_a, significand_a = decode(load_word(a + i * step_a, kind_a), kind_a)
        _cb, sign_b, exponent_b, significand_b = decode(load_word(b + i * step_b, kind_b), kind_b)
        term = cut(significand_a * significand_b, exponent_a + exponent_b + shift - scale - largest + fraction)
        total = total - term if sign_a ^ sign_b else total + term
    return round_sum(total, largest - fraction, out_kind, out_fraction)


@native
def load_word(address: int, kind: int) -> Word:
    """The operand word of a kind at an address, as uint32."""
    if kind in (F16, BF16):
        return np.uint32(load_u16(address))
    if kind in (E4M3, E5M2) or kind >= E2M3:
        return np.uint32(load_u8(address))
    return load_u32(address)


@native
def dot(
    a: int,
    b: int,
    step_a: int,
    step_b: int,
    length: int,
    kind_a: int,
    kind_b: int,
    c: Word,
    out_kind: int,
    block: int,
    fraction: int,
    floor: int,
    out_fraction: int,
) -> Word:
    """A chain of blocks over `length` products; c and the result are words of the output kind (F16, or F32)."""
    k = 0
    while k < length:
        n = min(block, length - k)
        c = dot_block(
            a + k * step_a,
            b + k * step_b,
            step_a,
            step_b,
            n,
            kind_a,
            kind_b,
            c,
            out_kind,
            fraction,
            floor,
            out_fraction,
        )
        k += n
    return c


@native_inline
def store_result(address: int, word: Word, out_kind: int) -> None:
    """Store a result word of the output kind."""
    if out_kind == F16:
        store_u16(address, np.uint16(word))
    else:
        store_u32(address, np.uint32(word))
