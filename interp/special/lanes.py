"""The f32 special functions for a whole warp: vector code, eight lanes at a time, equal to `unit.py` and `approx.py`
bit for bit.

Purpose: `ex2` is most of the time of a softmax; the scalar functions cost 15 to 25 ns a lane because their selections
become branches that mispredict. Here every selection is a vector select. A table row (C0, C1, C2, constant) is one
16-byte load per lane.

`WARP` maps PTX names to functions for compiled code: (results, operands), the addresses of 32 words each, which may be
equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from interp.runtime.raw import native
from interp.runtime.vector import I32, I64, INTS, LONGS, QUAD, Lanes, Value, define, loop
from interp.special.coefficients import RAW, SCALE, SQRT_EVEN, SQRT_ODD, TANH_FIRST, TANH_INDEX_BITS

NAN, INF, SIGN = 0x7FFFFFFF, 0x7F800000, 0x80000000


def _rows(name: str) -> tuple[list[tuple[int, int, int, int]], int]:
    """Rows (C0, C1, C2 * factor, constant) of a function, and the shift of C0."""
    if name == "sqrt":  # one shift for both halves: the even rows' C0 is doubled instead
        even, odd = RAW["sqrt"][:64], RAW["sqrt"][64:]
        rows = [(2 * c0, c1, c2 * SQRT_EVEN[1], SQRT_EVEN[2]) for c0, c1, c2 in even.tolist()]
        return rows + [(c0, c1, c2 * SQRT_ODD[1], SQRT_ODD[2]) for c0, c1, c2 in odd.tolist()], SQRT_ODD[0]
    shift, factor, constant = SCALE[name]
    return [(c0, c1, c2 * factor, constant) for c0, c1, c2 in RAW[name].tolist()], shift


def _binades() -> list[tuple[int, int, int, int]]:
    """tanh by binade: shift to the segment index, shift to r, first segment."""
    return [(23 - k, 6 - k, first, 0) for k, first in zip(TANH_INDEX_BITS.tolist(), TANH_FIRST.tolist(), strict=True)]


def _table(module: ir.Module, name: str, rows: list[tuple[int, int, int, int]]) -> ir.GlobalVariable:
    symbol = f"gpuemu.special.table.{name}"
    known = module.globals.get(symbol)
    if known is not None:
        return known
    flat = np.array(rows, np.int64).astype(np.uint32).ravel().tolist()
    kind = ir.ArrayType(I32, len(flat))
    table = ir.GlobalVariable(module, kind, symbol)
    table.linkage = "internal"
    table.global_constant = True
    table.initializer = ir.Constant(kind, flat)
    table.align = 16
    return table


def look_up(v: Lanes, table: ir.GlobalVariable, index: Value) -> list[Value]:
    """The four columns of the rows that `index` selects."""
    b = v.b
    base = b.ptrtoint(table, I64)
    rows = []
    for lane in range(8):
        i = b.zext(b.extract_element(index, ir.Constant(I32, lane)), I64)
        rows.append(v.load(b.add(base, b.shl(i, ir.Constant(I64, 4))), QUAD))
    # rows l and l + 4 side by side, then a 4 x 4 transposition in each half
    x = [v.shuffle(rows[i], rows[i + 4], list(range(8))) for i in range(4)]
    low = [v.shuffle(x[i], x[i + 1], [0, 8, 1, 9, 4, 12, 5, 13]) for i in (0, 2)]
    high = [v.shuffle(x[i], x[i + 1], [2, 10, 3, 11, 6, 14, 7, 15]) for i in (0, 2)]
    orders = ([0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15])
    return [v.shuffle(x0, x1, lanes) for x0, x1 in (low, high) for lanes in orders]


def square(v: Lanes, r: Value) -> Value:
    """`unit.square`."""
    h, low = v.shr(r, 9), v.bit_and(r, 0x1FF)
    total = v.shr(v.mul(h, h), 1)
    for a in range(1, 8):
        bit = v.shr_signed(v.shl(h, 31 - a), 31)
        total = v.add(total, v.bit_and(v.shr(low, 9 - a), bit))
    return total


def polynomial(v: Lanes, name: str, segment: Value, r: Value, squared: Value | None = None) -> Value:
    """64-bit C0 * 2**shift + C1 * r + C2 * S + constant."""
    b = v.b
    rows, shift = _rows(name)
    c0, c1, c2, constant = look_up(v, _table(b.module, name, rows), segment)
    s = square(v, r if squared is None else squared)
    long = [b.sext(x, LONGS) for x in (c0, c1, r, c2, s)]
    total = b.add(b.shl(long[0], v.long_const(shift)), b.mul(long[1], long[2]))
    return b.add(total, b.add(b.mul(long[3], long[4]), b.zext(constant, LONGS)))


def cut(v: Lanes, polynomial: Value, drop: int) -> Value:
    """The 24-bit significand (2**24 allowed) above `drop` bits."""
    return v.b.trunc(v.b.lshr(polynomial, v.long_const(drop)), INTS)


def pack(v: Lanes, exponent: Value, significand: Value) -> Value:
    """f32 magnitude from a biased exponent (at most 254) and a significand in [2**23, 2**24]; underflow gives 0."""
    word = v.add(v.shl(v.sub(exponent, 1), 23), significand)
    return v.select(v.greater(1, v.add(exponent, v.shr(significand, 24))), 0, word)


def normalised(v: Lanes, p: Value, point: int) -> Value:
    """f32 magnitude of p * 2**-point, bits beyond 24 dropped; 0 <= p < 2**52. The f64 of p is exact, so its fraction
    is the result's."""
    b = v.b
    magic = v.long_const(0x4330000000000000)
    bits = v.long_bits(b.fsub(v.doubles(b.or_(p, magic)), v.doubles(magic)))
    word = v.add(b.trunc(b.lshr(bits, v.long_const(29)), INTS), (127 - 1023 - point) << 23)
    return v.select(b.icmp_signed("==", p, v.long_const(0)), 0, word)


