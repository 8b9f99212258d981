"""Gluon kernels that read columns of pixels through a host descriptor in im2col mode: a copy, and a convolution as a
matrix product."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit(do_not_specialize=["n", "h", "w", "c", "dh", "dw"])
def copy_columns(
    images, out, n, h, w, c, dh, dw, PIXELS: gl.constexpr, CHANNELS: gl.constexpr, layout: gl.constexpr
):  # fmt: skip
    """One column from image n, pixel (h, w), channel c, at the filter's place (dh, dw), to out [PIXELS, CHANNELS]."""
    block = gl.allocate_shared_memory(images.dtype, [PIXELS, CHANNELS], images.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, images.nbytes_per_cta)
    tma.async_load_im2col(images, [n, h, w, c], [dh.to(gl.int16), dw.to(gl.int16)], bar, block)
    mbarrier.wait(bar, phase=0)
    mbarrier.invalidate(bar)
    rows = gl.arange(0, PIXELS, gl.SliceLayout(1, layout))
    columns = gl.arange(0, CHANNELS, gl.SliceLayout(0, layout))
    gl.store(out + rows[:, None] * CHANNELS + columns[None, :], block.load(layout))


@gluon.jit
def convolution(
    images, filters, out, pixels, height, width, channels, outputs, out_h, out_w, lower, STEP: gl.constexpr,
    R: gl.constexpr, S: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
    num_warps: gl.constexpr,
):  # fmt: skip
    """out [pixels, outputs] = columns of `images` (N, H, W, C) times `filters` (outputs, R * S * C); the box's lower
    corner is `lower` in both dimensions, its traversal stride STEP."""
    first = gl.program_id(0) * BM
    n, rest = first // (out_h * out_w), first % (out_h * out_w)
    h, w = rest // out_w * STEP + lower, rest % out_w * STEP + lower
    column = gl.program_id(1) * BN
    a = gl.allocate_shared_memory(images.dtype, [BM, BK], images.layout)
    b = gl.allocate_shared_memory(filters.dtype, [BN, BK], filters.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, layout)
    phase = 0
    for place in range(R * S):
        dh, dw = (place // S).to(gl.int16), (place % S).to(gl.int16)
        for k in range(0, channels, BK):
            mbarrier.expect(bar, images.nbytes_per_cta + filters.nbytes_per_cta)
            tma.async_load_im2col(images, [n, h, w, k], [dh, dw], bar, a)
            tma.async_load(filters, [column, place * channels + k], bar, b)
            mbarrier.wait(bar, phase=phase)
            phase ^= 1
            acc = warpgroup_mma(a, b.permute((1, 0)), acc, is_async=True)
            acc = warpgroup_mma_wait(0, deps=(acc,))
    mbarrier.invalidate(bar)
    rows = first + gl.arange(0, BM, gl.SliceLayout(1, layout))
    columns = column + gl.arange(0, BN, gl.SliceLayout(0, layout))
    mask = (rows[:, None] < pixels) & (columns[None, :] < outputs)
    gl.store(out + rows[:, None] * outputs + columns[None, :], acc, mask=mask)
