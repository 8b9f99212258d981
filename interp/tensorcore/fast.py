"""Warp-level matrix multiply-accumulate at run time: equal to `model.py` bit for bit, eight columns at a time.

Operands are addresses of consecutive vectors of 32 words: register r of lane l at address + (r * 32 + l) * 4
(`fragments.py`). `out` may be the same as `c`, and must not overlap `a` or `b`.

An instruction decodes its operands once (`operands.py`), runs a vector kernel over its rows (`rows.py`; for exponents
far from zero `wide.py`), and gives the model what vectors do not handle: a tile with NaN or Inf in A or B, and the rows
that a kernel names."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from interp.runtime.raw import load_u16, load_u32, load_u64, native, stack_scratch, store_u64, u32
from interp.runtime.vector import I64
from interp.tensorcore.model import BF16, E4M3, E5M2, F16, TF32, dot, store_result
from interp.tensorcore.operands import F16_BESIDE_BF16, NAMES, columns_function, rows_function
from interp.tensorcore.rows import kernel
from interp.tensorcore.wide import wide_kernel


def converts_halves(context: Any) -> bool:
    """Whether code for numba's target has an instruction for f16 to f32 and back; LLVM would call a library."""
    triple, name, features = context.codegen().magic_tuple()
    if not triple.startswith(("x86", "i686")):
        return bool(triple.startswith(("aarch64", "arm64")))
    flags = features.split(",")
    return bool("-f16c" not in flags and ("+f16c" in flags or name in _WITH_F16C))


# CPU names that are used without a list of features
_WITH_F16C = ("x86-64-v3", "x86-64-v4", "haswell", "skylake", "znver2", "znver3", "znver4")


def _dispatch(context: Any, builder: ir.IRBuilder, kind: ir.Value, make: Any, args: list[ir.Value]) -> ir.Value:
    """Call the function of the kind that a run-time value names."""
    after = builder.append_basic_block("after")
    other = builder.append_basic_block("other")
    switch = builder.switch(kind, other)
    arms = []
    for number in NAMES:
        arm = builder.append_basic_block(NAMES[number])
        switch.add_case(ir.Constant(I64, number), arm)
        builder.position_at_end(arm)
        arms.append((builder.call(make(builder.module, number, converts_halves(context)), args), arm))
        builder.branch(after)
    builder.position_at_end(other)
    builder.unreachable()
    builder.position_at_end(after)
    result = builder.phi(I64)
    for value, arm in arms:
        result.add_incoming(value, arm)
    return result


@intrinsic
def decode_rows(typingctx: Any, kind: Any, source: Any, groups: Any, values: Any, exponents: Any) -> Any:
    """Decode A: bit 0 of the result for exponents beyond the moderate range, bit 1 for NaN or Inf."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return _dispatch(context, builder, args[0], rows_function, args[1:])

    return types.int64(*[types.int64] * 5), codegen


@intrinsic
def decode_columns(typingctx: Any, kind: Any, source: Any, groups: Any, values: Any, exponents: Any) -> Any:
    """Decode B, as `decode_rows`."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return _dispatch(context, builder, args[0], columns_function, args[1:])

    return types.int64(*[types.int64] * 5), codegen


def _kernel_call(make: Any) -> Any:
    def call(
        typingctx: Any,
        out: Any,
        c: Any,
        values_a: Any,
        exponents_a: Any,
        values_b: Any,
        exponents_b: Any,
        k: Any,
        block: Any,
        fraction: Any,
        floor: Any,
        out_fraction: Any,
    ) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            return builder.call(make(builder.module, converts_halves(context)), args)

        return types.int64(*[types.int64] * 11), codegen

    return intrinsic(call)


_f32_bytes = _kernel_call(lambda module, converts: kernel(module, False, 8, False, converts))
_f32_long = _kernel_call(lambda module, converts: kernel(module, False, 8, True, converts))
_f32_words = _kernel_call(lambda module, converts: kernel(module, False, 16, False, converts))
_f32_wide = _kernel_call(lambda module, converts: wide_kernel(module))
_f16_bytes = _kernel_call(lambda module, converts: kernel(module, True, 8, False, converts))
_f16_long = _kernel_call(lambda module, converts: kernel(module, True, 8, True, converts))


@native
def _copy_groups(source: int, stride: int, groups: int, target: int) -> None:
    for group in range(groups):
        store_u64(target + group * 16, load_u64(source + group * stride))
        store_u64(target + group * 16 + 8, load_u64(source + group * stride + 8))


