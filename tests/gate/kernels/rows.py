"""Correct kernels for softmax and its relatives, one program a row."""

import triton
import triton.language as tl

import gpuemu
from gpuemu import schemas


def row_block(n):
    return max(triton.next_power_of_2(n), 2)


def row_strides(*arrays):
    return [a.strides[0] // a.itemsize for a in arrays]


@triton.jit
def row_kernel(x, y, x_stride, y_stride, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
    z = v - tl.max(v, axis=0)
    e = tl.exp(z)
    r = e / tl.sum(e, axis=0) if FUNCTION == "softmax" else z - tl.log(tl.sum(e, axis=0))
    tl.store(y + row * y_stride + at, r.to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.softmax())
def softmax(run, x, y):
    m, n = x.shape
    run(row_kernel, (m,), x, y, *row_strides(x, y), n, FUNCTION="softmax", BLOCK=row_block(n))


@gpuemu.op(schemas.log_softmax())
def log_softmax(run, x, y):
    m, n = x.shape
    run(row_kernel, (m,), x, y, *row_strides(x, y), n, FUNCTION="log_softmax", BLOCK=row_block(n))


@triton.jit
def lse_kernel(x, lse, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * x_stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(v, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - safe) + tl.sum(tl.exp(v - safe), axis=0)
        top = new
    tl.store(lse + row, tl.where(top == -float("inf"), top, top + tl.log(total)))


@gpuemu.op(schemas.logsumexp())
def logsumexp(run, x, lse):
    m, n = x.shape
    run(lse_kernel, (m,), x, lse, *row_strides(x), n, BLOCK=128)


@triton.jit
def softmax_backward_kernel(y, dy, dx, y_stride, dy_stride, dx_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    p = tl.load(y + row * y_stride + at, mask=at < n, other=0.0).to(tl.float32)
    g = tl.load(dy + row * dy_stride + at, mask=at < n, other=0.0).to(tl.float32)
    r = p * (g - tl.sum(p * g, axis=0))
    tl.store(dx + row * dx_stride + at, r.to(dx.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.softmax_backward())
def softmax_backward(run, y, dy, dx):
    m, n = y.shape
    run(softmax_backward_kernel, (m,), y, dy, dx, *row_strides(y, dy, dx), n, BLOCK=row_block(n))
