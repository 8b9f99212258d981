"""RMS normalisation as in rmsnorm.py, with a tail-mask leak.

The first pass reads its last tile without a mask, so what lies behind the row counts as part of it: the next row, the
padding, or for the last row whatever follows the array. Rows of whole tiles come out right.
"""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

EPS = 1e-6


@triton.jit
def rmsnorm_kernel(x, weight, y, x_stride, y_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        # The bug: no mask.
        values = tl.load(x + row * x_stride + column).to(tl.float32)
        squares += values * values
    root = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < n
        values = tl.load(x + row * x_stride + column, mask=inside).to(tl.float32)
        w = tl.load(weight + column, mask=inside).to(tl.float32)
        tl.store(y + row * y_stride + column, (values * root * w).to(y.dtype.element_ty), mask=inside)


def reference(x, weight):
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * weight


@gpuemu.op(
    dims={"M": (1, 3, 16), "N": (1, 31, 127, 128, 129, 255, 256, 257, 1000)},
    inputs={"x": Input("M N", largest=2.0**15, nonfinite=("nan",), padded=True), "weight": Input("N", largest=2.0**6)},
    outputs={"y": Output("M N", padded=True)},
    reference=reference,
    bound=bounds.rmsnorm("x", eps=EPS, weight="weight", depth=bounds.loop_depth(128)),
)
def rmsnorm_tail(run, x, weight, y):
    rows, n = x.shape
    strides = (x.strides[0] // x.itemsize, y.strides[0] // y.itemsize)
    run(rmsnorm_kernel, (rows,), x, weight, y, *strides, n, EPS, BLOCK=128)
