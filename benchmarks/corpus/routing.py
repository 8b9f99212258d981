"""Routing and chance: softmax gating to the two best experts, rows sorted by expert, dropout forward and backward."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds
from gpuemu.gate.bits import philox

SEED = 0x1234
KEEP = 0.75
U = 2.0**-24


@triton.jit(do_not_specialize=["E"])
def gate_kernel(x, weight, expert, E, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * E + at, mask=at < E, other=-float("inf")).to(tl.float32)
    best = tl.max(v, axis=0)
    first = tl.min(tl.where(v == best, at, BLOCK), axis=0)
    rest = tl.where(at == first, -float("inf"), v)
    next_best = tl.max(rest, axis=0)
    second = tl.min(tl.where((rest == next_best) & (at != first), at, BLOCK), axis=0)
    e = tl.exp(next_best - best)
    tl.store(weight + row * 2, 1.0 / (1.0 + e))
    tl.store(weight + row * 2 + 1, e / (1.0 + e))
    tl.store(expert + row * 2, first)
    tl.store(expert + row * 2 + 1, second)


@triton.jit(do_not_specialize=["T"])
def rank_kernel(expert, count, place, T, EXPERTS: tl.constexpr, BLOCK: tl.constexpr):
    wanted = tl.program_id(0)
    before = 0
    for start in range(0, T, BLOCK):
        at = start + tl.arange(0, BLOCK)
        before += tl.sum((tl.load(expert + at, mask=at < T, other=EXPERTS) < wanted).to(tl.int32), axis=0)
    taken = before
    for start in range(0, T, BLOCK):
        at = start + tl.arange(0, BLOCK)
        own = (tl.load(expert + at, mask=at < T, other=EXPERTS) == wanted).to(tl.int32)
        tl.store(place + at, taken + tl.cumsum(own, axis=0) - 1, mask=(own > 0) & (at < T))
        taken += tl.sum(own, axis=0)
    tl.store(count + wanted, taken - before)


@triton.jit(do_not_specialize=["D", "T"])
def combine_kernel(x, place, weight, y, T, D, K: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(K):
        row = tl.load(place + token * K + k)
        w = tl.load(weight + token * K + k).to(tl.float32)
        acc += w * tl.load(x + row * D + at, mask=at < D, other=0.0).to(tl.float32)
    tl.store(y + token * D + at, acc.to(y.dtype.element_ty), mask=at < D)


@triton.jit(do_not_specialize=["n", "seed"])
def dropout_kernel(x, y, n, seed, keep, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    kept = tl.rand(seed, at) < keep
    tl.store(y + at, tl.where(kept, v / keep, 0.0).to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["n", "seed"])
def dropout_backward_kernel(dy, dx, n, seed, keep, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(dy + at, mask=at < n).to(tl.float32)
    kept = tl.rand(seed, at) < keep
    tl.store(dx + at, tl.where(kept, v / keep, 0.0).to(dx.dtype.element_ty), mask=at < n)


def kept(n):
    """Triton's `tl.rand(SEED, offset) < KEEP`: the first word of a Philox block, folded to [0, 1)."""
    zero = np.zeros(n, np.uint64)
    words = philox((np.arange(n, dtype=np.uint64), zero, zero, zero), (SEED, 0))[0].astype(np.uint32)
    signed = words.view(np.int32).astype(np.int64)
    folded = np.where(signed < 0, -signed - 1, signed).astype(np.float32)
    return folded * np.float32(4.6566127342e-10) < np.float32(KEEP)


def gate_reference(x):
    order = np.argsort(-x, axis=1, kind="stable")[:, :2]
    best = np.take_along_axis(x, order, axis=1)
    e = np.exp(best - best[:, :1])
    return e / e.sum(axis=1, keepdims=True), order


def gate_bound(run):
    x = np.sort(run.inputs["x"], axis=1)
    z = np.abs(x[:, -1] - x[:, -2])[:, None]
    return {"weight": U * (3 * np.where(z < 100, z, 0) + 12) * run.outputs["weight"] + 2.0**-125, "expert": 0.0}


def rank_reference(expert):
    order = np.argsort(expert, kind="stable")
    place = np.empty(len(expert))
    place[order] = np.arange(len(expert))
    return place, np.bincount(expert, minlength=4)


@gpuemu.op(
    dims={"T": (1, 3, 16), "E": (2, 3, 7, 8, 16)}, dtypes=("float32", "float16"), inputs={"x": Input("T E")},
    outputs={"weight": Output("T 2", "float32"), "expert": Output("T 2", "int32")}, reference=gate_reference,
    bound=gate_bound,
)  # fmt: skip
def moe_gate(run, x, weight, expert):
    run(gate_kernel, (len(x),), x, weight, expert, x.shape[1], BLOCK=16)


@gpuemu.op(
    dims={"T": (1, 31, 32, 33, 70)}, dtypes=("float32",), inputs={"expert": Input("T", "int32", high=4)},
    outputs={"place": Output("T", "int32"), "count": Output("4", "int32")}, reference=rank_reference,
    bound=bounds.exact(),
)  # fmt: skip
def moe_rank(run, expert, place, count):
    run(rank_kernel, (4,), expert, count, place, len(expert), EXPERTS=4, BLOCK=32)


@gpuemu.op(
    dims={"T": (1, 5), "R": (1, 10), "D": (1, 31, 32, 33, 64)},
    inputs={
        "x": Input("R D", largest=2.0**10), "place": Input("T 2", "int32", high="R"),
        "weight": Input("T 2", largest=1.0),
    },
    outputs={"y": Output("T D")}, reference=lambda x, place, weight: (x[place] * weight[:, :, None]).sum(axis=1),
    bound=bounds.absolute(
        lambda x, place, weight: (x[place.astype(int)] * weight[:, :, None]).sum(axis=1), roundings=3
    ),
)  # fmt: skip
def moe_combine(run, x, place, weight, y, T, D):
    run(combine_kernel, (T,), x, place, weight, y, T, D, K=2, BLOCK=64)


@gpuemu.op(
    dims={"N": (1, 17, 127, 128, 129, 300)}, inputs={"x": Input("N", largest=2.0**15)}, outputs={"y": Output("N")},
    reference=lambda x: np.where(kept(x.size), x / KEEP, 0), bound=bounds.elementwise(2),
)  # fmt: skip
def dropout(run, x, y):
    run(dropout_kernel, (triton.cdiv(x.size, 128),), x, y, x.size, SEED, KEEP, BLOCK=128)


@gpuemu.op(
    dims={"N": (1, 17, 127, 128, 129, 300)}, inputs={"dy": Input("N", largest=2.0**15)}, outputs={"dx": Output("N")},
    reference=lambda dy: np.where(kept(dy.size), dy / KEEP, 0), bound=bounds.elementwise(2),
)  # fmt: skip
def dropout_backward(run, dy, dx):
    run(dropout_backward_kernel, (triton.cdiv(dy.size, 128),), dy, dx, dy.size, SEED, KEEP, BLOCK=128)
