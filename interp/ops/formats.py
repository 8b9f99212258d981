"""Pieces of floating-point meaning that several chapters share, written against the kit."""

from __future__ import annotations

from typing import Any

from interp.kit import CANONICAL_NAN, Kit
from ptx.types import width

INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F80_0000, "f64": 0x7FF0_0000_0000_0000}


def flush32(k: Kit) -> Any:
    """f32 word with a subnormal replaced by the zero of its sign (`.ftz`)."""
    and_, eq, select = k.and_(32), k.eq(32), k.select(32)
    exponent, sign, zero = k.const(32, 0x7F80_0000), k.const(32, 0x8000_0000), k.const(32, 0)
    return lambda a: select(eq(and_(a, exponent), zero), and_(a, sign), a)


def widen16(k: Kit, type: str) -> Any:
    """f16 or bf16 word as an f32 word, exactly; a NaN stays a NaN (payload kept for bf16)."""
    up, shl = k.zext(16, 32), k.shl(32)
    if type == "bf16":
        sixteen = k.const(32, 16)
        return lambda a: shl(up(a), sixteen)
    and_, or_, add, sub, eq, select = k.and_(32), k.or_(32), k.add(32), k.fsub(32), k.eq(32), k.select(32)
    c = {v: k.const(32, v) for v in (0x8000, 0x7FFF, 0x0F80_0000, 0x3800_0000, 0x3880_0000, 0x7F80_0000, 13, 16)}

    def widen(a: Any) -> Any:
        w = up(a)
        sign = shl(and_(w, c[0x8000]), c[16])
        body = shl(and_(w, c[0x7FFF]), c[13])  # exponent and fraction at their f32 places
        exponent = and_(body, c[0x0F80_0000])
        normal = add(body, c[0x3800_0000])  # rebias by 112
        special = or_(body, c[0x7F80_0000])
        # subnormal: fraction * 2^-24, as (2^-14 + fraction) - 2^-14
        small = sub(add(body, c[0x3880_0000]), c[0x3880_0000])
        top = eq(exponent, c[0x0F80_0000])
        low = eq(exponent, k.const(32, 0))
        return or_(sign, select(top, special, select(low, small, normal)))

    return widen


def canonical(k: Kit, n: int) -> Any:
    """Word with any NaN replaced by the canonical one."""
    isnan, select, nan = k.isnan(n), k.select(n), k.const(n, CANONICAL_NAN[n])
    return lambda a: select(isnan(a), nan, a)


def flush16(k: Kit) -> Any:
    """f16 word with a subnormal replaced by the zero of its sign (`.ftz`)."""
    and_, eq, select = k.and_(16), k.eq(16), k.select(16)
    exponent, sign, zero = k.const(16, 0x7C00), k.const(16, 0x8000), k.const(16, 0)
    return lambda a: select(eq(and_(a, exponent), zero), and_(a, sign), a)


def nan_test(k: Kit, type: str) -> Any:
    """Whether a word of a float type is a NaN, by its bits."""
    n = width(type)
    and_, lt = k.and_(n), k.lt_u(n)
    rest, inf = k.const(n, (1 << (n - 1)) - 1), k.const(n, INFINITY[type])
    return lambda a: lt(inf, and_(a, rest))


def canonical_float(k: Kit, type: str) -> Any:
    """Word of a float type with any NaN replaced by the canonical one."""
    n = width(type)
    isnan, select, nan = nan_test(k, type), k.select(n), k.const(n, CANONICAL_NAN[n])
    return lambda a: select(isnan(a), nan, a)


def relu(k: Kit, n: int) -> Any:
    """Words with the sign bit set to +0; a NaN is canonical by then, and has none."""
    lt, select, zero = k.lt_s(n), k.select(n), k.const(n, 0)
    return lambda a: select(lt(a, zero), zero, a)


def each_half(k: Kit, op: Any) -> Any:
    """`op` on the lower and on the upper 16 bits of 32-bit words."""
    low, up, shr, shl, or_, sixteen = (
        k.trunc(32, 16),
        k.zext(16, 32),
        k.shr_u(32),
        k.shl(32),
        k.or_(32),
        k.const(32, 16),
    )

    def both(*words: Any) -> Any:
        lower = op(*(low(w) for w in words))
        upper = op(*(low(shr(w, sixteen)) for w in words))
        return or_(up(lower), shl(up(upper), sixteen))

    return both


def extreme(k: Kit, type: str, largest: bool, nan: bool, xorsign: bool = False) -> Any:
    """min or max of a float type: -0 < +0; one NaN gives the other operand (with `nan`: NaN), two NaNs give the
    canonical NaN.

    Compared as integers after mapping the sign-magnitude order to two's complement, which also orders the zeros. With
    `xorsign` the magnitudes are compared, and a number gets the exclusive or of the signs."""
    n = width(type)
    isnan, select, lt, xor, shr, and_, or_ = (
        nan_test(k, type),
        k.select(n),
        k.lt_s(n),
        k.xor(n),
        k.shr_s(n),
        k.and_(n),
        k.or_(n),
    )
    canon, last, rest, sign = (
        k.const(n, CANONICAL_NAN[n]),
        k.const(n, n - 1),
        k.const(n, (1 << (n - 1)) - 1),
        k.const(n, 1 << (n - 1)),
    )

    def key(a: Any) -> Any:
        return xor(a, and_(shr(a, last), rest))

    def choose(a: Any, b: Any) -> Any:
        na, nb = isnan(a), isnan(b)
        x, y = (and_(a, rest), and_(b, rest)) if xorsign else (a, b)
        less = lt(x, y) if xorsign else lt(key(a), key(b))
        out = select(less, y, x) if largest else select(less, x, y)
        with_a, with_b, with_both = (canon, canon, canon) if nan else (y, x, canon)
        out = select(na, select(nb, with_both, with_a), select(nb, with_b, out))
        return select(isnan(out), canon, or_(out, and_(xor(a, b), sign))) if xorsign else out

    return choose


def class_test(k: Kit, type: str, name: str) -> Any:
    """The function that `testp` computes: whether a word is of the named class. A zero is normal (H200)."""
    n = width(type)
    and_, lt, le, eq, rest = k.and_(n), k.lt_u(n), k.le_u(n), k.eq(n), k.const(n, (1 << (n - 1)) - 1)
    inf, both, either, zero = k.const(n, INFINITY[type]), k.and_(1), k.or_(1), k.const(n, 0)
    small = k.const(n, INFINITY[type] & -INFINITY[type])  # the lowest exponent bit: the smallest normal number
    tests = {
        "finite": lambda m: lt(m, inf),
        "infinite": lambda m: eq(m, inf),
        "number": lambda m: le(m, inf),
        "notanumber": lambda m: lt(inf, m),
        "normal": lambda m: either(eq(m, zero), both(le(small, m), lt(m, inf))),
        "subnormal": lambda m: both(lt(zero, m), lt(m, small)),
    }
    return lambda a: tests[name](and_(a, rest))
