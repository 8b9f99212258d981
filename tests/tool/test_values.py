"""Formats and input values: rounding against independent conversions, exactness, contracts, fixed bytes."""

import hashlib

import ml_dtypes
import numpy as np
import pytest

from gpuemu.gate.bits import Bits
from gpuemu.gate.declare import Input
from gpuemu.gate.dtypes import FORMATS, canonical_nan, dtype_name, quantise, quantum, to_float64, to_storage
from gpuemu.gate.values import DISTRIBUTIONS, floats, padding
from ptx.errors import InvalidInput

NARROW = [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16), ("float32", np.float32)]
FP8 = [("float8_e4m3fn", ml_dtypes.float8_e4m3fn), ("float8_e5m2", ml_dtypes.float8_e5m2)]


@pytest.mark.parametrize("name, dtype", NARROW)
def test_quantise_rounds_as_an_independent_conversion(name, dtype):
    """float32 inputs, so that no library rounds twice."""
    words = Bits(3, "q").words(20_000)
    values = words.view(np.float32)
    values = values[np.isfinite(values)].astype(np.float64)
    with np.errstate(over="ignore"):
        expected = values.astype(np.float32).astype(dtype).astype(np.float32).astype(np.float64)
    got = quantise(values, FORMATS[name])
    assert np.array_equal(got, expected) and np.array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize("name, dtype", FP8)
def test_fp8_rounds_as_an_independent_conversion_and_saturates(name, dtype):
    form = FORMATS[name]
    codes = to_float64(np.arange(256, dtype=np.uint8).view(dtype))
    finite = np.sort(codes[np.isfinite(codes)])
    assert form.largest == finite[-1] == float(ml_dtypes.finfo(dtype).max) and form.overflow == np.inf
    middle = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    for near in (finite, middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, -np.float32(np.inf))):
        values = near.astype(np.float64)
        assert np.array_equal(quantise(values, form), values.astype(dtype).astype(np.float64))
    over = np.array([1e9, -1e9, np.inf, -np.inf])
    assert np.array_equal(quantise(over, form), np.sign(over) * form.largest)
    stored = to_storage(np.array([np.nan, 1.0]), form)
    assert stored.view(np.uint8).tolist() == [0x7F, np.array(1.0).astype(dtype).view(np.uint8)]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_quantise_agrees_on_every_value_of_the_format_and_every_midpoint(name):
    form = FORMATS[name]
    words = np.arange(1 << 16, dtype=np.uint16)
    values = to_float64(words.view(form.numpy))
    values = np.sort(values[np.isfinite(values)])
    assert np.array_equal(quantise(values, form), values)
    middle = (values[1:] + values[:-1]) / 2
    assert np.array_equal(quantise(middle, form), middle.astype(np.float32).astype(form.numpy).astype(np.float64))


def test_quantum_is_the_spacing():
    form = FORMATS["float16"]
    at = np.array([0.0, 2.0**-24, 2.0**-14, 1.0, 1.5, 2.0, 65504.0])
    assert np.array_equal(quantum(at, form), [2.0**-24, 2.0**-24, 2.0**-24, 2.0**-10, 2.0**-10, 2.0**-9, 32.0])


@pytest.mark.parametrize("name", [n for n, _ in NARROW + FP8])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_values_are_exact_finite_and_within_the_limit(name, distribution):
    form = FORMATS[name]
    values = floats(Input("M N", largest=64.0), (20, 33), form, distribution, Bits(5, "x"))
    assert values.shape == (20, 33) and np.isfinite(values).all() and np.abs(values).max() <= 64
    assert np.array_equal(quantise(values, form), values)
    assert np.array_equal(to_float64(to_storage(values, form)), values)


def test_nonfinite_values_appear_only_where_the_contract_has_them():
    shape, form = (64, 70), FORMATS["float32"]
    plain = floats(Input("M N"), shape, form, "adversarial", Bits(5, "x"))
    assert np.isfinite(plain).all()
    some = floats(Input("M N", nonfinite=("-inf", "nan")), shape, form, "adversarial", Bits(5, "x"))
    assert np.isneginf(some).any() and np.isnan(some).any() and not np.isposinf(some).any()
    assert np.isneginf(some).all(axis=1).any(), "one row is -inf throughout"


def test_boundary_has_the_edges_of_the_format():
    for name, _ in NARROW:
        form = FORMATS[name]
        seen = set(floats(Input("N"), (4000,), form, "boundary", Bits(5, "x")).tolist())
        assert {
            form.smallest,
            form.smallest_normal,
            form.largest,
            -form.largest,
            1 + 2.0 ** (1 - form.precision),
        } <= seen


def test_positive_domain():
    assert (floats(Input("N", positive=True), (500,), FORMATS["float16"], "adversarial", Bits(5, "x")) >= 0).all()


def test_nan_inputs_are_canonical_and_never_the_poison():
    stored = to_storage(np.array([np.nan, -np.nan]), FORMATS["bfloat16"])
    assert stored.view(np.uint16).tolist() == [canonical_nan(FORMATS["bfloat16"])] * 2 == [0x7FC0] * 2
    assert np.isnan(padding(FORMATS["float16"], "adversarial")) and np.isfinite(padding(FORMATS["float16"], "regular"))


def test_the_bytes_of_inputs_never_change():
    """A change here changes what every seed means: a replay keeps its bytes, its source is run on others."""
    digest = hashlib.sha256()
    for name, _ in NARROW:
        for distribution in DISTRIBUTIONS:
            values = floats(Input("M N", nonfinite=("-inf",)), (17, 65), FORMATS[name], distribution, Bits(11, "x"))
            digest.update(to_storage(values, FORMATS[name]).tobytes())
    assert digest.hexdigest() == "8dd828b30abcfb46d70bf3bc906942e686e2517f58b31fc5e65f4e3f65b2a9ca"


def test_dtype_names():
    assert dtype_name("f16") == "float16" and dtype_name("i32") == "int32" and dtype_name("bfloat16") == "bfloat16"
    with pytest.raises(InvalidInput, match="unknown dtype 'f17'"):
        dtype_name("f17")
