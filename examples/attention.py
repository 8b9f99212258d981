"""Attention with all keys of a head in one tile: softmax(q k^T / sqrt(D)) v."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def attention_kernel(
    q, k, v, o, SQ, SK, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    q_at = head * SQ * D + m[:, None] * D + d[None, :]
    k_at = head * SK * D + n[:, None] * D + d[None, :]
    keys = (n < SK)[:, None] & (d < D)[None, :]
    queries = (m < SQ)[:, None] & (d < D)[None, :]
    x = tl.load(q + q_at, mask=queries, other=0.0)
    y = tl.load(k + k_at, mask=keys, other=0.0)
    s = tl.where((n < SK)[None, :], tl.dot(x, tl.trans(y)) * scale, -float("inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    w = tl.load(v + k_at, mask=keys, other=0.0)
    result = tl.dot(p.to(w.dtype), w) / tl.sum(p, axis=1)[:, None]
    tl.store(o + q_at, result.to(o.dtype.element_ty), mask=queries)


def reference(q, k, v, D):
    s = q @ k.swapaxes(1, 2) / np.sqrt(D)
    p = np.exp(s - s.max(axis=2, keepdims=True))
    return p / p.sum(axis=2, keepdims=True) @ v


@gpuemu.op(
    dims={"H": (1, 2), "SQ": (1, 31, 33), "SK": (1, 15, 16, 17, 31, 32, 33, 64), "D": (16, 40, 64)},
    inputs={"q": Input("H SQ D", largest=8), "k": Input("H SK D", largest=8), "v": Input("H SK D", largest=1024)},
    outputs={"o": Output("H SQ D")},
    reference=reference,
    bound=bounds.attention("q", "k", "v", precision={"float32": "tf32"}),
)
def attention(run, q, k, v, o, H, SQ, SK, D):
    block_n, block_d = max(triton.next_power_of_2(SK), 16), max(triton.next_power_of_2(D), 16)
    blocks = {"BLOCK_M": 32, "BLOCK_N": block_n, "BLOCK_D": block_d}
    run(attention_kernel, (triton.cdiv(SQ, 32), H), q, k, v, o, SQ, SK, D**-0.5, D=D, **blocks)
