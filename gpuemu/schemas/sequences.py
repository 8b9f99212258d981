"""Convolutions, dropout, and the routing of mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuemu.bounds import Running, constant, formula, lift
from gpuemu.bounds.products import product_words
from gpuemu.gate.bits import U32 as Words
from gpuemu.gate.bits import philox
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.elementwise import sigmoid64
from gpuemu.schemas.matmul import TF32
from gpuemu.schemas.schema import BLOCK, Schema


def causal_conv1d(*, activation: str | None = None, block: int = BLOCK) -> Schema:
    """Depthwise and causal: `x` [B, C, L], `weight` [C, W], `bias` [C] (optional) -> `y` [B, C, L].

    y[b, c, t] = bias[c] + sum over w of weight[c, w] x[b, c, t - W + 1 + w], with zeros before the start. `activation`:
    None or "silu". W additions in binary32; exact mode without an activation.
    """

    def windows(x: F64, width: int) -> F64:
        padded = np.concatenate([np.zeros((*x.shape[:2], width - 1)), x], axis=2)
        return np.lib.stride_tricks.sliding_window_view(padded, width, axis=2)

    def reference(x: F64, weight: F64, bias: F64 | None) -> F64:
        y: F64 = (windows(x, weight.shape[1]) * weight[None, :, None, :]).sum(axis=3)
        y = y if bias is None else y + bias[None, :, None]
        return y * sigmoid64(y) if activation == "silu" else y

    def running(x: Running, weight: Running, W: int, bias: Running | None = None) -> Running:
        y = (lift(windows(x.value, W)) * weight[None, :, None, :]).sum(3, depth=W)
        if bias is not None:
            # The bias may come first: then it passes through every addition.
            y = (y + bias[None, :, None]).looser(bias[None, :, None], count=float(W))
        return y * y.sigmoid() if activation == "silu" else y

    return {
        "dims": {"B": (1, 2), "C": (1, 3, 17), "L": (1, 2, 31, block - 1, block, block + 1), "W": (2, 3, 4)},
        "inputs": {
            "x": Input("B C L", largest=2.0**10),
            "weight": Input("C W", largest=2.0**6),
            "bias": Input("C", largest=2.0**10, optional=True),
        },
        "outputs": {"y": Output("B C L")},
        "reference": reference,
        "bound": formula(running, "convolution in binary32"),
        "linear": None if activation else "W",
    }


def conv1d(*, stride: int = 1, padding: int = 1, precision: Mapping[str, str] | None = None) -> Schema:
    """`x` [B, C, L], `weight` [F, C, W] -> `y` [B, F, O], O = (L + 2 padding - W) // stride + 1, with zeros around.

    A product over C*W terms (bounds/products.py). Exact mode.
    """
    modes = dict(precision or TF32)

    def windows(x: F64, width: int) -> F64:
        around = ((0, 0), (0, 0), (padding, padding))
        cut = np.lib.stride_tricks.sliding_window_view(np.pad(x, around), width, axis=2)[:, :, ::stride]
        b, c, o, w = cut.shape
        return cut.transpose(0, 2, 1, 3).reshape(b, o, c * w)

    def reference(x: F64, weight: F64) -> F64:
        flat = weight.reshape(weight.shape[0], -1)
        return np.swapaxes(windows(x, weight.shape[2]) @ flat.T, 1, 2)

    def running(x: Running, weight: Running, dtype: str, device: str) -> Running:
        flat = lift(weight.value.reshape(weight.value.shape[0], -1).T)
        return lift(windows(x.value, weight.value.shape[2])).dot(flat, dtype, device, modes.get(dtype)).turned

    return {
        "dims": {"B": (1, 2), "C": (1, 3, 16, 17), "F": (1, 5, 16, 33), "L": (3, 8, 31, 33, 64), "W": (1, 3)},
        "inputs": {"x": Input("B C L", largest=2.0**10), "weight": Input("F C W", largest=2.0**10)},
        "outputs": {"y": Output(f"B F (L+{2 * padding}-W)//{stride}+1")},
        "reference": reference,
        "bound": formula(running, "convolution in binary32", precision=modes, products=product_words, family="dot"),
        "linear": "C W",
    }


def uniform(seed: int, offsets: Words) -> F64:
    """`tl.rand(seed, offsets)`: Philox 4x32-10 with the offset as counter, its first word folded into [0, 1), binary32.

    Source: Triton's `tl.rand`; Salmon et al., SC'11 (`gate/bits.py`).
    """
    zero = np.zeros(offsets.shape, np.uint64)
    word = philox((offsets.astype(np.uint64), zero, zero, zero), (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF))[0]
    signed = word.astype(np.uint32).view(np.int32)
    folded = np.where(signed < 0, -signed - 1, signed).astype(np.float32)
    return (folded * np.float32(4.6566127342e-10)).astype(np.float64)


def dropout(
    *, p: tuple[float, ...] = (0.0, 0.25, 0.5), seeds: tuple[int, ...] = (123, 7), block: int = BLOCK
) -> Schema:
    """`x` [N] -> `y` [N] = x / (1 - p) where tl.rand(seed, n) > p, else 0. Options `p` and `seed` go to the launcher.

    The mask is a matter of bits, the same in a backward pass; the quotient has 4u and the rounding of 1 - p.
    """

    def kept(x: F64, seed: int, p: float) -> Any:
        return uniform(seed, np.arange(x.size, dtype=np.uint32)) > np.float64(np.float32(p))

    def running(x: Running, p: float | None = None, seed: int = 0) -> Running:
        chance = p or 0.0
        return (x / (lift(1.0) - constant(chance))).looser(x, count=4.0).where(kept(x.value, seed, chance))

    return {
        "dims": {"N": (1, 17, block - 1, block, block + 1, 8 * block - 24)},
        "inputs": {"x": Input("N", largest=2.0**14)},
        "outputs": {"y": Output("N")},
        "options": {"p": p, "seed": seeds},
        "reference": lambda x, p, seed: np.where(kept(x, seed, p), x / (1 - p), 0.0),
        "bound": formula(running, "quotient in binary32"),
    }


def moe_routing(*, k: tuple[int, ...] = (1, 2, 4), renormalise: bool = True) -> Schema:
    """`logits` [T, E] -> `weights` [T, K] float32, `experts` [T, K] int32: the K largest logits, of equal ones the
    lower expert first, with their softmax (over the K: `renormalise`; else over all E). E >= K.

    A kernel chooses by the logits: probabilities of different logits can round to equal ones, and then another expert
    is first.
    """

    def chosen(x: F64, K: int) -> Any:
        return np.argsort(-x, axis=1, kind="stable")[:, :K]

    def reference(logits: F64, K: int) -> tuple[F64, Any]:
        order = chosen(logits, K)
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        top = np.take_along_axis(e, order, axis=1)
        return top / (top if renormalise else e).sum(axis=1, keepdims=True), order

    def running(logits: Running, K: int) -> tuple[Running, Running]:
        order = chosen(logits.value, K)
        e = (logits - logits.max(1, keepdims=True)).exp()
        top = Running(*(np.take_along_axis(a, order, axis=1) for a in (e.value, e.error)))
        weights = top / (top if renormalise else e).sum(1, keepdims=True, depth=lambda n: n + 4)
        if renormalise:  # dividing softmax probabilities by their sum: once more
            weights = weights.looser(weights, count=16.0)
        return weights, Running(order.astype(np.float64), np.zeros(order.shape))

    return {
        "dims": {"T": (1, 5, 16, 33), "E": (2, 8, 31, 64), "K": k},
        "where": lambda E, K: E >= K,
        "inputs": {"logits": Input("T E", largest=2.0**7)},
        "outputs": {"weights": Output("T K", dtype="float32"), "experts": Output("T K", dtype="int32")},
        "reference": reference,
        "bound": formula(running, "softmax of the chosen in binary32"),
    }


def moe_combine() -> Schema:
    """`x` [T*K, D], `place` [T, K] int32 (different rows of x), `weights` [T, K] float32 -> `y` [T, D] = sum over k of
    weights[t, k] x[place[t, k]]. K products and sums in binary32; exact mode."""

    def reference(x: F64, place: Any, weights: F64) -> F64:
        out: F64 = (x[place] * weights[:, :, None]).sum(axis=1)
        return out

    def running(x: Running, place: Any, weights: Running, K: int) -> Running:
        return (x[place] * weights[:, :, None]).sum(1, depth=K)

    return {
        "dims": {"T": (1, 5, 33), "K": (1, 2, 4), "D": (1, 16, BLOCK - 1, BLOCK, BLOCK + 1)},
        "inputs": {
            "x": Input("T*K D", largest=2.0**10),
            "place": Input("T K", dtype="int32", kind="unique", high="T*K"),
            "weights": Input("T K", dtype="float32", within=(0.0, 1.0)),
        },
        "outputs": {"y": Output("T D")},
        "reference": reference,
        "bound": formula(running, "weighted sum in binary32"),
        "linear": "K",
    }
