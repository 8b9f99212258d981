"""Measured launches of Triton kernels against what their shapes say: bytes of tensors, products of tensor cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import gpuemu
from interp.metrics import Metrics
from ptx.accounting.metrics import data_bytes, sectors
from tests.hopper import hopper_kernels
from tests.hopper.launches import describe
from tests.ptx import kernels


def measured(result: Any) -> Metrics:
    assert result.findings == () and result.metrics is not None
    return result.metrics


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_a_softmax_reads_and_writes_its_rows_once(target: str) -> None:
    x = np.zeros((8, 1000), np.float32)
    found = measured(
        gpuemu.run(kernels.softmax, (8,), x, x.copy(), 1000, 1000, BLOCK=1024, target=target, metrics=True)
    )
    assert found.totals[data_bytes("global", "ld")] == found.totals[data_bytes("global", "st")] == 8 * 4000
    assert found.totals[sectors("global", "ld")] == 8 * 4000 // 32
    line = found.lines[next(key for key, v in found.lines.items() if v.get(data_bytes("global", "ld")))]
    assert line["ptx__bytes_global"] == 8 * 4000


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_a_matmul_makes_its_products_once(target: str) -> None:
    """128 x 64 x 96 in tiles of 64 x 64 x 32: `mma` or `wgmma` of f16; A and B come by cp.async, each tile once a
    program."""
    m, n, k = 128, 64, 96
    a, b, c = np.zeros((m, k), np.float16), np.zeros((k, n), np.float16), np.zeros((m, n), np.float16)
    engines = ("compiled", "traced") if target == "sm_80" else ("compiled",)
    found = [
        measured(
            gpuemu.run(
                kernels.matmul, (2, 1), a, b, c, m, n, k, k, 1, n, 1, n, 1, BM=64, BN=64, BK=32, PRECISION=None,
                target=target, metrics=True, engine=engine,
            )
        )
        for engine in engines
    ]  # fmt: skip
    totals = found[0].totals
    assert totals["ptx__tensor_ops_fp16"] == 2 * m * n * k
    assert totals[data_bytes("global", "ldgsts")] == 2 * (64 * k + k * 64) * 2
    assert totals[data_bytes("global", "st")] == m * n * 2
    assert all(one.to_json() == found[0].to_json() for one in found)


def test_a_matmul_by_descriptors_moves_whole_boxes() -> None:
    """128 x 128 x 128 in 2 x 2 programs of two steps: each reads two boxes of 64 x 64 f16 a step, and writes one."""
    n, box = 128, 64 * 64 * 2
    a, b, c = (np.zeros((n, n), np.float16) for _ in "abc")
    result = gpuemu.run(
        hopper_kernels.matmul_host_descriptors, (2, 2), describe(a, [64, 64]), describe(b, [64, 64]),
        describe(c, [64, 64]), n, BM=64, BN=64, BK=64, STAGES=3, target="sm_90", metrics=True,
    )  # fmt: skip
    totals = measured(result).totals
    assert totals["ptx__tensor_ops_fp16"] == 2 * n**3
    assert totals["ptx__bulk_bytes_global_read"] == 4 * 2 * 2 * box
    assert totals["ptx__bulk_bytes_global_written"] == 4 * box
    assert totals["ptx__bulk_bytes_shared"] == 4 * 5 * box
    assert totals["ptx__bytes_global"] == 4 * 5 * box
