"""Random forms of an instruction record: an opcode with modifiers, and operands of the right kinds, as PTX text.

Everything is drawn from the record itself, so a new record is tested without a change here. Records with effects need
a setting (addresses, member masks, barriers) and are written by `programs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from interp.ops import ISA
from ptx import ir
from ptx.isa import Effect, _resolve_types
from ptx.record import Op
from ptx.targets import Need
from ptx.types import Kind, kind, width

POOLS = {1: ("%p", 6), 16: ("%h", 8), 32: ("%r", 12), 64: ("%q", 8), 128: ("%x", 4)}
"""Registers that bodies compute with, by width: name and number."""
_MOD = re.compile(r"\{\.([A-Za-z0-9_:]+(?:,\.[A-Za-z0-9_:]+)*)\}|\.([A-Za-z0-9_:]+)")
_SPECIAL_WORDS = {
    16: (0, 1, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0x0001, 0x3F80, 0x7F80, 0xFFFF),
    32: (
        0,
        1,
        2,
        31,
        32,
        33,
        0x80000000,
        0x7FFFFFFF,
        0xFFFFFFFF,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x00000001,
        0x00800000,
        0x7F7FFFFF,
        0x4B000000,
        0x477FE000,
        0x33000000,
        0x3C003C00,
        0xFC007C00,
    ),
    64: (
        0,
        1,
        63,
        64,
        1 << 63,
        (1 << 63) - 1,
        (1 << 64) - 1,
        0x3FF0 << 48,
        0x7FF0 << 48,
        0xFFF8 << 48,
        1 << 52,
        0x3FF8 << 48,
    ),
}
_IMMEDIATES = {"lut": (0x80, 0xC0, 0xE8, 0x96, 0xFE, 0x1B)}


def word(rng: Random, n: int) -> int:
    """A word of n bits: special values, small numbers, near floats, random bits."""
    how = rng.randrange(6)
    if how < 2:
        return rng.choice(_SPECIAL_WORDS[n])
    if how == 2:
        return rng.randrange(-40, 40) & ((1 << n) - 1)
    if how == 3 and n == 32:
        return (rng.getrandbits(1) << 31 | (127 + rng.randrange(-20, 20)) << 23 | rng.getrandbits(23)) & 0xFFFF_FFFF
    if how == 3 and n == 64:
        return rng.getrandbits(1) << 63 | (1023 + rng.randrange(-20, 20)) << 52 | rng.getrandbits(52)
    return rng.getrandbits(n)


@dataclass(frozen=True, slots=True)
class Drawn:
    """An instruction without its guard and semicolon, and the record it was drawn from."""

    text: str
    op: Op


VERSION, TARGET = (8, 8), "sm_90a"
"""Of the programs."""


def _exists(op: Op, mods: Mapping[str, Any]) -> bool:
    return not any(need.problem(VERSION, TARGET) for need in ISA.needs_of(op, mods))


PURE = tuple(
    op
    for op in ISA.ops
    if op.effect is Effect.NONE
    and Need(*op.since, op.only).problem(VERSION, TARGET) is None
    and not op.internal
    and not any(s.form == "mem" for s in op.operands)
)
"""Records that need no setting."""


def limited(op: Op, rng: Random, variety: int) -> Random:
    """Where modifiers are drawn from: `rng`, or with a `variety` one of so many fixed sequences a record."""
    return Random(f"{op.syntax} {op.meaning.__name__} {rng.randrange(variety)}") if variety else rng


def opcode(op: Op, rng: Random, fixed: Mapping[str, str] | None = None, variety: int = 0) -> tuple[str, dict[str, Any]]:
    """A legal opcode of the record, and its modifiers as a meaning gets them.

    `fixed`: choices that are made already. `variety`: see `programs.batch`."""
    rng = limited(op, rng, variety)
    head = op.syntax.split(" ")[0]
    for _ in range(1000):
        text = op.name
        for m in _MOD.finditer(head[len(op.name) :]):
            text += _modifier(op, m, rng, fixed or {})
        for record, mods in ISA._candidates(text):
            if record is op and _exists(op, mods):
                return text, mods
    raise AssertionError(f"no legal modifiers found for {op.syntax}")


def _modifier(op: Op, m: re.Match[str], rng: Random, fixed: Mapping[str, str]) -> str:
    optional, name = (True, m[1]) if m[1] else (False, m[2])
    if "," in name:
        names = [n for n in name.replace(",.", ",").split(",") if n in fixed or rng.random() < 0.4]
        rng.shuffle(names)
        return "".join(fixed[n] if n in fixed else rng.choice(op.choices[n]) for n in names)
    key = name.replace("::", "_")
    if key in fixed:
        return fixed[key]
    if optional and rng.random() < 0.65:
        return ""
    return rng.choice(op.choices[key]) if key in op.choices else f".{name}"


def draw(op: Op, rng: Random, variety: int = 0) -> Drawn:
    """A random form of a record without effects, that a text can hold. `variety`: see `programs.batch`."""
    while True:
        drawn, operands = _draw(op, rng, variety)
        if not (op.name == "cvt" and ".bf16" in drawn.text) or all(_is_exact(p, t) for p, t in operands):
            return drawn


def _is_exact(operand: str, type: str) -> bool:
    """Whether an operand of a conversion of bf16 is a literal, or a register of the type's own width."""
    stem = operand.rstrip("0123456789")
    return not stem.startswith("%") or POOLS.get(width(type), ("",))[0] == stem


