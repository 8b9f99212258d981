"""Exponentials along rows: softmax, its logarithm, log-sum-exp, and the gradient of softmax.

Arguments: `x` [M, N] -> `y` [M, N] (`lse` [M]). -inf is an ordinary value of these ops; a row of only -inf has no
softmax (the reference gives NaN) and the log-sum-exp -inf.
"""

from __future__ import annotations

import numpy as np

from gpuemu.bounds import Running, formula
from gpuemu.bounds import softmax as softmax_model
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.schema import BLOCK, Schema, Views, columns

ROWS = (1, 3, 16)


def softmax64(x: F64) -> F64:
    """Softmax over the last axis in float64."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    out: F64 = e / e.sum(axis=-1, keepdims=True)
    return out


def lse64(x: F64) -> F64:
    """Log-sum-exp over the last axis in float64; -inf for a row of -inf."""
    top = x.max(axis=-1)
    out: F64 = top + np.log(np.exp(x - np.where(np.isfinite(top), top, 0.0)[..., None]).sum(axis=-1))
    return out


def lse_running(x: Running, depth: int | None = None) -> Running:
    """Log-sum-exp over the last axis; `depth`: additions a term passes through (default: a tree and a loop)."""
    top = x.max(-1)
    safe = Running(np.where(np.isfinite(top.value), top.value, 0.0), top.error)
    n = x.value.shape[-1]
    steps = depth if depth is not None else -(-n // 32) + 24
    # A one-pass kernel multiplies a term by one more exponential a tile: 5u each, as in bounds.cross_entropy.
    e = (x - safe[..., None]).exp()
    total = e.sum(-1, depth=steps)
    return safe + Running(total.value, total.error * (1 + 2.0**-20) + 6 * 2.0**-24 * (-(-n // 128)) * total.value).log()


def softmax(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """exp(x - max) / sum. Model: ex2.approx 2 ulp, division 2 ulp, the sum's depth (bounds.softmax)."""
    return _rows(softmax64, block, views, softmax_model("x"), ("-inf", "nan"))


def log_softmax(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """(x - max) - log(sum exp(x - max)), or x - lse."""

    def running(x: Running) -> Running:
        top = x.max(-1, keepdims=True)
        z = x - top
        first = z - z.exp().sum(-1, keepdims=True).log()
        second = x - lse_running(x)[..., None]
        return Running(first.value, np.fmax(first.error, second.error))

    def reference(x: F64) -> F64:
        z = x - x.max(axis=-1, keepdims=True)
        out: F64 = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        return out

    return _rows(reference, block, views, formula(lambda x: running(x), "log-softmax in binary32"), ("-inf",))


def logsumexp(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """max + log(sum exp(x - max)) of each row: `x` [M, N] -> `lse` [M], float32."""
    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {"x": Input("M N", nonfinite=("-inf",), views=tuple(views))},
        "outputs": {"lse": Output("M", dtype="float32")},
        "reference": lambda x: lse64(x),
        "bound": formula(lambda x: lse_running(x), "log-sum-exp in binary32"),
    }


def softmax_backward(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """dx = y * (dy - sum(y * dy)) from the saved result `y` and the upstream gradient `dy`, all [M, N]."""
    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {
            "y": Input("M N", within=(0.0, 1.0), views=tuple(views)),
            "dy": Input("M N", kind="gradient", largest=2.0**10, views=tuple(views)),
        },
        "outputs": {"dx": Output("M N", padded="padded" in views)},
        "reference": lambda y, dy: y * (dy - (y * dy).sum(axis=-1, keepdims=True)),
        "bound": formula(lambda y, dy: y * dy - y * (y * dy).sum(-1, keepdims=True), "softmax gradient in binary32"),
    }


def _rows(reference: object, block: int, views: Views, bound: object, nonfinite: tuple[str, ...]) -> Schema:
    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {"x": Input("M N", nonfinite=nonfinite, views=tuple(views))},
        "outputs": {"y": Output("M N", padded="padded" in views)},
        "reference": reference,
        "bound": bound,
    }
