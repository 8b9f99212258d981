"""Moves and data permutation (PTX ISA, 'Data Movement and Conversion Instructions': mov, prmt, cvta, isspacep)."""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.memory import CONSTANTS_BASE, VARIABLES_BASE
from interp.ops.table import isa
from interp.runtime.layout import LOCAL_WINDOW, PARAM_WINDOW, RANK_SHIFT, SHARED_WINDOW
from ptx.isa import Cost, vec
from ptx.targets import at
from ptx.types import width

MOVABLE = (".pred", ".b16", ".b32", ".b64", ".u16", ".u32", ".u64", ".s16", ".s32", ".s64", ".f32",
           ".f64")
WINDOW = 1 << 32


@isa.op("mov.type d, a", type=MOVABLE, cost=Cost.MOVE, ref="data-movement-and-conversion-instructions-mov",
        vectors=[vec(".b32", 7, d=7, why="copies")])
def mov(k: Kit, type: str) -> Any:
    """d = a; a may be a special register, or the name of a variable, whose address is meant"""
    return lambda a: a


@isa.op("mov.vec.type {d}, {a}", vec=(".v2", ".v4"), type=MOVABLE[1:],
        constraint=lambda vec, type: "a vector has 128 bits at most" if int(vec[1:]) * width(type) > 128 else None,
        cost=Cost.MOVE,
        types=lambda vec, type: {n: (type, int(vec[1:])) for n in ("d", "a")},
        ref="data-movement-and-conversion-instructions-mov")
def mov_vector(k: Kit, vec: str, type: str) -> Any:
    """d = a, element by element"""
    return lambda a: a


def _parts(type: str, count: int) -> tuple[str, int]:
    return f"b{width(type) // count}", count


@isa.op("mov.type d, {a}", type=(".b16", ".b32", ".b64"), counted=("a",), cost=Cost.MOVE,
        types=lambda type, a_count: {"d": type, "a": _parts(type, a_count)},
        ref="data-movement-and-conversion-instructions-mov")
def mov_pack(k: Kit, type: str, a_count: int) -> Any:
    """d = the parts of a, the first in the lowest bits"""
    n = width(type)
    part = n // a_count
    widen, shl, or_ = k.zext(part, n), k.shl(n), k.or_(n)

    def pack(parts: Any) -> Any:
        out = widen(parts[0])
        for i, p in enumerate(parts[1:], 1):
            out = or_(out, shl(widen(p), k.const(n, i * part)))
        return out

    return pack


@isa.op("mov.type {d}, a", type=(".b16", ".b32", ".b64"), counted=("d",), cost=Cost.MOVE,
        types=lambda type, d_count: {"d": _parts(type, d_count), "a": type},
        ref="data-movement-and-conversion-instructions-mov")
def mov_unpack(k: Kit, type: str, d_count: int) -> Any:
    """the parts of d = a, the lowest bits first"""
    n = width(type)
    part = n // d_count
    narrow, shr = k.trunc(n, part), k.shr_u(n)
    return lambda a: tuple(narrow(shr(a, k.const(n, i * part)) if i else a) for i in range(d_count))


def _byte(k: Kit, pair: Any, selector: Any, replicate: bool) -> Any:
    """Byte `selector` (a 64-bit word, low 3 bits) of the 8 bytes of `pair`, or its sign in all bits."""
    shr, shl, and_, sub = k.shr_u(64), k.shl(64), k.and_(64), k.sub(64)
    seven, three = k.const(64, 7), k.const(64, 3)
    byte = and_(shr(pair, shl(and_(selector, seven), three)), k.const(64, 0xFF))
    if not replicate:
        return byte
    sign = and_(shr(byte, seven), k.const(64, 1))
    spread = and_(sub(k.const(64, 0), sign), k.const(64, 0xFF))
    wanted = k.ne(64)(and_(selector, k.const(64, 8)), k.const(64, 0))
    return k.select(64)(wanted, spread, byte)


PRMT_MODES = {
    "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
    "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
    "rc8": [[i] * 4 for i in range(4)],
    "ecl": [[max(i, j) for j in range(4)] for i in range(4)],
    "ecr": [[min(i, j) for j in range(4)] for i in range(4)],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}
"""Source bytes of result bytes 0..3, by mode and the low two bits of c."""


