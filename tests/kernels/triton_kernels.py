"""Triton kernels that use what the corpus does not: control flow, atomics, narrow types, scans, sorts, random bits,
inline assembly, data that changes lanes, grids of three dimensions. The tests run them through `gpuemu.run`."""

from __future__ import annotations

import triton
import triton.language as tl


# ------------------------------------------------------------------------------------------------ control flow
@triton.jit
def binary_search(keys, x, out, n):
    """A while loop with a length of its own in each program, and nested ifs on scalars."""
    i = tl.program_id(0)
    wanted = tl.load(x + i)
    low = 0
    high = n
    steps = 0
    while low < high:
        middle = (low + high) // 2
        v = tl.load(keys + middle)
        if v < wanted:
            low = middle + 1
        else:
            if v == wanted:
                steps += 100
            high = middle
        steps += 1
    tl.store(out + 2 * i, low)
    tl.store(out + 2 * i + 1, steps)


@triton.jit
def early_exit(x, out, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    if start >= n:
        return
    at = start + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    if tl.sum(v, 0) % 2 == 0:
        v = -v
    tl.store(out + at, v, mask=at < n)


@triton.jit(noinline=True)
def _not_inlined(a, b):
    return a * 3 + b


@triton.jit
def calls(x, out, scalar, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + _not_inlined(scalar, 1))


@triton.jit
def wait_for_another_program(flag, out, BLOCK: tl.constexpr):
    """Program 0 needs what program 1 does; all threads of the program meet at a barrier in each turn of the loop."""
    at = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        while tl.atomic_cas(flag, 1, 1) != 1:
            pass
        tl.store(out + BLOCK + at, tl.load(out + at, volatile=True) + 1)
    else:
        tl.store(out + at, at * 2)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1)


@triton.jit
def locked_sum(lock, total, x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + at), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total, volatile=True) * 3 + v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


# ------------------------------------------------------------------------------------------------ addresses
@triton.jit
def far_rows(x, out, stride, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BLOCK + at, tl.load(x + row * stride + at))


@triton.jit
def transpose_3d(x, out, a, b, c, BLOCK: tl.constexpr):
    """A program an (i, j) pair of a 3-D grid with chunks of c in the third dimension."""
    i, j = tl.program_id(0), tl.program_id(1)
    k = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + (i * b + j) * c + k, mask=k < c)
    tl.store(out + (k * b + j) * a + i, v, mask=k < c)


@triton.jit
def descriptor_copy(x, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, (m, n), (n, 1), (BM, BN))
    target = tl.make_tensor_descriptor(out, (n, m), (m, 1), (BN, BM))
    v = source.load((tl.program_id(0) * BM, tl.program_id(1) * BN))
    target.store((tl.program_id(1) * BN, tl.program_id(0) * BM), tl.trans(v))


@triton.jit
def gather_rows(x, index, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = r * COLUMNS + c
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), AXIS))


# ------------------------------------------------------------------------------------------------ atomics
@triton.jit
def atomic_sum(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + at % 7, tl.load(x + at, mask=at < n, other=0), mask=at < n)


