"""Gated activations and rotary embeddings.

`gate`, `up` [M, N] -> `y` = activation(gate) * up; gradients with the upstream `dy`.
"""

from __future__ import annotations

import numpy as np

from gpuemu.bounds import Running, formula
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.elementwise import ERF, gelu_tanh64, gelu_tanh_running, sigmoid64
from gpuemu.schemas.schema import BLOCK, Schema, Views, columns

LARGEST = 2.0**10


def swiglu(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """gate * sigmoid(gate) * up. The activation may be rounded to the dtype before the product, as in most models: the
    error model allows that."""

    def running(gate: Running, up: Running, dtype: str) -> Running:
        return (gate * gate.sigmoid()).narrowed(dtype) * up

    return _gated(lambda g, u: g * sigmoid64(g) * u, formula(running, "swiglu in binary32"), block, views)


def geglu(*, approximate: bool = True, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """gelu(gate) * up, by the tanh approximation or by erf; the activation may be rounded to the dtype."""

    def running(gate: Running, up: Running, dtype: str) -> Running:
        if approximate:
            return gelu_tanh_running(gate).narrowed(dtype) * up
        y = 0.5 * gate.value * (1 + ERF(gate.value / np.sqrt(2.0)))
        size = np.abs(gate.value) / 2 * 7 * 2.0**-24 + 2.0**-23 * np.abs(y) + 2.0**-149  # bounds.gelu
        return Running(y, size).narrowed(dtype) * up

    def reference(g: F64, u: F64) -> F64:
        if approximate:
            return gelu_tanh64(g) * u
        out: F64 = 0.5 * g * (1 + ERF(g / np.sqrt(2.0))) * u
        return out

    return _gated(reference, formula(running, "geglu in binary32"), block, views)


def swiglu_backward(*, block: int = BLOCK, views: Views = ("padded",)) -> Schema:
    """`dy`, `gate`, `up` [M, N] -> `dgate` = dy up (s + gate s (1 - s)), `dup` = dy gate s, with s = sigmoid(gate)."""

    def reference(dy: F64, gate: F64, up: F64) -> tuple[F64, F64]:
        s = sigmoid64(gate)
        return dy * up * (s * (1 + gate * sigmoid64(-gate))), dy * (gate * s)

    def running(dy: Running, gate: Running, up: Running) -> tuple[Running, Running]:
        s = gate.sigmoid()
        complement = -s + 1.0
        slope = s + gate * s * complement
        slope = slope.looser(s, gate * s, count=3.0)
        return dy * up * slope, dy * (gate * s)

    return {
        "dims": {"M": (1, 3, 16), "N": columns(block)},
        "inputs": {
            "dy": Input("M N", kind="gradient", largest=LARGEST, views=tuple(views)),
            "gate": Input("M N", largest=LARGEST, views=tuple(views)),
            "up": Input("M N", largest=LARGEST, views=tuple(views)),
        },
        "outputs": {"dgate": Output("M N", padded="padded" in views), "dup": Output("M N", padded="padded" in views)},
        "reference": reference,
        "bound": formula(running, "swiglu gradient in binary32"),
    }


def _gated(reference: object, bound: object, block: int, views: Views) -> Schema:
    def call(gate: F64, up: F64) -> F64:
        out: F64 = reference(gate, up)  # type: ignore[operator]
        return out

    return {
        "dims": {"M": (1, 3, 16), "N": columns(block)},
        "inputs": {
            "gate": Input("M N", largest=LARGEST, views=tuple(views)),
            "up": Input("M N", largest=LARGEST, views=tuple(views)),
        },
        "outputs": {"y": Output("M N", padded="padded" in views)},
        "reference": call,
        "bound": bound,
    }


def rope(*, inplace: bool = False, interleaved: bool = False, views: Views = ()) -> Schema:
    """Rotary embedding of `x` [S, H, 2*P] with `cos`, `sin` [S, P] -> `y` (or `x` itself, `inplace`).

    The halves x1, x2 (first and second P elements, or even and odd ones where `interleaved`) become x1 cos - x2 sin and
    x2 cos + x1 sin. Two products and a sum: 2u of |x1 cos| + |x2 sin|. Exact mode.
    """

    def halves(x: F64) -> tuple[F64, F64]:
        p = x.shape[-1] // 2
        return (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :p], x[..., p:])

    def joined(a: F64, b: F64) -> F64:
        if interleaved:
            return np.stack([a, b], axis=-1).reshape(*a.shape[:-1], 2 * a.shape[-1])
        return np.concatenate([a, b], axis=-1)

    def reference(x: F64, cos: F64, sin: F64) -> F64:
        a, b = halves(x)
        c, s = cos[:, None], sin[:, None]
        return joined(a * c - b * s, b * c + a * s)

    def running(x: Running, cos: Running, sin: Running) -> Running:
        (a, b), zero = halves(x.value), np.zeros(())
        c, s = cos[:, None], sin[:, None]
        left, right = Running(a, zero), Running(b, zero)
        first, second = left * c - right * s, right * c + left * s
        return Running(joined(first.value, second.value), joined(first.error, second.error))

    return {
        "dims": {"S": (0, 1, 5, 33), "H": (1, 2, 5), "P": (1, 8, 31, 32, 64)},
        "inputs": {
            "x": Input("S H 2*P", largest=2.0**14, views=tuple(views)),
            "cos": Input("S P", within=(-1.0, 1.0)),
            "sin": Input("S P", within=(-1.0, 1.0)),
        },
        "outputs": {"y": Output(inplace="x") if inplace else Output("S H 2*P")},
        "reference": reference,
        "bound": formula(running, "rotation in binary32"),
        "linear": "",
    }
