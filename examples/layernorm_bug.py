"""Layer normalisation as in layernorm.py, with a tail-mask leak.

Lanes beyond the row hold 0, and subtracting the mean makes them -mean: each adds mean**2 to the variance. Rows whose
length is a power of two come out right, and others nearly so while the mean is near zero, as in random tests.
"""

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
    off = values - centre  # The bug: lanes beyond the row must stay 0.
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
def layernorm_tail(run, x, weight, bias, y, mean, rstd):
    rows, n = x.shape
    strides = (x.strides[0] // x.itemsize, y.strides[0] // y.itemsize)
    block = max(triton.next_power_of_2(n), 2)
    run(layernorm_kernel, (rows,), x, weight, bias, y, mean, rstd, *strides, n, EPS, BLOCK=block)
