"""Normalisations and their gradients.

Arguments: `x` [M, N] -> `y` [M, N], normalised over N. Statistics that a forward pass saves are derived from `x` and
rounded to float32, as a backward kernel gets them; its reference uses the rounded ones, too. Gradients of weights are
sums over the M rows, in any order (partial sums and a second kernel, or atomics into zeros).
"""

from __future__ import annotations

import numpy as np

from gpuemu.bounds import Running, constant, formula
from gpuemu.bounds import layernorm as layernorm_model
from gpuemu.bounds import rmsnorm as rmsnorm_model
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.schema import BLOCK, Schema, Views, columns

ROWS = (1, 3, 16)
LARGEST = 2.0**12


def layer_norm(
    *, eps: float = 1e-5, affine: bool = True, stats: bool = False, block: int = BLOCK, views: Views = ("padded",)
) -> Schema:
    """(x - mean) / sqrt(var + eps) * weight + bias. `affine`: with `weight` and `bias` [N]; `stats`: outputs `mean` and
    `rstd` [M], float32. Model: bounds.layernorm (an error of the mean enters the variance squared)."""
    inputs = {"x": Input("M N", largest=LARGEST, views=tuple(views))}
    outputs = {"y": Output("M N", padded="padded" in views)}
    if affine:
        inputs |= {"weight": Input("N", largest=2.0**6), "bias": Input("N", largest=2.0**6)}
    if stats:
        outputs |= {"mean": Output("M", dtype="float32"), "rstd": Output("M", dtype="float32")}

    def plain(x: F64, weight: F64 | None = None, bias: F64 | None = None) -> tuple[F64, ...]:
        mean = x.mean(axis=-1)
        rstd = 1 / np.sqrt(x.var(axis=-1) + eps)
        y = (x - mean[:, None]) * rstd[:, None]
        y = y if weight is None else y * weight + bias
        return (y, mean, rstd) if stats else (y,)

    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": inputs,
        "outputs": outputs,
        "reference": plain,
        "bound": layernorm_model(
            "x", eps=eps, weight="weight", bias="bias", mean="mean" if stats else None, rstd="rstd" if stats else None
        ),
    }


def layer_norm_backward(*, eps: float = 1e-5, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`dy`, `x` [M, N], `weight` [N], saved `mean`, `rstd` [M] float32 -> `dx` [M, N], `dw`, `db` [N].

    With xhat = (x - mean) rstd and g = dy weight: dx = (g - mean(g) - xhat mean(g xhat)) rstd, dw = sum(dy xhat), db =
    sum(dy) over the rows.
    """

    def reference(dy: F64, x: F64, weight: F64, mean: F64, rstd: F64) -> tuple[F64, F64, F64]:
        r = rstd[:, None]
        xhat, g = (x - mean[:, None]) * r, dy * weight
        along = (g * xhat).mean(axis=1, keepdims=True)
        return (g - g.mean(axis=1, keepdims=True) - xhat * along) * r, (dy * xhat).sum(axis=0), dy.sum(axis=0)

    def running(
        dy: Running, x: Running, weight: Running, mean: Running, rstd: Running, M: int
    ) -> tuple[Running, Running, Running]:
        r = rstd[:, None]
        xhat, g = (x - mean[:, None]) * r, dy * weight
        along = (g * xhat).mean(1, keepdims=True)
        centre = g.mean(1, keepdims=True)
        dx = ((g - (xhat * along + centre)) * r).looser(g * r, xhat * along * r, centre * r)
        return dx, (dy * xhat).sum(0, depth=M, atomic=True), dy.sum(0, depth=M, atomic=True)

    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {
            "dy": Input("M N", kind="gradient", largest=2.0**8, views=tuple(views)),
            "x": Input("M N", largest=LARGEST, views=tuple(views)),
            "weight": Input("N", largest=2.0**4),
            "mean": Input("M", dtype="float32", derived=lambda x: x.mean(axis=1)),
            "rstd": Input("M", dtype="float32", derived=lambda x: 1 / np.sqrt(x.var(axis=1) + eps)),
        },
        "outputs": {"dx": Output("M N", padded="padded" in views), "dw": Output("N"), "db": Output("N")},
        "reference": reference,
        "bound": formula(running, "layernorm gradient in binary32"),
    }


def rms_norm(*, eps: float = 1e-6, affine: bool = True, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """x / sqrt(mean(x**2) + eps) * weight. Model: bounds.rmsnorm (all squares are positive)."""
    inputs = {"x": Input("M N", largest=2.0**15, views=tuple(views))}
    if affine:
        inputs["weight"] = Input("N", largest=2.0**6)

    def reference(x: F64, weight: F64 | float = 1.0) -> F64:
        out: F64 = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight
        return out

    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": inputs,
        "outputs": {"y": Output("M N", padded="padded" in views)},
        "reference": reference,
        "bound": rmsnorm_model("x", eps=eps, weight="weight" if affine else None),
    }


def rms_norm_backward(*, eps: float = 1e-6, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`dy`, `x` [M, N], `weight` [N], saved `rstd` [M] float32 -> `dx` [M, N], `dw` [N].

    With xhat = x rstd and g = dy weight: dx = (g - xhat mean(g xhat)) rstd, dw = sum(dy xhat) over the rows.
    """

    def reference(dy: F64, x: F64, weight: F64, rstd: F64) -> tuple[F64, F64]:
        r = rstd[:, None]
        xhat, g = x * r, dy * weight
        return (g - xhat * (g * xhat).mean(axis=1, keepdims=True)) * r, (dy * xhat).sum(axis=0)

    def running(dy: Running, x: Running, weight: Running, rstd: Running, M: int) -> tuple[Running, Running]:
        r = rstd[:, None]
        xhat, g = x * r, dy * weight
        along = (g * xhat).mean(1, keepdims=True)
        dx = ((g - xhat * along) * r).looser(g * r, xhat * along * r)
        return dx, (dy * xhat).sum(0, depth=M, atomic=True)

    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {
            "dy": Input("M N", kind="gradient", largest=2.0**8, views=tuple(views)),
            "x": Input("M N", largest=LARGEST, views=tuple(views)),
            "weight": Input("N", largest=2.0**4),
            "rstd": Input("M", dtype="float32", derived=lambda x: 1 / np.sqrt((x * x).mean(axis=1) + eps)),
        },
        "outputs": {"dx": Output("M N", padded="padded" in views), "dw": Output("N")},
        "reference": reference,
        "bound": formula(running, "rmsnorm gradient in binary32"),
    }


