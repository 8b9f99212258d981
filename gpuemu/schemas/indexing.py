"""Gather and scatter: embedding tables, gather along an axis, permutation of rows, scatter-add with duplicates.

Gathers copy: no error, exact mode. A scatter-add adds in any order (atomics): the number of rows that meet in one place
is the depth of its sum, and each addition may flush a subnormal; with integers every order gives the same, and the
bound is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuemu.bounds import Running, exact, formula
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.schema import BLOCK, Schema, Views

WIDE = (1, 16, 31, BLOCK - 1, BLOCK, BLOCK + 1)


def embedding(*, views: Views = ("padded",)) -> Schema:
    """`table` [V, D], `index` [N] int32 -> `y` [N, D] = table[index]."""
    return {
        "dims": {"V": (1, 7, 50), "N": (0, 1, 5, 33), "D": WIDE},
        "inputs": {
            "table": Input("V D", views=tuple(views)),
            "index": Input("N", dtype="int32", high="V"),
        },
        "outputs": {"y": Output("N D", padded="padded" in views)},
        "reference": lambda table, index: table[index],
        "bound": exact(),
        "linear": "",
    }


def gather(*, index_dtype: str = "int64") -> Schema:
    """`x` [M, N], `index` [M, K] -> `y` [M, K]: y[m, k] = x[m, index[m, k]] (torch.gather along the last axis)."""
    return {
        "dims": {"M": (1, 5, 16), "N": (1, 2, 63, BLOCK + 1), "K": WIDE},
        "inputs": {"x": Input("M N"), "index": Input("M K", dtype=index_dtype, high="N")},
        "outputs": {"y": Output("M K")},
        "reference": lambda x, index: np.take_along_axis(x, index.astype(np.int64), axis=1),
        "bound": exact(),
        "linear": "",
    }


def permute_rows(*, inverse: bool = False) -> Schema:
    """`x` [N, D], `order` [N] int32, a permutation -> `y` [N, D] = x[order]; `inverse`: y[order] = x."""

    def reference(x: F64, order: Any) -> F64:
        out: F64 = x[order]
        if inverse:
            out = np.empty_like(x)
            out[order] = x
        return out

    return {
        "dims": {"N": (1, 5, 33, 64), "D": WIDE},
        "inputs": {"x": Input("N D"), "order": Input("N", dtype="int32", kind="unique", high="N")},
        "outputs": {"y": Output("N D")},
        "reference": reference,
        "bound": exact(),
        "linear": "",
    }


def scatter_add(*, dtype: str | None = "float32") -> Schema:
    """`x` [N, D], `index` [N] int32 with many duplicates -> `y` [V, D], which is 0 before and gets y[index[n]] += x[n].

    `dtype`: of y; float32 unless the kernel adds in the case's own (None), where each addition rounds to it.
    """

    def reference(x: F64, index: Any, V: int) -> F64:
        out = np.zeros((V, x.shape[1]))
        np.add.at(out, index, x)
        return out

    def running(x: Running, index: Any, V: int, dtype: str) -> Running:
        total, size = (reference(a, index, V) for a in (x.value, np.abs(x.value)))
        count = reference(np.ones(x.value.shape), index, V)
        return Running(total, size * count * 2.0**-24 + count * 2.0**-125)

    return {
        "dims": {"N": (1, 5, 33, 64), "V": (1, 3, 50), "D": WIDE},
        "inputs": {
            "x": Input("N D", largest=2.0**14),
            "index": Input("N", dtype="int32", kind="duplicates", high="V"),
        },
        "outputs": {"y": Output("V D", dtype=dtype, fill=0.0)},
        "reference": reference,
        "bound": formula(running, "sum in binary32, in any order"),
        "linear": "N",
    }


def index_put(*, views: Views = ("padded",)) -> Schema:
    """`y` [V, D], written in place: y[index[n]] = x[n] for different `index` [N]; other rows keep what they hold. The
    launcher takes `x`, `index`, `y`."""

    def reference(x: F64, index: Any, y: F64) -> F64:
        out = y.copy()
        out[index] = x
        return out

    return {
        "dims": {"N": (1, 5, 33), "V": (33, 50), "D": WIDE},
        "inputs": {
            "x": Input("N D"),
            "index": Input("N", dtype="int32", kind="unique", high="V"),
            "y": Input("V D", views=tuple(views)),
        },
        "outputs": {"written": Output(inplace="y")},
        "reference": reference,
        "bound": exact(),
        "linear": "",
    }
