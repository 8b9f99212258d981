"""Moving numbers: embedding and its backward, gather, transpose, slices, concatenation, padding, wide offsets."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

ANY = ("nan", "inf", "-inf")


@triton.jit(do_not_specialize=["D"])
def embedding_kernel(table, index, y, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    chosen = tl.load(index + row).to(tl.int64)
    tl.store(y + row * D + at, tl.load(table + chosen * D + at, mask=at < D), mask=at < D)


@triton.jit(do_not_specialize=["D"])
def embedding_backward_kernel(dy, index, dw, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    chosen = tl.load(index + row).to(tl.int64)
    g = tl.load(dy + row * D + at, mask=at < D, other=0.0).to(tl.float32)
    tl.atomic_add(dw + chosen * D + at, g, mask=at < D)


@triton.jit(do_not_specialize=["M", "N", "xm", "xn"])
def transpose_kernel(x, y, M, N, xm, xn, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + m[:, None] * xm + n[None, :] * xn, mask=(m < M)[:, None] & (n < N)[None, :])
    tl.store(y + n[:, None] * M + m[None, :], tl.trans(v), mask=(n < N)[:, None] & (m < M)[None, :])


@triton.jit(do_not_specialize=["N", "K"])
def gather_columns_kernel(x, index, y, N, K, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    column = tl.load(index + row * K + at, mask=at < K, other=0)
    tl.store(y + row * K + at, tl.load(x + row * N + column, mask=at < K), mask=at < K)


@triton.jit(do_not_specialize=["A", "B"])
def concatenate_kernel(a, b, y, A, B, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(a + row * A + at, mask=at < A, other=0.0)
    right = tl.load(b + row * B + at - A, mask=(at >= A) & (at < A + B), other=0.0)
    tl.store(y + row * (A + B) + at, tl.where(at < A, left, right), mask=at < A + B)


@triton.jit(do_not_specialize=["N", "P"])
def pad_rows_kernel(x, y, N, P, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at - P, mask=(at >= P) & (at < N + P), other=0.0)
    tl.store(y + row * (N + 2 * P) + at, v, mask=at < N + 2 * P)


@triton.jit(do_not_specialize=["N"])
def flip_kernel(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + row * N + at, tl.load(x + row * N + (N - 1 - at), mask=at < N), mask=at < N)


@triton.jit(do_not_specialize=["n", "limit", "programs"])
def persistent_copy_kernel(x, y, n, programs, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), programs):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def wide_rows_kernel(x, y, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + at, mask=at < n)
    tl.store(y + row * n + at, v, mask=at < n)


@triton.jit(do_not_specialize=["n"])
def histogram_kernel(x, counts, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bin = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(counts + bin, 1, mask=at < n)


@triton.jit(do_not_specialize=["n"])
def nonzero_kernel(x, y, count, n, BLOCK: tl.constexpr):
    taken = 0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n, other=0.0)
        keep = (v > 0).to(tl.int32)
        place = taken + tl.cumsum(keep, axis=0) - 1
        tl.store(y + place, v, mask=keep > 0)
        taken += tl.sum(keep, axis=0)
    tl.store(count, taken)


def scatter_rows(dy, index, V):
    dw = np.zeros((V, dy.shape[1]))
    np.add.at(dw, index, dy)
    return dw


def scatter_bound(run):
    """A row of dw is a sum of as many terms as its index occurs; red.add.f32 flushes subnormals (PTX ISA)."""
    index = run.inputs["index"].astype(int)
    count = np.bincount(index, minlength=run.dims["V"])[:, None]
    size = scatter_rows(np.abs(run.inputs["dy"]), index, run.dims["V"])
    return 1.01 * 2.0**-24 * np.maximum(count - 1, 0) * size + (count + 1) * 2.0**-126


def compact_reference(x):
    kept = x[x > 0]
    return np.concatenate([kept, np.zeros(len(x) - len(kept))]), np.array([len(kept)])


@gpuemu.op(
    dims={"V": (1, 7, 33), "R": (1, 5, 20), "D": (1, 31, 32, 33, 64)},
    inputs={"table": Input("V D", nonfinite=ANY), "index": Input("R", "int32", high="V")}, outputs={"y": Output("R D")},
    reference=lambda table, index: table[index], bound=bounds.exact(),
)  # fmt: skip
def embedding(run, table, index, y):
    run(embedding_kernel, (len(index),), table, index, y, table.shape[1], BLOCK=64)


@gpuemu.op(
    linear="R",
    dims={"V": (1, 3, 7), "R": (1, 5, 40), "D": (1, 31, 32, 33, 64)},
    inputs={"dy": Input("R D", largest=2.0**10), "index": Input("R", "int32", high="V")},
    outputs={"dw": Output("V D", "float32")}, reference=scatter_rows, bound=scatter_bound,
)  # fmt: skip
def embedding_backward(run, dy, index, dw):
    dw[...] = 0
    run(embedding_backward_kernel, (len(index),), dy, index, dw, dy.shape[1], BLOCK=64)


@gpuemu.op(
    dims={"M": (1, 15, 16, 17, 33), "N": (1, 15, 16, 17, 40)}, inputs={"x": Input("M N", nonfinite=ANY, padded=True)},
    outputs={"y": Output("N M")}, reference=lambda x: x.T, bound=bounds.exact(),
)  # fmt: skip
def transpose(run, x, y, M, N):
    strides = (s // x.itemsize for s in x.strides)
    run(transpose_kernel, (triton.cdiv(M, 16), triton.cdiv(N, 16)), x, y, M, N, *strides, BLOCK=16)


@gpuemu.op(
    dims={"M": (1, 4), "N": (1, 15, 33), "K": (1, 31, 32, 33, 70)},
    inputs={"x": Input("M N", nonfinite=ANY), "index": Input("M K", "int32", high="N")}, outputs={"y": Output("M K")},
    reference=lambda x, index: np.take_along_axis(x, index.astype(int), axis=1), bound=bounds.exact(),
)  # fmt: skip
def gather_columns(run, x, index, y, M, N, K):
    run(gather_columns_kernel, (M, triton.cdiv(K, 32)), x, index, y, N, K, BLOCK=32)


@gpuemu.op(
    dims={"M": (1, 3), "A": (1, 15, 16, 33), "B": (1, 16, 17, 40), "C": (2,)},
    shapes=[{"M": m, "A": a, "B": b, "C": a + b} for m, a, b in ((1, 1, 1), (3, 15, 17), (3, 16, 16), (1, 33, 40))],
    inputs={"a": Input("M A", nonfinite=ANY), "b": Input("M B", nonfinite=ANY)}, outputs={"y": Output("M C")},
    reference=lambda a, b: np.concatenate([a, b], axis=1), bound=bounds.exact(),
)  # fmt: skip
def concatenate(run, a, b, y, M, A, B):
    run(concatenate_kernel, (M, triton.cdiv(A + B, 32)), a, b, y, A, B, BLOCK=32)


@gpuemu.op(
    dims={"M": (1, 3), "N": (1, 15, 16, 33), "P": (1, 5), "W": (3,)},
    shapes=[{"M": m, "N": n, "P": p, "W": n + 2 * p} for m, n, p in ((1, 1, 1), (3, 15, 1), (3, 22, 5), (1, 33, 5))],
    inputs={"x": Input("M N", nonfinite=ANY)}, outputs={"y": Output("M W")},
    reference=lambda x, P: np.pad(x, ((0, 0), (P, P))), bound=bounds.exact(),
)  # fmt: skip
def pad_rows(run, x, y, M, N, P):
    run(pad_rows_kernel, (M, triton.cdiv(N + 2 * P, 32)), x, y, N, P, BLOCK=32)


@gpuemu.op(
    dims={"M": (1, 3), "N": (1, 31, 32, 33, 70)}, inputs={"x": Input("M N", nonfinite=ANY)},
    outputs={"y": Output("M N")}, reference=lambda x: x[:, ::-1], bound=bounds.exact(),
)  # fmt: skip
def flip(run, x, y, M, N):
    run(flip_kernel, (M, triton.cdiv(N, 32)), x, y, N, BLOCK=32)


@gpuemu.op(
    dims={"N": (1, 31, 32, 33, 96, 100, 160, 200)}, inputs={"x": Input("N", largest=2.0**14)},
    outputs={"y": Output("N")}, reference=lambda x: 2 * x, bound=bounds.exact(),
)  # fmt: skip
def persistent_double(run, x, y, N):
    run(persistent_copy_kernel, (min(3, triton.cdiv(N, 32)),), x, y, N, min(3, triton.cdiv(N, 32)), BLOCK=32)


@gpuemu.op(
    dims={"M": (1, 5, 9), "N": (1, 31, 32)}, dtypes=("float16", "float32"), inputs={"x": Input("M N")},
    outputs={"y": Output("M N")}, reference=lambda x: x, bound=bounds.exact(),
)  # fmt: skip
def rows_far_apart(run, x, y, M, N):
    """The rows lie 2**29 elements apart, in an array of which only touched pages exist: row 4 is beyond 2**31."""
    far = gpuemu.sparse((M, 2**29), x.dtype)
    far[:, :N] = x
    run(wide_rows_kernel, (M,), far, y, 2**29, N, BLOCK=32)


@gpuemu.op(
    dims={"N": (1, 63, 64, 65, 200)}, dtypes=("float32",), inputs={"x": Input("N", "int32", high=8)},
    outputs={"counts": Output("8", "int32")}, reference=lambda x: np.bincount(x, minlength=8), bound=bounds.exact(),
)  # fmt: skip
def histogram(run, x, counts, N):
    counts[...] = 0
    run(histogram_kernel, (triton.cdiv(N, 64),), x, counts, N, BINS=8, BLOCK=64)


@gpuemu.op(
    dims={"N": (1, 31, 32, 33, 70)}, inputs={"x": Input("N")},
    outputs={"y": Output("N"), "count": Output("1", "int32")}, reference=compact_reference, bound=bounds.exact(),
)  # fmt: skip
def compact_positive(run, x, y, count, N):
    y[...] = 0
    run(nonzero_kernel, (1,), x, y, count, N, BLOCK=32)