@isa.op("prmt.b32{.mode} d, a, b, c", mode=tuple("." + m for m in PRMT_MODES), types=dict.fromkeys("dabc", "b32"),
        cost=Cost.INT, ref="data-movement-and-conversion-instructions-prmt",
        vectors=[vec(".b32", 0x33221100, 0x77665544, 0x7531, d=0x77553311, why="picks bytes"),
                 vec(".b32", 0x80, 0, 0x8888, d=0xFFFFFFFF, why="replicates the sign"),
                 vec(".b32.rc8", 0x33221100, 0, 2, d=0x22222222, why="replicates a byte")])
def prmt(k: Kit, mode: str | None) -> Any:
    """d = four bytes chosen from the eight of b:a"""
    up, low, shl, or_, and_, shr = k.zext(32, 64), k.trunc(64, 32), k.shl(64), k.or_(64), k.and_(64), k.shr_u(64)

    def permute(a: Any, b: Any, c: Any) -> Any:
        pair = or_(up(a), shl(up(b), k.const(64, 32)))
        control, out = up(c), k.const(64, 0)
        for i in range(4):
            if mode is None:
                selector = and_(shr(control, k.const(64, 4 * i)), k.const(64, 15))
            else:
                table = sum(PRMT_MODES[mode][row][i] << (4 * row) for row in range(4))
                row = shl(and_(control, k.const(64, 3)), k.const(64, 2))
                selector = and_(shr(k.const(64, table), row), k.const(64, 7))
            out = or_(out, shl(_byte(k, pair, selector, mode is None), k.const(64, 8 * i)))
        return low(out)

    return permute


def _window(space: str | None) -> int:
    return {"shared": SHARED_WINDOW, "shared::cta": SHARED_WINDOW, "shared::cluster": SHARED_WINDOW,
            "local": LOCAL_WINDOW, "param": PARAM_WINDOW}.get(space or "", 0)


_SPACES = (".global", ".shared", ".shared::cta", ".shared::cluster", ".local", ".const", ".param")


@isa.op("cvta{.to}.space.size d, a",
        needs={".param": at((7, 7))}, space=_SPACES, size=(".u32", ".u64"), types=dict.fromkeys("da", "size"),
        cost=Cost.INT, ref="data-movement-and-conversion-instructions-cvta", since=((2, 0), 20))
def cvta(k: Kit, to: bool, space: str, size: str) -> Any:
    """d = the generic address of a in a state space, or with .to the other way round"""
    n, base = width(size), _window(space)
    if base == 0:
        return lambda a: a
    add, sub, window = k.add(n), k.sub(n), k.const(n, base)
    return (lambda a: sub(a, window)) if to else (lambda a: add(a, window))


def _is_own(k: Kit) -> Any:
    """Whether a generic address lies in the shared memory of the CTA itself: in a cluster its rank must be there."""
    lt, sub, eq, shr, and_, or_ = k.lt_u(64), k.sub(64), k.eq(32), k.shr_u(64), k.and_(1), k.or_(1)
    narrow = k.trunc(64, 32)
    rank, alone = k.special("%cluster_ctarank"), eq(k.special("%cluster_nctarank"), k.const(32, 1))

    def own(a: Any) -> Any:
        at = sub(a, k.const(64, SHARED_WINDOW))
        mine = or_(alone, eq(narrow(shr(at, k.const(64, RANK_SHIFT))), rank))
        return and_(lt(at, k.const(64, WINDOW)), mine)

    return own


@isa.op("isspacep.space p, a",
        needs={".param": at((7, 7))}, space=_SPACES, types={"p": "pred", "a": "u64"}, writes=("p",), cost=Cost.INT,
        ref="data-movement-and-conversion-instructions-isspacep", since=((2, 0), 20),
        constraint=lambda space: "not modelled" if space == "param" else None)
def isspacep(k: Kit, space: str) -> Any:
    """p = the generic address a lies in the state space"""
    lt, sub, size, both, not_ = k.lt_u(64), k.sub(64), k.const(64, WINDOW), k.and_(1), k.not_(1)

    def constant(a: Any) -> Any:
        return lt(sub(a, k.const(64, CONSTANTS_BASE)), k.const(64, VARIABLES_BASE - CONSTANTS_BASE))

    if space == "const":
        return constant
    if space in ("shared", "shared::cta"):
        return _is_own(k)
    if space != "global":
        return lambda a: lt(sub(a, k.const(64, _window(space))), size)

    def outside(a: Any) -> Any:
        shared = lt(sub(a, k.const(64, SHARED_WINDOW)), size)
        local = lt(sub(a, k.const(64, LOCAL_WINDOW)), size)
        return both(both(not_(shared), not_(local)), not_(constant(a)))

    return outside
