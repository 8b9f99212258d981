"""Launches of the Gluon kernels in `gluon_kernels`, with what they should give: name -> a function of options of
`gpuemu.run`. As in `launches`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from triton.experimental.gluon import language as gl

import gpuemu
from gpuemu import TensorDescriptor, TensorDescriptorIm2Col
from tests.hopper.gluon_kernels import convolution, copy_columns
from tests.hopper.launches import Outcome, blocks, numbers


def shared(dtype: Any, row: int) -> Any:
    """The layout of a block with rows of so many elements."""
    size = np.dtype(dtype).itemsize
    return gl.NVMMASharedLayout(swizzle_byte_width=min(row * size, 128), element_bitwidth=8 * size, rank=2)


def copied(place: tuple[int, int] = (1, 0), fill: str = "zero", tf32: bool = False, **options: Any) -> Outcome:
    """A column of 64 pixels from the second image's corner, in a box one pixel larger than the images."""
    dtype = np.float32 if tf32 else np.float16
    images = numbers(3, (3, 5, 6, 32), dtype)
    columns = TensorDescriptorIm2Col.from_array(
        images, [64, 32], shared(dtype, 32), pixel_box_lower_corner=[-1, -1], pixel_box_upper_corner=[-1, -1],
        padding=fill, round_f32_to_tf32=tf32,
    )  # fmt: skip
    out = np.zeros((64, 32), dtype)
    result = gpuemu.run(
        copy_columns, 1, columns, out, 1, -1, -1, 0, *place, PIXELS=64, CHANNELS=32,
        layout=gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]), **options,
    )  # fmt: skip
    wide = np.full((5, 7, 8, 32), np.nan if fill == "nan" else 0.0)
    wide[:3, 1:6, 1:7] = _tf32(images) if tf32 else images
    dh, dw = place  # the box is 5 x 6 pixels, as the images are
    walk = np.concatenate([wide[n, dh : dh + 5, dw : dw + 6].reshape(30, 32) for n in (1, 2, 3)])[:64]
    return Outcome(result, out, walk, np.zeros(()))


def _tf32(values: Any) -> Any:
    """Rounded to the ten stored bits of tf32, to nearest."""
    return ((values.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)


def convolved(pad: int, step: int, **options: Any) -> Outcome:
    """A 3 x 3 convolution of two images of 9 x 8 pixels, 64 channels, 40 filters, as a matrix product."""
    images, filters = numbers(1, (2, 9, 8, 64), np.float16), numbers(2, (40, 3, 3, 64), np.float16)
    n, h, w, c = images.shape
    k, r, s, _ = filters.shape
    oh, ow = (h + 2 * pad - r) // step + 1, (w + 2 * pad - s) // step + 1
    columns = TensorDescriptorIm2Col.from_array(
        images, [64, 32], shared(np.float16, 32), element_strides=[1, step, step, 1],
        pixel_box_lower_corner=[-pad, -pad], pixel_box_upper_corner=[pad - r + 1, pad - s + 1],
    )  # fmt: skip
    weights = TensorDescriptor.from_array(filters.reshape(k, -1), [32, 32], layout=shared(np.float16, 32))
    out = np.zeros((n * oh * ow, k), np.float32)
    result = gpuemu.run(
        convolution, (blocks(len(out), 64), blocks(k, 32)), columns, weights, out, len(out), h, w, c, k, oh, ow, -pad,
        STEP=step, R=r, S=s, BM=64, BN=32, BK=32, **options,
    )  # fmt: skip
    padded = np.pad(images.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    exact, size = np.zeros((n, oh, ow, k)), np.zeros((n, oh, ow, k))
    for i in range(r):
        for j in range(s):
            part = padded[:, i : i + step * oh : step, j : j + step * ow : step]
            exact += part @ filters[:, i, j].astype(np.float64).T
            size += np.abs(part) @ np.abs(filters[:, i, j]).astype(np.float64).T
    bound = 2.0**-23 * r * s * c * size
    return Outcome(result, out, exact.reshape(out.shape), bound.reshape(out.shape))


CASES: dict[str, Callable[..., Outcome]] = {
    "columns": copied,
    "columns_tf32": partial(copied, (2, 2), tf32=True),
    "columns_nan": partial(copied, (0, 1), "nan"),
    "convolution": partial(convolved, 1, 1),
    "convolution_stride_2": partial(convolved, 1, 2),
    "convolution_no_padding": partial(convolved, 0, 1),
}
