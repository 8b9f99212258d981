"""softmax(q k^T * scale + mask) v, whole or online (flash): one derivation for both.

With exact scores s, maximum m, z = s - m, p = exp(z), l = sum p and o = sum (p/l) v, a kernel errs like this:

scores        the product's own bound (`dot_bound`) times the scale, and 3u|s| (scale with log2 e, product).
exponential   the score's error and 3u|z| are relative errors of p, ex2.approx adds 4u. An online kernel multiplies by
              one more exponential a tile; their arguments have one sign and add up to z, and each adds 5u.
narrowing     p is rounded to the inputs' format before the second product (relative u of the format, absolute half of
              its smallest subnormal); the denominator is summed from the unrounded p.
underflow     ex2.approx.ftz (tl.exp2) gives 0 below 2**-126, and a tf32 operand has no bits there either: each key may
              lose 2**-126 of its p. A flushed rescaling factor takes no more: it bounds what it multiplied.
second dot    the tensor core's share of sum p|v|, where a subnormal p counts as the smallest normal.
division      4u.

A relative error r_i of p_i moves the result by at most sum (p_i/l) |v_i| (r_i + average r). The result is a mean of v,
so twice the largest |v| of the keys that count bounds it in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gpuemu.bounds.model import LEAST32, TINY32, U32, Bound, Exact, Model
from gpuemu.bounds.products import dot_bound, product_words, tensor_core
from gpuemu.bounds.sums import loop_depth
from gpuemu.gate.dtypes import FORMATS

Mask = Callable[[int, int], "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"]


def causal_mask(queries: int, keys: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """[queries, keys], True where a query sees a key; the last query sees the last key (bottom-right alignment)."""
    seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = np.tri(queries, keys, keys - queries, dtype=np.bool_)
    return seen


def attention(
    q: str,
    k: str,
    v: str,
    *,
    scale: Callable[[int], float] = lambda width: width**-0.5,
    mask: Mask | None = None,
    tile: int = 64,
    out: str | None = None,
    precision: Mapping[str, str] | None = None,
) -> Model:
    """Inputs [..., S, D]. `scale`: of the scores, from D. `mask(Sq, Sk)`: True where a key counts; a query that sees no
    key gives zeros. `tile`: keys an iteration. `precision`: as in `dot`. `out`: the output (None = every output).
    """
    modes = dict(precision or {})

    def evaluate(exact: Exact) -> Bound:
        x, y, w = exact.inputs[q], exact.inputs[k], exact.inputs[v]
        mode = modes.get(exact.dtype)
        form = FORMATS[exact.dtype]
        factor = scale(x.shape[-1])
        keys = y.shape[-2]
        tiles = -(-keys // tile)
        seen = np.ones((x.shape[-2], keys), bool) if mask is None else mask(x.shape[-2], keys)
        turned = np.swapaxes(y, -1, -2)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            s = np.where(seen, (x @ turned) * factor, -np.inf)
            top = s.max(axis=-1, keepdims=True)
            z = np.where(seen, s - np.where(np.isfinite(top), top, 0.0), -np.inf)
            p = np.exp(z)
            total = p.sum(axis=-1, keepdims=True)
            share = np.where(total > 0, p / np.where(total > 0, total, 1.0), 0.0)
            off = dot_bound(x, turned, exact.dtype, exact.device, mode) * factor
            off = off + 3 * U32 * np.abs(np.where(seen, s, 0.0))
            # The maximum is off as well, but by the same for every key: it cancels.
            r = np.expm1(off + U32 * (3 * np.abs(np.where(seen, z, 0.0)) + 4 + 5 * (tiles + 1)))
            r = np.where(seen, r, 0.0)
            narrow = 0.0 if exact.dtype == "float32" else form.unit
            tf32 = 2.0**-10 if mode == "tf32" else 0.0
            size = np.abs(w)
            core = tensor_core(exact.device, exact.dtype)
            second = -(-keys // core.length) * core.share if exact.dtype != "float32" or tf32 else keys * U32
            average = (share * r).sum(axis=-1, keepdims=True) + loop_depth(tile)(keys) * U32
            relative = r + average + narrow + 2 * tf32 + second * (1 + second) + (tiles + 8) * U32
            relative = relative + r * average  # second order
            # What each p loses where it is tiny, whatever its weight: see 'underflow'.
            floor = TINY32 if exact.dtype == "float32" else TINY32 + form.smallest / 2 + second * form.smallest_normal
            counted = seen[:, :, None] * 1.0
            weights = np.where(total > 0, floor / np.where(total > 0, total, 1.0), 0.0)
            bound = (share * relative) @ size + weights * (seen * 1.0) @ size + LEAST32 * (keys + 2)
            largest = (counted * size[..., None, :, :]).max(axis=-2)
            bound = np.minimum(bound, 2 * largest)
            bound = np.where(np.isnan(bound), 2 * largest, bound)
        return {out: bound} if out else bound

    return Model(
        evaluate, "attention in binary32, probabilities in the inputs' format", modes, "attention", product_words
    )
