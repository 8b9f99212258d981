"""Every kernel of the PTX corpus, executed and compared with numpy: exactly or within derived bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.bounds import FLOATS, check, integers, numbers, product, softmax, stored, u32
from tests.kernels.corpus import launch
from tests.kernels.philox import philox, uniform
from tests.ptx import regenerate

SEEN: set[str] = set()


def run(name: str, *args: Any, **options: Any) -> Any:
    SEEN.add(name)
    return launch(name, *args, **options)


def test_vector_add() -> None:
    x, y = numbers(1, 5 * 1024 + 16), numbers(2, 5 * 1024 + 16)
    out = np.full_like(x, 7)
    run("vector_add_sm80", 6, x, y, out, x.size - 16)
    assert (out[:-16] == (x + y)[:-16]).all() and (out[-16:] == 7).all()


@pytest.mark.parametrize("columns", [1, 17, 1000, 1023, 1024])
def test_softmax_f32(columns: int) -> None:
    x = numbers(3, (5, columns + 3), scale=4)
    out = np.full_like(x, 7)
    run("softmax_f32_sm80", 5, x, out, columns + 3, columns)
    exact, bound = softmax(x[:, :columns])
    if columns > 1:
        check(out[:, :columns], exact, bound)
    assert (out[:, columns:] == 7).all()


def test_softmax_as_other_code() -> None:
    """sm_90 code does the same arithmetic; vector loads give each lane other columns, and so sums another order."""
    x = numbers(4, (4, 1024), scale=3)
    plain, vectored, sm90 = (np.zeros_like(x) for _ in range(3))
    run("softmax_f32_sm80", 4, x, plain, 1024, 1008)
    run("softmax_f32_vectored_sm80", 4, x, vectored, 1024, 1008)
    run("softmax_f32_sm90", 4, x, sm90, 1024, 1008)
    exact, bound = softmax(x[:, :1008])
    check(vectored[:, :1008], exact, bound)
    assert plain.tobytes() == sm90.tobytes() and (vectored[:, 1008:] == 0).all()


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_softmax_16_bit(type: str) -> None:
    dtype = FLOATS[type]
    x = numbers(5, (3, 777), dtype, 3)
    out = np.zeros_like(x)
    run(f"softmax_{type}_sm80", 3, x, out, 777, 777)
    exact, bound = softmax(x)
    check(out, exact, bound + stored(exact, dtype), 0.9)


def test_softmax_of_extreme_rows() -> None:
    """Infinities, equal values, one huge value: exact answers, and NaN where the formula has none."""
    x = np.zeros((4, 8), np.float32)
    x[1, 3] = 1e30
    x[2] = -np.inf
    x[3, 0] = np.nan
    out = np.zeros_like(x)
    run("softmax_f32_sm80", 4, x, out, 8, 8)
    assert (out[0] == 0.125).all() and (out[1] == np.eye(8)[3]).all() and np.isnan(out[2:]).all()


@pytest.mark.parametrize("columns", [8, 333, 512])
def test_layernorm(columns: int) -> None:
    x, w, b = numbers(6, (4, 512), np.float16), numbers(7, columns, np.float16), numbers(8, columns, np.float16)
    out = np.zeros_like(x)
    run("layernorm_f16_sm80", 4, x, w, b, out, 512, columns, 1e-5)
    v = x[:, :columns].astype(np.float64)
    d = v - v.mean(1, keepdims=True)
    scale = 1 / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)
    exact = d * scale * w.astype(np.float64) + b.astype(np.float64)
    # mean: log2(n) roundings of sums of |v|; the rest: a few roundings of each factor
    mean = np.abs(v).mean(1, keepdims=True) * (np.log2(columns) + 3) * u32
    terms = (np.abs(d) * 12 * u32 + mean) * scale * np.abs(w.astype(np.float64)) + np.abs(exact) * 2 * u32
    check(out[:, :columns], exact, terms + stored(exact, np.float16), 0.5)


def test_gelu() -> None:
    from math import erf

    x = np.linspace(-6, 6, 1500).astype(np.float32)
    out = np.zeros_like(x)
    run("gelu_f32_sm80", 3, x, out, x.size)
    z = x.astype(np.float64)
    inner = np.array([erf(v * 0.7071067811865476) for v in z])
    exact = 0.5 * z * (1 + inner)
    # erff of libdevice: 2 ulp; 1 + erf cancels, so its error stays absolute
    check(out, exact, np.abs(z) * (4 * np.abs(inner) + 2) * u32 + np.abs(exact) * 3 * u32)


MATMUL = {"matmul_f16_sm80": ("f16", 64, 64), "matmul_bf16_sm80": ("bf16", 64, 64), "matmul_tf32_sm80": ("f32", 64, 64),
          "matmul_f16_small_sm80": ("f16", 16, 16), "matmul_f32_ieee_small_sm80": ("f32", 16, 16),
          "matmul_f32_ieee_large_sm80": ("f32", 128, 128)}  # fmt: skip
SHAPES = [(1, 16, 16), (17, 33, 48), (64, 64, 64), (65, 130, 96), (100, 31, 16)]


def _matmul(name: str, a: np.ndarray, b: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Launch with rows padded to 16 elements, as the PTX was specialised for; padding is poison."""
    _, bm, bn = MATMUL[name]
    (m, k), n = a.shape, b.shape[1]

    def padded(v: np.ndarray) -> np.ndarray:
        room = np.full((v.shape[0], -(-v.shape[1] // 16) * 16), np.nan, dtype)
        room[:, : v.shape[1]] = v
        return room

    pa, pb, pc = padded(a), padded(b), padded(np.zeros((m, n)))
    run(name, (-(-m // bm), -(-n // bn)), pa, pb, pc, m, n, k, pa.shape[1], pb.shape[1], pc.shape[1])
    assert np.isnan(pc[:, n:].astype(np.float32)).all(), "stored beyond the row"
    return pc[:, :n]


# The large tile is 5,700 instructions of the small one's kind: one shape.
@pytest.mark.parametrize(
    ("name", "shape"), [(n, s) for n in MATMUL for s in SHAPES if "large" not in n or s == SHAPES[-1]]
)
def test_matmul_of_whole_numbers_is_exact(name: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    dtype = FLOATS[MATMUL[name][0]]
    a, b = integers(9, (m, k), -3, 4), integers(10, (k, n), -3, 4)
    assert (_matmul(name, a, b, dtype).astype(np.int64) == (a @ b).astype(dtype).astype(np.int64)).all()


@pytest.mark.parametrize("name", [n for n in MATMUL if "large" not in n])
def test_matmul_within_its_bound(name: str) -> None:
    dtype = FLOATS[MATMUL[name][0]]
    a, b = numbers(11, (70, 112), dtype), numbers(12, (112, 50), dtype)
    got = _matmul(name, a, b, dtype)
    exact, bound = product(a, b, 2.0**-11 if "tf32" in name else 0.0)
    check(got, exact, bound + stored(exact, dtype), 0.05)


@pytest.mark.parametrize("sequence", [16, 48, 80])
def test_flash_attention(sequence: int) -> None:
    q, k, v = (numbers(seed, (2, sequence, 64), np.float16) for seed in (13, 14, 15))
    out = np.zeros_like(q)
    run("flash_attention_f16_sm80", (-(-sequence // 64), 2), q, k, v, out, sequence, 0.125)
    q64, k64, v64 = (t.astype(np.float64) for t in (q, k, v))
    s = q64 @ k64.swapaxes(1, 2) * 0.125
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    exact = p @ v64
    # the probabilities are rounded to f16 before the second product: 2^-11 of each
    check(out, exact, (p @ np.abs(v64)) * (2.0**-11 + 2.0**-16) + stored(exact, np.float16), 0.1)


def test_histogram() -> None:
    x = integers(16, 1000, 0, 300)
    counts, total = np.zeros(64, np.int32), np.array([-5, 0], np.int32)
    run("histogram_atomic_sm80", 4, x, counts, total, 1000)
    assert (counts == np.bincount(x % 64, minlength=64)).all() and list(total) == [x.max(), x.sum()]


def test_collatz() -> None:
    x = np.arange(1, 301, dtype=np.int32)
    out = np.full(300, -1, np.int32)
    run("collatz_steps_sm80", 2, x, out, 299)

    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    assert list(out) == [*map(steps, range(1, 300)), -1]


@pytest.mark.parametrize("columns", [1, 31, 500, 512])
def test_cumsum(columns: int) -> None:
    x = integers(17, (3, columns), -50, 50, np.float32)
    out = np.zeros_like(x)
    run("row_cumsum_sm80", 3, x, out, columns)
    assert (out == np.cumsum(x, 1)).all()
    x = numbers(18, (3, columns))
    run("row_cumsum_sm80", 3, x, out, columns)
    if columns > 31:
        check(out, np.cumsum(x.astype(np.float64), 1), np.cumsum(np.abs(x.astype(np.float64)), 1) * 10 * u32)


def test_argmax() -> None:
    x = integers(19, (6, 300), 0, 40, np.float32)
    x[3, 7:] = x[3].max() + 1
    out = np.zeros(6, np.int32)
    run("row_argmax_sm80", 6, x, out, 300)
    assert (out == x.argmax(1)).all(), "the first of equal ones"


def test_dropout() -> None:
    x = numbers(20, 1300)
    out = np.full(1300, -1, np.float32)
    run("dropout_sm80", 3, x, out, 1290, 0.3, 1234)
    keep = uniform(philox(1234, np.arange(1290, dtype=np.uint32))) > np.float32(0.3)
    assert ((out[:1290] != 0) == keep).all() and (out[1290:] == -1).all()
    exact = x[:1290].astype(np.float64) / (1 - float(np.float32(0.3)))
    assert (np.abs(out[:1290] - exact)[keep] <= np.abs(exact)[keep] * 5 * u32).all(), "div.full: 2 ulp, and 1 - p: one"


def test_nothing_is_left_out() -> None:
    """The tests above have run every kernel of the corpus (when this file was run as a whole)."""
    if len(SEEN) < len(regenerate.CORPUS) and not {"vector_add_sm80", "dropout_sm80"} <= SEEN:
        pytest.skip("only a part of this file was run")
    assert set(regenerate.CORPUS) == SEEN
