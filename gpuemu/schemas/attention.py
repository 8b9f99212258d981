"""Attention: full, causal, with a sliding window, with fewer key heads, of packed sequences, of paged keys; gradients.

Forward error model: `bounds/attention.py` (scores, exponentials, narrowing of the probabilities, second product), for
each head and sequence by itself. The log-sum-exp has the errors of the scores, then of the sum and the logarithm. The
gradients are running error analysis of the usual five products, with probabilities and score gradients rounded to the
inputs' format before they are multiplied.

A query that sees no key gives zeros and a log-sum-exp of -inf. float32 products are tf32 by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuemu.bounds import Exact, Model, Running, causal_mask, formula
from gpuemu.bounds import attention as attention_model
from gpuemu.bounds.model import TINY32, U32
from gpuemu.bounds.products import dot_bound, product_words
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.schema import Schema

TF32 = {"float32": "tf32"}
Bools = np.ndarray[Any, np.dtype[np.bool_]]


def seen_by(queries: int, keys: int, causal: bool, window: int | None) -> Bools:
    """[queries, keys], True where a query sees a key. The last query sees the last key; `window`: at most so many keys,
    the query's own position included."""
    seen = causal_mask(queries, keys) if causal else np.ones((queries, keys), np.bool_)
    if window is not None:
        place = np.arange(queries)[:, None] + (keys - queries)
        seen = seen & (np.arange(keys)[None, :] > place - window)
    return seen


