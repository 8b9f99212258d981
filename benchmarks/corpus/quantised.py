"""Quantisation and products of quantised numbers: int8 by row, FP8 by block, int4 pairs, FP8 products with scales."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

DIMS = {"M": (1, 3, 16), "N": (1, 31, 63, 64, 65, 128, 200)}
U = 2.0**-24
FP8 = ("float8_e4m3fn", "float8_e5m2")


@triton.jit(do_not_specialize=["n"])
def quantise_rows_kernel(x, q, scale, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(v), axis=0)
    s = tl.where(largest == 0.0, 1.0, largest / 127.0)
    r = v / s
    r = tl.where(r < 0, r - 0.5, r + 0.5)
    r = tl.minimum(tl.maximum(r, -127.0), 127.0)
    tl.store(q + row * n + at, r.to(tl.int8), mask=at < n)
    tl.store(scale + row, s)


@triton.jit(do_not_specialize=["n", "blocks"])
def quantise_blocks_kernel(x, q, scale, n, blocks, BLOCK: tl.constexpr):
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(v), axis=0)
    s = tl.where(largest == 0.0, 1.0, largest / 448.0)
    r = tl.minimum(tl.maximum(v / s, -448.0), 448.0)
    tl.store(q + row * n + at, r, mask=at < n)
    tl.store(scale + row * blocks + block, s)


@triton.jit(do_not_specialize=["n", "groups"])
def dequantise_kernel(q, scale, zero, y, n, groups, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    pair = tl.load(q + row * (n // 2) + at // 2, mask=at < n, other=0)
    v = (pair >> ((at % 2) * 4)) & 0xF
    s = tl.load(scale + row * groups + at // GROUP, mask=at < n, other=0.0).to(tl.float32)
    z = tl.load(zero + row * groups + at // GROUP, mask=at < n, other=0)
    tl.store(y + row * n + at, ((v.to(tl.int32) - z).to(tl.float32) * s).to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["M", "N", "K"])
def scaled_matmul_kernel(
    a, b, c, a_scale, b_scale, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    row = tl.load(a_scale + m, mask=m < M, other=0.0)
    column = tl.load(b_scale + n, mask=n < N, other=0.0)
    inside = (m < M)[:, None] & (n < N)[None, :]
    result = acc * row[:, None] * column[None, :]
    tl.store(c + m[:, None] * N + n[None, :], result.to(c.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["M", "N", "K"])
def block_scaled_kernel(
    a, b, c, a_scale, b_scale, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(steps):
        k = step * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        row = tl.load(a_scale + m * steps + step, mask=m < M, other=0.0)
        column = tl.load(b_scale + step * N + n, mask=n < N, other=0.0)
        acc += tl.dot(x, y) * row[:, None] * column[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


def rows_reference(x):
    top = np.abs(x).max(axis=1)
    s = np.where(top == 0, 1.0, top / 127)
    q = np.clip(np.trunc(x / s[:, None] + np.copysign(0.5, x)), -127, 127)
    return q, s


def rows_bound(run):
    """The quotient is off by 7 units of 2**-24 of itself: a number that near a half may be rounded to either side."""
    x = run.inputs["x"]
    s = run.outputs["scale"]
    r = np.abs(x / s[:, None])
    near = np.abs(r + 0.5 - np.rint(r + 0.5)) <= 8 * U * (r + 1)
    tiny = s[:, None] < 2.0**-120  # the scale itself loses bits
    return {"q": np.where(near | tiny, 1.0, 0.0), "scale": 5 * U * s + 2.0**-148}


def blocks_reference(x, B):
    M, N = x.shape
    wide = np.zeros((M, B * 32))
    wide[:, :N] = x
    top = np.abs(wide.reshape(M, B, 32)).max(axis=2)
    s = np.where(top == 0, 1.0, top / 448)
    return x / np.repeat(s, 32, axis=1)[:, :N], s


def unpack(q, N):
    return np.stack([q & 0xF, q >> 4], axis=2).reshape(len(q), -1)[:, :N].astype(np.float64)


def dequantise_reference(q, scale, zero, N):
    s, z = (np.repeat(v.astype(np.float64), 16, axis=1)[:, :N] for v in (scale, zero))
    return (unpack(q, N) - z) * s


def block_scaled_reference(a, b, a_scale, b_scale):
    return sum(
        a[:, s * 32 : s * 32 + 32] @ b[s * 32 : s * 32 + 32] * a_scale[:, s : s + 1] * b_scale[s]
        for s in range(a_scale.shape[1])
    )


def block_scaled_bound(run):
    """Each step is a product with two scales; the steps are added in binary32."""
    a, b, p, q = (run.inputs[n] for n in ("a", "b", "a_scale", "b_scale"))
    model = bounds.fused_dot("a", "b", scales=("p", "q"))
    bound, size = 0.0, 0.0
    for s in range(p.shape[1]):
        x, y = a[:, s * 32 : s * 32 + 32], b[s * 32 : s * 32 + 32]
        one = {"a": x, "b": y, "p": p[:, s : s + 1], "q": q[s : s + 1]}
        bound = bound + model(bounds.Exact(one, {}, run.dims, run.dtype, run.device))
        size = size + np.abs(x) @ np.abs(y) * p[:, s : s + 1] * q[s]
    return bound + p.shape[1] * U * (size + bound)


@gpuemu.op(
    dims=DIMS, inputs={"x": Input("M N")}, outputs={"q": Output("M N", "int8"), "scale": Output("M", "float32")},
    reference=rows_reference, bound=rows_bound,
)  # fmt: skip
def quantise_rows(run, x, q, scale):
    run(quantise_rows_kernel, (len(x),), x, q, scale, x.shape[1], BLOCK=256)


@gpuemu.op(
    dims={"M": (1, 3, 9), "N": (1, 31, 32, 33, 64, 100), "B": (1, 2, 4)}, where=lambda M, N, B: triton.cdiv(N, 32) == B,
    shapes=[
        {"M": m, "N": n, "B": triton.cdiv(n, 32)} for m, n in ((1, 1), (3, 31), (9, 32), (3, 33), (9, 64), (9, 100))
    ],
    targets=("sm_89",), inputs={"x": Input("M N", largest=2.0**16)},
    outputs={"q": Output("M N", "float8_e4m3fn"), "scale": Output("M B", "float32")},
    reference=blocks_reference,
    bound=lambda run: {
        "q": 8 * U * np.abs(run.outputs["q"])
        + 2.0**-140 / np.repeat(run.outputs["scale"], 32, axis=1)[:, : run.dims["N"]],
        "scale": 5 * U * run.outputs["scale"] + 2.0**-148,
    },
)  # fmt: skip
def quantise_blocks(run, x, q, scale, M, N, B):
    run(quantise_blocks_kernel, (M, B), x, q, scale, N, B, BLOCK=32)


@gpuemu.op(
    dims={"M": (1, 3), "N": (16, 32, 48, 80, 144), "G": (1, 2, 3, 5, 9), "H": (8, 16, 24, 40, 72)},
    shapes=[{"M": m, "N": n, "G": n // 16, "H": n // 2} for m, n in ((1, 16), (3, 32), (3, 48), (1, 80), (3, 144))],
    inputs={
        "q": Input("M H", "uint8", high=256), "scale": Input("M G", largest=2.0**6),
        "zero": Input("M G", "int32", low=0, high=16),
    },
    outputs={"y": Output("M N")}, reference=dequantise_reference, bound=bounds.elementwise(1),
)  # fmt: skip
def dequantise_int4(run, q, scale, zero, y, M, N, G):
    run(dequantise_kernel, (M, triton.cdiv(N, 64)), q, scale, zero, y, N, G, GROUP=16, BLOCK=64)


@gpuemu.op(
    dims={"M": (1, 15, 33), "N": (1, 31, 33), "K": (1, 31, 32, 33, 64, 70)}, dtypes=FP8, targets=("sm_89",),
    inputs={
        "a": Input("M K", largest=2.0**6), "b": Input("K N", largest=2.0**6),
        "a_scale": Input("M 1", "float32", positive=True, largest=4.0),
        "b_scale": Input("N", "float32", positive=True, largest=4.0),
    },
    outputs={"c": Output("M N", "bfloat16")}, reference=lambda a, b, a_scale, b_scale: a @ b * a_scale * b_scale,
    bound=bounds.fused_dot("a", "b", scales=("a_scale", "b_scale")),
)  # fmt: skip
def matmul_row_scales(run, a, b, c, a_scale, b_scale, M, N, K):
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    run(scaled_matmul_kernel, grid, a, b, c, a_scale, b_scale, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)


@gpuemu.op(
    dims={"M": (1, 15, 33), "N": (1, 31, 33), "K": (1, 31, 32, 33, 64, 70), "S": (1, 2, 3)},
    where=lambda M, N, K, S: triton.cdiv(K, 32) == S,
    shapes=[
        {"M": m, "N": n, "K": k, "S": triton.cdiv(k, 32)}
        for m, n, k in ((1, 1, 1), (15, 31, 31), (33, 33, 32), (15, 33, 33), (33, 31, 64), (33, 33, 70))
    ],
    dtypes=FP8, targets=("sm_89",),
    inputs={
        "a": Input("M K", largest=2.0**6), "b": Input("K N", largest=2.0**6),
        "a_scale": Input("M S", "float32", positive=True, largest=4.0),
        "b_scale": Input("S N", "float32", positive=True, largest=4.0),
    },
    outputs={"c": Output("M N", "bfloat16")}, reference=block_scaled_reference, bound=block_scaled_bound,
)  # fmt: skip
def matmul_block_scales(run, a, b, c, a_scale, b_scale, M, N, K):
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    run(block_scaled_kernel, grid, a, b, c, a_scale, b_scale, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
