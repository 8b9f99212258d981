"""The hardware answers, and how a case's PTX text maps to the scalar functions under test."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent.parent / "hardware"
Words = npt.NDArray[np.uint32]


@cache
def description() -> dict[str, dict[str, Any]]:
    """Case name -> body, input kinds, number of results."""
    return json.loads((FOLDER / "h200_instructions.json").read_text())  # type: ignore[no-any-return]


@cache
def _archive() -> dict[str, Words]:
    with np.load(FOLDER / "h200_instructions.npz", allow_pickle=False) as f:
        return {name: f[name] for name in f.files}


def lanes(name: str) -> tuple[Words, Words]:
    """(inputs, results) of a case, uint32 [lane, word]; for wgmma the inputs are the accumulators."""
    words = _archive()[name]
    outputs = description()[name]["outputs"]
    return words[:, :-outputs], words[:, -outputs:]


def edge_lanes(name: str) -> tuple[Words, Words]:
    """(inputs, results) of an edge case, uint32 [lane, word]."""
    words = _edges()[name]
    inputs = len(words[0]) - edge_results(name)
    return words[:, :inputs], words[:, inputs:]


def edge_results(name: str) -> int:
    """Result words of an edge case: by the destination type, or by the accumulator registers of a matrix
    instruction."""
    parts = name.split("#")[0].split(".")
    if parts[0] == "mma":
        if parts[1] == "f64":
            return 8 if parts[2].startswith("m16") else 4
        return 2 if parts[-4] == "f16" else 4
    kind = parts[-2] if parts[0] == "cvt" else parts[-1]
    return 2 if kind in ("f64", "s64", "u64") else 1


def edge_names() -> list[str]:
    """Names of the edge cases."""
    return list(_edges())


@cache
def _edges() -> dict[str, Words]:
    with np.load(FOLDER / "h200_edges.npz", allow_pickle=False) as f:
        return {name: f[name] for name in f.files}


def wgmma_operands(name: str) -> tuple[Words, Words]:
    """A and B words of a wgmma case, [group, 512] and [group, 64]."""
    return _archive()[name + ":a"], _archive()[name + ":b"]


def warps(words: Words) -> Words:
    """[lane, word] -> [warp, word, 32]: a register is a vector of 32 lanes."""
    return np.ascontiguousarray(words.reshape(-1, 32, words.shape[1]).transpose(0, 2, 1))


def lanes_of(registers: Words) -> Words:
    """The inverse of `warps`."""
    return np.ascontiguousarray(registers.transpose(0, 2, 1).reshape(-1, registers.shape[1]))


def join64(words: Words) -> list[np.uint64]:
    """Words of one lane -> 64-bit values, lower half first."""
    return [np.uint64(int(lo) | int(hi) << 32) for lo, hi in zip(words[::2], words[1::2], strict=True)]


def packed(function: Callable[..., Any], bits: int = 16) -> Callable[..., int]:
    """The two-element form of a function of 8- or 16-bit words."""
    mask = (1 << bits) - 1
    kind = np.uint16 if bits == 16 else np.uint8

    def both(*words: Any) -> int:
        lower = function(*[kind(int(w) & mask) for w in words])
        upper = function(*[kind(int(w) >> bits & mask) for w in words])
        return int(lower) | int(upper) << bits

    return both
