"""Launches of the kernels in `numba_kernels.py`, and what is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from interp.result import Result
from tests.compilers.expected import check_function, same_bits
from tests.compilers.runner import Array, Case

N = 96
CASES: dict[str, Case] = {}
Args = list[Any]


def case(args: Callable[[np.random.Generator], Args], block: Any = (32,), grid: Any = (3,), **more: Any) -> Any:
    """Registers a check under the kernel's name."""

    def add(check: Callable[[Args, Args, Result], None]) -> Any:
        name = check.__name__
        CASES[name] = Case("numba", name, block, args, check, grid, **more)
        return check

    return add


# ------------------------------------------------------------------------------------------------ functions
FUNCTIONS_TEXT = """
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log10 log1p log2 sqrt erf erfc tgamma
    lgamma atan2 hypot pow pow cbrt rsqrt exp2 sinpi j0
"""
FUNCTIONS = FUNCTIONS_TEXT.split()


def _functions(before: Args, after: Args, ulps: dict[str, float]) -> None:
    x, y, out = after
    kind = x.dtype.type
    for row, name in enumerate(FUNCTIONS):
        a, b = (x,), (y,)
        arguments = {
            "asin": (x / kind(8),), "acos": (x / kind(8),), "atanh": (x / kind(8),), "acosh": (y + kind(1),),
            "atan2": (x, y), "hypot": (x, y), "pow": (y, x),
        }.get(name, b if name in ("log", "log10", "log1p", "log2", "sqrt", "tgamma", "lgamma", "rsqrt",
        "j0") else a)  # fmt: skip
        check_function(name, out[row], *arguments, ulps=ulps.get(name))


def _two(dtype: Any, rows: int) -> Callable[[np.random.Generator], Args]:
    return lambda rng: [
        rng.uniform(-6, 6, N).astype(dtype), rng.uniform(0.1, 7.9, N).astype(dtype), np.zeros((rows, N), dtype)
    ]  # fmt: skip


@case(_two(np.float64, 32))
def functions64(before: Args, after: Args, result: Result) -> None:
    _functions(before, after, {"j0": 7})


@case(_two(np.float32, 32))
def functions32(before: Args, after: Args, result: Result) -> None:
    _functions(before, after, {"j0": 9})


@case(_two(np.float64, 23))
def exact64(before: Args, after: Args, result: Result) -> None:
    x, y, out = after
    mantissa, power = np.frexp(x)
    rows = [
        np.floor(x), np.ceil(x), np.trunc(x), np.abs(x), np.fmod(x, y), np.copysign(x, y), np.ldexp(x, 5), mantissa,
        power, np.round(x) + 0.0, np.floor_divide(x, y), None, [_rational(a * b + a) for a, b in _fractions(x, y)],
        np.minimum(x, y), np.maximum(x, y), x / y, np.trunc(x), np.modf(x)[0],
    ]  # fmt: skip
    for row, want in enumerate(rows):
        if want is not None:
            same_bits(out[row], np.asarray(want, np.float64))
    assert (out[11] == _modulus(x, y, fused=False)).all() or (out[11] == _modulus(x, y, fused=True)).all()
    for i, (a, b) in enumerate(_fractions(x, y)):
        assert Fraction(out[18, i]) <= a * b + a < Fraction(math.nextafter(out[18, i], math.inf))
        assert Fraction(math.nextafter(out[19, i], -math.inf)) < a / b <= Fraction(out[19, i])
    same_bits(out[20:], np.repeat([[0.0], [0.0], [1.0]], N, 1))


def _modulus(x: Array, y: Array, fused: bool) -> Array:
    """`x % y` for positive y as NVVM makes it: a quotient rounded down, times y, taken from x; before sm_100 by a
    multiplication and a subtraction, from there on by one fused operation."""
    count = np.floor(np.abs(x) / y)
    exact = [_rational(abs(a) - Fraction(float(n)) * b) for (a, b), n in zip(_fractions(x, y), count, strict=True)]
    rest = np.array(exact) if fused else np.abs(x) - count * y
    return np.where((x < 0) & (rest != 0), y - rest, rest)


def _fractions(x: Array, y: Array) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(x, y, strict=True)]


def _rational(value: Fraction) -> float:
    return float(value)  # correctly rounded


