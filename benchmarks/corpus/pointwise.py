"""Element by element: gated activations and their backward, bias, in-place updates, clamping, rotary embedding."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

BLOCK = 128
U = 2.0**-24
TINY = 2.0**-126
SIZES = (1, 17, 127, 128, 129, 300)


@triton.jit(do_not_specialize=["n"])
def swiglu_kernel(gate, up, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < n).to(tl.float32)
    u = tl.load(up + at, mask=at < n).to(tl.float32)
    s = g / (1.0 + tl.exp(-g))
    tl.store(y + at, (s * u).to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["n"])
def swiglu_backward_kernel(gate, up, dy, dg, du, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < n).to(tl.float32)
    u = tl.load(up + at, mask=at < n).to(tl.float32)
    d = tl.load(dy + at, mask=at < n).to(tl.float32)
    s = 1.0 / (1.0 + tl.exp(-g))
    tl.store(du + at, (d * g * s).to(du.dtype.element_ty), mask=at < n)
    tl.store(dg + at, (d * u * s * (1.0 + g * (1.0 - s))).to(dg.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["M", "N"])
def bias_relu_kernel(x, bias, y, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (m < M)[:, None] & (n < N)[None, :]
    at = m[:, None] * N + n[None, :]
    b = tl.load(bias + n, mask=n < N).to(tl.float32)
    v = tl.load(x + at, mask=inside).to(tl.float32) + b[None, :]
    tl.store(y + at, tl.maximum(v, 0.0).to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["n"])
def axpy_kernel(x, y, alpha, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + at, mask=at < n).to(tl.float32)
    v += alpha * tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, v.to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["n"])
def clamp_kernel(x, y, low, high, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, tl.minimum(tl.maximum(v, low), high).to(y.dtype.element_ty), mask=at < n)


@triton.jit(do_not_specialize=["n"])
def relu_backward_kernel(x, dy, dx, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    d = tl.load(dy + at, mask=at < n)
    tl.store(dx + at, tl.where(v > 0, d, 0.0), mask=at < n)


@triton.jit(do_not_specialize=["S", "x_stride"])
def rope_kernel(x, cosine, sine, y, S, x_stride, HALF: tl.constexpr, HEADS: tl.constexpr):
    row = tl.program_id(0)
    position = row // HEADS
    d = tl.arange(0, HALF)
    c = tl.load(cosine + position * HALF + d)
    s = tl.load(sine + position * HALF + d)
    a = tl.load(x + row * x_stride + d).to(tl.float32)
    b = tl.load(x + row * x_stride + HALF + d).to(tl.float32)
    tl.store(y + row * 2 * HALF + d, (a * c - b * s).to(y.dtype.element_ty))
    tl.store(y + row * 2 * HALF + HALF + d, (b * c + a * s).to(y.dtype.element_ty))


@triton.jit(do_not_specialize=["rows"])
def rope_pairs_kernel(x, cosine, sine, rows, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, HALF)
    inside = (row < rows)[:, None] & (d < HALF)[None, :]
    at = row[:, None] * 2 * HALF + 2 * d[None, :]
    c = tl.load(cosine + row[:, None] * HALF + d[None, :], mask=inside)
    s = tl.load(sine + row[:, None] * HALF + d[None, :], mask=inside)
    a = tl.load(x + at, mask=inside).to(tl.float32)
    b = tl.load(x + at + 1, mask=inside).to(tl.float32)
    tl.store(x + at, (a * c - b * s).to(x.dtype.element_ty), mask=inside)
    tl.store(x + at + 1, (b * c + a * s).to(x.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["n"])
def scale_rows_kernel(x, grad, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    g = tl.load(grad + row).to(tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n).to(tl.float32)
        tl.store(y + row * n + at, (v * g).to(y.dtype.element_ty), mask=at < n)


def silu(x):
    return x / (1 + np.exp(-x))


def swiglu_bound(run):
    """silu(g) has 3|g| + 10 units of 2**-24 (gpuemu.bounds: exp) and 128 * 2**-126; the product one more."""
    g, u = np.abs(run.inputs["gate"]), np.abs(run.inputs["up"])
    return U * (3 * g + 12) * np.abs(run.outputs["y"]) * (1 + U * (3 * g + 12)) + (128 * u + 2) * TINY


def swiglu_backward_reference(gate, up, dy):
    s = 1 / (1 + np.exp(-gate))
    return dy * up * s * (1 + gate * (1 - s)), dy * gate * s


def swiglu_backward_bound(run):
    """s is off by r = (3|g| + 10) units of itself, and 1 - s as much of s and one rounding of 1: absolute."""
    g, u, d = (np.abs(run.inputs[n]) for n in ("gate", "up", "dy"))
    s = 1 / (1 + np.exp(-run.inputs["gate"]))
    r = U * (3 * g + 10)
    inner = np.abs(1 + run.inputs["gate"] * (1 - s))
    off = g * (r * s + U) + U * (g * (1 - s) + g * r * s) + U * (inner + g)
    lost = 128 * TINY * d * (u + g) * (1 + g)
    dg = d * u * s * (inner * (r + 3 * U) + off * (1 + r)) + lost + 4 * TINY
    return {"dg": dg, "du": d * g * s * (r + 3 * U) * (1 + r) + lost + 4 * TINY}


def rope_reference(x, cosine, sine, R):
    half = cosine.shape[-1]
    a, b = x[..., :half], x[..., half:]
    c, s = (np.repeat(v, len(x) // len(v), axis=0) for v in (cosine, sine))
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)


def pairs_reference(x, cosine, sine):
    a, b = x[:, ::2], x[:, 1::2]
    return np.stack([a * cosine - b * sine, b * cosine + a * sine], axis=2).reshape(x.shape)


def rotated_size(x, cosine, sine):
    half = cosine.shape[-1]
    c, s = (np.repeat(v, len(x) // len(v), axis=0) for v in (cosine, sine))
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c + b * s, b * c + a * s], axis=-1)


def pairs_size(x, cosine, sine):
    a, b = x[:, ::2], x[:, 1::2]
    return np.stack([a * cosine + b * sine, b * cosine + a * sine], axis=2).reshape(x.shape)


@gpuemu.op(
    dims={"N": SIZES}, inputs={"gate": Input("N", largest=60.0), "up": Input("N", largest=2.0**9)},
    outputs={"y": Output("N")}, reference=lambda gate, up: silu(gate) * up, bound=swiglu_bound,
)  # fmt: skip
def swiglu(run, gate, up, y):
    run(swiglu_kernel, (triton.cdiv(y.size, BLOCK),), gate, up, y, y.size, BLOCK=BLOCK)


@gpuemu.op(
    dims={"N": SIZES},
    inputs={"gate": Input("N", largest=60.0), "up": Input("N", largest=16.0), "dy": Input("N", largest=16.0)},
    outputs={"dg": Output("N"), "du": Output("N")}, reference=swiglu_backward_reference, bound=swiglu_backward_bound,
)  # fmt: skip
def swiglu_backward(run, gate, up, dy, dg, du):
    run(swiglu_backward_kernel, (triton.cdiv(dy.size, BLOCK),), gate, up, dy, dg, du, dy.size, BLOCK=BLOCK)


@gpuemu.op(
    dims={"M": (1, 15, 16, 17, 33), "N": (1, 31, 32, 33, 65)},
    inputs={"x": Input("M N", largest=2.0**14), "bias": Input("N", largest=2.0**14)}, outputs={"y": Output("M N")},
    reference=lambda x, bias: np.maximum(x + bias, 0), bound=bounds.elementwise(1),
)  # fmt: skip
def bias_relu(run, x, bias, y):
    M, N = x.shape
    run(bias_relu_kernel, (triton.cdiv(M, 16), triton.cdiv(N, 32)), x, bias, y, M, N, BLOCK_M=16, BLOCK_N=32)


@gpuemu.op(
    dims={"N": SIZES}, inputs={"x": Input("N", largest=2.0**12), "old": Input("N", largest=2.0**12)},
    outputs={"y": Output("N")}, reference=lambda x, old: old + 0.75 * x,
    bound=bounds.absolute(lambda x, old: old + 0.75 * x, roundings=2),
)  # fmt: skip
def axpy_in_place(run, x, old, y):
    y[...] = old
    run(axpy_kernel, (triton.cdiv(y.size, BLOCK),), x, y, 0.75, y.size, BLOCK=BLOCK)


@gpuemu.op(
    dims={"N": SIZES}, inputs={"x": Input("N", nonfinite=("inf", "-inf"))}, outputs={"y": Output("N")},
    reference=lambda x: np.clip(x, -1.5, 6.0), bound=bounds.exact(),
)  # fmt: skip
def clamp(run, x, y):
    run(clamp_kernel, (triton.cdiv(y.size, BLOCK),), x, y, -1.5, 6.0, y.size, BLOCK=BLOCK)


@gpuemu.op(
    dims={"N": SIZES}, inputs={"x": Input("N"), "dy": Input("N")}, outputs={"dx": Output("N")},
    reference=lambda x, dy: np.where(x > 0, dy, 0.0), bound=bounds.exact(),
)  # fmt: skip
def relu_backward(run, x, dy, dx):
    run(relu_backward_kernel, (triton.cdiv(dx.size, BLOCK),), x, dy, dx, dx.size, BLOCK=BLOCK)


@gpuemu.op(
    dims={"P": (1, 3, 8), "R": (2, 6, 16), "D": (16, 64)}, where=lambda P, R, D: R == 2 * P,
    inputs={
        "x": Input("R D", largest=2.0**10), "cosine": Input("P 16", "float32", largest=1.0),
        "sine": Input("P 16", "float32", largest=1.0),
    },
    shapes=[{"P": 1, "R": 2, "D": 32}, {"P": 3, "R": 6, "D": 32}, {"P": 8, "R": 16, "D": 32}],
    outputs={"y": Output("R D")}, reference=rope_reference, bound=bounds.absolute(rotated_size, roundings=2),
)  # fmt: skip
def rope(run, x, cosine, sine, y):
    heads = len(x) // len(cosine)
    run(rope_kernel, (len(x),), x, cosine, sine, y, len(cosine), x.shape[1], HALF=16, HEADS=heads)


@gpuemu.op(
    dims={"R": (1, 7, 8, 9, 33)},
    inputs={
        "x": Input("R 32", largest=2.0**10), "cosine": Input("R 16", "float32", largest=1.0),
        "sine": Input("R 16", "float32", largest=1.0),
    },
    outputs={"y": Output("R 32")}, reference=pairs_reference, bound=bounds.absolute(pairs_size, roundings=2),
)  # fmt: skip
def rope_pairs_in_place(run, x, cosine, sine, y):
    y[...] = x
    run(rope_pairs_kernel, (triton.cdiv(len(x), 8),), y, cosine, sine, len(x), HALF=16, BLOCK=8)


@gpuemu.op(
    dims={"M": (1, 3, 9), "N": (1, 63, 64, 65, 129)},
    inputs={"x": Input("M N", largest=2.0**7), "grad": Input("M", largest=2.0**7)}, outputs={"y": Output("M N")},
    reference=lambda x, grad: x * grad[:, None], bound=bounds.elementwise(1),
)  # fmt: skip
def scale_by_row_gradient(run, x, grad, y):
    run(scale_rows_kernel, (len(x),), x, grad, y, x.shape[1], BLOCK=64)
