"""Launches of the kernels in `cuda/*.cu` that are about formats, threads, memory, the language; what is right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np

from interp.result import Result
from interp.structure import Structure
from tests.compilers.cuda_cases import CASES, Args, N, Random, case
from tests.compilers.expected import same_bits
from tests.compilers.runner import Array

__all__ = ["CASES"]
BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
HALF_ROWS = 116


# ------------------------------------------------------------------------------------------------ half precision
def _half_args(dtype: Any) -> Any:
    def make(rng: Random) -> Args:
        x, y = rng.uniform(-4.5, 4.5, N).astype(dtype), rng.uniform(0.1, 7.9, N).astype(dtype)
        return [x, y, np.zeros((HALF_ROWS, N), dtype), np.zeros((21, N), np.int32), N]

    return make


def _close(got: Array, want: Array, units: float) -> None:
    kind = got.dtype
    bits = {np.dtype(np.float16): 10, np.dtype(BF16): 7}[kind]
    least = {np.dtype(np.float16): 2.0**-24, np.dtype(BF16): 2.0**-133}[kind]
    unit = np.maximum(2.0 ** (np.floor(np.log2(np.maximum(np.abs(want), 1e-300))) - bits), least)
    error = np.abs(got.astype(np.float64) - want) / unit
    assert error.max() <= units, (error.max(), int(np.argmax(error)))


def _check_halves(args: Args) -> None:
    x, y, out, bits, _ = args
    kind = x.dtype
    a, b = x.astype(np.float64), y.astype(np.float64)
    c = np.roll(a, -1)
    clip = lambda v: np.clip(v, 0, 1)  # noqa: E731
    once = [  # exact in doubles: rounded once here
        a + b, a - b, a * b, None, a * b + c, a + b, a * b, a - b, clip(a + b), clip(a - b), clip(a * b),
        clip(a * b + c),
        np.maximum(a * b + c, 0), -a, np.abs(a), np.maximum(a, b), np.minimum(a, b), np.maximum(a, b), np.minimum(a, b),
        np.ceil(a), np.floor(a), np.rint(a), np.trunc(a),
    ]  # fmt: skip
    for row, want in enumerate(once):
        if want is not None:
            same_bits(out[row] + kind.type(0), want.astype(kind) + kind.type(0))
    _close(out[3], a / b, 1)
    functions = [np.cos(a), np.sin(a), np.exp(a), 2**a, 10**a, np.log(b), np.log2(b), np.log10(b), 1 / a,
    1 / np.sqrt(b),
                 np.sqrt(b), np.tanh(a)]  # fmt: skip
    for row, want in enumerate(functions):
        _close(out[23 + row], want, 2)
    _close(out[35], np.tanh(a), 4)
    _close(out[37], -a / b, 1)
    relations = [a == b, a == b, a >= b, a >= b, a > b, a > b, a > 1e9, a > 1e9, a <= b, a <= b, a < b, a < b,
    a != b, a != b,
                 np.trunc(a), np.trunc(b), np.trunc(a)]  # fmt: skip
    for row, want in enumerate(relations):
        assert (bits[row] == want.astype(int)).all(), row
    p, q, r = (a, b), (b, c), (c, a)
    two = [
        lambda s, t, u: s + t, lambda s, t, u: s - t, lambda s, t, u: s * t, None, lambda s, t, u: s * t + u,
        lambda s, t, u: clip(s + t), lambda s, t, u: s + t, lambda s, t, u: clip(s * t),
        lambda s, t, u: np.maximum(s * t + u, 0), lambda s, t, u: clip(s * t + u),
    ]  # fmt: skip
    for k, f in enumerate(two):
        for half in range(2):
            if f is not None:
                want = f(p[half], q[half], r[half]).astype(kind)
                same_bits(out[38 + 2 * k + half] + kind.type(0), want + kind.type(0))
    pairs = [
        None, lambda s, t: -s, lambda s, t: np.abs(s), np.maximum, np.minimum, np.maximum, np.minimum, lambda s,
        t: s == t,
        lambda s, t: s >= t, lambda s, t: s < t, lambda s, t: s > 1e9, None, lambda s, t: np.ceil(s), lambda s,
        t: np.floor(s),
        lambda s, t: np.rint(s), lambda s, t: np.trunc(s),
    ]  # fmt: skip
    for k, g in enumerate(pairs):
        for half in range(2):
            if g is not None:
                want = np.asarray(g(p[half], q[half])).astype(kind)
                same_bits(out[58 + 2 * k + half] + kind.type(0), want + kind.type(0))
    same_bits(out[80], y)
    same_bits(out[81], x)
    assert (bits[17] == ((a == b) & (b == c))).all() and (bits[18] == ((a < b) & (b < c))).all()
    mask = lambda f: np.where(f(a, b), 0xFFFF, 0) | np.where(f(b, c), 0xFFFF0000, 0)  # noqa: E731
    assert (bits[19].view(np.uint32) == mask(np.equal)).all() and (bits[20].view(np.uint32) == mask(np.greater)).all()


@case("halves", _half_args(np.float16), grid=(3,))
def fp16(before: Args, after: Args, result: Result) -> None:
    _check_halves(after)


@case("halves", _half_args(BF16), grid=(3,))
def bf16(before: Args, after: Args, result: Result) -> None:
    _check_halves(after)


@case(
    "halves",
    lambda rng: [rng.normal(size=32).astype(np.float16), np.zeros(40, np.float16), np.zeros(6, BF16), 32],
    least=80,
)
def shared_halves(before: Args, after: Args, result: Result) -> None:
    x, out, wide, n = after
    i = np.arange(32)
    same_bits(out[:31], (x[i ^ 3] + x[np.minimum(i + 1, 31)])[:31])
    sums = np.zeros(4)
    for k in range(32):
        sums[k % 4] += float(x[k])
    assert np.abs(out[32:36].astype(float) - sums).max() < 0.03
    same_bits(wide[4:6], np.array([32, 16], BF16))


# ------------------------------------------------------------------------------------------------ 8 bits and fewer
@case(
    "small_floats",
    lambda rng: [
        (x := rng.normal(size=N).astype(np.float32) * np.exp2(rng.integers(-8, 8, N)).astype(np.float32)),
        x.astype(np.float16),
        x.astype(BF16),
        np.zeros((29, N), np.uint8),
        N,
    ],
    grid=(3,),
)
def into_small(before: Args, after: Args, result: Result) -> None:
    x, h, b, out, _ = after
    finite = lambda v, kind, most: np.clip(v, -most, most).astype(kind).view(np.uint8)  # noqa: E731
    same_bits(out[0], finite(x, E4M3, 448))
    same_bits(out[1], finite(x, E5M2, 57344))
    same_bits(out[5], finite(h.astype(np.float32), E4M3, 448))
    same_bits(out[7], finite(b.astype(np.float32), E5M2, 57344))
    six, three, four = ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn, ml_dtypes.float4_e2m1fn
    same_bits(out[9], finite(x, six, 7.5))
    same_bits(out[10], finite(x, three, 28))
    same_bits(out[11], finite(h.astype(np.float32), three, 28))
    same_bits(out[12], finite(b.astype(np.float32), six, 7.5))
    same_bits(out[13], finite(x, four, 6))
    same_bits(out[14], finite(h.astype(np.float32), four, 6))
    exponent = np.floor(np.log2(np.abs(x))) + 127
    same_bits(out[15], exponent.astype(np.uint8))
    same_bits(out[16], (exponent + (np.exp2(exponent - 127) != np.abs(x))).astype(np.uint8))
    for row, sign in ((18, 1), (19, -1)):
        same_bits(out[row], finite(sign * x, E4M3, 448))
        same_bits(out[row + 2], finite(sign * x, three, 28))
    same_bits(out[22], finite(x, four, 6) | finite(-x, four, 6) << np.uint8(4))
    same_bits(out[23], finite(x, E4M3, 448))
    same_bits(out[24], finite(7.0 * np.arange(N), E5M2, 57344))
    same_bits(out[25], finite(1.0 * np.arange(N), E4M3, 448))


@case(
    "small_floats",
    lambda rng: [np.arange(256, dtype=np.uint8), np.zeros((10, 256), np.uint16), np.zeros((5, 256), np.float32), 256],
    grid=(8,),
)
def from_small(before: Args, after: Args, result: Result) -> None:
    x, out, real, _ = after

    def halves(v: Array) -> Array:
        words = v.astype(np.float16).view(np.uint16)
        return np.where(np.isnan(v.astype(np.float32)), 0x7FFF, words).astype(np.uint16)

    e4, e5 = x.view(E4M3), x.view(E5M2)
    same_bits(out[0], halves(e4))
    assert (out[1][~np.isnan(e5.astype(np.float32))] == halves(e5)[~np.isnan(e5.astype(np.float32))]).all()
    same_bits(out[2], halves((x & 63).view(ml_dtypes.float6_e2m3fn)))
    same_bits(out[3], halves((x & 63).view(ml_dtypes.float6_e3m2fn)))
    same_bits(out[4], halves((x & 15).view(ml_dtypes.float4_e2m1fn)))
    same_bits(out[5][1:255], x[1:255].astype(np.uint16) << np.uint16(7))
    same_bits(out[6], halves(e4))
    same_bits(out[7], halves(e4))
    same_bits(out[8], halves((x & 15).view(ml_dtypes.float4_e2m1fn)))
    same_bits(out[9], halves((x >> 4).view(ml_dtypes.float4_e2m1fn)))
    good = ~np.isnan(e4.astype(np.float32))
    same_bits(real[0][good], e4.astype(np.float32)[good])
    same_bits(real[2][good], e4.astype(np.float32)[good])
    same_bits(real[3][good], np.trunc(e4.astype(np.float32))[good] + np.float32(0))
    same_bits(real[4], (e5.astype(np.float32) != 0).astype(np.float32))


# ------------------------------------------------------------------------------------------------ atomics
@case(
    "atomics",
    lambda rng: [
        np.array([0, 0, 99, -99, -1, *[0] * 19], np.int32),
        np.array([0, 2**32 - 1, 0, 7, 5, 0, 0, *[0] * 4], np.uint32),
        np.array([2**60, -(2**60)], np.int64),
        np.array([0, 2**64 - 1, 0, 2**64 - 1, *[0] * 12], np.uint64),
        rng.integers(-40, 41, 128, np.int32),
    ],
    (64,),
    (2,),
)
def integer_atomics(before: Args, after: Args, result: Result) -> None:
    s, u, l, w, x = after  # noqa: E741
    v = x.tolist()
    mask = (1 << 64) - 1
    conj, disj, anti, bits_off, bits_on, bits_x = -1, 0, 0, mask, 0, 0
    for a in v:
        conj, disj, anti = conj & (a | 3), disj | a, anti ^ a
        bits_off, bits_on, bits_x = bits_off & ~(1 << (a & 63)), bits_on | 1 << (a & 63), bits_x ^ (a << 20 & mask)
    chain = 0
    for _ in v:
        chain = (chain * 3 + 1) & 0xFFFF_FFFF
    same_bits(s[:15], np.array([sum(v), -sum(v), min(99, *v), max(-99, *v), conj, disj, anti, sum(v), sum(v), max(0,
    *v), min(0, *v),
                                chain - (chain >> 31 << 32), 5, 0, 9], np.int32))  # fmt: skip
    counts = {0: (7, 100, 1), 4: (5, 50, -1)}
    up, down, up_block, down_system = 7, 5, 0, 0
    for _ in v:
        up = 0 if up >= 100 else up + 1
        down = 50 if down == 0 or down > 50 else down - 1
        up_block = 0 if up_block >= 7 else up_block + 1
        down_system = 9 if down_system == 0 or down_system > 9 else down_system - 1
    del counts
    unsigned = [a & 0xFFFF_FFFF for a in v]
    same_bits(
        u[:9],
        np.array(
            [
                sum(v) & 0xFFFF_FFFF,
                min(unsigned),
                max(unsigned),
                up,
                down,
                up_block,
                down_system,
                -128 & 0xFFFF_FFFF,
                6,
            ],
            np.uint32,
        ),
    )
    assert u.view(np.uint16)[19] == 77
    same_bits(l, np.array([min(v) * 77777777777, max(v) * 77777777777], np.int64))
    same_bits(w[:10], np.array([sum(v) & mask, min(a & mask for a in v), max(a << 3 & mask for a in v), bits_off,
    bits_on, bits_x, 128,
                                1 << 40, 0, 10], np.uint64))  # fmt: skip
    sums = [sum(a for a in v if a & 7 == k) for k in range(8)]
    same_bits(s[16:24], np.array(sums, np.int32))
    least = [
        sum(min((i for i, a in enumerate(block) if a & 3 == k), default=mask) for block in (v[:64], v[64:])) & mask
        for k in range(4)
    ]
    same_bits(w[12:16], np.array(least, np.uint64))


@case(
    "atomics",
    lambda rng: [
        np.zeros(7, np.float32),
        np.zeros(3),
        np.zeros(2, np.float32),
        np.zeros(4, np.float32),
        rng.integers(-40, 41, 64).astype(np.float32),
    ],
    (64,),
)
def float_atomics(before: Args, after: Args, result: Result) -> None:
    f, d, f2, f4, x = after
    same_bits(f, np.array([x.sum(), x.sum(), x.sum(), 0, 2.5, x[::2].sum(), x[1::2].sum()], np.float32))
    same_bits(d, np.array([x.sum(), x.sum(), (x * x).sum()], np.float64))
    if f2.any() or f4.any():  # from sm_90 on
        same_bits(f2, np.array([x.sum(), -x.sum()], np.float32))
        same_bits(f4, np.array([x.sum(), 64, -x.sum(), 128], np.float32))


@case("atomics", lambda rng: [np.zeros(32, np.int32), np.zeros(6, np.uint64), np.zeros(3, np.float32), np.zeros(3)])
def cuda_atomics(before: Args, after: Args, result: Result) -> None:
    s, w, f, d = after
    anti = 0
    value = 0
    for v in range(32):  # additions and xors interleave as warps execute: one instruction for all lanes
        anti ^= v & 15
    value = (sum(range(32)) - 32) ^ anti
    for k in range(3):
        same_bits(s[8 * k : 8 * k + 6], np.array([value, 31, 0, 11, 0, 3], np.int32))
        same_bits(w[2 * k : 2 * k + 2], np.array([2**32 - 1, 42], np.uint64))
    same_bits(f, np.full(3, 32, np.float32))
    same_bits(d, np.full(3, 16.0))
    same_bits(s[24:26], np.array([(250 + 32) % 256, sum(range(32))], np.int32))


# ------------------------------------------------------------------------------------------------ warps and groups
@case("warp", lambda rng: [rng.integers(0, 9, 64, np.uint32), np.zeros((48, 64), np.uint32)], (64,))
def warp_functions(before: Args, after: Args, result: Result) -> None:
    x, out = after
    lane = np.arange(32)
    for w in range(2):
        a = x[32 * w : 32 * w + 32].astype(np.int64)
        got = out[:, 32 * w : 32 * w + 32].astype(np.int64)
        ballot = lambda p: sum(int(b) << i for i, b in enumerate(p))  # noqa: E731
        fill = lambda v: np.full(32, int(v))  # noqa: E731
        rows: list[Any] = [
            a[fill(5)], a[np.where(lane < 3, lane, lane - 3)], a[np.where(lane > 24, lane, lane + 7)], a[lane ^ 9],
            a[(lane & ~7) + (lane * 3 & 7)], a[np.where(lane % 16 < 2, lane, lane - 2)], a[np.where(lane % 4 == 3,
            lane, lane + 1)],
            a[lane ^ 1], a[fill(31)], None, a[np.where(lane > 27, lane, lane + 4)] >> 2, fill((a != 7).all()),
            fill((a == 7).any()),
            fill(len(set(a > 3)) == 1), fill(ballot(a & 1)), fill(2**32 - 1), [ballot((a & 3) == (v & 3)) for v in a],
            [ballot((a & 1) == (v & 1)) for v in a], fill(2**32 - 1), fill(1), fill(0), fill(0),
        ]  # fmt: skip
        high = np.array([int(np.float64(v).view(np.uint64)) >> 32 for v in a[lane ^ 16]])
        rows[9] = high
        folds = [a.sum(), a.min(), a.max(), a.sum(), a.min(), a.max(), np.bitwise_and.reduce(a),
        np.bitwise_or.reduce(a),
                 np.bitwise_xor.reduce(a)]  # fmt: skip
        at = len(rows)
        if got[at].tolist() == fill(folds[0]).tolist():  # sm_80 and later
            rows += [fill(v) for v in folds]
        for row, want in enumerate(rows):
            assert got[row].tolist() == np.asarray(want).tolist(), row
        at = len(rows)
        few = lane < 20
        assert got[at][few].tolist() == a[(lane[few] + 1) % 20].tolist()
        assert got[at + 1][few].tolist() == fill(ballot((a & 2 != 0) & few))[few].tolist()
        assert got[at + 2][few].tolist() == fill(0xFFFFF)[few].tolist()
        odd = (a & 1).astype(bool)
        assert got[at + 3][odd].tolist() == fill(odd.sum())[odd].tolist()
        assert got[at + 4][odd].tolist() == fill(a[odd][0])[odd].tolist()
        # lanes with even numbers counted two rows less
        everyone = x.astype(np.int64)
        votes = [(everyone & 1).sum(), int((everyone != 7).all()), int((everyone == 7).any())]
        for k, want in enumerate(votes):
            assert (got[at + 5 + k][odd] == want).all() and (got[at + 3 + k][~odd] == want).all(), k


@case("warp", lambda rng: [rng.integers(0, 9, 64, np.int32), np.zeros((30, 64), np.uint32)], (64,))
def group_functions(before: Args, after: Args, result: Result) -> None:
    x, out = after
    i = np.arange(64)
    tile, warp = i // 8, i // 32
    of_tile = lambda f: np.array([f(x[tile == t]) for t in tile])  # noqa: E731
    of_warp = lambda f: np.array([f(x[warp == w]) for w in warp])  # noqa: E731
    ballot = lambda p: sum(int(b) << k for k, b in enumerate(p))  # noqa: E731
    exclusive = lambda v: np.concatenate([[0], np.bitwise_xor.accumulate(v)[:-1]])  # noqa: E731
    rows = [
        i, np.full(64, 64), i % 8, tile, x[8 * tile + 3], x[i ^ 1], of_tile(lambda v: (v > 5).any()),
        of_tile(lambda v: ballot(v & 1)),
        np.array([ballot((x[tile == tile[k]] & 3) == (x[k] & 3)) for k in i]), of_tile(np.sum), of_warp(np.min),
        of_warp(np.max),
        of_tile(np.sum), np.concatenate([np.cumsum(x[8 * t : 8 * t + 8]) for t in range(8)]),
        np.concatenate([exclusive(x[32 * w : 32 * w + 32]) for w in range(2)]),
    ]  # fmt: skip
    for row, want in enumerate(rows):
        assert out[row].tolist() == np.asarray(want).astype(np.int64).tolist(), row
    for w in range(2):
        odd = np.nonzero((warp == w) & (x & 1 == 1))[0]
        if len(odd):
            v = x[odd]
            want_rows = [
                [len(odd)] * len(odd), range(len(odd)), [v[0]] * len(odd), [ballot(v & 2 != 0)] * len(odd),
                [v.sum()] * len(odd),
                [*v[1:], v[-1]], [(v > 6).any()] * len(odd),
            ]  # fmt: skip
            for k, want in enumerate(want_rows):
                assert out[15 + k][odd].tolist() == [int(q) for q in want], (w, k)
    same = [(tile == tile[k]) & (x & 1 == x[k] & 1) for k in i]
    assert out[22].tolist() == [int(m.sum()) for m in same]
    assert out[23].tolist() == [int(x[m].max()) for m in same]
    alike = [(warp == warp[k]) & (x & 3 == x[k] & 3) for k in i]
    assert out[24].tolist() == [int(m.sum()) for m in alike]
    assert out[25].tolist() == [int(x[m][0]) for m in alike]
    assert out[26].tolist() == (i % 16).tolist() and (out[27] == 77).all()


@case("warp", lambda rng: [np.zeros(512, np.int32)], (64,), (4,))
def grid_group(before: Args, after: Args, result: Result) -> None:
    (x,) = after
    same_bits(x, np.concatenate([np.arange(256), np.roll(np.arange(256), -64)]).astype(np.int32))


@case("warp", lambda rng: [rng.integers(0, 99, 256, np.int32), np.zeros(256, np.int32)], (64,), (4,), least=90)
def cluster_group(before: Args, after: Args, result: Result) -> None:
    x, out = after
    i = np.arange(64)
    for cta in range(4):
        other = x[64 * (cta ^ 1) : 64 * (cta ^ 1) + 64]
        same_bits(
            out[64 * cta : 64 * cta + 64], (other[63 - i] + 1000 + 2 + (cta % 2 * 64 + i) * 10000).astype(np.int32)
        )


# ------------------------------------------------------------------------------------------------ copies and barriers
def _tiles(count: int, out: int) -> Any:
    return lambda rng: [rng.integers(0, 999, 128 * count, np.int32), np.zeros(out, np.int32)]


@case("sync", lambda rng: [rng.integers(0, 999, 512, np.int32), np.zeros(512, np.int32), 4], (128,))
def copies(before: Args, after: Args, result: Result) -> None:
    x, out, _ = after
    same_bits(out, x.reshape(4, 128)[:, ::-1].reshape(-1))


@case("sync", _tiles(2, 256), (128,), (2,), shared=1024)
def group_copies(before: Args, after: Args, result: Result) -> None:
    x, out = after
    t = x.reshape(2, 128)
    same_bits(out, (t[:, ::-1] * 3 + t).reshape(-1))


@case("sync", _tiles(1, 192), (128,))
def barriers(before: Args, after: Args, result: Result) -> None:
    x, out = after
    v = x[::-1]
    same_bits(out, np.concatenate([np.roll(v, -1) + 1, v[:64]]).astype(np.int32))


@case("sync", lambda rng: [rng.integers(0, 999, 640, np.int32), np.zeros(640, np.int32), 5], (128,))
def pipelines(before: Args, after: Args, result: Result) -> None:
    x, out, _ = after
    same_bits(out, x.reshape(5, 128)[:, np.arange(128) ^ 1].reshape(-1) * 2)


@case("sync", _tiles(4, 512), (128,))
def thread_pipeline(before: Args, after: Args, result: Result) -> None:
    same_bits(after[1], after[0])


@case("sync", _tiles(2, 257), (128,))
def roles(before: Args, after: Args, result: Result) -> None:
    x, out = after
    same_bits(
        out, np.array([*(x.reshape(4, 64)[:, ::-1] + np.arange(4)[:, None]).reshape(-1), 0 + 32 + 64 + 96], np.int32)
    )


@case("sync", _tiles(2, 256), (256,), least=90)
def bulk(before: Args, after: Args, result: Result) -> None:
    same_bits(after[1], after[0] + np.int32(5))


# ------------------------------------------------------------------------------------------------ tensor cores
def _halves_of(rng: Random, *sizes: int) -> list[Array]:
    return [rng.integers(-4, 5, n).astype(np.float16) for n in sizes]


def _product(a: Array, b: Array, m: int, n: int, k: int, la: str, lb: str) -> Array:
    left = a[: m * k].reshape(m, k) if la == "R" else a[: m * k].reshape(k, m).T
    right = b[: k * n].reshape(k, n) if lb == "R" else b[: k * n].reshape(n, k).T
    return 2 * (left.astype(np.float64) @ right.astype(np.float64) + 1)


@case("wmma", lambda rng: [*_halves_of(rng, 512, 512), np.zeros(768, np.float32), np.zeros(256, np.float16)])
def wmma_f16(before: Args, after: Args, result: Result) -> None:
    a, b, d, h = after
    parts = [
        _product(a, b, 16, 16, 16, "R", "L"),
        _product(a, b, 32, 8, 16, "L", "R"),
        _product(a, b, 8, 32, 16, "R", "R"),
    ]
    same_bits(d, np.concatenate([p.reshape(-1) for p in parts]).astype(np.float32))
    same_bits(h, _product(a, b, 16, 16, 16, "L", "L").reshape(-1).astype(np.float16))


@case("wmma", lambda rng: [*(rng.integers(-128, 128, 512).astype(np.int8) for _ in range(2)), np.zeros(512, np.int32)])
def wmma_i8(before: Args, after: Args, result: Result) -> None:
    a, b, d = after
    parts = [_product(a, b, 16, 16, 16, "R", "L"), _product(a.view(np.uint8), b.view(np.uint8), 32, 8, 16, "R", "R")]
    same_bits(d, np.concatenate([p.reshape(-1) for p in parts]).astype(np.int32))


@case(
    "wmma",
    lambda rng: [*(rng.integers(-(2**31), 2**31, 32, np.int32) for _ in range(2)), np.zeros(128, np.int32)],
    most=90,
)
def wmma_tiny(before: Args, after: Args, result: Result) -> None:
    a, b, d = after

    def nibbles(v: Array) -> Array:
        words = np.repeat(v.view(np.uint32), 8).reshape(-1, 8) >> np.arange(0, 32, 4).astype(np.uint32)
        return (words & 15).astype(np.int64).reshape(8, 32)

    signed = lambda v: np.where(v > 7, v - 16, v)  # noqa: E731
    same_bits(d[:64], (signed(nibbles(a)) @ signed(nibbles(b)).T + 2).reshape(-1).astype(np.int32))
    bits = lambda v: np.unpackbits(v.view(np.uint8), bitorder="little").reshape(8, 128).astype(int)  # noqa: E731
    want = (bits(a)[:, None] ^ bits(b)[None]).sum(2)
    same_bits(d[64:], want.reshape(-1).astype(np.int32))


def _new_args(rng: Random) -> Args:
    small = lambda kind, n: rng.integers(-4, 5, n).astype(kind)  # noqa: E731
    return [small(BF16, 256), small(BF16, 256), small(np.float32, 128), small(np.float32, 128), small(np.float64, 32),
            small(np.float64, 32), np.zeros(512, np.float32), np.zeros(128)]  # fmt: skip


@case("wmma", _new_args, least=80)
def wmma_new(before: Args, after: Args, result: Result) -> None:
    a, b, s, t, p, q, d, e = after
    parts = [_product(a, b, 16, 16, 16, "R", "L"), _product(s, t, 16, 16, 8, "R", "L")]
    same_bits(d, np.concatenate([v.reshape(-1) for v in parts]).astype(np.float32))
    parts = [_product(p, q, 8, 8, 4, "R", "L"), _product(p, q, 8, 8, 4, "L", "R")]
    same_bits(e, np.concatenate([v.reshape(-1) for v in parts]))


# ------------------------------------------------------------------------------------------------ the language
@case("language", lambda rng: [np.zeros(64, np.float32)])
def variables(before: Args, after: Args, result: Result) -> None:
    (out,) = after
    i = np.arange(32)
    table = np.array([[1, 2, 3], [4, 5, 6]])
    pairs = np.array([0.25, 4.0])
    want = (i % 8 + 1) * 0.5 + table[i & 1, i % 3] + 5 + pairs[i & 1] - 2 + 0 + 3
    same_bits(out[:32], want.astype(np.float32))
    names = ["zero", "one", "device"]
    letters = np.array([ord(names[k % 3][k % 3]) for k in i])
    same_bits(out[32:], (letters + (0x123456789ABCDEF >> 40) + 1 + ord("d")).astype(np.float32))


@case("language", lambda rng: [rng.integers(0, 9, 32).astype(np.float32), np.zeros(128, np.float32), 3])
def calls(before: Args, after: Args, result: Result) -> None:
    x, out, n = after
    i = np.arange(32)
    area = np.where(i % 3 != 0, np.float32(0.5) * x * x, 3 * x * x + 1)
    value = np.where(i % 3 == 1, x / np.float32(3), 2 * x)
    same_bits(out[:32], (area + value).astype(np.float32))
    fibonacci = [0, 1]
    for _ in range(12):
        fibonacci.append(sum(fibonacci[-2:]))
    same_bits(out[32:64], np.array([fibonacci[k % 11] + 1000 * (k % 7 % 2 == 0) for k in i], np.float32))
    by = n + i % 4
    same_bits(out[64:96], ((i % 10 + by) % 10 * i + 1 + x * by).astype(np.float32))
    same_bits(out[96:], x * n + i.astype(np.float32))


def _structure(rng: Random) -> Args:
    x, out = rng.integers(0, 50, 64, np.int32), np.zeros(64, np.int32)
    tail = (
        np.array([60], np.int32).tobytes()
        + np.array([3], np.int16).tobytes()
        + bytes([7, 0])
        + np.array([1.5, 2.5, 3.5], np.float32).tobytes()
    )
    data = bytes(16) + tail
    return [Structure(data + bytes(-len(data) % 8), {0: x, 8: out})]


@case("language", lambda rng: [*_structure(rng), -5, 2.75, np.array([10, 20, 30], np.int32).tobytes()], (32,), (2,))
def by_value(before: Args, after: Args, result: Result) -> None:
    parts = after[0].parts
    x, out = parts[0], parts[8]
    i = np.arange(64)
    want = x * 7 + np.array([1, 2, 3])[i % 3] - 5 + 2 + 10 + 600 + 3
    same_bits(out, np.where(i < 60, want, 0).astype(np.int32))


@case("language", _structure, (64,))
def by_grid_constant(before: Args, after: Args, result: Result) -> None:
    parts = after[0].parts
    i = np.arange(64)
    want = np.trunc(np.array([1.5, 2.5, 3.5])[i % 3] * parts[0])
    same_bits(parts[8], np.where(i < 60, want, 0).astype(np.int32))


@case("language", lambda rng: [np.arange(32, dtype=np.int32) % 11, np.zeros(128, np.int32), 20])
def control(before: Args, after: Args, result: Result) -> None:
    x, out, n = after
    for i in range(32):
        v = int(x[i])
        s = {0: 5, 1: 17, 2: v * 3 + 11, 3: 11, 5: -1, 6: i.bit_count(), 9: 99}.get(v, 1234)
        if v == 4:
            s = 0
            for k in range(i):
                s ^= k * k
        local = [k * v + s for k in range(16)]
        cells = list(local)
        for k in range(n):
            t = cells[(k * 7 + v) & 15]
            cells[k & 15] = t + (k if t & 1 else -k)
            if t == 77:
                break
            if t & 4:
                continue
            s += t
        while True:
            s -= 3
            if s <= 100:
                break
        assert out[i] == s + cells[v & 15], i
        data = bytearray([v] * 24)
        data[3:12] = b"".join(c.to_bytes(4, "little", signed=True) for c in cells[:3])[:9]
        assert out[32 + i] == sum(b - 256 if b > 127 else b for b in data), i
        field_b = (v - 60 + i + 64) % 128 - 64
        real = np.array([0x3F800000 + v], np.uint32).view(np.float32)[0]
        assert out[64 + i] == int(real * np.float32(3)) + v + field_b + ((v * 1001 ^ i) >> 3), i
        assert out[96 + i] == ((i if v > 6 else -i) if v > 3 else (v if i & 1 else ~v)), i


@case("language", lambda rng: [rng.integers(0, 99, 64, np.int32), np.zeros(64, np.int32), 64], (64,), shared=512)
def dynamic_shared(before: Args, after: Args, result: Result) -> None:
    x, out, n = after
    same_bits(out, x[::-1] + np.trunc(np.roll(x, -1) * 0.5).astype(np.int32))


@case("language", lambda rng: [4])
def printing(before: Args, after: Args, result: Result) -> None:
    lines = [
        f"thread {i} of 32: {i * 0.25:5.2f} {'odd' if i & 1 else 'even'} {chr(97 + i)} {1 << (40 + i)} "
        for i in range(4)
    ]
    got = result.printed.splitlines()
    assert [g.rpartition(" ")[0] + " " for g in got[:4]] == lines and got[4] == "done %", result.printed


@case("language", lambda rng: [20], finding="assertion")
def asserting(before: Args, after: Args, result: Result) -> None:
    assert "small enough" in result.findings[0].message


@case("language", lambda rng: [5], finding="trap")
def trapping(before: Args, after: Args, result: Result) -> None:
    assert result.findings[0].evidence["instruction"] == "trap"


@case("language", lambda rng: [np.zeros(96, np.int64)])
def clocks(before: Args, after: Args, result: Result) -> None:
    (out,) = after
    assert (out[:64] > 0).all()
    assert out[64:].tolist() == [i + 100 for i in range(32)]


@case("language", lambda rng: [np.array([40, 50, 60], np.int32), np.zeros(224, np.int32)])
def spaces(before: Args, after: Args, result: Result) -> None:
    x, out = after
    i = np.arange(32)
    want = np.where(i % 3 == 0, 40 + 10, np.where(i % 3 == 1, 7 + 100, 3 + 1000)) + 10000
    same_bits(out[:32], want.astype(np.int32))
    same_bits(out[32:96], np.repeat(np.array([7, 300], np.int32), 32))
    same_bits(out[96:], np.repeat(np.arange(1, 5, dtype=np.int32), 32))


@case("language", lambda rng: [np.zeros(32, np.int32)])
def heap(before: Args, after: Args, result: Result) -> None:
    same_bits(after[0], np.arange(8, 40, dtype=np.int32))


@case("language", lambda rng: [np.zeros(32, np.int32), 9])
def stack(before: Args, after: Args, result: Result) -> None:
    same_bits(after[0], (np.arange(32) % 9).astype(np.int32) ** 2)


@case("language", lambda rng: [np.arange(32, dtype=np.int32), np.zeros(32, np.float32)])
def templates(before: Args, after: Args, result: Result) -> None:
    x, out = after
    same_bits(out, (2.25 * x.astype(np.float64) ** 2 + 9 + (400 & 255)).astype(np.float32))


@case(
    "language",
    lambda rng: [
        np.arange(128, dtype=np.float32),
        np.arange(64, dtype=np.int32),
        np.zeros(64),
        np.zeros(128, np.uint8),
        np.zeros(128, np.int64),
    ],
)
def vectors(before: Args, after: Args, result: Result) -> None:
    x, y, out, small, wide = after
    a, b, i = x.reshape(32, 4), y.reshape(32, 2), np.arange(32)
    same_bits(
        out.reshape(32, 2), np.stack([(a[:, 0] + a[:, 3]).astype(float), a[:, 1].astype(float) * b[:, 0] + b[:, 1]], 1)
    )
    same_bits(small.reshape(32, 4), np.stack([b[:, 0], b[:, 1], a[:, 2], i], 1).astype(np.uint8))
    same_bits(
        wide.reshape(32, 4), np.stack([i, b[:, 0], a[:, 0].astype(np.int64), np.full(32, -1)], 1).astype(np.int64)
    )


@case("language", lambda rng: [rng.normal(size=64).astype(np.float32), np.zeros(64, np.float32)])
def complex_division(before: Args, after: Args, result: Result) -> None:
    x, out = after
    a = x.view(np.complex64).astype(np.complex128)
    want = a / a[::-1]
    assert (np.abs(out.view(np.complex64) - want) < 3e-6 * np.abs(want)).all()


# ------------------------------------------------------------------------------------------------ CUB
@case("cub", lambda rng: [rng.integers(0, 50, 128, np.int32), np.zeros((9, 128), np.int32)], (128,))
def block_algorithms(before: Args, after: Args, result: Result) -> None:
    x, out = after
    i = np.arange(128)
    at = lambda where, value: np.where(where, value, 0)  # noqa: E731
    warps = x.reshape(4, 32)
    rows = [
        at(i == 0, x.sum()), at(i == 0, x[:100].max()), np.cumsum(x) - x, np.maximum.accumulate(x), np.full(128,
        x.max()),
        at(i % 32 == 0, np.repeat(warps.sum(1), 32)), np.cumsum(warps, 1).reshape(-1),
        at(i < 16, np.bincount(x & 15, minlength=128)), np.concatenate([[1], [int(p != q) for p,
        q in pairwise(x.tolist())]]),
    ]  # fmt: skip
    for row, want in enumerate(rows):
        same_bits(out[row], np.asarray(want).astype(np.int32))


@case("cub", lambda rng: [rng.integers(0, 2**32, 256, np.uint32), np.zeros(512, np.uint32)], (64,))
def sorting(before: Args, after: Args, result: Result) -> None:
    x, out = after
    same_bits(out, np.tile(np.sort(x), 2))


@case("cub", lambda rng: [rng.normal(size=192).astype(np.float32), np.zeros(384, np.float32)], (64,))
def merging(before: Args, after: Args, result: Result) -> None:
    x, out = after
    same_bits(out, np.concatenate([np.sort(x), np.sort(x[:96]), np.sort(x[96:])]))
