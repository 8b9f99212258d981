"""Triton kernels for sm_100 from end to end against exact arithmetic: those of `tests.hopper`, and scaled products."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gpuemu
from tests.hopper.launches import CASES, numbers

pytest.importorskip("triton")
from tests.blackwell import blackwell_kernels as kernels


@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str) -> None:
    CASES[name]("sm_100").check()


@pytest.mark.parametrize("target", ["sm_103", "sm_120"])
@pytest.mark.parametrize("name", ["matmul_f16_3_stages", "matmul_e4m3", "host_descriptors", "attention"])
def test_other_blackwells(name: str, target: str) -> None:
    CASES[name](target).check()


@pytest.mark.parametrize("name", ["matmul_f16_3_stages", "host_descriptors"])
def test_clusters(name: str) -> None:
    CASES[name]("sm_100", num_ctas=2).check()


@pytest.mark.parametrize("mode", ["eager", "seeded:1"])
@pytest.mark.parametrize(
    "name", ["matmul_f16_4_stages", "persistent_descriptors", "device_descriptors_specialised", "attention"]
)
def test_the_same_bytes_under_any_asynchrony(name: str, mode: str) -> None:
    late, other = CASES[name]("sm_100"), CASES[name]("sm_100", asynchrony=mode)
    assert other.result.findings == ()
    np.testing.assert_array_equal(late.got, other.got)


@pytest.mark.parametrize("name", ["matmul_f16_2_stages", "matmul_e5m2"])
def test_both_engines(name: str) -> None:
    np.testing.assert_array_equal(CASES[name]("sm_100").got, CASES[name]("sm_100", engine="traced").got)


FORMATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn}


def operand(kind: str, seed: int, rows: int, k: int) -> tuple[Any, Any]:
    """(array for the kernel, values)."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, k)).astype(np.float32).astype(FORMATS[kind])
    if kind != "e2m1":
        return values, values.astype(np.float64)
    nibbles = values.view(np.uint8) & 15
    return (nibbles[:, ::2] | nibbles[:, 1::2] << 4).astype(np.uint8), values.astype(np.float64)


@pytest.mark.parametrize(
    ("a", "b", "block", "stages"),
    [("e4m3", "e4m3", 32, 2), ("e5m2", "e2m1", 32, 1), ("e2m1", "e2m1", 32, 2), ("e2m1", "e2m1", 16, 3)],
)
def test_block_scaled_products(a: str, b: str, block: int, stages: int) -> None:
    m, n, k = 128, 64, 256
    (wa, va), (wb, vb) = operand(a, 1, m, k), operand(b, 2, n, k)
    rng = np.random.default_rng(3)
    if block == 32:
        sa, sb = (rng.integers(122, 133, (rows, k // block)).astype(np.uint8) for rows in (m, n))
        fa, fb = (2.0 ** (s.astype(np.float64) - 127) for s in (sa, sb))
    else:
        sa, sb = (
            (rng.random((rows, k // block)) + 0.5).astype(np.float32).astype(ml_dtypes.float8_e4m3fn) for rows in (m, n)
        )
        fa, fb = sa.astype(np.float64), sb.astype(np.float64)
    c = np.zeros((m, n), np.float32)
    result = gpuemu.run(
        kernels.matmul_block_scaled, (1,), wa, sa, wb, sb, c, k, wa.shape[1], wb.shape[1], n, BM=m, BN=n, BK=128, A=a,
        B=b, PER_BYTE_A=k // wa.shape[1], PER_BYTE_B=k // wb.shape[1], BLOCK=block, STAGES=stages, target="sm_100",
        enable_fp_fusion=False,
    )  # fmt: skip
    assert result.findings == () and "block_scale" in result.ptx
    xa, xb = va * np.repeat(fa, block, 1), vb * np.repeat(fb, block, 1)
    bound = 2.0**-23 * k * (np.abs(xa) @ np.abs(xb).T)
    assert (np.abs(c - xa @ xb.T) <= bound).all()


def test_rows_gathered_and_scattered_through_a_descriptor() -> None:
    x = numbers(3, (40, 64), np.float16)
    index = np.random.default_rng(4).permutation(40)[:32].astype(np.int32)
    out, back = np.zeros((32, 64), np.float16), np.zeros((40, 64), np.float16)
    for kernel, given, taken in ((kernels.gather_rows, x, out), (kernels.scatter_rows, out, back)):
        result = gpuemu.run(kernel, (1,), given, index, taken, 40, BM=32, BN=64, target="sm_100")
        assert result.findings == () and "4." in result.ptx
    np.testing.assert_array_equal(out, x[index])
    expected = np.zeros_like(x)
    expected[index] = x[index]
    np.testing.assert_array_equal(back, expected)
