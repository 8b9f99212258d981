"""Running error analysis: binary32 arithmetic, in several orders, stays within what it says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuemu.bounds import Running, constant, lift

F32 = np.float32
NUMBERS = st.floats(-1e4, 1e4, width=32)
ROWS = st.lists(NUMBERS, min_size=1, max_size=40)


def inside(got, r: Running) -> bool:
    return bool((np.abs(np.asarray(got, np.float64) - r.value) <= r.error).all())


@given(ROWS, st.integers(0, 2**31))
@settings(max_examples=60)
def test_sums_in_any_order(row, seed):
    x = np.array(row, F32)
    r = lift(x.astype(np.float64)).sum(0, depth=len(row))
    order = np.random.default_rng(seed).permutation(len(row))
    total = F32(0)
    for v in x[order]:
        total = F32(total + v)
    assert inside(total, r)
    assert inside(np.sum(x, dtype=F32), r)


@given(NUMBERS, NUMBERS, NUMBERS)
@settings(max_examples=100)
def test_arithmetic(a, b, c):
    x, y, z = (lift(np.array(float(v))) for v in (a, b, c))
    p, q, s = F32(a), F32(b), F32(c)
    assert inside(F32(F32(p * q) + s), x * y + z)
    assert inside(F32(np.float64(p) * np.float64(q) + np.float64(s)), x * y + z), "one fma"
    assert inside(F32(F32(p - q) * F32(q - s)), (x - y) * (y - z))
    if abs(b) > 1e-3:
        assert inside(F32(F32(p - s) / q), (x - z) / y)
    with np.errstate(over="ignore"):
        assert inside(F32(p * F32(0.1)), x * constant(0.1))


@given(st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=20))
@settings(max_examples=60)
def test_exponentials_and_logarithms(row):
    x = np.array(row, F32)
    r = lift(x.astype(np.float64))
    with np.errstate(over="ignore", under="ignore"):
        e = np.exp2(x * F32(1.4426950408889634))
        assert inside(e, r.exp())
        assert inside(F32(1) / (F32(1) + np.exp2(-x * F32(1.4426950408889634))), r.sigmoid())
        t = np.exp2(F32(-2) * np.abs(x) * F32(1.4426950408889634))
        assert inside(np.copysign((F32(1) - t) / (F32(1) + t), x), r.tanh())
        assert inside(np.tanh(x), r.tanh())
        assert inside(np.log(e + F32(1)), (r.exp() + 1.0).log())


@given(st.lists(st.floats(0, 2.0**100, width=32), min_size=1, max_size=20))
@settings(max_examples=60)
def test_roots(row):
    x = np.array(row, F32)
    r = lift(x.astype(np.float64))
    assert inside(np.sqrt(x), r.sqrt())
    assert inside(F32(1) / np.sqrt(x + F32(1)), (r + 1.0).rsqrt())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_narrowed_operands(dtype):
    from gpuemu.gate.dtypes import FORMATS, quantise

    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 33)), quantise(rng.normal(size=(33, 7)), FORMATS[dtype])
    r = lift(a).narrowed(dtype).dot(lift(b), dtype, "sm_80")
    got = quantise(a, FORMATS[dtype]) @ b
    assert inside(got, r) and (r.error < 0.1).all() and np.array_equal(r.value, a @ b)


def test_what_leaves_the_range_is_not_judged_and_what_is_certain_is():
    big = lift(np.array([1e30]))
    assert np.isinf((big * big).error).all() and np.isfinite((big * 1e5).error).all()
    assert lift(np.array([3.0])).error == 0 and lift(np.ones((2, 3))).sum(0).error.shape == (3,)


def test_an_error_model_is_tight_enough_to_see_a_wrong_operation():
    x = lift(np.linspace(0.1, 3, 50))
    r = x.exp()
    assert not inside(r.value * (1 + 2.0**-18), r)
    s = x.sum(0)
    assert not inside(s.value + 0.001, s)
