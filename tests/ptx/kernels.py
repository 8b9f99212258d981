"""The kernels behind the `.ptx` files here: small, ordinary Triton of the kinds that users write.

Each is lowered by `regenerate.py` with the arguments given there. Masks, loops, reductions, scans, atomics, random
numbers and tensor-core products are each met at least once.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + row * stride + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    y = e / tl.sum(e, 0)
    tl.store(out + row * stride + at, y.to(out.dtype.element_ty), mask=mask)


@triton.jit
def layernorm(x, w, b, out, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    d = tl.where(mask, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    y = d * scale * tl.load(w + at, mask=mask).to(tl.float32) + tl.load(b + at, mask=mask).to(tl.float32)
    tl.store(out + row * stride + at, y.to(out.dtype.element_ty), mask=mask)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask).to(tl.float32)
    y = 0.5 * v * (1 + tl.erf(v * 0.7071067811865476))
    tl.store(out + at, y.to(out.dtype.element_ty), mask=mask)


@triton.jit
def matmul(
    a, b, c, m, n, k, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    pa = a + rows[:, None] * sam + inner[None, :] * sak
    pb = b + inner[:, None] * sbk + cols[None, :] * sbn
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(k, BK)):
        left = k - step * BK
        va = tl.load(pa, mask=(rows[:, None] < m) & (inner[None, :] < left), other=0.0)
        vb = tl.load(pb, mask=(inner[:, None] < left) & (cols[None, :] < n), other=0.0)
        acc = tl.dot(va, vb, acc, input_precision=PRECISION)
        pa += BK * sak
        pb += BK * sbk
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(c + rows[:, None] * scm + cols[None, :] * scn, acc.to(c.dtype.element_ty), mask=mask)


@triton.jit
def flash_attention(q, k, v, out, seq, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1) * seq * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    dims = tl.arange(0, D)
    vq = tl.load(q + head + rows[:, None] * D + dims[None, :], mask=rows[:, None] < seq, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, seq, BN):
        inside = start + cols < seq
        vk = tl.load(k + head + (start + cols)[None, :] * D + dims[:, None], mask=inside[None, :], other=0.0)
        s = tl.where(inside[None, :], tl.dot(vq, vk) * scale, -float("inf"))
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new_top[:, None])
        rescale = tl.exp(top - new_top)
        total = total * rescale + tl.sum(p, 1)
        vv = tl.load(v + head + (start + cols)[:, None] * D + dims[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(vv.dtype), vv, acc * rescale[:, None])
        top = new_top
    y = acc / total[:, None]
    tl.store(out + head + rows[:, None] * D + dims[None, :], y.to(out.dtype.element_ty), mask=rows[:, None] < seq)


@triton.jit
def histogram_atomic(x, counts, total, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask, other=0)
    tl.atomic_add(counts + (v % BINS), 1, mask=mask)
    tl.atomic_max(total, tl.max(v, 0))
    tl.atomic_add(total + 1, tl.sum(v, 0))


@triton.jit
def collatz_steps(x, out, n, BLOCK: tl.constexpr):
    """A while loop whose length depends on the data."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask, other=1)
    steps = tl.zeros((BLOCK,), tl.int32)
    while tl.max(v, 0) > 1:
        steps += (v > 1).to(tl.int32)
        v = tl.where(v > 1, tl.where(v % 2 == 0, v // 2, 3 * v + 1), v)
    tl.store(out + at, steps, mask=mask)


@triton.jit
def row_cumsum(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + row * n + at, mask=mask, other=0.0)
    tl.store(out + row * n + at, tl.cumsum(v, 0), mask=mask)


@triton.jit
def row_argmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    tl.store(out + row, tl.argmax(v, 0))


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    keep = tl.rand(seed, at) > p
    v = tl.load(x + at, mask=mask)
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0), mask=mask)
