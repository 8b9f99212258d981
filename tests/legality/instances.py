"""Texts of instructions to judge: for every record its opcodes, each with operands of the right kinds.

Opcodes are those that a record's syntax line spells, the ones that its constraint refuses among them: half of the
question is whether the constraint refuses what the assembler refuses. A record that spells more than `MOST` is covered
by every value, every pair of values and some larger sets of the optional modifiers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from interp.ops import ISA
from ptx.errors import GpuemuError
from ptx.isa import _resolve_types
from ptx.record import Op
from ptx.types import is_type, width

MOST = 6000
MOST_PARTS = 8
"""Parts of a register that are tried in an operand; operands change theirs together."""
SETS = 1500
"""Sets of three and four optional modifiers that are drawn for a record that spells too much."""

_MOD = re.compile(r"\{\.([A-Za-z0-9_:]+(?:,\.[A-Za-z0-9_:]+)*)\}|\.([A-Za-z0-9_:]+)")
_IMMEDIATES = (0, 1, -1, 2, 3, 4, 8, 15, 24, 40, 128, 0x96)
_REGISTERS = {1: "%p", 8: "%c", 16: "%h", 32: "%r", 64: "%d", 128: "%q"}
HIDDEN = {"carry", "flag"}
ELSEWHERE = ("call", "brx")
"""Instructions whose operands are names that a text has to declare; `layouts.py` has them."""

PROLOGUE = (
    ".global .align 16 .b8 gv[64]; .shared .align 16 .b8 sv[64]; .const .align 16 .b8 cv[64];",
    ".entry k(.param .align 16 .b8 p[64]) {",
    ".reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<300>; .reg .b64 %d<300>; .reg .pred %p<9>;",
    ".param .align 16 .b8 pv[64]; .local .align 16 .b8 lv[64];",
)
WIDE = ".reg .b128 %q<9>;"
"""Where the version has such registers; elsewhere the line is empty."""
LAST = ("L: ret;", "}", "")


@dataclass(frozen=True, slots=True)
class Instance:
    """One line of PTX, and the record that it was spelled from."""

    syntax: str
    text: str


def module(lines: list[str], version: tuple[int, int], target: str) -> str:
    """A module with the lines in the body of its entry; the first stands in line `FIRST`."""
    head = f".version {version[0]}.{version[1]}", f".target {target}", ".address_size 64"
    wide = WIDE if version >= (8, 3) else ""
    return "\n".join((*head, *PROLOGUE, wide, *lines, *LAST))


FIRST = 5 + len(PROLOGUE)


# ------------------------------------------------------------------------------------------------ opcodes
def _groups(op: Op) -> list[list[str]]:
    """The alternatives of each modifier of a syntax line in its order, "" where it may be left out."""
    head = op.syntax.partition(" ")[0][len(op.name) :]
    groups: list[list[str]] = []
    for m in _MOD.finditer(head):
        for name in (m[1] or m[2]).replace(",.", ",").split(","):
            found = list(op.choices.get(name.replace("::", "_"), ("." + name,)))
            groups.append(["", *found] if m[1] else found)
    return groups


def opcodes(op: Op) -> Iterator[str]:
    """Opcodes that the syntax line of a record spells, whatever its constraint says; see the module docstring."""
    groups = _groups(op)
    total = 1
    for g in groups:
        total *= len(g)
    if total <= MOST:
        yield from (op.name + "".join(chosen) for chosen in itertools.product(*groups))
        return
    random = Random(op.syntax)
    free = [i for i, g in enumerate(groups) if "" in g]
    seen: set[str] = set()
    for n in range(3):
        for chosen in itertools.combinations(free, n):
            present = [[v for v in groups[i] if v] for i in chosen]
            forced = list(itertools.product(*(g for g in groups if "" not in g)))
            for values in itertools.product(*present):
                for fixed in forced if n < 2 else random.sample(forced, min(len(forced), 3)):
                    seen.add(op.name + _spell(groups, dict(zip(chosen, values, strict=True)), fixed))
    for _ in range(SETS):
        chosen = tuple(random.sample(free, min(len(free), random.choice((3, 4)))))
        values = tuple(random.choice([v for v in groups[i] if v]) for i in chosen)
        fixed = tuple(random.choice(g) for g in groups if "" not in g)
        seen.add(op.name + _spell(groups, dict(zip(chosen, values, strict=True)), fixed))
    yield from sorted(seen)


def _spell(groups: list[list[str]], optional: dict[int, str], fixed: Sequence[str]) -> str:
    rest = iter(fixed)
    return "".join(optional.get(i, "") if "" in g else next(rest) for i, g in enumerate(groups))


# ------------------------------------------------------------------------------------------------ operands
def _mods(op: Op, opcode: str) -> dict[str, Any] | None:
    m = op.pattern.fullmatch(opcode[len(op.name) :])
    if m is None:
        return None
    return {k: v is not None if k in op.flags else (v[1:] if v else None) for k, v in m.groupdict().items()}


def _register(type: str, at: int) -> str:
    return f"{_REGISTERS[width(type)]}{at}" if is_type(type) else "L"


def _space(opcode: str) -> str:
    m = re.search(r"\.(param|const|local|shared|global)\b", opcode)
    return m[1] if m else ""


def _addresses(op: Op, opcode: str, name: str, mods: dict[str, Any]) -> list[str]:
    """Addresses to try for an operand: 64 bits, and 32 where some instructions take them."""
    if op.name in ("ld", "ldu", "st") and _space(opcode) == "param":
        return ["[pv]" if op.name == "st" or "::func" in opcode else "[p]"]
    if name == "map":
        n = int(str(mods.get("dim", "2d"))[0])
        rows = any(str(mods.get(place)).endswith(("gather4", "scatter4")) for place in ("mode", "late"))
        coordinates = ", ".join(f"%r{i}" for i in range(5 if rows else n))
        return [f"[%d1, {{{coordinates}}}]"]
    if op.name.startswith("tcgen05"):
        return ["[%r1]", "[%d1]"]
    return ["[%d1]"]


def _operands(op: Op, opcode: str) -> Iterator[str]:
    """Operand lists for an opcode: the shortest and the longest number, immediates that fit first."""
    mods = _mods(op, opcode)
    if mods is None:
        return
    specs = [s for s in op.operands if s.name not in HIDDEN]
    optional = [s for s in specs if s.optional]
    for n in {0, len(optional)}:
        kept = [s for s in specs if not s.optional or s in optional[:n]]
        yield from dict.fromkeys(_written(op, opcode, kept, dict(mods)))


def _written(op: Op, opcode: str, specs: list[Any], mods: dict[str, Any]) -> Iterator[str]:
    counts = [2, 4] if op.counted else [0]
    for count in counts:
        for c in op.counted:
            spec = next(s for s in specs if s.name == c)
            mods[f"{c}_count"] = count if spec.form == "vec" else 1
        immediates = [s.name for s in specs if s.form == "imm"]
        values = _fitting(op, mods, immediates)
        for value in values:
            mods.update(value)
            try:
                types = _resolve_types(op, mods)
            except (GpuemuError, KeyError):
                continue
            choices = [_texts(op, opcode, s, types, mods, at) for at, s in enumerate(specs)]
            most = max((len(c) for c in choices), default=1)
            for i in range(most):
                yield ", ".join(c[min(i, len(c) - 1)] for c in choices)


def _fitting(op: Op, mods: dict[str, Any], names: list[str]) -> list[dict[str, int]]:
    """Values of the immediates: one set that the constraint takes, or plain zeros when it takes none."""
    if not names:
        return [{}]
    if op.constraint is None:
        return [dict.fromkeys(names, v) for v in (1, 0)]
    tried = _IMMEDIATES if len(names) < 3 else (1, 0)
    for values in itertools.product(tried, repeat=len(names)):
        chosen = dict(zip(names, values, strict=True))
        if op.constraint(**{**mods, **chosen}) is None:
            return [chosen]
    return [dict.fromkeys(names, 1)]


def _texts(op: Op, opcode: str, spec: Any, types: Any, mods: dict[str, Any], at: int) -> list[str]:
    type, count = types[spec.name]
    if spec.form == "mem":
        return _addresses(op, opcode, spec.name, mods)
    if spec.form == "imm":
        return [str(mods[spec.name])]
    if spec.form == "pair":
        names = [n for n in spec.names if n not in HIDDEN]
        return ["|".join(_register(types[n][0], at + 1 + i) for i, n in enumerate(names))]
    if spec.form == "vec" and count:
        return ["{" + ", ".join(_register(type, 8 * at % 32 + i) if width(type) >= 32 else _register(type, i % 9)
                                for i in range(count)) + "}"]
    register = _register(type, at + 1)
    parts = op.parts.get(spec.name, ("",))
    if len(parts) > MOST_PARTS:
        parts = ("", *Random(f"{op.syntax} {spec.name}").sample([p for p in parts if p], MOST_PARTS - 1))
    return [_part(register, part) for part in parts]


def _part(register: str, part: str) -> str:
    """A part of a register, or negated, as a record names it."""
    name = part.removeprefix("-")
    return ("-" if part[:1] == "-" else "") + register + ("." + name if name else "")


def instances(op: Op) -> list[Instance]:
    """Texts for a record, none twice."""
    if op.internal or op.name in ELSEWHERE:
        return []
    found = []
    for opcode in opcodes(op):
        found += [Instance(op.syntax, f"{opcode} {o};" if o else f"{opcode};") for o in _operands(op, opcode)]
    return list(dict.fromkeys(found))


def all_instances() -> list[Instance]:
    """Of every record of the table; a text that two records spell stands once."""
    seen: dict[str, Instance] = {}
    for op in ISA.ops:
        for i in instances(op):
            seen.setdefault(i.text, i)
    return list(seen.values())
