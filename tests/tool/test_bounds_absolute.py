"""The rule for formulas of sums and products: it holds in any order, and sees one rounding too many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuemu import bounds

F32 = np.float32


def run_of(**inputs):
    values = {n: np.asarray(v, np.float64) for n, v in inputs.items()}
    return bounds.Exact(values, {"y": np.zeros(1)}, {"N": 8}, "float32", "sm_80")


numbers = st.lists(st.floats(-(2.0**20), 2.0**20, width=32), min_size=8, max_size=8)


@settings(max_examples=60, deadline=None)
@given(numbers, numbers, st.permutations(range(8)))
def test_a_sum_of_products_in_any_order_is_within_the_bound(a, b, order):
    model = bounds.absolute(lambda a, b: (a * b).sum(), roundings=lambda N: N + 1)
    exact = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    total = F32(0)
    for i in order:
        total = F32(total + F32(F32(a[i]) * F32(b[i])))
    assert abs(float(total) - exact) <= model(run_of(a=a, b=b))["y"]


def test_a_product_rounded_to_half_is_outside_the_bound():
    model = bounds.absolute(lambda a, b: a * b + a, roundings=2)
    a, b = np.array([1.0009765625]), np.array([3.001953125])
    wrong = float(np.float16(a[0] * b[0])) + a[0]
    assert abs(wrong - (a * b + a)[0]) > model(run_of(a=a, b=b))["y"][0]


def test_cancellation_does_not_shrink_the_bound_and_overflow_is_not_judged():
    model = bounds.absolute(lambda a, b: {"y": a + b}, roundings=1)
    assert model(run_of(a=[1e20], b=[-1e20]))["y"][0] > 1e12
    assert np.isinf(model(run_of(a=[3e38], b=[3e38]))["y"][0])


@pytest.mark.parametrize("out", [None, "z"])
def test_the_output_that_it_bounds(out):
    model = bounds.absolute(lambda a: a, roundings=1, out=out)
    assert set(model(run_of(a=[1.0]))) == {out or "y"}
