"""C = A @ B with K split over programs: partial products in a temporary, added up by a second kernel."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def partial_kernel(
    a, b, parts, M, N, K, PER: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(2) * PER
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, PER, BLOCK_K):
        k = first + start + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(x, y)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(parts + tl.program_id(2) * M * N + m[:, None] * N + n[None, :], acc, mask=inside)


@triton.jit
def add_kernel(parts, c, size, split, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(split):
        total += tl.load(parts + part * size + at, mask=at < size)
    tl.store(c + at, total.to(c.dtype.element_ty), mask=at < size)


@gpuemu.op(
    dims={"M": (1, 31, 33), "N": (1, 31, 33), "K": (1, 31, 32, 63, 64, 65, 129, 160)},
    inputs={"a": Input("M K", largest=2.0**10), "b": Input("K N", largest=2.0**10)},
    outputs={"c": Output("M N")},
    reference=lambda a, b: a @ b,
    bound=bounds.dot("a", "b", precision={"float32": "tf32"}, chunk=64),
)
def matmul_split_k(run, a, b, c):
    (M, K), N = a.shape, b.shape[1]
    split = triton.cdiv(K, 64)
    parts = np.empty((split, M, N), np.float32)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), split)
    run(partial_kernel, grid, a, b, parts, M, N, K, PER=64, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    run(add_kernel, (triton.cdiv(M * N, 256),), parts, c, M * N, split, BLOCK=256)
