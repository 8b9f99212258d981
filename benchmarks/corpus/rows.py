"""Statistics of a row: softmax whole and in tiles, log-softmax, log-sum-exp, sum, maximum, argmax, softmax backward."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

TILE = 64
DIMS = {"M": (1, 5, 17), "N": (1, 2, 63, 64, 65, 127, 128, 200)}
LIMITS = ("-inf",)
U = 2.0**-24


@triton.jit(do_not_specialize=["x_stride", "y_stride", "n"])
def softmax_kernel(x, y, x_stride, y_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * y_stride + at, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["n"])
def softmax_online_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    highest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(v, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(highest - safe) + tl.sum(tl.exp(v - safe), axis=0)
        highest = new
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n).to(tl.float32)
        tl.store(y + row + at, (tl.exp(v - highest) / total).to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["n"])
def log_softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
    z = v - tl.max(v, axis=0)
    tl.store(y + row + at, (z - tl.log(tl.sum(tl.exp(z), axis=0))).to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["n"])
def lse_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    highest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(v, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(highest - safe) + tl.sum(tl.exp(v - safe), axis=0)
        highest = new
    tl.store(y + tl.program_id(0), tl.where(highest == -float("inf"), highest, highest + tl.log(total)))


@triton.jit(do_not_specialize=["n"])
def row_sum_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    part = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        part += tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + tl.program_id(0), tl.sum(part, axis=0))


@triton.jit(do_not_specialize=["n"])
def row_max_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    highest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
        highest = tl.maximum(highest, v)
    tl.store(y + tl.program_id(0), tl.max(highest, axis=0).to(y.dtype.element_ty))


@triton.jit(do_not_specialize=["n"])
def argmax_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
    tl.store(y + tl.program_id(0), tl.argmax(v, axis=0, tie_break_left=True))


@triton.jit(do_not_specialize=["n"])
def softmax_backward_kernel(y, dy, dx, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    p = tl.load(y + row + at, mask=at < n, other=0.0).to(tl.float32)
    g = tl.load(dy + row + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(p * g, axis=0)
    tl.store(dx + row + at, (p * (g - mean)).to(dx.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["M", "N"])
def column_sum_kernel(x, y, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, M, BLOCK_M):
        m = start + tl.arange(0, BLOCK_M)
        inside = (m < M)[:, None] & (n < N)[None, :]
        part += tl.load(x + m[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(y + n, tl.sum(part, axis=0), mask=n < N)


def softmax_reference(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def lse_reference(x):
    top = x.max(axis=1)
    return top + np.log(np.exp(x - np.where(np.isfinite(top), top, 0.0)[:, None]).sum(axis=1))


def lse_bound(run):
    labels = {"x": run.inputs["x"], "label": np.zeros(len(run.inputs["x"]))}
    whole = bounds.cross_entropy("x", "label", tile=TILE)
    return whole(bounds.Exact(labels, {}, run.dims, run.dtype, run.device))["lse"]


def log_softmax_bound(run):
    """log-sum-exp of z = x - max (its maximum is 0), then a subtraction; z has one rounding."""
    x = run.inputs["x"]
    with np.errstate(all="ignore"):
        z = x - x.max(axis=1, keepdims=True)
        exact = bounds.Exact({"x": z, "label": np.zeros(len(x))}, {}, run.dims, run.dtype, run.device)
        lse = bounds.cross_entropy("x", "label")(exact)["lse"][:, None]
        return np.where(np.isinf(z), np.inf, lse + U * np.abs(z) + U * np.abs(run.outputs["y"]) * (1 + U))


def online_bound(run):
    given = bounds.softmax("x", depth=bounds.loop_depth(TILE))(run)
    return given + 5 * U * -(-run.dims["N"] // TILE) * run.outputs["y"]


@gpuemu.op(
    dims=DIMS, inputs={"x": Input("M N", nonfinite=LIMITS, padded=True)}, outputs={"y": Output("M N", padded=True)},
    reference=softmax_reference, bound=bounds.softmax("x"),
)  # fmt: skip
def row_softmax(run, x, y):
    strides = (x.strides[0] // x.itemsize, y.strides[0] // y.itemsize)
    run(softmax_kernel, (len(x),), x, y, *strides, x.shape[1], BLOCK=256)


@gpuemu.op(
    dims=DIMS, inputs={"x": Input("M N")}, outputs={"y": Output("M N")}, reference=softmax_reference, bound=online_bound
)
def row_softmax_online(run, x, y):
    run(softmax_online_kernel, (len(x),), x, y, x.shape[1], BLOCK=TILE)


@gpuemu.op(
    dims=DIMS, inputs={"x": Input("M N", largest=2.0**15)}, outputs={"y": Output("M N")},
    reference=lambda x: x - lse_reference(x)[:, None], bound=log_softmax_bound,
)  # fmt: skip
def row_log_softmax(run, x, y):
    run(log_softmax_kernel, (len(x),), x, y, x.shape[1], BLOCK=256)


@gpuemu.op(
    dims=DIMS, inputs={"x": Input("M N", nonfinite=LIMITS)}, outputs={"y": Output("M", "float32")},
    reference=lse_reference, bound=lse_bound,
)  # fmt: skip
def row_lse(run, x, y):
    run(lse_kernel, (len(x),), x, y, x.shape[1], BLOCK=TILE)


@gpuemu.op(
    linear="N",
    dims=DIMS, inputs={"x": Input("M N")}, outputs={"y": Output("M", "float32")},
    reference=lambda x: x.sum(axis=1), bound=bounds.total(lambda x: x, depth=bounds.loop_depth(TILE)),
)  # fmt: skip
def row_sum(run, x, y):
    run(row_sum_kernel, (len(x),), x, y, x.shape[1], BLOCK=TILE)


@gpuemu.op(
    dims=DIMS, inputs={"x": Input("M N", nonfinite=("-inf", "inf"))}, outputs={"y": Output("M")},
    reference=lambda x: x.max(axis=1), bound=bounds.exact(),
)  # fmt: skip
def row_max(run, x, y):
    run(row_max_kernel, (len(x),), x, y, x.shape[1], BLOCK=TILE)


@gpuemu.op(
    dims=DIMS, inputs={"x": Input("M N")}, outputs={"y": Output("M", "int32")},
    reference=lambda x: x.argmax(axis=1), bound=bounds.exact(),
)  # fmt: skip
def row_argmax(run, x, y):
    run(argmax_kernel, (len(x),), x, y, x.shape[1], BLOCK=256)


@gpuemu.op(
    dims=DIMS, inputs={"y": Input("M N", positive=True, largest=1.0), "dy": Input("M N", largest=2.0**10)},
    outputs={"dx": Output("M N")}, reference=lambda y, dy: y * (dy - (y * dy).sum(axis=1, keepdims=True)),
    bound=bounds.absolute(
        lambda y, dy: y * (dy + (y * dy).sum(axis=1, keepdims=True)), roundings=lambda N: bounds.tree_depth(N) + 4
    ),
)  # fmt: skip
def softmax_backward(run, y, dy, dx):
    run(softmax_backward_kernel, (len(y),), y, dy, dx, y.shape[1], BLOCK=256)


@gpuemu.op(
    linear="M",
    dims={"M": (1, 15, 16, 17, 33, 64), "N": (1, 31, 32, 33, 65)}, inputs={"x": Input("M N", largest=2.0**100)},
    outputs={"y": Output("N", "float32")}, reference=lambda x: x.sum(axis=0),
    bound=bounds.total(lambda x: x, depth=bounds.loop_depth(16), axis=0),
)  # fmt: skip
def column_sum(run, x, y):
    M, N = x.shape
    run(column_sum_kernel, (triton.cdiv(N, 32),), x, y, M, N, BLOCK_M=16, BLOCK_N=32)