def split(v: Lanes, x: Value) -> tuple[Value, Value, Value, Value]:
    """(sign bit in place, exponent field, fraction, NaN mask)."""
    e, f = v.bit_and(v.shr(x, 23), 255), v.bit_and(x, 0x7FFFFF)
    return v.bit_and(x, SIGN), e, f, v.greater(v.bit_and(x, NAN), INF)


def fixed(v: Lanes, e: Value, f: Value, origin: int, limit: int) -> Value:
    """The significand shifted by e - origin, cut at the point; to the left by at most `limit`; zeros and subnormals
    give 0."""
    m = v.select(v.equal(e, 0), 0, v.bit_or(f, 0x800000))
    n = v.sub(e, origin)
    left = v.minimum(v.maximum(n, 0), limit)
    right = v.minimum(v.maximum(v.sub(0, n), 0), 31)
    return v.shr(v.shl(m, left), right)


def rcp(v: Lanes, x: Value) -> Value:
    s, e, f, nan = split(v, x)
    r = v.bit_and(f, 0xFFFF)
    w = pack(v, v.sub(253, e), cut(v, polynomial(v, "rcp", v.shr(f, 16), r, v.shl(r, 1)), 15))
    w = v.select(v.equal(e, 0), INF, v.select(v.equal(e, 255), 0, w))
    return v.select(nan, NAN, v.bit_or(w, s))


def rsq(v: Lanes, x: Value) -> Value:
    s, e, f, nan = split(v, x)
    u = v.sub(e, 127)
    half = v.shr_signed(u, 1)
    m = v.bit_or(f, v.shl(v.bit_and(u, 1), 23))
    p = polynomial(v, "rsqrt", v.shr(m, 17), v.bit_and(m, 0x1FFFF))
    w = pack(v, v.sub(126, half), cut(v, p, 16))
    w = v.select(v.equal(m, 0), v.shl(v.sub(127, half), 23), w)
    w = v.select(v.equal(e, 255), 0, w)
    w = v.select(v.equal(s, 0), w, NAN)
    w = v.select(v.equal(e, 0), v.bit_or(s, INF), w)
    return v.select(nan, NAN, w)


def sqrt(v: Lanes, x: Value) -> Value:
    s, e, f, nan = split(v, x)
    u = v.sub(e, 127)
    odd = v.bit_and(u, 1)
    p = polynomial(v, "sqrt", v.bit_or(v.shl(odd, 6), v.shr(f, 17)), v.bit_and(f, 0x1FFFF))
    drop = v.b.zext(v.sub(17, odd), LONGS)
    w = pack(v, v.add(v.shr_signed(u, 1), 127), v.b.trunc(v.b.lshr(p, drop), INTS))
    w = v.select(v.equal(e, 255), INF, w)
    w = v.select(v.equal(s, 0), w, NAN)
    w = v.select(v.equal(e, 0), s, w)
    return v.select(nan, NAN, w)


