"""relu(A @ B + bias) in one kernel: where the story of README.md begins."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def fused_kernel(
    a, b, bias, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    acc = acc + tl.load(bias + n, mask=n < N)[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], tl.maximum(acc, 0.0).to(c.dtype.element_ty), mask=inside)


DIMS = {"M": (1, 31, 64, 67), "N": (1, 31, 32, 33), "K": (1, 31, 32, 33, 63, 64, 97, 128)}


@gpuemu.op(
    dims=DIMS,
    dtypes=("float16", "bfloat16"),
    inputs={
        "a": Input("M K", largest=2.0**6),
        "b": Input("K N", largest=2.0**6),
        "bias": Input("N", dtype="float32", largest=2.0**6),
    },
    outputs={"c": Output("M N")},
    reference=lambda a, b, bias: np.maximum(a @ b + bias, 0),
    bound=bounds.fused_dot("a", "b", bias="bias"),
)
def fused_matmul(run, a, b, bias, c, M, N, K):
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 32))
    run(fused_kernel, grid, a, b, bias, c, M, N, K, BLOCK_M=64, BLOCK_N=32, BLOCK_K=32)
