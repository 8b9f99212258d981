"""Typed word operations for generated handlers: what the lines that `interp.kits.python` writes may call.

Each is a numba intrinsic with one exact signature over unsigned words, so nothing promotes: in plain numba code
uint32 + uint32 gives uint64, int64 overflow is undefined, and a shift by the width gives anything. Names are the
operation, its width and, where the width changes, the new one: `add32`, `sext16_32`, `lt_s64`. A predicate is a numba
boolean and has width 1.

Guarantees, those of `interp.kit`: no operation traps (divisors are made safe first), shifts clamp, floats are single
IEEE operations that give the canonical NaN. A fused multiply-add of f32 goes through double and a sum rounded to odd,
so it is right on hosts without the instruction; that of f64 is `interp.runtime.raw.fma_f64`.

The second half is what a handler's frame consists of: rows (32 words of one register), room on the stack, results
kept in the lanes of a mask, calls of runtime functions by address.

Why intrinsics and not Python operators: a line costs numba about half the time (20 operations: 0.31 s against 0.70 s
on a busy machine), and what it compiles to is what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from interp.kit import CANONICAL_NAN
from interp.runtime.raw import stack_scratch

Builder = Any  # ir.IRBuilder, which is untyped
Value = Any  # ir.Value

LANES = 32
WIDTHS = (8, 16, 32, 64)
TYPE = {1: types.boolean, 8: types.uint8, 16: types.uint16, 32: types.uint32, 64: types.uint64}
NUMPY: dict[int, Callable[[int], Any]] = {1: bool, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
BITS = {n: ir.IntType(n) for n in (1, *WIDTHS, 128)}
FLOAT = {32: ir.FloatType(), 64: ir.DoubleType()}
_I64 = BITS[64]

WORDS: dict[str, Any] = {}
"""Every operation that generated code may name."""


_ARITY: dict[int, Callable[[Any], Any]] = {
    0: lambda f: lambda c: f(c),
    1: lambda f: lambda c, a: f(c, a),
    2: lambda f: lambda c, a, b: f(c, a, b),
    3: lambda f: lambda c, a, b, d: f(c, a, b, d),
    6: lambda f: lambda c, p, a0, a1, a2, a3, a4: f(c, p, a0, a1, a2, a3, a4),
    7: lambda f: lambda c, p, a0, a1, a2, a3, a4, a5: f(c, p, a0, a1, a2, a3, a4, a5),
    11: lambda f: lambda c, p, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9: f(c, p, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9),
}
"""numba reads the number of arguments from the signature, which `*args` would hide."""


def _word(name: str, result: int, operands: tuple[int, ...], emit: Callable[..., Value]) -> None:
    """Declare an operation: `emit(builder, *values)` gives its LLVM value."""
    signature = TYPE[result](*(TYPE[n] for n in operands))

    def typed(typingctx: Any, *args: Any) -> Any:
        def codegen(context: Any, builder: Builder, _: Any, values: Any) -> Value:
            return emit(builder, *values)

        return signature, codegen

    WORDS[name] = intrinsic(_ARITY[len(operands)](typed))


def _const(n: int, value: int) -> ir.Constant:
    return ir.Constant(BITS[n], value & ((1 << n) - 1))


# ---------------------------------------------------------------- integers
def _divide(b: Builder, op: str, n: int, x: Value, y: Value, is_signed: bool) -> Value:
    """Quotient or remainder without traps: the divisor is 1 where it is zero, and for MIN / -1."""
    zero = b.icmp_unsigned("==", y, _const(n, 0))
    bad = zero
    if is_signed:
        least = b.icmp_unsigned("==", x, _const(n, 1 << (n - 1)))
        bad = b.or_(zero, b.and_(least, b.icmp_unsigned("==", y, _const(n, -1))))
    out = getattr(b, op)(x, b.select(bad, _const(n, 1), y))
    return b.select(zero, x if op in ("urem", "srem") else _const(n, -1), out)


def _shift(b: Builder, op: str, n: int, x: Value, y: Value) -> Value:
    inside = b.icmp_unsigned("<", y, _const(n, n))
    if op == "ashr":
        return b.ashr(x, b.select(inside, y, _const(n, n - 1)))
    return b.select(inside, getattr(b, op)(x, b.select(inside, y, _const(n, 0))), _const(n, 0))


def _high_product(b: Builder, n: int, x: Value, y: Value, extend: str) -> Value:
    wide = BITS[2 * n]
    product = b.mul(getattr(b, extend)(x, wide), getattr(b, extend)(y, wide))
    return b.trunc(b.lshr(product, ir.Constant(wide, n)), BITS[n])


def _declare_integers(n: int) -> None:
    two = (n, n)
    for name in ("add", "sub", "mul", "and_", "or_", "xor"):
        _word(f"{name}{n}", n, two, lambda b, x, y, op=name: getattr(b, op)(x, y))
    _word(f"not_{n}", n, (n,), lambda b, x: b.xor(x, _const(n, -1)))
    for name, op in (("shl", "shl"), ("shr_u", "lshr"), ("shr_s", "ashr")):
        _word(f"{name}{n}", n, two, lambda b, x, y, op=op: _shift(b, op, n, x, y))
    for name, op in (("div_u", "udiv"), ("div_s", "sdiv"), ("rem_u", "urem"), ("rem_s", "srem")):
        _word(f"{name}{n}", n, two, lambda b, x, y, op=op: _divide(b, op, n, x, y, op[0] == "s"))
    _word(f"mulhi_u{n}", n, two, lambda b, x, y: _high_product(b, n, x, y, "zext"))
    _word(f"mulhi_s{n}", n, two, lambda b, x, y: _high_product(b, n, x, y, "sext"))
    _word(f"popc{n}", n, (n,), lambda b, x: b.ctpop(x))
    _word(f"clz{n}", n, (n,), lambda b, x: b.ctlz(x, _const(1, 0)))
    _word(f"brev{n}", n, (n,), lambda b, x: b.bitreverse(x))
    for name, op in (("eq", "=="), ("ne", "!="), ("lt_u", "<"), ("le_u", "<=")):
        _word(f"{name}{n}", 1, two, lambda b, x, y, op=op: b.icmp_unsigned(op, x, y))
    for name, op in (("lt_s", "<"), ("le_s", "<=")):
        _word(f"{name}{n}", 1, two, lambda b, x, y, op=op: b.icmp_signed(op, x, y))


def _declare_widths(n: int, m: int) -> None:
    _word(f"zext{n}_{m}", m, (n,), lambda b, x: b.zext(x, BITS[m]))
    _word(f"sext{n}_{m}", m, (n,), lambda b, x: b.sext(x, BITS[m]))
    _word(f"trunc{m}_{n}", n, (m,), lambda b, x: b.trunc(x, BITS[n]))


# ---------------------------------------------------------------- floats
def _raw(b: Builder, n: int, word: Value) -> Value:
    return b.bitcast(word, FLOAT[n])


def _bits(b: Builder, n: int, value: Value) -> Value:
    """The word of a float result, its NaN canonical."""
    nan = b.fcmp_unordered("uno", value, value)
    return b.select(nan, _const(n, CANONICAL_NAN[n]), b.bitcast(value, BITS[n]))


def _fma32(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """The product is exact in double; the sum is rounded to odd, so that only the last rounding shows (Boldo,
    Melquiond 2008)."""
    double = FLOAT[64]
    fx, fy, fz = (b.fpext(_raw(b, 32, v), double) for v in (x, y, z))
    product = b.fmul(fx, fy)
    total = b.fadd(product, fz)
    part = b.fsub(total, product)
    error = b.fadd(b.fsub(product, b.fsub(total, part)), b.fsub(fz, part))
    word = b.bitcast(total, _I64)
    zero = ir.Constant(double, 0.0)
    even = b.icmp_unsigned("==", b.and_(word, _const(64, 1)), _const(64, 0))
    inexact = b.fcmp_ordered("!=", error, zero)
    apart = b.xor(b.fcmp_ordered("<", error, zero), b.icmp_signed("<", word, _const(64, 0)))
    odd = b.add(word, b.select(apart, _const(64, -1), _const(64, 1)))
    word = b.select(b.and_(inexact, even), odd, word)
    return _bits(b, 32, b.fptrunc(b.bitcast(word, double), FLOAT[32]))


def _declare_floats(n: int) -> None:
    two = (n, n)
    for name in ("fadd", "fsub", "fmul", "fdiv"):
        _word(f"{name}{n}", n, two, lambda b, x, y, op=name: _bits(b, n, getattr(b, op)(_raw(b, n, x), _raw(b, n, y))))
    for name, op in (("feq", "=="), ("flt", "<"), ("fle", "<=")):
        _word(f"{name}{n}", 1, two, lambda b, x, y, op=op: b.fcmp_ordered(op, _raw(b, n, x), _raw(b, n, y)))
    _word(f"isnan{n}", 1, (n,), lambda b, x: b.fcmp_unordered("uno", _raw(b, n, x), _raw(b, n, x)))

    def root(b: Builder, x: Value) -> Value:
        sqrt = b.module.declare_intrinsic("llvm.sqrt", [FLOAT[n]])
        return _bits(b, n, b.call(sqrt, [_raw(b, n, x)]))

    _word(f"fsqrt{n}", n, (n,), root)


# ---------------------------------------------------------------- the frame of a handler
def _typed(name: str, result: Any, operands: tuple[Any, ...], emit: Callable[..., Value | None]) -> None:
    """As `_word`, with numba types; a result of None is void."""
    signature = (types.void if result is None else result)(*operands)

    def typed(typingctx: Any, *args: Any) -> Any:
        def codegen(context: Any, builder: Builder, _: Any, values: Any) -> Any:
            out = emit(builder, *values)
            return context.get_dummy_value() if result is None else out

        return signature, codegen

    WORDS[name] = intrinsic(_ARITY[len(operands)](typed))


def _load_word(b: Builder, address: Value, bits: int = 64) -> Value:
    return b.load(b.inttoptr(address, BITS[bits].as_pointer()), align=bits // 8)


def _row_address(b: Builder, warp: Value, operands: Value, index: Value) -> Value:
    """Operand `index` of an instruction: an offset in the warp frame, or with bit 0 set an absolute address plus
    one."""
    word = _load_word(b, b.add(operands, b.shl(index, _const(64, 3))))
    absolute = b.trunc(word, BITS[1])
    return b.select(absolute, b.sub(word, _const(64, 1)), b.add(word, warp))


def _room(b: Builder, kind: ir.Type) -> Value:
    with b.goto_entry_block():
        space = b.alloca(ir.ArrayType(kind, LANES))
        space.align = 64
    return b.bitcast(space, kind.as_pointer())


def _lanes_of(b: Builder, mask: Value) -> Value:
    return b.bitcast(b.trunc(mask, BITS[32]), ir.VectorType(BITS[1], LANES))


def _keep(b: Builder, n: int, row: Value, source: Value, mask: Value) -> None:
    """row[lane] = source[lane] in the lanes of the mask."""
    vector = ir.VectorType(BITS[n], LANES).as_pointer()
    target, origin = b.inttoptr(row, vector), b.bitcast(source, vector)
    new, old = b.load(origin, align=n // 8), b.load(target, align=n // 8)
    b.store(b.select(_lanes_of(b, mask), new, old), target, align=n // 8)


def _keep_mask(b: Builder, row: Value, new: Value, mask: Value) -> None:
    """A predicate row, a 32-bit lane mask: the bits of the mask change."""
    target = b.inttoptr(row, BITS[32].as_pointer())
    old = b.load(target, align=4)
    b.store(b.xor(old, b.and_(b.xor(old, new), b.trunc(mask, BITS[32]))), target, align=4)


def _mask_of(b: Builder, flags: Value) -> Value:
    """The lane mask of 32 booleans that are stored as bytes."""
    data = b.load(b.bitcast(flags, ir.VectorType(BITS[8], LANES).as_pointer()), align=1)
    return b.bitcast(b.trunc(data, ir.VectorType(BITS[1], LANES)), BITS[32])


def _declare_frame() -> None:
    i64, u32 = types.int64, types.uint32
    _typed("row", i64, (i64, i64, i64), _row_address)
    _typed("function_at", i64, (i64,), lambda b, address: _load_word(b, address))
    _typed("mask_at", u32, (i64,), lambda b, address: _load_word(b, address, 32))
    _typed("put_mask", None, (i64, u32), lambda b, address, m: _store_mask(b, address, m))
    _typed("bit", types.boolean, (u32, i64), lambda b, m, i: b.trunc(b.lshr(m, b.trunc(i, BITS[32])), BITS[1]))
    _typed("flag", types.uint8, (types.boolean,), lambda b, p: b.zext(p, BITS[8]))
    _typed("mask_of", u32, (types.CPointer(types.uint8),), _mask_of)
    _typed("keep1", None, (i64, u32, i64), _keep_mask)
    _typed("lane_of", u32, (i64,), lambda b, i: b.trunc(i, BITS[32]))
    for n in WIDTHS:
        pointer = types.CPointer(TYPE[n])
        _typed(f"at{n}", pointer, (i64,), lambda b, a, n=n: b.inttoptr(a, BITS[n].as_pointer()))
        _typed(f"room{n}", pointer, (), lambda b, n=n: _room(b, BITS[n]))
        _typed(f"keep{n}", None, (i64, pointer, i64), lambda b, row, source, mask, n=n: _keep(b, n, row, source, mask))
        _typed(
            f"scalar{n}",
            TYPE[n],
            (i64,),
            lambda b, a, n=n: b.trunc(_load_word(b, a), BITS[n]) if n < 64 else _load_word(b, a),
        )


def _store_mask(b: Builder, address: Value, mask: Value) -> None:
    b.store(mask, b.inttoptr(address, BITS[32].as_pointer()), align=4)


def call_address(count: int, result: bool) -> Any:
    """An intrinsic that calls the native function at an address with `count` 64-bit words; int64 result or none."""
    kind = ir.FunctionType(_I64 if result else ir.VoidType(), [_I64] * count)
    signature = (types.int64 if result else types.void)(*[types.int64] * (count + 1))

    def typed(typingctx: Any, *args: Any) -> Any:
        def codegen(context: Any, builder: Builder, _: Any, values: Any) -> Any:
            out = builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])
            return out if result else context.get_dummy_value()

        return signature, codegen

    return intrinsic(_ARITY[count + 1](typed))


def _select(n: int) -> None:
    signature = (1, n, n)
    _word(f"select{n}", n, signature, lambda b, p, x, y: b.select(p, x, y))


for _n in WIDTHS:
    _declare_integers(_n)
    _select(_n)
    for _m in WIDTHS:
        if _n < _m:
            _declare_widths(_n, _m)
for _n in (32, 64):
    _declare_floats(_n)
_word("fma32", 32, (32, 32, 32), _fma32)
_word("fma64", 64, (64, 64, 64), lambda b, x, y, z: _bits(b, 64, b.fma(_raw(b, 64, x), _raw(b, 64, y), _raw(b, 64, z))))
for _name in ("and_", "or_", "xor"):
    _word(f"{_name}1", 1, (1, 1), lambda b, x, y, op=_name: getattr(b, op)(x, y))
_word("not_1", 1, (1,), lambda b, x: b.xor(x, _const(1, 1)))
_word("eq1", 1, (1, 1), lambda b, x, y: b.icmp_unsigned("==", x, y))
_word("ne1", 1, (1, 1), lambda b, x, y: b.xor(x, y))
_select(1)
_declare_widths(1, 8)
_declare_widths(1, 16)
_declare_widths(1, 32)
_declare_widths(1, 64)
_declare_frame()
WORDS["call_warp"] = call_address(10, False)
WORDS["call_lane"] = call_address(5, False)
WORDS["stack_scratch"] = stack_scratch
