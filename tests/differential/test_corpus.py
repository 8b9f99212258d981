"""Every kernel of `tests/ptx` gives the same bytes, counters and findings on both engines."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from interp.launch import Module
from tests.ptx import regenerate

_DTYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "i32": np.int32}
_SHARED = 98304

# Shapes of pointer arguments, values of the others, and the grid, by kernel.
_MATMUL = {
    "a": (80, 48),
    "b": (48, 80),
    "c": (80, 80),
    "m": 80,
    "n": 80,
    "k": 48,
    "sam": 48,
    "sbk": 80,
    "scm": 80,
    "grid": (2, 2, 1),
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "vector_add": {"x": (1500,), "y": (1500,), "out": (1500,), "n": 1488, "grid": (2, 1, 1)},
    "softmax": {"x": (3, 1008), "out": (3, 1008), "stride": 1008, "n": 1008, "grid": (3, 1, 1)},
    "layernorm": {
        "x": (3, 400),
        "w": (400,),
        "b": (400,),
        "out": (3, 400),
        "stride": 400,
        "n": 389,
        "eps": 1e-5,
        "grid": (3, 1, 1),
    },
    "gelu": {"x": (1000,), "out": (1000,), "n": 997, "grid": (2, 1, 1)},
    "matmul": _MATMUL,
    "flash_attention": {
        "q": (2, 80, 64),
        "k": (2, 80, 64),
        "v": (2, 80, 64),
        "out": (2, 80, 64),
        "seq": 80,
        "scale": 0.125,
        "grid": (2, 2, 1),
    },
    "histogram_atomic": {"x": (700,), "counts": (64,), "total": (2,), "n": 691, "grid": (3, 1, 1)},
    "collatz_steps": {"x": (300,), "out": (300,), "n": 290, "grid": (2, 1, 1)},
    "row_cumsum": {"x": (3, 500), "out": (3, 500), "n": 499, "grid": (3, 1, 1)},
    "row_argmax": {"x": (3, 500), "out": (3,), "n": 499, "grid": (3, 1, 1)},
    "dropout": {"x": (1000,), "out": (1000,), "n": 900, "p": 0.3, "seed": 7, "grid": (2, 1, 1)},
}


def _array(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    count = int(np.prod(shape))
    steps = (np.arange(count, dtype=np.int64) * 7919 + seed * 104729) % 1009
    values = steps % 97 + 1 if dtype == "i32" else (steps - 504) / 128
    return values.astype(_DTYPES[dtype]).reshape(shape)


def _arguments(entry: dict[str, Any]) -> list[Any]:
    given = ARGUMENTS[entry["kernel"]]
    out: list[Any] = []
    for i, (name, type) in enumerate(entry["signature"].items()):
        out.append(_array(type[1:], given[name], i) if type[0] == "*" else given[name])
    return [*out, 0, 0]


@pytest.mark.parametrize("name", regenerate.CORPUS)
def test_both_engines_agree(name: str) -> None:
    entry, text = regenerate.CORPUS[name], regenerate.read(name)
    block = re.search(r"\.reqntid (\d+)", text)
    assert block is not None
    module = Module.from_ptx(text)
    runs = []
    for engine in ("compiled", "traced"):
        args = _arguments(entry)
        result = module[entry["kernel"]].launch(
            ARGUMENTS[entry["kernel"]]["grid"],
            (int(block[1]),),
            args,
            shared=_SHARED,
            engine=engine,
            names=[*entry["signature"], "global scratch", "profile scratch"],
        )
        runs.append((result, [a.tobytes() for a in args if isinstance(a, np.ndarray)]))
    (compiled, bytes_compiled), (traced, bytes_traced) = runs
    assert compiled.findings == traced.findings == ()
    assert bytes_compiled == bytes_traced
    assert compiled.counters is not None and traced.counters is not None
    assert compiled.counters.instructions == traced.counters.instructions
