"""Quantise and dequantise: integers and 8-bit floats with a scale for each row or for each group of a row.

scale    max|x| / top of the group, at least `least` / top: a group of zeros has zeros and a finite scale. Relative
         error 5u (a division and its operand).
q        round(x / scale), clamped. The kernel divides by its own scale: x / scale has relative error 12u, so an integer
         may differ from the exact quotient by 1/2 + 12u |q| (the nearest one, or its neighbour at a tie), and an 8-bit
         float by half its spacing there and the same 12u.
"""

from __future__ import annotations

import numpy as np

from gpuemu.bounds import Bound, Exact, Model, exact
from gpuemu.bounds.model import LEAST32, U32
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64, FORMATS
from gpuemu.schemas.schema import BLOCK, Schema, Views, columns

LEAST = 1e-10


def quantise_int8(*, least: float = LEAST, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`x` [M, N] -> `q` [M, N] int8 in [-127, 127], `scale` [M] float32 = max(max|x|, least) / 127."""
    return _quantise(127.0, "int8", None, least, block, views)


def quantise_fp8(
    *,
    dtype: str = "float8_e4m3fn",
    group: int | None = None,
    least: float = LEAST,
    block: int = BLOCK,
    views: Views = ("padded",),
) -> Schema:
    """`x` [M, N] -> `q` [M, N] of an 8-bit float `dtype`, `scale` [M] float32, or [M, N/group]: one for each `group`
    elements of a row."""
    schema = _quantise(FORMATS[dtype].largest, dtype, group, least, block, views)
    return schema | {"targets": ("sm_89", "sm_90")}


def _quantise(top: float, dtype: str, group: int | None, least: float, block: int, views: Views) -> Schema:
    def scales(x: F64) -> F64:
        width = group or max(x.shape[1], 1)
        padded = np.zeros((x.shape[0], -(-x.shape[1] // width) * width))
        padded[:, : x.shape[1]] = np.abs(x)
        out: F64 = np.maximum(padded.reshape(x.shape[0], -1, width).max(axis=2), least) / top
        return out

    def reference(x: F64) -> tuple[F64, F64]:
        s = scales(x)
        wide = np.repeat(s, group or max(x.shape[1], 1), axis=1)[:, : x.shape[1]]
        return np.clip(x / wide, -top, top), s if group else s[:, 0]

    def bound(exact: Exact) -> Bound:
        q, s = (np.abs(exact.outputs[n]) for n in ("q", "scale"))
        half = 0.5 if dtype == "int8" else 0.0
        return {"q": half + 12 * U32 * q + LEAST32, "scale": 5 * U32 * s + LEAST32}

    return {
        "dims": {"M": (1, 3, 16), "N": columns(block)},
        "inputs": {"x": Input("M N", largest=2.0**14, views=tuple(views))},
        "outputs": {
            "q": Output("M N", dtype=dtype, padded="padded" in views),
            "scale": Output(f"M N/{group}" if group else "M", dtype="float32"),
        },
        "reference": reference,
        "bound": Model(bound, f"quantised to {dtype}, scale and quotient in binary32", family="quantise"),
    }


def dequantise(
    *, dtype: str = "int8", group: int | None = None, block: int = BLOCK, views: Views = ("padded",)
) -> Schema:
    """`q` [M, N] of `dtype`, `scale` [M] float32 (or [M, N/group]) -> `y` = q * scale in the case's dtype; one rounding
    in binary32."""

    def reference(q: F64, scale: F64) -> F64:
        wide = scale[:, None] if group is None else np.repeat(scale, group, axis=1)[:, : q.shape[1]]
        return q.astype(np.float64) * wide

    values = Input("M N", dtype=dtype, views=tuple(views))
    if dtype not in FORMATS:
        values = Input("M N", dtype=dtype, low=-127, high=128, views=tuple(views))
    return {
        "dims": {"M": (1, 3, 16), "N": columns(block)},
        "inputs": {"q": values, "scale": Input(f"M N/{group}" if group else "M", dtype="float32", kind="scale")},
        "outputs": {"y": Output("M N", padded="padded" in views)},
        "reference": reference,
        "bound": Model(
            lambda run: U32 * np.abs(run.outputs["y"]) + LEAST32, "product in binary32", family="elementwise"
        ),
        **({} if dtype not in FORMATS else {"targets": ("sm_89", "sm_90")}),
    }


def cast(*, dtype: str, largest: float | None = None) -> Schema:
    """`x` [N] -> `y` [N] of `dtype`: one conversion, rounded to nearest, ties to even; 8-bit floats saturate."""
    fields: Schema = {
        "dims": {"N": (0, 1, 17, 127, 128, 129, 1000)},
        "inputs": {"x": Input("N", largest=largest, views=("offset",))},
        "outputs": {"y": Output("N", dtype=dtype)},
        "reference": lambda x: x,
        "bound": exact(),
    }
    return fields | ({"targets": ("sm_89", "sm_90")} if FORMATS[dtype].itemsize == 1 else {})
