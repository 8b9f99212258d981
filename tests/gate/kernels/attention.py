"""Correct attention kernels: flash attention with masks, groups and log-sum-exp; packed, paged; gradients."""

import triton
import triton.language as tl

import gpuemu
from gpuemu import schemas


@triton.jit
def flash_kernel(
    q, k, v, o, lse, offsets, SQ, SK, scale, q_head, q_row, k_head, k_row, H, GROUP, WINDOW,
    D: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    key_head = (head // H) * (H // GROUP) + (head % H) // GROUP
    first = 0
    if offsets is not None:
        first = tl.load(offsets + tl.program_id(2))
        SQ = tl.load(offsets + tl.program_id(2) + 1) - first
        SK = SQ
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    queries = (m < SQ)[:, None] & (d < D)[None, :]
    q_at = head * q_head + (first + m)[:, None] * q_row + d[None, :]
    x = tl.load(q + q_at, mask=queries, other=0.0)
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, SK, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        keys = (n < SK)[:, None] & (d < D)[None, :]
        k_at = key_head * k_head + (first + n)[:, None] * k_row + d[None, :]
        s = tl.dot(x, tl.trans(tl.load(k + k_at, mask=keys, other=0.0))) * (scale * 1.4426950408889634)
        seen = (n < SK)[None, :]
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None] + (SK - SQ))
        if WINDOWED:
            seen = seen & (n[None, :] > m[:, None] + (SK - SQ) - WINDOW)
        s = tl.where(seen, s, -float("inf"))
        new = tl.maximum(highest, tl.max(s, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        alpha = tl.exp2(highest - safe)
        p = tl.exp2(s - safe[:, None])
        total = total * alpha + tl.sum(p, axis=1)
        w = tl.load(v + k_at, mask=keys, other=0.0)
        acc = tl.dot(p.to(w.dtype), w, acc * alpha[:, None])
        highest = new
    result = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(o + q_at, result.to(o.dtype.element_ty), mask=queries)
    if lse is not None:
        value = tl.where(total == 0.0, -float("inf"), (highest + tl.log2(total)) * 0.6931471805599453)
        tl.store(lse + head * SQ + m, value, mask=m < SQ)


def flash(run, q, k, v, o, lse=None, causal=False, window=None):
    (B, H, SQ, D), (_, HK, SK, _) = q.shape, k.shape
    run(
        flash_kernel, (triton.cdiv(SQ, 64), B * H), q, k, v, o, lse, None, SQ, SK, D**-0.5, SQ * D, D, SK * D, D, H,
        H // HK, window or 0, D=D, CAUSAL=causal, WINDOWED=window is not None, BLOCK_M=64, BLOCK_N=64,
        BLOCK_D=max(triton.next_power_of_2(D), 16),
    )  # fmt: skip


@gpuemu.op(schemas.attention(lse=True))
def attention_full(run, q, k, v, o, lse):
    flash(run, q, k, v, o, lse)


@gpuemu.op(schemas.attention(causal=True, grouped=True, lse=True))
def attention_grouped(run, q, k, v, o, lse):
    flash(run, q, k, v, o, lse, causal=True)


@gpuemu.op(schemas.attention(causal=True, window=40))
def attention_window(run, q, k, v, o):
    flash(run, q, k, v, o, causal=True, window=40)


@gpuemu.op(schemas.varlen_attention(causal=True))
def attention_varlen(run, q, k, v, offsets, o):
    T, H, D = q.shape
    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_D": max(triton.next_power_of_2(D), 16)}
    run(
        flash_kernel, (triton.cdiv(T, 64), H, len(offsets) - 1), q, k, v, o, None, offsets, 0, 0, D**-0.5, D, H * D, D,
        H * D, H, 1, 0, D=D, CAUSAL=True, WINDOWED=False, **blocks,
    )  # fmt: skip


@triton.jit
def paged_kernel(q, k_pages, v_pages, table, lengths, o, scale, L, HK, GROUP, D: tl.constexpr, PAGE: tl.constexpr):
    b = tl.program_id(0)
    head = tl.program_id(1)
    H = tl.num_programs(1)
    d = tl.arange(0, D)
    x = tl.load(q + (b * H + head) * D + d).to(tl.float32)
    length = tl.load(lengths + b)
    highest = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for piece in range(tl.cdiv(length, PAGE)):
        page = tl.load(table + b * L + piece)
        n = tl.arange(0, PAGE)
        alive = piece * PAGE + n < length
        at = ((page * PAGE + n)[:, None] * HK + head // GROUP) * D + d[None, :]
        keys = tl.load(k_pages + at, mask=alive[:, None], other=0.0).to(tl.float32)
        s = tl.where(alive, tl.sum(keys * x[None, :], axis=1) * scale, -float("inf"))
        new = tl.maximum(highest, tl.max(s, axis=0))
        alpha = tl.exp(highest - new)
        p = tl.exp(s - new)
        total = total * alpha + tl.sum(p, axis=0)
        values = tl.load(v_pages + at, mask=alive[:, None], other=0.0).to(tl.float32)
        acc = acc * alpha + tl.sum(p[:, None] * values, axis=0)
        highest = new
    tl.store(o + (b * H + head) * D + d, (acc / total).to(o.dtype.element_ty))


@gpuemu.op(schemas.paged_attention())
def attention_paged(run, q, k_pages, v_pages, table, lengths, o):
    (B, H, D), HK = q.shape, k_pages.shape[2]
    arrays = (q, k_pages, v_pages, table, lengths, o)
    run(paged_kernel, (B, H), *arrays, D**-0.5, table.shape[1], HK, H // HK, D=D, PAGE=16)


@triton.jit
def backward_kernel(
    q, k, v, o, lse, do, dq, dk, dv, SQ, SK, scale, D: tl.constexpr, CAUSAL: tl.constexpr, FOR_KEYS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    d = tl.arange(0, D)
    mine = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.zeros((BLOCK, D), tl.float32)
    second = tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, SQ if FOR_KEYS else SK, BLOCK):
        theirs = start + tl.arange(0, BLOCK)
        m = theirs if FOR_KEYS else mine
        n = mine if FOR_KEYS else theirs
        q_at = (head * SQ + m)[:, None] * D + d[None, :]
        k_at = (head * SK + n)[:, None] * D + d[None, :]
        queries = (m < SQ)[:, None]
        keys = (n < SK)[:, None]
        x = tl.load(q + q_at, mask=queries, other=0.0)
        y = tl.load(k + k_at, mask=keys, other=0.0)
        w = tl.load(v + k_at, mask=keys, other=0.0)
        g = tl.load(do + q_at, mask=queries, other=0.0)
        out = tl.load(o + q_at, mask=queries, other=0.0)
        total = tl.load(lse + head * SQ + m, mask=m < SQ, other=-float("inf"))
        delta = tl.sum(g.to(tl.float32) * out.to(tl.float32), axis=1)
        s = tl.dot(x, tl.trans(y)) * scale
        seen = (n < SK)[None, :] & queries & (total > -float("inf"))[:, None]
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None] + (SK - SQ))
        p = tl.where(seen, tl.exp(tl.where(seen, s - total[:, None], 0.0)), 0.0)
        ds = p * (tl.dot(g, tl.trans(w)) - delta[:, None])
        if FOR_KEYS:
            first += tl.dot(tl.trans(ds.to(x.dtype)), x)
            second += tl.dot(tl.trans(p.to(g.dtype)), g)
        else:
            first += tl.dot(ds.to(y.dtype), y)
    if FOR_KEYS:
        at = (head * SK + mine)[:, None] * D + d[None, :]
        tl.store(dk + at, (first * scale).to(dk.dtype.element_ty), mask=(mine < SK)[:, None])
        tl.store(dv + at, second.to(dv.dtype.element_ty), mask=(mine < SK)[:, None])
    else:
        at = (head * SQ + mine)[:, None] * D + d[None, :]
        tl.store(dq + at, (first * scale).to(dq.dtype.element_ty), mask=(mine < SQ)[:, None])


@gpuemu.op(schemas.attention_backward(causal=True))
def attention_gradient(run, q, k, v, o, lse, do, dq, dk, dv):
    (B, H, SQ, D), SK = q.shape, k.shape[2]
    arrays = (q, k, v, o, lse, do, dq, dk, dv)
    for keys, size in ((False, SQ), (True, SK)):
        grid = (triton.cdiv(size, 32), B * H)
        run(backward_kernel, grid, *arrays, SQ, SK, D**-0.5, D=D, CAUSAL=True, FOR_KEYS=keys, BLOCK=32)