@triton.jit
def atomic_extremes(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_max(out + at * 0, v, mask=at < n)
    tl.atomic_min(out + at * 0 + 1, v, mask=at < n)


@triton.jit
def atomic_bits(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_and(out + at * 0, v, mask=at < n)
    tl.atomic_or(out + at * 0 + 1, v, mask=at < n)
    tl.atomic_xor(out + at * 0 + 2, v, mask=at < n)


@triton.jit
def tickets(counter, out, last, BLOCK: tl.constexpr):
    """Each element takes a ticket; exchanges and compare-and-swaps see each other's values."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.atomic_add(counter + at * 0, 1))
    tl.atomic_xchg(last + at, at)
    tl.atomic_cas(last + at, at, at + 1000)


# ------------------------------------------------------------------------------------------------ types
@triton.jit
def convert(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask).to(out.dtype.element_ty), mask=mask)


@triton.jit
def integer_arithmetic(x, y, out, n, BLOCK: tl.constexpr):
    """Nine results an element: + - * // % & | ^ and a comparison; Triton divides towards zero."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a = tl.load(x + at, mask=mask, other=1)
    b = tl.load(y + at, mask=mask, other=1)
    tl.store(out + at, a + b, mask=mask)
    tl.store(out + n + at, a - b, mask=mask)
    tl.store(out + 2 * n + at, a * b, mask=mask)
    tl.store(out + 3 * n + at, a // b, mask=mask)
    tl.store(out + 4 * n + at, a % b, mask=mask)
    tl.store(out + 5 * n + at, a & b, mask=mask)
    tl.store(out + 6 * n + at, a | b, mask=mask)
    tl.store(out + 7 * n + at, a ^ b, mask=mask)
    tl.store(out + 8 * n + at, (a < b).to(out.dtype.element_ty), mask=mask)


@triton.jit
def shifts(x, by, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    v, s = tl.load(x + at, mask=mask), tl.load(by + at, mask=mask)
    tl.store(out + at, v << s, mask=mask)
    tl.store(out + n + at, v >> s, mask=mask)


@triton.jit
def float_arithmetic(x, y, out, n, BLOCK: tl.constexpr):
    """Results that IEEE defines exactly: + - * fma sqrt_rn div_rn min max floor ceil abs neg."""
    at = tl.arange(0, BLOCK)
    mask = at < n
    a, b = tl.load(x + at, mask=mask, other=1.0), tl.load(y + at, mask=mask, other=1.0)
    tl.store(out + at, a + b, mask=mask)
    tl.store(out + n + at, a - b, mask=mask)
    tl.store(out + 2 * n + at, a * b, mask=mask)
    tl.store(out + 3 * n + at, tl.fma(a, b, a), mask=mask)
    tl.store(out + 4 * n + at, tl.sqrt_rn(tl.abs(a)), mask=mask)
    tl.store(out + 5 * n + at, tl.div_rn(a, b), mask=mask)
    tl.store(out + 6 * n + at, tl.minimum(a, b), mask=mask)
    tl.store(out + 7 * n + at, tl.maximum(a, b), mask=mask)
    tl.store(out + 8 * n + at, tl.floor(a), mask=mask)
    tl.store(out + 9 * n + at, tl.ceil(a), mask=mask)
    tl.store(out + 10 * n + at, -tl.abs(a), mask=mask)


@triton.jit
def double_arithmetic(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    a, b = tl.load(x + at, mask=mask, other=1.0), tl.load(y + at, mask=mask, other=1.0)
    tl.store(out + at, a + b, mask=mask)
    tl.store(out + n + at, a * b - a, mask=mask)
    tl.store(out + 2 * n + at, a / b, mask=mask)
    tl.store(out + 3 * n + at, tl.sqrt(tl.abs(a)), mask=mask)
    tl.store(out + 4 * n + at, tl.fma(a, b, a), mask=mask)
    tl.store(out + 5 * n + at, tl.sum(tl.where(mask, a, 0.0), 0) + at * 0.0, mask=mask)


@triton.jit
def special_functions(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask, other=1.0)
    tl.store(out + at, tl.exp(v), mask=mask)
    tl.store(out + n + at, tl.log(tl.abs(v)), mask=mask)
    tl.store(out + 2 * n + at, tl.sin(v), mask=mask)
    tl.store(out + 3 * n + at, tl.cos(v), mask=mask)
    tl.store(out + 4 * n + at, tl.rsqrt(tl.abs(v)), mask=mask)
    tl.store(out + 5 * n + at, tl.exp2(v), mask=mask)
    tl.store(out + 6 * n + at, tl.log2(tl.abs(v)), mask=mask)
    tl.store(out + 7 * n + at, tl.sigmoid(v), mask=mask)
    tl.store(out + 8 * n + at, tl.erf(v), mask=mask)
    tl.store(out + 9 * n + at, tl.sqrt(tl.abs(v)), mask=mask)
    tl.store(out + 10 * n + at, 1.0 / v, mask=mask)


@triton.jit
def logic(x, y, out, n, BLOCK: tl.constexpr):
    """Booleans in memory."""
    at = tl.arange(0, BLOCK)
    mask = at < n
    a, b = tl.load(x + at, mask=mask), tl.load(y + at, mask=mask)
    tl.store(out + at, (a & b) | (not_(a) & not_(b)), mask=mask)


@triton.jit
def not_(a):
    return a == 0


@triton.jit
def bits_and_high_products(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask)
    tl.store(out + at, tl.umulhi(v, v + 12345), mask=mask)
    tl.store(out + n + at, v.to(tl.float32, bitcast=True).to(tl.uint32, bitcast=True) ^ 0x5555, mask=mask)


# ------------------------------------------------------------------------------------------------ across a tile
@triton.jit
def reductions(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr, SIZE: tl.constexpr):
    """sum, max, min, argmax, argmin and xor along an axis."""
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + r * COLUMNS + c)
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.sum(v, AXIS))
    tl.store(out + SIZE + at, tl.max(v, AXIS))
    tl.store(out + 2 * SIZE + at, tl.min(v, AXIS))
    tl.store(out + 3 * SIZE + at, tl.argmax(v, AXIS))
    tl.store(out + 4 * SIZE + at, tl.argmin(v, AXIS))
    tl.store(out + 5 * SIZE + at, tl.xor_sum(v, AXIS))


@triton.jit
def _last_nonzero(a, b):
    return tl.where(b == 0, a, b)


@triton.jit
def scans(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, AXIS, reverse=REVERSE))
    tl.store(out + ROWS * COLUMNS + at, tl.associative_scan(v, AXIS, _last_nonzero, reverse=REVERSE))


@triton.jit
def sort_rows(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DESCENDING: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), 1, DESCENDING))


