"""The special functions: vector code equals scalar code, compiled code equals plain Python, exact values, and the full
model at hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from interp.runtime.raw import load_u32, native, store_u32
from interp.special import approx, lanes, unit

SHARED = Path(__file__).parents[3] / "shared" / "h200"
EDGES = [0, 1, 0x7FFFFF, 0x800000, 0x3F7FFFFF, 0x3F800000, 0x40800000, 0x42FC0000, 0x42FC0001, 0x43000000, 0x7E800000,
         0x7E800001, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x3B7FFFFF, 0x3B800000, 0x41000000]  # fmt: skip


def arguments(count: int) -> np.ndarray:
    """f32 words: every sign and exponent, moderate numbers, edges."""
    rng = np.random.default_rng(11)
    anywhere = rng.integers(0, 2**32, count, dtype=np.uint32)
    moderate = (
        rng.integers(0, 2**23, count) | rng.integers(117, 135, count) << 23 | rng.integers(0, 2, count) << 31
    ).astype(np.uint32)
    edges = np.array(EDGES + [x | 0x80000000 for x in EDGES], np.uint32)
    return np.resize(np.concatenate([edges, anywhere, moderate]), 2 * count + 64)


@pytest.mark.parametrize(
    "name", [name for name in lanes.WARP if "ftz.f32" not in name or "sin" not in name and "cos" not in name]
)
def test_vector_code_equals_scalar_code(name: str) -> None:
    scalar, warp = approx.PTX[name], lanes.WARP[name]

    @native
    def both(vector: int, single: int, source: int, warps: int) -> None:
        for i in range(warps):
            warp(vector + 128 * i, source + 128 * i)
        for i in range(32 * warps):
            store_u32(single + 4 * i, scalar(load_u32(source + 4 * i)))

    x = arguments(8192)
    got, want = np.zeros_like(x), np.zeros_like(x)
    both(got.ctypes.data, want.ctypes.data, x.ctypes.data, len(x) // 32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", approx.PTX)
def test_compiled_code_equals_python(name: str) -> None:
    function = approx.PTX[name]
    rng = np.random.default_rng(5)
    kind = np.uint16 if name.endswith("16") else np.uint32
    arity = 2 if name.startswith("div") else 1
    for _ in range(64):
        words = [kind(rng.integers(0, np.iinfo(kind).max, endpoint=True)) for _ in range(arity)]
        assert function(*words) == function.py_func(*words), words  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "argument", "result"),
    [
        (unit.ex2, 0x00000000, 0x3F800000),
        (unit.ex2, 0x80000001, 0x3F800000),
        (unit.ex2, 0xB4000000, 0x3F7FFFFE),
        (unit.lg2, 0x3F800000, 0x00000000),
        (unit.rsq, 0x40800000, 0x3F000000),
        (unit.rcp, 0x80000000, 0xFF800000),
        (unit.cos, 0x00000000, 0x3F800000),
        (unit.tanh, 0x00000001, 0x00000001),
        (unit.tanh, 0xC1000000, 0xBF800000),
        (unit.sqrt, 0xBF800000, 0x7FFFFFFF),
    ],
)
def test_known_values(function, argument: int, result: int) -> None:  # type: ignore[no-untyped-def]
    assert function(np.uint32(argument)) == result


def test_equals_the_full_model() -> None:
    """The numpy model that was compared with an H200 on all 2**32 inputs, where it is at hand."""
    if not (SHARED / "mufu_model.py").exists():
        pytest.skip(f"the model is not at {SHARED}")
    spec = importlib.util.spec_from_file_location("mufu_model", SHARED / "mufu_model.py")
    assert spec is not None and spec.loader is not None
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    model._NPZ.close()  # it leaves its file open
    x = arguments(20000)
    for name, function in model.PTX.items():
        words = np.arange(0, 65536, 7, dtype=np.uint16) if name.endswith("16") else x[:20000]
        mine = approx.PTX[name]
        got = np.array([mine(w) for w in words], words.dtype)
        assert np.count_nonzero(got != function(words)) == 0, name