def group_norm(*, eps: float = 1e-5, block: int = BLOCK) -> Schema:
    """`x` [B, G, C, L], normalised over C and L for each of G groups, times `weight`, plus `bias` [G, C] -> `y`.
    Model: bounds.layernorm over the C*L elements of a group."""

    def reference(x: F64, weight: F64, bias: F64) -> F64:
        mean = x.mean(axis=(2, 3), keepdims=True)
        out: F64 = (x - mean) / np.sqrt(x.var(axis=(2, 3), keepdims=True) + eps)
        return out * weight[None, :, :, None] + bias[None, :, :, None]

    def flat(exact: object) -> dict[str, F64]:
        from gpuemu.bounds import Exact

        assert isinstance(exact, Exact)
        x = exact.inputs["x"]
        b, g, c, length = x.shape
        spread = {n: np.repeat(exact.inputs[n], length, axis=1)[None] for n in ("weight", "bias")}
        rows = Exact({"x": x.reshape(b, g, c * length), **spread}, {}, exact.dims, exact.dtype, exact.device)
        given = layernorm_model("x", eps=eps, weight="weight", bias="bias")(rows)
        assert isinstance(given, dict)
        return {"y": np.asarray(given["y"]).reshape(x.shape)}

    from gpuemu.bounds import Model

    return {
        "dims": {"B": (1, 3), "G": (1, 2), "C": (1, 3, 4), "L": (1, 31, block // 4, block // 4 + 1, block + 1)},
        "inputs": {
            "x": Input("B G C L", largest=LARGEST),
            "weight": Input("G C", largest=2.0**6),
            "bias": Input("G C", largest=2.0**6),
        },
        "outputs": {"y": Output("B G C L")},
        "reference": reference,
        "bound": Model(flat, "group norm in binary32", family="layernorm"),
    }


def l2_norm(*, eps: float = 1e-12, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """x / sqrt(sum(x**2) + eps)."""

    def running(x: Running) -> Running:
        return x * ((x * x).sum(-1, keepdims=True) + constant(eps)).rsqrt()

    def reference(x: F64) -> F64:
        out: F64 = x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + eps)
        return out

    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {"x": Input("M N", largest=2.0**15, views=tuple(views))},
        "outputs": {"y": Output("M N", padded="padded" in views)},
        "reference": reference,
        "bound": formula(running, "l2 norm in binary32"),
    }


def add_rms_norm(*, eps: float = 1e-6, block: int = BLOCK) -> Schema:
    """residual <- x + residual in place, y = rmsnorm(residual) * weight. Launcher: `x`, `residual` (writable),
    `weight`, `y`. The norm may use the sum before or after its rounding to the dtype: the model allows both."""

    def reference(x: F64, residual: F64, weight: F64, dtype: str) -> dict[str, F64]:
        total = x + residual
        y = total / np.sqrt((total * total).mean(axis=-1, keepdims=True) + eps) * weight
        return {"summed": total, "y": y}

    def running(x: Running, residual: Running, weight: Running, dtype: str) -> dict[str, Running]:
        total = x + residual
        kept = total.narrowed(dtype)
        root = ((kept * kept).mean(-1, keepdims=True) + constant(eps)).rsqrt()
        return {"summed": Running(total.value, np.zeros(total.value.shape)), "y": kept * root * weight}

    return {
        "dims": {"M": ROWS, "N": columns(block)},
        "inputs": {
            "x": Input("M N", largest=LARGEST),
            "residual": Input("M N", largest=LARGEST),
            "weight": Input("N", largest=2.0**6),
        },
        "outputs": {"summed": Output(inplace="residual"), "y": Output("M N")},
        "reference": reference,
        "bound": formula(running, "sum and rmsnorm in binary32"),
    }
