"""Causal flash attention as in flash_attention.py, with rows that see no key forgotten.

Their maximum stays -inf, and -inf minus -inf is NaN. With as many keys as queries every row sees one, and the result is
right.
"""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds


@triton.jit
def flash_kernel(
    q, k, v, o, SQ, SK, scale, D: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    q_at = head * SQ * D + m[:, None] * D + d[None, :]
    queries = (m < SQ)[:, None] & (d < D)[None, :]
    x = tl.load(q + q_at, mask=queries, other=0.0)
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, SK, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        k_at = head * SK * D + n[:, None] * D + d[None, :]
        keys = (n < SK)[:, None] & (d < D)[None, :]
        s = tl.dot(x, tl.trans(tl.load(k + k_at, mask=keys, other=0.0))) * (scale * 1.4426950408889634)
        seen = (n < SK)[None, :]
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None] + (SK - SQ))
        s = tl.where(seen, s, -float("inf"))
        new = tl.maximum(highest, tl.max(s, axis=1))
        safe = new  # The bug: -inf must not be subtracted.
        alpha = tl.exp2(highest - safe)
        p = tl.exp2(s - safe[:, None])
        total = total * alpha + tl.sum(p, axis=1)
        w = tl.load(v + k_at, mask=keys, other=0.0)
        acc = tl.dot(p.to(w.dtype), w, acc * alpha[:, None])
        highest = new
    result = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(o + q_at, result.to(o.dtype.element_ty), mask=queries)


def reference(q, k, v, SQ, SK, D):
    seen = bounds.causal_mask(SQ, SK)
    s = np.where(seen, q @ k.swapaxes(1, 2) / np.sqrt(D), -np.inf)
    top = s.max(axis=2, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(top), top, 0.0))
    total = p.sum(axis=2, keepdims=True)
    return p / np.where(total == 0, 1.0, total) @ v


@gpuemu.op(
    dims={"H": (1, 2), "SQ": (1, 33, 64, 65), "SK": (1, 31, 63, 64, 65, 97, 128, 129), "D": (16, 40, 64)},
    inputs={"q": Input("H SQ D", largest=8), "k": Input("H SK D", largest=8), "v": Input("H SK D", largest=1024)},
    outputs={"o": Output("H SQ D")},
    reference=reference,
    bound=bounds.attention("q", "k", "v", mask=bounds.causal_mask, precision={"float32": "tf32"}),
)
def flash_causal_nan(run, q, k, v, o, H, SQ, SK, D):
    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_D": max(triton.next_power_of_2(D), 16)}
    run(flash_kernel, (triton.cdiv(SQ, 64), H), q, k, v, o, SQ, SK, D**-0.5, D=D, CAUSAL=True, **blocks)
