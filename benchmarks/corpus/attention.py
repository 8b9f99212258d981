"""Attention: causal with log-sum-exp, grouped heads, sliding window, varlen, paged decoding, merging, backward."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

TF32 = {"float32": "tf32"}
U = 2.0**-24
LOG2E = 1.4426950408889634


@triton.jit(do_not_specialize=["SQ", "SK"])
def flash_kernel(
    q, k, v, o, lse, SQ, SK, scale, D: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    at_q = head * SQ * D + m[:, None] * D + d[None, :]
    x = tl.load(q + at_q, mask=(m < SQ)[:, None], other=0.0)
    kv = (head // GROUP) * SK * D
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, SK, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        at_k = kv + n[:, None] * D + d[None, :]
        y = tl.load(k + at_k, mask=(n < SK)[:, None], other=0.0)
        s = tl.dot(x, tl.trans(y)) * (scale * 1.4426950408889634)
        seen = (n < SK)[None, :]
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None] + (SK - SQ))
        if WINDOW > 0:
            seen = seen & (n[None, :] > m[:, None] + (SK - SQ) - WINDOW)
        s = tl.where(seen, s, -float("inf"))
        new = tl.maximum(highest, tl.max(s, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        alpha = tl.exp2(highest - safe)
        p = tl.exp2(s - safe[:, None])
        total = total * alpha + tl.sum(p, axis=1)
        w = tl.load(v + at_k, mask=(n < SK)[:, None], other=0.0)
        acc = tl.dot(p.to(w.dtype), w, acc * alpha[:, None])
        highest = new
    result = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(o + at_q, result.to(o.dtype.element_ty), mask=(m < SQ)[:, None])
    sum_log = tl.where(total == 0.0, -float("inf"), (highest + tl.log2(total)) * 0.6931471805599453)
    tl.store(lse + head * SQ + m, sum_log, mask=m < SQ)


@triton.jit(do_not_specialize=["longest"])
def varlen_kernel(
    q, k, v, o, cu, longest, scale, D: tl.constexpr, HEADS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    head, sequence = tl.program_id(1), tl.program_id(2)
    first, last = tl.load(cu + sequence), tl.load(cu + sequence + 1)
    length = last - first
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    at_q = (first + m)[:, None] * HEADS * D + head * D + d[None, :]
    x = tl.load(q + at_q, mask=(m < length)[:, None], other=0.0)
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        at_k = (first + n)[:, None] * HEADS * D + head * D + d[None, :]
        y = tl.load(k + at_k, mask=(n < length)[:, None], other=0.0)
        s = tl.where((n < length)[None, :], tl.dot(x, tl.trans(y)) * scale, -float("inf"))
        new = tl.maximum(highest, tl.max(s, axis=1))
        alpha = tl.exp(highest - new)
        p = tl.exp(s - new[:, None])
        total = total * alpha + tl.sum(p, axis=1)
        w = tl.load(v + at_k, mask=(n < length)[:, None], other=0.0)
        acc = tl.dot(p.to(w.dtype), w, acc * alpha[:, None])
        highest = new
    tl.store(o + at_q, (acc / total[:, None]).to(o.dtype.element_ty), mask=(m < length)[:, None])


@triton.jit(do_not_specialize=["pages"])
def paged_kernel(q, k, v, table, length, o, pages, scale, D: tl.constexpr, HEADS: tl.constexpr, PAGE: tl.constexpr):
    sequence, head = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    n = tl.arange(0, PAGE)
    count = tl.load(length + sequence)
    x = tl.load(q + (sequence * HEADS + head) * D + d).to(tl.float32)
    highest = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for page in range(tl.cdiv(count, PAGE)):
        slot = tl.load(table + sequence * pages + page)
        inside = page * PAGE + n < count
        at = ((slot * PAGE + n) * HEADS + head)[:, None] * D + d[None, :]
        y = tl.load(k + at, mask=inside[:, None], other=0.0).to(tl.float32)
        s = tl.sum(y * x[None, :], axis=1) * scale
        s = tl.where(inside, s, -float("inf"))
        new = tl.maximum(highest, tl.max(s, axis=0))
        alpha = tl.exp(highest - new)
        p = tl.exp(s - new)
        w = tl.load(v + at, mask=inside[:, None], other=0.0).to(tl.float32)
        acc = acc * alpha + tl.sum(p[:, None] * w, axis=0)
        total = total * alpha + tl.sum(p, axis=0)
        highest = new
    tl.store(o + (sequence * HEADS + head) * D + d, (acc / total).to(o.dtype.element_ty))


@triton.jit(do_not_specialize=["parts", "rows"])
def merge_kernel(o, lse, y, parts, rows, D: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, D)
    top = -float("inf")
    for part in range(parts):
        top = tl.maximum(top, tl.load(lse + part * rows + row))
    safe = tl.where(top == -float("inf"), 0.0, top)
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for part in range(parts):
        w = tl.exp(tl.load(lse + part * rows + row) - safe)
        total += w
        acc += w * tl.load(o + (part * rows + row) * D + d)
    tl.store(y + row * D + d, acc / tl.where(total == 0.0, 1.0, total))


@triton.jit(do_not_specialize=["SQ", "SK"])
def backward_kv_kernel(
    q, k, v, do, lse, delta, dk, dv, SQ, SK, scale, D: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.arange(0, D)
    at_k = n[:, None] * D + d[None, :]
    y = tl.load(k + at_k, mask=(n < SK)[:, None], other=0.0)
    w = tl.load(v + at_k, mask=(n < SK)[:, None], other=0.0)
    gk = tl.zeros((BLOCK_N, D), tl.float32)
    gv = tl.zeros((BLOCK_N, D), tl.float32)
    for start in range(0, SQ, BLOCK_M):
        m = start + tl.arange(0, BLOCK_M)
        at_q = m[:, None] * D + d[None, :]
        x = tl.load(q + at_q, mask=(m < SQ)[:, None], other=0.0)
        g = tl.load(do + at_q, mask=(m < SQ)[:, None], other=0.0)
        top = tl.load(lse + m, mask=m < SQ, other=float("inf"))
        mean = tl.load(delta + m, mask=m < SQ, other=0.0)
        s = tl.dot(x, tl.trans(y), input_precision="ieee") * scale
        p = tl.exp(s - top[:, None])
        if CAUSAL:
            p = tl.where(n[None, :] <= m[:, None] + (SK - SQ), p, 0.0)
        gv += tl.dot(tl.trans(p), g.to(tl.float32), input_precision="ieee")
        dp = tl.dot(g, tl.trans(w), input_precision="ieee")
        ds = p * (dp - mean[:, None])
        gk += tl.dot(tl.trans(ds), x.to(tl.float32), input_precision="ieee") * scale
    tl.store(dk + at_k, gk.to(dk.dtype.element_ty), mask=(n < SK)[:, None])
    tl.store(dv + at_k, gv.to(dv.dtype.element_ty), mask=(n < SK)[:, None])


def probabilities(q, k, seen):
    s = np.where(seen, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    top = s.max(axis=-1, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(top), top, 0.0))
    total = p.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return p / np.where(total == 0, 1.0, total), (top + np.log(total))[..., 0]


def window_mask(width):
    def mask(SQ, SK):
        at = np.arange(SK)[None, :] - np.arange(SQ)[:, None] - (SK - SQ)
        return (at <= 0) & (at > -width)

    return mask


def lse_bound(q, k, seen, mode):
    """The scores' own error, which the sum can at most pass on, and that of the exponentials and the logarithm."""

    def bound(run):
        x, y = run.inputs[q], np.repeat(run.inputs[k], len(run.inputs[q]) // len(run.inputs[k]), axis=0)
        mask = seen(x.shape[-2], y.shape[-2])
        turned = np.swapaxes(y, -1, -2)
        scale = x.shape[-1] ** -0.5
        s = np.where(mask, x @ turned * scale, -np.inf)
        product = bounds.products.dot_bound(x, turned, run.dtype, run.device, mode.get(run.dtype))
        off = np.where(mask, product * scale, 0)
        size = np.where(mask, np.abs(s), 0.0).max(axis=-1)
        steps = 14 + x.shape[-2] + y.shape[-2]
        return off.max(axis=-1) + U * (8 * size + steps) + 2.0**-22 * (size + 8)

    return bound


def flash_bound(mask, repeat=1):
    attention = bounds.attention("q", "k", "v", mask=mask, precision=TF32, tile=32)
    lse = lse_bound("q", "k", mask, TF32)

    def bound(run):
        same = {n: np.repeat(v, repeat, axis=0) if n in "kv" else v for n, v in run.inputs.items()}
        return {
            "o": attention(bounds.Exact(same, run.outputs, run.dims, run.dtype, run.device)), "lse": lse(run)
        }  # fmt: skip

    return bound


def flash_op(name, *, mask, group=1, causal=True, window=0, dims):
    """Declare the attention `name` with the log-sum-exp as a second output."""
    heads = "G" if group > 1 else "H"

    def reference(q, k, v, SQ, SK):
        k, v = (np.repeat(x, group, axis=0) for x in (k, v))
        p, lse = probabilities(q, k, mask(SQ, SK))
        return p @ v, lse

    @gpuemu.op(
        name=name, dims=dims, reference=reference, bound=flash_bound(mask, group),
        where=(lambda H, G: group * G == H) if group > 1 else None,
        shapes=[
            {"H": group * g, "G": g, "SQ": a, "SK": b} for g, a, b in
            ((1, 1, 1), (1, 31, 31), (2, 16, 33), (2, 33, 64), (1, 40, 70))
        ] if group > 1 else None,
        inputs={
            "q": Input("H SQ 16", largest=8), "k": Input(f"{heads} SK 16", largest=8),
            "v": Input(f"{heads} SK 16", largest=1024),
        },
        outputs={"o": Output("H SQ 16"), "lse": Output("H SQ", "float32")},
    )  # fmt: skip
    def launch(run, q, k, v, o, lse):
        (H, SQ, D), SK = q.shape, k.shape[1]
        options = {"D": D, "GROUP": group, "CAUSAL": causal, "WINDOW": window, "BLOCK_M": 32, "BLOCK_N": 32}
        run(flash_kernel, (triton.cdiv(SQ, 32), H), q, k, v, o, lse, SQ, SK, D**-0.5, **options)

    return launch


SELF = {"H": (1, 2), "SQ": (1, 31, 32, 33, 70), "SK": (1, 31, 32, 33, 64, 70)}
flash_op("flash_causal_lse", mask=bounds.causal_mask, dims=SELF)
flash_op("flash_grouped_heads", mask=bounds.causal_mask, group=4, dims={**SELF, "H": (4, 8), "G": (1, 2)})
flash_op("flash_window", mask=window_mask(20), window=20, dims=SELF)


def lengths_of(T, B):
    """Where each packed sequence starts: uneven, one empty where there are three."""
    if B == 1:
        return np.array([0, T], np.int32)
    cuts = sorted((i * 11 + 5) % (T + 1) for i in range(B - 1))
    if B > 2:
        cuts[1] = cuts[0]
    return np.array([0, *sorted(cuts), T], np.int32)


def varlen_parts(q, k, v, T, B):
    at = lengths_of(T, B)
    for s, e in zip(at[:-1], at[1:], strict=True):
        if e > s:
            yield tuple(np.swapaxes(x[s:e], 0, 1) for x in (q, k, v))


def varlen_reference(q, k, v, T, B):
    parts = [probabilities(x, y, np.ones((1, 1), bool))[0] @ w for x, y, w in varlen_parts(q, k, v, T, B)]
    return np.concatenate([np.swapaxes(p, 0, 1) for p in parts])


def varlen_bound(run):
    model = bounds.attention("q", "k", "v", precision=TF32, tile=16)
    found = [
        model(bounds.Exact({"q": x, "k": y, "v": w}, {}, run.dims, run.dtype, run.device))
        for x, y, w in varlen_parts(*(run.inputs[n] for n in "qkv"), run.dims["T"], run.dims["B"])
    ]
    return np.concatenate([np.swapaxes(p, 0, 1) for p in found])


@gpuemu.op(
    dims={"T": (1, 16, 17, 40, 67), "B": (1, 2, 4)},
    inputs={n: Input("T 2 16", largest=8) for n in "qkv"}, outputs={"o": Output("T 2 16")},
    reference=varlen_reference, bound=varlen_bound,
)  # fmt: skip
def attention_varlen(run, q, k, v, o, T, B):
    cu = lengths_of(T, B)
    longest = int(np.diff(cu).max())
    options = {"D": 16, "HEADS": 2, "BLOCK_M": 16, "BLOCK_N": 16}
    run(varlen_kernel, (triton.cdiv(longest, 16), 2, B), q, k, v, o, cu, longest, 0.25, **options)


PAGE = 16


def pages_of(B, P):
    """Page tables (a permutation: no page in order) and lengths of each sequence."""
    order = np.arange(B * P)[::-1].reshape(B, P).astype(np.int32)
    lengths = np.array([max(1, P * PAGE - 5 * i - (i % 2) * PAGE) for i in range(B)], np.int32)
    return order, np.minimum(lengths, P * PAGE)


def paged_parts(q, k, v, B, P):
    table, lengths = pages_of(B, P)
    for i in range(B):
        y, w = (x.reshape(-1, PAGE, 2, 16)[table[i]].reshape(-1, 2, 16)[: lengths[i]] for x in (k, v))
        yield q[i][:, None, :], np.swapaxes(y, 0, 1), np.swapaxes(w, 0, 1)


def paged_reference(q, k, v, B, P):
    return np.stack(
        [(probabilities(x, y, np.ones((1, 1), bool))[0] @ w)[:, 0] for x, y, w in paged_parts(q, k, v, B, P)]
    )


def paged_bound(run):
    model = bounds.attention("q", "k", "v", tile=PAGE, precision={"float16": "ieee", "bfloat16": "ieee"})
    return np.stack([
        model(bounds.Exact({"q": x, "k": y, "v": w}, {}, run.dims, run.dtype, run.device))[:, 0]
        for x, y, w in paged_parts(*(run.inputs[n] for n in "qkv"), run.dims["B"], run.dims["P"])
    ])  # fmt: skip


@gpuemu.op(
    dims={"B": (1, 2, 3), "P": (1, 2, 4), "R": (16,)},
    shapes=[{"B": b, "P": p, "R": b * p * PAGE} for b, p in ((1, 1), (2, 1), (1, 3), (3, 2), (2, 4))],
    inputs={"q": Input("B 2 16", largest=8), "k": Input("R 2 16", largest=8), "v": Input("R 2 16", largest=1024)},
    outputs={"o": Output("B 2 16")}, reference=paged_reference, bound=paged_bound,
)  # fmt: skip
def attention_paged(run, q, k, v, o, B, P):
    table, lengths = pages_of(B, P)
    run(paged_kernel, (B, 2), q, k, v, table, lengths, o, P, 0.25, D=16, HEADS=2, PAGE=PAGE)


def merge_reference(part, lse):
    top = lse.max(axis=0)
    w = np.exp(lse - np.where(np.isfinite(top), top, 0.0))
    total = w.sum(axis=0)
    return np.einsum("pr,prd->rd", w, part) / np.where(total == 0, 1.0, total)[:, None]


def merge_bound(run):
    """Each weight is an exponential of z (3|z| + 5 units), so is the sum; the products and their sum add some."""
    lse, part = run.inputs["lse"], np.abs(run.inputs["part"])
    top = lse.max(axis=0)
    z = lse - np.where(np.isfinite(top), top, 0.0)
    w = np.exp(z)
    total = np.where(w.sum(axis=0) == 0, 1.0, w.sum(axis=0))
    r = U * (3 * np.where(w > 0, np.abs(z), 0.0) + 5)
    average = (w * r).sum(axis=0) / total
    relative = r + average + U * (2 * len(lse) + 8)
    return np.einsum("pr,prd->rd", w * relative * (1 + relative), part) / total[:, None] + 2.0**-120


@gpuemu.op(
    dims={"P": (1, 2, 5), "R": (1, 3, 16)}, dtypes=("float32",),
    inputs={"part": Input("P R 16", largest=2.0**10), "lse": Input("P R", largest=80.0, nonfinite=("-inf",))},
    outputs={"y": Output("R 16")}, reference=merge_reference, bound=merge_bound,
)  # fmt: skip
def merge_attention_states(run, part, lse, y, P, R):
    run(merge_kernel, (R,), part, lse, y, P, R, D=16)


def backward_reference(q, k, v, do, lse, delta, SQ, SK):
    p = np.where(bounds.causal_mask(SQ, SK), np.exp(q @ k.T / 4 - lse[:, None]), 0.0)
    ds = p * (do @ v.T - delta[:, None])
    return ds.T @ q / 4, p.T @ do


def backward_bound(run):
    """exp of s - lse carries the score's error, 3 units of its argument and 5; the products are in binary32 (ieee)."""
    q, k, v, do = (np.abs(run.inputs[n]) for n in ("q", "k", "v", "do"))
    lse, delta = run.inputs["lse"], np.abs(run.inputs["delta"])
    SQ, SK = run.dims["SQ"], run.dims["SK"]
    z = run.inputs["q"] @ run.inputs["k"].T / 4 - lse[:, None]
    p = np.where(bounds.causal_mask(SQ, SK), np.exp(z), 0.0)
    r = np.expm1(U * (18 * (q @ k.T) / 4 + 4 * np.abs(z) + 3 * np.abs(lse)[:, None] + 8))
    steps = U * (16 + SQ + 8)
    dp = do @ v.T + delta[:, None]
    size_v, size_k = (p * (r + steps)).T @ do, (p * (r + 2 * steps) * dp).T @ q / 4
    return {"dk": 1.01 * size_k + 2.0**-110, "dv": 1.01 * size_v + 2.0**-110}


@gpuemu.op(
    dims={"SQ": (1, 15, 16, 17, 33), "SK": (1, 15, 16, 17, 40)},
    inputs={
        **{n: Input(f"{s} 16", largest=4) for n, s in (("q", "SQ"), ("k", "SK"), ("v", "SK"), ("do", "SQ"))},
        "lse": Input("SQ", "float32", positive=True, largest=8.0), "delta": Input("SQ", "float32", largest=8.0),
    },
    dtypes=("float32", "float16"), outputs={"dk": Output("SK 16", "float32"), "dv": Output("SK 16", "float32")},
    reference=backward_reference, bound=backward_bound,
)  # fmt: skip
def attention_backward_kv(run, q, k, v, do, lse, delta, dk, dv, SQ, SK):
    options = {"D": 16, "CAUSAL": True, "BLOCK_M": 16, "BLOCK_N": 16}
    arrays = (q, k, v, do, lse, delta, dk, dv)
    run(backward_kv_kernel, (triton.cdiv(SK, 16),), *arrays, SQ, SK, 0.25, **options)
