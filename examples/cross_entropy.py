"""Cross-entropy of logits and labels: one pass over the row in tiles, with the log-sum-exp as a second output.

The running maximum can still be -inf after the first tiles; subtracting it from itself would give NaN.
"""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

TILE = 128


@triton.jit
def cross_entropy_kernel(x, label, loss, lse, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    highest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * x_stride + column, mask=column < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(values, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(highest - safe) + tl.sum(tl.exp(values - safe), axis=0)
        highest = new
    result = tl.where(highest == -float("inf"), highest, highest + tl.log(total))
    chosen = tl.load(x + row * x_stride + tl.load(label + row)).to(tl.float32)
    tl.store(loss + row, result - chosen)
    tl.store(lse + row, result)


def reference(x, label):
    top = x.max(axis=1)
    lse = top + np.log(np.exp(x - np.where(np.isfinite(top), top, 0.0)[:, None]).sum(axis=1))
    return lse - x[np.arange(len(x)), label], lse


@gpuemu.op(
    dims={"M": (1, 5, 16), "V": (1, 2, 127, 128, 129, 257, 512, 1000)},
    inputs={"x": Input("M V", nonfinite=("-inf",), padded=True), "label": Input("M", dtype="int32", high="V")},
    outputs={"loss": Output("M", dtype="float32"), "lse": Output("M", dtype="float32")},
    reference=reference,
    bound=bounds.cross_entropy("x", "label", tile=TILE),
)
def cross_entropy(run, x, label, loss, lse):
    rows, n = x.shape
    run(cross_entropy_kernel, (rows,), x, label, loss, lse, x.strides[0] // x.itemsize, n, BLOCK=TILE)
