"""Running whole matrix instructions in tests: the fast path and the model from one plan, on registers of many warps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from interp.tensorcore import expanded, fast, integers
from interp.tensorcore.table import Plan

Registers = npt.NDArray[Any]
FUNCTIONS: dict[str, Callable[..., None]] = {
    "mma": fast.mma,
    "mma_fp8_expanded": expanded.mma_fp8_expanded,
    "mma_f64": expanded.mma_f64,
    "mma_s8": integers.mma_s8,
}


def mma_by_model(out: int, a: int, b: int, c: int, *arguments: int) -> None:
    """`fast.mma`, every row through the model."""
    for row in range(16):
        fast.row_by_model(out, a, b, c, row, *arguments)


def run(function: Callable[..., None], plan: Plan, a: Registers, b: Registers, c: Registers) -> Registers:
    """Results [warp, register, 32] of an instruction on operands [warp, register, 32]."""
    assert (a.shape[1], b.shape[1], c.shape[1]) == plan.registers
    out = np.zeros_like(c)
    for i in range(len(a)):
        function(out[i].ctypes.data, a[i].ctypes.data, b[i].ctypes.data, c[i].ctypes.data, *plan.arguments)
    return out


def split(words: Registers, plan: Plan) -> tuple[Registers, Registers, Registers]:
    """A, B and C registers of instructions that read them in this order."""
    na, nb, _nc = plan.registers
    return tuple(np.ascontiguousarray(part) for part in np.split(words, [na, na + nb], axis=1))  # type: ignore[return-value]
