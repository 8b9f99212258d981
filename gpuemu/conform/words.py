"""Operand words for the forms of `forms.py`: values where rules change, numbers of moderate size, plain random bits.

A lane's input is one 64-bit word for each kind of type (integer, f16, bf16, f32, f64) and operand position; narrow
kinds are drawn repeatedly into one word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuemu.conform.forms import KINDS, POSITIONS, WORDS, Form, kind_of
from ptx.types import width

Words = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]

_SPECIAL = {
    "f16": [
        0, 1, 0x3FF, 0x400, 0x3800, 0x3BFF, 0x3C00, 0x3C01, 0x4000, 0x4100, 0x6BFF, 0x7BFF, 0x7C00, 0x7C01, 0x7E00,
        0x7E55, 0x7FFF,
    ],
    "bf16": [
        0, 1, 0x40, 0x7F, 0x80, 0x3F00, 0x3F7F, 0x3F80, 0x3F81, 0x4000, 0x4020, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0,
        0x7FD5, 0x7FFF,
    ],
    "f32": [
        0, 1, 0x40_0000, 0x7F_FFFF, 0x80_0000, 0x80_0001, 0x3300_0000, 0x3300_0001, 0x3F00_0000, 0x3F7F_FFFF,
        0x3F80_0000, 0x3F80_1000, 0x3FC0_0000, 0x4020_0000, 0x42FF_0000, 0x437F_8000, 0x477F_E000, 0x477F_F000,
        0x477F_EFFF, 0x43E0_0000, 0x43E8_0000, 0x43E8_0001, 0x4AFF_FFFF, 0x4B00_0001, 0x4EFF_FFFF, 0x4F00_0000,
        0x4F7F_FFFF, 0x4F80_0000, 0x5F00_0000, 0x5F80_0000, 0x7F7F_FFFF, 0x7F80_0000, 0x7F80_0001, 0x7FC0_0000,
        0x7FC1_2345, 0x7FFF_FFFF,
    ],
    "f64": [
        0, 1, 0x8_0000_0000_0000, 0xF_FFFF_FFFF_FFFF, 1 << 52, 0x36A0 << 48, 0x3690 << 48, 0x3810 << 48, 0x3FE0 << 48,
        0x3FEF_FFFF_FFFF_FFFF, 0x3FF0 << 48, 0x3FF0_0000_1000_0000, 0x3FF0_0000_1000_0001, 0x4004 << 48,
        0x40EF_FE00 << 32, 0x41DF_FFFF_FFC0_0000, 0x41E0 << 48, 0x41EF_FFFF_FFF0_0000, 0x43E0 << 48, 0x43F0 << 48,
        0x47EF_FFFF_F000_0000, 0x47F0 << 48, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0 << 48, (0x7FF0 << 48) + 1,
        0x7FF0_0000_2000_0000, 0x7FF8 << 48, 0x7FF9_2345_6789_ABCD, 0x7FFF_FFFF_FFFF_FFFF,
    ],
    "int": [
        0, 1, 2, 7, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFF_FFFF,
        0x8000_0000, 0xFFFF_FFFF, 0x1_0000_0000, 0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FFFF_FFFF,
        0xFFFF_FFFF_FFFF_FF80, 0xFFFF_FFFF_8000_0000, 0xFFFF_FFFF_FFFF_8000, 0x0000_FFFF_0000_FFFF,
    ],
}  # fmt: skip


def _numbers(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Words of a kind: special ones of either sign, numbers of moderate size, and plain random bits."""
    n = {"int": 64, "f64": 64, "f32": 32}.get(kind, 16)
    bits = rng.integers(0, 1 << n, count, dtype=np.uint64)
    special = rng.choice(np.array(_SPECIAL[kind], np.uint64), count)
    if kind == "int":
        moderate = rng.integers(0, 1 << 63, count, dtype=np.uint64) >> rng.integers(0, 63, count, dtype=np.uint64)
        special = special ^ (np.uint64(0) - (rng.integers(0, 4, count, dtype=np.uint64) == 0).astype(np.uint64))
    else:
        number = rng.standard_normal(count) * np.exp2(rng.integers(-14, 15, count))
        moderate = {
            "f64": lambda: number.view(np.uint64),
            "f32": lambda: number.astype(np.float32).view(np.uint32).astype(np.uint64),
            "bf16": lambda: (number.astype(np.float32).view(np.uint32) >> 16).astype(np.uint64),
            "f16": lambda: np.clip(number, -65504, 65504).astype(np.float16).view(np.uint16).astype(np.uint64),
        }[kind]()
        special = special ^ (rng.integers(0, 2, count, dtype=np.uint64) << np.uint64(n - 1))
    which = rng.integers(0, 5, count)
    return np.where(which < 2, special, np.where(which < 4, moderate, bits)).astype(np.uint64)


def inputs(seed: int, lanes: int) -> np.ndarray:
    """u64 [lanes, WORDS]: word kind * POSITIONS + position of a lane; narrow kinds are drawn repeatedly."""
    rng = np.random.Generator(np.random.PCG64(seed))
    out = np.zeros((lanes, WORDS), np.uint64)
    for k, kind in enumerate(KINDS):
        for p in range(POSITIONS):
            n = {"int": 64, "f64": 64, "f32": 32}.get(kind, 16)
            for at in range(0, 64, n):
                out[:, k * POSITIONS + p] |= _numbers(rng, kind, lanes) << np.uint64(at)
    return out


def operand_words(f: Form, words: Sequence[int]) -> list[int]:
    """The sources of a form out of one lane's input words, cut to their types."""
    out = []
    for i, type in enumerate(f.sources):
        word = int(words[KINDS.index(kind_of(type)) * POSITIONS + i])
        out.append(word & 1 if type == "pred" else word & ((1 << width(type)) - 1))
    return out


def place(words: np.ndarray, lane: int, f: Form, sources: Sequence[int]) -> None:
    """Put the source words of a form into a lane's input words."""
    for i, (type, word) in enumerate(zip(f.sources, sources, strict=True)):
        words[lane, KINDS.index(kind_of(type)) * POSITIONS + i] = word
