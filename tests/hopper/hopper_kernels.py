"""Triton kernels for sm_90: what production code on an H100 looks like, one of each kind.

Plain and pipelined products, persistent ones, tensor descriptors made by the host and inside the kernel,
warp-specialised loops, attention, and waiting on other CTAs. `tests/hopper/corpus.py` says with what they are lowered.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul(
    a, b, c, m, n, k, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Pointers, masks, a software-pipelined loop; the accumulator's type follows the operands'."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    pa = a + rows[:, None] * sam + inner[None, :] * sak
    pb = b + inner[:, None] * sbk + cols[None, :] * sbn
    acc = tl.zeros((BM, BN), tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for step in tl.range(0, tl.cdiv(k, BK), num_stages=STAGES):
        left = k - step * BK
        va = tl.load(pa, mask=(rows[:, None] < m) & (inner[None, :] < left), other=0.0)
        vb = tl.load(pb, mask=(inner[:, None] < left) & (cols[None, :] < n), other=0.0)
        acc = tl.dot(va, vb, acc, input_precision=PRECISION, out_dtype=acc.dtype)
        pa += BK * sak
        pb += BK * sbk
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(c + rows[:, None] * scm + cols[None, :] * scn, acc.to(c.dtype.element_ty), mask=mask)


@triton.jit
def matmul_scaled(
    a, b, c, m, n, k, sam, sbk, scm, scale,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Operand A changes in registers between the load and the product, and B is read through its transpose."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for step in tl.range(0, k, BK, num_stages=STAGES):
        inner = step + tl.arange(0, BK)
        va = tl.load(a + rows[:, None] * sam + inner[None, :])
        vb = tl.load(b + cols[:, None] * sbk + inner[None, :])
        acc = tl.dot((va * scale).to(va.dtype), vb.T, acc)
    tl.store(c + rows[:, None] * scm + cols[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def matmul_persistent(
    a, b, c, m, n, k, sam, sbk, scm, CTAS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A fixed number of CTAs, each of which takes every CTAS-th tile."""
    across = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * across
    for tile in tl.range(tl.program_id(0), tiles, CTAS):
        rows = tile // across * BM + tl.arange(0, BM)
        cols = tile % across * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for step in tl.range(0, k, BK, num_stages=STAGES):
            inner = step + tl.arange(0, BK)
            va = tl.load(a + rows[:, None] * sam + inner[None, :], mask=rows[:, None] < m, other=0.0)
            vb = tl.load(b + inner[:, None] * sbk + cols[None, :], mask=cols[None, :] < n, other=0.0)
            acc = tl.dot(va, vb, acc)
        mask = (rows[:, None] < m) & (cols[None, :] < n)
        tl.store(c + rows[:, None] * scm + cols[None, :], acc.to(c.dtype.element_ty), mask=mask)


@triton.jit
def matmul_host_descriptors(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    """Tensor descriptors that the host made: every access is a bulk tensor copy."""
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for step in tl.range(0, k, BK, num_stages=STAGES):
        acc = tl.dot(a.load([row, step]), b.load([step, col]), acc)
    c.store([row, col], acc.to(c.dtype))


@triton.jit
def matmul_device_descriptors(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    STAGES: tl.constexpr, SPECIALISE: tl.constexpr,
):  # fmt: skip
    """Descriptors made inside the kernel, in global scratch; B is stored transposed."""
    da = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[BM, BK])
    db = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[BN, BK])
    dc = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for step in tl.range(0, k, BK, num_stages=STAGES, warp_specialize=SPECIALISE):
        acc = tl.dot(da.load([row, step]), db.load([col, step]).T, acc)
    dc.store([row, col], acc.to(dc.dtype))


@triton.jit
def matmul_persistent_descriptors(
    a, b, c, m, n, k, CTAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
    SPECIALISE: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    """Persistent and through descriptors; the outer loop flattened with the inner one, or warp-specialised."""
    across = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * across
    for tile in tl.range(tl.program_id(0), tiles, CTAS, flatten=FLATTEN, warp_specialize=SPECIALISE):
        row, col = tile // across * BM, tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for step in tl.range(0, k, BK, num_stages=STAGES):
            acc = tl.dot(a.load([row, step]), b.load([col, step]).T, acc)
        c.store([row, col], acc.to(c.dtype))


@triton.jit
def attention(q, k, v, out, seq, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr):
    """Flash attention, forward: two products a step, the second with its A in registers."""
    head = tl.program_id(1) * seq * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    dims = tl.arange(0, D)
    vq = tl.load(q + head + rows[:, None] * D + dims[None, :], mask=rows[:, None] < seq, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, seq, BN, num_stages=STAGES):
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
def attention_descriptors(
    q, k, v, out, seq, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
    SPECIALISE: tl.constexpr,
):  # fmt: skip
    """The same through host descriptors over [heads * seq, D]."""
    head = tl.program_id(1) * seq
    row = head + tl.program_id(0) * BM
    vq = q.load([row, 0])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, seq, BN, num_stages=STAGES, warp_specialize=SPECIALISE):
        s = tl.dot(vq, k.load([head + start, 0]).T) * scale
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new_top[:, None])
        rescale = tl.exp(top - new_top)
        total = total * rescale + tl.sum(p, 1)
        acc = tl.dot(p.to(q.dtype), v.load([head + start, 0]), acc * rescale[:, None])
        top = new_top
    out.store([row, 0], (acc / total[:, None]).to(out.dtype))


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + row * stride + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + at, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=mask)


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
def sum_under_lock(x, out, lock, n, BLOCK: tl.constexpr):
    """A spin lock between CTAs: each adds its part while it holds it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + at, mask=at < n, other=0.0), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + total)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def descriptor_copy(x, out, row, col, BM: tl.constexpr, BN: tl.constexpr):
    """One block from one descriptor to another: edges and padding."""
    out.store([0, 0], x.load([row, col]))


@triton.jit
def descriptor_add(x, y, BM: tl.constexpr, BN: tl.constexpr):
    """Reductions through a descriptor."""
    block = x.load([tl.program_id(0) * BM, 0])
    y.atomic_add([0, 0], block)


@triton.jit
def gather_rows(x, index, out, n, BM: tl.constexpr, BN: tl.constexpr):
    """A descriptor block made of single rows (sm_100 has an instruction for it)."""
    rows = tl.load(index + tl.arange(0, BM))
    d = tl.make_tensor_descriptor(x, shape=[n, BN], strides=[BN, 1], block_shape=[1, BN])
    block = d.gather(rows, 0)
    tl.store(out + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], block)
