"""Launches of the kernels in `cuda/*.cu`, and what is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from interp.result import Result
from tests.compilers.expected import check_function, same_bits
from tests.compilers.runner import Array, Case

N = 96
CASES: dict[str, Case] = {}
Args = list[Any]
Random = np.random.Generator
BF16 = ml_dtypes.bfloat16


def case(source: str, args: Callable[[Random], Args], block: Any = (32,), grid: Any = (1,), **more: Any) -> Any:
    """Registers a check under the name of its entry."""

    def add(check: Callable[[Args, Args, Result], None]) -> Any:
        name = check.__name__
        CASES[name] = Case(source, name, block, args, check, grid, **more)
        return check

    return add


def _zeros(*shape: int, dtype: Any = np.int32) -> Array:
    return np.zeros(shape, dtype)


# ------------------------------------------------------------------------------------------------ math library
_FUNCTIONS_TEXT = """
    acos:x acosh:y asin:x asinh:x atan:x atanh:x cbrt:x cos:x cosh:x cospi:x erf:x erfc:x exp:x exp10:x exp2:x expm1:x
    log:y log10:y log1p:y log2:y sin:x sinh:x sinpi:x tan:x tanh:x lgamma:y tgamma:y sqrt:y rsqrt:y rcbrt:y j0:y j1:y
    y0:y y1:y erfinv:x erfcinv:|x| normcdf:x normcdfinv:|x| erfcx:y cyl_bessel_i0:x cyl_bessel_i1:x jn:y yn:y
