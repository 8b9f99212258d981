"""Exponentials summed along a row: softmax and cross-entropy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuemu.bounds.model import F64, TINY32, U32, Bound, Exact, Model
from gpuemu.bounds.sums import tree_depth


def softmax(x: str, *, axis: int = -1, depth: Callable[[int], int] = tree_depth) -> Model:
    """exp(x - max) / sum over `axis`, in binary32 with ex2.approx and an approximate (or better) division.

    With z = x - max (relative error u, so 3u with log2 e) each exponential has relative error 3u|z| + 4u (2 ulp of
    ex2.approx are at most 4u); the denominator has the average of those, weighted by the exponentials, plus the sum's
    own; the division adds 4u. Exponentials below 2**-126 may be flushed.
    """

    def evaluate(exact: Exact) -> Bound:
        values = exact.inputs[x]
        n = values.shape[axis]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            z = values - values.max(axis=axis, keepdims=True)
            e = np.exp(z)
            size = np.where(e > 0, np.abs(z), 0.0)
            total = e.sum(axis=axis, keepdims=True)
            average = (e * size).sum(axis=axis, keepdims=True) / total
            share = U32 * (3 * size + 3 * average + 4 + 4 + 4 + depth(n))
            bound: F64 = share * (1 + share) * (e / total) + (1 + n * (e / total)) * TINY32 / total
            return bound

    return Model(evaluate, "softmax in binary32 (ex2.approx 2 ulp, division 2 ulp)", family="softmax")


def cross_entropy(x: str, label: str, *, loss: str = "loss", lse: str | None = "lse", tile: int | None = None) -> Model:
    """loss = lse - x[label], lse = max + log(sum exp(x - max)), over the last axis, in binary32.

    `label`: the integer input. `lse`: the output that is the log-sum-exp, if there is one. `tile`: elements that an
    online (one-pass) kernel takes at a time; None = the whole row at once.

    An exponential has relative error 3u|z| + 4u with z = x - max. A one-pass kernel multiplies a term by one more
    exponential a tile; their arguments are all <= 0 and add up to z, so 3u|z| covers them together, and each adds 4u
    and the product's u. The sum has the weighted average of that plus its own. The logarithm turns a relative error
    into an absolute one and adds that of lg2.approx times ln 2, and 2u (constant, product).
    """

    def evaluate(exact: Exact) -> Bound:
        values, labels = exact.inputs[x], exact.inputs[label].astype(np.int64)
        n = values.shape[-1]
        tiles = 1 if tile is None else -(-n // tile)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            top = values.max(axis=-1)
            z = values - top[..., None]
            e = np.exp(z)
            s = e.sum(axis=-1)
            average = (e * np.where(e > 0, np.abs(z), 0.0)).sum(axis=-1) / s
            share = U32 * (3 * average + 5 * (tiles + 1) + tree_depth(min(n, tile or n)) + tiles) + n * TINY32
            share = share * (1 + share)
            bits = np.log2(s)
            logarithm = share + np.log(2.0) * 2.0**-22 * np.maximum(np.abs(bits) + share * 2, 1.0)
            logarithm += 3 * U32 * np.abs(np.log(2.0) * bits)
            whole = logarithm + U32 * (np.abs(top + np.log(s)) + 2 * logarithm)
            at = np.take_along_axis(values, labels[..., None], axis=-1)[..., 0]
            bounds = {loss: whole + U32 * (np.abs(top + np.log(s) - at) + 2 * whole)}
            if lse is not None:
                bounds[lse] = whole
        return dict(bounds)

    return Model(evaluate, "log-sum-exp in binary32 (ex2.approx 2 ulp, lg2.approx 2**-22)", family="cross_entropy")
