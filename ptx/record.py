"""One instruction record, and a form of it: what `ptx.isa.Isa.op` makes of a declaration. Their fields: `ptx.isa`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ptx import ir
from ptx.effects import Cost, Effect, Varies
from ptx.errors import InvalidInput, Where
from ptx.syntax_line import OperandSpec, Place
from ptx.targets import Need


@dataclass(frozen=True, slots=True)
class Vector:
    """A hand-made example: operand words (by position, sources then expected destinations) and what it shows."""

    mods: str
    sources: tuple[int, ...]
    results: tuple[int, ...]
    why: str
    seen: str | None = None


def vec(mods: str, *sources: int, d: int | tuple[int, ...], why: str, seen: str | None = None) -> Vector:
    """An example for a record: `vec(".u32", 0xFFFFFFFF, 1, d=0, why="wraps")`."""
    return Vector(mods, sources, d if isinstance(d, tuple) else (d,), why, seen)


TypeSpec = Mapping[str, Any] | Callable[..., Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Op:
    """One instruction record; `ptx.isa` tells what its fields mean."""

    syntax: str
    name: str
    pattern: re.Pattern[str]
    places: tuple[Place, ...]
    choices: Mapping[str, tuple[str, ...]]
    flags: tuple[str, ...]
    operands: tuple[OperandSpec, ...]
    writes: frozenset[str]
    types: TypeSpec
    cost: Cost
    effect: Effect
    varies: Varies
    ref: str
    since: tuple[tuple[int, int], int]
    vectors: tuple[Vector, ...]
    meaning: Callable[..., Any]
    only: tuple[str, ...] = ()
    needs: Mapping[str, Need] = field(default_factory=dict)
    constraint: Callable[..., str | None] | None = None
    rule: Callable[[Mapping[str, Any], Mapping[str, ir.Operand]], str | None] | None = None
    counted: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    discards: tuple[str, ...] = ()
    settles: bool = False
    internal: bool = False
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def accepts(self, operands: tuple[ir.Operand, ...], mods: Mapping[str, Any]) -> bool:
        """Whether vectors, addresses and immediates stand where the syntax line has them."""
        specs = self.present(len(operands), mods)
        if specs is None:
            return False
        return all(
            spec.name in self.parts if isinstance(operand, ir.Part) else _fits(spec, operand)
            for spec, operand in zip(specs, operands, strict=False)
        )

    def modifiers(self, text: str) -> dict[str, Any] | None:
        """What the meaning receives for an opcode's modifiers, given with their dots; None when they do not fit."""
        m = self.pattern.fullmatch(text)
        return m and {k: t is not None if k in self.flags else (t[1:] if t else None) for k, t in m.groupdict().items()}

    def present(self, count: int, mods: Mapping[str, Any]) -> tuple[OperandSpec, ...] | None:
        """The operands that `count` of them are; None when too many stand there, or one that goes with a modifier
        stands without it or is missing. (Too few are the business of `Form.bind`.)"""
        if not self.fixed:
            return self.operands[:count] if count <= len(self.operands) else None
        there = [s for s in self.operands if s.when is None or mods[s.when]]
        free = [s for s in there if s.optional and s.when is None]
        absent = len(there) - count
        if absent < 0 or absent > len(free):
            return None
        left_out = free[len(free) - absent :]
        return tuple(s for s in there if s not in left_out)

    @cached_property
    def fixed(self) -> bool:
        """Whether an operand goes with a modifier."""
        return any(s.when is not None for s in self.operands)

    @property
    def doc(self) -> str:
        return (self.meaning.__doc__ or "").strip()


def _fits(spec: OperandSpec, operand: ir.Operand) -> bool:
    match operand:
        case ir.Vec(items):
            return spec.form == "vec" or (spec.form == "reg" and len(items) == 1)
        case ir.Mem():
            return spec.form == "mem"
        case ir.TensorMem(_, _, offsets):  # no instruction takes im2col offsets inside the brackets
            return spec.form == "mem" and offsets is None
        case ir.Pair():
            return spec.form == "pair"
        case ir.Wide():
            return spec.form == "reg"
        case ir.Imm():
            return spec.form in ("reg", "imm", "vec")
    return spec.form in ("reg", "pair", "vec")


@dataclass(frozen=True, eq=False)
class Form:
    """A record with its modifiers chosen: `mods` as the meaning receives them, operand types resolved."""

    op: Op
    mods: Mapping[str, Any]
    types: Mapping[str, tuple[str, int]]  # operand name -> (PTX type, vector length or 0)
    key: str = field(default="")
    needs: tuple[Need, ...] = ()

    def type_of(self, name: str) -> str:
        return self.types[name][0]

    def count_of(self, name: str) -> int:
        return self.types[name][1]

    def bind(self, inst: ir.Inst) -> list[tuple[OperandSpec, ir.Operand]]:
        """Pair the syntax line's operands with those of `inst`, parts of registers as the registers; InvalidInput when
        their number is wrong."""
        specs = self.op.operands
        required = sum(not s.optional for s in specs)
        if self.op.fixed and (present := self.op.present(len(inst.operands), self.mods)) is not None:
            specs = present
        if not required <= len(inst.operands) <= len(specs):
            wanted = str(required) if required == len(specs) else f"{required} to {len(specs)}"
            raise InvalidInput(
                f"'{inst.opcode}' takes {wanted} operands, not {len(inst.operands)}",
                where=place(inst),
                help=f"the form is: {self.op.syntax}",
            )
        if self.op.parts:
            given: tuple[ir.Operand, ...] = tuple(o.reg if isinstance(o, ir.Part) else o for o in inst.operands)
            return list(zip(specs, given, strict=False))
        return list(zip(specs, inst.operands, strict=False))


def place(inst: ir.Inst) -> Where:
    """Where an instruction stands, for a diagnostic."""
    user = inst.loc.user
    return Where(
        file=user.file if user else None,
        line=user.line if user else None,
        column=user.column if user else None,
        ptx_line=inst.loc.ptx_line,
        ptx_text=inst.opcode,
    )


def registers(operand: ir.Operand) -> tuple[ir.Reg, ...]:
    """All registers named in an operand."""
    match operand:
        case ir.Reg():
            return (operand,)
        case ir.Not(reg) | ir.Part(reg):
            return (reg,)
        case ir.Wide(low, high):
            return (low, high)
        case ir.Mem(base, _):
            return (base,) if isinstance(base, ir.Reg) else ()
        case ir.Vec(items):
            return tuple(i for i in items if isinstance(i, ir.Reg))
        case ir.Pair(first, second):
            return tuple(i for i in (first, second) if isinstance(i, ir.Reg))
        case ir.TensorMem(base, coords, offsets):
            inner = registers(coords) + (registers(offsets) if offsets else ())
            return ((base,) if isinstance(base, ir.Reg) else ()) + inner
    return ()