def attend(q: F64, k: F64, v: F64, seen: Bools, scale: float) -> tuple[F64, F64]:
    """(output, log-sum-exp) of [..., S, D] arrays in float64."""
    if k.shape[-2] == 0:
        return np.zeros((*q.shape[:-1], v.shape[-1])), np.full(q.shape[:-1], -np.inf)
    s = np.where(seen, q @ np.swapaxes(k, -1, -2) * scale, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    p = np.exp(s - safe)
    total = p.sum(axis=-1, keepdims=True)
    return p / np.where(total == 0, 1.0, total) @ v, (safe + np.log(total))[..., 0]


def lse_error(q: F64, k: F64, seen: Bools, scale: float, dtype: str, device: str, mode: str | None, tile: int) -> F64:
    """Bound on the error of a log-sum-exp of scores: see `bounds/attention.py` for its terms."""
    if k.shape[-2] == 0:
        return np.zeros(q.shape[:-1])
    turned = np.swapaxes(k, -1, -2)
    s = np.where(seen, q @ turned * scale, -np.inf)
    top = s.max(axis=-1)
    z = np.where(seen, s - np.where(np.isfinite(top), top, 0.0)[..., None], 0.0)
    tiles = -(-k.shape[-2] // tile)
    off = dot_bound(q, turned, dtype, device, mode) * scale + 3 * U32 * np.where(seen, np.abs(s), 0.0)
    p = np.where(seen, np.exp(z), 0.0)
    total = p.sum(axis=-1)
    safe = np.where(total > 0, total, 1.0)
    # What matters is the error of each score where its exponential counts; that of the maximum itself cancels.
    r = np.expm1(off + U32 * (3 * np.abs(z) + 4 + 5 * (tiles + 1)))
    sums = (p * r).sum(axis=-1) / safe + U32 * (-(-k.shape[-2] // 32) + 24 + tiles) + k.shape[-2] * TINY32
    log = sums * (1 + sums) + np.log(2.0) * 2.0**-22 * np.maximum(np.log2(safe) + 1, 1.0) + 3 * U32 * np.log(safe)
    out: F64 = log + 4 * U32 * (np.where(np.isfinite(top), np.abs(top), 0.0) + np.log(safe))
    return out


def attention(
    *,
    causal: bool = False,
    window: int | None = None,
    lse: bool = False,
    grouped: bool = False,
    tile: int = 64,
    precision: Mapping[str, str] | None = None,
    scale: float | None = None,
) -> Schema:
    """`q` [B, H, SQ, D], `k`, `v` [B, H, SK, D] -> `o` [B, H, SQ, D].

    `grouped`: keys and values have HK heads, H % HK == 0, and head h uses head h // (H / HK). `window`: sliding window
    of so many keys. `lse`: also `lse` [B, H, SQ] float32, natural logarithm. `tile`: keys an iteration. `scale`: of the
    scores (None = D**-0.5). More queries than keys is a case, also causal.
    """
    heads = "HK" if grouped else "H"
    modes = dict(precision or TF32)

    def widened(array: F64, many: int) -> F64:
        return np.repeat(array, many // array.shape[1], axis=1)

    def factor(width: int) -> float:
        return width**-0.5 if scale is None else scale

    def reference(q: F64, k: F64, v: F64) -> dict[str, F64] | F64:
        seen = seen_by(q.shape[2], k.shape[2], causal, window)
        o, total = attend(q, widened(k, q.shape[1]), widened(v, q.shape[1]), seen, factor(q.shape[3]))
        return {"o": o, "lse": total} if lse else o

    plain = attention_model(
        "q",
        "k",
        "v",
        mask=lambda a, b: seen_by(a, b, causal, window),
        tile=tile,
        precision=modes,
        out="o",
        scale=factor,
    )

    def evaluate(exact: Exact) -> dict[str, F64]:
        q = exact.inputs["q"]
        k, v = (widened(exact.inputs[n], q.shape[1]) for n in ("k", "v"))
        one = Exact({"q": q, "k": k, "v": v}, {}, exact.dims, exact.dtype, exact.device)
        bounds = dict(plain(one))  # type: ignore[arg-type]
        if lse:
            seen = seen_by(q.shape[2], k.shape[2], causal, window)
            mode = modes.get(exact.dtype)
            bounds["lse"] = lse_error(q, k, seen, factor(q.shape[3]), exact.dtype, exact.device, mode, tile)
        return bounds  # type: ignore[return-value]

    outputs = {"o": Output("B H SQ D")}
    if lse:
        outputs["lse"] = Output("B H SQ", dtype="float32")
    schema: Schema = {
        "dims": {
            "B": (1, 2), "H": (1, 2, 4), "SQ": (1, 33, tile, tile + 1),
            "SK": (1, tile // 2 - 1, tile - 1, tile, tile + 1, tile + 33, 2 * tile, 2 * tile + 1), "D": (16, 40, 64),
        },
        "inputs": {
            "q": Input("B H SQ D", largest=8),
            "k": Input(f"B {heads} SK D", largest=8),
            "v": Input(f"B {heads} SK D", largest=1024),
        },
        "outputs": outputs,
        "reference": reference,
        "bound": Model(evaluate, plain.says, modes, "attention", product_words),
        "memory": 1 << 19,
    }  # fmt: skip
    if grouped:
        schema["dims"] = schema["dims"] | {"HK": (1, 2)}
        schema["where"] = lambda H, HK: H % HK == 0
    return schema


def varlen_attention(*, causal: bool = False, tile: int = 64, precision: Mapping[str, str] | None = None) -> Schema:
    """Packed sequences: `q`, `k`, `v` [T, H, D], `offsets` [B+1] int32 (sequence b has rows offsets[b] ..
    offsets[b+1]-1, perhaps none) -> `o` [T, H, D]. Nothing is seen across sequences."""
    modes = dict(precision or TF32)
    plain = attention_model(
        "q", "k", "v", mask=lambda a, b: seen_by(a, b, causal, None), tile=tile, precision=modes, out="o"
    )

    def pieces(offsets: Any) -> list[slice]:
        ends = [int(e) for e in offsets]
        return [slice(a, b) for a, b in zip(ends, ends[1:], strict=False) if b > a]

    def heads_first(array: F64) -> F64:
        return np.swapaxes(array, 0, 1)

    def reference(q: F64, k: F64, v: F64, offsets: Any) -> F64:
        out = np.zeros(q.shape)
        for part in pieces(offsets):
            n = part.stop - part.start
            a, b, c = (heads_first(array[part]) for array in (q, k, v))
            out[part] = heads_first(attend(a, b, c, seen_by(n, n, causal, None), q.shape[2] ** -0.5)[0])
        return out

    def evaluate(exact: Exact) -> F64:
        arrays = [exact.inputs[n] for n in ("q", "k", "v")]
        out = np.zeros(arrays[0].shape)
        for part in pieces(exact.inputs["offsets"]):
            given = {n: heads_first(a[part]) for n, a in zip(("q", "k", "v"), arrays, strict=True)}
            one = Exact(given, {}, exact.dims, exact.dtype, exact.device)
            out[part] = heads_first(np.asarray(dict(plain(one))["o"]))  # type: ignore[arg-type]
        return out

    return {
        "dims": {"T": (1, 31, tile, tile + 1, 2 * tile + 3), "B": (1, 2, 5), "H": (1, 2), "D": (16, 64)},
        "inputs": {
            "q": Input("T H D", largest=8), "k": Input("T H D", largest=8), "v": Input("T H D", largest=1024),
            "offsets": Input("B+1", dtype="int32", kind="offsets", high="T"),
        },
        "outputs": {"o": Output("T H D")},
        "reference": reference,
        "bound": Model(evaluate, plain.says, modes, "attention", product_words),
    }  # fmt: skip


def paged_attention(*, page: int = 16, tile: int = 16, precision: Mapping[str, str] | None = None) -> Schema:
    """One query a sequence over keys in pages: `q` [B, H, D]; `k_pages`, `v_pages` [P, page, HK, D]; `table` [B, L]
    int32 (which page holds each piece of a sequence); `lengths` [B] int32 -> `o` [B, H, D].

    Only the first lengths[b] keys count; what lies in a page beyond them, and pages that no sequence uses, must not
    matter: they hold NaN. H % HK == 0; P = B * L pages and one more.
    """
    modes = dict(precision or TF32)
    plain = attention_model("q", "k", "v", tile=tile, precision=modes, out="o")

    def sequences(k_pages: F64, v_pages: F64, table: Any, lengths: Any, *, heads: int) -> list[tuple[F64, F64]]:
        found = []
        for row, length in zip(table.astype(int), lengths.astype(int), strict=True):
            both = [a[row].reshape(-1, *a.shape[2:])[:length] for a in (k_pages, v_pages)]
            both = [np.repeat(np.swapaxes(a, 0, 1), heads // a.shape[1], axis=0) for a in both]
            found.append((both[0], both[1]))
        return found

    def reference(q: F64, k_pages: F64, v_pages: F64, table: Any, lengths: Any) -> F64:
        out = np.zeros(q.shape)
        for b, (k, v) in enumerate(sequences(k_pages, v_pages, table, lengths, heads=q.shape[1])):
            seen = np.ones((1, k.shape[1]), np.bool_)
            out[b] = attend(q[b][:, None], k, v, seen, q.shape[2] ** -0.5)[0][:, 0]
        return out

    def evaluate(exact: Exact) -> F64:
        q = exact.inputs["q"]
        out = np.zeros(q.shape)
        arrays = (exact.inputs[n] for n in ("k_pages", "v_pages", "table", "lengths"))
        for b, (k, v) in enumerate(sequences(*arrays, heads=q.shape[1])):
            if k.shape[1]:
                one = Exact({"q": q[b][:, None], "k": k, "v": v}, {}, exact.dims, exact.dtype, exact.device)
                out[b] = np.asarray(dict(plain(one))["o"])[:, 0]  # type: ignore[arg-type]
        return out

    def some_lengths(table: Any, L: int) -> Any:
        """From 1 to the L pages' keys, as irregular as the table."""
        return 1 + (table[:, 0] * 37 + table[:, -1]) % (L * page)

    def unused(values: F64, table: Any, lengths: Any) -> F64:
        """The pages with NaN wherever no sequence looks."""
        keep = np.zeros(values.shape[:2], np.bool_)
        for row, length in zip(table.astype(int), lengths.astype(int), strict=True):
            for piece, number in enumerate(row):
                keep[number, : max(0, min(page, length - piece * page))] = True
        return np.where(keep[:, :, None, None], values, np.nan)

    return {
        "dims": {"B": (1, 3), "H": (1, 4), "HK": (1, 2), "D": (16, 64), "L": (1, 2, 5)},
        "where": lambda H, HK: H % HK == 0,
        "inputs": {
            "table": Input("B L", dtype="int32", kind="unique", high=16),
            "lengths": Input("B", dtype="int32", derived=some_lengths),
            "q": Input("B H D", largest=8),
            "k_raw": Input(f"16 {page} HK D", largest=8),
            "v_raw": Input(f"16 {page} HK D", largest=1024),
            "k_pages": Input(f"16 {page} HK D", derived=lambda k_raw, table, lengths: unused(k_raw, table, lengths)),
            "v_pages": Input(f"16 {page} HK D", derived=lambda v_raw, table, lengths: unused(v_raw, table, lengths)),
        },
        "outputs": {"o": Output("B H D")},
        "reference": reference,
        "bound": Model(evaluate, plain.says, modes, "attention", product_words),
    }  # fmt: skip


def attention_backward(*, causal: bool = False, precision: Mapping[str, str] | None = None) -> Schema:
    """Gradients from `q` [B, H, SQ, D], `k`, `v` [B, H, SK, D], saved `o`, `lse` [B, H, SQ] (float32), upstream `do` ->
    `dq`, `dk`, `dv`.

    With p = exp(s - lse), dp = do v^T, delta = sum(do o), ds = p (dp - delta): dv = p^T do, dq = scale ds k, dk = scale
    ds^T q. The kernel gets o rounded to the dtype, and so does the reference. `delta` may be float32.
    """
    modes = dict(precision or TF32)

    def saved(q: F64, k: F64, v: F64) -> tuple[F64, F64]:
        return attend(q, k, v, seen_by(q.shape[2], k.shape[2], causal, None), q.shape[3] ** -0.5)

    def reference(q: F64, k: F64, v: F64, o: F64, lse: F64, do: F64) -> tuple[F64, F64, F64]:
        seen = seen_by(q.shape[2], k.shape[2], causal, None)
        scale = q.shape[3] ** -0.5
        s = q @ np.swapaxes(k, -1, -2) * scale
        finite = np.isfinite(lse)[..., None]
        p = np.where(seen & finite, np.exp(s - np.where(finite, lse[..., None], 0.0)), 0.0)
        ds = p * (do @ np.swapaxes(v, -1, -2) - (do * o).sum(axis=-1, keepdims=True))
        turned = np.swapaxes(ds, -1, -2)
        return ds @ k * scale, turned @ q * scale, np.swapaxes(p, -1, -2) @ do

    def running(
        q: Running, k: Running, v: Running, o: Running, lse: Running, do: Running, dtype: str, device: str
    ) -> tuple[Running, Running, Running]:
        mode = modes.get(dtype)
        seen = seen_by(q.value.shape[2], k.value.shape[2], causal, None) & np.isfinite(lse.value)[..., None]
        scale = Running(np.array(q.value.shape[3] ** -0.5), np.array(3 * U32))
        s = q.dot(k.turned, dtype, device, mode) * scale
        safe = Running(np.where(np.isfinite(lse.value), lse.value, 0.0), lse.error)
        shifted = s - safe[..., None]
        shifted = shifted.looser(s, safe[..., None], count=3.0)  # log2 e multiplied in before the difference
        p = shifted.exp().where(seen)
        delta = (do * o).sum(-1, keepdims=True)
        dp = do.dot(v.turned, dtype, device, mode)
        ds = (p * (dp - delta)).looser(p * dp, p * delta, count=2.0)
        # Rounded once as p and ds, or with the scale multiplied in before the rounding.
        p, ds = p.narrowed(dtype), ds.narrowed(dtype)
        ds = ds.looser(ds, count=2.0)
        dq = ds.dot(k, dtype, device, mode) * scale
        dk = ds.turned.dot(q, dtype, device, mode) * scale
        return dq.looser(dq), dk.looser(dk), p.turned.dot(do, dtype, device, mode)

    return {
        "dims": {"B": (1, 2), "H": (1, 2), "SQ": (1, 33, 64, 65), "SK": (1, 31, 64, 65, 129), "D": (16, 64)},
        "inputs": {
            "q": Input("B H SQ D", largest=8),
            "k": Input("B H SK D", largest=8),
            "v": Input("B H SK D", largest=64),
            "o": Input("B H SQ D", derived=lambda q, k, v: saved(q, k, v)[0]),
            "lse": Input("B H SQ", dtype="float32", derived=lambda q, k, v: saved(q, k, v)[1]),
            "do": Input("B H SQ D", kind="gradient", largest=64),
        },
        "outputs": {"dq": Output("B H SQ D"), "dk": Output("B H SK D"), "dv": Output("B H SK D")},
        "reference": reference,
        "bound": formula(running, "attention gradient in binary32", precision=modes, products=product_words),
        "memory": 1 << 18,
    }
