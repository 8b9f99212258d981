"""Raw machine access for the native runtime: typed loads and stores at integer addresses, and bit casts.

Purpose: the engine passes operands as addresses, and values travel as unsigned words. This file is the only place
where an address becomes a pointer and where a word is looked at as a float.

Guarantees: loads and stores assume no alignment; nothing is checked here (bounds are the memory layer's business); the
float multiply, add and fused multiply-add are single IEEE operations, rounded to nearest-even, never contracted, and
return the canonical NaN of NVIDIA's f32 units (0x7FFFFFFF) where they return f32 words.

Limits: float operations need the host's flush-to-zero and denormals-are-zero modes off; the engine clears them round
native code. The functions marked "dual" also run as plain Python, so that code built on them alone can be run and
tested uncompiled."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload, register_jitable

F = TypeVar("F", bound=Callable[..., Any])


def native(function: F) -> F:
    """Compile a runtime function: no GIL, no division checks, no disk cache (the engine caches the linked library).

    numba would compile a function anew for each combination of literal arguments; here literals count as their types.
    """
    dispatcher = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    lookup = dispatcher.get_call_template

    def general(args: Any, kws: Any) -> Any:
        return lookup(tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = general
    return dispatcher  # type: ignore[no-any-return]


def native_inline(function: F) -> F:
    """A helper of native functions: always inlined there, so that constant arguments fold; called from Python it runs
    as Python."""
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    return register_jitable(forceinline=True, **options)(function)  # type: ignore[no-any-return]


def _loader(llvm: ir.Type, result: types.Type, doc: str) -> Callable[[int], Any]:
    @intrinsic
    def load(typingctx: Any, address: types.Type) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            return builder.load(builder.inttoptr(args[0], llvm.as_pointer()), align=1)

        return result(address), codegen

    load.__doc__ = doc
    return load  # type: ignore[no-any-return]


def _storer(llvm: ir.Type, value: types.Type, doc: str) -> Callable[[int, Any], None]:
    @intrinsic
    def store(typingctx: Any, address: types.Type, word: types.Type) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            builder.store(args[1], builder.inttoptr(args[0], llvm.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(address, value), codegen

    store.__doc__ = doc
    return store  # type: ignore[no-any-return]


_Integer = Callable[[Any], int]
i32: _Integer = cast(Any, np.int32)
i64: _Integer = cast(Any, np.int64)
u8: _Integer = cast(Any, np.uint8)
u16: _Integer = cast(Any, np.uint16)
u32: _Integer = cast(Any, np.uint32)
u64: _Integer = cast(Any, np.uint64)
"""A number as a word of this width: in compiled code a conversion. numpy's types by short names, of which the type
checker knows only that they make integers, as it knows of every word here."""

_I8, _I16, _I32, _I64 = (ir.IntType(n) for n in (8, 16, 32, 64))

load_u8: _Integer = _loader(_I8, types.uint8, "The byte at an address.")
load_u16: _Integer = _loader(_I16, types.uint16, "The 16-bit word at an address, any alignment.")
load_u32: _Integer = _loader(_I32, types.uint32, "The 32-bit word at an address, any alignment.")
load_u64: _Integer = _loader(_I64, types.uint64, "The 64-bit word at an address, any alignment.")
load_i64: _Integer = _loader(_I64, types.int64, "The 64-bit word at an address as a signed number, any alignment.")
load_f32 = _loader(ir.FloatType(), types.float32, "The f32 at an address, any alignment.")
load_f64 = _loader(ir.DoubleType(), types.float64, "The f64 at an address, any alignment.")
store_u8 = _storer(_I8, types.uint8, "Store the low 8 bits of a word.")
store_u16 = _storer(_I16, types.uint16, "Store the low 16 bits of a word.")
store_u32 = _storer(_I32, types.uint32, "Store the low 32 bits of a word.")
store_u64 = _storer(_I64, types.uint64, "Store a 64-bit word.")
store_i64 = _storer(_I64, types.int64, "Store a signed 64-bit number.")
store_f32 = _storer(ir.FloatType(), types.float32, "Store an f32.")
store_f64 = _storer(ir.DoubleType(), types.float64, "Store an f64.")


def _caster(llvm: ir.Type, source: types.Type, result: types.Type) -> Callable[[Any], Any]:
    @intrinsic
    def cast(typingctx: Any, value: types.Type) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            return builder.bitcast(args[0], llvm)

        return result(source), codegen

    return cast  # type: ignore[no-any-return]


_f32_of_word = _caster(ir.FloatType(), types.uint32, types.float32)
_word_of_f32 = _caster(_I32, types.float32, types.uint32)
_f64_of_word = _caster(ir.DoubleType(), types.uint64, types.float64)
_word_of_f64 = _caster(_I64, types.float64, types.uint64)


def f32_from_bits(word: Any) -> Any:
    """The f32 whose bits are the low 32 bits of an integer (dual)."""
    return np.uint32(int(word) & 0xFFFFFFFF).view(np.float32)


def bits_from_f32(value: Any) -> int:
    """The bits of an f32, as uint32 (dual)."""
    return u32(np.float32(value).view(np.uint32))


def f64_from_bits(word: Any) -> Any:
    """The f64 whose bits are an integer's low 64 bits (dual)."""
    return np.uint64(int(word) & 0xFFFFFFFFFFFFFFFF).view(np.float64)


