"""Row softmax as in softmax.py, with a tail-mask leak.

Lanes beyond the row load 0 instead of -inf, so each adds exp(0 - max) to the sum, and 0 wins the maximum where the
whole row is negative. Rows whose length is a power of two come out right: a test with one usual shape passes.
"""

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
    # The bug: other= must be -inf.
    values = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
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
def softmax_tail(run, x, y):
    rows, n = x.shape
    block = max(triton.next_power_of_2(n), 2)
    run(softmax_kernel, (rows,), x, y, x.strides[0] // x.itemsize, y.strides[0] // y.itemsize, n, BLOCK=block)
