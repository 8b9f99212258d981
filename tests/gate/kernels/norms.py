"""Correct kernels for normalisations and their gradients, one program a row."""

import triton
import triton.language as tl

import gpuemu
from gpuemu import schemas


def row_block(n):
    return max(triton.next_power_of_2(n), 2)


def row_strides(*arrays):
    return [a.strides[0] // a.itemsize for a in arrays]


@triton.jit
def layer_norm_kernel(x, weight, bias, y, mean, rstd, x_stride, y_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    centre = tl.sum(v, axis=0) / n
    off = tl.where(inside, v - centre, 0.0)
    root = 1 / tl.sqrt(tl.sum(off * off, axis=0) / n + eps)
    r = off * root
    if weight is not None:
        r = r * tl.load(weight + at, mask=inside).to(tl.float32) + tl.load(bias + at, mask=inside).to(tl.float32)
    tl.store(y + row * y_stride + at, r.to(y.dtype.element_ty), mask=inside)
    if mean is not None:
        tl.store(mean + row, centre)
        tl.store(rstd + row, root)


@gpuemu.op(schemas.layer_norm(stats=True))
def layer_norm(run, x, weight, bias, y, mean, rstd):
    m, n = x.shape
    run(layer_norm_kernel, (m,), x, weight, bias, y, mean, rstd, *row_strides(x, y), n, 1e-5, BLOCK=row_block(n))


@gpuemu.op(schemas.layer_norm(affine=False))
def layer_norm_plain(run, x, y):
    m, n = x.shape
    run(layer_norm_kernel, (m,), x, None, None, y, None, None, *row_strides(x, y), n, 1e-5, BLOCK=row_block(n))


@triton.jit
def norm_backward_kernel(
    dy, x, weight, mean, rstd, dx, dw, db, dy_stride, x_stride, dx_stride, n, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    g = tl.load(dy + row * dy_stride + at, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(x + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    r = tl.load(rstd + row)
    if mean is not None:
        v = tl.where(inside, v - tl.load(mean + row), 0.0)
    hat = v * r
    wg = g * w
    along = tl.sum(wg * hat, axis=0) / n
    d = wg - hat * along
    if mean is not None:
        d = d - tl.sum(wg, axis=0) / n
        tl.atomic_add(db + at, g, mask=inside)
    tl.store(dx + row * dx_stride + at, (d * r).to(dx.dtype.element_ty), mask=inside)
    tl.atomic_add(dw + at, g * hat, mask=inside)


@triton.jit
def convert_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n).to(y.dtype.element_ty), mask=at < n)


def backward(run, dy, x, weight, mean, rstd, dx, dw, db):
    m, n = x.shape
    sums = [run.empty(n) for _ in range(2)]
    for s in sums:
        s[...] = 0
    strides = row_strides(dy, x, dx)
    run(norm_backward_kernel, (m,), dy, x, weight, mean, rstd, dx, *sums, *strides, n, BLOCK=row_block(n))
    for total, out in zip(sums, (dw, db), strict=True):
        if out is not None:
            run(convert_kernel, (triton.cdiv(n, 128),), total, out, n, BLOCK=128)


@gpuemu.op(schemas.layer_norm_backward())
def layer_norm_backward(run, dy, x, weight, mean, rstd, dx, dw, db):
    backward(run, dy, x, weight, mean, rstd, dx, dw, db)


@gpuemu.op(schemas.rms_norm_backward())
def rms_norm_backward(run, dy, x, weight, rstd, dx, dw):
    backward(run, dy, x, weight, None, rstd, dx, dw, None)


@triton.jit
def rms_norm_kernel(x, weight, y, x_stride, y_stride, n, eps, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
    total = tl.sum(v * v, axis=0)
    r = v * tl.rsqrt((total / n if MEAN else total) + eps)
    if weight is not None:
        r = r * tl.load(weight + at, mask=at < n).to(tl.float32)
    tl.store(y + row * y_stride + at, r.to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.rms_norm())
def rms_norm(run, x, weight, y):
    m, n = x.shape
    run(rms_norm_kernel, (m,), x, weight, y, *row_strides(x, y), n, 1e-6, MEAN=True, BLOCK=row_block(n))


@gpuemu.op(schemas.l2_norm())
def l2_norm(run, x, y):
    m, n = x.shape
    run(rms_norm_kernel, (m,), x, None, y, *row_strides(x, y), n, 1e-12, MEAN=False, BLOCK=row_block(n))


@triton.jit
def group_norm_kernel(x, weight, bias, y, groups, channels, length, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    n = channels * length
    base = tl.program_id(0) * n
    inside = at < n
    v = tl.load(x + base + at, mask=inside, other=0.0).to(tl.float32)
    centre = tl.sum(v, axis=0) / n
    off = tl.where(inside, v - centre, 0.0)
    root = 1 / tl.sqrt(tl.sum(off * off, axis=0) / n + eps)
    channel = (tl.program_id(0) % groups) * channels + at // length
    w = tl.load(weight + channel, mask=inside).to(tl.float32)
    b = tl.load(bias + channel, mask=inside).to(tl.float32)
    tl.store(y + base + at, (off * root * w + b).to(y.dtype.element_ty), mask=inside)


@gpuemu.op(schemas.group_norm())
def group_norm(run, x, weight, bias, y):
    b, g, c, length = x.shape
    run(group_norm_kernel, (b * g,), x, weight, bias, y, g, c, length, 1e-5, BLOCK=row_block(c * length))


@triton.jit
def add_rms_norm_kernel(x, residual, weight, y, n, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    base = tl.program_id(0) * n
    inside = at < n
    v = tl.load(x + base + at, mask=inside, other=0.0).to(tl.float32)
    v += tl.load(residual + base + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + base + at, v.to(residual.dtype.element_ty), mask=inside)
    r = v * tl.rsqrt(tl.sum(v * v, axis=0) / n + eps) * tl.load(weight + at, mask=inside).to(tl.float32)
    tl.store(y + base + at, r.to(y.dtype.element_ty), mask=inside)


@gpuemu.op(schemas.add_rms_norm())
def add_rms_norm(run, x, residual, weight, y):
    m, n = x.shape
    run(add_rms_norm_kernel, (m,), x, residual, weight, y, n, 1e-6, BLOCK=row_block(n))
