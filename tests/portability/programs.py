"""Launches whose output bytes must be the same on every CPU, and their SHA-256.

    python -m tests.portability.programs NAME ...     prints {name: digest} as JSON
    python -m tests.portability.programs --bless      writes expected.json anew

Inputs come from integer counters (Philox), never from a generator of normal numbers, so they are the same everywhere.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from interp.launch import Module
from tests.kernels import corpus
from tests.kernels.philox import philox, uniform

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.json"
Array = np.ndarray[Any, Any]


def words(seed: int, count: int) -> Array:
    return philox(seed, np.arange(count, dtype=np.uint32))


def floats(seed: int, shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Numbers in [-4, 4) that f32 holds exactly, rounded to the type."""
    unit = uniform(words(seed, int(np.prod(shape)))).reshape(shape)
    return ((unit - np.float32(0.5)) * np.float32(8)).astype(dtype)


def arithmetic() -> Array:
    out = np.zeros((1024, 24), np.uint32)
    a, b = words(1, 1024), words(2, 1024)
    a[:512] = floats(3, (512,)).view(np.uint32)
    b[:256] = floats(4, (256,)).view(np.uint32)
    module = Module.from_ptx((HERE / "arithmetic.ptx").read_text(), fmad="off")
    assert module["arithmetic"].launch(grid=8, block=128, args=[a, b, out]).findings == ()
    return out


def softmax() -> Array:
    x = floats(5, (8, 1000))
    out = np.zeros_like(x)
    corpus.launch("softmax_f32_sm80", 8, x, out, 1000, 1000)
    return out


def _matmul(name: str, tile: int, dtype: Any, device: str | None = None) -> Array:
    a, b, c = floats(6, (80, 96), dtype), floats(7, (96, 48), dtype), np.zeros((80, 48), dtype)
    corpus.launch(name, (-(-80 // tile), -(-48 // tile)), a, b, c, 80, 48, 96, 96, 48, 48, device=device)
    return c


def layernorm() -> Array:
    x, w, b = floats(8, (6, 512), np.float16), floats(9, (512,), np.float16), floats(10, (512,), np.float16)
    out = np.zeros_like(x)
    corpus.launch("layernorm_f16_sm80", 6, x, w, b, out, 512, 500, 1e-5)
    return out


def flash_attention() -> Array:
    q, k, v = (floats(seed, (2, 96, 64), np.float16) for seed in (11, 12, 13))
    out = np.zeros_like(q)
    corpus.launch("flash_attention_f16_sm80", (2, 2), q, k, v, out, 96, 0.125)
    return out


PROGRAMS: dict[str, Callable[[], Array]] = {
    "arithmetic": arithmetic,
    "softmax_f32": softmax,
    "matmul_f16": lambda: _matmul("matmul_f16_sm80", 64, np.float16),
    "matmul_f16_on_sm90": lambda: _matmul("matmul_f16_sm80", 64, np.float16, "sm_90"),
    "matmul_f16_small": lambda: _matmul("matmul_f16_small_sm80", 16, np.float16),
    "matmul_bf16": lambda: _matmul("matmul_bf16_sm80", 64, ml_dtypes.bfloat16),
    "matmul_tf32": lambda: _matmul("matmul_tf32_sm80", 64, np.float32),
    "layernorm_f16": layernorm,
    "flash_attention_f16": flash_attention,
}
QUICK = ("arithmetic", "softmax_f32", "matmul_f16_small")
"""What `make test` runs on the host and on the CPU least like it; the rest of PROGRAMS is compiled for each CPU by
`make judges`."""
SHORT = ("arithmetic", "softmax_f32")
"""What `make test` runs for the CPUs between: a few seconds of compiling each."""


def digests(names: tuple[str, ...]) -> dict[str, str]:
    return {name: hashlib.sha256(PROGRAMS[name]().tobytes()).hexdigest() for name in names}


if __name__ == "__main__":
    if sys.argv[1:] == ["--bless"]:
        EXPECTED.write_text(json.dumps(digests(tuple(PROGRAMS)), indent=1) + "\n")
    else:
        print(json.dumps(digests(tuple(sys.argv[1:]))))
