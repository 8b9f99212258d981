"""What memory holds that nobody has written: three poisons, cycled over the cases by their seeds.

bytes    every byte 0xFF: NaN in every float format, -1 in an integer
nan      a quiet NaN with a payload that no instruction makes and no input has (8-bit formats have no such NaN: 0xFF)
finite   a large finite number, about a third of the largest: passes every NaN check, and a maximum keeps it

One poison is not enough: a maximum ignores NaN, and code that tests for NaN or multiplies by a mask hides it, while a
large finite number that leaks is plain to see in a value (and the other way round).

An element that still holds a NaN poison after the run was not written, whatever the reference says. A finite poison may
be a right answer, so it counts as not written only where it is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.dtypes import FORMATS, numpy_dtype

POISONS = ("bytes", "nan", "finite")


@dataclass(frozen=True, slots=True)
class Poison:
    """The word that fills unwritten elements of one dtype. `certain`: finding it always means "not written"."""

    word: int
    certain: bool


def poison_of(seed: int, dtype: str) -> Poison:
    """The poison of a case for arrays of `dtype`. The seed's low bit chooses layouts; the next ones choose this."""
    kind = POISONS[(seed >> 1) % len(POISONS)]
    form = FORMATS.get(dtype)
    bits = 8 * numpy_dtype(dtype).itemsize
    ones = (1 << bits) - 1
    if form is None:
        # Integers: -1, the smallest, and a large positive number; each may be a right answer.
        word = {"bytes": ones, "nan": 1 << (bits - 1), "finite": (1 << (bits - 2)) + 0x25}[kind]
        return Poison(0xFF if dtype == "bool" else word & ones, False)
    if kind == "bytes" or (kind == "nan" and bits == 8):
        return Poison(ones, True)
    fraction = form.precision - 1
    if kind == "nan":
        exponent = ((1 << (bits - 1 - fraction)) - 1) << fraction
        return Poison((1 << (bits - 1)) | exponent | (1 << (fraction - 1)) | (0x5A & ((1 << (fraction - 1)) - 1)), True)
    # Exponent field one binade below the largest, fraction 0101...: exact in the format, unlike any round number.
    high = (1 << (bits - 1 - fraction)) - (2 if form.finite else 3)
    return Poison((high << fraction) | (0x155555 & ((1 << fraction) - 1)), False)


def fill(array: NDArray[Any], poison: Poison) -> None:
    """Fill a contiguous array with the poison's word, in place."""
    words = array.reshape(-1).view(f"u{array.itemsize}")
    words[...] = words.dtype.type(poison.word)


def holds(array: NDArray[Any], poison: Poison) -> NDArray[np.bool_]:
    """Where an array of any layout still holds the poison."""
    words = np.ascontiguousarray(array).view(f"u{array.itemsize}")
    return np.asarray(words == words.dtype.type(poison.word))