def _draw(op: Op, rng: Random, variety: int) -> tuple[Drawn, list[tuple[str, str]]]:
    """A form, and its single operands with their types."""
    pick = limited(op, rng, variety)
    text, mods = opcode(op, pick)
    while op.counted and width(mods["type"]) < 32:  # parts of 8 bits have no registers here
        text, mods = opcode(op, pick)
    for spec in op.operands:
        if spec.form == "imm":
            mods[spec.name] = pick.choice(_IMMEDIATES.get(spec.name, (0, 1, 2, 3)))
        if spec.name in op.counted:
            mods[f"{spec.name}_count"] = pick.choice([c for c in (2, 4) if width(mods["type"]) // c >= 16])
    selected = _parts(op, mods, pick)
    types = _resolve_types(op, mods)
    parts = []
    for spec in op.operands:
        if selected.get(spec.name, "") is None or (spec.optional and not op.parts and rng.random() < 0.5):
            break
        type, count = types[spec.name]
        written = spec.name in op.writes
        if spec.form == "imm":
            parts.append(str(mods[spec.name]))
        elif spec.form == "pair":
            names = [_register(op, types[n][0], rng, True) for n in spec.names]
            if names[0] == names[1]:
                names[1] = "_"
            both = {spec.name: ir.Pair(ir.Sink(), ir.Sink())}
            may = op.rule is None or op.rule(mods, both) is None
            parts.append("|".join(names) if may and rng.random() < 0.6 else names[0])
        elif count:
            parts.append(
                "{" + ", ".join(_distinct(op, type, count, rng) if written else _sources(op, type, count, rng)) + "}"
            )
        elif part := selected.get(spec.name):
            selector = part.removeprefix("-")
            minus, dot = "-" * (part != selector), "." * bool(selector)
            parts.append(f"{minus}{_register(op, type, rng, written)}{dot}{selector}")
        elif written:
            parts.append(_register(op, type, rng, True))
        else:
            parts.append(_source(op, type, rng))
    single = [
        (part, types[spec.name][0]) for spec, part in zip(op.operands, parts, strict=False) if not part.startswith("{")
    ]
    return Drawn(f"{text} {', '.join(parts)}" if parts else text, op), single


def _parts(op: Op, mods: Mapping[str, Any], rng: Random) -> dict[str, str | None]:
    """Parts of registers that a record's constraint takes, and None for an operand that is left out."""
    optional = {spec.name for spec in op.operands if spec.optional}
    while op.parts:
        chosen: dict[str, str | None] = {
            n: None if n in optional and rng.random() < 0.5 else rng.choice(p) if rng.random() < 0.5 else ""
            for n, p in op.parts.items()
        }
        named = {f"{n}_part": part for n, part in chosen.items()}
        if op.constraint is None or op.constraint(**{**mods, **named}) is None:
            return chosen
    return {}


def _width(op: Op, type: str, rng: Random) -> int:
    """Width of a register for a type: its own, or a wider one where PTX takes it."""
    n = width(type)
    if n == 1 or op.name != "cvt" or kind(type) not in (Kind.UINT, Kind.SINT, Kind.BITS):
        return max(n, 16) if n > 1 else 1
    return rng.choice([w for w in (16, 32, 64) if w >= n] if rng.random() < 0.3 else [max(n, 16)])


def register(n: int, rng: Random) -> str:
    """A register of n bits."""
    stem, count = POOLS[n]
    return f"{stem}{rng.randrange(count)}"


def _register(op: Op, type: str, rng: Random, written: bool) -> str:
    return register(_width(op, type, rng), rng)


def _distinct(op: Op, type: str, count: int, rng: Random) -> list[str]:
    stem, number = POOLS[max(width(type), 16)]
    return [f"{stem}{i}" for i in rng.sample(range(number), count)]


def _sources(op: Op, type: str, count: int, rng: Random) -> list[str]:
    return [_register(op, type, rng, False) for _ in range(count)]


def _source(op: Op, type: str, rng: Random) -> str:
    n = width(type)
    if n == 1:
        p = register(1, rng)
        return p  # negation is written by ptxas for few instructions only
    if rng.random() < 0.15:
        if type == "f32":
            return f"0f{word(rng, 32):08X}"
        if type == "f64":
            return f"0d{word(rng, 64):016X}"
        if kind(type) in (Kind.UINT, Kind.SINT, Kind.BITS) and n in (16, 32, 64):
            value = word(rng, n)
            return str(value - (1 << n) if kind(type) is Kind.SINT and value >> (n - 1) else value)
    return _register(op, type, rng, False)
