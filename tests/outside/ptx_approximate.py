"""The families of `ptx_tests` with approximate forms: div, rcp, sqrt and the functions, within the PTX manual's bounds.

The bounds are those that the suite tests. Rounded forms (`.rn` ...) must be exact; operands that the manual names have
the result that it names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

from tests.outside import host_functions as host
from tests.outside.host_functions import F32, NAN, ONE, SIGN, as_float, flushed
from tests.outside.ptx_variant import BOTH, ROUNDINGS, Agrees, Variant, one_float, suffix


def _within(expected: int, out: int, units: int) -> bool:
    return F32.is_nan(expected) and F32.is_nan(out) or abs(expected - out) <= units


def quotients() -> Iterator[Variant]:
    for ftz, variant in product(BOTH, ("approx", "full", *ROUNDINGS)):

        def agrees(out: int, a: int, b: int, ftz: bool = ftz, variant: str = variant) -> bool:
            expected = host.divided(a, b, variant if variant in ROUNDINGS else "rn", ftz)
            if variant in ROUNDINGS:
                return F32.same(expected, out)
            divisor = abs(as_float(flushed(b, ftz)))
            if variant == "full" or divisor != divisor or 2.0**-126 <= divisor <= 2.0**126:
                return _within(expected, out, 2)
            if divisor < 2.0**-126 or expected == out:
                return True  # the manual gives no bound for divisors that small
            return F32.is_nan(out) if F32.is_infinite(a) or F32.is_nan(a) else not out & ~SIGN

        fill = {"VARIANT": f".{variant}", "FLUSH": ".ftz" if ftz else ""}
        name = "div" + suffix(variant, "ftz" if ftz else "", "f32")
        yield Variant("div", name, fill, ("f32", "f32"), "f32", agrees)
        if variant == "full":
            continue
        fill = {"MODE": variant + (".ftz" if ftz else "")}

        def reciprocal(out: int, a: int, ftz: bool = ftz, variant: str = variant) -> bool:
            if variant in ROUNDINGS:
                return F32.same(host.divided(ONE, a, variant, ftz), out)
            return _within(host.divided(ONE, a, "rn", ftz), out, 1)

        def root(out: int, a: int, ftz: bool = ftz, variant: str = variant) -> bool:
            if variant in ROUNDINGS:
                return F32.same(host.square_root(a, variant, ftz), out)
            return _bounded(math.sqrt, out, flushed(a, ftz), relative=2.0**-23)

        yield one_float("rcp", "rcp" + suffix(variant, "ftz" if ftz else ""), fill, reciprocal)
        yield one_float("sqrt", "sqrt" + suffix(variant, "ftz" if ftz else ""), fill, root)


SPECIAL: dict[Callable[[float], float], dict[float, float]] = {
    math.sqrt: {-math.inf: math.nan, math.inf: math.inf, 0.0: 0.0},
    math.log2: {-math.inf: math.nan, math.inf: math.inf, 0.0: -math.inf},
    math.tanh: {-math.inf: -1.0, math.inf: 1.0, 0.0: 0.0},
    math.sin: {-math.inf: math.nan, math.inf: math.nan, 0.0: 0.0},
    math.cos: {-math.inf: math.nan, math.inf: math.nan, 0.0: 1.0},
}
"""Results that the manual names, by function and operand; -0 stands with +0, and keeps its sign in odd functions."""


def _bounded(
    function: Callable[[float], float], out: int, a: int, relative: float = 0.0, absolute: float = 0.0
) -> bool:
    """Whether a result lies within the bound; at special operands it must be the manual's."""
    x, y = as_float(a), as_float(out)
    if x != x or x < 0 and function in (math.sqrt, math.log2):
        return F32.is_nan(out)
    if x in SPECIAL[function]:
        expected = SPECIAL[function][x]
        if x == 0 and expected == 0:
            return out == a
        return F32.is_nan(out) if expected != expected else y == expected
    exact = function(x)
    return abs(exact - y) <= max(abs(exact) * relative, absolute)


def _reciprocal_root(out: int, a: int) -> bool:
    if not a & ~SIGN:
        return out == F32.infinity | a
    if F32.is_nan(a) or a & SIGN:
        return F32.is_nan(out)
    if F32.is_infinite(a):
        return out == 0
    exact = 1 / math.sqrt(as_float(a))
    return abs(exact - as_float(out)) <= exact * 2.0**-22.9


def _power(out: int, a: int, ftz: bool) -> bool:
    a = flushed(a, ftz)
    x = as_float(a)
    if x != x or math.isinf(x) or x == 0:
        return F32.same(NAN if x != x else 0 if x == -math.inf else ONE if x == 0 else F32.infinity, out)
    exact = math.inf if x >= 1024 else 2.0**x
    scaled = int(math.ldexp(exact, 200)) if exact < 2.0**128 else 1 << 329
    expected = flushed(host.rounded(scaled, 200, F32, "rn", False), ftz) if scaled else 0
    return _within(expected, out, 2)


def _logarithm(out: int, a: int) -> bool:
    near = 0.5 < as_float(a) < 2.0
    return _bounded(math.log2, out, a, **{"absolute" if near else "relative": 2.0**-22})


def _wave(function: Callable[[float], float], out: int, a: int) -> bool:
    x = abs(as_float(a))
    if math.isfinite(x) and x > as_float(0x439D_1463):
        return True  # beyond 100 pi the manual gives no bound
    return _bounded(function, out, a, absolute=2.0**-20.5 if x <= as_float(0x40C9_0FDB) else 2.0**-14.7)


def functions() -> Iterator[Variant]:
    for ftz in BOTH:
        modifier = ".ftz" if ftz else ""
        judges: dict[str, Agrees] = {
            "sin": lambda out, a, ftz=ftz: _wave(math.sin, out, flushed(a, ftz)),
            "cos": lambda out, a, ftz=ftz: _wave(math.cos, out, flushed(a, ftz)),
            "ex2": lambda out, a, ftz=ftz: _power(out, a, ftz),
            "lg2": lambda out, a, ftz=ftz: _logarithm(out, flushed(a, ftz)),
            "rsqrt": lambda out, a, ftz=ftz: _reciprocal_root(out, flushed(a, ftz)),
        }
        for op, agrees in judges.items():
            fill = {"FTZ": modifier, "FLUSH": modifier, "MODE": f"approx{modifier}"}
            yield one_float(op, f"{op}_approx{'_ftz' if ftz else ''}", fill, agrees)
    yield one_float("tanh", "tanh_approx", {}, lambda out, a: _bounded(math.tanh, out, a, relative=2.0**-11))
