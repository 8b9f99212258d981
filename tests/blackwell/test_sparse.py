"""`tcgen05.mma.sp` through the engine: whole-number products of a sparse A written out in full, and the dense law on
the columns that are picked.

Metadata are laid out as JAX lays them out (`format_tcgen05_sparse_metadata`), one instruction of its tile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.blackwell import law
from tests.blackwell.tcgen05_ptx import LANES, Placed, Product, Words, place
from tests.blackwell.test_mma import (
    CODES,
    KINDS,
    SIZES,
    accumulators,
    descriptor,
    in_shared,
    lanes_of,
    packed,
    result_words,
    rows,
    scale_words,
    scaled_descriptor,
    small,
    whole,
    words_of,
)

SPARSE = 1 << 2
ORDERED = (0x4, 0x8, 0xC, 0x9, 0xD, 0x6, 0xE)
"""The indices that the manual gives a meaning; of tf32 the second and the last."""
HELD = {4: 1, 2: 2, 1: 2, 0: 4}
"""Elements that a chunk stores, by bytes of an element (0: half a byte)."""


def drawn(count: int, size: int, seed: int = 7) -> np.ndarray:
    """Nibbles [row, chunk] for rows of 32 stored bytes."""
    stored = 64 if size == 0 else 32 // size
    choice = (0x4, 0xE) if size == 4 else ORDERED
    return np.random.default_rng(seed).choice(choice, (count, stored // HELD[size]))


def columns(nibbles: np.ndarray, size: int) -> np.ndarray:
    """Logical column of each stored element, [row, element]."""
    low, high = nibbles & 3, nibbles >> 2
    chunk = np.arange(nibbles.shape[1])
    if size == 4:
        return 2 * chunk + (low >> 1)
    if size == 0:
        pairs = np.stack([4 * chunk + low, 4 * chunk + high], -1).reshape(len(nibbles), -1)
        return np.stack([2 * pairs, 2 * pairs + 1], -1).reshape(len(nibbles), -1)
    return np.stack([4 * chunk + low, 4 * chunk + high], -1).reshape(len(nibbles), -1)


def in_tensor_memory(nibbles: np.ndarray, size: int, copies: int = 1) -> Words:
    """Words [lane, 2] of a row block of metadata; a wide type has one column, here the second of the pair."""
    count = len(nibbles)
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    if size >= 2:
        # row = (sixteen, upper half, row of eight), chunk = (half of k, chunk of four)
        parts = nibbles.reshape(count // 16, 2, 8, 2, 4).transpose(0, 3, 2, 1, 4).reshape(count, 8)
        words = np.stack([np.full(count, 0x99999999, np.uint32), (parts.astype(np.uint32) << shifts).sum(1)], -1)
    else:
        words = (nibbles.reshape(count, 2, 8).astype(np.uint32) << shifts).sum(2)
    return np.tile(words.astype(np.uint32), (copies, 1))


def full(stored: np.ndarray, at: np.ndarray) -> np.ndarray:
    """A sparse matrix written out."""
    out = np.zeros((len(stored), 2 * stored.shape[1]), stored.dtype)
    np.put_along_axis(out, at, stored, 1)
    return out


def wide_b(kind: str, seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(words, values) of whole numbers, 64 bytes a row."""
    halves = [whole(kind, seed + i, count) for i in range(2)]
    return np.concatenate([w for w, _ in halves], 1), np.concatenate([v for _, v in halves], 1)


def b_in_shared(words: np.ndarray, kind: str, swizzle: int | str = 128, transposed: bool = False) -> Placed:
    """Columns of B of 64 bytes."""
    if small(kind):
        return place(packed(words.reshape(-1, 32), kind).reshape(len(words), 64), 1, swizzle)
    return place(np.ascontiguousarray(words).view(np.uint8).reshape(len(words), 64), SIZES[kind], swizzle, transposed)


LAYOUTS = [
    # types, M, N, swizzle and transposition of A ("t": in tensor memory) and B
    (("f32", "f16", "f16"), 128, 32, 128, False, 128, False),
    (("f16", "f16", "f16"), 128, 16, 64, True, 0, False),
    (("f32", "bf16", "bf16"), 128, 24, "t", False, 64, False),
    (("f32", "f16", "f16"), 128, 64, 0, False, 32, True),
    (("f32", "tf32", "tf32"), 128, 16, 32, False, 64, False),
    (("f32", "tf32", "tf32"), 128, 32, "t", False, "128 by 32", True),
    (("f32", "e4m3", "e5m2"), 128, 16, 128, True, 128, True),
    (("f16", "e5m2", "e4m3"), 128, 48, "t", False, 0, False),
    (("f32", "e4m3", "e2m1"), 128, 16, 128, False, 64, False),
    (("f32", "e2m3", "e3m2"), 128, 16, 64, False, 128, False),
    (("s32", "s8", "u8"), 128, 32, 64, False, 128, False),
    (("s32", "u8", "s8"), 128, 16, "t", False, 64, True),
]


