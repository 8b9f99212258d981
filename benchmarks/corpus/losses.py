"""Losses: cross-entropy forward and backward with ignored labels, KL divergence, mean squared error in two launches."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

TILE = 64
DIMS = {"M": (1, 5, 16), "V": (1, 2, 63, 64, 65, 128, 200)}
U = 2.0**-24
IGNORED = -1


@triton.jit(do_not_specialize=["x_stride", "n"])
def cross_entropy_kernel(x, label, loss, lse, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    highest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * x_stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(v, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(highest - safe) + tl.sum(tl.exp(v - safe), axis=0)
        highest = new
    result = tl.where(highest == -float("inf"), highest, highest + tl.log(total))
    chosen = tl.load(x + row * x_stride + tl.load(label + row)).to(tl.float32)
    tl.store(loss + row, result - chosen)
    tl.store(lse + row, result)


@triton.jit(do_not_specialize=["n"])
def cross_entropy_backward_kernel(x, label, lse, grad, dx, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    wanted = tl.load(label + row)
    g = tl.load(grad + row)
    g = tl.where(wanted < 0, 0.0, g)
    top = tl.load(lse + row)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
        p = tl.exp(v - top)
        d = tl.where(at == wanted, p - 1.0, p) * g
        tl.store(dx + row * n + at, d.to(dx.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["n"])
def mean_loss_kernel(loss, label, y, n, BLOCK: tl.constexpr):
    total = 0.0
    count = 0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        counted = (at < n) & (tl.load(label + at, mask=at < n, other=-1) >= 0)
        total += tl.sum(tl.where(counted, tl.load(loss + at, mask=at < n, other=0.0).to(tl.float32), 0.0), axis=0)
        count += tl.sum(counted.to(tl.int32), axis=0)
    tl.store(y, total / tl.maximum(count, 1).to(tl.float32))


@triton.jit(do_not_specialize=["n"])
def kl_kernel(p, logq, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    a = tl.load(p + row + at, mask=at < n, other=0.0).to(tl.float32)
    b = tl.load(logq + row + at, mask=at < n, other=0.0).to(tl.float32)
    term = tl.where(a > 0, a * (tl.log(tl.where(a > 0, a, 1.0)) - b), 0.0)
    tl.store(y + tl.program_id(0), tl.sum(term, axis=0))


@triton.jit(do_not_specialize=["n", "per"])
def square_kernel(a, b, parts, n, per, BLOCK: tl.constexpr):
    first = tl.program_id(0) * per
    part = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, per, BLOCK):
        at = first + start + tl.arange(0, BLOCK)
        inside = (start + tl.arange(0, BLOCK) < per) & (at < n)
        d = tl.load(a + at, mask=inside, other=0.0).to(tl.float32)
        d -= tl.load(b + at, mask=inside, other=0.0).to(tl.float32)
        part += d * d
    tl.store(parts + tl.program_id(0), tl.sum(part, axis=0))


@triton.jit(do_not_specialize=["parts_count", "n"])
def finish_kernel(parts, y, parts_count, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(parts + at, mask=at < parts_count, other=0.0), axis=0)
    tl.store(y, total / n)


def lse_of(x):
    top = x.max(axis=1)
    return top + np.log(np.exp(x - np.where(np.isfinite(top), top, 0.0)[:, None]).sum(axis=1))


def backward_reference(x, label, lse, grad):
    p = np.exp(x - lse[:, None])
    rows = np.flatnonzero(label >= 0)
    p[rows, label[rows]] -= 1
    return p * np.where(label < 0, 0.0, grad)[:, None]


def backward_bound(run):
    """The exponential of z = x - lse has 3|z| + 5 units of 2**-24; a subtraction of 1 and a product follow."""
    x, grad = run.inputs["x"], np.abs(run.inputs["grad"])[:, None]
    z = x - run.inputs["lse"][:, None]
    share = U * (3 * np.abs(z) + 5)
    p = np.exp(z)
    return (p * share * (1 + share) + U * 2 * (p + 1)) * grad + 2.0**-126 * (1 + grad)


def kl_reference(p, logq):
    return (p * (np.log(np.where(p > 0, p, 1.0)) - logq)).sum(axis=1)


def kl_bound(run):
    """A logarithm is off by 2**-22 ln 2 at most where it is small, else by 3 units of itself."""
    p, q = run.inputs["p"], np.abs(run.inputs["logq"])
    log = np.abs(np.log(np.where(p > 0, p, 1.0)))
    steps = (bounds.tree_depth(run.dims["V"]) + 4) * U
    return (p * (2.0**-22 * np.maximum(log, 1.0) + (log + q) * (steps + 3 * U))).sum(axis=1) * (1 + steps) + 2.0**-126


def mean_bound(run):
    """The sum's bound and the division's, over the labels that count."""
    counted = run.inputs["label"] >= 0
    size = np.abs(run.inputs["loss"][counted]).sum() / max(counted.sum(), 1)
    return np.array([1.01 * U * (run.dims["M"] // 32 + 20) * size])


@gpuemu.op(
    dims=DIMS,
    inputs={"x": Input("M V", nonfinite=("-inf",), padded=True), "label": Input("M", dtype="int32", high="V")},
    outputs={"loss": Output("M", dtype="float32"), "lse": Output("M", dtype="float32")},
    reference=lambda x, label: (lse_of(x) - x[np.arange(len(x)), label], lse_of(x)),
    bound=bounds.cross_entropy("x", "label", tile=TILE),
)  # fmt: skip
def cross_entropy_tiles(run, x, label, loss, lse):
    run(cross_entropy_kernel, (len(x),), x, label, loss, lse, x.strides[0] // x.itemsize, x.shape[1], BLOCK=TILE)


@gpuemu.op(
    dims=DIMS,
    inputs={
        "x": Input("M V", largest=20.0), "label": Input("M", dtype="int32", low=IGNORED, high="V"),
        "lse": Input("M", "float32", largest=20.0), "grad": Input("M", "float32", largest=8.0),
    },
    outputs={"dx": Output("M V")}, reference=backward_reference, bound=backward_bound,
)  # fmt: skip
def cross_entropy_backward(run, x, label, lse, grad, dx):
    run(cross_entropy_backward_kernel, (len(x),), x, label, lse, grad, dx, x.shape[1], BLOCK=TILE)


@gpuemu.op(
    dims={"M": (1, 2, 31, 32, 33, 100)}, dtypes=("float32", "float16"),
    inputs={"loss": Input("M", largest=2.0**10), "label": Input("M", dtype="int32", low=IGNORED, high=3)},
    outputs={"y": Output("1", "float32")},
    reference=lambda loss, label: np.array([loss[label >= 0].sum() / max((label >= 0).sum(), 1)]),
    bound=mean_bound,
)  # fmt: skip
def mean_of_counted(run, loss, label, y):
    run(mean_loss_kernel, (1,), loss, label, y, loss.size, BLOCK=32)


@gpuemu.op(
    dims=DIMS, inputs={"p": Input("M V", positive=True, largest=1.0), "logq": Input("M V", largest=64.0)},
    outputs={"y": Output("M", "float32")}, reference=kl_reference, bound=kl_bound,
)  # fmt: skip
def kl_divergence(run, p, logq, y):
    run(kl_kernel, (len(p),), p, logq, y, p.shape[1], BLOCK=256)


@gpuemu.op(
    dims={"N": (1, 63, 64, 65, 200, 257, 600)},
    inputs={"a": Input("N", largest=2.0**6), "b": Input("N", largest=2.0**6)},
    outputs={"y": Output("1", "float32")}, reference=lambda a, b: np.array([((a - b) ** 2).mean()]),
    bound=lambda run: (
        1.01 * U * (bounds.loop_depth(64)(256) + bounds.tree_depth(16) + 6) * run.outputs["y"] + 2.0**-126
    ),
)  # fmt: skip
def mean_squared_error(run, a, b, y):
    count = triton.cdiv(a.size, 256)
    parts = run.empty((count,), "float32")
    run(square_kernel, (count,), a, b, parts, a.size, 256, BLOCK=64)
    run(finish_kernel, (1,), parts, y, count, a.size, BLOCK=16)