# ------------------------------------------------------------------------------------------------ integers
def _wrap(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _integers(x: Array, y: Array, bits: int) -> list[list[int]]:
    columns = []
    mask = (1 << bits) - 1
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        low = a & mask
        columns.append([
            a // b, a % b, a * b, a ^ b, a >> (b & (bits - 1)), a << (b & (bits - 1)), low.bit_count(),
            bits - low.bit_length(), (low & -low).bit_length(), int(f"{low:0{bits}b}"[::-1], 2), max(a, b), abs(a),
        ])  # fmt: skip
    return [[_wrap(v, bits) for v in row] for row in zip(*columns, strict=True)]


def _words(dtype: Any, rows: int) -> Callable[[np.random.Generator], Args]:
    def make(rng: np.random.Generator) -> Args:
        info = np.iinfo(dtype)
        x, y = (rng.integers(info.min, info.max, N, dtype, endpoint=True) for _ in range(2))
        y[: N // 2] >>= info.bits - 8
        y[y == 0] = 3
        x[:3] = info.min, 0, -1
        return [x, y, np.zeros((rows, N), dtype)]

    return make


@case(_words(np.int32, 20))
def integers32(before: Args, after: Args, result: Result) -> None:
    x, y, out = after
    same_bits(out[:12], np.array(_integers(x, y, 32), np.int32))
    same_bits(out[12:16], np.array([~x, -x, x & y, x | y]))
    wide = x.astype(object) * y.astype(object)
    same_bits(out[16], np.array([v >> 32 for v in wide], np.int32))
    a, b = (v.view(np.uint8).reshape(N, 4) for v in (x, y))
    same_bits(out[17], np.stack([a[:, 0], b[:, 0], a[:, 1], b[:, 1]], 1).reshape(-1).view(np.int32))
    same_bits(
        out[18], np.array([_wrap(abs(p - q) + 7, 32) for p, q in zip(x.tolist(), y.tolist(), strict=True)], np.int32)
    )
    same_bits(out[19], np.array([(p + q) >> 1 for p, q in zip(x.tolist(), y.tolist(), strict=True)], np.int32))


@case(_words(np.int64, 15))
def integers64(before: Args, after: Args, result: Result) -> None:
    x, y, out = after
    same_bits(out[:12], np.array(_integers(x, y, 64), np.int64))
    u, v = x.view(np.uint64), (y | 1).view(np.uint64)
    same_bits(out[12:14], np.array([u // v, u % v]).view(np.int64))
    same_bits(out[14], np.array([v >> 64 for v in x.astype(object) * y.astype(object)], np.int64))


# ------------------------------------------------------------------------------------------------ halves, complex
@case(_two(np.float16, 17))
def halves(before: Args, after: Args, result: Result) -> None:
    x, y, out = after
    a, b = x.astype(np.float64), y.astype(np.float64)
    rows = [
        a + b, a - b, a * b, None, a * b + a, -a, np.abs(a), np.maximum(a, b), np.minimum(a, b), np.floor(a),
        np.ceil(a),
        np.rint(a), np.trunc(a), np.sqrt(b), a > b, a * 2, np.rint(a) + 0.0,  # numba converts to integers with .rni
    ]  # fmt: skip
    for row, want in enumerate(rows):
        if want is not None:  # sums and products are exact in doubles, and rounded once here
            same_bits(out[row], np.asarray(want).astype(np.float16))
    error = np.abs(out[3].astype(np.float64) - a / b) / np.spacing(np.abs(a / b).astype(np.float16)).astype(np.float64)
    assert error.max() <= 1


def _small_halves(rng: np.random.Generator) -> Args:
    return [*(rng.uniform(*r, N).astype(np.float16) for r in ((-4.5, 4.5), (0.1, 7.9))), np.zeros((10, N), np.float16)]


@case(_small_halves)
def half_functions(before: Args, after: Args, result: Result) -> None:
    x, y, out = after
    a, b = x.astype(np.float64), np.abs(y).astype(np.float64)
    rows = [
        np.sin(a),
        np.cos(a),
        np.exp(a),
        np.log(b),
        np.exp2(a),
        np.log2(b),
        10**a,
        np.log10(b),
        1 / np.sqrt(b),
        1 / b,
    ]
    for row, want in enumerate(rows):
        unit = np.maximum(np.spacing(np.abs(want).astype(np.float16)).astype(np.float64), 2.0**-24)
        assert (np.abs(out[row].astype(np.float64) - want) <= 2 * unit).all(), row


def _complex(rng: np.random.Generator) -> Args:
    x, y = (rng.normal(size=N) + 1j * rng.normal(size=N) for _ in range(2))
    return [x, y, np.zeros((6, N), np.complex128)]


@case(_complex)
def complex_numbers(before: Args, after: Args, result: Result) -> None:
    x, y, out = after
    for row, want in enumerate([x + y, x * y, x / y, x.conj(), np.abs(x) + 0j, x.real + 1j * y.imag]):
        assert (np.abs(out[row] - want) <= 4e-16 * np.abs(want) + 4e-16).all(), row


def _plane(rng: np.random.Generator) -> Args:
    x = rng.uniform(-2, 0.5, N) + 1j * rng.uniform(-1, 1, N)
    return [x.astype(np.complex64), np.zeros(N, np.complex64)]


@case(_plane)
def mandelbrot(before: Args, after: Args, result: Result) -> None:
    """Counts that rounding cannot change: near the border they may differ by fusing, elsewhere not."""
    c, out = after
    for i in range(N):
        counts = set()
        for nudge in (-1e-6, 0, 1e-6):
            z, n = 0j, 0
            while n < 30 and abs(z) ** 2 < 4:
                z, n = z * z + complex(c[i]) + nudge, n + 1
            counts.add(n)
        if len(counts) == 1:
            assert out[i] == counts.pop(), i


# ------------------------------------------------------------------------------------------------ atomics
def _atomic_args(rng: np.random.Generator) -> Args:
    s = np.array([0, 0, -50, 50, -1, 0, 0, 0, 0, 0], np.int32)
    f = np.array([0, -99, 99, -99], np.float32)
    d = np.array([0, -99, 99, 99], np.float64)
    return [
        s,
        np.array([7, 5, 0], np.uint32),
        np.array([0, -9, 9, 0], np.int64),
        f,
        d,
        rng.integers(-40, 41, N, np.int32),
    ]


@case(_atomic_args)
def atomics(before: Args, after: Args, result: Result) -> None:
    s, u, w, f, d, x = after
    v = x.tolist()
    fold = lambda f, start: __import__("functools").reduce(f, v, start)  # noqa: E731
    u0, u1 = 7, 5
    for _ in v:
        u0 = 0 if u0 >= 100 else u0 + 1
        u1 = 50 if u1 == 0 or u1 > 50 else u1 - 1
    want = [sum(v), -sum(v), max(-50, *v), min(50, *v), fold(lambda a, b: a & (b | 3), -1), fold(lambda a, b: a | b, 0),
            fold(lambda a, b: a ^ b, 0), 1, 5, v[5]]  # fmt: skip
    same_bits(s, np.array(want, np.int32))
    same_bits(u, np.array([u0, u1, max(a & 0xFFFF_FFFF for a in v)], np.uint32))
    same_bits(w, np.array([sum(v) << 20, max(-9, max(v) << 33), min(9, min(v) << 33), v[5]], np.int64))
    same_bits(f, np.array([sum(v), max(v) * 0.5, min(v) * 0.5, max(v)], np.float32))
    same_bits(d, np.array([sum(v) * 0.25, max(v) * 0.5, min(v) * 0.5, min(v)], np.float64))


# ------------------------------------------------------------------------------------------------ memory, warps
@case(lambda rng: [rng.integers(0, 9, 384).astype(np.float32), np.zeros(3, np.float32)], (128,), shared=512)
def shared_sum(before: Args, after: Args, result: Result) -> None:
    x, out = after
    same_bits(out, x.reshape(3, 128).sum(1) + np.float32(7))


@case(lambda rng: [rng.integers(0, 9, N).astype(np.float32), np.zeros(N, np.float32)])
def local_and_constant(before: Args, after: Args, result: Result) -> None:
    x, out = after
    table = np.arange(1, 9) ** 2
    want = [x[i] * 45 + sum(table[(k + i) % 8] for k in range(10)) for i in range(N)]
    same_bits(out, np.array(want, np.float32))


@case(lambda rng: [rng.integers(0, 8, 32, np.int32), np.zeros((18, 32), np.uint32)], grid=(1,))
def warps(before: Args, after: Args, result: Result) -> None:
    x, out = after
    lane = np.arange(32)
    ballot = lambda p: sum(int(b) << i for i, b in enumerate(p))  # noqa: E731
    everywhere = lambda value: np.full(32, int(value))  # noqa: E731
    same = np.array([ballot((x & 3) == (v & 3)) for v in x])
    odd = ballot(x & 1)
    rows = [
        everywhere(x[5]), x[np.where(lane < 2, lane, lane - 2)], x[np.where(lane > 28, lane, lane + 3)], x[lane ^ 9],
        x[lane ^ 1], everywhere((x > 0).all()), everywhere((x > 6).any()), everywhere(len(set(x > 3)) == 1),
        everywhere(odd), same, everywhere(0), everywhere(0), everywhere((x & 1).sum()), everywhere(1),
        everywhere((x == 7).any()), np.where(x & 1, odd, 0), (1 << lane) - 1, lane,
    ]  # fmt: skip
    for row, want in enumerate(rows):
        assert out[row].tolist() == np.asarray(want).tolist(), row


@case(lambda rng: [rng.integers(0, 99, (4, N), np.int32), np.zeros((4, N), np.int32)])
def grid_sync(before: Args, after: Args, result: Result) -> None:
    x, out = after
    want = np.zeros((4, N), np.int32)
    for row in range(1, 4):
        want[row] = np.roll(want[row - 1], -1) + x[row]
    same_bits(out, want)


@case(lambda rng: [rng.integers(0, 60, N, np.int32), np.zeros((3, N), np.int32)])
def calls(before: Args, after: Args, result: Result) -> None:
    x, out = after

    def collatz(n: int) -> int:
        steps = 0
        while n != 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    fibonacci = [0, 1]
    while len(fibonacci) < 12:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    i = np.arange(N)
    same_bits(out, np.array([[collatz(v + 1) for v in x], i * 100 + x, [fibonacci[k % 12] for k in i]], np.int32))


RECORD = np.dtype([("a", np.int16), ("b", np.float64), ("c", np.float32, (3,))], align=True)


def _records(rng: np.random.Generator) -> Args:
    r = np.zeros(N, RECORD)
    r["a"], r["b"], r["c"] = rng.integers(-9, 9, N), rng.integers(-9, 9, N), rng.integers(-9, 9, (N, 3))
    return [r, np.zeros(N)]


@case(_records)
def records(before: Args, after: Args, result: Result) -> None:
    was, (r, out) = before[0], after
    same_bits(out, was["a"] * was["b"] + was["c"][:, 2])
    same_bits(r["a"], was["a"] + np.int16(1))
    same_bits(r["c"][:, 0], was["b"].astype(np.float32))


@case(lambda rng: [rng.integers(-4, 5, s).astype(np.float32) for s in ((13, 20), (20, 11), (13, 11))], (8, 8), (2, 2))
def matmul(before: Args, after: Args, result: Result) -> None:
    a, b, c = after
    same_bits(c, a @ b)


@case(lambda rng: [np.zeros(N, np.int32)])
def vector_types(before: Args, after: Args, result: Result) -> None:
    same_bits(after[0], np.arange(130, 130 + N, dtype=np.int32))


@case(lambda rng: [np.arange(5, 5 + N, dtype=np.int32)])
def printing(before: Args, after: Args, result: Result) -> None:
    assert result.printed == "".join(f"value {i} {5 + i} {0.5 * (5 + i):f}\n" for i in range(3)), result.printed


@case(lambda rng: [np.arange(1, 1 + N, dtype=np.int32), np.zeros(N, np.int32)])
def raising(before: Args, after: Args, result: Result) -> None:
    x, y = after
    same_bits(y, 100 // x)


# ------------------------------------------------------------------------------------------------ random numbers
def _xoroshiro(seed: int, draws: int) -> list[int]:
    """SplitMix64 fills the state, xoroshiro128+ draws (Blackman and Vigna, with rotations 55, 14, 36)."""
    mask = (1 << 64) - 1
    z = (seed + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    s0 = s1 = z ^ z >> 31
    out = []
    for _ in range(draws):
        out.append((s0 + s1) & mask)
        s1 ^= s0
        turn = lambda v, k: (v << k | v >> (64 - k)) & mask  # noqa: E731
        s0, s1 = turn(s0, 55) ^ s1 ^ (s1 << 14) & mask, turn(s1, 36)
    return out


STATE = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)


@case(
    lambda rng: [
        np.zeros(N, STATE),
        np.zeros(3 * N, np.float32),
        np.zeros(3 * N),
        np.zeros(N, np.float32),
        np.zeros(N),
        41,
    ]
)
def random(before: Args, after: Args, result: Result) -> None:
    _, u32, u64, n32, n64, seed = after
    for i in range(N):
        words = _xoroshiro(seed + i, 10)
        uniform = [(w >> 11) * 2.0**-53 for w in words]
        same_bits(u64[3 * i : 3 * i + 3], np.array(uniform[1:6:2]))
        same_bits(u32[3 * i : 3 * i + 3], np.array(uniform[0:6:2], np.float32))
        for got, a, b in ((n32[i], *uniform[6:8]), (n64[i], *uniform[8:10])):  # both draw single numbers
            normal = math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b)
            assert abs(got - normal) < 2e-6 * max(1, abs(normal))
    assert len({*u64.tolist()}) == 3 * N


@case(
    lambda rng: [rng.normal(size=(5, 6, 7)).astype(np.float32), np.zeros((7, 6, 5), np.float32)], (2, 4, 4), (3, 2, 2)
)
def strided(before: Args, after: Args, result: Result) -> None:
    x, out = after
    same_bits(out, x.transpose(2, 1, 0) + np.float32(6 * 100 + 8 * 10 + 8))
