"""Triton's atomics through `gpuemu.run`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton")

import gpuemu
from tests.kernels import triton_kernels as K
from tests.kernels.bounds import integers, numbers

SM80 = {"target": "sm_80"}


@pytest.mark.parametrize(
    "dtype", [np.int32, np.uint32, np.int64, np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
)
def test_sum(dtype: Any) -> None:
    """Whole numbers small enough to be exact in every type, whatever the order.

    An even number of sums: for bfloat16 on sm_80 Triton emits a loop that swaps whole 32-bit words."""
    x = integers(1, 300, 0, 4, dtype)
    out = np.zeros(8, dtype)
    assert gpuemu.run(K.atomic_sum, 3, x, out, 299, BLOCK=128, **SM80).findings == ()
    expected = [x[:299].astype(np.int64)[i::7].sum() for i in range(7)]
    assert list(out.astype(np.int64)) == [*expected, 0]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.float32])
def test_max_and_min(dtype: Any) -> None:
    x = numbers(2, 300, dtype, 50) if dtype is np.float32 else integers(2, 300, 0, 5000, np.int64).astype(dtype)
    if np.issubdtype(dtype, np.signedinteger):
        x -= 2500
    out = np.array([x[0], x[0]])
    assert gpuemu.run(K.atomic_extremes, 3, x, out, 300, BLOCK=128, **SM80).findings == ()
    assert out[0] == x.max() and out[1] == x.min()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_bits(dtype: Any) -> None:
    x = integers(3, 200, 0, 1 << 30, dtype) | dtype(1)
    out = np.array([-1, 0, 0], dtype)
    assert gpuemu.run(K.atomic_bits, 2, x, out, 200, BLOCK=128, **SM80).findings == ()
    assert list(out) == [np.bitwise_and.reduce(x), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]


def test_tickets() -> None:
    counter, out, last = np.array([50], np.int32), np.zeros(512, np.int32), np.full(512, -1, np.int32)
    assert gpuemu.run(K.tickets, 4, counter, out, last, BLOCK=128, **SM80).findings == ()
    assert counter[0] == 562 and sorted(out) == list(range(50, 562))
    assert (last == np.arange(512) + 1000).all()
