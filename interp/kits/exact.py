"""The kit over plain Python integers: one lane, nothing hidden. The law that the other kits are held to.

Float operations go through exact rational arithmetic and one rounding, so no host floating point is involved.
Lane functions run as plain Python. Memory and warp operations are not offered: tests drive those through an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from interp.kit import CANONICAL_NAN
from interp.runtime.functions import LANE_FUNCTIONS
from ptx.errors import InternalError

_PREC = {32: (24, -126, 127), 64: (53, -1022, 1023)}


def signed(n: int, x: int) -> int:
    """The two's complement value of word x."""
    return x - (1 << n) if x >> (n - 1) else x


def decode(n: int, x: int) -> Fraction | str:
    """The value of an IEEE word, or one of "nan", "+inf", "-inf" (zeros are Fraction(0): ask the word for the sign)."""
    p, emin, _ = _PREC[n]
    frac, exp = x & ((1 << (p - 1)) - 1), x >> (p - 1) & ((1 << (n - p)) - 1)
    sign = -1 if x >> (n - 1) else 1
    if exp == (1 << (n - p)) - 1:
        return "nan" if frac else ("-inf" if sign < 0 else "+inf")
    sig = frac | (1 << (p - 1)) if exp else frac
    return sign * Fraction(sig) * Fraction(2) ** (max(exp, 1) - 1 + emin - (p - 1))


def encode(n: int, value: Fraction, zero_sign: int = 0) -> int:
    """Round a rational to nearest even; `zero_sign` is the sign bit of an exact zero."""
    p, emin, emax = _PREC[n]
    if value == 0:
        return zero_sign << (n - 1)
    sign, mag = (1, -value) if value < 0 else (0, value)
    e = mag.numerator.bit_length() - mag.denominator.bit_length()
    if Fraction(2) ** e > mag:
        e -= 1
    e = max(e, emin)
    scaled = mag / Fraction(2) ** (e - (p - 1))
    q, r = divmod(scaled.numerator, scaled.denominator)
    if 2 * r > scaled.denominator or (2 * r == scaled.denominator and q & 1):
        q += 1
    if q >> p:
        q, e = q >> 1, e + 1
    if e > emax:
        word = ((1 << (n - p)) - 1) << (p - 1)
    elif q >> (p - 1):
        word = ((e - emin + 1) << (p - 1)) | (q & ((1 << (p - 1)) - 1))
    else:
        word = q
    return word | sign << (n - 1)


