"""Normalisation: layer, RMS and group norm, batch norm for inference, forward and backward."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

TILE = 64
EPS = 1e-5
DIMS = {"M": (1, 5, 16), "N": (1, 2, 63, 64, 65, 127, 128, 200)}


@triton.jit(do_not_specialize=["x_stride", "y_stride", "n"])
def layernorm_kernel(x, weight, bias, y, mean, rstd, x_stride, y_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
    centre = tl.sum(v, axis=0) / n
    off = tl.where(at < n, v - centre, 0.0)
    root = 1 / tl.sqrt(tl.sum(off * off, axis=0) / n + eps)
    w = tl.load(weight + at, mask=at < n).to(tl.float32)
    b = tl.load(bias + at, mask=at < n).to(tl.float32)
    tl.store(y + row * y_stride + at, (off * root * w + b).to(y.dtype.element_ty), mask=at < n)
    tl.store(mean + row, centre)
    tl.store(rstd + row, root)


@triton.jit(do_not_specialize=["n"])
def rmsnorm_kernel(x, weight, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
        squares += v * v
    root = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n).to(tl.float32)
        w = tl.load(weight + at, mask=at < n).to(tl.float32)
        tl.store(y + row + at, (v * root * w).to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["C", "S", "per"])
def groupnorm_kernel(x, weight, y, C, S, per, eps, BLOCK: tl.constexpr):
    sample, group = tl.program_id(0), tl.program_id(1)
    first = (sample * C + group * per).to(tl.int64) * S
    at = tl.arange(0, BLOCK)
    inside = at < per * S
    v = tl.load(x + first + at, mask=inside, other=0.0).to(tl.float32)
    centre = tl.sum(v, axis=0) / (per * S)
    off = tl.where(inside, v - centre, 0.0)
    root = 1 / tl.sqrt(tl.sum(off * off, axis=0) / (per * S) + eps)
    w = tl.load(weight + group * per + at // S, mask=inside).to(tl.float32)
    tl.store(y + first + at, (off * root * w).to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["C", "S", "size"])
def batchnorm_kernel(x, mean, rstd, weight, y, C, S, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    channel = (at // S) % C
    v = tl.load(x + at, mask=inside).to(tl.float32)
    m = tl.load(mean + channel, mask=inside)
    r = tl.load(rstd + channel, mask=inside)
    w = tl.load(weight + channel, mask=inside).to(tl.float32)
    tl.store(y + at, ((v - m) * r * w).to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["n"])
def layernorm_backward_kernel(x, weight, dy, mean, rstd, dx, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(dy + row * n + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    r = tl.load(rstd + row)
    hat = tl.where(inside, (v - tl.load(mean + row)) * r, 0.0)
    wg = w * g
    c1 = tl.sum(hat * wg, axis=0) / n
    c2 = tl.sum(wg, axis=0) / n
    tl.store(dx + row * n + at, ((wg - (hat * c1 + c2)) * r).to(dx.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["n"])
def rmsnorm_backward_kernel(x, weight, dy, rstd, dx, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(dy + row * n + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    r = tl.load(rstd + row)
    hat = v * r
    c = tl.sum(hat * w * g, axis=0) / n
    tl.store(dx + row * n + at, ((w * g - hat * c) * r).to(dx.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["M", "N"])
def weight_gradient_kernel(x, dy, mean, rstd, dw, db, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    w = tl.zeros((BLOCK_N,), tl.float32)
    b = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, M, BLOCK_M):
        m = start + tl.arange(0, BLOCK_M)
        inside = (m < M)[:, None] & (n < N)[None, :]
        v = tl.load(x + m[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32)
        g = tl.load(dy + m[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32)
        c = tl.load(mean + m, mask=m < M, other=0.0)
        r = tl.load(rstd + m, mask=m < M, other=0.0)
        w += tl.sum(g * (v - c[:, None]) * r[:, None], axis=0)
        b += tl.sum(g, axis=0)
    tl.store(dw + n, w, mask=n < N)
    tl.store(db + n, b, mask=n < N)


def layernorm_reference(x, weight, bias):
    mean = x.mean(axis=1)
    rstd = 1 / np.sqrt(x.var(axis=1) + EPS)
    return (x - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd


def groupnorm_reference(x, weight, G):
    B, C, S = x.shape
    v = x.reshape(B, G, -1)
    y = (v - v.mean(axis=2, keepdims=True)) / np.sqrt(v.var(axis=2, keepdims=True) + EPS)
    return y.reshape(x.shape) * weight[None, :, None]


def groupnorm_bound(run):
    """Layer norm's bound on each group as a row of its own."""
    x, weight, G = run.inputs["x"], run.inputs["weight"], run.dims["G"]
    B, C, S = x.shape
    rows = x.reshape(B * G, -1)
    scale = np.broadcast_to(weight[None, :, None], x.shape).reshape(B * G, -1)
    exact = bounds.Exact({"x": rows, "w": scale}, {}, run.dims, run.dtype, run.device)
    return bounds.layernorm("x", eps=EPS, weight="w")(exact)["y"].reshape(x.shape)


