"""f64 division and square root in every rounding mode against exact rationals."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.formats.quotients64 import f64_div_directed, f64_sqrt_directed
from interp.formats.rounding import MODES
from interp.kits.exact import decode

INF, NAN = 0x7FF << 52, 0xFFF8 << 48
WORDS = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.builds(lambda s, e, f: s << 63 | e << 52 | f, st.integers(0, 1), st.integers(1013, 1033), st.integers(0, 31)),
    st.sampled_from([0, 1 << 63, 1, INF, INF | 1 << 63, INF + 1, 1 << 52, (1 << 52) - 1, INF - 1, 0x3FF << 52]),
)


def value(word: int) -> Fraction:
    number = decode(64, word)
    assert isinstance(number, Fraction)
    return number


def special(word: int) -> str:
    magnitude = word & (1 << 63) - 1
    return "nan" if magnitude > INF else "inf" if magnitude == INF else "zero" if magnitude == 0 else "number"


def is_rounded(word: int, compare: object, sign: int, mode: int) -> bool:
    """Whether a word is the rounding of a non-zero exact result: `compare(x)` is the sign of (x - |result|)."""
    assert callable(compare)
    assert word >> 63 == sign
    magnitude = word & (1 << 63) - 1

    def at(w: int) -> Fraction:
        return value(w) if w < INF else Fraction(2) ** 1024

    if compare(at(magnitude)) == 0:
        return magnitude < INF
    # the two neighbours of the exact result
    low = magnitude if compare(at(magnitude)) < 0 else magnitude - 1
    if compare(at(low)) > 0 or (low < INF and compare(at(low + 1)) < 0):
        return low == INF and mode == MODES["rn"]
    upward = mode == (MODES["rm"] if sign else MODES["rp"])
    if mode == MODES["rn"]:
        middle = compare((at(low) + at(low + 1)) / 2)
        expected = low + 1 if middle < 0 or (middle == 0 and low % 2) else low
        return magnitude == expected
    if low == INF:
        return False
    return magnitude == (low + 1 if upward else low)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@settings(max_examples=300, deadline=None)
@given(a=WORDS, b=WORDS)
def test_quotient(mode: str, a: int, b: int) -> None:
    got = int(f64_div_directed(np.uint64(a), np.uint64(b), MODES[mode]))
    x, y, sign = special(a), special(b), (a ^ b) >> 63
    if "nan" in (x, y) or (x == y and x in ("inf", "zero")):
        assert got == NAN
    elif x == "inf" or y == "zero":
        assert got == INF | sign << 63
    elif y == "inf" or x == "zero":
        assert got == sign << 63
    else:
        exact = abs(value(a) / value(b))
        if exact >= Fraction(2) ** 1024:
            toward = mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and sign)
            assert got == (INF - 1 if toward else INF) | sign << 63
        else:
            assert is_rounded(got, lambda w: (w > exact) - (w < exact), sign, MODES[mode])


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@settings(max_examples=300, deadline=None)
@given(a=st.one_of(WORDS, st.integers(1, 1 << 26).map(lambda n: int(np.float64(n * n).view(np.uint64)))))
def test_root(mode: str, a: int) -> None:
    got = int(f64_sqrt_directed(np.uint64(a), MODES[mode]))
    kind = special(a)
    if kind == "zero":
        assert got == a
    elif kind == "nan" or a >> 63:
        assert got == NAN
    elif kind == "inf":
        assert got == INF
    else:
        exact = value(a)
        assert is_rounded(got, lambda w: (w * w > exact) - (w * w < exact), 0, MODES[mode])


def test_perfect_squares_are_exact() -> None:
    for n in (1, 2, 3, 12345, (1 << 26) - 1):
        word = int(np.float64(n * n).view(np.uint64))
        assert isqrt(n * n) == n
        for mode in MODES.values():
            assert f64_sqrt_directed(np.uint64(word), mode) == np.float64(n).view(np.uint64)
