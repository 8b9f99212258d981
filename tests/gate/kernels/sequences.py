"""Correct kernels for quantisation, convolutions, dropout and the routing of experts."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

import gpuemu
from gpuemu import schemas

BLOCK = 128


def row_block(n):
    return max(triton.next_power_of_2(n), 2)


def row_strides(*arrays):
    return [a.strides[0] // a.itemsize for a in arrays]


@triton.jit
def quantise_kernel(x, q, scale, x_stride, q_stride, s_stride, n, top, WHOLE: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    group = tl.program_id(1)
    at = group * WIDTH + tl.arange(0, WIDTH)
    v = tl.load(x + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(v), axis=0), 1e-10) / top
    r = v / s
    if WHOLE:
        r = libdevice.rint(r)
    r = tl.minimum(tl.maximum(r, -top), top)
    tl.store(q + row * q_stride + at, r.to(q.dtype.element_ty), mask=at < n)
    tl.store(scale + row * s_stride + group, s)


@gpuemu.op(schemas.quantise_int8())
def quantise_int8(run, x, q, scale):
    m, n = x.shape
    strides = (*row_strides(x, q), 1)
    run(quantise_kernel, (m, 1), x, q, scale, *strides, n, 127.0, WHOLE=True, WIDTH=row_block(n))


@gpuemu.op(schemas.quantise_fp8())
def quantise_fp8(run, x, q, scale):
    m, n = x.shape
    strides = (*row_strides(x, q), 1)
    run(quantise_kernel, (m, 1), x, q, scale, *strides, n, 448.0, WHOLE=False, WIDTH=row_block(n))


@gpuemu.op(schemas.quantise_fp8(group=32, dtype="float8_e5m2"))
def quantise_groups(run, x, q, scale):
    (m, n), groups = x.shape, scale.shape[1]
    strides = (*row_strides(x, q), groups)
    run(quantise_kernel, (m, groups), x, q, scale, *strides, n, 57344.0, WHOLE=False, WIDTH=32)


@triton.jit
def dequantise_kernel(q, scale, y, q_stride, y_stride, s_stride, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(q + row * q_stride + at, mask=at < n, other=0.0).to(tl.float32)
    s = tl.load(scale + row * s_stride + at // GROUP, mask=at < n, other=0.0)
    tl.store(y + row * y_stride + at, (v * s).to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.dequantise())
def dequantise_int8(run, q, scale, y):
    m, n = q.shape
    strides = (*row_strides(q, y), 1)
    run(dequantise_kernel, (m, triton.cdiv(n, BLOCK)), q, scale, y, *strides, n, GROUP=4096, BLOCK=BLOCK)


@gpuemu.op(schemas.dequantise(dtype="float8_e4m3fn", group=32))
def dequantise_groups(run, q, scale, y):
    m, n = q.shape
    strides = (*row_strides(q, y), scale.shape[1])
    run(dequantise_kernel, (m, triton.cdiv(n, BLOCK)), q, scale, y, *strides, n, GROUP=32, BLOCK=BLOCK)


@triton.jit
def causal_conv_kernel(x, weight, bias, y, C, L, W: tl.constexpr, SILU: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    channel = row % C
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    if bias is not None:
        acc += tl.load(bias + channel).to(tl.float32)
    for w in tl.static_range(W):
        source = t - (W - 1) + w
        v = tl.load(x + row * L + source, mask=(source >= 0) & (t < L), other=0.0).to(tl.float32)
        acc += v * tl.load(weight + channel * W + w).to(tl.float32)
    if SILU:
        acc = acc * tl.sigmoid(acc)
    tl.store(y + row * L + t, acc.to(y.dtype.element_ty), mask=t < L)


@gpuemu.op(schemas.causal_conv1d())
def causal_conv(run, x, weight, bias, y):
    B, C, L = x.shape
    grid = (B * C, triton.cdiv(L, BLOCK))
    run(causal_conv_kernel, grid, x, weight, bias, y, C, L, W=weight.shape[1], SILU=False, BLOCK=BLOCK)


@gpuemu.op(schemas.causal_conv1d(activation="silu"))
def causal_conv_silu(run, x, weight, bias, y):
    B, C, L = x.shape
    grid = (B * C, triton.cdiv(L, BLOCK))
    run(causal_conv_kernel, grid, x, weight, bias, y, C, L, W=weight.shape[1], SILU=True, BLOCK=BLOCK)


@triton.jit
def conv_kernel(x, weight, y, C, F, L, R, W: tl.constexpr, PAD: tl.constexpr, TILE: tl.constexpr):
    batch = tl.program_id(2)
    f = tl.program_id(0) * TILE + tl.arange(0, TILE)
    o = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, C * W, TILE):
        term = start + k
        inside = term < C * W
        source = o[None, :] - PAD + (term % W)[:, None]
        left = tl.load(weight + f[:, None] * C * W + term[None, :], mask=(f < F)[:, None] & inside[None, :], other=0.0)
        alive = inside[:, None] & (source >= 0) & (source < L)
        right = tl.load(x + (batch * C + term // W)[:, None] * L + source, mask=alive, other=0.0)
        acc = tl.dot(left, right, acc)
    at = (batch * F + f)[:, None] * R + o[None, :]
    tl.store(y + at, acc.to(y.dtype.element_ty), mask=(f < F)[:, None] & (o < R)[None, :])


@gpuemu.op(schemas.conv1d())
def conv(run, x, weight, y):
    (B, C, L), (F, _, W), R = x.shape, weight.shape, y.shape[2]
    grid = (triton.cdiv(F, 32), triton.cdiv(R, 32), B)
    run(conv_kernel, grid, x, weight, y, C, F, L, R, W=W, PAD=1, TILE=32)


@triton.jit
def dropout_kernel(x, y, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    r = tl.where(tl.rand(seed, at) > p, v / (1 - p), 0.0)
    tl.store(y + at, r.to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.dropout())
def dropout(run, x, y, p, seed):
    run(dropout_kernel, (triton.cdiv(x.size, BLOCK),), x, y, x.size, p, seed, BLOCK=BLOCK)


@triton.jit
def routing_kernel(logits, weights, experts, E, K: tl.constexpr, RENORMALISE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(logits + row * E + at, mask=at < E, other=-float("inf")).to(tl.float32)
    top = tl.max(v, axis=0)
    total = tl.sum(tl.exp(v - top), axis=0)
    left = v
    if RENORMALISE:
        total = 0.0
        for _ in tl.static_range(K):
            best = tl.argmax(left, axis=0)
            total += tl.exp(tl.max(left, axis=0) - top)
            left = tl.where(at == best, -float("inf"), left)
        left = v
    for k in tl.static_range(K):
        best = tl.argmax(left, axis=0)
        tl.store(weights + row * K + k, tl.exp(tl.max(left, axis=0) - top) / total)
        tl.store(experts + row * K + k, best)
        left = tl.where(at == best, -float("inf"), left)


@gpuemu.op(schemas.moe_routing())
def moe_routing(run, logits, weights, experts, K):
    T, E = logits.shape
    run(routing_kernel, (T,), logits, weights, experts, E, K=K, RENORMALISE=True, BLOCK=row_block(E))


@gpuemu.op(schemas.moe_routing(renormalise=False))
def moe_routing_all(run, logits, weights, experts, K):
    T, E = logits.shape
    run(routing_kernel, (T,), logits, weights, experts, E, K=K, RENORMALISE=False, BLOCK=row_block(E))


@triton.jit
def combine_kernel(x, place, weights, y, D, K, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        source = tl.load(place + row * K + k)
        acc += tl.load(x + source * D + at, mask=at < D, other=0.0).to(tl.float32) * tl.load(weights + row * K + k)
    tl.store(y + row * D + at, acc.to(y.dtype.element_ty), mask=at < D)


@gpuemu.op(schemas.moe_combine())
def moe_combine(run, x, place, weights, y):
    (T, K), D = place.shape, x.shape[1]
    run(combine_kernel, (T, triton.cdiv(D, BLOCK)), x, place, weights, y, D, K, BLOCK=BLOCK)
