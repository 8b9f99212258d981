"""Pieces of floating-point meaning that several chapters share, written against the kit."""

from __future__ import annotations

from typing import Any

from interp.kit import CANONICAL_NAN, Kit


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