@triton.jit
def flip_rows(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.flip(tl.load(x + at), 1))


@triton.jit
def counts(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n))


@triton.jit
def shapes(x, out, N: tl.constexpr):
    """reshape, permute, join, split, interleave, broadcast: only positions change."""
    at = tl.arange(0, N)
    v = tl.load(x + at)
    cube = tl.permute(tl.reshape(v, (4, N // 16, 4)), (2, 0, 1))
    tl.store(out + at, tl.reshape(cube, (N,)))
    a, b = tl.split(tl.reshape(v, (N // 2, 2)))
    tl.store(out + N + at, tl.interleave(b, a))
    tl.store(out + 2 * N + at, tl.reshape(tl.join(a, b), (N,)))
    tl.store(
        out + 3 * N + at, tl.reshape(tl.broadcast_to(tl.sum(tl.reshape(v, (4, N // 4)), 1)[:, None], (4, N // 4)), (N,))
    )


# ------------------------------------------------------------------------------------------------ bits and products
@triton.jit
def random_words(out, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.randint(seed, at), mask=at < n)


@triton.jit
def inline_assembly(x, y, out, BLOCK: tl.constexpr):
    """Average of four bytes packed in a word: vadd and shift in PTX, four elements an invocation."""
    at = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise(
        """
        {
            .reg .b32 a, b;
            xor.b32 a, $1, $2;
            and.b32 b, $1, $2;
            shr.u32 a, a, 1;
            and.b32 a, a, 0x7f7f7f7f;
            add.u32 $0, a, b;
        }
        """,
        "=r,r,r",
        [tl.load(x + at), tl.load(y + at)],
        dtype=tl.uint8,
        is_pure=True,
        pack=4,
    )
    tl.store(out + at, v)


@triton.jit
def product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANSPOSED: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    va = tl.load(a + m[:, None] * K + k[None, :])
    if TRANSPOSED:  # noqa: SIM108  (a constexpr: only one branch is compiled)
        vb = tl.trans(tl.load(b + n[:, None] * K + k[None, :]))
    else:
        vb = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(va, vb, out_dtype=out.dtype.element_ty))


@triton.jit
def batched_product(a, b, out, B: tl.constexpr, S: tl.constexpr):
    i, j, k = tl.arange(0, B)[:, None, None], tl.arange(0, S)[None, :, None], tl.arange(0, S)[None, None, :]
    at = (i * S + j) * S + k
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def add_one_with_hints(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0, eviction_policy="evict_first")
    tl.store(out + at, v + 1, mask=at < n, eviction_policy="evict_last")


@triton.jit
def converted(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty))


@triton.jit
def tells(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.device_print("v", v)
    tl.device_assert(v < 100, "too large")