def setting(types: tuple[str, str, str], m: int, n: int, copies: int = 1) -> dict[str, Any]:
    out, kind_a, kind_b = types
    size = SIZES[kind_a]
    nibbles = drawn(m, size)
    (wa, va), (wb, vb) = whole(kind_a, 1, m), wide_b(kind_b, 2, n)
    start = np.random.default_rng(3).integers(-8, 8, (LANES, n))
    return {
        "wa": wa, "wb": wb, "start": start, "metadata": in_tensor_memory(nibbles, size, copies),
        "product": full(va, columns(nibbles, size)) @ vb.T, "selector": int(size >= 2),
    }  # fmt: skip


@pytest.mark.parametrize(("types", "m", "n", "swizzle_a", "ta", "swizzle_b", "tb"), LAYOUTS)
def test_layouts(
    types: tuple[str, str, str], m: int, n: int, swizzle_a: Any, ta: bool, swizzle_b: Any, tb: bool
) -> None:
    out, kind_a, kind_b = types
    s = setting(types, m, n)
    c = result_words(s["start"], out)
    a: Any = rows(s["wa"], kind_a).view(np.uint32) if swizzle_a == "t" else in_shared(s["wa"], kind_a, swizzle_a, ta)
    idesc = descriptor(m, n, types, ta=ta, tb=tb, more=SPARSE | s["selector"])
    opcode = f"tcgen05.mma.sp.cta_group::1.kind::{KINDS.get(kind_a, 'f8f6f4')}"
    b = b_in_shared(s["wb"], kind_b, swizzle_b, tb)
    got = Product(opcode, idesc, a, b, c, metadata=s["metadata"]).run()
    np.testing.assert_array_equal(got, result_words(s["start"] + s["product"], out))