"""
_FUNCTIONS = _FUNCTIONS_TEXT.split()
_EXTRA = {"j0": (9, 7), "j1": (9, 10), "y0": (9, 7), "y1": (9, 10)}
_INVERSES = {
    "erfinv": ("erf", 1.0, 1.0), "erfcinv": ("erfc", 1.0, 1.0), "normcdfinv": ("erfc", -math.sqrt(0.5), 0.5),
}  # fmt: skip


def _unit_and_positive(dtype: Any, rows: int) -> Callable[[Random], Args]:
    return lambda rng: [rng.uniform(-0.99, 0.99, N).astype(dtype), rng.uniform(1.05, 7.9, N).astype(dtype),
                        np.zeros((rows, N), dtype), N]  # fmt: skip


def _check_functions(args: Args) -> None:
    x, y, out, _ = args
    given = {"x": x, "y": y, "|x|": np.abs(x)}
    for row, item in enumerate(_FUNCTIONS):
        name, which = item.split(":")
        a, got = given[which], out[row]
        wide = got.dtype == np.float64
        if name in _INVERSES:
            forward, factor, scale = _INVERSES[name]
            from tests.compilers.expected import reference

            back = scale * np.asarray(reference(forward, factor * got.astype(np.float64)), np.float64)
            slope = np.exp(-((factor * got.astype(np.float64)) ** 2)) * 2 / math.sqrt(math.pi) * abs(factor) * scale
            allowed = 10 * np.spacing(np.abs(got)).astype(np.float64) * slope + 2 * np.finfo(np.float64).eps
            assert (np.abs(back - a) <= allowed).all(), name
        elif name == "normcdf":
            check_function("erfc", (2 * got).astype(got.dtype), -a.astype(np.float64) * math.sqrt(0.5), ulps=6)
        elif name == "erfcx":
            want = np.exp(np.longdouble(1) * a.astype(np.longdouble) ** 2)
            ratio = got / (want * np.array([math.erfc(float(v)) for v in a]))
            assert (np.abs(ratio - 1) < (2e-14 if wide else 5e-7)).all(), name
        elif name in ("jn", "yn"):
            order = 3 if name == "jn" else 2
            want = _bessel(name, order, a)
            assert (np.abs(got - want) < (1e-13 if wide else 3e-6) * np.maximum(1, np.abs(want))).all(), name
        elif name == "lgamma":  # near its zeros at 1 and 2 the error is absolute
            want = np.array([math.lgamma(float(v)) for v in a])
            assert (np.abs(got - want) < (2e-15 if wide else 6e-7) * np.maximum(1, np.abs(want))).all(), name
        else:
            extra = _EXTRA.get(name)
            if extra is not None:  # the Bessel functions, near zeros: absolute
                from tests.compilers.expected import reference

                want = reference(name, a)
                assert (np.abs(got - want) < (3e-15 if wide else 2e-6)).all(), name
            else:
                check_function(name, got, a)


def _bessel(name: str, order: int, a: Array) -> Array:
    import ctypes
    import ctypes.util

    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_int, ctypes.c_double]
    return np.array([function(order, float(v)) for v in a])


@case("math32", _unit_and_positive(np.float32, 43), grid=(3,))
def functions32(before: Args, after: Args, result: Result) -> None:
    _check_functions(after)


@case("math64", _unit_and_positive(np.float64, 43), grid=(3,))
def functions64(before: Args, after: Args, result: Result) -> None:
    _check_functions(after)


def _exact_args(dtype: Any) -> Callable[[Random], Args]:
    def make(rng: Random) -> Args:
        x = np.concatenate([rng.uniform(-9, 9, 64), [0.5, -0.5, 2.5, 1e6, -3.75, 1.0], rng.normal(size=26) * 1e3])
        y = np.concatenate([rng.uniform(-9, 9, 64), rng.uniform(0.1, 3, 32)])
        return [x.astype(dtype), y.astype(dtype), np.zeros((34, N), dtype), N]

    return make


def _check_exact(args: Args) -> None:
    x, y, out, _ = args
    mantissa, power = np.frexp(x)
    rest, whole = np.modf(x)
    away = np.trunc(np.abs(x.astype(np.float64)) + 0.5) * np.sign(x)
    remainders = np.array([math.remainder(float(a), float(b)) for a, b in zip(x, y, strict=True)])
    count = np.array([round(Fraction(float(a)) / Fraction(float(b))) for a, b in zip(x, y, strict=True)])
    fused = [float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(a))) for a, b in zip(x, y, strict=True)]
    rows = [
        np.ceil(x), np.floor(x), np.trunc(x), np.rint(x), np.rint(x), np.copysign(away, x), np.abs(x), np.copysign(x,
        y),
        np.maximum(x - y, 0), np.fmax(x, y), np.fmin(x, y), np.fmod(x, y), remainders, np.nextafter(x, y), x * 8,
        x / 32,
        mantissa, power, rest, whole, power - 1, power - 1, remainders, count & 7, np.rint(x) + 0.0, np.rint(x) + 0.0,
        away + 0.0, away + 0.0, np.ones(N), np.zeros(N), np.zeros(N), np.signbit(x), fused, x / y,
    ]  # fmt: skip
    for row, want in enumerate(rows):
        if row == 23:  # the manual promises the lowest three bits of the quotient, signed
            assert ((out[row].astype(int) - want) % 8 == 0).all()
        elif row == 32 and x.dtype == np.float32:  # rounded twice by numpy's double
            assert (np.abs(out[row] - np.array(want)) <= np.spacing(np.abs(out[row]))).all()
        elif row == 31:
            assert ((out[row] != 0) == np.signbit(x)).all()
        else:
            try:
                same_bits(out[row] + 0 * x, np.asarray(want, x.dtype) + 0 * x)
            except AssertionError as error:
                raise AssertionError(f"row {row}: {error}") from None


@case("math32", _exact_args(np.float32), grid=(3,))
def exact32(before: Args, after: Args, result: Result) -> None:
    _check_exact(after)


@case("math64", _exact_args(np.float64), grid=(3,))
def exact64(before: Args, after: Args, result: Result) -> None:
    _check_exact(after)


def _check_pairs(args: Args) -> None:
    x, y, out, _ = args
    pairs: list[tuple[str, tuple[Array, ...]]] = [
        ("atan2", (x, y)), ("hypot", (x, y)), ("rhypot", (x, y)), ("pow", (y, x)), ("norm3d", (x, y, x)),
        ("norm4d", (x, y, x, y)), ("rnorm3d", (x, y, x)), ("rnorm4d", (x, y, x, y)), ("norm4d", (x,)), ("rnorm4d",
        (y,)),
        ("sin", (x,)), ("cos", (x,)), ("sinpi", (x,)), ("cospi", (x,)),
    ]  # fmt: skip
    for row, (name, given) in enumerate(pairs):
        check_function(name, out[row], *given)


@case("math32", _unit_and_positive(np.float32, 14), grid=(3,))
def pairs32(before: Args, after: Args, result: Result) -> None:
    _check_pairs(after)


@case("math64", _unit_and_positive(np.float64, 14), grid=(3,))
def pairs64(before: Args, after: Args, result: Result) -> None:
    _check_pairs(after)


# ------------------------------------------------------------------------------------------------ directed rounding
def _bracket(got: Any, exact: Fraction, mode: str) -> bool:
    """Whether a finite result is the exact value rounded in the direction."""
    kind = type(got)
    value, low, high = (
        Fraction(float(v)) for v in (got, np.nextafter(got, kind(-np.inf)), np.nextafter(got, kind(np.inf)))
    )
    if mode == "rn":
        return abs(value - exact) * 2 <= (high - value if exact > value else value - low)
    down = mode == "rd" or (mode == "rz" and exact > 0)
    return value <= exact < high if down else low < exact <= value


def _check_rounded(out: Array, exact: list[list[Fraction]]) -> None:
    for row, values in enumerate(exact):
        for i, value in enumerate(values):
            assert _bracket(out[row, i], value, ("rn", "rz", "ru", "rd")[row % 4]), (row, i, out[row, i], float(value))


def _ratios(x: Array) -> list[Fraction]:
    return [Fraction(float(v)) for v in x]


def _arithmetic(x: Array, y: Array) -> list[list[Fraction]]:
    a, b = _ratios(x), _ratios(y)
    five = [[f(p, q) for p, q in zip(a, b, strict=True)] for f in (
        lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q, lambda p, q: p / q, lambda p, q: p * q + p,
    )]  # fmt: skip
    return [row for row in (*five, [1 / p for p in a]) for _ in range(4)]


def _check_roots(out: Array, y: Array) -> None:
    """Square roots: the square of the neighbours brackets the argument."""
    for k, mode in enumerate(("rn", "rz", "ru", "rd")):
        for got, b in zip(out[k], _ratios(y), strict=True):
            kind = type(got)
            value, low, high = (
                Fraction(float(v)) for v in (got, np.nextafter(got, kind(0)), np.nextafter(got, kind(np.inf)))
            )
            if mode == "rn":
                assert ((low + value) / 2) ** 2 <= b <= ((high + value) / 2) ** 2
            else:
                assert low**2 < b <= value**2 if mode == "ru" else value**2 <= b < high**2


@case("intrinsics", _unit_and_positive(np.float32, 54), grid=(3,))
def rounded32(before: Args, after: Args, result: Result) -> None:
    x, y, out, _ = after
    _check_rounded(out[:24], _arithmetic(x, y))
    _check_roots(out[24:28], y)
    check_function("rsqrt", out[28], y, ulps=0)
    same_bits(out[29], np.clip(x, 0, 1))
    _check_rounded(np.repeat(out[30:31], 1, 0), [[p * q + q for p, q in zip(_ratios(x), _ratios(y), strict=True)]])
    products = [Fraction(float(np.float64(a) * np.float64(b))) for a, b in zip(x, y, strict=True)]
    s, t = (v.view(np.int32).astype(object) for v in (x, y))
    u, w = (v.view(np.uint32).astype(object) for v in (x, y))
    signed, unsigned = (s << 20) + t, (u << 30) + w
    rows = [products, s, u, signed, unsigned]
    _check_rounded(out[31:51], [[Fraction(v) for v in row] for row in rows for _ in range(4)])


@case("intrinsics", _unit_and_positive(np.float64, 39), grid=(3,))
def rounded64(before: Args, after: Args, result: Result) -> None:
    x, y, out, _ = after
    _check_rounded(out[:24], _arithmetic(x, y))
    _check_roots(out[24:28], y)
    s, u = (x.view(k).astype(object) for k in (np.int64, np.uint64))
    _check_rounded(out[28:36], [[Fraction(v) for v in row] for row in (s, u) for _ in range(4)])
    high, low = x.view(np.int64) >> 32, x.view(np.uint64) & np.uint64(0xFFFF_FFFF)
    same_bits(out[36], high.astype(np.float64))
    same_bits(out[37], low.astype(np.float64))
    same_bits(
        out[38],
        ((x.view(np.uint64) & ~np.uint64(0xFFFF_FFFF)) | (y.view(np.uint64) & np.uint64(0xFFFF_FFFF))).view(np.float64),
    )


@case("intrinsics", _unit_and_positive(np.float32, 13), grid=(3,))
def fast32(before: Args, after: Args, result: Result) -> None:
    x, y, out, _ = after
    a, b = x.astype(np.float64), y.astype(np.float64)
    rows = [np.exp(a), 10**a, np.log(b), np.log2(b), np.log10(b), np.sin(a), np.cos(a), np.tan(a), b**a, a / b,
    np.tanh(a),
            np.sin(a), np.cos(a)]  # fmt: skip
    for row, want in enumerate(rows):
        error = np.abs(out[row] - want) / np.maximum(np.abs(want), 0.25)
        assert error.max() < (1e-3 if row == 10 else 2e-6), (row, error.max())  # tanh.approx: 2^-10.987


@case(
    "intrinsics",
    lambda rng: [
        np.concatenate([rng.uniform(-300, 300, 92), [np.nan, np.inf, -3e9, 5e19]]).astype(np.float32),
        np.concatenate([rng.uniform(-300, 300, 92), [np.nan, -np.inf, 3e9, -1e19]]),
        np.zeros((37, N), np.int64),
        N,
    ],
    grid=(3,),
)
def to_integers(before: Args, after: Args, result: Result) -> None:
    x, y, out, _ = after
    row = 0
    for values in (x, y):
        for low, high, nan in (
            (-(2**31), 2**31 - 1, 0 if values is x else -(2**31)), (0, 2**32 - 1, 0 if values is x else 2**31),
            (-(2**63), 2**63 - 1, -(2**63)), (0, 2**64 - 1, 2**63),
        ):  # fmt: skip
            for rounding in (round, math.trunc, math.ceil, math.floor):
                for i, v in enumerate(values.tolist()):
                    if math.isnan(v):
                        want = nan
                    else:
                        want = min(max(high if v == math.inf else low if v == -math.inf else rounding(v), low), high)
                    assert (int(out[row, i]) - want) % 2**64 == 0 or (low == 0 and high < 2**33 and int(out[row,
                    i]) == want), (
                        row, i, v, int(out[row, i]), want)  # fmt: skip
                row += 1
    finite = slice(0, 92)
    same_bits(out[32][finite], np.trunc(x[finite]).astype(np.int64))
    same_bits(out[34][finite], np.trunc(x[finite]).astype(np.int64))
    same_bits(out[35], x.view(np.int32).astype(np.int64))
    same_bits(out[36], y.view(np.int64))


# ------------------------------------------------------------------------------------------------ integers, SIMD
def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _fns(mask: int, base: int, offset: int) -> int | None:
    """Position of the offset-th set bit from base on."""
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFF_FFFF
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [p for p in places if mask >> p & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else 0xFFFF_FFFF


def _integer_rows(a: int, b: int) -> list[int | None]:
    c = (a ^ b << 1) & 0xFFFF_FFFF
    s, t, w = _signed(a, 32), _signed(b, 32), a << 32 | b
    sw, sc = _signed(w, 64), _signed(c, 32)
    pool = a.to_bytes(4, "little") + b.to_bytes(4, "little")
    perm = 0
    for k in range(4):
        pick = c >> 4 * k & 0xF
        perm |= pool[pick & 7] << 8 * k  # the function masks the selectors
    bits = lambda v, n: int(f"{v:0{n}b}"[::-1], 2)  # noqa: E731
    lead = lambda v, n: n - v.bit_length()  # noqa: E731
    first = lambda v: (v & -v).bit_length()  # noqa: E731
    low8 = lambda v: [_signed(v >> 8 * k, 8) for k in range(4)]  # noqa: E731
    u8 = lambda v: [v >> 8 * k & 255 for k in range(4)]  # noqa: E731
    dot = lambda p, q, z: sum(x * y for x, y in zip(p, q, strict=True)) + z  # noqa: E731
    half = lambda v: [_signed(v, 16), _signed(v >> 16, 16)]  # noqa: E731
    uhalf = lambda v: [v & 0xFFFF, v >> 16]  # noqa: E731
    return [
        bits(a, 32), bits(w, 64) >> 13, perm, lead(a, 32), lead(w, 64), first(a), first(w), a.bit_count(),
        w.bit_count(),
        _fns(a, b & 31, (c % 7) - 3), None, None, None, None,
        (s + t) >> 1, (s + t + 1) >> 1, (a + b) >> 1, (a + b + 1) >> 1, _signed(a, 24) * _signed(b, 24),
        (a & 0xFFFFFF) * (b & 0xFFFFFF),
        s * t >> 32, a * b >> 32, abs(s - t) + c, abs(a - b) + c,
        sw * (c << 31) >> 64, w * (c << 30) >> 64,
        dot(low8(a), low8(b), sc), dot(u8(a), u8(b), c), dot(half(a), low8(b)[:2], sc), dot(half(a), low8(b)[2:], sc),
        dot(uhalf(a), u8(b)[:2], c), dot(uhalf(a), u8(b)[2:], c), abs(s), min(s, t), max(s, t), min(a, b), max(a, b),
        abs(sw), _divide(s, t | 1), s - _divide(s, t | 1) * (t | 1), a // (b | 1), a % (b | 1), _divide(s, 7), a % 10,
        w // (c | 1), sw - _divide(sw, c | 1) * (c | 1), s >> (c & 31), a << (c & 31), w >> (c & 63),
        (a & b) | (~a & c),
        (a * b) & 0xFFFF, _signed(a + b, 8), w * w >> 70, w * _signed(w ^ c, 64) >> 64, (w << 40) // ((w ^ c) | 1),
        ((w << 40) + c) - _divide((w << 40) + c, c | 1) * (c | 1),
    ]  # fmt: skip


def _pairs_of_words(rows: int) -> Callable[[Random], Args]:
    def make(rng: Random) -> Args:
        x, y = (rng.integers(0, 2**32, N, np.uint32) for _ in range(2))
        x[:4], y[:4] = [0, 0xFFFF_FFFF, 0x8000_0000, 0x7FFF_FFFF], [1, 0xFFFF_FFFF, 0x8000, 0x80]
        return [x, y, np.zeros((rows, N), np.uint32), N]

    return make


@case("intrinsics", _pairs_of_words(56), grid=(3,))
def integers(before: Args, after: Args, result: Result) -> None:
    x, y, out, _ = after
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        rows = _integer_rows(a, b)
        c = (a ^ b << 1) & 0xFFFF_FFFF
        wide = b << 32 | a
        rows[10:14] = [wide << (c & 31) >> 32, wide << min(c, 32) >> 32, wide >> (c & 31), wide >> min(c, 32)]
        for row, want in enumerate(rows):
            assert want is None or int(out[row, i]) == want & 0xFFFF_FFFF, (
                row,
                hex(a),
                hex(b),
                hex(int(out[row, i])),
                hex(want & 0xFFFF_FFFF),
            )


_SIMD_TEXT = """
    abs2 abs4 absdiffs2 absdiffs4 absdiffu2 absdiffu4 absss2 absss4 add2 add4 addss2 addss4 addus2 addus4 avgs2 avgs4
    avgu2 avgu4 cmpeq2 cmpeq4 cmpges2 cmpges4 cmpgeu2 cmpgeu4 cmpgts2 cmpgts4 cmpgtu2 cmpgtu4 cmples2 cmples4 cmpleu2
    cmpleu4 cmplts2 cmplts4 cmpltu2 cmpltu4 cmpne2 cmpne4 haddu2 haddu4 maxs2 maxs4 maxu2 maxu4 mins2 mins4 minu2 minu4
    neg2 neg4 negss2 negss4 sads2 sads4 sadu2 sadu4 seteq2 seteq4 setges2 setges4 setgeu2 setgeu4 setgts2 setgts4
    setgtu2 setgtu4 setles2 setles4 setleu2 setleu4 setlts2 setlts4 setltu2 setltu4 setne2 setne4 sub2 sub4 subss2
    subss4 subus2 subus4
