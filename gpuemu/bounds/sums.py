"""Sums in binary32: how many additions a term passes through, and what that costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuemu.bounds.model import F64, LEAST32, U32, Bound, Exact, Model, where_finite


def tree_depth(n: int) -> int:
    """Additions that one term passes through in a warp-level reduction of n terms (`tl.sum` over one tile).

    A thread adds its own n/32 terms (a vectorised layout gives up to 4 more to some threads), then 5 shuffles combine
    the lanes of a warp and at most 5 more the (up to 32) warps of a CTA. Not valid for a sum carried over a loop: see
    `loop_depth`.
    """
    return -(-n // 32) + 4 + 10


def loop_depth(tile: int) -> Callable[[int], int]:
    """`tree_depth` for a sum carried over a loop of tiles of `tile` terms: one more addition an iteration."""
    return lambda n: tree_depth(min(n, tile)) + -(-n // tile)


def total(terms: Callable[..., F64], *, depth: int | Callable[[int], int], axis: int = -1) -> Model:
    """A sum of `terms(**inputs)` over `axis` in binary32, each term with one rounding of its own."""

    def evaluate(exact: Exact) -> Bound:
        values = np.abs(terms(**exact.inputs))
        size = values.sum(axis=axis)
        n = values.shape[axis]
        steps = (depth(n) if callable(depth) else depth) + 1
        return where_finite(size * (steps * U32 * (1 + steps * U32)) + n * LEAST32, size)

    return Model(evaluate, "sum in binary32", family="sum")