def layernorm_backward_reference(x, weight, dy, mean, rstd):
    hat = (x - mean[:, None]) * rstd[:, None]
    wg = weight * dy
    c1, c2 = (hat * wg).mean(axis=1, keepdims=True), wg.mean(axis=1, keepdims=True)
    return (wg - (hat * c1 + c2)) * rstd[:, None]


def layernorm_backward_size(x, weight, dy, mean, rstd):
    hat = (x + mean[:, None]) * rstd[:, None]
    wg = weight * dy
    c1, c2 = (hat * wg).mean(axis=1, keepdims=True), wg.mean(axis=1, keepdims=True)
    return (wg + (hat * c1 + c2)) * rstd[:, None]


def rmsnorm_backward_reference(x, weight, dy, rstd):
    hat, wg = x * rstd[:, None], weight * dy
    return (wg - hat * (hat * wg).mean(axis=1, keepdims=True)) * rstd[:, None]


def rmsnorm_backward_size(x, weight, dy, rstd):
    hat, wg = x * rstd[:, None], weight * dy
    return (wg + hat * (hat * wg).mean(axis=1, keepdims=True)) * rstd[:, None]


WEIGHT = Input("N", largest=2.0**6)
STATISTIC = Input("M", "float32", largest=4.0)
ROOT = Input("M", "float32", largest=4.0, positive=True)


