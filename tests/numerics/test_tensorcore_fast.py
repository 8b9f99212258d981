"""The fast path equals the model on every architecture: random bits, close exponents, tiny values, special values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.tensorcore import fast, fragments, model
from interp.tensorcore.table import GENERATIONS, Plan, arithmetic, plan
from ptx.errors import Unsupported
from tests.numerics.plans import mma_by_model, run

KINDS = {"f16": (16, 10), "bf16": (16, 7), "tf32": (32, 23), "e4m3": (8, 3), "e5m2": (8, 2)}
SPECIALS = {
    16: [0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0x7F80, 0xFF80, 0x7FC0, 0x7F, 0x80],
    32: [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7F800001, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x7F7FFFFF],
    8: [0, 0x80, 0x7F, 0xFF, 0x7C, 0xFC, 0x7E, 1, 0x81, 7, 8],
}


def _plans() -> list[tuple[int, str, str, str, Plan]]:
    found = []
    for sm in (75, 80, 89, 90, 120):
        for shape, kinds in (
            ("m16n8k4", ("tf32",)),
            ("m16n8k8", ("f16", "bf16", "tf32")),
            ("m16n8k16", ("f16", "bf16", "e4m3")),
            ("m16n8k32", ("e4m3", "e5m2")),
        ):
            for kind in kinds:
                for result in ("f32", "f16"):
                    try:
                        how = plan(sm, shape, kind, kind, result)
                    except Unsupported:
                        continue
                    if how.function == "mma":
                        found.append((sm, shape, kind, result, how))
    return found


PLANS = _plans()


def words(rng: np.random.Generator, kind: str, count: tuple[int, ...], style: str) -> Any:
    """Operand words of a kind: `bits` anything, `close` exponents near one, `tiny` near the smallest, `special` values
    mixed in."""
    width, fraction = KINDS[kind]
    dtype = np.dtype(f"uint{width}")
    drawn = rng.integers(0, 2**width, count, dtype=np.uint64)
    if style == "bits":
        return drawn.astype(dtype)
    field = (1 << (width - 1 - fraction)) - 1
    bias = field >> 1
    middle = {"close": bias, "tiny": 0, "special": bias}[style]
    exponent = np.clip(middle + rng.integers(-5, 6, count), 0, field - 1).astype(np.uint64)
    mask = np.uint64((1 << fraction) - 1)
    result = drawn & mask | exponent << np.uint64(fraction) | (drawn >> np.uint64(width - 1)) << np.uint64(width - 1)
    result[rng.random(count) < 0.1] = 0
    if style == "special":
        chosen = rng.random(count) < 0.02
        result[chosen] = rng.choice(np.array(SPECIALS[width], np.uint64), chosen.sum())
    return result.astype(dtype)


def operands(rng: np.random.Generator, how: Plan, kind: str, result: str, style: str, count: int):  # type: ignore[no-untyped-def]
    """Registers of `count` warps."""
    per = 32 // KINDS[kind][0]
    a, b = (words(rng, kind, (count, n, 32 * per), style).view(np.uint32) for n in how.registers[:2])
    c_kind = "f16" if result == "f16" else "tf32"
    c = words(rng, c_kind, (count, how.registers[2], 32 * (2 if result == "f16" else 1)), style).view(np.uint32)
    if style == "tiny":
        c[rng.random(c.shape) < 0.7] = 0
    return a, b, c


@pytest.mark.parametrize("style", ["bits", "close", "tiny", "special"])
@pytest.mark.parametrize("case", PLANS, ids=lambda p: f"sm_{p[0]}-{p[1]}-{p[2]}-{p[3]}")
def test_fast_equals_model(case: tuple[int, str, str, str, Plan], style: str) -> None:
    sm, _shape, kind, result, how = case
    rng = np.random.default_rng([sm, len(style), how.registers[0]])
    a, b, c = operands(rng, how, kind, result, style, 6)
    np.testing.assert_array_equal(run(fast.mma, how, a, b, c), run(mma_by_model, how, a, b, c))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_fast_equals_model_on_drawn_exponents(data: st.DataObject) -> None:
    """Operands whose exponents lie in drawn windows, so that products, c and the floor meet in every order."""
    _sm, _shape, kind, result, how = data.draw(st.sampled_from(PLANS))
    width, fraction = KINDS[kind]
    field = (1 << (width - 1 - fraction)) - 1
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))

    def window(kind_width: int, kind_fraction: int, top: int, shape: tuple[int, ...]) -> Any:
        low = data.draw(st.integers(0, top - 1))
        high = min(top - 1, low + data.draw(st.sampled_from([0, 1, 4, 30, 255])))
        exponent = rng.integers(low, high + 1, shape).astype(np.uint64)
        drawn = rng.integers(0, 2**63, shape, dtype=np.uint64)
        sign = (drawn >> np.uint64(62)) << np.uint64(kind_width - 1)
        return (drawn & np.uint64((1 << kind_fraction) - 1) | exponent << np.uint64(kind_fraction) | sign).astype(
            f"uint{kind_width}"
        )

    per = 32 // width
    a = window(width, fraction, field, (2, how.registers[0], 32 * per)).view(np.uint32)
    b = window(width, fraction, field, (2, how.registers[1], 32 * per)).view(np.uint32)
    c = (
        window(16, 10, 31, (2, how.registers[2], 64))
        if result == "f16"
        else window(32, 23, 255, (2, how.registers[2], 32))
    ).view(np.uint32)
    np.testing.assert_array_equal(run(fast.mma, how, a, b, c), run(mma_by_model, how, a, b, c))


LIMITS = {
    # fill of A and B by their largest finite value, one, or zero; and c, as f32
    "sums beyond int32": ("largest", [0.0, 1.0, -1.0]),
    "sums beyond int32 and c": ("largest", "as large"),
    "no products": ("zero", [0.0, -0.0, 1.0, 2.0**-47, 2.0**-48, 2.0**-49, 2.0**-100, 2.0**-101, 2.0**-102, 2.0**-149]),
    "c far above": ("one", [2.0**62, -(2.0**63), 2.0**64, 2.0**65, 1.9 * 2.0**127, -(2.0**127), 2.0**50, 2.0**39]),
    "c far below": ("one", [2.0**-20, -(2.0**-25), 2.0**-60, 2.0**-126, 2.0**-149]),
    "c not finite": ("one", [np.inf, *[1.0] * 9, np.nan, *[1.0] * 6]),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_fast_equals_model_at_the_limits_of_vectors(limit: str) -> None:
    """Where the vector code takes another way: sums that leave 32 bits, c beside which no product counts, or none."""
    fill, chosen = LIMITS[limit]
    rng = np.random.default_rng(3)
    for _sm, _shape, kind, result, how in PLANS:
        width, fraction = KINDS[kind]
        one = ((1 << (width - 2 - fraction)) - 1) << fraction
        nearly_two = one + (1 << fraction) - (0x2000 if kind == "tf32" else 1)
        word = {"largest": nearly_two, "one": one, "zero": 0}[fill]
        count, per = 6, 32 // width
        a, b = (np.full((count, n, 32 * per), word, f"uint{width}") for n in how.registers[:2])
        sign = np.array(1 << (width - 1), a.dtype)
        a[1] |= sign  # all sums negative
        a[2, :, ::3] |= sign  # mixed, with zeros
        a[2, :, 1::5] = 0
        a[3:] ^= rng.integers(0, 2, a[3:].shape).astype(a.dtype)  # last places
        b[4, :, 1::4] |= sign
        b[5] ^= rng.integers(0, 2, b[5].shape).astype(b.dtype)
        if chosen == "as large":
            c = np.full((count, 128), 3.99 * 2.0 ** (result == "f32"), np.float32)
            c[1] = -c[1]
        else:
            c = np.resize(np.array(chosen, np.float64), (count, 128)).astype(np.float32)
        with np.errstate(over="ignore"):
            c = c.astype(np.float16 if result == "f16" else np.float32).view(np.uint32)
        c = np.ascontiguousarray(c.reshape(count, how.registers[2], 32))
        a, b = a.view(np.uint32), b.view(np.uint32)
        expected = run(mma_by_model, how, a, b, c)
        np.testing.assert_array_equal(run(fast.mma, how, a, b, c), expected, err_msg=f"{kind} {result} {how}")


def test_result_may_overwrite_the_accumulator() -> None:
    how = plan(90, "m16n8k16", "f16", "f16", "f32")
    a, b, c = operands(np.random.default_rng(1), how, "f16", "f32", "special", 4)
    expected = run(fast.mma, how, a, b, c)
    for i in range(len(a)):
        fast.mma(c[i].ctypes.data, a[i].ctypes.data, b[i].ctypes.data, c[i].ctypes.data, *how.arguments)
    np.testing.assert_array_equal(c, expected)


def test_tiles_are_single_instructions_side_by_side() -> None:
    numbers = arithmetic(90, "bf16", "f32", unit="wgmma")
    how = plan(90, "m16n8k16", "bf16", "bf16", "f32")
    a, b, c = operands(np.random.default_rng(2), how, "bf16", "f32", "special", 3)
    a[1:] = a[0]
    out = np.zeros_like(c)
    fast.mma_tiles(
        out.ctypes.data, a[0].ctypes.data, b.ctypes.data, c.ctypes.data, 3, 2, 1, 1,
        numbers.block, numbers.fraction, numbers.floor, 5, numbers.out_fraction,
    )  # fmt: skip
    np.testing.assert_array_equal(out, run(fast.mma, how, a, b, c))


@pytest.mark.parametrize("kinds", [("f16", "bf16"), ("bf16", "f16")], ids=".".join)
def test_types_of_different_exponent_range(kinds: tuple[str, str]) -> None:
    """`tcgen05` multiplies f16 by bf16."""
    numbers = arithmetic(100, "f16", "f32", unit="tcgen05")
    how = plan(90, "m16n8k16", "f16", "f16", "f32")
    rng = np.random.default_rng(4)
    for style in ("close", "bits", "tiny"):
        a = words(rng, kinds[0], (4, 4, 64), style).view(np.uint32)
        b = words(rng, kinds[1], (4, 2, 64), style).view(np.uint32)
        c = words(rng, "tf32", (4, 4, 32), style).view(np.uint32)
        mixed = replace(
            how,
            arguments=(
                2, *(model.KINDS[kind] for kind in kinds), numbers.block, numbers.fraction, numbers.floor, model.F32, 23
            ),
        )  # fmt: skip
        np.testing.assert_array_equal(run(fast.mma, mixed, a, b, c), run(mma_by_model, mixed, a, b, c))


@pytest.mark.parametrize(("sm", "expected"), [(80, 0), (90, 1)])
def test_architectures_keep_different_bits(sm: int, expected: int) -> None:
    """A term of 2**-25 beside 1: cut away with F = 24, kept with F = 25, where four such terms make one place of the
    result."""
    how = plan(sm, "m16n8k8", "f16", "f16", "f32")
    a, b, c = (np.zeros((16, 8), np.float16), np.zeros((8, 8), np.float16), np.zeros((16, 8), np.uint32))
    a[:, 0], b[0] = 1, 1
    a[:, 1:5], b[1:5] = 2.0**-12, 2.0**-13
    registers = (
        fragments.to_registers("a", a.view(np.uint16)),
        fragments.to_registers("b", b.view(np.uint16)),
        fragments.to_registers("c", c),
    )
    out = run(fast.mma, how, *(r[None] for r in registers))
    words_out = fragments.from_registers(out[0], np.uint32)
    assert np.all(words_out == 0x3F800000 + expected)


@pytest.mark.parametrize(
    ("operand", "k", "bits"),
    [("a", 16, 16), ("b", 32, 8), ("c", 0, 32), ("c", 0, 16), ("a", 4, 32), ("a", 16, 64), ("b", 4, 64)],
)
def test_fragments_cover_the_matrix_once(operand: str, k: int, bits: int) -> None:
    where = fragments.positions(operand, k, bits).reshape(-1, 2)
    shape = {"a": (16, k), "b": (k, 8), "c": (16, 8)}[operand]
    assert len(np.unique(where, axis=0)) == len(where) == shape[0] * shape[1]
    assert where.min() == 0 and tuple(where.max(0) + 1) == shape


def test_every_generation_has_numbers_or_a_refusal() -> None:
    for sm in GENERATIONS:
        for kind in KINDS:
            for result in ("f32", "f16"):
                try:
                    numbers = arithmetic(sm, kind, result)
                except Unsupported:
                    continue
                assert numbers.block * KINDS[kind][0] in (64, 128, 256)
                assert numbers.fraction in (13, 23, 24, 25)
