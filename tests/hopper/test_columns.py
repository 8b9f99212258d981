"""Gluon kernels that read columns of pixels, from end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import gpuemu
from tests.hopper.columns import CASES, shared


@pytest.mark.parametrize("name", CASES)
def test_gluon_kernel(name: str) -> None:
    outcome = CASES[name]()
    if "nan" not in name:
        outcome.check()
        return
    assert outcome.result.findings == ()
    np.testing.assert_array_equal(outcome.got.astype(np.float64), outcome.exact)


def test_a_measured_column_counts_its_pixels() -> None:
    totals = CASES["columns"](metrics=True).result.metrics.totals
    assert totals["ptx__bulk_bytes_global_read"] == totals["ptx__bulk_bytes_shared"] == 64 * 32 * 2


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({"block_shape": [64, 32, 1]}, r"a block \[pixels, channels\]"),
        ({"block_shape": [48, 32]}, "powers of two"),
        ({"pixel_box_lower_corner": [0]}, "a lower corner of 2 dimensions"),
        ({"pixel_box_upper_corner": ()}, "an upper corner of 2 dimensions"),
        ({"element_strides": [1, 1, 1, 2]}, "an element stride of 1 in the last"),
        ({"element_strides": [1, 1]}, "an element stride for each dimension"),
        ({"padding": "one"}, "padding"),
        ({"round_f32_to_tf32": True}, "float32 elements"),
        ({"shape": (5, 32), "strides": (32, 1)}, "three to five dimensions"),
    ],
)  # fmt: skip
def test_descriptors_that_gluon_would_refuse(changes: dict[str, Any], needs: str) -> None:
    fields: dict[str, Any] = {
        "base": np.zeros((3, 5, 6, 32), np.float16), "shape": (3, 5, 6, 32), "strides": (960, 192, 32, 1),
        "block_shape": [64, 32], "layout": shared(np.float16, 32), "pixel_box_lower_corner": [0, 0],
        "pixel_box_upper_corner": [0, 0],
    }  # fmt: skip
    gpuemu.TensorDescriptorIm2Col(**fields)
    with pytest.raises(gpuemu.InvalidInput, match=needs):
        gpuemu.TensorDescriptorIm2Col(**{**fields, **changes})


def test_a_gluon_kernel_for_blackwell() -> None:
    CASES["columns"](target="sm_100").check()
