"""`tcgen05.mma` through the engine: layouts and shapes against whole-number products, arithmetic against exact
rationals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.blackwell import law
from tests.blackwell.tcgen05_ptx import LANES, Bytes, Placed, Product, Words, place

SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "e2m3": 1, "e3m2": 1, "e2m1": 1, "s8": 1, "u8": 1}
CODES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}
KINDS = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "s8": "i8", "u8": "i8"}
OUT = {"f16": 0, "f32": 1, "s32": 2}
UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32}
Matrix = npt.NDArray[Any]


def descriptor(m: int, n: int, types: tuple[str, str, str], *, ta: int = 0, tb: int = 0, more: int = 0) -> int:
    out, a, b = types
    bits = OUT[out] << 4 | CODES[a] << 7 | CODES[b] << 10 | ta << 15 | tb << 16 | n >> 3 << 17 | m >> 4 << 24
    return bits | more


def small(kind: str) -> bool:
    return kind in ("e2m3", "e3m2", "e2m1")


def rows(words: Matrix, kind: str) -> Bytes:
    """Rows of 32 bytes; small types one to a byte, as tensor memory has them."""
    if kind == "e2m1":
        words = words << 2
    return np.ascontiguousarray(words).view(np.uint8).reshape(len(words), 32)


def packed(words: Matrix, kind: str) -> Bytes:
    """Rows of small types as shared memory has them: 16 numbers in the first 8 or 12 of 16 bytes."""
    bits = 4 if kind == "e2m1" else 6
    out = np.zeros((len(words), 2, 16), np.uint8)
    for r, row in enumerate(words.reshape(-1, 2, 16)):
        for h, chunk in enumerate(row):
            value = sum(int(w) << bits * i for i, w in enumerate(chunk))
            out[r, h] = np.frombuffer(value.to_bytes(16, "little"), np.uint8)
    return out.reshape(-1, 32)


def in_shared(words: Matrix, kind: str, swizzle: int | str = 128, transposed: bool = False) -> Placed:
    return place(packed(words, kind) if small(kind) else rows(words, kind), SIZES[kind], swizzle, transposed)


def lanes_of(m: int, n: int, stationary: bool = False, base: int = 0) -> tuple[Matrix, Matrix]:
    """(lane, column) of each element of D [m, n] with one CTA."""
    r, j = np.arange(m)[:, None] + np.zeros((1, n), int), np.arange(n)[None, :] + np.zeros((m, 1), int)
    if stationary and m == 64:
        return r + 64 * (j >= n // 2), j % (n // 2)
    if stationary and m == 32:
        return r + 32 * (j // (n // 4)), j % (n // 4)
    return (r if m == 128 else base + r // 16 * 32 + r % 16), j


def whole(kind: str, seed: int, count: int) -> tuple[Matrix, Matrix]:
    """(words, values) of small whole numbers, a row of 32 bytes each."""
    size = SIZES[kind]
    rng = np.random.default_rng(seed)
    values = rng.integers(0 if kind == "u8" else -2, 4, (count, 32 // size))
    if kind in ("s8", "u8"):
        return values.astype(np.int8).view(np.uint8), values
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16), values
    if kind in ("bf16", "tf32"):
        words = values.astype(np.float32).view(np.uint32)
        return ((words >> 16).astype(np.uint16) if kind == "bf16" else words), values
    exponents, fractions = law.FORMATS[kind][:2]
    table = {n[0]: w for w in range(1 << (exponents + fractions + 1)) if not isinstance(n := law.number(kind, w), str)}
    return np.vectorize(lambda v: table[v])(values).astype(np.uint8), values


def result_words(values: Matrix, out: str) -> Matrix:
    if out == "f32":
        return values.astype(np.float32).view(np.uint32)
    if out == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)
    return values.astype(np.int32).view(np.uint32)


LAYOUTS = [
    # types, M, N, swizzle and transposition of A ("t": in tensor memory) and B
    (("f32", "f16", "f16"), 128, 64, 128, False, 128, False),
    (("f32", "f16", "f16"), 128, 256, 64, True, 32, True),
    (("f32", "bf16", "bf16"), 64, 40, 0, True, 0, False),
    (("f32", "bf16", "bf16"), 64, 24, 0, False, 0, True),
    (("f16", "f16", "f16"), 128, 72, 32, False, 64, True),
    (("f16", "f16", "f16"), 64, 8, "t", False, 128, True),
    (("f32", "f16", "f16"), 128, 16, "t", False, 64, False),
    (("f32", "tf32", "tf32"), 128, 48, 128, False, 64, False),
    (("f32", "tf32", "tf32"), 128, 64, "128 by 32", True, "128 by 32", True),
    (("f32", "tf32", "tf32"), 64, 16, "t", False, 0, False),
    (("f32", "e4m3", "e5m2"), 128, 64, 128, True, 64, True),
    (("f16", "e5m2", "e4m3"), 64, 32, 32, False, 0, True),
    (("f32", "e4m3", "e2m1"), 128, 24, 0, False, 128, False),
    (("f16", "e3m2", "e2m3"), 64, 16, 64, False, 32, False),
    (("f32", "e2m1", "e4m3"), 128, 32, "t", False, 64, False),
    (("f32", "e2m3", "e3m2"), 64, 16, "t", False, 64, False),
    (("s32", "s8", "u8"), 128, 64, 128, False, 32, True),
    (("s32", "u8", "s8"), 64, 32, 0, True, 64, False),
]


@pytest.mark.parametrize(("types", "m", "n", "swizzle_a", "ta", "swizzle_b", "tb"), LAYOUTS)
def test_layouts(
    types: tuple[str, str, str], m: int, n: int, swizzle_a: Any, ta: bool, swizzle_b: Any, tb: bool
) -> None:
    out, kind_a, kind_b = types
    (wa, va), (wb, vb) = whole(kind_a, 1, m), whole(kind_b, 2, n)
    lane, column = lanes_of(m, n)
    start = np.random.default_rng(3).integers(-8, 8, (LANES, n))
    c = result_words(start, out)
    if swizzle_a == "t":
        a: Any = np.zeros((LANES, 8), np.uint32)
        a[lane[:, 0]] = rows(wa, kind_a).view(np.uint32)
    else:
        a = in_shared(wa, kind_a, swizzle_a, ta)
    b = in_shared(wb, kind_b, swizzle_b, tb)
    opcode = f"tcgen05.mma.cta_group::1.kind::{KINDS.get(kind_a, 'f8f6f4')}"
    got = Product(opcode, descriptor(m, n, types, ta=ta, tb=tb), a, b, c).run()
    expected = c.copy()
    expected[lane, column] = result_words(start[lane, column] + va @ vb.T, out)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("m", "n"), [(32, 64), (64, 64), (128, 128), (32, 256)])
def test_weight_stationary_layouts(m: int, n: int) -> None:
    types = ("f32", "f16", "f16")
    (wa, va), (wb, vb) = whole("f16", 1, m), whole("f16", 2, n)
    lane, column = lanes_of(m, n, stationary=True)
    c = result_words(np.random.default_rng(3).integers(-8, 8, (LANES, n)), "f32")
    product = Product(
        "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill", descriptor(m, n, types), in_shared(wa, "f16"),
        in_shared(wb, "f16"), c,
    )  # fmt: skip
    expected = c.copy()
    expected[lane, column] = result_words(c.view(np.float32)[lane, column] + va @ vb.T, "f32")
    np.testing.assert_array_equal(product.run(), expected)


def test_the_upper_half_of_each_quarter() -> None:
    types = ("f32", "f16", "f16")
    (wa, va), (wb, vb) = whole("f16", 1, 64), whole("f16", 2, 16)
    c = result_words(np.zeros((LANES, 16), int), "f32")
    got = Product(
        "tcgen05.mma.cta_group::1.kind::f16", descriptor(64, 16, types), in_shared(wa, "f16"), in_shared(wb, "f16"), c,
        at=16 << 16,
    ).run()  # fmt: skip
    expected = c.copy()
    lane, column = lanes_of(64, 16, base=16)
    expected[lane, column] = result_words(va @ vb.T, "f32")
    np.testing.assert_array_equal(got, expected)


def _plain(**options: Any) -> tuple[Product, Matrix]:
    """A product of whole numbers, M = 128 and N = 16, and its values without the accumulators."""
    (wa, va), (wb, vb) = whole("f16", 1, 128), whole("f16", 2, 16)
    c = result_words(np.random.default_rng(3).integers(-8, 8, (LANES, 16)), "f32")
    more = options.pop("more", 0)
    opcode = options.pop("opcode", "tcgen05.mma.cta_group::1.kind::f16")
    idesc = descriptor(128, 16, ("f32", "f16", "f16"), more=more)
    return Product(opcode, idesc, in_shared(wa, "f16"), in_shared(wb, "f16"), c, **options), va @ vb.T


def test_without_the_accumulator() -> None:
    product, values = _plain(enable=False)
    np.testing.assert_array_equal(product.run().view(np.float32), values)


@pytest.mark.parametrize(("bits", "sign"), [(1 << 13, -1), (1 << 14, -1), (3 << 13, 1)])
def test_negated_matrices(bits: int, sign: int) -> None:
    product, values = _plain(enable=False, more=bits)
    np.testing.assert_array_equal(product.run().view(np.float32), sign * values)


def test_lanes_that_are_left_out() -> None:
    masks = (0x0000FFFF, 0, 0x80000001, 0xFFFFFFFF)
    product, values = _plain(enable=False, lanes=masks)
    kept = np.array([masks[lane // 32] >> lane % 32 & 1 for lane in range(LANES)], bool)
    got = product.run().view(np.float32)
    np.testing.assert_array_equal(got[~kept], values[~kept])
    np.testing.assert_array_equal(got[kept].view(np.uint32), product.c[kept])


def test_the_accumulator_scaled_down() -> None:
    product, values = _plain(tail=", 3")
    np.testing.assert_array_equal(product.run().view(np.float32), values + product.c.view(np.float32) / 8)


def test_integers_wrap_or_saturate() -> None:
    a, b = np.full((128, 32), 127, np.uint8), np.full((16, 32), 127, np.uint8)
    c = np.full((LANES, 16), 0x7FFFFFF0, np.uint32)
    for more, expected in ((0, 0x7FFFFFF0 + 32 * 127 * 127 - (1 << 32)), (8, 0x7FFFFFFF)):
        idesc = descriptor(128, 16, ("s32", "s8", "s8"), more=more)
        got = Product("tcgen05.mma.cta_group::1.kind::i8", idesc, place(a, 1), place(b, 1), c).run()
        assert (got.view(np.int32) == expected).all()


# ------------------------------------------------------------------------------------------------ arithmetic
def words_of(kind: str, rng: np.random.Generator, count: int, style: str) -> Matrix:
    """Random words, a row of 32 bytes each: "close" exponents with many bits, "wide" or "any" bit patterns."""
    size = SIZES[kind]
    shape = (count, 32 // size)
    if kind in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"):
        exponents, fractions = law.FORMATS[kind][:2]
        words = rng.integers(0, 1 << (exponents + fractions + 1), shape)
        if style != "any":
            words[np.vectorize(lambda w: isinstance(law.number(kind, int(w)), str))(words)] = 0
        return words.astype(np.uint8)
    if style == "any":
        return rng.integers(0, 1 << 8 * size, shape).astype(UNSIGNED[size])
    spread = {"close": 2, "wide": 12 if kind == "f16" else 60}[style]
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    words = values.astype(np.float32).view(np.uint32)
    return (words >> 16).astype(np.uint16) if kind == "bf16" else words


def accumulators(out: str, rng: np.random.Generator, n: int, style: str) -> Words:
    if style == "any":
        return rng.integers(0, 1 << (32 if out == "f32" else 16), (LANES, n)).astype(np.uint32)
    values = rng.standard_normal((LANES, n)) * 2.0 ** rng.integers(-8, 8, (LANES, n))
    return result_words(values, out)


ARITHMETIC = [
    ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "f16", "bf16"),
    ("f32", "tf32", "tf32"), ("f32", "e4m3", "e4m3"), ("f32", "e5m2", "e4m3"), ("f16", "e4m3", "e5m2"),
    ("f32", "e2m3", "e5m2"), ("f16", "e3m2", "e2m1"), ("f32", "e2m1", "e2m1"), ("f32", "e3m2", "e3m2"),
]  # fmt: skip


@pytest.mark.parametrize("style", ["close", "wide", "any"])
@pytest.mark.parametrize("types", ARITHMETIC, ids=".".join)
def test_arithmetic(types: tuple[str, str, str], style: str) -> None:
    out, kind_a, kind_b = types
    rng = np.random.default_rng(17)
    n = 16
    a, b = words_of(kind_a, rng, 128, style), words_of(kind_b, rng, n, style)
    c = accumulators(out, rng, n, style)
    opcode = f"tcgen05.mma.cta_group::1.kind::{KINDS.get(kind_a, 'f8f6f4')}"
    got = Product(opcode, descriptor(128, n, types), in_shared(a, kind_a), in_shared(b, kind_b), c).run()
    for r, j in zip(rng.integers(0, 128, 60), rng.integers(0, n, 60), strict=True):
        expected = law.dot([int(w) for w in a[r]], [int(w) for w in b[j]], int(c[r, j]), (kind_a, kind_b), out)
        assert hex(got[r, j]) == hex(expected), (r, j)


@pytest.mark.parametrize("style", ["close", "wide"])
@pytest.mark.parametrize("types", [ARITHMETIC[1], ARITHMETIC[2], ARITHMETIC[4]], ids=".".join)
def test_arithmetic_of_a_scaled_accumulator(types: tuple[str, str, str], style: str) -> None:
    out, kind, _ = types
    rng = np.random.default_rng(18)
    a, b, c = words_of(kind, rng, 128, style), words_of(kind, rng, 8, style), accumulators(out, rng, 8, style)
    opcode = f"tcgen05.mma.cta_group::1.kind::{KINDS[kind]}"
    got = Product(opcode, descriptor(128, 8, types), in_shared(a, kind), in_shared(b, kind), c, tail=", 15").run()
    for r in range(0, 128, 5):
        row, column = [int(w) for w in a[r]], [int(w) for w in b[r % 8]]
        assert got[r, r % 8] == law.dot(row, column, int(c[r, r % 8]), (kind, kind), out, lower=15), r


def scale_words(scales: Matrix) -> Words:
    """Scale bytes [row, 4] where tensor memory wants them: row r at lane r mod 32 of each quarter, column r / 32."""
    out = np.zeros((LANES, 16), np.uint32)
    words = np.ascontiguousarray(scales).view(np.uint32)[:, 0]
    for r, word in enumerate(words):
        out[r % 32 :: 32, r // 32] = word
    return out


def scaled_descriptor(n: int, a: int, b: int, ids: tuple[int, int], ue8m0: bool) -> int:
    return a << 7 | b << 10 | n >> 3 << 17 | ue8m0 << 23 | 1 << 27 | ids[0] << 29 | ids[1] << 4


@pytest.mark.parametrize("style", ["close", "any"])
@pytest.mark.parametrize(
    ("kinds", "ids"), [(("e4m3", "e4m3"), (0, 0)), (("e5m2", "e2m1"), (3, 1)), (("e3m2", "e2m3"), (1, 2))]
)
def test_scaled_by_rows_and_columns(kinds: tuple[str, str], ids: tuple[int, int], style: str) -> None:
    rng = np.random.default_rng(19)
    n = 40
    a, b = (words_of(kind, rng, count, style) for kind, count in zip(kinds, (128, n), strict=True))
    c = accumulators("f32", rng, n, style)
    low, high = (120, 136) if style == "close" else (0, 256)
    sa, sb = (rng.integers(low, high, (count, 4)).astype(np.uint8) for count in (128, n))
    idesc = scaled_descriptor(n, CODES[kinds[0]], CODES[kinds[1]], ids, True)
    got = Product(
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32", idesc, in_shared(a, kinds[0]),
        in_shared(b, kinds[1]), c, scale_a=scale_words(sa), scale_b=scale_words(sb),
    ).run()  # fmt: skip
    for r, j in zip(rng.integers(0, 128, 80), rng.integers(0, n, 80), strict=True):
        scales = int(sa[r, ids[0]]), int(sb[j, ids[1]])
        row, column = [int(w) for w in a[r]], [int(w) for w in b[j]]
        expected = law.dot(row, column, int(c[r, j]), kinds, "f32", scale=sum(scales) - 254)
        assert got[r, j] == (0x7FFFFFFF if 0xFF in scales else expected), (r, j)


@pytest.mark.parametrize("style", ["close", "any"])
@pytest.mark.parametrize(
    ("kind", "vector", "ue8m0", "ids"),
    [
        ("mxf4", ".block32", True, (0, 2)), ("mxf4", "", True, (2, 0)), ("mxf4nvf4", ".scale_vec::2X", True, (0, 0)),
        ("mxf4nvf4", ".block16", True, (0, 0)), ("mxf4nvf4", ".scale_vec::4X", False, (0, 0)),
    ],
)  # fmt: skip
def test_four_bits_with_scales(kind: str, vector: str, ue8m0: bool, ids: tuple[int, int], style: str) -> None:
    rng = np.random.default_rng(20)
    n = 24
    a, b = (rng.integers(0, 16, (count, 64)) for count in (128, n))
    if style == "close":
        a[::7] = b[::5] = 0
        a[3], b[3] = np.tile([1, 9], 32), np.full(64, 2)  # every group cancels
    c = accumulators("f32", rng, n, style)
    low, high = ((120, 136) if ue8m0 else (0, 127)) if style == "close" else (0, 256)
    sa, sb = (rng.integers(low, high, (count, 4)).astype(np.uint8) for count in (128, n))
    shared = [place((x[:, ::2] | x[:, 1::2] << 4).astype(np.uint8), 1) for x in (a, b)]
    got = Product(
        f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{vector}", scaled_descriptor(n, 1, 1, ids, ue8m0), *shared,
        c, scale_a=scale_words(sa), scale_b=scale_words(sb),
    ).run()  # fmt: skip
    per_scale = 1 if vector in (".block16", ".scale_vec::4X") else 2
    for r, j in [(3, 3), *zip(rng.integers(0, 128, 80), rng.integers(0, n, 80), strict=True)]:
        scales = [(int(sa[r, ids[0] + g // per_scale]), int(sb[j, ids[1] + g // per_scale])) for g in range(4)]
        row, column = [int(w) for w in a[r]], [int(w) for w in b[j]]
        assert got[r, j] == law.grouped(row, column, int(c[r, j]), scales, not ue8m0), (r, j)
