"""Correct kernels for cross-entropy, gated activations and rotary embeddings."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

import gpuemu
from gpuemu import schemas


def row_block(n):
    return max(triton.next_power_of_2(n), 2)


def row_strides(*arrays):
    return [a.strides[0] // a.itemsize for a in arrays]


@triton.jit
def cross_entropy_kernel(x, label, loss, lse, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
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
    at = tl.load(label + row)
    chosen = tl.load(x + row * x_stride + at, mask=at >= 0, other=0.0).to(tl.float32)
    tl.store(loss + row, tl.where(at >= 0, result - chosen, 0.0))
    tl.store(lse + row, result)


@gpuemu.op(schemas.cross_entropy(ignore=True))
def cross_entropy(run, x, label, loss, lse):
    m, n = x.shape
    run(cross_entropy_kernel, (m,), x, label, loss, lse, *row_strides(x), n, BLOCK=128)


@triton.jit
def cross_entropy_backward_kernel(x, label, lse, dloss, dx, n, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    target = tl.load(label + row)
    g = tl.load(dloss + row * step)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    p = tl.exp(v - tl.load(lse + row)) - tl.where(at == target, 1.0, 0.0)
    r = tl.where(target >= 0, p * g, 0.0)
    tl.store(dx + row * n + at, r.to(dx.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.cross_entropy_backward())
def cross_entropy_backward(run, x, label, lse, dloss, dx):
    m, n = x.shape
    step = dloss.strides[0] // 4
    run(cross_entropy_backward_kernel, (m,), x, label, lse, dloss, dx, n, step, BLOCK=row_block(n))


@gpuemu.op(schemas.cross_entropy_backward(inplace=True))
def cross_entropy_backward_inplace(run, x, label, lse, dloss):
    m, n = x.shape
    step = dloss.strides[0] // 4
    run(cross_entropy_backward_kernel, (m,), x, label, lse, dloss, x, n, step, BLOCK=row_block(n))


@triton.jit
def gated_kernel(gate, up, y, g_stride, u_stride, y_stride, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    g = tl.load(gate + row * g_stride + at, mask=at < n, other=0.0).to(tl.float32)
    u = tl.load(up + row * u_stride + at, mask=at < n, other=0.0)
    if FUNCTION == "swiglu":
        a = (g * tl.sigmoid(g)).to(u.dtype).to(tl.float32)
    elif FUNCTION == "geglu":
        a = 0.5 * g * (1.0 + libdevice.tanh(0.7978845608028654 * (g + 0.044715 * g * g * g)))
    else:
        a = 0.5 * g * (1.0 + tl.erf(g * 0.7071067811865476))
    tl.store(y + row * y_stride + at, (a * u.to(tl.float32)).to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.swiglu())
def swiglu(run, gate, up, y):
    m, n = gate.shape
    run(gated_kernel, (m,), gate, up, y, *row_strides(gate, up, y), n, FUNCTION="swiglu", BLOCK=row_block(n))


@gpuemu.op(schemas.geglu())
def geglu(run, gate, up, y):
    m, n = gate.shape
    run(gated_kernel, (m,), gate, up, y, *row_strides(gate, up, y), n, FUNCTION="geglu", BLOCK=row_block(n))


@gpuemu.op(schemas.geglu(approximate=False))
def geglu_erf(run, gate, up, y):
    m, n = gate.shape
    run(gated_kernel, (m,), gate, up, y, *row_strides(gate, up, y), n, FUNCTION="erf", BLOCK=row_block(n))


@triton.jit
def swiglu_backward_kernel(dy, gate, up, dgate, dup, s0, s1, s2, s3, s4, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    d = tl.load(dy + row * s0 + at, mask=at < n, other=0.0).to(tl.float32)
    g = tl.load(gate + row * s1 + at, mask=at < n, other=0.0).to(tl.float32)
    u = tl.load(up + row * s2 + at, mask=at < n, other=0.0).to(tl.float32)
    s = tl.sigmoid(g)
    slope = s * (1 + g * (1 - s))
    tl.store(dgate + row * s3 + at, (d * u * slope).to(dgate.dtype.element_ty), mask=at < n)
    tl.store(dup + row * s4 + at, (d * g * s).to(dup.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.swiglu_backward())
def swiglu_backward(run, dy, gate, up, dgate, dup):
    m, n = gate.shape
    arrays = (dy, gate, up, dgate, dup)
    run(swiglu_backward_kernel, (m,), *arrays, *row_strides(*arrays), n, BLOCK=row_block(n))


@triton.jit
def rope_kernel(x, cos, sin, y, heads, P, INTERLEAVED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < P
    base = (row * heads + tl.program_id(1)) * 2 * P
    first = base + (2 * at if INTERLEAVED else at)
    second = base + (2 * at + 1 if INTERLEAVED else P + at)
    a = tl.load(x + first, mask=inside).to(tl.float32)
    b = tl.load(x + second, mask=inside).to(tl.float32)
    c = tl.load(cos + row * P + at, mask=inside).to(tl.float32)
    s = tl.load(sin + row * P + at, mask=inside).to(tl.float32)
    tl.store(y + first, (a * c - b * s).to(y.dtype.element_ty), mask=inside)
    tl.store(y + second, (b * c + a * s).to(y.dtype.element_ty), mask=inside)


@gpuemu.op(schemas.rope())
def rope(run, x, cos, sin, y):
    S, H, _ = x.shape
    P = cos.shape[1]
    run(rope_kernel, (S, H), x, cos, sin, y, H, P, INTERLEAVED=False, BLOCK=row_block(P))


@gpuemu.op(schemas.rope(inplace=True, interleaved=True))
def rope_inplace(run, x, cos, sin):
    S, H, _ = x.shape
    P = cos.shape[1]
    run(rope_kernel, (S, H), x, cos, sin, x, H, P, INTERLEAVED=True, BLOCK=row_block(P))
