"""Along the last axis: softmax in two forms, layer, RMS and L2 normalisation, and four with one planted bug.

The published corpus wrote softmax, layernorm and one buggy softmax in numpy; here they are Triton kernels that walk a
row in tiles of 128. The others hold a whole row in one block of the next power of two.
"""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds
from gpuemu.gate.dtypes import FORMATS

TILE = 128
DIMS = {"B": (1, 2, 8), "S": (1, 7, 128), "H": (1, 3, 256, 1025)}
NORM_DIMS = {**DIMS, "H": (2, 3, 256, 1025)}
TAIL_DIMS = {**DIMS, "H": (3, 256, 1025)}


def small(B, S, H):
    return B * S * H <= 8000


def rows_op(name, kernel, reference, bound, dims=DIMS, largest=None, tile=None):
    """Declare the op `name` of one input and one output, a program a row."""

    @gpuemu.op(
        name=name, dims=dims, where=small, inputs={"x": Input("B S H", largest=largest)},
        outputs={"y": Output("B S H")}, reference=reference, bound=bound,
    )  # fmt: skip
    def launch(run, x, y):
        width = x.shape[-1]
        run(kernel, (x.size // width,), x, y, width, BLOCK=tile or max(triton.next_power_of_2(width), 2))

    return launch


@triton.jit
def softmax_tiles_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    highest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(v, axis=0))
        total = total * tl.exp(highest - new) + tl.sum(tl.exp(v - new), axis=0)
        highest = new
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n).to(tl.float32)
        tl.store(y + row + at, (tl.exp(v - highest) / total).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def softmax_padded_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    highest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        # The bug: the padding to whole tiles is 0, and takes part in maximum and sum.
        v = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
        new = tl.maximum(highest, tl.max(v, axis=0))
        total = total * tl.exp(highest - new) + tl.sum(tl.exp(v - new), axis=0)
        highest = new
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n).to(tl.float32)
        tl.store(y + row + at, (tl.exp(v - highest) / total).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row + at, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def softmax_zero_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)  # The bug: other must be -inf.
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row + at, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def layernorm_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    part = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        part += tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(part, axis=0) / n
    part = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        off = tl.where(at < n, tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32) - mean, 0.0)
        part += off * off
    root = 1 / tl.sqrt(tl.sum(part, axis=0) / n + 1e-5)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n).to(tl.float32)
        tl.store(y + row + at, ((v - mean) * root).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def rmsnorm_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + at, mask=at < n, other=0.0)
    square = (tl.sum(v * v, axis=0) / n).to(v.dtype) + tl.full((), 1e-5, v.dtype)
    root = tl.sqrt(square.to(tl.float32)).to(v.dtype)
    tl.store(y + row + at, (v / root).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def rmsnorm_rootless_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + at, mask=at < n, other=0.0)
    square = (tl.sum(v * v, axis=0) / n).to(v.dtype) + tl.full((), 1e-5, v.dtype)
    tl.store(y + row + at, (v / square).to(y.dtype.element_ty), mask=at < n)  # The bug: no square root.


@triton.jit
def l2norm_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
    root = tl.sqrt(tl.sum(v * v, axis=0) + 1e-12)
    tl.store(y + row + at, (v / root).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def l2norm_rootless_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row + at, (v / (tl.sum(v * v, axis=0) + 1e-12)).to(y.dtype.element_ty), mask=at < n)  # The bug.


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x):
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def rmsnorm(x):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)


def l2norm(x):
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1e-12)


def online_bound(run):
    """Softmax's bound, and 5 units of 2**-24 for each tile that rescales the sum."""
    given = bounds.softmax("x", depth=bounds.loop_depth(TILE))(run)
    return given + 5 * 2.0**-24 * -(-run.dims["H"] // TILE) * run.outputs["y"]


def own_format_bound(run):
    """All of it in the input's own format, with unit u: squares, a sum, a division, a root, another division. What
    underflows costs half of the smallest subnormal four times (a square, the mean, eps, their sum) beside v + eps."""
    form = FORMATS[run.dtype]
    x = run.inputs["x"]
    v = (x * x).mean(axis=-1, keepdims=True) + 1e-5
    share = form.unit * ((bounds.tree_depth(run.dims["H"]) + 6) / 2 + 8) + 4 * form.smallest / 2 / v
    return share * (1 + share) * np.abs(run.outputs["y"])


def l2norm_bound(run):
    return 2.0**-24 * ((bounds.tree_depth(run.dims["H"]) + 6) / 2 + 8) * np.abs(run.outputs["y"]) + 2.0**-149


rows_op("softmax", softmax_tiles_kernel, softmax, online_bound, tile=TILE)
rows_op("softmax_llm_buggy", softmax_padded_kernel, softmax, online_bound, dims=TAIL_DIMS, tile=TILE)
rows_op("softmax_triton", softmax_kernel, softmax, bounds.softmax("x"))
rows_op("softmax_triton_buggy", softmax_zero_kernel, softmax, bounds.softmax("x"), dims=TAIL_DIMS)
rows_op(
    "layernorm", layernorm_kernel, layernorm, bounds.layernorm("x", eps=1e-5, depth=bounds.loop_depth(TILE)),
    dims=NORM_DIMS, largest=2.0**12, tile=TILE,
)  # fmt: skip
rows_op("rmsnorm_triton", rmsnorm_kernel, rmsnorm, own_format_bound, dims=NORM_DIMS, largest=4.0)
rows_op("rmsnorm_triton_buggy", rmsnorm_rootless_kernel, rmsnorm, own_format_bound, dims=NORM_DIMS, largest=4.0)
rows_op("l2norm_triton", l2norm_kernel, l2norm, l2norm_bound, dims=NORM_DIMS, largest=2.0**40)
rows_op("l2norm_triton_buggy", l2norm_rootless_kernel, l2norm, l2norm_bound, dims=NORM_DIMS, largest=2.0**40)