def ex2(v: Lanes, x: Value) -> Value:
    s, e, f, nan = split(v, x)
    n = fixed(v, e, f, 127, 7)
    whole, g = v.shr(n, 23), v.bit_and(n, 0x7FFFFF)
    negative = v.greater(0, x)
    inexact = v.greater(g, 0)
    below = v.sub(v.select(inexact, -1, 0), whole)
    whole = v.select(negative, below, whole)
    g = v.bit_xor(g, v.select(v.b.and_(negative, inexact), 0x7FFFFF, 0))
    w = pack(v, v.add(whole, 127), cut(v, polynomial(v, "ex2", v.shr(g, 17), v.bit_and(g, 0x1FFFF)), 15))
    w = v.select(v.greater(e, 133), v.select(negative, 0, INF), w)
    return v.select(nan, NAN, w)


def lg2(v: Lanes, x: Value) -> Value:
    b = v.b
    s, e, f, nan = split(v, x)
    p = b.lshr(polynomial(v, "lg2", v.shr(f, 17), v.bit_and(f, 0x1FFFF)), v.long_const(2))
    one = b.and_(v.equal(e, 127), v.equal(f, 0))
    p = b.select(one, v.long_const(0), p)
    p = b.add(p, b.shl(b.sext(v.sub(e, 127), LONGS), v.long_const(36)))
    sign = b.ashr(p, v.long_const(63))
    w = v.bit_or(normalised(v, b.xor(p, sign), 36), v.bit_and(b.trunc(sign, INTS), SIGN))
    w = v.select(v.equal(e, 255), INF, w)
    w = v.select(v.equal(s, 0), w, NAN)
    w = v.select(v.equal(e, 0), SIGN | INF, w)
    return v.select(nan, NAN, w)


def sine(v: Lanes, x: Value, quarter: int) -> Value:
    s, e, f, _nan = split(v, x)
    n = v.bit_and(fixed(v, e, f, 125, 25), 0x1FFFFFF)
    q, g = v.add(v.shr(n, 23), quarter), v.bit_and(n, 0x7FFFFF)
    g = v.bit_xor(g, v.bit_and(v.sub(0, v.bit_and(q, 1)), 0x7FFFFF))
    s = v.bit_xor(v.const(0) if quarter else s, v.shl(v.shr(q, 1), 31))
    w = normalised(v, polynomial(v, "sin", v.shr(g, 17), v.bit_and(g, 0x1FFFF)), 37)
    return v.select(v.equal(e, 255), NAN, v.bit_or(w, s))


def tanh(v: Lanes, x: Value) -> Value:
    s, e, f, nan = split(v, x)
    b = v.minimum(v.maximum(v.sub(e, 119), 0), 10)
    to_index, to_rest, first, _ = look_up(v, _table(v.b.module, "binades", _binades()), b)
    p = polynomial(v, "tanh", v.add(first, v.shr(f, to_index)), v.bit_and(v.shr(f, to_rest), 0x1FFFF))
    w = v.select(v.greater(119, e), v.bit_and(x, NAN), normalised(v, p, 40))
    w = v.select(v.greater(e, 129), 127 << 23, w)
    return v.select(nan, NAN, v.bit_or(w, s))


def multiply(v: Lanes, x: Value, y: Value) -> Value:
    """f32 product, NaN canonical."""
    product = v.b.fmul(v.floats(x), v.floats(y))
    return v.select(v.b.fcmp_unordered("uno", product, product), NAN, v.bits(product))


def _small(v: Lanes, x: Value) -> Value:
    return v.equal(v.bit_and(x, INF), 0)


def _scaled(function: Callable[[Lanes, Value], Value], after: int) -> Callable[[Lanes, Value], Value]:
    """Subnormal arguments times 2**24, the result times `after`."""

    def approx(v: Lanes, x: Value) -> Value:
        small = _small(v, x)
        y = function(v, multiply(v, x, v.select(small, 0x4B800000, 0x3F800000)))
        return multiply(v, y, v.select(small, after, 0x3F800000))

    return approx


