"""Matrix products: strides, transposes, batches, groups, split K by atomics and by a second launch, int8, epilogues."""

import numpy as np
import triton
import triton.language as tl

import gpuemu
from gpuemu import Input, Output, bounds

DIMS = {"M": (1, 15, 31, 33), "N": (1, 16, 31, 33), "K": (1, 15, 31, 32, 33, 64, 80)}
TF32 = {"float32": "tf32"}
BLOCKS = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}


@triton.jit(do_not_specialize=["M", "N", "K", "am", "ak", "bk", "bn", "cm"])
def matmul_kernel(
    a, b, c, M, N, K, am, ak, bk, bn, cm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * am + k[None, :] * ak, mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * bk + n[None, :] * bn, mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * cm + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["M", "N", "K"])
def batched_kernel(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    batch = tl.program_id(2)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    at_a = a + batch * M * K + m[:, None] * K + k[None, :]
    at_b = b + batch * K * N + k[:, None] * N + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for left in range(K, 0, -BLOCK_K):
        x = tl.load(at_a, mask=(m < M)[:, None] & (k < left)[None, :], other=0.0)
        y = tl.load(at_b, mask=(k < left)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(x, y)
        at_a += BLOCK_K
        at_b += BLOCK_K * N
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + batch * M * N + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["M", "N", "K"])
def epilogue_kernel(
    a, b, bias, residual, c, M, N, K, alpha, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    inside = (m < M)[:, None] & (n < N)[None, :]
    at = m[:, None] * N + n[None, :]
    acc = acc * alpha + tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    acc = tl.maximum(acc, 0.0) + tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(c + at, acc.to(c.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["M", "N", "K"])
def split_k_kernel(a, b, c, M, N, K, PER: tl.constexpr, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(2) * PER
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, PER, BLOCK):
        k = first + start + tl.arange(0, BLOCK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(x, y)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.atomic_add(c + m[:, None] * N + n[None, :], acc, mask=inside)


@triton.jit(do_not_specialize=["N", "K"])
def grouped_kernel(a, b, offsets, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    group = tl.program_id(0)
    first, last = tl.load(offsets + group), tl.load(offsets + group + 1)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    for top in range(first, last, BLOCK_M):
        m = top + tl.arange(0, BLOCK_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < last)[:, None] & (k < K)[None, :], other=0.0)
            at = b + group * K * N + k[:, None] * N + n[None, :]
            y = tl.load(at, mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
            acc = tl.dot(x, y, acc)
        inside = (m < last)[:, None] & (n < N)[None, :]
        tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["M", "N", "K"])
def int8_kernel(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0)
        acc = tl.dot(x, y, acc)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=inside)


@triton.jit(do_not_specialize=["n", "k"])
def matvec_kernel(a, x, y, n, k, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for start in range(0, k, BLOCK_K):
        at = start + tl.arange(0, BLOCK_K)
        inside = (row < n)[:, None] & (at < k)[None, :]
        v = tl.load(a + row[:, None] * k + at[None, :], mask=inside, other=0.0).to(tl.float32)
        w = tl.load(x + at, mask=at < k, other=0.0).to(tl.float32)
        acc += v * w[None, :]
    tl.store(y + row, tl.sum(acc, axis=1).to(y.dtype.element_ty), mask=row < n)


def strides(*arrays):
    return (s // a.itemsize for a in arrays for s in a.strides)


def tiles(M, N):
    return triton.cdiv(M, 32), triton.cdiv(N, 32)


@gpuemu.op(
    linear="K",
    dims=DIMS,
    inputs={"a": Input("M K", largest=2.0**10, padded=True), "b": Input("K N", largest=2.0**10, padded=True)},
    outputs={"c": Output("M N", padded=True)}, reference=lambda a, b: a @ b, bound=bounds.dot("a", "b", precision=TF32),
)  # fmt: skip
def matmul_tiles(run, a, b, c, M, N, K):
    run(matmul_kernel, tiles(M, N), a, b, c, M, N, K, *strides(a, b), c.strides[0] // c.itemsize, **BLOCKS)


@gpuemu.op(
    linear="K",
    dims=DIMS,
    inputs={"a": Input("M K", largest=2.0**10, padded=True), "bt": Input("N K", largest=2.0**10, padded=True)},
    outputs={"c": Output("M N")}, reference=lambda a, bt: a @ bt.T,
    bound=lambda run: bounds.dot("a", "b", precision=TF32)(
        bounds.Exact({"a": run.inputs["a"], "b": run.inputs["bt"].T}, {}, run.dims, run.dtype, run.device)
    ),
)  # fmt: skip
def matmul_transposed(run, a, bt, c, M, N, K):
    run(matmul_kernel, tiles(M, N), a, bt, c, M, N, K, *strides(a), *strides(bt.T), N, **BLOCKS)


@gpuemu.op(
    linear="K",
    dims={"B": (1, 3), "M": (1, 15, 33), "N": (1, 17, 33), "K": (1, 31, 32, 33, 70)},
    inputs={"a": Input("B M K", largest=2.0**10), "b": Input("B K N", largest=2.0**10)},
    outputs={"c": Output("B M N")}, reference=lambda a, b: a @ b, bound=bounds.dot("a", "b", precision=TF32),
)  # fmt: skip
def batched_matmul(run, a, b, c, B, M, N, K):
    run(batched_kernel, (*tiles(M, N), B), a, b, c, M, N, K, **BLOCKS)


def epilogue_bound(run):
    dot = bounds.fused_dot("a", "b", bias="bias", precision=TF32)(run)
    size = np.abs(run.inputs["a"]) @ np.abs(run.inputs["b"])
    return dot + 2.0**-24 * (2 * size + np.abs(run.inputs["residual"]) + 2 * dot)


@gpuemu.op(
    dims=DIMS,
    inputs={
        "a": Input("M K", largest=2.0**6), "b": Input("K N", largest=2.0**6), "bias": Input("N", largest=2.0**6),
        "residual": Input("M N", largest=2.0**6),
    },
    outputs={"c": Output("M N")},
    reference=lambda a, b, bias, residual: np.maximum(0.5 * (a @ b) + bias, 0) + residual, bound=epilogue_bound,
)  # fmt: skip
def matmul_epilogue(run, a, b, bias, residual, c, M, N, K):
    run(epilogue_kernel, tiles(M, N), a, b, bias, residual, c, M, N, K, 0.5, **BLOCKS)


def atomic_bound(run):
    """As any sum of parts; `red.global.add.f32` flushes subnormal operands and results (PTX ISA, red)."""
    flushed = (2 * triton.cdiv(run.dims["K"], 64) + 1) * 2.0**-126
    return bounds.dot("a", "b", precision=TF32, chunk=64)(run) + flushed


@gpuemu.op(
    linear="K",
    dims={"M": (1, 15, 33), "N": (1, 17, 33), "K": (1, 31, 32, 63, 64, 65, 130)},
    inputs={"a": Input("M K", largest=2.0**10), "b": Input("K N", largest=2.0**10)},
    outputs={"c": Output("M N", "float32")}, reference=lambda a, b: a @ b,
    bound=atomic_bound,
)  # fmt: skip
def matmul_split_k_atomic(run, a, b, c, M, N, K):
    c[...] = 0
    run(split_k_kernel, (*tiles(M, N), triton.cdiv(K, 64)), a, b, c, M, N, K, PER=64, BLOCK=32)


def offsets_of(T, G):
    """Rows of each group: uneven, one of them empty where there are three or more."""
    cuts = np.sort(np.array([(i * 7 + 3) % (T + 1) for i in range(G - 1)], np.int32))
    if G > 2:
        cuts[1] = cuts[0]
    return np.concatenate([[0], np.sort(cuts), [T]]).astype(np.int32)


def grouped_reference(a, b, T, G):
    at = offsets_of(T, G)
    return np.concatenate([a[s:e] @ b[g] for g, (s, e) in enumerate(zip(at[:-1], at[1:], strict=True))])


def grouped_bound(run):
    a, b, at = run.inputs["a"], run.inputs["b"], offsets_of(run.dims["T"], run.dims["G"])
    model = bounds.dot("a", "b", precision=TF32)
    parts = [
        model(bounds.Exact({"a": a[s:e], "b": b[g]}, {}, run.dims, run.dtype, run.device))
        for g, (s, e) in enumerate(zip(at[:-1], at[1:], strict=True)) if e > s
    ]  # fmt: skip
    return np.concatenate(parts)


@gpuemu.op(
    linear="K",
    dims={"T": (1, 16, 40, 67), "G": (1, 2, 4), "N": (1, 31, 33), "K": (15, 32, 40)},
    inputs={"a": Input("T K", largest=2.0**10), "b": Input("G K N", largest=2.0**10)}, outputs={"c": Output("T N")},
    reference=grouped_reference, bound=grouped_bound,
)  # fmt: skip
def grouped_matmul(run, a, b, c, T, G, N, K):
    blocks = {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 32}
    run(grouped_kernel, (G, triton.cdiv(N, 32)), a, b, offsets_of(T, G), c, N, K, **blocks)


@gpuemu.op(
    dims=DIMS, dtypes=("float32",),
    inputs={"a": Input("M K", "int8", low=-128, high=128), "b": Input("K N", "int8", low=-128, high=128)},
    outputs={"c": Output("M N", "int32")}, reference=lambda a, b: a.astype(np.int64) @ b.astype(np.int64),
    bound=bounds.exact(),
)  # fmt: skip
def matmul_int8(run, a, b, c, M, N, K):
    run(int8_kernel, tiles(M, N), a, b, c, M, N, K, **BLOCKS)


@gpuemu.op(
    linear="K",
    dims={"N": (1, 15, 16, 17, 40), "K": (1, 31, 32, 33, 100)},
    inputs={"a": Input("N K", largest=2.0**10), "x": Input("K", largest=2.0**10)}, outputs={"y": Output("N")},
    reference=lambda a, x: a @ x,
    bound=bounds.absolute(lambda a, x: a @ x, roundings=lambda K: bounds.loop_depth(32)(K) + 2),
)  # fmt: skip
def matvec(run, a, x, y, N, K):
    run(matvec_kernel, (triton.cdiv(N, 16),), a, x, y, N, K, BLOCK_N=16, BLOCK_K=32)
