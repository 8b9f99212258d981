"""Triton kernels for sm_90, and the same source for sm_80 and sm_89, from end to end against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import gpuemu
from tests.hopper import hopper_kernels as kernels
from tests.hopper.launches import CASES, DTYPES, REFUSED, describe, numbers

pytest.importorskip("triton")


@pytest.mark.parametrize("target", ["sm_90", "sm_89", "sm_80"])
@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, target: str) -> None:
    if (name, target) in REFUSED:
        with pytest.raises(gpuemu.InvalidInput, match=REFUSED[name, target]):
            CASES[name](target)
        return
    CASES[name](target).check()


@pytest.mark.parametrize("mode", ["eager", "seeded:1", "seeded:2"])
@pytest.mark.parametrize(
    "name",
    [
        "matmul_f16_4_stages",
        "persistent_descriptors",
        "attention",
        "device_descriptors_specialised",
        "attention_descriptors_specialised",
    ],
)
def test_correct_kernels_give_the_same_bytes_under_any_asynchrony(name: str, mode: str) -> None:
    late = CASES[name]("sm_90")
    other = CASES[name]("sm_90", asynchrony=mode)
    assert other.result.findings == ()
    np.testing.assert_array_equal(late.got, other.got)


@pytest.mark.parametrize("dtype", ["f16", "f32", "e4m3", "bf16"])
@pytest.mark.parametrize(("row", "col"), [(0, 0), (-3, 16), (20, 48), (5, -16)])
def test_descriptor_copies_pad_with_zeros(dtype: str, row: int, col: int) -> None:
    x = numbers(3, (40, 80), DTYPES[dtype])
    out = np.zeros((32, 64), DTYPES[dtype])
    result = gpuemu.run(
        kernels.descriptor_copy, (1,), describe(x, [32, 64]), describe(out, [32, 64]), row, col, BM=32, BN=64
    )
    assert result.findings == ()
    wide = np.zeros((120, 200), np.float64)
    wide[40:80, 60:140] = x.astype(np.float64)
    np.testing.assert_array_equal(out.astype(np.float64), wide[40 + row : 72 + row, 60 + col : 124 + col])


def test_descriptor_stores_stay_inside() -> None:
    x = numbers(3, (32, 64), np.float16)
    whole = np.full((40, 80), 7, np.float16)
    inner = whole[:20, :40]
    out = gpuemu.TensorDescriptor(inner, (20, 40), (80, 1), [32, 64])
    result = gpuemu.run(kernels.descriptor_copy, (1,), describe(x, [32, 64]), out, 0, 0, BM=32, BN=64)
    assert result.findings == ()
    np.testing.assert_array_equal(inner, x[:20, :40])
    assert (whole[20:] == 7).all() and (whole[:, 40:] == 7).all()


def test_a_descriptor_that_says_more_than_the_array_has() -> None:
    x = numbers(3, (16, 64), np.float16)
    out = np.zeros((32, 64), np.float16)
    said = gpuemu.TensorDescriptor(x, (32, 64), (64, 1), [32, 64])
    (finding,) = gpuemu.run(kernels.descriptor_copy, (1,), said, describe(out, [32, 64]), 0, 0, BM=32, BN=64).findings
    assert finding.kind == "out-of-bounds" and finding.index == (16, 0)
    assert finding.file is not None and finding.file.endswith("hopper_kernels.py")


def test_reductions_through_a_descriptor() -> None:
    x = np.arange(96 * 64, dtype=np.float32).reshape(96, 64)
    y = np.ones((32, 64), np.float32)
    result = gpuemu.run(kernels.descriptor_add, (3,), describe(x, [32, 64]), describe(y, [32, 64]), BM=32, BN=64)
    assert result.findings == ()
    np.testing.assert_array_equal(y, 1 + x.reshape(3, 32, 64).sum(0))
