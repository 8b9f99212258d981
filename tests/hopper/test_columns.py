"""Gluon kernels that read columns of pixels, from end to end."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("triton")

from tests.hopper.columns import CASES


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