def rcp_approx(v: Lanes, x: Value) -> Value:
    a = v.bit_and(x, NAN)
    huge = v.b.and_(v.greater(a, 0x7E800000), v.greater(INF + 1, a))
    scale = v.select(_small(v, x), 0x4B800000, v.select(huge, 0x3E800000, 0x3F800000))
    return multiply(v, scale, rcp(v, multiply(v, scale, x)))


def ex2_approx(v: Lanes, x: Value) -> Value:
    # x < -126 as an unsigned range; both limits have the sign bit, so the order of the words is the signed one
    low = v.b.and_(v.greater(x, 0xC2FC0000 - (1 << 32)), v.greater(0xFF800001 - (1 << 32), x))
    y = ex2(v, multiply(v, x, v.select(low, 0x3F000000, 0x3F800000)))
    return multiply(v, y, v.select(low, y, 0x3F800000))


def lg2_approx(v: Lanes, x: Value) -> Value:
    small = _small(v, x)
    y = lg2(v, multiply(v, x, v.select(small, 0x4B800000, 0x3F800000)))
    total = v.b.fadd(v.floats(y), v.floats(v.const(0xC1C00000)))
    total_bits = v.select(v.b.fcmp_unordered("uno", total, total), NAN, v.bits(total))
    return v.select(small, total_bits, y)


def turns(v: Lanes, x: Value) -> Value:
    """`approx._turns`: x / (2 pi) toward zero."""
    b = v.b
    s, e, f, nan = split(v, x)
    p = b.mul(b.zext(v.bit_or(f, 0x800000), LONGS), v.long_const(0xA2F983))
    long = b.lshr(p, v.long_const(47))
    exponent = v.add(v.sub(e, 3), b.trunc(long, INTS))
    fraction = v.bit_and(b.trunc(b.lshr(p, b.add(long, v.long_const(23))), INTS), 0x7FFFFF)
    w = v.bit_or(v.shl(exponent, 23), fraction)
    w = v.select(b.or_(v.equal(e, 0), v.greater(1, exponent)), 0, w)
    w = v.select(v.equal(e, 255), v.select(nan, NAN, INF), w)
    return v.bit_or(w, s)


EMITTERS: dict[str, Callable[[Lanes, Value], Value]] = {
    "rcp.approx.ftz.f32": rcp,
    "rcp.approx.f32": rcp_approx,
    "rsqrt.approx.ftz.f32": rsq,
    "rsqrt.approx.f32": _scaled(rsq, 0x45800000),
    "sqrt.approx.ftz.f32": sqrt,
    "sqrt.approx.f32": _scaled(sqrt, 0x39800000),
    "ex2.approx.ftz.f32": ex2,
    "ex2.approx.f32": ex2_approx,
    "lg2.approx.ftz.f32": lg2,
    "lg2.approx.f32": lg2_approx,
    "sin.approx.f32": lambda v, x: sine(v, turns(v, x), 0),
    "cos.approx.f32": lambda v, x: sine(v, turns(v, x), 1),
    "tanh.approx.f32": tanh,
}


def _warp_function(name: str) -> Callable[[int, int], None]:
    emit = EMITTERS[name]

    def body(module: ir.Module) -> ir.Function:
        function, new = define(module, f"gpuemu.special.{name}", I64, [I64] * 2)
        if new:
            v = Lanes(ir.IRBuilder(function.append_basic_block()))
            results, operands = function.args

            def piece(offset: Value, nothing: list[Value]) -> list[Value]:
                x = v.load(v.b.add(operands, offset), INTS)
                v.store(v.b.add(results, offset), emit(v, x))
                return nothing

            loop(v.b, ir.Constant(I64, 0), ir.Constant(I64, 128), 32, [], piece)
            v.b.ret(ir.Constant(I64, 0))
        return function

    @intrinsic
    def call(typingctx: Any, results: Any, operands: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            return builder.call(body(builder.module), args)

        return types.int64(types.int64, types.int64), codegen

    def warp(results: int, operands: int) -> None:
        call(results, operands)

    warp.__doc__ = f"{name} of 32 words at `operands`, to `results`."
    return native(warp)


WARP: dict[str, Callable[[int, int], None]] = {name: _warp_function(name) for name in EMITTERS}
WARP["sin.approx.ftz.f32"] = WARP["sin.approx.f32"]
WARP["cos.approx.ftz.f32"] = WARP["cos.approx.f32"]
"""PTX instruction -> function of (results, operands), addresses of 32 words."""
