"""Block-scaled products, and blocks of FP6 and FP4, against exact rationals written from the description alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.tensorcore.model import F32, KINDS, dot_block
from interp.tensorcore.scaled import decode_nibbles, dot_groups

NAN = 0x7FFFFFFF
FORMATS = {"e4m3": (4, 3), "e5m2": (5, 2), "e2m3": (2, 3), "e3m2": (3, 2), "e2m1": (2, 1)}


def parts(code: int, exponent_bits: int, fraction_bits: int) -> tuple[Fraction, int]:
    """(significand with its sign, exponent) of a number; a subnormal has the exponent of the smallest normal."""
    field, fraction = code >> fraction_bits & (1 << exponent_bits) - 1, code & (1 << fraction_bits) - 1
    significand = Fraction(fraction, 1 << fraction_bits) + (1 if field else 0)
    exponent = max(field, 1) - (1 << exponent_bits - 1) + 1
    return (-significand if code >> exponent_bits + fraction_bits & 1 else significand), exponent


def two(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def cut(value: Fraction, unit: Fraction) -> Fraction:
    """Toward zero to a multiple of a unit."""
    whole = abs(value) // unit
    return whole * unit if value > 0 else -whole * unit


def to_f32(value: Fraction) -> int:
    """f32 word toward zero; Inf from 2**128 on, +0 for what becomes zero."""
    size, sign = abs(value), 1 if value < 0 else 0
    if size >= two(128):
        return 0x7F800000 | sign << 31
    e = -126
    while size >= two(e + 1):
        e += 1
    units = int(size // two(e - 23))
    word = (e + 126 << 23) + units
    return word | sign << 31 if word else 0


def finite_f32() -> st.SearchStrategy[int]:
    field = st.one_of(st.just(0), st.integers(100, 150), st.integers(0, 254))
    return st.builds(lambda s, e, f: s << 31 | e << 23 | f, st.integers(0, 1), field, st.integers(0, 0x7FFFFF))


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_groups_of_four_bits(data: st.DataObject) -> None:
    float_scale = data.draw(st.booleans())
    vector = 4 if float_scale else data.draw(st.sampled_from([2, 4]))
    byte = st.integers(0, 255) if float_scale else st.one_of(st.integers(120, 134), st.integers(0, 255))
    scales = [[data.draw(byte) for _ in range(4)] for _ in range(2)]
    sparse = data.draw(st.booleans())
    nibble = st.sampled_from([0, 0, 0, 8, 1, 15]) if sparse else st.integers(0, 15)
    a, b = (np.array(data.draw(st.lists(nibble, min_size=64, max_size=64)), np.uint8) for _ in range(2))
    c = data.draw(finite_f32())
    words = [np.uint32(sum(s << 8 * i for i, s in enumerate(row))) for row in scales]
    values = np.empty((2, 64), np.int8)
    for nibbles, out in zip((a, b), values, strict=True):
        packed = nibbles[::2] | nibbles[1::2] << 4
        decode_nibbles(packed.ctypes.data, 64, False, out.ctypes.data)
    rows = (row.ctypes.data for row in values)
    got = int(dot_groups(*rows, *words, 4 // vector, float_scale, np.uint32(c)))
    used = [row[:vector] for row in scales]
    if any((s & 0x7F) == 0x7F if float_scale else s == 0xFF for row in used for s in row):
        assert got == NAN
        return
    significand_c, exponent_c = parts(c, 8, 23)
    exponents = [-139] + ([exponent_c] if significand_c else [])
    groups = []
    for g in range(4):
        x, y = (row[g * vector // 4] for row in scales)
        if float_scale:
            (mx, ex), (my, ey) = parts(x & 0x7F, 4, 3), parts(y & 0x7F, 4, 3)
        else:
            (mx, ex), (my, ey) = (Fraction(1), x - 127), (Fraction(1), y - 127)
        products = []
        for i in range(16 * g, 16 * g + 16):
            (p, ep), (q, eq) = parts(int(a[i]), 2, 1), parts(int(b[i]), 2, 1)
            products.append(p * q * two(ep + eq))
        if any(products) and mx * my:
            exponents.append(ex + ey)
            groups.append((sum(products) * mx * my, ex + ey))
    unit = two(max(exponents) - 35)
    total = cut(significand_c * two(exponent_c), unit) + sum(cut(p * two(e), unit) for p, e in groups)
    assert got == to_f32(total)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_block_with_scales(data: st.DataObject) -> None:
    kinds = [data.draw(st.sampled_from(sorted(FORMATS))) for _ in range(2)]
    shift = data.draw(st.one_of(st.integers(-12, 12), st.integers(-254, 254)))
    c = data.draw(finite_f32())
    sides = []
    for kind in kinds:
        bits = 1 + sum(FORMATS[kind])
        codes = st.integers(0, (1 << bits) - 1).filter(
            lambda x, kind=kind: not (kind == "e4m3" and x & 0x7F == 0x7F or kind == "e5m2" and x & 0x7C == 0x7C)
        )
        sides.append(np.array(data.draw(st.lists(codes, min_size=32, max_size=32)), np.uint8))
    stored = [side << (2 if kind == "e2m1" else 0) for side, kind in zip(sides, kinds, strict=True)]
    got = int(
        dot_block(
            stored[0].ctypes.data, stored[1].ctypes.data, 1, 1, 32, KINDS[kinds[0]], KINDS[kinds[1]], np.uint32(c), F32,
            25, -133, 23, shift,
        )
    )  # fmt: skip
    significand_c, exponent_c = parts(c, 8, 23)
    exponents, terms = [-133] + ([exponent_c] if significand_c else []), []
    for x, y in zip(*sides, strict=True):
        (p, ep), (q, eq) = parts(int(x), *FORMATS[kinds[0]]), parts(int(y), *FORMATS[kinds[1]])
        if p * q:
            exponents.append(ep + eq + shift)
            terms.append(p * q * two(ep + eq + shift))
    unit = two(max(exponents) - 25)
    total = cut(significand_c * two(exponent_c), unit) + sum(cut(t, unit) for t in terms)
    assert got == to_f32(total)
