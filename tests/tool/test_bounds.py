"""Error models: hold for correct computations in any order, are tight enough to see wrong ones."""

import numpy as np
import pytest

from gpuemu import bounds
from gpuemu.gate.bits import Bits
from gpuemu.gate.declare import Input
from gpuemu.gate.dtypes import FORMATS, quantise, to_storage
from gpuemu.gate.judge import compare
from gpuemu.gate.values import DISTRIBUTIONS, floats

DTYPES = ("float16", "bfloat16", "float32")


def values(shape, dtype, distribution, name="x", **given):
    return floats(Input("M N", **given), shape, FORMATS[dtype], distribution, Bits(9, name))


def run_of(inputs, outputs, dtype, device="sm_80", dims=None):
    return bounds.Exact(inputs, outputs, dims or {}, dtype, device)


def softmax32(x, pad=0, fill=-np.inf):
    """Softmax in binary32, one operation at a time, as a kernel does it; `pad` lanes of `fill`."""
    wide = np.concatenate([x, np.full((len(x), pad), fill)], axis=1).astype(np.float32)
    with np.errstate(all="ignore"):
        e = np.exp2((wide - np.fmax.reduce(wide, axis=1, keepdims=True)) * np.float32(1.4426950408889634))
        return (e / e.sum(axis=1, keepdims=True))[:, : x.shape[1]].astype(np.float64)


def exact_softmax(x):
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)


def judge_softmax(x, got, dtype):
    exact = exact_softmax(x)
    bound = bounds.softmax("x")(run_of({"x": x}, {"y": exact}, dtype))
    form = FORMATS[dtype]
    return compare("y", to_storage(quantise(got, form), form), dtype, exact, np.broadcast_to(bound, exact.shape))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [1, 13, 128, 1000])
def test_softmax_bound_accepts_a_correct_kernel(dtype, distribution, n):
    x = values((32, n), dtype, distribution, nonfinite=("-inf", "nan"))
    result = judge_softmax(x, softmax32(x, pad=24), dtype)
    assert result.kind is None and result.borderline == 0, result.words()
    assert result.judged == result.elements


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, pad", [(13, 3), (127, 1), (129, 127), (1000, 24)])
def test_softmax_bound_sees_a_leak_of_the_tail(dtype, n, pad):
    wrong = [
        judge_softmax(x, softmax32(x, pad, 0.0), dtype).kind for d in DISTRIBUTIONS for x in [values((8, n), dtype, d)]
    ]
    assert wrong[2] is not None, "adversarial values show it at every size"
    assert dtype != "float32" or None not in wrong


def dot32(a, b):
    """A product accumulated one step at a time in binary32 (products exact for half inputs)."""
    acc = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        with np.errstate(all="ignore"):
            acc = (acc.astype(np.float64) + a[:, k : k + 1] * b[k : k + 1, :]).astype(np.float32)
    return acc.astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("k", [1, 31, 200])
def test_dot_bound_accepts_sequential_sums(dtype, distribution, k):
    a = values((16, k), dtype, distribution, "a", largest=1024.0)
    b = values((k, 16), dtype, distribution, "b", largest=1024.0)
    exact = a @ b
    model = bounds.dot("a", "b")
    bound = np.broadcast_to(model(run_of({"a": a, "b": b}, {"c": exact}, dtype)), exact.shape)
    form = FORMATS[dtype]
    result = compare("c", to_storage(quantise(dot32(a, b), form), form), dtype, exact, bound)
    assert result.kind is None and result.borderline == 0, result.words()


def test_dot_bound_sees_a_dropped_tile_and_a_double_count():
    a, b = values((8, 64), "bfloat16", "regular", "a"), values((64, 8), "bfloat16", "regular", "b")
    exact = a @ b
    bound = np.broadcast_to(bounds.dot("a", "b")(run_of({"a": a, "b": b}, {"c": exact}, "bfloat16")), exact.shape)
    form = FORMATS["bfloat16"]
    for wrong in (a[:, 32:] @ b[32:], exact + a[:, :1] @ b[:1]):
        assert compare("c", to_storage(quantise(wrong, form), form), "bfloat16", exact, bound).kind == "wrong-value"


