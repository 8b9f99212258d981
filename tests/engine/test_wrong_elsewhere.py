"""What other emulators are known to compute wrongly, a few instructions each, with the value a GPU gives.

The first five: gpgpu-sim issue 343, found there by comparing with an RTX 3090. The others: the tests of ZLUDA in which
gpuocelot gives wrong values.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.assembly import STORE, words

LANE = np.arange(32, dtype=np.uint32)


def test_selp_takes_the_opposite_of_a_negated_predicate() -> None:
    body = "setp.lt.u32 %p1, %r0, 10; selp.u32 %r3, 1, 2, !%p1;"
    assert (words(body + STORE) == np.where(LANE < 10, 2, 1)).all()


@pytest.mark.parametrize("type, expected", [("u32", 0), ("s32", 0xFFFF_FFFF)])
def test_bfe_from_a_position_outside_the_word(type: str, expected: int) -> None:
    """Nothing is left but the sign."""
    body = f"mov.u32 %r2, 0xF0000001; add.u32 %r4, %r0, 32; bfe.{type} %r3, %r2, %r4, 8;"
    assert (words(body + STORE) == expected).all()


@pytest.mark.parametrize(
    "mode, up, down",
    [("rm", 0x3F80_0000, 0xBF80_0001), ("rp", 0x3F80_0001, 0xBF80_0000), ("rz", 0x3F80_0000, 0xBF80_0000)],
)
def test_directed_rounding_of_a_sum(mode: str, up: int, down: int) -> None:
    """1 + 2**-24 and its opposite: between two floats, halfway."""
    sign = "and.b32 %r4, %r0, 1; shl.b32 %r4, %r4, 31;"
    operands = "or.b32 %r5, %r4, 0x3F800000; or.b32 %r6, %r4, 0x33800000; mov.b32 %f1, %r5; mov.b32 %f2, %r6;"
    body = f"{sign} {operands} add.{mode}.f32 %f3, %f1, %f2; mov.b32 %r3, %f3;"
    assert (words(body + STORE) == np.where(LANE % 2 == 0, up, down)).all()


@pytest.mark.parametrize(
    "mode, expected", [("rz", 0x4EFF_FFFF), ("rm", 0x4EFF_FFFF), ("rn", 0x4F00_0000), ("rp", 0x4F00_0000)]
)
def test_an_integer_is_rounded_as_asked(mode: str, expected: int) -> None:
    """2**31 - 1 needs more than the 24 bits of an f32."""
    body = f"mov.u32 %r2, 0x7FFFFFFF; cvt.{mode}.f32.s32 %f1, %r2; mov.b32 %r3, %f1;"
    assert (words(body + STORE) == expected).all()


def test_high_word_of_a_64_bit_sum() -> None:
    body = """
        mov.b64 %rd2, {0xFFFFFFF0, 0x12345678};
        cvt.u64.u32 %rd3, %r0;
        add.u64 %rd4, %rd2, %rd3;
        mov.b64 {%r4, %r3}, %rd4;
    """
    assert (words(body + STORE) == np.where(LANE < 16, 0x1234_5678, 0x1234_5679)).all()


def test_carry_of_a_multiply_add_goes_into_the_next() -> None:
    """The 64-bit a * b + c out of 32-bit halves; the sum of the low halves carries in the odd lanes."""
    body = """
        and.b32 %r4, %r0, 1;
        sub.u32 %r4, 0, %r4;
        mov.u32 %r5, 0x10001;
        mad.lo.cc.u32 %r6, %r5, %r5, %r4;
        madc.hi.u32 %r3, %r5, %r5, 7;
    """
    low = (0x10001**2 & 0xFFFF_FFFF) + np.where(LANE % 2, 0xFFFF_FFFF, 0)
    assert (words(body + STORE) == (0x10001**2 >> 32) + 7 + (low >> 32)).all()


@pytest.mark.parametrize("type, expected", [("u32", 0xFFFF_FE00), ("s32", 0x0000_0000)])
def test_mul24_hi_is_the_upper_32_bits_of_48(type: str, expected: int) -> None:
    """0xFFFFFF squared is 0xFFFFFE000001; as numbers of 24 bits with a sign it is (-1) * (-1)."""
    body = f"mov.u32 %r2, 0xABFFFFFF; mul24.hi.{type} %r3, %r2, %r2;"
    assert (words(body + STORE) == expected).all()


@pytest.mark.parametrize("other", ["0f3F800000", "0f7FC00000"])
@pytest.mark.parametrize("comparison, expected", [("leu", 1), ("le", 0), ("gtu", 1), ("neu", 1), ("ne", 0)])
def test_unordered_comparison_with_a_nan(comparison: str, expected: int, other: str) -> None:
    body = f"mov.f32 %f1, 0f7FC00000; setp.{comparison}.f32 %p1, %f1, {other}; selp.u32 %r3, 1, 0, %p1;"
    assert (words(body + STORE) == expected).all()


def test_a_name_declared_again_in_a_block_is_another_register() -> None:
    body = """
        .reg .u32 x;
        mov.u32 x, %r0;
        {
            .reg .u32 x;
            mov.u32 x, 100;
            {
                .reg .u64 x;
                mov.u64 x, 7;
            }
            add.u32 %r4, x, 1;
        }
        mad.lo.u32 %r3, x, 1000, %r4;
    """
    assert (words(body + STORE) == LANE * 1000 + 101).all()


def test_rounding_modes_on_both_sides_of_a_call() -> None:
    """The caller's rounding up neither changes the function's rounding down, nor is changed by it: 1 + 2**-24."""
    function = """
        .func (.reg .f32 r) down(.reg .f32 a, .reg .f32 b) { add.rm.f32 r, a, b; ret; }
    """
    body = """
        mov.f32 %f1, 0f3F800000;
        mov.f32 %f2, 0f33800000;
        add.rp.f32 %f3, %f1, %f2;
        call (%f4), down, (%f1, %f2);
        add.rp.f32 %f5, %f1, %f2;
        mov.b32 %r4, %f3;
        mov.b32 %r5, %f4;
        mov.b32 %r6, %f5;
        sub.u32 %r4, %r4, %r5;
        sub.u32 %r6, %r6, %r5;
        mad.lo.u32 %r3, %r4, 10, %r6;
    """
    assert (words(body + STORE, outside=function) == 11).all()
