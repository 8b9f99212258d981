"""Order along a row: cumulative sums, a linear recurrence, sorting, top-k, convolution and pooling over a window."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

U = 2.0**-24


@triton.jit(do_not_specialize=["n"])
def cumsum_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    carry = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(y + row + at, tl.cumsum(v, axis=0) + carry, mask=at < n)
        carry += tl.sum(v, axis=0)


@triton.jit(do_not_specialize=["n"])
def reverse_cumsum_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row + at, tl.cumsum(v, axis=0, reverse=True), mask=at < n)


@triton.jit
def step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit(do_not_specialize=["n"])
def recurrence_kernel(a, b, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    f = tl.load(a + row + at, mask=at < n, other=1.0).to(tl.float32)
    g = tl.load(b + row + at, mask=at < n, other=0.0).to(tl.float32)
    _, h = tl.associative_scan((f, g), 0, step)
    tl.store(y + row + at, h, mask=at < n)


@triton.jit(do_not_specialize=["n"])
def sort_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < n, other=float("inf"))
    tl.store(y + row + at, tl.sort(v, dim=0), mask=at < n)


@triton.jit(do_not_specialize=["n"])
def top_k_kernel(x, values, index, n, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    live = at < n
    for place in tl.static_range(K):
        candidates = tl.where(live, v, -float("inf"))
        best = tl.max(candidates, axis=0)
        chosen = tl.min(tl.where(live & (candidates == best), at, BLOCK), axis=0)
        tl.store(values + row * K + place, best.to(values.dtype.element_ty))
        tl.store(index + row * K + place, chosen)
        live = live & (at != chosen)


@triton.jit(do_not_specialize=["C", "T"])
def causal_conv_kernel(x, weight, y, C, T, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for tap in tl.static_range(WIDTH):
        source = at - (WIDTH - 1) + tap
        v = tl.load(x + channel * T + source, mask=(source >= 0) & (source < T), other=0.0).to(tl.float32)
        acc += v * tl.load(weight + channel * WIDTH + tap).to(tl.float32)
    tl.store(y + channel * T + at, acc.to(y.dtype.element_ty), mask=at < T)


@triton.jit(do_not_specialize=["CI", "CO", "T"])
def conv_kernel(x, weight, bias, y, CI, CO, T, BLOCK: tl.constexpr):
    out = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32) + tl.load(bias + out).to(tl.float32)
    for channel in range(CI):
        for tap in tl.static_range(3):
            source = at + tap - 1
            v = tl.load(x + channel * T + source, mask=(source >= 0) & (source < T), other=0.0).to(tl.float32)
            acc += v * tl.load(weight + (out * CI + channel) * 3 + tap).to(tl.float32)
    tl.store(y + out * T + at, acc.to(y.dtype.element_ty), mask=at < T)


@triton.jit(do_not_specialize=["H", "W"])
def average_pool_kernel(x, y, H, W, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for dr in tl.static_range(-1, 2):
        for dc in tl.static_range(-1, 2):
            inside = (row + dr >= 0) & (row + dr < H) & (at + dc >= 0) & (at + dc < W)
            acc += tl.load(x + (row + dr) * W + at + dc, mask=inside, other=0.0).to(tl.float32)
            count += inside.to(tl.float32)
    tl.store(y + row * W + at, (acc / count).to(y.dtype.element_ty), mask=at < W)


@triton.jit(do_not_specialize=["T"])
def max_pool_kernel(x, y, T, OUT, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    for tap in tl.static_range(3):
        source = at * 2 + tap
        v = tl.load(x + row * T + source, mask=(at < OUT) & (source < T), other=-float("inf")).to(tl.float32)
        best = tl.maximum(best, v)
    tl.store(y + row * OUT + at, best.to(y.dtype.element_ty), mask=at < OUT)


def recurrence_reference(a, b):
    h = np.zeros_like(b)
    for t in range(b.shape[1]):
        h[:, t] = (h[:, t - 1] * a[:, t] if t else 0) + b[:, t]
    return h


def shifted(x, by):
    """x[..., t + by], 0 outside."""
    out = np.zeros_like(x)
    T = x.shape[-1]
    first, last = max(0, -by), min(T, T - by)
    if first < last:
        out[..., first:last] = x[..., first + by : last + by]
    return out


def causal_conv(x, weight):
    return sum(weight[:, t : t + 1] * shifted(x, t - 3) for t in range(4))


def conv(x, weight, bias):
    return bias[:, None] + sum(weight[:, :, t] @ shifted(x, t - 1) for t in range(3))


def pooled(x):
    def total(v):
        v = np.pad(v, 1)
        return sum(v[r : r + x.shape[0], c : c + x.shape[1]] for r in range(3) for c in range(3))

    return total(x) / total(np.ones_like(x))


def top_k(x):
    order = np.argsort(-x, axis=1, kind="stable")[:, :3]
    return np.take_along_axis(x, order, axis=1), order


def prefix_size(x):
    return np.cumsum(x, axis=1)


ROWS = {"M": (1, 3, 9), "N": (1, 2, 31, 32, 33, 64, 100)}


@gpuemu.op(
    linear="N",
    dims=ROWS, inputs={"x": Input("M N", largest=2.0**100)}, outputs={"y": Output("M N", "float32")},
    reference=lambda x: np.cumsum(x, axis=1),
    bound=bounds.absolute(prefix_size, roundings=lambda N: 2 * bounds.tree_depth(32) + N // 32 + 3),
)  # fmt: skip
def cumulative_sum(run, x, y):
    run(cumsum_kernel, (len(x),), x, y, x.shape[1], BLOCK=32)


@gpuemu.op(
    linear="N",
    dims=ROWS, inputs={"x": Input("M N", largest=2.0**100)}, outputs={"y": Output("M N", "float32")},
    reference=lambda x: np.cumsum(x[:, ::-1], axis=1)[:, ::-1],
    bound=bounds.absolute(lambda x: np.cumsum(x[:, ::-1], axis=1)[:, ::-1], roundings=2 * bounds.tree_depth(128)),
)  # fmt: skip
def reverse_cumulative_sum(run, x, y):
    run(reverse_cumsum_kernel, (len(x),), x, y, x.shape[1], BLOCK=128)


@gpuemu.op(
    dims=ROWS, inputs={"a": Input("M N", largest=1.0), "b": Input("M N", largest=2.0**10)},
    outputs={"y": Output("M N", "float32")}, reference=recurrence_reference,
    bound=bounds.absolute(recurrence_reference, roundings=lambda N: 2 * N + 8),
)  # fmt: skip
def linear_recurrence(run, a, b, y):
    run(recurrence_kernel, (len(a),), a, b, y, a.shape[1], BLOCK=128)


@gpuemu.op(
    dims={"M": (1, 3), "N": (1, 2, 31, 32, 33, 64)}, dtypes=("float32", "float16"), inputs={"x": Input("M N")},
    outputs={"y": Output("M N")}, reference=lambda x: np.sort(x, axis=1), bound=bounds.exact(),
)  # fmt: skip
def sort_rows(run, x, y):
    run(sort_kernel, (len(x),), x, y, x.shape[1], BLOCK=64)


@gpuemu.op(
    dims={"M": (1, 3, 9), "N": (3, 4, 31, 32, 33, 64)}, dtypes=("float32", "float16"), inputs={"x": Input("M N")},
    outputs={"values": Output("M 3"), "index": Output("M 3", "int32")}, reference=top_k, bound=bounds.exact(),
)  # fmt: skip
def top_three(run, x, values, index):
    run(top_k_kernel, (len(x),), x, values, index, x.shape[1], K=3, BLOCK=64)


@gpuemu.op(
    dims={"C": (1, 3), "T": (1, 3, 31, 32, 33, 65)},
    inputs={"x": Input("C T", largest=2.0**7), "weight": Input("C 4", largest=16.0)}, outputs={"y": Output("C T")},
    reference=causal_conv, bound=bounds.absolute(causal_conv, roundings=5),
)  # fmt: skip
def causal_conv1d(run, x, weight, y, C, T):
    run(causal_conv_kernel, (C, triton.cdiv(T, 32)), x, weight, y, C, T, WIDTH=4, BLOCK=32)


@gpuemu.op(
    dims={"I": (1, 3, 5), "C": (1, 4), "T": (1, 2, 31, 32, 33)},
    inputs={
        "x": Input("I T", largest=2.0**6), "weight": Input("C I 3", largest=16.0), "bias": Input("C", largest=16.0)
    },
    outputs={"y": Output("C T")}, reference=conv,
    bound=bounds.absolute(conv, roundings=lambda I: 3 * I + 2),  # noqa: E741
)  # fmt: skip
def conv1d(run, x, weight, bias, y, I, C, T):  # noqa: E741
    run(conv_kernel, (C, triton.cdiv(T, 32)), x, weight, bias, y, I, C, T, BLOCK=32)


@gpuemu.op(
    dims={"H": (1, 2, 8), "W": (1, 2, 8, 31, 32, 33)}, inputs={"x": Input("H W", largest=2.0**12)},
    outputs={"y": Output("H W")}, reference=pooled,
    bound=lambda run: 12 * U * pooled(np.abs(run.inputs["x"])) + 2.0**-148,
)  # fmt: skip
def average_pool(run, x, y, H, W):
    run(average_pool_kernel, (H, triton.cdiv(W, 32)), x, y, H, W, BLOCK=32)


@gpuemu.op(
    dims={"M": (1, 3), "T": (1, 2, 3, 31, 64, 65), "O": (1,)},
    shapes=[{"M": m, "T": t, "O": (t + 1) // 2} for m, t in ((1, 1), (3, 2), (3, 3), (1, 31), (3, 64), (3, 67))],
    inputs={"x": Input("M T", nonfinite=("-inf", "inf"))}, outputs={"y": Output("M O")},
    reference=lambda x, O: np.max(  # noqa: E741
        [x[:, np.minimum(np.arange(O) * 2 + t, x.shape[1] - 1)] for t in range(3)], axis=0
    ),
    bound=bounds.exact(),
)  # fmt: skip
def max_pool(run, x, y, M, T, O):  # noqa: E741
    run(max_pool_kernel, (M, triton.cdiv(O, 32)), x, y, T, O, BLOCK=32)