def bits_from_f64(value: Any) -> int:
    """The bits of an f64, as uint64 (dual)."""
    return u64(np.float64(value).view(np.uint64))


@overload(f32_from_bits, strict=False)
def _f32_from_bits(word: Any) -> Any:
    return lambda word: _f32_of_word(np.uint32(word))


@overload(bits_from_f32, strict=False)
def _bits_from_f32(value: Any) -> Any:
    return lambda value: _word_of_f32(value)


@overload(f64_from_bits, strict=False)
def _f64_from_bits(word: Any) -> Any:
    return lambda word: _f64_of_word(np.uint64(word))


@overload(bits_from_f64, strict=False)
def _bits_from_f64(value: Any) -> Any:
    return lambda value: _word_of_f64(value)


def bit_length(value: Any) -> Any:
    """Number of significant bits of 0 <= value < 2**52, as int64; 0 for 0 (dual).

    Compiled, it is the exponent field of the exact f64 conversion, because that vectorises where a count of leading
    zeros does not."""
    return np.int64(int(value).bit_length())


@overload(bit_length, strict=False)
def _bit_length(value: Any) -> Any:
    def through_f64(value: Any) -> Any:
        exact = _f64_of_word(np.uint64(value) | np.uint64(0x4330000000000000)) - 4503599627370496.0
        field = np.int64(_word_of_f64(exact) >> np.uint64(52))
        return field - 1022 if field > 0 else np.int64(0)

    return through_f64


def leading_bit(value: Any) -> Any:
    """Position of the highest set bit of a 64-bit word, as int64; -1 for 0 (dual)."""
    return np.int64(int(value).bit_length() - 1)


@intrinsic
def _count_leading_zeros(typingctx: Any, value: types.Type) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@overload(leading_bit, strict=False)
def _leading_bit(value: Any) -> Any:
    return lambda value: 63 - _count_leading_zeros(np.uint64(value))


def _float_of(word: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", int(word) & 0xFFFFFFFF))[0])


def f32_multiply(a: Any, b: Any) -> int:
    """IEEE f32 product of two words, nearest-even; any NaN result is 0x7FFFFFFF (dual)."""
    with np.errstate(all="ignore"):
        product = np.float32(_float_of(a)) * np.float32(_float_of(b))
    return u32(0x7FFFFFFF if np.isnan(product) else product.view(np.uint32))


@overload(f32_multiply, strict=False)
def _f32_multiply(a: Any, b: Any) -> Any:
    def multiply(a: Any, b: Any) -> Any:
        product = _f32_of_word(np.uint32(a)) * _f32_of_word(np.uint32(b))
        return _word_of_f32(product) if product == product else np.uint32(0x7FFFFFFF)

    return multiply


def f32_add(a: Any, b: Any) -> int:
    """IEEE f32 sum of two words, nearest-even; any NaN result is 0x7FFFFFFF (dual)."""
    with np.errstate(all="ignore"):
        total = np.float32(_float_of(a)) + np.float32(_float_of(b))
    return u32(0x7FFFFFFF if np.isnan(total) else total.view(np.uint32))


@overload(f32_add, strict=False)
def _f32_add(a: Any, b: Any) -> Any:
    def add(a: Any, b: Any) -> Any:
        total = _f32_of_word(np.uint32(a)) + _f32_of_word(np.uint32(b))
        return _word_of_f32(total) if total == total else np.uint32(0x7FFFFFFF)

    return add


@intrinsic
def fma_f64(typingctx: Any, a: types.Type, b: types.Type, c: types.Type) -> Any:
    """a*b + c on f64 with one rounding to nearest-even (LLVM fma: the instruction, or libm's exact routine without
    one)."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@intrinsic
def stack_scratch(typingctx: Any, size: types.Type) -> Any:
    """Address of `size` (a literal) bytes of 64-byte aligned stack memory that live until the function returns."""
    if not isinstance(size, types.IntegerLiteral):
        return None
    count = size.literal_value

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        with builder.goto_entry_block():  # not cgutils.alloca_once, which fills with zeros on each call
            room = builder.alloca(ir.ArrayType(_I8, count))
            room.align = 64
        return builder.ptrtoint(room, _I64)

    return types.int64(size), codegen
