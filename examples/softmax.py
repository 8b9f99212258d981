"""Row softmax: one program a row, the row padded to the next power of two."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def softmax_kernel(x, y, x_stride, y_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    values = tl.load(x + row * x_stride + column, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * y_stride + column, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=inside)


def reference(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@gpuemu.op(
    dims={"M": (1, 3, 16), "N": (1, 2, 13, 64, 127, 128, 129, 251, 256, 257, 1000)},
    inputs={"x": Input("M N", nonfinite=("-inf", "nan"), padded=True)},
    outputs={"y": Output("M N", padded=True)},
    reference=reference,
    bound=bounds.softmax("x"),
)
def softmax(run, x, y):
    rows, n = x.shape
    block = max(triton.next_power_of_2(n), 2)
    run(softmax_kernel, (rows,), x, y, x.strides[0] // x.itemsize, y.strides[0] // y.itemsize, n, BLOCK=block)
