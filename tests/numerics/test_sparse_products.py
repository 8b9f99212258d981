"""FP8 `mma.sp` as the compiler expands it, on whole matrices in exact rationals: even chunks, odd chunks, then c."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.tensorcore.expanded_sparse import mma_sp_fp8_expanded
from interp.tensorcore.model import KINDS
from tests.blackwell import law
from tests.isa.test_matrices import accumulator, fragment, matrix_a

FORMATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
EDGES = {"e4m3": (0, 0x80, 1, 0x87, 8, 0x7E, 0xFE, 0x7F), "e5m2": (0, 0x80, 1, 0x83, 4, 0x7B, 0xFB, 0x7C, 0xFC, 0x7D)}
EDGES_C = (0, 0x80000000, 1, 0x807FFFFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000)


def halves(words: np.ndarray, kind: str) -> np.ndarray:
    """f16 words of FP8 words; a NaN is some NaN."""
    return np.asarray(words.astype(np.uint8).view(FORMATS[kind]).astype(np.float16).view(np.uint16))


def expected(a: np.ndarray, b: np.ndarray, c: int, picks: np.ndarray) -> int:
    """One result. a: f16 words of a row's 32 stored elements, b: of a column's 64; picks: column of each element."""
    total = 0
    for odd in range(2):
        some = [i for i in range(32) if i // 2 % 2 == odd]
        total = law.dot([int(a[i]) for i in some], [int(b[picks[i]]) for i in some], total, ("f16", "f16"), "f32")
    with np.errstate(all="ignore"):
        x, y = np.array([total, c], np.uint32).view(np.float32)
        word = int((x + y).view(np.uint32))
    return 0x7FFFFFFF if word & 0x7FFFFFFF > 0x7F800000 else word


def picks_of(metadata: np.ndarray, row: int) -> np.ndarray:
    """Column of each stored element of a row: sixteen nibbles, of which a pair of lanes has eight for each row."""
    words = metadata[4 * (row % 8) + row // 8 :: 2][:2]
    nibbles = [int(words[n // 8]) >> 4 * (n % 8) & 15 for n in range(16)]
    return np.array([4 * n + (nibbles[n] >> 2 * i & 3) for n in range(16) for i in range(2)])


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, metadata: np.ndarray, kinds: tuple[str, str]) -> np.ndarray:
    """D of registers [lane, register]."""
    vectors = [np.ascontiguousarray(x.T).astype(np.uint32) for x in (a, b, c, metadata)]
    out = np.zeros((4, 32), np.uint32)
    at_a, at_b, at_c, at_e = (v.ctypes.data for v in vectors)
    kind_a, kind_b = (KINDS[k] for k in kinds)
    mma_sp_fp8_expanded(out.ctypes.data, at_a, at_b, at_c, at_e, kind_a, kind_b, 16, 25, -133)
    return out.T


@pytest.mark.parametrize("kinds", [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e5m2")], ids=".".join)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1 << 30), edges=st.sampled_from([0.0, 0.02, 0.4]))
def test_chunks_of_four(kinds: tuple[str, str], seed: int, edges: float) -> None:
    rng = np.random.default_rng(seed)
    sides = []
    for kind in kinds:
        words = rng.integers(0, 256, (32, 16))
        if edges < 0.4:
            words[np.isnan(words.astype(np.uint8).view(FORMATS[kind]).astype(np.float32))] = 0
        words = np.where(rng.random(words.shape) < edges, rng.choice(EDGES[kind], words.shape), words)
        sides.append(words.astype(np.uint8).view(np.uint32))
    c = (rng.standard_normal((32, 4)) * 2.0 ** rng.integers(-12, 12, (32, 4))).astype(np.float32).view(np.uint32)
    c = np.where(rng.random(c.shape) < edges, rng.choice(np.array(EDGES_C, np.uint32), c.shape), c)
    metadata = rng.integers(0, 1 << 32, (32, 1), dtype=np.uint64).astype(np.uint32)
    got = accumulator(product(sides[0], sides[1], c, metadata, kinds), False)
    x, y = halves(matrix_a(sides[0], 8, 16), kinds[0]), halves(fragment(sides[1], 8), kinds[1])
    before = accumulator(c, False)
    for row, column in zip(rng.integers(0, 16, 12), rng.integers(0, 8, 12), strict=True):
        word = expected(x[row], y[column], int(before[row, column]), picks_of(metadata[:, 0], int(row)))
        assert hex(got[row, column]) == hex(word), (row, column)
