"""Registers of 128 bits (PTX ISA, '.b128' of mov, ld, st and atom).

The meanings get and give such a register as the pair of its halves, the low one first. A load or store is one access of
16 bytes, aligned as a whole; so is an exchange, or a comparison and exchange, which are the only atomic operations.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.kits.llvm import SPACE_CODES
from interp.ops.memory import CACHING, ORDERS, SCOPES, SPACES, combination, legal_hint, space_name
from interp.ops.table import isa
from ptx.isa import Cost, Effect, Varies, vec
from ptx.targets import at
from ptx.types import width

_REF = "data-movement-and-conversion-instructions-"
_SINCE = ((8, 3), 70)
_ATOM: dict[str, Any] = {
    "sem": (".relaxed", ".acquire", ".release", ".acq_rel"), "scope": SCOPES,
    "ss": (".global", ".shared", ".shared::cta", ".shared::cluster"), "hint": (".L2::cache_hint",),
    "effect": Effect.ATOMIC, "varies": Varies.ALWAYS, "cost": Cost.ATOMIC, "since": ((8, 3), 90),
    "discards": ("d",), "needs": {"scope.sys": at((8, 4), 90)},
    "ref": "parallel-synchronization-and-communication-instructions-atom",
}  # fmt: skip
_MEMORY: dict[str, Any] = {
    "order": (".weak", ".volatile", *ORDERS), **CACHING, "cost": Cost.LOAD_STORE, "since": _SINCE,
    "needs": {".relaxed.sys,.acquire.sys,.release.sys": at((8, 4)), "order.volatile ss.local": at((9, 1))},
}  # fmt: skip
_TAIL = "{.cop}{.l1}{.l2}{.hint}{.prefetch}.b128"


@isa.op("mov.b128 d, a", types=dict.fromkeys("da", "b128"), cost=Cost.MOVE, since=_SINCE, ref=_REF + "mov",
        vectors=[vec(".b128", 1, 2, d=(1, 2), why="copies both halves")])
def mov(k: Kit) -> Any:
    """d = a"""
    return lambda a: tuple(a)


def _parts(type: str, count: int) -> tuple[str, int]:
    return f"b{width(type) // count}", count


def _halves_or_quarters(a_count: int = 2, d_count: int = 2, **_: object) -> str | None:
    return None if a_count in (2, 4) and d_count in (2, 4) else "128 bits are two or four parts"


@isa.op("mov.type d, {a}", type=(".b128",), counted=("a",), constraint=_halves_or_quarters, cost=Cost.MOVE,
        types=lambda type, a_count: {"d": type, "a": _parts(type, a_count)}, since=_SINCE, ref=_REF + "mov")
def mov_pack(k: Kit, type: str, a_count: int) -> Any:
    """d = the two or four parts of a, the first in the lowest bits"""
    if a_count == 2:
        return lambda a: tuple(a)
    widen, shl, or_, half = k.zext(32, 64), k.shl(64), k.or_(64), k.const(64, 32)

    def pair(low: Any, high: Any) -> Any:
        return or_(widen(low), shl(widen(high), half))

    return lambda a: (pair(a[0], a[1]), pair(a[2], a[3]))


@isa.op("mov.type {d}, a", type=(".b128",), counted=("d",), constraint=_halves_or_quarters, cost=Cost.MOVE,
        types=lambda type, d_count: {"d": _parts(type, d_count), "a": type}, since=_SINCE, ref=_REF + "mov")
def mov_unpack(k: Kit, type: str, d_count: int) -> Any:
    """the two or four parts of d = a, the lowest bits first"""
    if d_count == 2:
        return lambda a: a
    narrow, shr, half = k.trunc(64, 32), k.shr_u(64), k.const(64, 32)
    return lambda a: tuple(narrow(part) for word in a for part in (word, shr(word, half)))


@isa.op(f"ld{{.order}}{{.ss}}{_TAIL.replace('{.l1}', '{.nc}{.l1}')} d, [a]{{, policy if hint}}", **_MEMORY, ss=SPACES,
        nc=(".nc",), constraint=lambda **mods: combination("ld", vec=None, type="b128", **mods),
        types={"d": "b128", "policy": "b64"}, effect=Effect.LOAD, ref=_REF + "ld")
def ld(k: Kit, ss: str | None, **_: Any) -> Any:
    """d = 16 bytes of memory at a"""
    load = k.load(space_name(ss), 64, 2)
    return lambda a, *policy: load(a)


@isa.op(f"st{{.order}}{{.ss}}{_TAIL} [a], b{{, policy if hint}}", **_MEMORY,
        ss=tuple(s for s in SPACES if s != ".const"),
        constraint=lambda **mods: combination("st", vec=None, type="b128", **mods),
        types={"b": "b128", "policy": "b64"}, effect=Effect.STORE, ref=_REF + "st", writes=())
def st(k: Kit, ss: str | None, **_: Any) -> Any:
    """16 bytes of memory at a = b"""
    store = k.store(space_name(ss), 64, 2)
    return lambda a, b, *policy: store(a, *b)


def _declare_atomics(exchange: str, compare: str) -> None:
    @isa.op(f"atom{{.sem,.scope,.ss}}{exchange} d, [a], b{{, policy if hint}}",
            constraint=legal_hint, types={"d": "b128", "b": "b128", "policy": "b64"}, **_ATOM)
    def atom_exch(k: Kit, ss: str | None, **_: Any) -> Any:
        """d = memory at a; memory at a = b, lane after lane"""
        update = k.warp("atomic_b128", (64, 64), SPACE_CODES[space_name(ss)], 0)
        return lambda a, b, *policy: update(a, *b)

    @isa.op(f"atom{{.sem,.scope,.ss}}{compare} d, [a], b, c", types=dict.fromkeys("dbc", "b128"), **_ATOM)
    def atom_cas(k: Kit, ss: str | None, **_: Any) -> Any:
        """d = memory at a; memory at a = (d == b) ? c : d, lane after lane"""
        update = k.warp("atomic_b128", (64, 64), SPACE_CODES[space_name(ss)], 1)
        return lambda a, b, c: update(a, *b, *c)


_declare_atomics(".exch{.hint}.b128", ".cas.b128")
_declare_atomics(".b128.exch{.hint}", ".b128.cas")
