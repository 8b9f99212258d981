"""Tensor copies of sm_100: four rows with multicast, columns along W, swizzles that keep 32 or 64 bytes together."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import gpuemu
from gpuemu import Im2col, TensorMap
from interp.runtime.tensor_layout import ATOMICITY
from tests.hardware.tensor_ptx import load, module, store
from tests.hopper.tensor_oracle import swizzled

W, N = 6, 5
IMAGES = np.arange(N * 3 * W * 32, dtype=np.uint16).reshape(N, 3, W, 32)


@cache
def kernel(text: str) -> Any:
    return gpuemu.Module.from_ptx(module(text, target="sm_100a", version="8.8"))["k"]


def run(text: str, map_: Any, coords: list[int], offsets: list[int], bytes_: int, dump: int, ctas: int = 1) -> Any:
    """(result, bytes of shared memory of each CTA); coordinates innermost first."""
    words = np.array([*(coords + [0] * 5)[:5], *(offsets + [0] * 3)[:3], bytes_, dump, 0], np.int64).astype(np.uint32)
    io = np.zeros((ctas, 16 + dump), np.uint8)
    result = kernel(text).launch(grid=(ctas,), block=(128,), args=[map_, words, io], shared=1024 + dump)
    if not result.findings:
        assert io[:, 8].all(), "the barrier did not get its bytes"
    return result, io[:, 16:]


def wide(along: str, **changes: Any) -> TensorMap:
    """Images of 3 x 6 pixels with 32 channels of 16 bits, columns of 8 pixels."""
    walk = Im2col((0,), (0,), along)
    fields = {"box": (8, 32), "swizzle": 64, "im2col": walk, **changes}
    return TensorMap(IMAGES, IMAGES.shape, IMAGES.strides[:-1], element_type="u16", **fields)


def along_w(h: int, n: int, ws: list[int], lower: int, upper: int, step: int, count: int, shift: int = 0) -> Any:
    """Pixels along W and N: `ws` of the first image, then lower ... W - 1 + upper of the next ones."""
    rows = []
    for image in range(n, N + count):
        for w in ws if image == n else range(lower, W + upper, step):
            inside = image < N and 0 <= w + shift < W
            rows.append(IMAGES[image, h, w + shift] if inside else np.zeros(32, np.uint16))
    return np.array(rows[:count]).view(np.uint8)


@pytest.mark.parametrize(
    ("corner", "start", "step", "halo", "offset", "pixels"),
    [((0, 0), 3, 1, 2, 0, 8), ((-1, 0), -1, 2, 1, 0, 8), ((-1, 0), -1, 2, 0, 1, 8), ((1, -1), -3, 1, 0, 0, 40)],
)
def test_columns_along_w(
    corner: tuple[int, int], start: int, step: int, halo: int, offset: int, pixels: int
) -> None:
    """The start may lie to the left of the box; the halo goes on with the walk; the offset moves box and start."""
    map_ = wide("w", box=(pixels, 32), steps=(1, 1, step, 1), im2col=Im2col((corner[0],), (corner[1],), "w"))
    count = pixels + halo
    text = load("k", 4, "im2col::w")
    want = swizzled(along_w(2, 1, list(range(start, W + corner[1], step)), *corner, step, count, offset), 64)
    result, (got,) = run(text, map_, [0, start, 2, 1], [halo, offset], count * 64, len(want))
    assert result.findings == ()
    np.testing.assert_array_equal(got, want)


def test_128_columns_along_w() -> None:
    want = swizzled(along_w(0, 0, list(range(2, W)), 0, 0, 1, 128), 64)
    text = load("k", 4, "im2col::w::128", "shared::cta")
    result, (got,) = run(text, wide("w128"), [0, 2, 0, 0], [0, 0], 128 * 64, len(want))
    assert result.findings == ()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("map_", "mode", "start", "halo", "says"),
    [
        (wide("w128"), "im2col::w::128", 0, 1, "im2col::w::128 with a halo"),
        (wide("w", steps=(2, 1, 1, 1)), "im2col::w", 0, 0, "other dimensions than W"),
        (wide("w"), "im2col::w::128", 0, 0, "another mode"),
        (wide("w"), "im2col::w", 6, 0, "outside the bounding box"),
    ],
)
def test_what_is_refused_along_w(map_: TensorMap, mode: str, start: int, halo: int, says: str) -> None:
    result, _ = run(load("k", 4, mode), map_, [0, start, 0, 0], [halo, 0], 64, 16384)
    (finding,) = result.findings
    assert says in finding.message


@pytest.mark.parametrize("cluster", [0, 2])
def test_four_rows(cluster: int) -> None:
    source = np.arange(20 * 64, dtype=np.uint16).reshape(20, 64)
    map_ = TensorMap(source, source.shape, source.strides[:-1], (1, 16), "u16", 64)  # rows narrower than the swizzle
    rows = [3, 19, 0, 25]
    part = np.array([source[r, 8:24] if r < 20 else np.zeros(16, np.uint16) for r in rows])
    want = swizzled(part.view(np.uint8), 64)
    text = load("k", 2, "tile::gather4", cluster=cluster)
    result, got = run(text, map_, [8, *rows], [], 128, len(want), max(cluster, 1))
    assert result.findings == ()
    for shared in got:
        np.testing.assert_array_equal(shared, want)


def test_four_rows_are_not_stored_at_negative_places() -> None:
    map_ = TensorMap(np.zeros((4, 8), np.uint16), (4, 8), (16,), (1, 8), "u16")
    result, _ = run(store("k", 2, "tile::scatter4"), map_, [0, 0, 1, -1, 2], [], 0, 128)
    assert [f.kind for f in result.findings] == ["bad-coordinate"]


@pytest.mark.parametrize(("number", "atom"), [(1, 32), (3, 64)])
def test_larger_atoms(number: int, atom: int) -> None:
    """`tensormap.replace.swizzle_atomicity`: 1 keeps 32 bytes together, 3 keeps 64."""
    source = np.arange(16 * 64, dtype=np.uint16).reshape(16, 64)
    want = swizzled(source.view(np.uint8), 128, atom)
    result, (got,) = run(load("k", 2), _Replaced(source, number), [0, 0], [], 2048, len(want))
    assert result.findings == ()
    np.testing.assert_array_equal(got, want)


class _Replaced(TensorMap):
    """A map of a whole array with another swizzle atomicity, which the host's map cannot say."""

    def __init__(self, array: Any, number: int) -> None:
        super().__init__(array, array.shape, array.strides[:-1], array.shape, "u16", 128)
        object.__setattr__(self, "number", number)

    def encode(self, address: int) -> bytes:
        data = bytearray(super().encode(address))
        data[ATOMICITY] = self.number  # type: ignore[attr-defined]
        return bytes(data)
