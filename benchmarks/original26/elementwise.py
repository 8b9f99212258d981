"""Element by element: relu, leaky relu, sigmoid, tanh, elu, GELU (tanh form) and SiLU, and three with a wrong formula.

One flat grid of 1024 elements a program, arithmetic in binary32. Shapes are B x S x H with the candidates of the
published table; products above 20,000 elements are left out, since nothing depends on them here.
"""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

BLOCK = 1024
U = 2.0**-24
TINY = 2.0**-126
DIMS = {"B": (1, 2, 8), "S": (1, 7, 128), "H": (1, 3, 256, 1025)}


def small(B, S, H):
    return B * S * H <= 20000


def elementwise(name, kernel, reference, bound, nonfinite=("nan",)):
    """Declare the op `name`: y = reference(x), one element each."""

    @gpuemu.op(
        name=name, dims=DIMS, where=small, inputs={"x": Input("B S H", nonfinite=nonfinite)},
        outputs={"y": Output("B S H")}, reference=reference, bound=bound,
    )  # fmt: skip
    def launch(run, x, y):
        run(kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, BLOCK=BLOCK)

    return launch


def exponential(share):
    """A bound from `share(x)`, the relative error in units of 2**-24 (an exponential of z carries 3|z| + 4), and an
    absolute part: an exponential that overflows, or a division by more than 2**126, gives 0 for up to 2**-119."""

    def bound(run):
        x = np.abs(run.inputs["x"])
        with np.errstate(all="ignore"):
            relative = U * share(x)
            return relative * (1 + relative) * np.abs(run.outputs["y"]) + 128 * TINY

    return bound


@triton.jit
def relu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(v > 0, v, 0.0), mask=at < n)


@triton.jit
def leaky_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, tl.where(v > 0, v, 0.01 * v).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def leaky_slope_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, tl.where(v > 0, v, 0.1 * v).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def sigmoid_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, (1.0 / (1.0 + tl.exp(-v))).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def tanh_of(z):
    e = tl.exp(-2.0 * tl.abs(z))
    t = (1.0 - e) / (1.0 + e)
    return tl.where(z < 0, -t, t)


@triton.jit
def tanh_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, tanh_of(v).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def elu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, tl.where(v > 0, v, tl.exp(v) - 1.0).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def gelu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    t = tanh_of(0.7978845608028654 * (v + 0.044715 * v * v * v))
    tl.store(y + at, (0.5 * v * (1.0 + t)).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def gelu_doubled_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    t = tanh_of(0.7978845608028654 * (v + 0.044715 * v * v * v))
    tl.store(y + at, (v * (1.0 + t)).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def silu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, (v / (1.0 + tl.exp(-v))).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def silu_steep_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, (v / (1.0 + tl.exp(-2.0 * v))).to(y.dtype.element_ty), mask=at < n)


def leaky(x):
    return np.where(x > 0, x, 0.01 * x)


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def elu_bound(run):
    """The exponential (3|x| + 4 in 2**-24 of itself) and the subtraction: absolute near zero."""
    x = np.abs(run.inputs["x"])
    e = np.exp(np.minimum(run.inputs["x"], 0.0))
    return np.where(run.inputs["x"] > 0, 0.0, U * ((3 * x + 4) * e + 1.01)) + TINY


def tanh_bound(run):
    """1 - e carries the error of e, (6|x| + 4) e <= 4 + 6/(2 exp 1), and its own; then a sum and a division."""
    return U * (4 + 1.2 + 1 + 6 * np.abs(run.outputs["y"])) + TINY


def gelu_bound(run):
    """1 + tanh z: z is off by 6 in 2**-24 of itself, and z tanh'(z) < 0.45; tanh as above; 1 + tanh has one rounding of
    at most 2. All absolute, times |x|/2; then two products."""
    x, y = np.abs(run.inputs["x"]), np.abs(run.outputs["y"])
    return x / 2 * U * (6 * 0.45 + 11.2 + 2) + 3 * U * y + TINY


elementwise("relu_triton", relu_kernel, lambda x: np.where(x > 0, x, 0.0), bounds.exact(), nonfinite=())
elementwise("leaky_relu_triton", leaky_kernel, leaky, bounds.elementwise(2))
elementwise("leaky_relu_triton_buggy", leaky_slope_kernel, leaky, bounds.elementwise(2))
elementwise("sigmoid_triton", sigmoid_kernel, lambda x: 1 / (1 + np.exp(-x)), exponential(lambda x: 3 * x + 10))
elementwise("tanh_triton", tanh_kernel, lambda x: np.tanh(x), tanh_bound)
elementwise("elu_triton", elu_kernel, lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1), elu_bound)
elementwise("gelu_triton", gelu_kernel, gelu, gelu_bound)
elementwise("gelu_triton_buggy", gelu_doubled_kernel, gelu, gelu_bound)
elementwise("silu_triton", silu_kernel, silu, exponential(lambda x: 3 * x + 10))
elementwise("silu_triton_buggy", silu_steep_kernel, silu, exponential(lambda x: 3 * x + 10))
