"""Triton kernels with what only Blackwell has: block-scaled products, and rows gathered through a descriptor."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul_block_scaled(
    a, sa, b, sb, c, k, sak, sbk, scm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    PER_BYTE_A: tl.constexpr, PER_BYTE_B: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """One tile; a and b [rows, k] with scales [rows, k / BLOCK]."""
    rows = tl.arange(0, BM)
    cols = tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for step in tl.range(0, k // BK, num_stages=STAGES):
        ka = step * (BK // PER_BYTE_A) + tl.arange(0, BK // PER_BYTE_A)
        kb = step * (BK // PER_BYTE_B) + tl.arange(0, BK // PER_BYTE_B)
        ks = step * (BK // BLOCK) + tl.arange(0, BK // BLOCK)
        va = tl.load(a + rows[:, None] * sak + ka[None, :])
        vb = tl.load(b + cols[:, None] * sbk + kb[None, :])
        vsa = tl.load(sa + rows[:, None] * (k // BLOCK) + ks[None, :])
        vsb = tl.load(sb + cols[:, None] * (k // BLOCK) + ks[None, :])
        acc = tl.dot_scaled(va, vsa, A, vb.T, vsb, B, acc)
    tl.store(c + rows[:, None] * scm + cols[None, :], acc)


@triton.jit
def gather_rows(x, index, out, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.load(index + tl.arange(0, BM))
    d = tl.make_tensor_descriptor(x, shape=[n, BN], strides=[BN, 1], block_shape=[1, BN])
    block = d.gather(rows, 0)
    tl.store(out + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], block)


@triton.jit
def scatter_rows(x, index, out, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.load(index + tl.arange(0, BM))
    block = tl.load(x + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :])
    d = tl.make_tensor_descriptor(out, shape=[n, BN], strides=[BN, 1], block_shape=[1, BN])
    d.scatter(block, rows, 0)
