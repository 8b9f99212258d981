"""The comparison: classes, bounds, overflow, poison, and which element is shown."""

import numpy as np
import pytest

from gpuemu.gate.dtypes import FORMATS, canonical_nan, numpy_dtype, to_float64, to_storage
from gpuemu.gate.judge import MARGIN, compare
from gpuemu.gate.poison import POISONS, Poison, fill, holds, poison_of

INF, NAN, BIG = np.inf, np.nan, 65504.0


def judge(got, exact, bound=0.0, dtype="float16"):
    exact = np.atleast_1d(np.asarray(exact, np.float64))
    stored = to_storage(np.atleast_1d(np.asarray(got, np.float64)), FORMATS[dtype])
    return compare("y", stored, dtype, exact, np.broadcast_to(np.asarray(bound, np.float64), exact.shape))


@pytest.mark.parametrize(
    "got, exact, bound, kind",
    [
        (1.0, 1.0, 0.0, None),
        (1.0, 1.0 + 2.0**-11, 0.0, None),  # half an ulp: the rounding itself
        (1.0 + 2.0**-10, 1.0, 0.0, "wrong-value"),  # one ulp
        (1.0 + 2.0**-10, 1.0, 2.0**-11, None),
        (NAN, NAN, 0.0, None),
        (1.0, NAN, 0.0, "non-finite"),
        (NAN, 1.0, 1e30, "non-finite"),  # no bound excuses a NaN
        (INF, INF, 0.0, None),
        (-INF, INF, 0.0, "non-finite"),
        (BIG, INF, 0.0, "non-finite"),
        (INF, 65519.0, 0.0, "non-finite"),  # rounds to 65504
        (INF, 65520.0, 0.0, None),  # the overflow threshold
        (BIG, 65521.0, 0.0, "non-finite"),
        (BIG, 65520.0, 1.0, None),  # either is right
        (INF, 65520.0, 1.0, None),
        (-INF, 65520.0, 1.0, "non-finite"),
        (INF, 1.0, 1.0, "non-finite"),
        (0.0, -0.0, 0.0, None),
        (2.0**-24, 0.0, 0.0, "wrong-value"),
    ],
)
def test_one_element(got, exact, bound, kind):
    assert judge(got, exact, bound).kind == kind


def test_an_infinite_bound_is_not_judged_and_counted():
    result = judge([1.0, 5.0], [1.0, 1.0], [0.0, INF])
    assert result.kind is None and result.judged == 1 and result.elements == 2


def test_a_nan_poison_is_unwritten_even_where_nan_is_expected():
    words = np.array([0xFFFF, 0x7E00], np.uint16).view(np.float16)
    result = compare("y", words, "float16", np.array([NAN, NAN]), np.zeros(2), Poison(0xFFFF, True))
    assert (result.kind, result.index, result.wrong) == ("unwritten", (0,), 1)


def test_a_finite_poison_is_unwritten_only_where_it_is_wrong():
    held = poison_of(4, "float16")
    assert not held.certain and POISONS[4 // 2 % 3] == "finite"
    words = np.full(2, held.word, np.uint16).view(np.float16)
    value = float(words[0])
    assert compare("y", words, "float16", np.array([value, value]), np.zeros(2), held).kind is None
    result = compare("y", words, "float16", np.array([value, 1.0]), np.zeros(2), held)
    assert (result.kind, result.index, result.wrong) == ("unwritten", (1,), 1)


@pytest.mark.parametrize("dtype", [*FORMATS, "int32", "int8"])
def test_poisons_differ_and_none_is_a_number_that_kernels_make_often(dtype):
    found = {poison_of(seed, dtype).word for seed in (0, 2, 4)}
    assert len(found) == (2 if FORMATS.get(dtype) and FORMATS[dtype].itemsize == 1 else 3)
    for seed in (0, 2, 4):
        array = np.empty(3, numpy_dtype(dtype))
        fill(array, poison_of(seed, dtype))
        assert holds(array, poison_of(seed, dtype)).all() and not (array == 0).any()
        if dtype in FORMATS:
            value = to_float64(array)
            form = FORMATS[dtype]
            assert np.isnan(value).all() == poison_of(seed, dtype).certain
            assert np.isnan(value).all() or (form.largest / 8 < value).all()
            assert canonical_nan(form) not in (found if form.itemsize > 1 else ())


def test_borderline_is_not_a_finding():
    exact = 1.0
    bound = 2.0**-10 - 2.0**-11 - 2.0**-35  # half ulp + bound just below one ulp
    result = judge(1.0 + 2.0**-10, exact, bound)
    assert result.kind is None and result.borderline == 1
    assert judge(1.0 + 2.0**-10, exact, bound * (1 - 4 * MARGIN)).kind == "wrong-value"


def test_the_worst_element_is_shown_with_its_numbers():
    result = judge([[1.0, 1.5, 1.0], [1.25, 1.0, 9.0]], np.ones((2, 3)), 0.01)
    assert (result.index, result.wrong, result.kind) == ((1, 2), 3, "wrong-value")
    assert result.error == 8.0 and 0.01 < result.allowed < 0.011
    assert "y[1, 2] is 9, expected 1" in result.words() and "3 of 6 elements" in result.words()


def test_a_wrong_class_ranks_above_any_error():
    assert judge([9e4, NAN, 3.0], [1.0, 1.0, 1.0], 0.0, "float32").index == (1,)


def test_worst_ratio_says_how_much_of_the_bound_was_used():
    assert judge(1.5, 1.0, 1.0, "float32").worst_ratio == pytest.approx(0.5, rel=1e-6)


def test_64_bit_integers_are_compared_as_integers():
    exact = np.array([2**60, 5], np.int64)
    got = exact + np.array([1, 0])
    as_float = exact.astype(np.float64)
    assert compare("y", got, "int64", as_float, np.zeros(2)).kind is None, "float64 cannot tell"
    result = compare("y", got, "int64", as_float, np.zeros(2), whole=exact)
    assert (result.kind, result.index, result.error) == ("wrong-value", (0,), 1.0)
    assert compare("y", exact, "int64", as_float, np.zeros(2), whole=exact).kind is None


def test_empty_outputs_pass():
    assert judge(np.zeros(0), np.zeros(0)).kind is None


@pytest.mark.parametrize("dtype, largest", [("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0)])
def test_an_8_bit_output_saturates(dtype, largest):
    for exact in (largest, 2 * largest, INF):
        assert judge(largest, exact, dtype=dtype).kind is None and judge(-largest, -exact, dtype=dtype).kind is None
        assert judge(largest / 2, exact, dtype=dtype).kind == "wrong-value"
        assert judge(NAN, exact, dtype=dtype).kind == "non-finite"
    assert judge(NAN, NAN, dtype=dtype).kind is None
