"""FP8, FP6, FP4, ue8m0 and s2f6 against exact arithmetic on the definition of each format."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.formats import tiny_floats as tiny

# exponent bits, fraction bits, bias; the largest finite magnitude; what a NaN becomes
FORMATS = {
    "e4m3": (4, 3, 7, Fraction(448), 0x7F),
    "e5m2": (5, 2, 15, Fraction(57344), 0x7F),
    "e2m3": (2, 3, 1, Fraction(15, 2), 0x1F),
    "e3m2": (3, 2, 3, Fraction(28), 0x1F),
    "e2m1": (2, 1, 1, Fraction(6), 0x07),
}
INF = 0x7F800000


@cache
def magnitudes(name: str) -> list[Fraction]:
    """The finite magnitudes of a format by code."""
    exponent_bits, fraction_bits, bias, largest, _ = FORMATS[name]
    values = []
    for code in range(1 << exponent_bits + fraction_bits):
        field, fraction = code >> fraction_bits, code & (1 << fraction_bits) - 1
        significand = Fraction(fraction, 1 << fraction_bits) + (1 if field else 0)
        values.append(significand * Fraction(2) ** (max(field, 1) - bias))
    return [v for v in values if v <= largest]


def sign_bit(name: str) -> int:
    return 1 << FORMATS[name][0] + FORMATS[name][1]


def number(word: int) -> Fraction:
    """The value of a finite f32 word."""
    field, fraction = word >> 23 & 0xFF, word & 0x7FFFFF
    size = Fraction(fraction | (0x800000 if field else 0)) * Fraction(2) ** (max(field, 1) - 150)
    return -size if word >> 31 else size


def nearest(name: str, word: int) -> int:
    """The code that an f32 word rounds to."""
    if word & 0x7FFFFFFF > INF:
        return FORMATS[name][4]
    values, sign = magnitudes(name), sign_bit(name) if word >> 31 else 0
    size = abs(number(word)) if word & 0x7FFFFFFF < INF else values[-1]
    above = next((c for c, v in enumerate(values) if v >= size), len(values) - 1)
    if above == 0 or values[above] <= size:
        return above | sign
    up, down = values[above] - size, size - values[above - 1]
    return (above if up < down or (up == down and above % 2 == 0) else above - 1) | sign


def f32_words(spread: int = 20) -> st.SearchStrategy[int]:
    """f32 words of any kind, many of them of moderate size and near ties."""
    field = st.one_of(st.integers(0, 255), st.integers(127 - spread, 127 + spread))
    fraction = st.one_of(
        st.integers(0, 0x7FFFFF),
        st.integers(0, 127).map(lambda f: f << 16),
        st.tuples(st.integers(1, 127), st.sampled_from([-1, 1])).map(lambda p: (p[0] << 16) + p[1]),
    )
    return st.builds(lambda s, e, f: s << 31 | e << 23 | f, st.integers(0, 1), field, fraction)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=300, deadline=None)
@given(word=f32_words())
def test_nearest_of_f32(name: str, word: int) -> None:
    assert tiny.f32_to_tiny(np.uint32(word), tiny.CODES[name]) == nearest(name, word)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_nearest_of_every_16_bit_number(name: str, source: str) -> None:
    """Everything involved is exact in f64: the numbers, the midpoints, the comparisons."""
    words = np.arange(1 << 16, dtype=np.uint32)
    values = np.array([float(v) for v in magnitudes(name)])
    with np.errstate(invalid="ignore"):
        drawn = words.astype(np.uint16).view(np.float16) if source == "f16" else (words << 16).view(np.float32)
        floats = drawn.astype(np.float32)
        size = np.abs(floats.astype(np.float64))
    middles = (values[1:] + values[:-1]) / 2
    low, high = np.searchsorted(middles, size, "left"), np.searchsorted(middles, size, "right")
    expected = np.where(low == high, low, low + low % 2)
    expected = expected | np.where(np.signbit(floats), sign_bit(name), 0)
    expected = np.where(np.isnan(floats), FORMATS[name][4], expected)
    kind = tiny.CODES[name]
    got = np.array([tiny.f32_to_tiny(w, kind) for w in floats.view(np.uint32)])
    np.testing.assert_array_equal(got, expected)


def f16_value(word: int) -> Fraction:
    field, fraction = word >> 10 & 31, word & 1023
    size = Fraction(fraction | (1024 if field else 0)) * Fraction(2) ** (max(field, 1) - 25)
    return -size if word >> 15 else size


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_widens_exactly(name: str) -> None:
    kind, values, sign = tiny.CODES[name], magnitudes(name), sign_bit(name)
    for code in range(2 * sign):
        wide, half = int(tiny.tiny_to_f32(np.uint8(code), kind)), int(tiny.tiny_to_f16(np.uint8(code), kind))
        bare = code & sign - 1
        if bare < len(values):
            expected = -values[bare] if code & sign else values[bare]
            assert number(wide) == f16_value(half) == expected
            assert wide >> 31 == half >> 15 == (1 if code & sign else 0)
        elif name == "e5m2" and bare == 0x7C:
            assert (wide, half) == ((0xFF800000, 0xFC00) if code & sign else (0x7F800000, 0x7C00))
        else:
            assert (wide, half) == (0x7FFFFFFF, 0x7FFF)


def to_bf16(value: Fraction, sign: int) -> int:
    """bf16 word of a number, to nearest-even."""
    size = abs(value)
    if size == 0:
        return sign << 15
    e = max(size.numerator.bit_length() - size.denominator.bit_length() - 1, -126)
    while Fraction(2) ** (e + 1) <= size:
        e += 1
    units = size / Fraction(2) ** (e - 7)
    whole, rest = divmod(units.numerator, units.denominator)
    whole += 2 * rest > units.denominator or (2 * rest == units.denominator and whole % 2)
    return min((e + 126 << 7) + whole, 0x7F80) | sign << 15


SCALES = (0, 1, 2, 7, 126, 127, 128, 240, 252, 253, 254)


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_with_scales_as_bf16(name: str) -> None:
    kind, values, sign = tiny.CODES[name], magnitudes(name), sign_bit(name)
    for code in range(2 * sign):
        bare, negative = code & sign - 1, int(bool(code & sign))
        assert tiny.tiny_to_bf16(np.uint8(code), np.uint8(255), kind) == 0x7FFF
        for scale in SCALES:
            got = tiny.tiny_to_bf16(np.uint8(code), np.uint8(scale), kind)
            if bare < len(values):
                assert got == to_bf16(values[bare] * Fraction(2) ** (scale - 127), negative), (code, scale)
            else:
                assert got == (0x7F80 | negative << 15 if (name, bare) == ("e5m2", 0x7C) else 0x7FFF)


def test_every_s2f6_with_scales_as_bf16() -> None:
    for code in range(256):
        value = Fraction(code - 256 * (code >> 7), 64)
        for scale in SCALES:
            expected = to_bf16(value * Fraction(2) ** (scale - 127), code >> 7)
            assert tiny.s2f6_to_bf16(np.uint8(code), np.uint8(scale)) == expected


@settings(max_examples=300, deadline=None)
@given(word=f32_words(8), scale=st.one_of(st.integers(120, 134), st.integers(0, 255)))
def test_s2f6_of_f32(word: int, scale: int) -> None:
    got = int(tiny.f32_to_s2f6(np.uint32(word), np.uint8(scale)))
    if word & 0x7FFFFFFF > INF or scale == 255:
        assert got == 127
        return
    value = number(word) if word & 0x7FFFFFFF < INF else Fraction(1 - 2 * (word >> 31)) * 2**300
    units = round(value / Fraction(2) ** (scale - 127) * 64)  # Python rounds a Fraction to even
    assert got == max(-128, min(127, units)) & 0xFF


@pytest.mark.parametrize("up", [0, 1])
def test_ue8m0_of_every_bf16(up: int) -> None:
    for half in range(1 << 15):
        word = half << 16
        got = int(tiny.f32_to_ue8m0(np.uint32(word), up, 0))
        assert got == int(tiny.f32_to_ue8m0(np.uint32(word | 1 << 31), up, 0))
        finite = int(tiny.f32_to_ue8m0(np.uint32(word), up, 1))
        if half > 0x7F80:
            assert got == finite == 0xFF
            continue
        # the power of two next to the number; both modes start from 2^-127
        field, fraction = half >> 7, half & 0x7F
        exact = fraction == 0 or (field == 0 and half <= 0x40)
        expected = 0xFF if half == 0x7F80 else field + (up if not exact else 0)
        assert got == expected
        assert finite == min(expected, 0xFE)


def test_ue8m0_widens_exactly() -> None:
    for code in range(255):
        word = int(tiny.ue8m0_to_bf16(np.uint8(code)))
        assert number(word << 16) == Fraction(2) ** (code - 127)
    assert tiny.ue8m0_to_bf16(np.uint8(255)) == 0x7FFF


# ------------------------------------------------------------------------------------------------ stochastic rounding
def carried(size: Fraction, precision: int, emin: int, random: int, bits: int) -> Fraction:
    """|x| with the random fraction added to what lies below the last place, cut there."""
    e = emin
    while Fraction(2) ** (e + 1) <= size:
        e += 1
    unit = Fraction(2) ** (e - precision + 1)
    return (size / unit + Fraction(random, 1 << bits)).__floor__() * unit


def reverse(x: int) -> int:
    return int(f"{x:016b}"[::-1], 2)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=150, deadline=None)
@given(word=f32_words(), random=st.integers(0, 0xFFFFFFFF), element=st.integers(0, 3))
def test_stochastic_rounding_of_four(name: str, word: int, random: int, element: int) -> None:
    kind = tiny.CODES[name]
    got = int(tiny.f32_to_tiny_stochastic(np.uint32(word), np.uint32(random), kind, element))
    b3, b2, b1, b0 = random.to_bytes(4, "big")
    pair = ((b3 << 8 | b1, b2 << 8 | b0) if name == "e2m1" else (b3 << 8 | b2, b1 << 8 | b0))[element // 2]
    bits = pair if element % 2 else reverse(pair)
    if word & 0x7FFFFFFF >= INF:
        assert got == nearest(name, word)
        return
    exponent_bits, fraction_bits, bias, largest, _ = FORMATS[name]
    size = carried(abs(number(word)), fraction_bits + 1, 1 - bias, bits, 16)
    expected = magnitudes(name).index(min(size, largest))
    assert got == expected | (sign_bit(name) if word >> 31 else 0)


@settings(max_examples=300, deadline=None)
@given(word=f32_words(), random=st.integers(0, 0xFFFF))
def test_stochastic_rounding_to_f16(word: int, random: int) -> None:
    got = int(tiny.f32_to_half_stochastic(np.uint32(word), np.uint32(random), 0))
    if word & 0x7FFFFFFF >= INF:
        assert got == (0x7FFF if word & 0x7FFFFFFF > INF else 0x7C00 | word >> 31 << 15)
        return
    size = carried(abs(number(word)), 11, -14, random & 0x1FFF, 13)
    assert got >> 15 == word >> 31
    if size >= 65536:
        assert got & 0x7FFF == 0x7C00
    else:
        assert abs(f16_value(got)) == size


@settings(max_examples=200, deadline=None)
@given(word=f32_words(126), random=st.integers(0, 0xFFFF))
def test_stochastic_rounding_to_bf16(word: int, random: int) -> None:
    got = int(tiny.f32_to_half_stochastic(np.uint32(word), np.uint32(random), 1))
    if word & 0x7FFFFFFF >= INF:
        assert got == (0x7FFF if word & 0x7FFFFFFF > INF else 0x7F80 | word >> 31 << 15)
        return
    size = carried(abs(number(word)), 8, -126, random, 16)
    assert got >> 15 == word >> 31
    assert got & 0x7FFF == 0x7F80 if size >= Fraction(2) ** 128 else abs(number(got << 16)) == size
