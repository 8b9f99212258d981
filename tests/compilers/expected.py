"""What is right, from outside the emulator: the C library in long double, exact rationals, numpy.

Mathematical functions of NVIDIA's libraries are not rounded correctly; the CUDA C++ Programming Guide, 'Mathematical
Functions', states the largest error of each in ulp, and `ULPS` has it for float and double. A result is judged by that
against the C library's long double function, whose own error is far below.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ULPS = {
    "acos": (2, 2), "acosh": (4, 3), "asin": (2, 2), "asinh": (3, 3), "atan": (2, 2), "atanh": (3, 2), "cbrt": (1, 1),
    "cos": (2, 2), "cosh": (2, 1), "cospi": (1, 2), "erf": (2, 2), "erfc": (4, 5), "exp": (2, 1), "exp10": (2, 1),
    "exp2": (2, 1), "expm1": (1, 1), "log": (1, 1), "log10": (2, 1), "log1p": (1, 1), "log2": (1, 1), "sin": (2, 2),
    "sinh": (3, 2), "sinpi": (1, 2), "tan": (4, 2), "tanh": (2, 1), "lgamma": (6, 4), "tgamma": (5, 10), "sqrt": (0, 0),
    "rsqrt": (2, 1), "rcbrt": (1, 1), "atan2": (3, 2), "hypot": (3, 2), "rhypot": (2, 1), "pow": (4, 2),
    "norm3d": (3, 2), "norm4d": (3, 2), "rnorm3d": (2, 1), "rnorm4d": (2, 1), "erfcx": (4, 4), "normcdf": (5, 5),
    "cyl_bessel_i0": (6, 6), "cyl_bessel_i1": (6, 6),
}  # fmt: skip
"""Largest error in ulp: of float, of double. Half an ulp of rounding is in them."""


@cache
def _c_function(name: str, count: int) -> Any:
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name + "l")
    function.restype, function.argtypes = ctypes.c_longdouble, [ctypes.c_longdouble] * count
    return function


def _c(name: str, *arrays: Array) -> Array:
    function = _c_function(name, len(arrays))
    return np.array([function(*(float(x) for x in row)) for row in zip(*arrays, strict=True)], np.float64)


def _long(x: Array) -> Any:
    return x.astype(np.longdouble)


_PI = np.longdouble("3.14159265358979323846264338327950288")
_OTHERS: dict[str, Callable[..., Any]] = {
    "cospi": lambda x: np.cos(_PI * np.fmod(_long(x), 2)),
    "sinpi": lambda x: np.sin(_PI * np.fmod(_long(x), 2)),
    "rsqrt": lambda x: 1 / np.sqrt(_long(x)),
    "rcbrt": lambda x: 1 / np.cbrt(_long(x)),
    "rhypot": lambda x, y: 1 / np.hypot(_long(x), _long(y)),
    "norm3d": lambda *v: np.sqrt(sum(_long(x) ** 2 for x in v)),
    "norm4d": lambda *v: np.sqrt(sum(_long(x) ** 2 for x in v)),
    "rnorm3d": lambda *v: 1 / np.sqrt(sum(_long(x) ** 2 for x in v)),
    "rnorm4d": lambda *v: 1 / np.sqrt(sum(_long(x) ** 2 for x in v)),
    "sqrt": lambda x: np.sqrt(_long(x)),
    "cyl_bessel_i0": lambda x: _bessel_i(0, x),
    "cyl_bessel_i1": lambda x: _bessel_i(1, x),
}


def _bessel_i(order: int, x: Array) -> Any:
    """The power series in long double, all of whose terms have one sign."""
    half = _long(x) / 2
    term = half**order
    total = term.copy()
    for k in range(1, 200):
        term = term * half * half / (k * (k + order))
        total += term
    return total


def _ulps(got: Array, want: Any) -> Array:
    """Distance in units in the last place of `want` in `got`'s format; NaN against NaN and equal words count 0."""
    rounded = np.asarray(want).astype(got.dtype)
    smallest = np.finfo(got.dtype).smallest_subnormal
    unit = np.maximum(np.abs(np.spacing(np.abs(rounded))), smallest)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs((_long(got) - np.asarray(want, np.longdouble)) / _long(unit))
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance)).astype(np.float64)


def reference(name: str, *arrays: Array) -> Any:
    """The function's value, to more digits than a double's where numpy has them."""
    own = _OTHERS.get(name)
    with np.errstate(all="ignore"):
        return own(*arrays) if own is not None else _c(name, *arrays)


def check_function(name: str, got: Array, *arrays: Array, ulps: float | None = None) -> None:
    """AssertionError unless every element is within the function's stated error."""
    limit = ULPS[name][got.dtype == np.float64] if ulps is None else ulps
    distance = _ulps(got, reference(name, *arrays))
    worst = int(np.argmax(distance))
    at = [float(a[worst]) for a in arrays]
    assert distance[worst] <= limit + 0.5, f"{name}{at}: {got[worst]!r} is {distance[worst]:.2f} ulp off"


def same_bits(got: Array, want: Array) -> None:
    """AssertionError unless the words are equal."""
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape)
    words = f"u{got.dtype.itemsize}" if got.dtype.kind in "fV" or got.dtype.itemsize < 8 else got.dtype
    a, b = (np.ascontiguousarray(x).view(words) for x in (got, want))
    if not np.array_equal(a, b):
        at = tuple(int(i[0]) for i in np.nonzero(a != b))
        raise AssertionError(f"{int((a != b).sum())} of {a.size} differ, first at {at}: {got[at]!r}, not {want[at]!r}")