@gpuemu.op(
    dims=DIMS,
    inputs={"x": Input("M N", largest=2.0**12, nonfinite=("nan",), padded=True), "weight": WEIGHT, "bias": WEIGHT},
    outputs={"y": Output("M N", padded=True), "mean": Output("M", "float32"), "rstd": Output("M", "float32")},
    reference=layernorm_reference,
    bound=bounds.layernorm("x", eps=EPS, weight="weight", bias="bias", mean="mean", rstd="rstd"),
)  # fmt: skip
def layer_norm(run, x, weight, bias, y, mean, rstd):
    strides = (x.strides[0] // x.itemsize, y.strides[0] // y.itemsize)
    run(layernorm_kernel, (len(x),), x, weight, bias, y, mean, rstd, *strides, x.shape[1], EPS, BLOCK=256)


@gpuemu.op(
    dims=DIMS, inputs={"x": Input("M N", largest=2.0**15, nonfinite=("nan",)), "weight": WEIGHT},
    outputs={"y": Output("M N")},
    reference=lambda x, weight: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * weight,
    bound=bounds.rmsnorm("x", eps=EPS, weight="weight", depth=bounds.loop_depth(TILE)),
)  # fmt: skip
def rms_norm(run, x, weight, y):
    run(rmsnorm_kernel, (len(x),), x, weight, y, x.shape[1], EPS, BLOCK=TILE)


@gpuemu.op(
    dims={"B": (1, 3), "G": (1, 2, 4), "C": (4, 8), "S": (1, 7, 16, 25)},
    inputs={"x": Input("B C S", largest=2.0**12), "weight": Input("C", largest=2.0**6)},
    outputs={"y": Output("B C S")}, reference=groupnorm_reference, bound=groupnorm_bound,
)  # fmt: skip
def group_norm(run, x, weight, y, B, C, S, G):
    run(groupnorm_kernel, (B, G), x, weight, y, C, S, C // G, EPS, BLOCK=256)


@gpuemu.op(
    dims={"B": (1, 3), "C": (1, 3, 8), "S": (1, 7, 16, 33, 64)},
    inputs={
        "x": Input("B C S", largest=2.0**12), "mean": Input("C", "float32", largest=2.0**12),
        "rstd": Input("C", "float32", largest=4.0, positive=True), "weight": Input("C", largest=2.0**6),
    },
    outputs={"y": Output("B C S")},
    reference=lambda x, mean, rstd, weight: (x - mean[:, None]) * rstd[:, None] * weight[:, None],
    bound=bounds.absolute(lambda x, mean, rstd, weight: (x + mean[:, None]) * (rstd * weight)[:, None], roundings=4),
)  # fmt: skip
def batch_norm(run, x, mean, rstd, weight, y, C, S):
    run(batchnorm_kernel, (triton.cdiv(x.size, 128),), x, mean, rstd, weight, y, C, S, x.size, BLOCK=128)


@gpuemu.op(
    dims=DIMS,
    inputs={
        "x": Input("M N", largest=16.0), "weight": Input("N", largest=4.0), "dy": Input("M N", largest=16.0),
        "mean": STATISTIC, "rstd": ROOT,
    },
    outputs={"dx": Output("M N")}, reference=layernorm_backward_reference,
    bound=bounds.absolute(layernorm_backward_size, roundings=lambda N: bounds.tree_depth(N) + 14),
)  # fmt: skip
def layer_norm_backward(run, x, weight, dy, mean, rstd, dx):
    run(layernorm_backward_kernel, (len(x),), x, weight, dy, mean, rstd, dx, x.shape[1], BLOCK=256)


@gpuemu.op(
    dims=DIMS,
    inputs={
        "x": Input("M N", largest=16.0), "weight": Input("N", largest=4.0), "dy": Input("M N", largest=16.0),
        "rstd": ROOT,
    },
    outputs={"dx": Output("M N")}, reference=rmsnorm_backward_reference,
    bound=bounds.absolute(rmsnorm_backward_size, roundings=lambda N: bounds.tree_depth(N) + 14),
)  # fmt: skip
def rms_norm_backward(run, x, weight, dy, rstd, dx):
    run(rmsnorm_backward_kernel, (len(x),), x, weight, dy, rstd, dx, x.shape[1], BLOCK=256)


@gpuemu.op(
    dims={"M": (1, 15, 16, 17, 33), "N": (1, 31, 32, 33, 64)},
    inputs={
        "x": Input("M N", largest=16.0), "dy": Input("M N", largest=16.0), "mean": STATISTIC, "rstd": ROOT,
    },
    outputs={"dw": Output("N", "float32"), "db": Output("N", "float32")},
    reference=lambda x, dy, mean, rstd: ((dy * (x - mean[:, None]) * rstd[:, None]).sum(axis=0), dy.sum(axis=0)),
    bound=bounds.absolute(
        lambda x, dy, mean, rstd: {
            "dw": (dy * (x + mean[:, None]) * rstd[:, None]).sum(axis=0), "db": dy.sum(axis=0),
        },
        roundings=lambda M: bounds.loop_depth(16)(M) + 4,
    ),
)  # fmt: skip
def norm_weight_gradient(run, x, dy, mean, rstd, dw, db):
    M, N = x.shape
    run(weight_gradient_kernel, (triton.cdiv(N, 32),), x, dy, mean, rstd, dw, db, M, N, BLOCK_M=16, BLOCK_N=32)
