"""Conversions and arithmetic of every type through `gpuemu.run`, against numpy on the same bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton")

import gpuemu
from tests.kernels import triton_kernels as K
from tests.kernels.bounds import check, integers, numbers, u32

SM80 = {"target": "sm_80"}
INTEGERS: list[Any] = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS: list[Any] = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def converted(x: np.ndarray, dtype: Any) -> np.ndarray:
    out = np.zeros(x.shape, dtype)
    assert gpuemu.run(K.convert, 3, x, out, x.size - 3, BLOCK=128, **SM80).findings == ()
    assert (out[-3:].view(np.uint8) == 0).all()
    return out[:-3]


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_integers_and_floats(source: Any) -> None:
    info = np.iinfo(source)
    ends = np.array([info.min, info.max, 0, 1, 2, 3], source)
    x = np.concatenate([integers(1, 100, 0, 200, np.int64).astype(source), ends])
    for target in (np.int8, np.uint16, np.int64, np.float32, np.float64):
        assert (converted(x, target) == x.astype(target)[:-3]).all(), target


@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_floats_and_integers(source: Any) -> None:
    x = np.concatenate([numbers(2, 100, np.float64, 30).astype(source), np.array([0.5, 1.5, -0.0, 3, 3, 3], source)])
    for target in FLOATS:
        assert converted(x, target).tobytes() == x.astype(np.float64).astype(target)[:-3].tobytes(), target
    for target in (np.int8, np.int32, np.int64, np.uint8):
        whole = np.abs(x) if target is np.uint8 else x
        assert (converted(whole, target) == np.trunc(whole.astype(np.float64)).astype(target)[:-3]).all(), target


def test_booleans() -> None:
    x, y = integers(3, 100, 0, 2, np.bool_), integers(4, 100, 0, 2, np.bool_)
    out = np.zeros(100, np.bool_)
    assert gpuemu.run(K.logic, 1, x, y, out, 100, BLOCK=128, **SM80).findings == ()
    assert (out == (x == y)).all()


def _quotients(a: np.ndarray, b: np.ndarray) -> tuple[list[int], list[int]]:
    """C's division, on Python's integers."""
    pairs = [(int(p), int(q)) for p, q in zip(a, b, strict=True)]
    quotients = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in pairs]
    return quotients, [p - q * d for (p, q), d in zip(pairs, quotients, strict=True)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(dtype: Any) -> None:
    info = np.iinfo(dtype)
    n = 200
    random = np.random.default_rng(5)
    x = random.integers(info.min, info.max, n, dtype, endpoint=True)
    y = random.integers(info.min, info.max, n, dtype, endpoint=True)
    y[:100] = random.integers(1, 10, 100)
    y[y == 0] = 1
    y[y == (-1 if info.min else 0)] = 1
    out = np.zeros((9, n), dtype)
    assert gpuemu.run(K.integer_arithmetic, 2, x, y, out, n, BLOCK=128, **SM80).findings == ()
    quotients, rests = _quotients(x, y)
    with np.errstate(over="ignore"):
        expected = [x + y, x - y, x * y, quotients, rests, x & y, x | y, x ^ y, x < y]
    for i, e in enumerate(expected):
        assert (out[i] == np.array(e, dtype)).all(), ["+", "-", "*", "//", "%", "&", "|", "^", "<"][i]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.int16])
def test_shifts(dtype: Any) -> None:
    bits = np.dtype(dtype).itemsize * 8
    x = np.random.default_rng(6).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, bits, dtype, endpoint=True)
    by, out = np.arange(bits).astype(dtype), np.zeros((2, bits), dtype)
    assert gpuemu.run(K.shifts, 1, x, by, out, bits, BLOCK=64, **SM80).findings == ()
    assert (out[0] == x << by).all() and (out[1] == x >> by).all()


def test_float_arithmetic_is_ieee() -> None:
    n = 120
    x, y = numbers(7, n, scale=100), numbers(8, n)
    x[:6], y[:6] = [0.0, -0.0, np.inf, 1e-40, 3e38, 1.0], [-0.0, 0.0, 2.0, 1e-3, -3e38, 3.0]
    out = np.zeros((11, n), np.float32)
    assert gpuemu.run(K.float_arithmetic, 1, x, y, out, n, BLOCK=128, enable_fp_fusion=False, **SM80).findings == ()
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        # the sum of an exact product and x: off by double rounding at most
        fused = (x64 * y64 + x64).astype(np.float32)
        # Triton emits floor and ceil with .ftz
        flushed = np.where(np.abs(x) < 2.0**-126, np.copysign(np.float32(0), x), x)
        expected = [x + y, x - y, x * y, fused, np.sqrt(np.abs(x)), x / y, np.minimum(x, y), np.maximum(x, y)]
        expected += [np.floor(flushed), np.ceil(flushed), -np.abs(x)]
    names = ["+", "-", "*", "fma", "sqrt", "/", "min", "max", "floor", "ceil", "-abs"]
    for i, (name, e) in enumerate(zip(names, expected, strict=True)):
        good = (out[i] == e) | (np.isnan(out[i]) & np.isnan(e))
        if name == "fma":
            finite = np.isfinite(fused)
            off = np.abs(out[i][finite] - fused[finite])
            good[finite] |= off <= np.spacing(np.abs(fused[finite]))
        assert good.all(), (name, x[~good], y[~good], out[i][~good], e[~good])
    assert np.signbit(out[6, :2]).all() and not np.signbit(out[7, :2]).any(), "min and max order the zeros"


def test_double_arithmetic() -> None:
    n = 100
    x, y = numbers(9, n, np.float64, 1e100), numbers(10, n, np.float64)
    out = np.zeros((6, n), np.float64)
    assert gpuemu.run(K.double_arithmetic, 1, x, y, out, n, BLOCK=128, enable_fp_fusion=False, **SM80).findings == ()
    assert (out[0] == x + y).all() and (out[1] == x * y - x).all()
    assert (out[2] == x / y).all() and (out[3] == np.sqrt(np.abs(x))).all()
    assert (np.abs(out[4] - (x * y + x)) <= (np.abs(x * y) + np.abs(x)) * 2.0**-52).all()
    assert (np.abs(out[5] - x.sum()) <= np.abs(x).sum() * 8 * 2.0**-53).all() and np.ptp(out[5]) == 0


def test_special_functions() -> None:
    from math import erf

    n = 250
    x = np.concatenate([np.linspace(-10, 10, n - 4), [0.001, -0.001, 30.0, -30.0]]).astype(np.float32)
    out = np.zeros((11, n), np.float32)
    assert gpuemu.run(K.special_functions, 1, x, out, n, BLOCK=256, **SM80).findings == ()
    v = x.astype(np.float64)
    tiny = 2.0**-126
    # (name, exact, bound): approximate instructions to the manual's figures, libdevice to the programming guide's
    table = [
        ("exp", np.exp(v), np.exp(v) * (2.5 * np.abs(v) + 5) * u32),
        ("log", np.log(np.abs(v)), np.abs(np.log(np.abs(v))) * 4 * u32 + 2.0**-22),
        ("sin", np.sin(v), np.abs(np.sin(v)) * 4 * u32 + 2.0**-24),
        ("cos", np.cos(v), np.abs(np.cos(v)) * 4 * u32 + 2.0**-24),
        ("rsqrt", 1 / np.sqrt(np.abs(v)), 4 * u32 / np.sqrt(np.abs(v))),
        ("exp2", np.exp2(v), np.exp2(v) * 5 * u32),
        ("log2", np.log2(np.abs(v)), np.abs(np.log2(np.abs(v))) * 4 * u32 + 2.0**-22),
        ("sigmoid", 1 / (1 + np.exp(-v)), (2.5 * np.abs(v) + 12) * u32 / (1 + np.exp(-v))),
        ("erf", np.array([erf(t) for t in v]), np.abs(np.array([erf(t) for t in v])) * 5 * u32),
        ("sqrt", np.sqrt(np.abs(v)), np.sqrt(np.abs(v)) * 5 * u32),
        ("reciprocal", 1 / v, 5 * u32 / np.abs(v)),
    ]
    for i, (name, exact, bound) in enumerate(table):
        error = np.abs(out[i] - exact)
        assert (error <= bound + tiny).all(), (name, float((error / bound).max()), x[np.argmax(error / bound)])
        check(out[i], exact, bound + tiny)


def test_high_products_and_bit_casts() -> None:
    x = np.random.default_rng(11).integers(0, 1 << 32, 100, np.uint32)
    out = np.zeros((2, 100), np.uint32)
    assert gpuemu.run(K.bits_and_high_products, 1, x, out, 100, BLOCK=128, **SM80).findings == ()
    wide = x.astype(np.uint64)
    assert (out[0] == wide * ((wide + 12345) & 0xFFFFFFFF) >> 32).all() and (out[1] == x ^ 0x5555).all()