class ExactKit:
    """See the module docstring. Words are integers in [0, 2**n); predicates are 0 or 1."""

    device = 90

    def const(self, n: int, value: int) -> int:
        return value & ((1 << n) - 1)

    def zext(self, n: int, m: int) -> Callable[[int], int]:
        return lambda a: a

    def sext(self, n: int, m: int) -> Callable[[int], int]:
        return lambda a: signed(n, a) & ((1 << m) - 1)

    def trunc(self, n: int, m: int) -> Callable[[int], int]:
        return lambda a: a & ((1 << m) - 1)

    def add(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: (a + b) & ((1 << n) - 1)

    def sub(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: (a - b) & ((1 << n) - 1)

    def mul(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: (a * b) & ((1 << n) - 1)

    def mulhi_u(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: (a * b) >> n

    def mulhi_s(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: (signed(n, a) * signed(n, b) >> n) & ((1 << n) - 1)

    def div_u(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: a // b if b else (1 << n) - 1

    def rem_u(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: a % b if b else a

    def div_s(self, n: int) -> Callable[[int, int], int]:
        def div(a: int, b: int) -> int:
            if b == 0:
                return (1 << n) - 1
            x, y = signed(n, a), signed(n, b)
            q = abs(x) // abs(y)
            return (q if (x < 0) == (y < 0) else -q) & ((1 << n) - 1)

        return div

    def rem_s(self, n: int) -> Callable[[int, int], int]:
        def rem(a: int, b: int) -> int:
            if b == 0:
                return a
            x, y = signed(n, a), signed(n, b)
            r = abs(x) % abs(y)
            return (-r if x < 0 else r) & ((1 << n) - 1)

        return rem

    def and_(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: a & b

    def or_(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: a | b

    def xor(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: a ^ b

    def not_(self, n: int) -> Callable[[int], int]:
        return lambda a: a ^ ((1 << n) - 1)

    def shl(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: (a << b) & ((1 << n) - 1) if b < n else 0

    def shr_u(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: a >> b if b < n else 0

    def shr_s(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: (signed(n, a) >> min(b, n - 1)) & ((1 << n) - 1)

    def popc(self, n: int) -> Callable[[int], int]:
        return lambda a: a.bit_count()

    def clz(self, n: int) -> Callable[[int], int]:
        return lambda a: n - a.bit_length()

    def brev(self, n: int) -> Callable[[int], int]:
        return lambda a: int(f"{a:0{n}b}"[::-1], 2)

    def eq(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(a == b)

    def ne(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(a != b)

    def lt_u(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(a < b)

    def le_u(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(a <= b)

    def lt_s(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(signed(n, a) < signed(n, b))

    def le_s(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(signed(n, a) <= signed(n, b))

    def select(self, n: int) -> Callable[[int, int, int], int]:
        return lambda p, a, b: a if p else b

    def fma(self, n: int) -> Callable[[int, int, int], int]:
        def fma(a: int, b: int, c: int) -> int:
            x, y, z = decode(n, a), decode(n, b), decode(n, c)
            nan, inf = CANONICAL_NAN[n], ((1 << (n - _PREC[n][0])) - 1) << (_PREC[n][0] - 1)
            sign = (a ^ b) >> (n - 1)
            if "nan" in (x, y, z):
                return nan
            if isinstance(x, str) or isinstance(y, str):
                if x == 0 or y == 0 or (isinstance(z, str) and sign != c >> (n - 1)):
                    return nan
                return inf | sign << (n - 1)
            if isinstance(z, str):
                return c
            zero = sign & (c >> (n - 1)) if x * y == 0 and z == 0 else 0
            return encode(n, x * y + z, zero)

        return fma

    def fadd(self, n: int) -> Callable[[int, int], int]:
        fma, one = self.fma(n), encode(n, Fraction(1))
        return lambda a, b: fma(a, one, b)

    def fsub(self, n: int) -> Callable[[int, int], int]:
        add = self.fadd(n)
        return lambda a, b: add(a, b ^ (1 << (n - 1)))

    def fmul(self, n: int) -> Callable[[int, int], int]:
        fma = self.fma(n)
        return lambda a, b: fma(a, b, ((a ^ b) >> (n - 1)) << (n - 1))

    def fdiv(self, n: int) -> Callable[[int, int], int]:
        def div(a: int, b: int) -> int:
            x, y = decode(n, a), decode(n, b)
            nan, inf = CANONICAL_NAN[n], ((1 << (n - _PREC[n][0])) - 1) << (_PREC[n][0] - 1)
            sign = (a ^ b) >> (n - 1) << (n - 1)
            if "nan" in (x, y) or (isinstance(x, str) and isinstance(y, str)) or (x == 0 and y == 0):
                return nan
            if isinstance(x, str) or y == 0:
                return inf | sign
            if isinstance(y, str) or x == 0:
                return sign
            return encode(n, x / y)

        return div

    def fsqrt(self, n: int) -> Callable[[int], int]:
        def sqrt(a: int) -> int:
            x = decode(n, a)
            if x == "nan" or x == "-inf" or (not isinstance(x, str) and x < 0):
                return CANONICAL_NAN[n]
            if isinstance(x, str) or x == 0:
                return a
            # floor of sqrt(x) with 2 * 64 fraction bits, then a sticky bit: enough to round 53 bits correctly
            shift = 256 + 2 * max(0, x.denominator.bit_length())
            scaled = (x.numerator << (2 * shift)) // x.denominator
            root = isqrt(scaled)
            sticky = 0 if root * root == scaled and (x.numerator << (2 * shift)) % x.denominator == 0 else 1
            return encode(n, Fraction(2 * root + sticky, 2 << shift))

        return sqrt

    def feq(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(not _unordered(n, a, b) and _order(n, a) == _order(n, b))

    def flt(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(not _unordered(n, a, b) and _order(n, a) < _order(n, b))

    def fle(self, n: int) -> Callable[[int, int], int]:
        return lambda a, b: int(not _unordered(n, a, b) and _order(n, a) <= _order(n, b))

    def isnan(self, n: int) -> Callable[[int], int]:
        return lambda a: int(decode(n, a) == "nan")

    def lane(self, name: str, *params: int) -> Callable[..., Any]:
        function = LANE_FUNCTIONS[name]
        types = [getattr(np, f"uint{n}") for n in function.operands]

        def call(*words: int) -> int:
            with np.errstate(over="ignore"):  # unsigned words wrap
                return int(function.python(*(t(w) for t, w in zip(types, words, strict=True)), *params))

        return call

    def special(self, name: str) -> int:
        alone = {"%cluster_ctarank": 0, "%cluster_nctarank": 1}
        if name in alone:  # words stand for a CTA of its own
            return alone[name]
        raise InternalError(f"the exact kit has no machine: special register {name}")

    def load(self, space: str, n: int, count: int) -> Callable[..., Any]:
        raise InternalError("the exact kit has no memory")

    def store(self, space: str, n: int, count: int) -> Callable[..., Any]:
        raise InternalError("the exact kit has no memory")

    def atomic(self, space: str, op: str, type: str) -> Callable[..., Any]:
        raise InternalError("the exact kit has no memory")

    def warp(self, name: str, results: tuple[int, ...], *params: int) -> Callable[..., Any]:
        raise InternalError("the exact kit has one lane")


def _order(n: int, x: int) -> int:
    """A key that orders IEEE words like their values (both zeros give 0)."""
    mag = x & ((1 << (n - 1)) - 1)
    return -mag if x >> (n - 1) else mag


def _unordered(n: int, a: int, b: int) -> bool:
    return decode(n, a) == "nan" or decode(n, b) == "nan"
