"""Correct matrix products: every stride, batches, groups, parts of K, scales, integers, and an epilogue."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import schemas

TILE = 32


def strides(*arrays):
    return [s // a.itemsize for a in arrays for s in a.strides]


@triton.jit
def matmul_kernel(
    a, b, c, bias, a_scale, b_scale, M, N, K, first_k, last_k, ab, am, ak, bb, bk, bn, cb, cm, cn,
    ACTIVATION: tl.constexpr, ATOMIC: tl.constexpr, TYPE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2)
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), dtype=TYPE)
    for start in range(first_k, last_k, TILE):
        left = start + k < last_k
        x_at = a + batch * ab + m[:, None] * am + (start + k)[None, :] * ak
        x = tl.load(x_at, mask=(m < M)[:, None] & left[None, :], other=0.0)
        y_at = b + batch * bb + (start + k)[:, None] * bk + n[None, :] * bn
        y = tl.load(y_at, mask=left[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=TYPE)
    if a_scale is not None:
        acc = acc.to(tl.float32) * tl.load(a_scale + m, mask=m < M)[:, None]
        acc = acc * tl.load(b_scale + n, mask=n < N)[None, :]
    if bias is not None:
        acc += tl.load(bias + n, mask=n < N).to(tl.float32)[None, :]
    if ACTIVATION == "relu":
        acc = tl.maximum(acc, 0.0)
    elif ACTIVATION == "silu":
        acc = acc * tl.sigmoid(acc)
    inside = (m < M)[:, None] & (n < N)[None, :]
    at = c + batch * cb + m[:, None] * cm + n[None, :] * cn
    if ATOMIC:
        tl.atomic_add(at, acc, mask=inside)
    else:
        tl.store(at, acc.to(c.dtype.element_ty), mask=inside)


def multiply(
    run, a, b, c, *, bias=None, scales=(None, None), activation="none", part=None, atomic=False, kind=tl.float32
):
    """One launch, over a batch where the arrays have one."""
    a, b, c = (x if x.ndim == 3 else x[None] for x in (a, b, c))
    (B, M, K), N = a.shape, b.shape[2]
    ends = part or (0, K)
    grid = (triton.cdiv(M, TILE), triton.cdiv(N, TILE), B)
    run(
        matmul_kernel, grid, a, b, c, bias, *scales, M, N, K, *ends, *strides(a, b, c),
        ACTIVATION=activation, ATOMIC=atomic, TYPE=kind, TILE=TILE,
    )  # fmt: skip


@gpuemu.op(schemas.matmul(views=("padded", "transposed")))
def matmul(run, a, b, c):
    multiply(run, a, b, c)


@gpuemu.op(schemas.batched_matmul())
def batched_matmul(run, a, b, c):
    multiply(run, a, b, c)


@gpuemu.op(schemas.atomic_split_k_matmul(chunk=64))
def atomic_split_k_matmul(run, a, b, c):
    for start in range(0, a.shape[1], 64):
        multiply(run, a, b, c, part=(start, min(start + 64, a.shape[1])), atomic=True)
    if a.shape[1] == 0:
        multiply(run, a, b, c)


@triton.jit
def add_kernel(parts, c, size, split, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(split):
        total += tl.load(parts + part * size + at, mask=at < size)
    tl.store(c + at, total.to(c.dtype.element_ty), mask=at < size)


@gpuemu.op(schemas.split_k_matmul(chunk=64))
def split_k_matmul(run, a, b, c):
    (M, K), N = a.shape, b.shape[1]
    split = triton.cdiv(K, 64)
    parts = run.empty((split, M, N))
    for i in range(split):
        multiply(run, a, b, parts[i], part=(64 * i, min(64 * i + 64, K)))
    run(add_kernel, (triton.cdiv(M * N, 256),), parts, c, M * N, split, BLOCK=256)


@triton.jit
def grouped_kernel(a, b, c, offsets, N, K, TILE: tl.constexpr):
    group = tl.program_id(2)
    first = tl.load(offsets + group)
    last = tl.load(offsets + group + 1)
    m = first + tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE):
        left = start + k < K
        x = tl.load(a + m[:, None] * K + (start + k)[None, :], mask=(m < last)[:, None] & left[None, :], other=0.0)
        y_at = b + group * K * N + (start + k)[:, None] * N + n[None, :]
        y = tl.load(y_at, mask=left[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    inside = (m < last)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@gpuemu.op(schemas.grouped_matmul())
def grouped_matmul(run, a, b, offsets, c):
    (T, K), (G, _, N) = a.shape, b.shape
    run(grouped_kernel, (triton.cdiv(T, TILE), triton.cdiv(N, TILE), G), a, b, c, offsets, N, K, TILE=TILE)


@gpuemu.op(schemas.fused_matmul("relu"))
def fused_relu(run, a, b, bias, c):
    multiply(run, a, b, c, bias=bias, activation="relu")


@gpuemu.op(schemas.fused_matmul("silu"))
def fused_silu(run, a, b, bias, c):
    multiply(run, a, b, c, bias=bias, activation="silu")


@gpuemu.op(schemas.fp8_matmul("row"))
def fp8_rows(run, a, b, a_scale, b_scale, c):
    multiply(run, a, b, c, scales=(a_scale, b_scale))


@gpuemu.op(schemas.fp8_matmul("tensor"))
def fp8_tensor(run, a, b, a_scale, b_scale, c):
    wide = [np.broadcast_to(s, n).copy() for s, n in ((a_scale, a.shape[0]), (b_scale, b.shape[1]))]
    multiply(run, a, b, c, scales=wide)


@triton.jit
def block_scaled_kernel(a, b, c, a_scale, b_scale, M, N, K, as_m, bs_k, am, ak, bk, bn, cm, cn, TILE: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE):
        left = start + k < K
        x_at = a + m[:, None] * am + (start + k)[None, :] * ak
        x = tl.load(x_at, mask=(m < M)[:, None] & left[None, :], other=0.0)
        y_at = b + (start + k)[:, None] * bk + n[None, :] * bn
        y = tl.load(y_at, mask=left[:, None] & (n < N)[None, :], other=0.0)
        block = start // TILE
        left_scale = tl.load(a_scale + m * as_m + block, mask=m < M, other=0.0)
        right_scale = tl.load(b_scale + block * bs_k + n // TILE, mask=n < N, other=0.0)
        acc += tl.dot(x, y) * left_scale[:, None] * right_scale[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * cm + n[None, :] * cn, acc.to(c.dtype.element_ty), mask=inside)


@gpuemu.op(schemas.fp8_matmul("block"))
def fp8_blocks(run, a, b, a_scale, b_scale, c):
    (M, K), N = a.shape, b.shape[1]
    sizes = (M, N, K, a_scale.shape[1], b_scale.shape[1])
    grid = (triton.cdiv(M, TILE), triton.cdiv(N, TILE))
    run(block_scaled_kernel, grid, a, b, c, a_scale, b_scale, *sizes, *strides(a, b, c), TILE=TILE)


@gpuemu.op(schemas.int8_matmul())
def int8_matmul(run, a, b, c):
    multiply(run, a, b, c, kind=tl.int32)


@gpuemu.op(schemas.int8_matmul(scaled=True))
def int8_scaled(run, a, b, a_scale, b_scale, c):
    multiply(run, a, b, c, scales=(a_scale, b_scale), kind=tl.int32)


@triton.jit
def int4_kernel(a, packed, scale, c, M, N, K, GROUP: tl.constexpr, TILE: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE):
        row = start + k
        x = tl.load(a + m[:, None] * K + row[None, :], mask=(m < M)[:, None], other=0.0)
        both = tl.load(packed + (row // 2)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0)
        q = (both >> ((row % 2) * 4).to(tl.uint8)[:, None]) & 15
        s = tl.load(scale + (row // GROUP)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        w = (q.to(tl.float32) - 8.0) * s.to(tl.float32)
        acc = tl.dot(x, w.to(x.dtype), acc)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@gpuemu.op(schemas.int4_weight_matmul())
def int4_matmul(run, a, packed, scale, c):
    (M, K), N = a.shape, packed.shape[1]
    grid = (triton.cdiv(M, TILE), triton.cdiv(N, TILE))
    run(int4_kernel, grid, a, packed, scale, c, M, N, K, GROUP=32, TILE=TILE)
