"""Lane functions of `cvt` for the formats of 8 bits and less, and for stochastic rounding.

Scalars: `interp.formats.tiny_floats`. The first parameter is the format's number, the second what the scalar takes
after it."""

from __future__ import annotations

from interp.formats import tiny_floats as tiny
from interp.runtime.lane import lane
from interp.runtime.raw import load_u8, load_u32, store_u8, store_u16


@lane("f32_to_tiny", (32,), 8, tiny.f32_to_tiny)
def f32_to_tiny(results: int, operands: int, kind: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u8(results + i, tiny.f32_to_tiny(load_u32(operands + 4 * i), kind))


@lane("tiny_to_f16", (8,), 16, tiny.tiny_to_f16)
def tiny_to_f16(results: int, operands: int, kind: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, tiny.tiny_to_f16(load_u8(operands + i), kind))


@lane("tiny_to_bf16", (8, 8), 16, tiny.tiny_to_bf16)
def tiny_to_bf16(results: int, operands: int, kind: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, tiny.tiny_to_bf16(load_u8(operands + i), load_u8(operands + 32 + i), kind))


@lane("f32_to_s2f6", (32, 8), 8, tiny.f32_to_s2f6)
def f32_to_s2f6(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u8(results + i, tiny.f32_to_s2f6(load_u32(operands + 4 * i), load_u8(operands + 128 + i)))


@lane("s2f6_to_bf16", (8, 8), 16, tiny.s2f6_to_bf16)
def s2f6_to_bf16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, tiny.s2f6_to_bf16(load_u8(operands + i), load_u8(operands + 32 + i)))


@lane("f32_to_ue8m0", (32,), 8, tiny.f32_to_ue8m0)
def f32_to_ue8m0(results: int, operands: int, up: int, finite: int, p2: int) -> None:
    for i in range(32):
        store_u8(results + i, tiny.f32_to_ue8m0(load_u32(operands + 4 * i), up, finite))


@lane("ue8m0_to_bf16", (8,), 16, tiny.ue8m0_to_bf16)
def ue8m0_to_bf16(results: int, operands: int, p0: int, p1: int, p2: int) -> None:
    for i in range(32):
        store_u16(results + 2 * i, tiny.ue8m0_to_bf16(load_u8(operands + i)))


@lane("f32_to_half_stochastic", (32, 32), 16, tiny.f32_to_half_stochastic)
def f32_to_half_stochastic(results: int, operands: int, brain: int, p1: int, p2: int) -> None:
    for i in range(32):
        word, random = load_u32(operands + 4 * i), load_u32(operands + 128 + 4 * i)
        store_u16(results + 2 * i, tiny.f32_to_half_stochastic(word, random, brain))


@lane("f32_to_tiny_stochastic", (32, 32), 8, tiny.f32_to_tiny_stochastic)
def f32_to_tiny_stochastic(results: int, operands: int, kind: int, element: int, p2: int) -> None:
    for i in range(32):
        word, random = load_u32(operands + 4 * i), load_u32(operands + 128 + 4 * i)
        store_u8(results + i, tiny.f32_to_tiny_stochastic(word, random, kind, element))
