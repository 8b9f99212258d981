"""The shape of a launch as its caller writes it: grid, block, the CTAs to run, when asynchronous work takes effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from interp.runtime import layout as L
from ptx.errors import InvalidInput, Unsupported

Dim3 = tuple[int, int, int]
MOST_CTAS = 1 << 26
"""CTAs of a grid that runs as a whole (their list takes 24 bytes each)."""


def asynchrony_of(text: str) -> tuple[int, int]:
    """Mode and seed of the launch option."""
    mode, colon, number = text.partition(":")
    if mode not in L.ASYNCHRONY or (colon and (mode != "seeded" or not number.isdecimal())):
        raise InvalidInput(f"no asynchrony {text!r}", help=f"one of {', '.join(L.ASYNCHRONY)}, seeded:N")
    return L.ASYNCHRONY[mode], int(number or 0)


def dim3(value: Sequence[int] | int, what: str) -> Dim3:
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    if not 1 <= len(items) <= 3 or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in items):
        raise InvalidInput(f"{what} must be one to three integers, not {value!r}")
    x, y, z = (*(int(n) for n in items), 1, 1, 1)[:3]
    return x, y, z


def cta_list(grid: Dim3, ctas: Iterable[Dim3] | None) -> np.ndarray[Any, np.dtype[np.int64]]:
    """CTAs to run as rows (x, y, z); x fastest, as hardware numbers them."""
    if ctas is None:
        total = grid[0] * grid[1] * grid[2]
        if min(grid) < 1:
            return np.zeros((0, 3), np.int64)  # refused by the limits check
        if total > MOST_CTAS:
            raise Unsupported(
                f"a grid of {total} CTAs would run for days", help="run some of them with ctas=[(x, y, z), ...]"
            )
        n = np.arange(total, dtype=np.int64)
        return np.stack([n % grid[0], n // grid[0] % grid[1], n // (grid[0] * grid[1])], 1)
    try:
        rows = np.array([tuple(int(x) for x in c) for c in ctas], np.int64).reshape(-1, 3)
    except (TypeError, ValueError):
        raise InvalidInput(f"ctas={ctas!r} is not a list of (x, y, z)") from None
    if rows.size == 0:
        raise InvalidInput("ctas is empty: nothing would run")
    if (rows < 0).any() or (rows >= np.array(grid)).any():
        raise InvalidInput(f"ctas has a CTA outside the grid {grid}")
    return rows