@pytest.mark.parametrize("m", [32, 64, 128])
@pytest.mark.parametrize("types", [("f32", "f16", "f16"), ("f32", "tf32", "tf32"), ("s32", "s8", "s8")], ids=".".join)
def test_weight_stationary_layouts(types: tuple[str, str, str], m: int) -> None:
    out, kind_a, kind_b = types
    n = 64
    s = setting(types, m, n, LANES // m)
    lane, column = lanes_of(m, n, stationary=True)
    c = result_words(s["start"], out)
    idesc = descriptor(m, n, types, more=SPARSE | s["selector"])
    opcode = f"tcgen05.mma.ws.sp.cta_group::1.kind::{KINDS[kind_a]}"
    b = b_in_shared(s["wb"], kind_b)
    got = Product(opcode, idesc, in_shared(s["wa"], kind_a), b, c, metadata=s["metadata"]).run()
    expected = c.copy()
    expected[lane, column] = result_words(s["start"][lane, column] + s["product"], out)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("style", ["close", "any"])
@pytest.mark.parametrize(
    "types", [("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "tf32", "tf32"), ("f32", "e4m3", "e5m2")],
    ids=".".join,
)  # fmt: skip
def test_arithmetic(types: tuple[str, str, str], style: str) -> None:
    out, kind_a, kind_b = types
    rng = np.random.default_rng(17)
    n, size = 16, SIZES[kind_a]
    nibbles = drawn(128, size)
    a = words_of(kind_a, rng, 128, style)
    b = np.concatenate([words_of(kind_b, rng, n, style) for _ in range(2)], 1)
    c = accumulators(out, rng, n, style)
    idesc = descriptor(128, n, types, more=SPARSE | int(size >= 2))
    opcode = f"tcgen05.mma.sp.cta_group::1.kind::{KINDS.get(kind_a, 'f8f6f4')}"
    product = Product(opcode, idesc, in_shared(a, kind_a), b_in_shared(b, kind_b), c)
    got = replace(product, metadata=in_tensor_memory(nibbles, size)).run()
    at = columns(nibbles, size)
    for r, j in zip(rng.integers(0, 128, 60), rng.integers(0, n, 60), strict=True):
        picked = [int(w) for w in b[j][at[r]]]
        expected = law.dot([int(w) for w in a[r]], picked, int(c[r, j]), (kind_a, kind_b), out)
        assert hex(got[r, j]) == hex(expected), (r, j)


def test_scaled_by_rows_and_columns() -> None:
    rng = np.random.default_rng(19)
    n, kinds, ids = 40, ("e4m3", "e5m2"), (3, 1)
    nibbles = drawn(128, 1)
    a, c = words_of(kinds[0], rng, 128, "close"), accumulators("f32", rng, n, "close")
    b = np.concatenate([words_of(kinds[1], rng, n, "close") for _ in range(2)], 1)
    sa, sb = (rng.integers(118, 138, (count, 4)).astype(np.uint8) for count in (128, n))
    idesc = scaled_descriptor(n, CODES[kinds[0]], CODES[kinds[1]], ids, True) | SPARSE
    got = Product(
        "tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale", idesc, in_shared(a, kinds[0]),
        b_in_shared(b, kinds[1]), c, scale_a=scale_words(sa), scale_b=scale_words(sb),
        metadata=in_tensor_memory(nibbles, 1),
    ).run()  # fmt: skip
    at = columns(nibbles, 1)
    for r, j in zip(rng.integers(0, 128, 60), rng.integers(0, n, 60), strict=True):
        scale = int(sa[r, ids[0]]) + int(sb[j, ids[1]]) - 254
        picked = [int(w) for w in b[j][at[r]]]
        assert got[r, j] == law.dot([int(w) for w in a[r]], picked, int(c[r, j]), kinds, "f32", scale=scale), (r, j)


@pytest.mark.parametrize(("kind", "vector", "ue8m0"), [("mxf4", "", True), ("mxf4nvf4", ".block16", False)])
def test_four_bits_with_scales(kind: str, vector: str, ue8m0: bool) -> None:
    rng = np.random.default_rng(20)
    n = 24
    nibbles = drawn(128, 0)
    a, b = rng.integers(0, 16, (128, 64)), rng.integers(0, 16, (n, 128))
    c = accumulators("f32", rng, n, "close")
    sa, sb = (rng.integers(*((120, 136) if ue8m0 else (0, 127)), (count, 4)).astype(np.uint8) for count in (128, n))
    shared = [place((x[:, ::2] | x[:, 1::2] << 4).astype(np.uint8), 1) for x in (a, b)]
    idesc = scaled_descriptor(n, 1, 1, (0, 0), ue8m0) | SPARSE
    got = Product(
        f"tcgen05.mma.sp.cta_group::1.kind::{kind}.block_scale{vector}", idesc, *shared, c, scale_a=scale_words(sa),
        scale_b=scale_words(sb), metadata=in_tensor_memory(nibbles, 0),
    ).run()  # fmt: skip
    at, per_scale = columns(nibbles, 0), 1 if vector == ".block16" else 2
    for r, j in zip(rng.integers(0, 128, 60), rng.integers(0, n, 60), strict=True):
        scales = [(int(sa[r, g // per_scale]), int(sb[j, g // per_scale])) for g in range(4)]
        picked = [int(w) for w in b[j][at[r]]]
        assert got[r, j] == law.grouped([int(w) for w in a[r]], picked, int(c[r, j]), scales, not ue8m0), (r, j)


# ------------------------------------------------------------------------------------------------ what is refused
def _good(**changes: Any) -> Product:
    types = ("f32", "f16", "f16")
    s = setting(types, 128, 16)
    idesc = descriptor(128, 16, types, more=SPARSE | 1)
    c = result_words(s["start"], "f32")
    a, b = in_shared(s["wa"], "f16"), b_in_shared(s["wb"], "f16")
    product = Product("tcgen05.mma.sp.cta_group::1.kind::f16", idesc, a, b, c, metadata=s["metadata"])
    return replace(product, **changes)


TYPES = ("f32", "f16", "f16")
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "dense": ({"idesc": descriptor(128, 16, TYPES)}, "says sparse"),
    "M = 64": ({"idesc": descriptor(64, 16, TYPES, more=SPARSE)}, "figures of the manual"),
    "selector 2": ({"idesc": descriptor(128, 16, TYPES, more=SPARSE | 2)}, "sparsity selector"),
    "an odd column": ({"metadata_at": 1}, "even column"),
    "selector of bytes": (
        {"opcode": "tcgen05.mma.sp.cta_group::1.kind::f8f6f4",
         "idesc": descriptor(128, 16, ("f32", "e4m3", "e4m3"), more=SPARSE | 1)}, "sparsity selector",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_descriptors(name: str) -> None:
    changes, message = WRONG[name]
    (found,) = _good(**changes).launch()[0].findings
    assert found.kind == "bad-tensor-operation" and message in found.message


def test_narrow_swizzling_of_b() -> None:
    good = _good()
    narrow = replace(good.b, descriptor=good.b.descriptor | 6 << 61)
    (found,) = replace(good, b=narrow).launch()[0].findings
    assert "32-byte swizzling" in found.message


def test_metadata_in_another_lane() -> None:
    (found,) = _good(metadata_at=16 << 16).launch()[0].findings
    assert found.kind == "bad-tensor-memory" and "lane" in found.message


def test_both_engines_and_completion_agree() -> None:
    good = _good().run()
    np.testing.assert_array_equal(_good().run(engine="traced"), good)
    np.testing.assert_array_equal(_good().run(asynchrony="eager"), good)
