"""The gradients of the library are those of its forward references, by complex steps."""

import msgspec
import numpy as np
import pytest
from schema_list import declared

from gpuemu.gate.cases import enumerate_cases
from gpuemu.gate.inputs import make_arguments, reference_values
from gpuemu.schemas import gradient
from gpuemu.schemas.attention import seen_by

EPS = {"layer_norm_backward": 1e-5, "rms_norm_backward": 1e-6}


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, weight, bias):
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * weight + bias


def rms_norm(x, weight):
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * weight


def swiglu(gate, up):
    return gate / (1 + np.exp(-gate)) * up


def attention(q, k, v):
    s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    seen = seen_by(q.shape[-2], k.shape[-2], False, None)
    return softmax(np.where(seen, s, -np.inf)) @ v


def cross_entropy(x, label):
    return np.log(np.exp(x).sum(axis=1)) - x[np.arange(len(x)), label]


def arguments_of(name, dims, **given):
    op = declared(name, given)
    case = next(c for c in enumerate_cases([op], seed=2, targets=["sm_80"]) if c.dtype == "float32")
    case = msgspec.structs.replace(case, dims=dims, distribution="regular")
    arguments = make_arguments(op, case)
    inputs = {n: a.original.astype(np.float64) for n, a in arguments.items() if a.original is not None}
    return inputs, reference_values(op, case, arguments)


@pytest.mark.parametrize(
    "name, dims, forward, of, upstream, outputs",
    [
        ("layer_norm_backward", {"M": 3, "N": 7}, layer_norm, ("x", "weight"), "dy", ("dx", "dw")),
        ("rms_norm_backward", {"M": 3, "N": 7}, rms_norm, ("x", "weight"), "dy", ("dx", "dw")),
        ("swiglu_backward", {"M": 3, "N": 7}, swiglu, ("gate", "up"), "dy", ("dgate", "dup")),
        ("attention_backward", {"B": 1, "H": 2, "SQ": 3, "SK": 4, "D": 5}, attention, ("q", "k", "v"), "do",
         ("dq", "dk", "dv")),
        ("cross_entropy_backward", {"M": 3, "V": 7}, cross_entropy, ("x",), "dloss", ("dx",)),
    ],
)  # fmt: skip
def test_the_formula_is_the_derivative(name, dims, forward, of, upstream, outputs):
    given = {"ignore": False} if name == "cross_entropy_backward" else {}
    inputs, exact = arguments_of(name, dims, **given)
    inputs |= {"bias": np.zeros(dims.get("N", 1)), "label": inputs.get("label", np.zeros(1)).astype(int)}
    for output, found in zip(outputs, gradient(forward, of, upstream)(**inputs), strict=True):
        # The saved statistics are rounded to float32 (and o to the dtype): the formula is that of the rounded ones.
        assert np.allclose(exact[output], found, rtol=2e-5, atol=2e-6), output


def test_softmax_gradient():
    rng = np.random.default_rng(1)
    x, dy = rng.normal(size=(3, 6)), rng.normal(size=(3, 6))
    y = softmax(x)
    (found,) = gradient(softmax, ("x",))(x=x, dy=dy)
    reference = declared("softmax_backward", {}).reference
    assert np.allclose(reference(y, dy), found, rtol=1e-12, atol=1e-14)
