"""Matrix products, single-head attention and flash attention, and three with one planted bug.

One matrix product uses `tl.dot` in IEEE binary32 (the published one was numpy), the other outer products. Attention
holds a whole head in one block; flash attention takes tiles of up to 32 keys, and its bug needs two of them.
"""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

HEADS = {"M": (1, 2, 8), "N": (1, 3, 16, 256), "D": (8, 16, 64)}
FLASH = {**HEADS, "N": (1, 3, 16, 64, 128, 256)}


@triton.jit
def dot_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def outer_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(K):
        x = tl.load(a + m * K + k, mask=m < M, other=0.0).to(tl.float32)
        y = tl.load(b + k * N + n, mask=n < N, other=0.0).to(tl.float32)
        acc += x[:, None] * y[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def outer_last_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(K):
        x = tl.load(a + m * K + k, mask=m < M, other=0.0).to(tl.float32)
        y = tl.load(b + k * N + n, mask=n < N, other=0.0).to(tl.float32)
        acc = x[:, None] * y[None, :]  # The bug: must be +=.
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def attention_kernel(q, k, v, o, M, N, D, scale, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    inside = (n < N)[:, None] & (d < D)[None, :]
    x = tl.load(q + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    y = tl.load(k + n[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
    s = tl.sum(y * x[None, :], axis=1) * scale
    s = tl.where(n < N, s, -float("inf"))
    p = tl.exp(s - tl.max(s, axis=0))
    w = tl.load(v + n[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
    result = tl.sum(p[:, None] * w, axis=0) / tl.sum(p, axis=0)
    tl.store(o + row * D + d, result.to(o.dtype.element_ty), mask=d < D)


@triton.jit
def attention_unscaled_kernel(q, k, v, o, M, N, D, scale, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    inside = (n < N)[:, None] & (d < D)[None, :]
    x = tl.load(q + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    y = tl.load(k + n[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
    s = tl.sum(y * x[None, :], axis=1)  # The bug: not multiplied by the scale.
    s = tl.where(n < N, s, -float("inf"))
    p = tl.exp(s - tl.max(s, axis=0))
    w = tl.load(v + n[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
    result = tl.sum(p[:, None] * w, axis=0) / tl.sum(p, axis=0)
    tl.store(o + row * D + d, result.to(o.dtype.element_ty), mask=d < D)


@triton.jit
def flash_kernel(
    q, k, v, o, M, N, D, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    RESCALED: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    x = tl.load(q + m[:, None] * D + d[None, :], mask=(m < M)[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        inside = (n < N)[:, None] & (d < D)[None, :]
        y = tl.load(k + n[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
        s = tl.sum(x[:, None, :] * y[None, :, :], axis=2) * scale
        s = tl.where((n < N)[None, :], s, -float("inf"))
        new = tl.maximum(highest, tl.max(s, axis=1))
        alpha = tl.exp(highest - new)
        p = tl.exp(s - new[:, None])
        w = tl.load(v + n[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
        if RESCALED:
            acc = acc * alpha[:, None]
        acc += tl.sum(p[:, :, None] * w[None, :, :], axis=1)
        total = total * alpha + tl.sum(p, axis=1)
        highest = new
    inside = (m < M)[:, None] & (d < D)[None, :]
    tl.store(o + m[:, None] * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty), mask=inside)


def attention(q, k, v, D):
    s = q @ k.T / np.sqrt(D)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v


def product_op(name, kernel, dims, tile):
    """Declare the product `name` with a kernel on square tiles."""

    @gpuemu.op(
        name=name, dims=dims, inputs={"a": Input("M K", largest=2.0**10), "b": Input("K N", largest=2.0**10)},
        outputs={"c": Output("M N")}, reference=lambda a, b: a @ b,
        bound=bounds.dot("a", "b", precision={"float16": "ieee", "bfloat16": "ieee"}) if "triton" in name
        else bounds.dot("a", "b"),
    )  # fmt: skip
    def launch(run, a, b, c):
        (M, K), N = a.shape, b.shape[1]
        run(kernel, (triton.cdiv(M, tile), triton.cdiv(N, tile)), a, b, c, M, N, K, BLOCK=tile)

    return launch


def head_op(name, dims, start):
    """Declare single-head attention `name`; `start(run, arrays, M, N, D)` launches it."""

    @gpuemu.op(
        name=name, dims=dims,
        inputs={"q": Input("M D", largest=8), "k": Input("N D", largest=8), "v": Input("N D", largest=1024)},
        outputs={"o": Output("M D")}, reference=attention, bound=bounds.attention("q", "k", "v", tile=32),
    )  # fmt: skip
    def launch(run, q, k, v, o):
        start(run, (q, k, v, o), *q.shape[:1], *k.shape)

    return launch


def whole(kernel):
    def start(run, arrays, M, N, D):
        blocks = {"BLOCK_N": max(triton.next_power_of_2(N), 16), "BLOCK_D": triton.next_power_of_2(D)}
        run(kernel, (M,), *arrays, M, N, D, D**-0.5, **blocks, num_warps=16 if N > 64 else 4)

    return start


def tiled(rescaled):
    def start(run, arrays, M, N, D):
        tile = max(8, triton.next_power_of_2(min(N, 32)))
        blocks = {"BLOCK_M": max(4, triton.next_power_of_2(min(M, 8))), "BLOCK_N": tile, "BLOCK_D": D}
        grid = (triton.cdiv(M, blocks["BLOCK_M"]),)
        # Many warps: each thread then holds few elements, and the unrolled code stays small.
        run(flash_kernel, grid, *arrays, M, N, D, D**-0.5, **blocks, RESCALED=rescaled, num_warps=16)

    return start


product_op("matmul", dot_kernel, {"M": (1, 2, 7, 128), "K": (1, 3, 16, 127, 256), "N": (1, 2, 15, 64)}, 16)
OUTER = {"M": (1, 2, 7, 64), "K": (1, 3, 16, 64), "N": (1, 2, 15, 64)}
product_op("matmul_triton", outer_kernel, OUTER, 32)
product_op("matmul_triton_buggy", outer_last_kernel, OUTER, 32)
head_op("attention_triton", HEADS, whole(attention_kernel))
head_op("attention_triton_buggy", HEADS, whole(attention_unscaled_kernel))
head_op("flash_attention_triton", FLASH, tiled(True))
head_op("flash_attention_triton_buggy", FLASH, tiled(False))
