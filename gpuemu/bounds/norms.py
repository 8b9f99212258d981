"""Rows divided by a statistic of theirs: layer normalisation and RMS normalisation.

Both are computed in binary32 from a row held whole, or in tiles with two passes; the division by the row's length is
div.full (4u) or better. `eps` is the op's own constant.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuemu.bounds.model import F64, LEAST32, U32, Bound, Exact, Model
from gpuemu.bounds.sums import tree_depth

_ROOT = 8.0
"""u of 1/sqrt(v): rsqrt.approx 1 ulp = 2u; sqrt 1 ulp and a division of 2 ulp 6u; v + eps and eps itself
half of u each; rounded up."""


def layernorm(
    x: str,
    *,
    eps: float,
    weight: str | None = None,
    bias: str | None = None,
    y: str = "y",
    mean: str | None = None,
    rstd: str | None = None,
    depth: Callable[[int], int] = tree_depth,
) -> Model:
    """(x - mean) * rstd * weight + bias over the last axis; `mean` and `rstd` name outputs, if the op has them.

    The mean has error m = (depth + 5)u * mean|x|, the same for all elements of a row, and each difference d = x - mean
    one rounding of its own. The differences add up to zero, so m enters the variance only as m**2: with v the exact
    variance, |error| <= m**2 + (depth + 8)u * (v + m**2). Then 1/sqrt is evaluated at both ends of that interval (a
    row of equal values far from zero can be anything between 1/sqrt(eps + error) and 1/sqrt(eps)).
    """

    def evaluate(exact: Exact) -> Bound:
        values = exact.inputs[x]
        n = values.shape[-1]
        steps = depth(n)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            centre = values.mean(axis=-1, keepdims=True)
            m = (steps + 5) * U32 * np.abs(values).mean(axis=-1, keepdims=True) * (1 + 2 * steps * U32) + LEAST32
            d = values - centre
            v = (d * d).mean(axis=-1, keepdims=True)
            off = m * m + (steps + 8) * U32 * (v + m * m) * (1 + steps * U32) + 2 * LEAST32
            true = 1 / np.sqrt(v + eps)
            highest = 1 / np.sqrt(np.maximum(v + eps - off, eps * (1 - 2 * U32))) * (1 + _ROOT * U32)
            lowest = 1 / np.sqrt(v + eps + off) * (1 - _ROOT * U32)
            spread = np.maximum(highest - true, true - lowest)
            w = np.abs(exact.inputs[weight]) if weight is not None and weight in exact.inputs else 1.0
            b = np.abs(exact.inputs[bias]) if bias is not None and bias in exact.inputs else 0.0
            moved = m + U32 * (np.abs(d) + m)
            size = (np.abs(d) + moved) * highest * w
            bound: F64 = (moved * highest + np.abs(d) * spread) * w + 3 * U32 * size + U32 * (size + b) + 3 * LEAST32
        bounds = {y: bound}
        if mean is not None:
            bounds[mean] = m[..., 0]
        if rstd is not None:
            bounds[rstd] = spread[..., 0]
        return dict(bounds)

    return Model(evaluate, "layernorm in binary32", family="layernorm")


def rmsnorm(
    x: str,
    *,
    eps: float,
    weight: str | None = None,
    y: str = "y",
    rstd: str | None = None,
    depth: Callable[[int], int] = tree_depth,
) -> Model:
    """x * rstd * weight with rstd = 1/sqrt(mean(x**2) + eps) over the last axis; `rstd` names an output.

    All squares are positive: their mean has relative error (depth + 6)u, the root half of that and its own.
    """

    def evaluate(exact: Exact) -> Bound:
        values = exact.inputs[x]
        steps = depth(values.shape[-1])
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            root = 1 / np.sqrt((values * values).mean(axis=-1, keepdims=True) + eps)
            share = U32 * ((steps + 6) / 2 + _ROOT)
            share = share * (1 + 2 * share)
            w = np.abs(exact.inputs[weight]) if weight is not None and weight in exact.inputs else 1.0
            bound: F64 = (share + 3 * U32) * np.abs(values) * root * w + LEAST32 * (1 + w)
        bounds = {y: bound}
        if rstd is not None:
            bounds[rstd] = share * root[..., 0]
        return dict(bounds)

    return Model(evaluate, "rmsnorm in binary32", family="rmsnorm")
