"""Error models of norms, attention, GELU, cross-entropy and FP8: correct binary32 lies within, wrong results do not."""

from math import erf

import numpy as np
import pytest

from gpuemu import bounds
from gpuemu.gate.bits import Bits
from gpuemu.gate.declare import Input
from gpuemu.gate.dtypes import FORMATS, quantise, to_storage
from gpuemu.gate.judge import compare
from gpuemu.gate.values import DISTRIBUTIONS, floats

DTYPES = ("float16", "bfloat16", "float32")
F32 = np.float32


def values(shape, dtype, distribution, name="x", **given):
    return floats(Input("M N", **given), shape, FORMATS[dtype], distribution, Bits(9, name))


def judge(model, inputs, exact, got, dtype, out=None, device="sm_80"):
    """The comparison of one output; `got` is rounded to the output's format (`out`, default the case's dtype)."""
    given = model(bounds.Exact(inputs, {"y": exact}, {}, dtype, device))
    bound = given["y"] if isinstance(given, dict) else given
    form = FORMATS[out or dtype]
    with np.errstate(all="ignore"):
        stored = to_storage(quantise(np.asarray(got, np.float64), form), form)
    return compare("y", stored, form.name, exact, np.broadcast_to(np.asarray(bound, np.float64), exact.shape))


def right(result):
    return result.kind is None and result.borderline == 0 and result.judged == result.elements


def layernorm(x, w, b, dtype, leak=0):
    x, w, b = (a.astype(dtype) for a in (x, w, b))
    n = dtype(x.shape[1])
    mean = (x.sum(axis=1, keepdims=True) / n).astype(dtype)
    off = x - mean
    spoiled = (off * off).sum(axis=1, keepdims=True) + dtype(leak) * mean * mean
    return off / np.sqrt(spoiled / n + dtype(1e-5)) * w + b


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [1, 31, 1000])
def test_layernorm(dtype, distribution, n):
    x = values((24, n), dtype, distribution, largest=2.0**12)
    w, b = (values((1, n), dtype, distribution, name, largest=64.0)[0] for name in "wb")
    model = bounds.layernorm("x", eps=1e-5, weight="w", bias="b")
    inputs, exact = {"x": x, "w": w, "b": b}, layernorm(x, w, b, np.float64)
    result = judge(model, inputs, exact, layernorm(x, w, b, F32), dtype)
    assert right(result), result.words()
    if distribution == "adversarial" and n > 1:
        assert judge(model, inputs, exact, layernorm(x, w, b, np.float64, leak=1), dtype).kind is not None


def rmsnorm(x, w, dtype, divisor=None):
    x, w = x.astype(dtype), w.astype(dtype)
    mean = (x * x).sum(axis=1, keepdims=True) / dtype(divisor or x.shape[1])
    return x / np.sqrt(mean + dtype(1e-6)) * w


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_rmsnorm(dtype, distribution):
    x = values((24, 127), dtype, distribution, largest=2.0**15)
    w = values((1, 127), dtype, distribution, "w", largest=64.0)[0]
    model = bounds.rmsnorm("x", eps=1e-6, weight="w")
    inputs, exact = {"x": x, "w": w}, rmsnorm(x, w, np.float64)
    result = judge(model, inputs, exact, rmsnorm(x, w, F32), dtype)
    assert right(result), result.words()
    assert judge(model, inputs, exact, rmsnorm(x, w, np.float64, divisor=128), dtype).kind == "wrong-value"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_gelu(dtype, distribution):
    x = values((8, 257), dtype, distribution)
    phi = np.vectorize(erf, otypes=[float])
    with np.errstate(over="ignore"):
        exact = 0.5 * x * (1 + phi(x / np.sqrt(2)))
        z = (x.astype(F32) * F32(0.7071067811865476)).astype(np.float64)
        got = F32(0.5) * x.astype(F32) * (F32(1) + phi(z).astype(F32))
    result = judge(bounds.gelu("x"), {"x": x}, exact, got, dtype)
    assert right(result), result.words()
    assert judge(bounds.gelu("x"), {"x": x}, exact, 2 * exact, dtype).kind is not None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_cross_entropy(dtype, distribution):
    x = values((24, 300), dtype, distribution, nonfinite=("-inf",))
    label = Bits(3, "l").below(300, 24)

    def loss(kind):
        z = x.astype(kind)
        with np.errstate(all="ignore"):
            top = z.max(axis=1)
            safe = np.where(np.isfinite(top), top, kind(0))
            lse = top + np.log(np.exp(z - safe[:, None]).sum(axis=1))
            return lse - z[np.arange(24), label], lse

    model = bounds.cross_entropy("x", "label", loss="y", lse=None)
    inputs = {"x": x, "label": label.astype(np.float64)}
    exact, got = loss(np.float64)[0], loss(F32)[0]
    result = judge(model, inputs, exact, got, dtype, out="float32")
    assert right(result), result.words()
    wrong = np.where(np.isfinite(exact), exact + np.log(301 / 300), exact)
    assert judge(model, inputs, exact, wrong, dtype, out="float32").kind is not None