"""
_SIMD = _SIMD_TEXT.split()


def _simd(name: str, a: int, b: int) -> int:
    """A SIMD function of two words by its name: operation, signedness, saturation, elements."""
    import re

    base, count = name[:-1], int(name[-1])
    bits = 32 // count
    word = (1 << bits) - 1
    m = re.fullmatch(r"(absdiff|abs|add|avg|cmp|hadd|max|min|neg|sad|set|sub)(eq|ne|ge|gt|le|lt)?(ss|us|s|u)?", base)
    assert m is not None
    op, relation, kind = m[1], m[2], m[3] or ""
    unsigned = kind in ("u", "us") or (op in ("cmp", "set") and kind == "u")
    low, high = (0, word) if kind == "us" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    out = 0
    total = 0
    for k in range(count):
        p, q = (v >> bits * k & word for v in (a, b))
        if not unsigned:
            p, q = _signed(p, bits), _signed(q, bits)
        compared = {"eq": p == q, "ne": p != q, "ge": p >= q, "gt": p > q, "le": p <= q, "lt": p < q}.get(
            relation or "", False
        )
        value = {
            "absdiff": abs(p - q), "abs": abs(p), "add": p + q, "avg": (p + q + 1) >> 1, "cmp": -int(compared),
            "hadd": (p + q) >> 1,
            "max": max(p, q), "min": min(p, q), "neg": -p, "sad": abs(p - q), "set": int(compared), "sub": p - q,
        }[op]  # fmt: skip
        if kind in ("ss", "us"):
            value = min(max(value, low), high)
        if op == "avg" and not unsigned:  # rounds away from zero at halves
            value = (p + q + (p + q >= 0)) >> 1
        out |= (value & word) << bits * k
        total += value
    return total & 0xFFFF_FFFF if op == "sad" else out


def _halves_of(v: int) -> list[int]:
    return [_signed(v, 16), _signed(v >> 16, 16)]


def _fused(a: int, b: int, c: int) -> list[int]:
    """The DPX functions in the kernel's order."""
    s = lambda v: _signed(v, 32)  # noqa: E731
    pack = lambda v: (v[0] & 0xFFFF) | (v[1] & 0xFFFF) << 16  # noqa: E731
    h = list(zip(_halves_of(a), _halves_of(b), _halves_of(c), strict=True))
    u = list(zip(*([v & 0xFFFF, v >> 16] for v in (a, b, c)), strict=True))
    add16 = lambda p, q: _signed(p + q, 16)  # noqa: E731
    sa, sb, sc = s(a), s(b), s(c)
    total = s(a + b)
    flags = lambda r: int(r[1]) + 2 * int(r[0])  # noqa: E731  (high, low) as the kernel packs: p is the high half
    return [
        pack([max(add16(p, q), r) for p, q, r in h]), pack([max(add16(p, q), r, 0) for p, q, r in h]), max(total, sc),
        max(total, sc, 0), pack([max((p + q) & 0xFFFF, r) for p, q, r in u]), max((a + b) & 0xFFFF_FFFF, c),
        pack([min(add16(p, q), r) for p, q, r in h]), pack([max(min(add16(p, q), r), 0) for p, q, r in h]),
        min(total, sc), pack([min((p + q) & 0xFFFF, r) for p, q, r in u]),
        pack([max(p, q) for p, q, _ in h]), flags([h[0][0] >= h[0][1], h[1][0] >= h[1][1]]),
        max(sa, sb), int(sa >= sb), pack([min(p, q) for p, q, _ in u]), flags([u[0][0] <= u[0][1], u[1][0] <= u[1][1]]),
        pack([max(*v) for v in h]), pack([max(*v, 0) for v in h]), max(sa, sb, sc), max(sa, sb, sc, 0),
        pack([max(*v) for v in u]), pack([max(p, q, 0) for p, q, _ in h]), max(sa, sb, 0), pack([min(*v) for v in h]),
        max(min(sa, sb, sc), 0), min(a, b, c), pack([max(min(p, q), 0) for p, q, _ in h]), max(min(sa, sb), 0),
    ]  # fmt: skip


@case("intrinsics", _pairs_of_words(len(_SIMD) + 28), grid=(3,))
def simd(before: Args, after: Args, result: Result) -> None:
    x, y, out, _ = after
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        c = (a ^ b << 1) & 0xFFFF_FFFF
        rows = [_simd(name, a, b) for name in _SIMD] + _fused(a, b, c)
        for row, want in enumerate(rows):
            name = _SIMD[row] if row < len(_SIMD) else f"fused {row - len(_SIMD)}"
            assert int(out[row, i]) == want & 0xFFFF_FFFF, (
                name,
                hex(a),
                hex(b),
                hex(int(out[row, i])),
                hex(want & 0xFFFF_FFFF),
            )