@native
def element_bytes(kind: int) -> int:
    """Bytes of one element of an input kind."""
    if kind == TF32:
        return 4
    return 1 if kind in (E4M3, E5M2) else 2


@native
def row_by_model(
    out: int,
    a: int,
    b: int,
    c: int,
    row: int,
    groups: int,
    kind_a: int,
    kind_b: int,
    block: int,
    fraction: int,
    floor: int,
    out_kind: int,
    out_fraction: int,
) -> None:
    """One row of `mma` through the model."""
    room = stack_scratch(128)
    step_a, step_b = element_bytes(kind_a), element_bytes(kind_b)
    _copy_groups(a + (row >> 3) * 128 + (row & 7) * 16, 256, groups, room)
    for column in range(8):
        _copy_groups(b + column * 16, 128, groups, room + 64)
        if out_kind == F16:
            place = (row >> 3) * 128 + (row & 7) * 16 + column * 2
            word = u32(load_u16(c + place))
        else:
            place = (row >> 3) * 256 + (column & 1) * 128 + (row & 7) * 16 + (column >> 1) * 4
            word = load_u32(c + place)
        word = dot(
            room,
            room + 64,
            step_a,
            step_b,
            groups * 16 // step_a,
            kind_a,
            kind_b,
            word,
            out_kind,
            block,
            fraction,
            floor,
            out_fraction,
        )
        store_result(out + place, word, out_kind)


@native
def mma_tiles(
    out: int,
    a: int,
    b: int,
    c: int,
    tiles: int,
    groups: int,
    kind_a: int,
    kind_b: int,
    block: int,
    fraction: int,
    floor: int,
    out_kind: int,
    out_fraction: int,
) -> None:
    """One A (16 rows) against `tiles` times eight columns: the part of one warp in `wgmma` m64nNk*, N = 8 * tiles.

    Arguments as `mma`; tile t has its B at b + t * groups * 128 and its accumulator at c (out) + t * 512 (f16: 256).
    """
    values_a = stack_scratch(8192)
    exponents_a = stack_scratch(4096)
    values_b = stack_scratch(1024)
    exponents_b = stack_scratch(256)
    words = kind_a in (BF16, TF32) or kind_b in (BF16, TF32)
    seen_a = decode_rows(F16_BESIDE_BF16 if words and kind_a == F16 else kind_a, a, groups, values_a, exponents_a)
    decoded_b = F16_BESIDE_BF16 if words and kind_b == F16 else kind_b
    k = groups * 16 // element_bytes(kind_a)
    stride = 256 if out_kind == F16 else 512
    long = block == 32 and k == 32 and fraction > 13
    for _tile in range(tiles):
        seen = seen_a | decode_columns(decoded_b, b, groups, values_b, exponents_b)
        if seen & 2:
            left = 0xFFFF
        elif out_kind == F16:
            if long:
                left = _f16_long(
                    out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction
                )
            else:
                left = _f16_bytes(
                    out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction
                )
        elif seen & 1:
            left = _f32_wide(
                out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction
            )
        elif words:
            left = _f32_words(
                out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction
            )
        elif long:
            left = _f32_long(
                out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction
            )
        else:
            left = _f32_bytes(
                out, c, values_a, exponents_a, values_b, exponents_b, k, block, fraction, floor, out_fraction
            )
        if left:
            for row in range(16):
                if left >> row & 1:
                    row_by_model(
                        out, a, b, c, row, groups, kind_a, kind_b, block, fraction, floor, out_kind, out_fraction
                    )
        out += stride
        c += stride
        b += groups * 128


@native
def mma(
    out: int,
    a: int,
    b: int,
    c: int,
    groups: int,
    kind_a: int,
    kind_b: int,
    block: int,
    fraction: int,
    floor: int,
    out_kind: int,
    out_fraction: int,
) -> None:
    """m16n8 matrix multiply-accumulate of one warp, any float kinds.

    groups: 16-byte groups of k, i.e. registers of B (A has twice as many); 1 or 2. kind_a, kind_b: `model.F16` ... of
    equal size. out_kind: `model.F16` or `model.F32`, of c and out. block, fraction, floor, out_fraction: L, F, e0 and
    the result's fraction bits (`table.py`)."""
    mma_tiles(out, a, b, c, 1, groups, kind_a, kind_b, block, fraction, floor, out_kind, out_fraction)
