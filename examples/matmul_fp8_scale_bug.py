"""The FP8 matmul of matmul_fp8.py, with a wrong scale.

The scale of A is applied twice, that of B not at all. Visible on any shape, unless both scales are 1 as in a test of
the layout.
"""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def matmul_kernel(
    a, b, c, a_scale, b_scale, bias, M, N, K, a_stride, b_stride, c_stride,
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
        acc = tl.dot(x, y, acc)
    scale = tl.load(a_scale) * tl.load(a_scale)  # The bug: the second must be b_scale.
    result = tl.maximum(acc * scale + tl.load(bias + n, mask=n < N)[None, :], 0.0)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * c_stride + n[None, :], result.to(c.dtype.element_ty), mask=inside)


@gpuemu.op(
    dims={"M": (1, 31, 64, 67), "N": (1, 31, 32, 33), "K": (1, 31, 63, 64, 65, 97, 128, 160)},
    dtypes=("float8_e4m3fn", "float8_e5m2"),
    targets=("sm_89", "sm_90"),
    inputs={
        "a": Input("M K", largest=2.0**6, padded=True),
        "b": Input("K N", largest=2.0**6, padded=True),
        "a_scale": Input("1", dtype="float32", positive=True, largest=4.0),
        "b_scale": Input("1", dtype="float32", positive=True, largest=4.0),
        "bias": Input("N", dtype="float32", largest=2.0**6),
    },
    outputs={"c": Output("M N", dtype="bfloat16", padded=True)},
    reference=lambda a, b, a_scale, b_scale, bias: np.maximum(a @ b * (a_scale * b_scale) + bias, 0),
    bound=bounds.fused_dot("a", "b", scales=("a_scale", "b_scale"), bias="bias"),
)
def matmul_fp8_scale(run, a, b, c, a_scale, b_scale, bias):
    (M, K), N = a.shape, b.shape[1]
    strides = (array.strides[0] // array.itemsize for array in (a, b, c))
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 32))
    arrays = (a, b, c, a_scale, b_scale, bias)
    run(matmul_kernel, grid, *arrays, M, N, K, *strides, BLOCK_M=64, BLOCK_N=32, BLOCK_K=64)
