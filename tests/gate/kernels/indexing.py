"""Correct gathers, scatters, reductions, prefix sums and selections."""

import triton
import triton.language as tl

import gpuemu
from gpuemu import schemas

BLOCK = 128


def row_block(n):
    return max(triton.next_power_of_2(n), 2)


def row_strides(*arrays):
    return [a.strides[0] // a.itemsize for a in arrays]


@triton.jit
def move_rows_kernel(x, index, y, x_stride, y_stride, D, MODE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    other = tl.load(index + row)
    source = other if MODE == "gather" else row
    target = row if MODE == "gather" else other
    v = tl.load(x + source * x_stride + at, mask=at < D)
    if MODE == "add":
        tl.atomic_add(y + target * y_stride + at, v.to(tl.float32), mask=at < D)
    else:
        tl.store(y + target * y_stride + at, v, mask=at < D)


def move_rows(run, x, index, y, mode):
    D = x.shape[1]
    grid = (len(index), triton.cdiv(D, BLOCK))
    run(move_rows_kernel, grid, x, index, y, *row_strides(x, y), D, MODE=mode, BLOCK=BLOCK)


@gpuemu.op(schemas.embedding())
def embedding(run, table, index, y):
    move_rows(run, table, index, y, "gather")


@gpuemu.op(schemas.permute_rows())
def permute_rows(run, x, order, y):
    move_rows(run, x, order, y, "gather")


@gpuemu.op(schemas.permute_rows(inverse=True))
def unpermute_rows(run, x, order, y):
    move_rows(run, x, order, y, "scatter")


@gpuemu.op(schemas.index_put())
def index_put(run, x, index, y):
    move_rows(run, x, index, y, "scatter")


@gpuemu.op(schemas.scatter_add())
def scatter_add(run, x, index, y):
    move_rows(run, x, index, y, "add")


@triton.jit
def gather_kernel(x, index, y, N, K, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    column = tl.load(index + row * K + at, mask=at < K, other=0)
    tl.store(y + row * K + at, tl.load(x + row * N + column, mask=at < K), mask=at < K)


@gpuemu.op(schemas.gather())
def gather(run, x, index, y):
    (M, N), K = x.shape, index.shape[1]
    run(gather_kernel, (M, triton.cdiv(K, BLOCK)), x, index, y, N, K, BLOCK=BLOCK)


@triton.jit
def reduce_kernel(x, y, x_stride, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if FUNCTION == "max" or FUNCTION == "argmax":
        v = tl.load(x + row * x_stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
        r = tl.max(v, axis=0) if FUNCTION == "max" else tl.argmax(v, axis=0)
    else:
        v = tl.load(x + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
        r = tl.sum(v, axis=0) if FUNCTION == "sum" else tl.sum(v, axis=0) / n
    tl.store(y + row, r.to(y.dtype.element_ty))


@gpuemu.op(schemas.row_sum())
def row_sum(run, x, y):
    run(reduce_kernel, (len(x),), x, y, *row_strides(x), x.shape[1], FUNCTION="sum", BLOCK=row_block(x.shape[1]))


@gpuemu.op(schemas.row_mean())
def row_mean(run, x, y):
    run(reduce_kernel, (len(x),), x, y, *row_strides(x), x.shape[1], FUNCTION="mean", BLOCK=row_block(x.shape[1]))


@gpuemu.op(schemas.row_max())
def row_max(run, x, y):
    run(reduce_kernel, (len(x),), x, y, *row_strides(x), x.shape[1], FUNCTION="max", BLOCK=row_block(x.shape[1]))


@gpuemu.op(schemas.argmax())
def argmax(run, x, index):
    run(reduce_kernel, (len(x),), x, index, *row_strides(x), x.shape[1], FUNCTION="argmax", BLOCK=row_block(x.shape[1]))


@triton.jit
def column_sum_kernel(x, y, x_stride, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(M):
        total += tl.load(x + row * x_stride + at, mask=at < N, other=0.0).to(tl.float32)
    tl.store(y + at, total, mask=at < N)


@gpuemu.op(schemas.column_sum())
def column_sum(run, x, y):
    M, N = x.shape
    run(column_sum_kernel, (triton.cdiv(N, BLOCK),), x, y, *row_strides(x), M, N, BLOCK=BLOCK)


@triton.jit
def variance_kernel(x, mean, var, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
    centre = tl.sum(v, axis=0) / n
    off = tl.where(at < n, v - centre, 0.0)
    tl.store(mean + row, centre)
    tl.store(var + row, tl.sum(off * off, axis=0) / n)


@gpuemu.op(schemas.row_variance())
def row_variance(run, x, mean, var):
    run(variance_kernel, (len(x),), x, mean, var, *row_strides(x), x.shape[1], BLOCK=row_block(x.shape[1]))


@triton.jit
def highest_of(a, b):
    return tl.maximum(a, b)


@triton.jit
def scan_kernel(x, y, x_stride, y_stride, n, MODE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if MODE == "max":
        v = tl.load(x + row * x_stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
        r = tl.associative_scan(v, 0, highest_of)
        tl.store(y + row * y_stride + at, r.to(y.dtype.element_ty), mask=at < n)
    else:
        place = at if MODE == "forward" else n - 1 - at
        v = tl.load(x + row * x_stride + place, mask=at < n, other=0.0).to(tl.float32)
        r = tl.cumsum(v, axis=0)
        tl.store(y + row * y_stride + place, r.to(y.dtype.element_ty), mask=at < n)


@gpuemu.op(schemas.cumsum())
def cumsum(run, x, y):
    n = x.shape[1]
    run(scan_kernel, (len(x),), x, y, *row_strides(x, y), n, MODE="forward", BLOCK=row_block(n))


@gpuemu.op(schemas.cumsum(reverse=True))
def cumsum_reverse(run, x, y):
    n = x.shape[1]
    run(scan_kernel, (len(x),), x, y, *row_strides(x, y), n, MODE="reverse", BLOCK=row_block(n))


@gpuemu.op(schemas.cummax())
def cummax(run, x, y):
    n = x.shape[1]
    run(scan_kernel, (len(x),), x, y, *row_strides(x, y), n, MODE="max", BLOCK=row_block(n))


@triton.jit
def sort_kernel(x, y, N: tl.constexpr, DESCENDING: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + at).to(tl.float32)
    tl.store(y + at, tl.sort(v, descending=DESCENDING).to(y.dtype.element_ty))


@gpuemu.op(schemas.sort(sizes=(2, 16, 64, 128)))
def sort(run, x, y):
    run(sort_kernel, (len(x),), x, y, N=x.shape[1], DESCENDING=False)


@triton.jit
def top_k_kernel(x, values, indices, x_stride, n, K, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
    for k in range(K):
        best = tl.argmax(v, axis=0)
        tl.store(values + row * K + k, tl.max(v, axis=0).to(values.dtype.element_ty))
        tl.store(indices + row * K + k, best)
        v = tl.where(at == best, -float("inf"), v)


@gpuemu.op(schemas.top_k())
def top_k(run, x, values, indices):
    n = x.shape[1]
    run(top_k_kernel, (len(x),), x, values, indices, *row_strides(x), n, values.shape[1], BLOCK=row_block(n))