def test_exact_integers_leave_no_room():
    a, b = np.arange(12.0).reshape(3, 4) - 6, np.arange(8.0).reshape(4, 2)
    exact = a @ b
    for dtype, model in (
        ("float16", bounds.dot("a", "b")),
        ("float32", bounds.dot("a", "b", precision={"float32": "tf32"})),
    ):
        assert not np.any(model(run_of({"a": a, "b": b}, {"c": exact}, dtype)))
    big = a * 2.0**20
    assert np.any(bounds.dot("a", "b")(run_of({"a": big, "b": b}, {"c": big @ b}, "float32")))


def test_tf32_is_wider_than_ieee_and_says_so():
    a, b = values((4, 32), "float32", "regular", "a"), values((32, 4), "float32", "regular", "b")
    run = run_of({"a": a, "b": b}, {"c": a @ b}, "float32")
    ieee, tf32 = bounds.dot("a", "b"), bounds.dot("a", "b", precision={"float32": "tf32"})
    assert np.all(tf32(run) > 100 * ieee(run))
    assert "tf32" in tf32.statement("float32") and "tf32" not in tf32.statement("float16")


def test_tensor_core_blocks_by_device():
    def numbers(device, dtype):
        core = bounds.tensor_core(device, dtype)
        return core.length, core.width, core.kept

    assert numbers("sm_80", "float16") == (8, 24, 23) and numbers("sm_90", "float16") == (16, 25, 23)
    assert numbers("sm_70", "float16") == (4, 23, 23) and numbers("sm_89", "float32") == (4, 24, 23)
    assert numbers("sm_89", "float8_e5m2") == (16, 13, 13) and numbers("sm_90", "float8_e4m3fn") == (32, 13, 13)
    assert numbers("sm_80", "float8_e5m2") == (8, 24, 23) and numbers("sm_100", "float8_e5m2") == (32, 25, 23)


@pytest.mark.parametrize("device, length, width, floor", [("sm_80", 8, 24, -132), ("sm_90", 16, 25, -133)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_dot_bound_holds_for_the_tensor_core_model(device, length, width, floor, dtype, distribution):
    """The engine's model of the tensor core, block by block, on values that fit the op's domain."""
    from interp.tensorcore.model import BF16, F16, F32, dot_block

    k, form = 96, FORMATS[dtype]
    a = values((12, k), dtype, distribution, "a", largest=1024.0)
    b = values((12, k), dtype, distribution, "b", largest=1024.0)
    kind = F16 if dtype == "float16" else BF16
    words_a, words_b = to_storage(a, form), to_storage(b, form)
    got = np.zeros((12, 12), np.uint32)
    for i, j in np.ndindex(12, 12):
        c = np.uint32(0)
        for at in range(0, k, length):
            left, right = words_a[i, at:].ctypes.data, words_b[j, at:].ctypes.data
            c = dot_block(left, right, 2, 2, length, kind, kind, c, F32, width, floor, 23)
        got[i, j] = c
    exact = a @ b.T
    bound = bounds.dot("a", "b")(run_of({"a": a, "b": b.T}, {"c": exact}, dtype, device))
    result = compare("c", got.view(np.float32), "float32", exact, np.broadcast_to(bound, exact.shape))
    assert result.kind is None and result.borderline == 0, result.words()


def test_half_ulp_and_trees():
    assert bounds.half_ulp(np.array([1.0, 2.0]), "float16").tolist() == [2.0**-11, 2.0**-10]
    assert bounds.tree_depth(1) == 15 and bounds.tree_depth(1024) == 46


def test_elementwise_total_and_exact():
    run = run_of({"x": np.array([1.0, -2.0])}, {"y": np.array([4.0, 8.0])}, "float32")
    assert bounds.elementwise(2)(run)["y"].tolist() == [2**-22 * 4 + 2**-149, 2**-22 * 8 + 2**-149]
    assert bounds.total(lambda x: x, depth=1)(run) == pytest.approx(2 * 3 * 2**-24, rel=1e-6)
    assert bounds.exact()(run) == 0.0
    assert bounds.statement_of(lambda run: 0.0, "float16") == "author's model '<lambda>'"
