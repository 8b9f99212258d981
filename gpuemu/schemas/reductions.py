"""Reductions along an axis, prefix sums, and selection.

Sums: `bounds/sums.py`; the depth is that of a tree over a row or of a loop over tiles of it. Maxima, and what is only
moved (sort, top-k), have no error; ties are decided by the lowest index where an index is an output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuemu.bounds import Exact, Model, Running, exact, formula
from gpuemu.bounds.model import LEAST32, U32, where_finite
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.schema import BLOCK, Schema, Views, columns

ROWS = (1, 3, 16)
LARGEST = 2.0**14


def deep(n: int) -> int:
    """Additions a term passes through: a tree over the row, or a loop over tiles of 64 or more."""
    return -(-n // 32) + 24


def row_sum(*, block: int = BLOCK, views: Views = ("padded",), dtype: str | None = "float32") -> Schema:
    """`x` [M, N] -> `y` [M], the sum of each row; exact mode."""
    return _along(
        "y", lambda x: x.sum(axis=1), lambda x: x.sum(-1, depth=deep), "sum in binary32", block, views, dtype
    ) | {"linear": "N"}


def row_mean(*, block: int = BLOCK, views: Views = ("padded",), dtype: str | None = "float32") -> Schema:
    """`x` [M, N] -> `y` [M], the mean of each row."""
    return _along(
        "y", lambda x: x.mean(axis=1), lambda x: x.mean(-1, depth=deep), "mean in binary32", block, views, dtype
    )


def row_max(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`x` [M, N] -> `y` [M] in the case's dtype, the largest of each row, which may be -inf; no error."""
    schema = _along("y", lambda x: x.max(axis=1), None, "", block, views, None)
    schema["inputs"] = {"x": Input("M N", nonfinite=("-inf", "inf"), views=tuple(views))}
    return schema | {"bound": exact()}


def argmax(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`x` [M, N] -> `index` [M] int32 of the largest, the first of equals."""
    schema = _along("index", lambda x: x.argmax(axis=1), None, "", block, views, "int32")
    return schema | {"bound": exact()}


def column_sum(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`x` [M, N] -> `y` [N] float32, the sum over the rows in any order; exact mode."""
    return {
        "dims": {"M": (1, 3, 31, 64, 65), "N": (1, 31, block - 1, block, block + 1)},
        "inputs": {"x": Input("M N", largest=LARGEST, views=tuple(views))},
        "outputs": {"y": Output("N", dtype="float32")},
        "reference": lambda x: x.sum(axis=0),
        "bound": formula(lambda x, M: x.sum(0, depth=M, atomic=True), "sum in binary32"),
        "linear": "M",
    }


def row_variance(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`x` [M, N] -> `mean`, `var` [M] float32, biased, by two passes or Welford's method: an error of the mean enters
    the variance squared (bounds.layernorm). A difference of two large sums is outside the bound."""

    def running(exact: Exact) -> dict[str, F64]:
        x = exact.inputs["x"]
        steps = deep(x.shape[1]) + 5
        m = steps * U32 * np.abs(x).mean(axis=1) * (1 + 2 * steps * U32) + LEAST32
        v = ((x - x.mean(axis=1, keepdims=True)) ** 2).mean(axis=1)
        return {"mean": m, "var": m * m + 2 * (steps + 8) * U32 * (v + m * m) + 2 * LEAST32}

    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {"x": Input("M N", largest=2.0**12, views=tuple(views))},
        "outputs": {"mean": Output("M", dtype="float32"), "var": Output("M", dtype="float32")},
        "reference": lambda x: (x.mean(axis=1), x.var(axis=1)),
        "bound": Model(running, "mean and variance in binary32"),
    }


def cumsum(
    *,
    reverse: bool = False,
    exclusive: bool = False,
    block: int = BLOCK,
    views: Views = ("padded",),
    dtype: str | None = None,
) -> Schema:
    """`x` [M, N] -> `y` [M, N], sums of the elements up to each (from each on: `reverse`; without it: `exclusive`).

    A term passes through the levels of a tree, and through one addition a tile of a carried sum. Exact mode.
    """

    def prefix(x: F64) -> F64:
        turned = x[:, ::-1] if reverse else x
        out = np.cumsum(turned, axis=1)
        out = out - turned if exclusive else out
        return out[:, ::-1] if reverse else out

    def shifted(x: F64) -> F64:
        """Exclusive sums without cancellation."""
        turned = x[:, ::-1] if reverse else x
        out = np.concatenate([np.zeros((len(x), 1)), np.cumsum(turned, axis=1)[:, :-1]], axis=1)
        return out[:, ::-1] if reverse else out

    sums: Callable[[F64], F64] = shifted if exclusive else prefix

    def bound(exact: Exact) -> F64:
        size = sums(np.abs(exact.inputs["x"]))
        steps = deep(size.shape[1])
        return where_finite(size * (steps * U32 * (1 + steps * U32)) + size.shape[1] * LEAST32, size)

    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {"x": Input("M N", largest=2.0**10, views=tuple(views))},
        "outputs": {"y": Output("M N", dtype=dtype, padded="padded" in views)},
        "reference": lambda x: sums(x),
        "bound": Model(bound, "prefix sum in binary32", family="sum"),
        "linear": "N",
    }


def cummax(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`x` [M, N] -> `y` [M, N], the largest of the elements up to each; no error."""
    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {"x": Input("M N", nonfinite=("-inf",), views=tuple(views))},
        "outputs": {"y": Output("M N", padded="padded" in views)},
        "reference": lambda x: np.maximum.accumulate(x, axis=1),
        "bound": exact(),
    }


def sort(*, descending: bool = False, sizes: tuple[int, ...] = (1, 2, 16, 64, 128)) -> Schema:
    """`x` [M, N] -> `y` [M, N], each row sorted; no error. `sizes`: of N (a bitonic kernel takes powers of two)."""
    return {
        "dims": {"M": ROWS, "N": sizes},
        "inputs": {"x": Input("M N", nonfinite=("-inf", "inf"))},
        "outputs": {"y": Output("M N")},
        "reference": lambda x: -np.sort(-x, axis=1) if descending else np.sort(x, axis=1),
        "bound": exact(),
    }


def top_k(*, k: tuple[int, ...] = (1, 2, 8), block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`x` [M, N] -> `values` [M, K] in descending order, `indices` [M, K] int32; of equal values the lower index first.
    N >= K."""

    def reference(x: F64, K: int) -> tuple[F64, Any]:
        order = np.argsort(-x, axis=1, kind="stable")[:, :K]
        return np.take_along_axis(x, order, axis=1), order

    return {
        "dims": {"M": ROWS, "N": columns(block), "K": k},
        "where": lambda N, K: N >= K,
        "inputs": {"x": Input("M N", views=tuple(views))},
        "outputs": {"values": Output("M K"), "indices": Output("M K", dtype="int32")},
        "reference": reference,
        "bound": exact(),
    }


def _along(
    name: str,
    reference: Callable[[F64], Any],
    running: Callable[[Running], Running] | None,
    says: str,
    block: int,
    views: Views,
    dtype: str | None,
) -> Schema:
    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {"x": Input("M N", largest=LARGEST, views=tuple(views))},
        "outputs": {name: Output("M", dtype=dtype)},
        "reference": lambda x: reference(x),
        "bound": exact() if running is None else formula(lambda x: running(x), says, family="sum"),
    }
