"""Operations across a tile through `gpuemu.run`: reductions, scans, sorts, shape changes, products, random bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import gpuemu
from tests.kernels import triton_kernels as K
from tests.kernels.bounds import check, integers, numbers, stored
from tests.kernels.bounds import product as exact_product
from tests.kernels.philox import philox

SM80 = {"target": "sm_80"}


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions(axis: int, num_warps: int) -> None:
    x = integers(1, (32, 64), -20, 20)
    size = x.shape[1 - axis]
    out = np.zeros((6, size), np.int32)
    result = gpuemu.run(K.reductions, 1, x, out, ROWS=32, COLUMNS=64, AXIS=axis, SIZE=size, num_warps=num_warps, **SM80)
    assert result.findings == ()
    expected = [x.sum(axis), x.max(axis), x.min(axis), x.argmax(axis), x.argmin(axis), np.bitwise_xor.reduce(x, axis)]
    for got, e, name in zip(out, expected, ["sum", "max", "min", "argmax", "argmin", "xor"], strict=True):
        assert (got == e).all(), name


@pytest.mark.parametrize(("axis", "reverse", "num_warps"), [(0, False, 4), (1, False, 2), (1, True, 4), (0, True, 1)])
def test_scans(axis: int, reverse: bool, num_warps: int) -> None:
    x = integers(2, (32, 16), -2, 3)
    out = np.zeros((2, 32, 16), np.int32)
    result = gpuemu.run(
        K.scans, 1, x, out, ROWS=32, COLUMNS=16, AXIS=axis, REVERSE=reverse, num_warps=num_warps, **SM80
    )
    assert result.findings == ()
    v = np.flip(x, axis) if reverse else x
    last = np.moveaxis(v, axis, 0).copy()
    for i in range(1, len(last)):
        last[i] = np.where(last[i] == 0, last[i - 1], last[i])
    expected = [np.cumsum(v, axis), np.moveaxis(last, 0, axis)]
    for got, e in zip(out, expected, strict=True):
        assert (got == (np.flip(e, axis) if reverse else e)).all()


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending: bool) -> None:
    x, out = numbers(3, (4, 128)), np.zeros((4, 128), np.float32)
    assert gpuemu.run(K.sort_rows, 1, x, out, ROWS=4, COLUMNS=128, DESCENDING=descending, **SM80).findings == ()
    expected = np.sort(x, 1)
    assert (out == (expected[:, ::-1] if descending else expected)).all()


def test_flip() -> None:
    x, out = numbers(4, (4, 64), np.float16), np.zeros((4, 64), np.float16)
    assert gpuemu.run(K.flip_rows, 1, x, out, ROWS=4, COLUMNS=64, **SM80).findings == ()
    assert (out == x[:, ::-1]).all()


@pytest.mark.parametrize("n", [1, 255, 500])
def test_histogram(n: int) -> None:
    x = integers(5, 512, 0, 32)
    out = np.full(32, -1, np.int32)
    assert gpuemu.run(K.counts, 1, x, out, n, BINS=32, BLOCK=512, **SM80).findings == ()
    assert (out == np.bincount(x[:n], minlength=32)).all()


def test_shape_changes() -> None:
    n = 256
    x, out = integers(6, n, 0, 1000), np.zeros((4, n), np.int32)
    assert gpuemu.run(K.shapes, 1, x, out, N=n, **SM80).findings == ()
    pairs = x.reshape(-1, 2)
    assert (out[0] == x.reshape(4, n // 16, 4).transpose(2, 0, 1).reshape(-1)).all()
    assert (out[1] == pairs[:, ::-1].reshape(-1)).all() and (out[2] == x).all()
    assert (out[3] == np.repeat(x.reshape(4, -1).sum(1), n // 4)).all()


def test_random_words_are_philox() -> None:
    for seed in (0, 42, 0x7FFF_FFFF):
        out = np.zeros(300, np.int32)
        assert gpuemu.run(K.random_words, 3, out, seed, 300, BLOCK=128, **SM80).findings == ()
        assert (out.view(np.uint32) == philox(seed, np.arange(300, dtype=np.uint32))).all()


def test_inline_assembly() -> None:
    x, y, out = integers(7, 512, 0, 256, np.uint8), integers(8, 512, 0, 256, np.uint8), np.zeros(512, np.uint8)
    assert gpuemu.run(K.inline_assembly, 1, x, y, out, BLOCK=512, **SM80).findings == ()
    assert (out == (x.astype(int) + y) // 2).all()


PRODUCTS: list[Any] = [
    (np.float16, np.float32), (np.float16, np.float16), (np.int8, np.int32), (np.float64, np.float64),
    (np.float32, np.float32),
]  # fmt: skip


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("dtype", "result"), PRODUCTS)
def test_products_of_whole_numbers_are_exact(dtype: Any, result: Any, transposed: bool) -> None:
    m, n, k = 32, 16, 64
    a, b = integers(9, (m, k), -4, 5), integers(10, (k, n), -4, 5)
    out = np.zeros((m, n), result)
    pb = np.ascontiguousarray(b.T if transposed else b).astype(dtype)
    options = {"M": m, "N": n, "K": k, "TRANSPOSED": transposed, "num_warps": 4, **SM80}
    assert gpuemu.run(K.product, 1, a.astype(dtype), pb, out, **options).findings == ()
    assert (out == a @ b).all()


def test_product_within_its_bound() -> None:
    a, b = numbers(11, (32, 64), np.float16), numbers(12, (64, 16), np.float16)
    out = np.zeros((32, 16), np.float32)
    assert gpuemu.run(K.product, 1, a, b, out, M=32, N=16, K=64, TRANSPOSED=False, **SM80).findings == ()
    exact, bound = exact_product(a, b, 0.0)
    check(out, exact, bound + stored(exact, np.float32))


def test_batched_product() -> None:
    a, b = integers(13, (4, 16, 16), -4, 5), integers(14, (4, 16, 16), -4, 5)
    out = np.zeros((4, 16, 16), np.float32)
    assert (
        gpuemu.run(K.batched_product, 1, a.astype(np.float16), b.astype(np.float16), out, B=4, S=16, **SM80).findings
        == ()
    )
    assert (out == a @ b).all()
