"""What a device address means to the user: an element of an array, a byte of shared or local memory, or nothing.

An address outside everything is told relative to the nearest array: it nearly always comes from an index that ran
past an end. The index is logical (strides, reversed views) and continues beyond the bounds along the outermost
dimension.
Only what a 32-bit index cannot reach (REACH) counts as wild, and what lies in the first MiB as a null pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from interp.runtime.layout import LOCAL_WINDOW, RANK_SHIFT, SHARED_BASE, SHARED_WINDOW
from ptx import ir

REACH = 1 << 36
"""Bytes from an array within which an address is told relative to it: 2^32 elements of 16 bytes."""
NULL_PAGE = 1 << 20
_WINDOW = 1 << 32
_ONE_SPACE = ("ld", "ldu", "st", "atom", "red")

Named = tuple[str, np.ndarray[Any, Any], int]
"""A name, the array, and the device address of its element 0."""
Told = tuple[str | None, tuple[int, ...] | None, str]
"""Name of the array, index in it, and both as text."""


def tell(
    inst: ir.Inst, address: int, arrays: Sequence[Named], shared: int, local: int, rank: int = 0, ranks: int = 1
) -> Told:
    """What `inst` accessed at `address`, in a launch with these arrays and bytes of shared and local memory; `rank`: of
    the accessing CTA in its cluster of `ranks`."""
    space = next((m.partition("::")[0] for m in inst.mods if m.startswith((".shared", ".local"))), None)
    if inst.op not in _ONE_SPACE:  # copies between spaces: shared addresses are small
        space = ".shared" if 0 <= address < (NULL_PAGE if ranks == 1 else _WINDOW) else None
    if SHARED_WINDOW <= address < SHARED_WINDOW + _WINDOW:
        space, address = ".shared", address - SHARED_WINDOW
    elif LOCAL_WINDOW <= address < LOCAL_WINDOW + _WINDOW:
        space, address = ".local", address - LOCAL_WINDOW
    if space == ".shared":
        return None, None, _tell_shared(address & _WINDOW - 1, shared, -1 if inst.op == "wgmma" else rank, ranks)
    if space == ".local":
        return None, None, f"byte {address} of {local} bytes of local memory"
    if 0 <= address < NULL_PAGE:
        return None, None, f"address {address:#x}, a null pointer" + (f" plus {address} bytes" if address else "")
    near = [(_distance(array, at, address), name, array, address - at) for name, array, at in arrays]
    distance, name, array, offset = min(near, key=lambda n: n[0], default=(REACH, "", np.zeros(0), 0))
    if distance >= REACH:
        return None, None, f"address {address:#x}, far from every array"
    index, rest = logical_index(array, offset)
    shown = f"[{', '.join(map(str, index))}]" + (f" + {rest} bytes" if rest else "")
    return name, index, f"{name}{shown}, shape {array.shape}"


def _tell_shared(address: int, shared: int, own: int, ranks: int) -> str:
    """A byte of shared memory; `own`: the rank of the accessing CTA, -1 when the address has no rank."""
    rank = address >> RANK_SHIFT
    if ranks == 1 or own < 0:
        return f"byte {address - SHARED_BASE} of {shared} bytes of shared memory"
    whose = f", of CTA rank {rank} in the cluster" if rank != own else ""
    if rank >= ranks:
        whose = f", of CTA rank {rank} in a cluster of {ranks} CTAs"
    return f"byte {(address & (1 << RANK_SHIFT) - 1) - SHARED_BASE} of {shared} bytes of shared memory{whose}"


def logical_index(array: np.ndarray[Any, Any], offset: int) -> tuple[tuple[int, ...], int]:
    """Index of the element at or below a byte offset from element 0, and the bytes left; the index continues beyond the
    bounds along the dimension of the largest stride."""
    sizes = [(abs(s), s < 0, n, d) for d, (n, s) in enumerate(zip(array.shape, array.strides, strict=True)) if s]
    offset += sum((n - 1) * size for size, reverse, n, _ in sizes if reverse and n)
    index = [0] * array.ndim
    for size, reverse, n, d in sorted(sizes, key=lambda e: -e[0]):
        i, offset = divmod(offset, size)
        index[d] = max(n, 1) - 1 - i if reverse else i
    return tuple(index), offset


def string_at(address: int, arrays: Sequence[Named]) -> str:
    """The string that begins at an address inside one of the arrays, up to its zero byte."""
    for _, array, at in arrays:
        if at <= address < at + array.nbytes and array.flags.c_contiguous:
            rest = array.reshape(-1).view(np.uint8)[address - at :].tobytes()
            return rest.partition(b"\0")[0].decode("utf-8", "replace")
    return f"(text at {address:#x})"


def _distance(array: np.ndarray[Any, Any], at: int, address: int) -> int:
    """Bytes between an address and the nearest byte of an array, 0 inside."""
    spans = [s * (n - 1) for n, s in zip(array.shape, array.strides, strict=True) if n]
    low, high = at + sum(s for s in spans if s < 0), at + sum(s for s in spans if s > 0) + array.itemsize - 1
    return int(max(low - address, address - high, 0))
