"""Device memory of a launch: which host bytes answer at which device address.

Arrays are not copied. Each gets a deterministic *device* address, and a row in the allocation table says where its
bytes are on the host; every access is translated and checked (`interp.runtime.access`). Addresses depend on the order,
the sizes and the overlaps of the arrays of a launch only, so pointer values, PTX specialised on their alignment and
results that depend on addresses are the same on every machine.

Views of one storage keep their relative place: arrays whose host ranges overlap form one allocation, and a kernel may
reach all bytes that any of them covers; it may write there when one of them is writable. Between allocations lies a
guard of at least GUARD bytes that belongs to nobody.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp.runtime.layout import ALLOC_ROW, ALLOC_WRITABLE
from ptx.errors import InvalidInput

BASE = 0x7_0000_0000
"""Device address of the first allocation."""
ALIGN = 1 << 20
GUARD = 1 << 16
VARIABLES_BASE = 0x6_0000_0000
"""Device address of the first module-scope variable."""
CONSTANTS_BASE = 0x5_8000_0000
"""Device address of the first variable in `.const`; the last one ends below VARIABLES_BASE."""
FUNCTIONS_BASE = 0x5_0000_0000
"""Address of the module's first function, as pointers to functions hold it; no byte lies there."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes that an array covers on the host: [low, high), and where its element 0 is."""

    low: int
    high: int
    first: int


def extent(array: np.ndarray[Any, Any]) -> Extent:
    """Host bytes that an array's elements lie in; an empty array covers nothing."""
    first = int(array.__array_interface__["data"][0])
    if array.size == 0:
        return Extent(first, first, first)
    low = high = first
    for n, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return Extent(low, high + array.itemsize, first)


@dataclass(frozen=True, slots=True)
class Allocation:
    """One row of the table, host side: device range, host address of its first byte, indices of the arrays in it."""

    low: int
    high: int
    host: int
    writable: bool
    members: tuple[int, ...]


def plan(arrays: Sequence[np.ndarray[Any, Any]], base: int = BASE) -> tuple[list[int], list[Allocation]]:
    """Device address of each array's element 0, and the allocations, ascending."""
    extents = [extent(a) for a in arrays]
    groups: list[list[int]] = []
    for i, e in enumerate(extents):
        touching = [g for g in groups if any(_overlap(extents[j], e) for j in g)]
        merged = sorted([i, *(j for g in touching for j in g)])
        groups = [g for g in groups if g not in touching] + [merged]
    groups.sort(key=lambda g: g[0])
    addresses = [0] * len(arrays)
    allocations = []
    at = base
    for group in groups:
        low = min(extents[i].low for i in group)
        high = max(extents[i].high for i in group)
        # element 0 of the first array of a storage is what alignment is about
        skew = (extents[group[0]].first - low) % 256
        start = at + (-skew % 256 if skew else 0)
        for i in group:
            addresses[i] = start + extents[i].first - low
        writable = any(arrays[i].flags.writeable for i in group)
        if high > low:
            allocations.append(Allocation(start, start + high - low, low, writable, tuple(group)))
        at = (start + high - low + GUARD + ALIGN - 1) // ALIGN * ALIGN
    return addresses, allocations


def plan_addresses(arrays: Sequence[np.ndarray[Any, Any]]) -> list[int]:
    """Device address of each array's element 0 in a launch with these arrays."""
    return plan(arrays)[0]


def _overlap(a: Extent, b: Extent) -> bool:
    return a.low < b.high and b.low < a.high


def table(allocations: Sequence[Allocation]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The allocation table as the runtime reads it: one row an allocation, ascending."""
    rows = np.zeros((max(len(allocations), 1), ALLOC_ROW), np.int64)
    for i, a in enumerate(sorted(allocations, key=lambda a: a.low)):
        rows[i] = (a.low, a.high, a.host - a.low, ALLOC_WRITABLE if a.writable else 0, i)
    return rows


def sparse(shape: int | Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """A zero-filled array of any size of which only touched pages take memory.

    For kernels whose 32-bit offsets overflow: a 300 GB array with a few touched CTAs costs kilobytes. Raises
    InvalidInput when the host cannot reserve that much address space."""
    dims = (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
    kind = np.dtype(dtype)
    size = max(int(np.prod(list(dims), dtype=object)) * kind.itemsize, 1)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    try:
        pages = mmap.mmap(-1, size, flags=flags)
    except (OSError, OverflowError, ValueError) as error:
        raise InvalidInput(f"cannot reserve {size} bytes for a sparse array of shape {dims}: {error}") from error
    count = size // kind.itemsize if 0 not in dims else 0
    return np.frombuffer(pages, kind, count).reshape(dims)
