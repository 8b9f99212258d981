"""Layer normalisation, one program a row, with the mean and 1/sigma that a backward pass needs as outputs."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

EPS = 1e-5


@triton.jit
def layernorm_kernel(x, weight, bias, y, mean, rstd, x_stride, y_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    values = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    centre = tl.sum(values, axis=0) / n
    off = tl.where(inside, values - centre, 0.0)
    root = 1 / tl.sqrt(tl.sum(off * off, axis=0) / n + eps)
    w = tl.load(weight + column, mask=inside).to(tl.float32)
    b = tl.load(bias + column, mask=inside).to(tl.float32)
    tl.store(y + row * y_stride + column, (off * root * w + b).to(y.dtype.element_ty), mask=inside)
    tl.store(mean + row, centre)
    tl.store(rstd + row, root)


def reference(x, weight, bias):
    mean = x.mean(axis=1)
    rstd = 1 / np.sqrt(x.var(axis=1) + EPS)
    return (x - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd


@gpuemu.op(
    dims={"M": (1, 3, 16), "N": (1, 2, 31, 64, 127, 128, 129, 257, 1000)},
    inputs={
        "x": Input("M N", largest=2.0**12, nonfinite=("nan",), padded=True),
        "weight": Input("N", largest=2.0**6),
        "bias": Input("N", largest=2.0**6),
    },
    outputs={"y": Output("M N", padded=True), "mean": Output("M", "float32"), "rstd": Output("M", "float32")},
    reference=reference,
    bound=bounds.layernorm("x", eps=EPS, weight="weight", bias="bias", mean="mean", rstd="rstd"),
)
def layernorm(run, x, weight, bias, y, mean, rstd):
    rows, n = x.shape
    strides = (x.strides[0] // x.itemsize, y.strides[0] // y.itemsize)
    block = max(triton.next_power_of_2(n), 2)
    run(layernorm_kernel, (rows,), x, weight, bias, y, mean, rstd, *strides, n, EPS, BLOCK=block)
