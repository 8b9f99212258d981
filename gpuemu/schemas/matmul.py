"""Matrix products: plain, batched, grouped, split along K, with scales in 8 bits, and with a fused epilogue.

Error models: `bounds/products.py` (tensor cores by architecture, tf32, fma), plus one rounding for each scale, bias and
partial sum. float32 products are tf32 by default, as `tl.dot` makes them; state `precision={"float32": "ieee"}` where
the kernel asks for more. The verdict says which.

All but the quantised ones have the exact mode: integers whose products add up exactly in any order. K = 0 is a case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuemu.bounds import Exact, Model, Running, dot, formula, fused_dot, lift
from gpuemu.bounds import exact as exactly
from gpuemu.bounds.model import TINY32
from gpuemu.bounds.products import product_words
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.elementwise import ERF, gelu_tanh64, sigmoid64
from gpuemu.schemas.schema import TILE, Schema, Views

TF32 = {"float32": "tf32"}
LARGEST = 2.0**10
FP8 = ("float8_e4m3fn", "float8_e5m2")
FP8_TARGETS = ("sm_89", "sm_90")

ACTIVATIONS: Mapping[str, tuple[Callable[[F64], F64], float, float]] = {
    "none": (lambda y: y, 1.0, 0.0),
    "relu": (lambda y: np.maximum(y, 0.0), 1.0, 0.0),
    "silu": (lambda y: y * sigmoid64(y), 1.1, 16.0),
    "gelu": (lambda y: 0.5 * y * (1 + ERF(y / np.sqrt(2.0))), 1.13, 8.0),
    "gelu_tanh": (gelu_tanh64, 1.13, 16.0),
}
"""Name: (function, largest derivative, its own error in ulp of binary32 of its argument's magnitude).

gelu and silu by exponentials lose at most 12u absolutely where 1 cancels, times |y|/2, and 6u relatively."""


def around(tile: int, *more: int) -> tuple[int, ...]:
    """Sizes along a tiled dim: 1, around one tile, two tiles and one more."""
    return tuple(sorted({1, tile - 1, tile, tile + 1, 2 * tile + 3, *more}))


def deep(tile: int) -> tuple[int, ...]:
    """Sizes of K: nothing, one, around one and two tiles, several and a prime."""
    return (0, 1, 17, tile - 1, tile, tile + 1, 2 * tile, 3 * tile + 1, 4 * tile)


def matmul(
    *, tile: int = TILE, precision: Mapping[str, str] | None = None, views: Views = ("padded",), **given: Any
) -> Schema:
    """`a` [M, K] @ `b` [K, N] -> `c` [M, N]. `views`: add "transposed" for a kernel that takes every stride. `given`:
    fields of Output for c, such as dtype."""
    return {
        "dims": {"M": around(tile), "N": around(tile), "K": deep(tile)},
        "inputs": {
            "a": Input("M K", largest=LARGEST, views=tuple(views)),
            "b": Input("K N", largest=LARGEST, views=tuple(views)),
        },
        "outputs": {"c": Output("M N", padded="padded" in views, **given)},
        "reference": lambda a, b: a @ b,
        "bound": dot("a", "b", precision=precision or TF32),
        "linear": "K",
    }


def batched_matmul(
    *, tile: int = TILE, precision: Mapping[str, str] | None = None, views: Views = ("padded", "expanded")
) -> Schema:
    """`a` [B, M, K] @ `b` [B, K, N] -> `c` [B, M, N]. "expanded": one matrix stands for the batch (batch stride 0)."""
    return {
        "dims": {"B": (1, 2, 3), "M": around(tile), "N": around(tile), "K": deep(tile)},
        "inputs": {
            "a": Input("B M K", largest=LARGEST, views=tuple(views)),
            "b": Input("B K N", largest=LARGEST, views=tuple(views)),
        },
        "outputs": {"c": Output("B M N", padded="padded" in views)},
        "reference": lambda a, b: a @ b,
        "bound": dot("a", "b", precision=precision or TF32),
        "linear": "K",
    }


def split_k_matmul(*, chunk: int, tile: int = TILE, precision: Mapping[str, str] | None = None) -> Schema:
    """As `matmul`, with K split into parts of `chunk` elements that are added up in binary32 (a temporary and a second
    kernel, or atomics). One more addition a part."""
    return matmul(tile=tile, views=()) | {"bound": dot("a", "b", precision=precision or TF32, chunk=chunk)}


def atomic_split_k_matmul(*, chunk: int, tile: int = TILE, precision: Mapping[str, str] | None = None) -> Schema:
    """`split_k_matmul` whose parts are added with atomics into `c`, float32, which the caller has set to 0."""
    schema = split_k_matmul(chunk=chunk, tile=tile, precision=precision)
    plain: Model = schema["bound"]

    def evaluate(exact: Exact) -> F64:
        parts = -(-exact.dims["K"] // chunk)
        return np.asarray(plain(exact)) + 2 * parts * TINY32  # an atomic addition flushes subnormals

    return schema | {
        "outputs": {"c": Output("M N", dtype="float32", fill=0.0)},
        "bound": Model(evaluate, plain.says, plain.precision, "dot", product_words),
    }


def grouped_matmul(*, tile: int = TILE, precision: Mapping[str, str] | None = None) -> Schema:
    """Rows of `a` [T, K] by groups, each with a matrix of its own: `b` [G, K, N], `offsets` [G+1] int32 (group g has
    rows offsets[g] .. offsets[g+1]-1, perhaps none) -> `c` [T, N]."""

    def reference(a: F64, b: F64, offsets: np.ndarray[Any, Any]) -> F64:
        out = np.zeros((a.shape[0], b.shape[2]))
        for group, matrix in enumerate(b):
            rows = slice(int(offsets[group]), int(offsets[group + 1]))
            out[rows] = a[rows] @ matrix
        return out

    modes = dict(precision or TF32)
    plain = dot("a", "b", precision=modes)

    def evaluate(exact: Exact) -> F64:
        a, b, offsets = exact.inputs["a"], exact.inputs["b"], exact.inputs["offsets"].astype(int)
        out = np.zeros((a.shape[0], b.shape[2]))
        for group, matrix in enumerate(b):
            rows = slice(offsets[group], offsets[group + 1])
            one = Exact({"a": a[rows], "b": matrix}, {}, exact.dims, exact.dtype, exact.device)
            out[rows] = np.asarray(plain(one))
        return out

    return {
        "dims": {"T": (1, tile - 1, tile + 1, 3 * tile + 5), "G": (1, 2, 5), "N": around(tile), "K": deep(tile)},
        "inputs": {
            "a": Input("T K", largest=LARGEST),
            "b": Input("G K N", largest=LARGEST),
            "offsets": Input("G+1", dtype="int32", kind="offsets", high="T"),
        },
        "outputs": {"c": Output("T N")},
        "reference": reference,
        "bound": Model(evaluate, "sum of a*b in binary32", modes, "dot", product_words),
        "linear": "K",
    }


def fused_matmul(
    activation: str = "relu",
    *,
    tile: int = TILE,
    precision: Mapping[str, str] | None = None,
    views: Views = ("padded",),
) -> Schema:
    """activation(`a` @ `b` + `bias`) -> `c`; `bias` [N] is optional (cases with and without). `activation`: a key of
    ACTIVATIONS."""
    function, slope, ulps = ACTIVATIONS[activation]

    def reference(a: F64, b: F64, bias: F64 | None) -> F64:
        return function(a @ b + (0.0 if bias is None else bias))

    schema = matmul(tile=tile, views=views)
    schema["inputs"]["bias"] = Input("N", largest=LARGEST, optional=True)
    return schema | {
        "reference": reference,
        "bound": fused_dot("a", "b", bias="bias", slope=slope, ulps=ulps, precision=precision or TF32),
        "linear": "K" if activation in ("none", "relu") else None,
    }


def fp8_matmul(scaling: str = "tensor", *, tile: int = TILE, group: int = TILE, views: Views = ("padded",)) -> Schema:
    """`a` [M, K] @ `b` [K, N] in 8-bit floats with float32 scales -> `c` [M, N] bfloat16.

    `scaling` "tensor": `a_scale`, `b_scale` [1]. "row": `a_scale` [M], `b_scale` [N]. "block": `a_scale` [M, K/group],
    `b_scale` [K/group, N/group], applied to each block's partial product. On sm_89 and sm_90 the tensor cores keep 13
    bits while they add (bounds/products.py); a kernel that promotes its partial sums does better, and is within it.
    """
    if scaling == "block":
        return _block_scaled(tile, group, views)
    shapes = {"tensor": ("1", "1"), "row": ("M", "N")}[scaling]

    def factor(a_scale: F64, b_scale: F64) -> F64:
        return a_scale[:, None] * b_scale[None, :]

    def running(a: Running, b: Running, a_scale: Running, b_scale: Running, dtype: str, device: str) -> Running:
        scale = a_scale[:, None] * b_scale[None, :]
        product = a.dot(b, dtype, device)
        return (product * scale).looser(product * scale, count=1.0)

    schema = matmul(tile=tile, views=views)
    schema["inputs"] |= {
        "a": Input("M K", largest=2.0**6, views=tuple(views)),
        "b": Input("K N", largest=2.0**6, views=tuple(views)),
        "a_scale": Input(shapes[0], dtype="float32", kind="scale"),
        "b_scale": Input(shapes[1], dtype="float32", kind="scale"),
    }
    return schema | {
        "dtypes": FP8,
        "targets": FP8_TARGETS,
        "outputs": {"c": Output("M N", dtype="bfloat16", padded="padded" in views)},
        "reference": lambda a, b, a_scale, b_scale: a @ b * factor(a_scale, b_scale),
        "bound": formula(running, "scaled sum of a*b in binary32", family="dot", products=product_words),
        "linear": "K",
    }


def _block_scaled(tile: int, group: int, views: Views) -> Schema:
    def parts(a: F64, b: F64) -> list[slice]:
        return [slice(k, k + group) for k in range(0, a.shape[1], group)]

    def reference(a: F64, b: F64, a_scale: F64, b_scale: F64) -> F64:
        out = np.zeros((a.shape[0], b.shape[1]))
        wide = np.repeat(b_scale, group, axis=1)[:, : b.shape[1]]
        for i, part in enumerate(parts(a, b)):
            out += a[:, part] @ b[part] * a_scale[:, i, None] * wide[i]
        return out

    def running(a: Running, b: Running, a_scale: Running, b_scale: Running, dtype: str, device: str) -> Running:
        out = lift(np.zeros((a.value.shape[0], b.value.shape[1])))
        wide = lift(np.repeat(b_scale.value, group, axis=1)[:, : b.value.shape[1]])
        for i, part in enumerate(parts(a.value, b.value)):
            product = a[:, part].dot(b[part], dtype, device)
            scaled = product * (a_scale[:, i, None] * wide[i])
            out = out + scaled.looser(scaled, count=1.0)
        return out

    return {
        "dims": {"M": around(tile), "N": around(tile), "K": (1, group - 1, group, group + 1, 2 * group, 3 * group + 5)},
        "dtypes": FP8,
        "targets": FP8_TARGETS,
        "inputs": {
            "a": Input("M K", largest=2.0**6, views=tuple(views)),
            "b": Input("K N", largest=2.0**6, views=tuple(views)),
            "a_scale": Input(f"M K/{group}", dtype="float32", kind="scale"),
            "b_scale": Input(f"K/{group} N/{group}", dtype="float32", kind="scale"),
        },
        "outputs": {"c": Output("M N", dtype="bfloat16", padded="padded" in views)},
        "reference": reference,
        "bound": formula(running, "block-scaled sum of a*b in binary32", family="dot", products=product_words),
        "linear": "K",
    }


def int8_matmul(*, scaled: bool = False, tile: int = TILE, views: Views = ("padded",)) -> Schema:
    """`a` [M, K] @ `b` [K, N] of int8 -> `c` [M, N] int32, exact. `scaled`: times `a_scale` [M] and `b_scale` [N]
    float32 -> `c` in the case's dtype; the integer sum rounds once when it becomes binary32, each scale once more."""
    integer: dict[str, Any] = {"dtype": "int8", "low": -128, "high": 128, "views": tuple(views)}
    schema: Schema = matmul(tile=tile, views=views) | {"linear": None}
    schema["inputs"] = {"a": Input("M K", **integer), "b": Input("K N", **integer)}
    if not scaled:
        return schema | {
            "dtypes": ("int8",),
            "outputs": {"c": Output("M N", dtype="int32", padded="padded" in views)},
            "reference": lambda a, b: a.astype(np.int64) @ b.astype(np.int64),
            "bound": exactly(),
        }
    schema["inputs"] |= {
        "a_scale": Input("M", dtype="float32", kind="scale"),
        "b_scale": Input("N", dtype="float32", kind="scale"),
    }

    def running(a: Any, b: Any, a_scale: Running, b_scale: Running) -> Running:
        total = lift((a @ b).astype(np.float64))
        scaled = total * (a_scale[:, None] * b_scale[None, :])
        return scaled.looser(scaled, count=2.0)

    return schema | {
        "reference": lambda a, b, a_scale, b_scale: (
            (a.astype(np.int64) @ b.astype(np.int64)) * (a_scale[:, None] * b_scale[None, :])
        ),
        "bound": formula(running, "scaled integer product"),
    }


def int4_weight_matmul(*, group: int = 32, tile: int = TILE) -> Schema:
    """`a` [M, K] @ dequantised weights -> `c` [M, N]. `packed` [K/2, N] uint8 holds two 4-bit weights a byte (the even
    row in the low half), `scale` [K/group, N]; w = (q - 8) * scale in binary32, rounded to the case's dtype."""

    def weights(packed: Any, scale: F64, K: int) -> F64:
        q = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1, packed.shape[1])[:K].astype(np.float64) - 8
        out: F64 = q * np.repeat(scale, group, axis=0)[:K]
        return out

    def running(a: Running, packed: Any, scale: Running, K: int, dtype: str, device: str) -> Running:
        w = weights(packed, scale.value, K)
        rounded = Running(w, np.abs(w) * 2.0**-24).narrowed(dtype)
        return a.dot(rounded, dtype, device, TF32.get(dtype))

    return {
        "dims": {"M": around(tile), "N": around(tile), "K": (group, 2 * group, 3 * group, 5 * group)},
        "inputs": {
            "a": Input("M K", largest=LARGEST),
            "packed": Input("K/2 N", dtype="uint8", low=0, high=256),
            "scale": Input(f"K/{group} N", kind="scale", largest=2.0**6),
        },
        "outputs": {"c": Output("M N")},
        "reference": lambda a, packed, scale, K: a @ weights(packed, scale, K),
        "bound": formula(running, "product with dequantised weights", precision=TF32, products=product_words),
    }
