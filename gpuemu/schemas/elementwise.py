"""Functions of one element, and of two.

Arguments: `x` -> `y`, both [N]; of two: `a`, `b` -> `c`. Error models are the formula in running error analysis, in
binary32 whatever the dtype: a kernel that computes in a half format makes more error, and is seen. What a function
cancels (1 - tanh, exp(x) - 1 near zero) has an absolute error in any kernel that does not call an accurate library
function, and the model allows that.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np

from gpuemu.bounds import Model, Running, constant, elementwise, exact, formula
from gpuemu.bounds import gelu as gelu_model
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.schema import BLOCK, Schema, Views

ERF = np.vectorize(erf, otypes=[float])
GELU_A, GELU_B = 0.7978845608028654, 0.044715


def _sizes(block: int) -> tuple[int, ...]:
    return (0, 1, 17, block - 1, block, block + 1, 2 * block + 1, 8 * block - 24)


def unary(
    reference: Callable[[F64], F64], bound: Model, *, block: int = BLOCK, views: Views = ("offset",), **domain: Any
) -> Schema:
    """y = reference(x) element by element, under an error model. `domain`: fields of Input for x."""
    return {
        "dims": {"N": _sizes(block)},
        "inputs": {"x": Input("N", views=tuple(views), **domain)},
        "outputs": {"y": Output("N")},
        "reference": lambda x: reference(x),
        "bound": bound,
    }


def _of(function: Callable[[Running], Running], name: str) -> Model:
    return formula(lambda x: function(x), f"{name} in binary32", family=name)


def sigmoid64(x: F64) -> F64:
    """The logistic function in float64, without overflow."""
    e = np.exp(-np.abs(x))
    out: F64 = np.where(x >= 0, 1.0, e) / (1 + e)
    return out


def gelu_tanh64(x: F64) -> F64:
    """GELU by its tanh approximation, in float64."""
    out: F64 = 0.5 * x * (1 + np.tanh(GELU_A * (x + GELU_B * x**3)))
    return out


def gelu_tanh_running(x: Running) -> Running:
    """The same in running error analysis."""
    z = (x + x * x * x * constant(GELU_B)) * constant(GELU_A)
    return x * (z.tanh() + 1.0) * 0.5


def relu(**given: Any) -> Schema:
    """max(x, 0); no error."""
    return unary(lambda x: np.maximum(x, 0.0), exact(), **given) | {"linear": ""}


def leaky_relu(slope: float = 0.01, **given: Any) -> Schema:
    """x where it is positive, else slope * x; the slope is rounded to binary32."""
    return unary(
        lambda x: np.where(x > 0, x, slope * x),
        _of(lambda x: Running(np.where(x.value > 0, x.value, slope * x.value),
                              np.where(x.value > 0, 0.0, (x * constant(slope)).error)), "leaky_relu"),
        **given,
    )  # fmt: skip


def elu(alpha: float = 1.0, **given: Any) -> Schema:
    """x where it is positive, else alpha * (exp(x) - 1)."""

    def running(x: Running) -> Running:
        negative = (Running(np.minimum(x.value, 0.0), x.error).exp() - 1.0) * constant(alpha)
        return Running(np.where(x.value > 0, x.value, negative.value), np.where(x.value > 0, 0.0, negative.error))

    return unary(lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0))), _of(running, "elu"), **given)


def sigmoid(**given: Any) -> Schema:
    """1 / (1 + exp(-x))."""
    return unary(sigmoid64, _of(lambda x: x.sigmoid(), "sigmoid"), **given)


def silu(**given: Any) -> Schema:
    """x * sigmoid(x)."""
    return unary(lambda x: x * sigmoid64(x), _of(lambda x: x * x.sigmoid(), "silu"), **given)


def tanh(**given: Any) -> Schema:
    """tanh(x), through exponentials or a library function."""
    return unary(np.tanh, _of(lambda x: x.tanh(), "tanh"), **given)


def gelu(**given: Any) -> Schema:
    """x/2 * (1 + erf(x / sqrt 2)); CUDA's erff is within 2 ulp."""
    return unary(lambda x: 0.5 * x * (1 + ERF(x / np.sqrt(2.0))), gelu_model("x"), **given)


def gelu_tanh(**given: Any) -> Schema:
    """GELU by its tanh approximation; |x| <= 2**20, where the cube stays in range."""
    domain: dict[str, Any] = {"largest": 2.0**20} | given
    return unary(gelu_tanh64, _of(gelu_tanh_running, "gelu_tanh"), **domain)


