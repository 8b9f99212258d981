"""The model against 150,000 published dot products of V100, A100, Ada, H200 and B200, where the file is at hand.

Data: north-numerical-computing/MATLAB-tensor-core (BSD-2-Clause), not part of this project.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interp.formats.halves import f16_add
from interp.formats.rounding import RN
from interp.formats.small_floats import e4m3_to_f16, e5m2_to_f16, f32_to_f16
from interp.runtime.raw import f32_add, load_u32, native, store_u32
from interp.tensorcore.model import KINDS, dot
from interp.tensorcore.table import EXPANDED_FP8, arithmetic

FILE = Path(__file__).parents[3] / "shared" / "tensorcore_vectors.npz"
GPUS = {"V100": 70, "A100": 80, "Ada": 89, "H200": 90, "B200": 100}


@native
def batch(
    rows: int, k: int, a: int, b: int, c: int, d: int, size: int, kind: int,
    out_kind: int, block: int, fraction: int, floor: int, out_fraction: int,
) -> None:  # fmt: skip
    """One dot product a row: words of c and d are uint32."""
    for i in range(rows):
        at = i * k * size
        word = dot(
            a + at,
            b + at,
            size,
            size,
            k,
            kind,
            kind,
            load_u32(c + 4 * i),
            out_kind,
            block,
            fraction,
            floor,
            out_fraction,
        )
        store_u32(d + 4 * i, word)


def products(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str, result: str, numbers) -> np.ndarray:  # type: ignore[no-untyped-def]
    a, b, c = np.ascontiguousarray(a), np.ascontiguousarray(b), np.ascontiguousarray(c, dtype=np.uint32)
    d = np.zeros(len(a), np.uint32)
    batch(
        len(a), a.shape[1], a.ctypes.data, b.ctypes.data, c.ctypes.data, d.ctypes.data, a.dtype.itemsize, KINDS[kind],
        KINDS[result], numbers.block, numbers.fraction, numbers.floor, numbers.out_fraction,
    )  # fmt: skip
    return d


def expanded(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str, result: str, sm: int) -> np.ndarray:
    """FP8 `mma.sync` where the compiler makes two f16 operations and an addition of it."""
    table = np.array([(e4m3_to_f16 if kind == "e4m3" else e5m2_to_f16)(np.uint8(i)) for i in range(256)], np.uint16)
    numbers = arithmetic(sm, "f16", result)
    total = np.zeros(len(a), np.uint32)
    for low in (True, False):
        chosen = (np.arange(a.shape[1]) % 4 < 2) == low
        total = products(table[a[:, chosen]], table[b[:, chosen]], total, "f16", result, numbers)
    add = f16_add if result == "f16" else f32_add
    kind_of = np.uint16 if result == "f16" else np.uint32
    return np.array([add_words(add, kind_of(x), kind_of(y)) for x, y in zip(total, c, strict=True)], np.uint32)


@native
def _add_f32(x: Any, y: Any) -> Any:
    return f32_add(x, y)


def add_words(add: Any, x: Any, y: Any) -> Any:
    return _add_f32(x, y) if add is f32_add else add(x, y)


@pytest.fixture(scope="module")
def vectors() -> dict[str, np.ndarray]:
    if not FILE.exists():
        pytest.skip(f"the published vectors are not at {FILE}")
    with np.load(FILE) as f:
        return {name: f[name] for name in f.files}


@pytest.mark.parametrize("gpu", GPUS)
def test_published_dot_products(vectors: dict[str, np.ndarray], gpu: str) -> None:
    sm = GPUS[gpu]
    checked = 0
    for name, want in vectors.items():
        if not name.startswith(gpu + "/") or "/d_" not in name:
            continue
        kind_name = name.split("/")[1]
        kind = kind_name.lower().replace("fp16", "f16")
        result = "f16" if name.endswith("d_fp16") else "f32"
        a, b, c = (vectors[f"{gpu}/{kind_name}/{part}"] for part in "abc")
        if result == "f16":
            c = np.array([f32_to_f16(x, RN) for x in c], np.uint32)
        fp8 = kind in ("e4m3", "e5m2")
        if fp8 and sm == 90 and result == "f32":
            got = products(a, b, np.zeros_like(c), kind, result, arithmetic(90, kind, "f32", unit="wgmma"))
        elif fp8 and sm in EXPANDED_FP8:
            got = expanded(a, b, c, kind, result, sm)
        else:
            got = products(a, b, c, kind, result, arithmetic(sm, kind, result))
        assert np.count_nonzero(got != want) == 0, name
        checked += len(want)
    assert checked > 0
