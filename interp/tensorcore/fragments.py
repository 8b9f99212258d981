"""Register layouts of `mma.sync` m16n8 operands, as data: which matrix element each part of each lane's register holds.

Source: PTX ISA 9.0, "Matrix fragments for mma.m16n8k*". All shapes follow one rule, with e = 32 / element bits
elements a register: lane l has group l // 4 and place l % 4; a register of A or B covers k from e * place + 4 * e *
(its index along k)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]


def positions(operand: str, k: int, bits: int) -> Positions:
    """Where each element goes: int64 [registers, 32 lanes, elements, 2], the last axis (row, column) of the operand's
    matrix.

    operand: "a" (16 x k), "b" (k x 8) or "c" (16 x 8, also d; `k` is not used). bits: element size. Elements count from
    the lowest bits of a register; f64 (bits 64) has one element a 64-bit register.
    """
    elements = max(32 // bits, 1)
    lane = np.arange(32)[None, :, None]
    element = np.arange(elements)[None, None, :]
    if operand == "c":
        registers = 4 // elements if bits < 32 else 4
        register = np.arange(registers)[:, None, None]
        index = register * elements + element
        row = lane // 4 + 8 * (index >> 1) + 0 * element
        column = lane % 4 * 2 + (index & 1) + 0 * lane
    else:
        along = k // (4 * elements)
        register = np.arange(along * (2 if operand == "a" else 1))[:, None, None]
        outer = lane // 4 + 0 * register + 0 * element
        step = register >> 1 if operand == "a" else register
        inner = elements * (lane % 4) + element + 4 * elements * step
        row, column = (outer + 8 * (register & 1), inner) if operand == "a" else (inner, outer)
    return np.stack(np.broadcast_arrays(row, column), -1).astype(np.int64)


def to_registers(operand: str, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Fragment words [registers, 32] of a matrix of unsigned words (uint8 ... uint64), one instruction's operand."""
    bits = matrix.dtype.itemsize * 8
    k = matrix.shape[1] if operand == "a" else matrix.shape[0]
    where = positions(operand, k, bits)
    parts = np.ascontiguousarray(matrix[where[..., 0], where[..., 1]])
    return parts.view(np.uint64 if bits == 64 else np.uint32)[..., 0]


def from_registers(registers: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The 16 x 8 accumulator matrix of fragment words [registers, 32]."""
    bits = np.dtype(dtype).itemsize * 8
    where = positions("c", 0, bits)
    matrix = np.zeros((16, 8), dtype)
    matrix[where[..., 0], where[..., 1]] = registers.view(dtype).reshape(where.shape[:3])
    return matrix