def softplus(**given: Any) -> Schema:
    """log(1 + exp(x)); for large x the result is x."""

    def running(x: Running) -> Running:
        top = Running(np.maximum(x.value, 0.0), x.error)
        return top + (Running(-np.abs(x.value), x.error).exp() + 1.0).log()

    return unary(lambda x: np.logaddexp(x, 0.0), _of(running, "softplus"), **given)


def exp(**given: Any) -> Schema:
    """exp(x); overflows to infinity where the format does."""
    domain: dict[str, Any] = {"largest": 80.0} | given
    return unary(np.exp, _of(lambda x: x.exp(), "exp"), **domain)


def log(**given: Any) -> Schema:
    """log(x) for x in [2**-14, ...)."""
    domain: dict[str, Any] = {"within": (2.0**-14, np.inf)} | given
    return unary(np.log, _of(lambda x: x.log(), "log"), **domain)


def sqrt(**given: Any) -> Schema:
    """The square root of x >= 0; a subnormal operand may be flushed."""
    domain: dict[str, Any] = {"positive": True} | given
    return unary(np.sqrt, _of(lambda x: x.sqrt(), "sqrt"), **domain)


def rsqrt(**given: Any) -> Schema:
    """1 / sqrt(x) for x in [2**-14, ...)."""
    domain: dict[str, Any] = {"within": (2.0**-14, np.inf)} | given
    return unary(lambda x: 1 / np.sqrt(x), _of(lambda x: x.rsqrt(), "rsqrt"), **domain)


def square(**given: Any) -> Schema:
    """x * x, rounded once."""
    return unary(np.square, exact(), **given)


def binary(
    reference: Callable[[F64, F64], F64], bound: Model, *, block: int = BLOCK, views: Views = ("offset",), **domain: Any
) -> Schema:
    """c = reference(a, b) element by element. `domain`: fields of Input for both."""
    own = {"views": tuple(views), **domain}
    return {
        "dims": {"N": _sizes(block)},
        "inputs": {"a": Input("N", **own), "b": Input("N", **own)},
        "outputs": {"c": Output("N")},
        "reference": lambda a, b: reference(a, b),
        "bound": bound,
    }


def add(**given: Any) -> Schema:
    """a + b, rounded once; exact mode."""
    return binary(np.add, exact(), **given) | {"linear": ""}


def subtract(**given: Any) -> Schema:
    """a - b, rounded once; exact mode."""
    return binary(np.subtract, exact(), **given) | {"linear": ""}


def multiply(**given: Any) -> Schema:
    """a * b, rounded once; exact mode."""
    return binary(np.multiply, exact(), **given) | {"linear": ""}


def divide(**given: Any) -> Schema:
    """a / b for |b| in [2**-14, 2**14] by div.full (2 ulp)."""
    schema = binary(np.divide, elementwise(2), **({"largest": 2.0**14} | given))
    schema["inputs"]["b"] = Input("N", within=(2.0**-14, 2.0**14), views=schema["inputs"]["b"].views)
    return schema


def maximum(**given: Any) -> Schema:
    """The larger of a and b; no error."""
    return binary(np.maximum, exact(), **given) | {"linear": ""}


def minimum(**given: Any) -> Schema:
    """The smaller of a and b; no error."""
    return binary(np.minimum, exact(), **given) | {"linear": ""}


def axpy(alpha: float = 2.0, *, block: int = BLOCK) -> Schema:
    """y <- alpha * x + y, in place: the launcher takes `x` and `y` (writable). A product, then a sum, or one fma; exact
    mode where alpha is whole."""
    return {
        "dims": {"N": _sizes(block)},
        "inputs": {"x": Input("N", largest=2.0**14), "y": Input("N", largest=2.0**14)},
        "outputs": {"result": Output(inplace="y")},
        "reference": lambda x, y: alpha * x + y,
        "bound": formula(lambda x, y: x * constant(alpha) + y, "axpy in binary32"),
        "linear": "" if alpha == round(alpha) else None,
    }


def bias_add(*, block: int = BLOCK, views: Views = ("padded", "transposed")) -> Schema:
    """y[m, n] = x[m, n] + bias[n]: broadcasting of a row; exact mode."""
    return {
        "dims": {"M": (0, 1, 5, 33), "N": (1, 31, block - 1, block, block + 1)},
        "inputs": {"x": Input("M N", views=tuple(views)), "bias": Input("N")},
        "outputs": {"y": Output("M N", padded="padded" in views)},
        "reference": lambda x, bias: x + bias,
        "bound": exact(),
        "linear": "",
    }