def attention(q, k, v, kind, narrow=None, mask=None, scale=None):
    q, k, v = (a.astype(kind) for a in (q, k, v))
    s = q @ k.swapaxes(1, 2) * kind(scale or q.shape[-1] ** -0.5)
    seen = np.ones(s.shape[1:], bool) if mask is None else mask(*s.shape[1:])
    with np.errstate(all="ignore"):
        s = np.where(seen, s, -np.inf)
        top = s.max(axis=2, keepdims=True)
        p = np.exp(s - np.where(np.isfinite(top), top, kind(0)))
        total = p.sum(axis=2, keepdims=True)
        rounded = p if narrow is None else quantise(p.astype(np.float64), FORMATS[narrow]).astype(kind)
        return rounded @ v / np.where(total == 0, kind(1), total)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mask", [None, bounds.causal_mask])
def test_attention(dtype, distribution, mask):
    q, k = (values((2, s, 32), dtype, distribution, name, largest=8.0) for s, name in ((40, "q"), (33, "k")))
    v = values((2, 33, 32), dtype, distribution, "v", largest=1024.0)
    model = bounds.attention("q", "k", "v", mask=mask, precision={"float32": "tf32"})
    inputs, exact = {"q": q, "k": k, "v": v}, attention(q, k, v, np.float64, mask=mask)
    got = attention(q, k, v, F32, narrow=dtype, mask=mask)
    result = judge(model, inputs, exact, got, dtype)
    assert right(result), result.words()
    unscaled = attention(q, k, v, np.float64, mask=mask, scale=1.0)
    assert judge(model, inputs, exact, unscaled, dtype).kind == "wrong-value"


def test_a_sum_whose_parts_may_overflow_is_not_judged():
    largest = np.finfo(np.float32).max
    x = np.array([[largest, largest, -largest, -largest], [1.0, 2.0, 3.0, 4.0]])
    model = bounds.total(lambda x: x, depth=3)
    exact = x.sum(axis=1)
    result = judge(model, {"x": x}, exact, np.array([np.inf, 10.0]), "float32")
    assert result.judged == 1 and result.kind is None
    assert judge(model, {"x": x}, exact, np.array([np.inf, 11.0]), "float32").kind == "wrong-value"
    product = bounds.dot("a", "b")
    result = judge(product, {"a": x[:1], "b": np.ones((4, 1))}, np.zeros((1, 1)), np.array([[np.nan]]), "float32")
    assert result.judged == 0


def test_causal_mask_is_aligned_at_the_last_query_and_key():
    assert bounds.causal_mask(2, 3).tolist() == [[True, True, False], [True, True, True]]
    assert bounds.causal_mask(3, 2).tolist() == [[False, False], [True, False], [True, True]]


@pytest.mark.parametrize("device, length", [("sm_89", 16), ("sm_90", 32)])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_fp8_products_of_the_tensor_core_model(device, length, dtype, distribution):
    """The engine's model, 13 bits wide, block after block, then scales, bias and relu in binary32."""
    from interp.tensorcore.model import E4M3, E5M2, dot_block
    from interp.tensorcore.model import F32 as RESULT

    k, kind, form = 96, E4M3 if dtype == "float8_e4m3fn" else E5M2, FORMATS[dtype]
    a, b = (values((8, k), dtype, distribution, name, largest=64.0) for name in "ab")
    bias = values((1, 8), "float32", distribution, "bias", largest=64.0)[0]
    scales = {"s": np.array([0.75]), "t": np.array([1.5])}
    left, right_ = to_storage(a, form), to_storage(b, form)
    acc = np.zeros((8, 8), np.uint32)
    for i, j in np.ndindex(8, 8):
        c = np.uint32(0)
        for at in range(0, k, length):
            first, second = left[i, at:].ctypes.data, right_[j, at:].ctypes.data
            c = dot_block(first, second, 1, 1, length, kind, kind, c, RESULT, 13, -133, 13)
        acc[i, j] = c
    got = np.maximum(acc.view(F32) * (F32(0.75) * F32(1.5)) + bias.astype(F32), F32(0))
    inputs = {"a": a, "b": b.T, "bias": bias, **scales}
    exact = np.maximum(a @ b.T * 1.125 + bias, 0)
    model = bounds.fused_dot("a", "b", scales=("s", "t"), bias="bias")
    result = judge(model, inputs, exact, got, dtype, out="bfloat16", device=device)
    assert right(result), result.words()
    wrong = np.maximum(a @ b.T * 0.5625 + bias, 0)
    assert judge(model, inputs, exact, wrong, dtype, out="bfloat16", device=device).kind == "wrong-value"


def test_a_split_product_may_add_its_parts():
    a, b = values((4, 128), "float16", "regular", "a"), values((128, 4), "float16", "regular", "b")
    run = bounds.Exact({"a": a, "b": b}, {"y": a @ b}, {}, "float16", "sm_80")
    whole, split = bounds.dot("a", "b")(run), bounds.dot("a", "b", chunk=32)(run)
    assert np.all(split > whole) and np.all(split < whole + 5 * 2.0**-24 * (np.abs(a) @ np.abs(b)))
