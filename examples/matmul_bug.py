"""C = A @ B as in matmul.py, with the accumulator overwritten.

Each step replaces the sum instead of adding to it, so only the last tile of K counts. With K of one tile or less the
result is right.
"""

import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, a_stride, b_stride, c_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        left = start + k < K
        x = tl.load(a + m[:, None] * a_stride + (start + k)[None, :], mask=(m < M)[:, None] & left[None, :], other=0.0)
        y = tl.load(b + (start + k)[:, None] * b_stride + n[None, :], mask=left[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y)  # The bug: must be +=.
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * c_stride + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@gpuemu.op(
    dims={"M": (1, 31, 32, 33, 67), "N": (1, 31, 32, 33, 64), "K": (1, 17, 31, 32, 33, 64, 97, 128)},
    inputs={"a": Input("M K", largest=2.0**10, padded=True), "b": Input("K N", largest=2.0**10, padded=True)},
    outputs={"c": Output("M N", padded=True)},
    reference=lambda a, b: a @ b,
    bound=bounds.dot("a", "b", precision={"float32": "tf32"}),
)
def matmul_overwritten(run, a, b, c):
    (M, K), N = a.shape, b.shape[1]
    strides = (array.strides[0] // array.itemsize for array in (a, b, c))
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    run(matmul_kernel, grid, a, b, c, M, N, K, *strides, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
