"""The instruction record: everything the project knows about one PTX instruction, in one place.

This module holds the *type* of a record and the table that finds one; the *entries* live in `interp/ops/`, one file a
chapter of the PTX manual. The verifier, liveness and accounting take the table as an argument, so that a test can pass
a toy instruction set, and nothing here depends on how an instruction is executed.

A record is declared by decorating its meaning:

    @isa.op("add{.sat}.type d, a, b", type=(".u32", ".s32"), cost=Cost.INT, ref="integer-arithmetic-instructions-add")
    def add(k, type, sat): ...

**Syntax line.** The manual's own: opcode with modifiers, then operands.

* `.name` where `name` is a keyword argument: exactly one of those alternatives; otherwise the literal modifier.
* `{.a,.b}`: optional, in any order (compilers order the qualifiers of memory operations freely).
* `{.name}`: optional. The meaning receives the alternative without its dot (or None); for an optional literal, a bool.
* operands: `d` (register or, where it is read, also an immediate), `d|p` (pair), `[a]` (address),
  `{d}` (vector), `#n` (integer immediate, handed to the meaning as a Python int when the form is built);
  `{, c}` optional, `{, c if m}` there if and only if the optional modifier `.m` is. Operands called `d`, or listed in
  `writes`, are written; all others are read. Records of one opcode may differ in which operands are vectors
  (`mov.b64 d, a` and `mov.b64 d, {a}`). For an operand listed in `counted` the number of vector elements (of a tensor
  address: coordinates) is given to `types` and to the meaning as `<operand>_count`.
* `parts` maps operands that may be a part of a register (`a.h0`), or negated, to the parts that they may be; "" is all
  of it, "-" and "-h0" are negated. The meaning receives what was written as `<operand>_part`, or None for an optional
  operand that is left out, and the register as it is.
* a register of 128 bits is handed over as the pair of its halves, the low one first (`ptx.flatten.halves`).

**Where it exists.** `since` is the first PTX version and architecture of the whole record, `only` the targets that
alone have it (see `ptx.targets`), `needs` what single modifiers, operands and sets of them ask for beyond that:

    needs={".L2::cache_hint": at((7, 4), 80), ".v8,.v4 .b64": at((8, 8), 100)}

**Types.** `types` maps an operand to the name of a modifier (`"type"`), to a literal PTX type (`"u32"`), to `"addr"`,
or to a pair (type, count) for vectors; it may be a function of the modifiers. Default: the modifier `type` for all.

**Meaning.** `meaning(k, **modifiers)` runs once a form against a kit `k` (interp/kit.py) and returns a function of the
source operands that gives the destination words. It has no Python control flow on values, so the same text is executed
over vectors by the compiled engine, over lane arrays by the traced engine and over plain integers in tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ptx import ir
from ptx.effects import Cost as Cost
from ptx.effects import Effect as Effect
from ptx.effects import Varies as Varies
from ptx.errors import InternalError, InvalidInput, Unsupported
from ptx.nearest import nearest, nearest_name
from ptx.record import Form, Op, TypeSpec, Vector, place, registers
from ptx.record import vec as vec
from ptx.syntax_line import compile_mods, compile_operands, in_order
from ptx.targets import Need, applying
from ptx.types import is_type, width


class Isa:
    """The table of records. `version`: the PTX ISA version whose manual was read; `needs`: what modifiers need in every
    record that has them."""

    def __init__(self, version: tuple[int, int], needs: Mapping[str, Need] | None = None) -> None:
        self.version = version
        self.needs = dict(needs or {})
        self.ops: list[Op] = []
        self._by_name: dict[str, list[Op]] = {}
        self._left_out: dict[re.Pattern[str], str] = {}
        self._forms: dict[tuple[Any, ...], Form] = {}

    def op(
        self,
        syntax: str,
        *,
        cost: Cost,
        ref: str,
        types: TypeSpec | None = None,
        writes: Iterable[str] = ("d",),
        effect: Effect = Effect.NONE,
        varies: Varies = Varies.WITH_INPUTS,
        since: tuple[tuple[int, int], int] = ((1, 0), 10),
        only: Iterable[str] = (),
        needs: Mapping[str, Need] | None = None,
        vectors: Iterable[Vector] = (),
        constraint: Callable[..., str | None] | None = None,
        rule: Callable[[Mapping[str, Any], Mapping[str, ir.Operand]], str | None] | None = None,
        counted: Iterable[str] = (),
        in_place: Iterable[str] = (),
        discards: Iterable[str] = (),
        settles: bool = False,
        internal: bool = False,
        parts: Mapping[str, Iterable[str]] | None = None,
        **choices: Iterable[str],
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a record; the decorated function is its meaning.

        `since`, `only`, `needs`: where it exists, see the module docstring. `constraint(**mods)` returns why a
        combination of modifiers is illegal, or None; it is asked again with integer immediates and counts, which need
        defaults. `rule(mods, operands by name)` says in the same way which operands do not go with the modifiers.
        `writes`: names of written operands; `discards`: those that may be `_` (elements of vectors always may).
        `in_place`: operands read and written where the machine keeps them, now or later (the meaning gets their
        places, see `interp.ops.wgmma`); `settles`: may complete such earlier ones.
        `internal`: stands in no text; passes make it (`Inst.made`), or it replaces what stands there.
        """
        head, _, tail = syntax.partition(" ")
        name = re.match(r"[a-z_0-9]+", head)
        if name is None:
            raise InternalError(f"bad syntax line '{syntax}'")
        chosen = {k: tuple(v) for k, v in choices.items()}
        pattern, flags, places = compile_mods(head[name.end() :], chosen)

        def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
            record = Op(
                syntax=syntax,
                name=name[0],
                pattern=pattern,
                places=places,
                choices=chosen,
                flags=flags,
                operands=compile_operands(tail.strip()),
                writes=frozenset(writes),
                types=types if types is not None else {},
                cost=cost,
                effect=effect,
                varies=varies,
                ref=ref,
                since=since,
                vectors=tuple(vectors),
                meaning=meaning,
                only=tuple(only),
                needs=needs or {},
                constraint=constraint,
                rule=rule,
                counted=tuple(counted),
                in_place=tuple(in_place),
                discards=tuple(discards),
                settles=settles,
                internal=internal,
                parts={name: tuple(p) for name, p in (parts or {}).items()},
            )
            self.ops.append(record)
            self._by_name.setdefault(record.name, []).append(record)
            return meaning

        return declare

    def leave_out(self, opcodes: str, reason: str) -> None:
        """Say why instructions whose opcode has a match of the regular expression are refused."""
        self._left_out[re.compile(opcodes)] = reason

    def match(self, inst: ir.Inst) -> Form:
        """The form of an instruction: its record, modifiers, operand types. Cached by what it depends on.

        Raises Unsupported when no record has the opcode (with the nearest records as notes), InvalidInput when a
        record has it, but not with these kinds of operands."""
        key = (inst.op, inst.mods, tuple(_shape(o) for o in inst.operands))
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._find(inst)
        return form

    def needs_of(self, record: Op, mods: Mapping[str, Any], operands: Iterable[str] = ()) -> tuple[Need, ...]:
        """What a form of a record needs of the text's version and target. `operands`: names of those that are there."""
        special = applying({**self.needs, **record.needs}, mods, frozenset(operands))
        return Need(*record.since, record.only), *special

    def having(self, opcode: str) -> list[Op]:
        """The records that have this full opcode."""
        return [record for record, _ in self._candidates(opcode)]

    def knows(self, opcode: str) -> bool:
        """Whether any record has this full opcode (`ld.global.v4.b32`)."""
        return any(True for _ in self._candidates(opcode))

    def reads_writes(self, inst: ir.Inst) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Register names that `inst` reads and writes, its guard not included."""
        reads: list[str] = []
        writes: list[str] = []
        form = self.match(inst)
        op = form.op
        for spec, operand in form.bind(inst):
            written = spec.name in op.writes and not isinstance(operand, ir.Mem)
            for reg in registers(operand):
                if written:
                    writes.append(reg.name)
                if not written or spec.name in op.in_place:
                    reads.append(reg.name)
        return tuple(reads), tuple(writes)

    def _candidates(self, opcode: str) -> Iterator[tuple[Op, dict[str, Any]]]:
        """Records that have an opcode. The assembler takes modifiers in other orders than the manual's; so do these,
        when nothing has them as they stand."""
        found = False
        for item in self._as_written(opcode):
            found = True
            yield item
        name, *words = opcode.split(".")
        for record in self._by_name.get(name, ()) if not found and words else ():
            for ordered in in_order(name, words, record.places):
                again = [item for item in self._as_written(".".join((name, *ordered))) if item[0] is record]
                if again:
                    yield again[0]
                    break

    def _as_written(self, opcode: str) -> Iterator[tuple[Op, dict[str, Any]]]:
        name, dot, rest = opcode.partition(".")
        for record in self._by_name.get(name, ()):
            mods = record.modifiers(dot + rest)
            if mods is not None and (record.constraint is None or record.constraint(**mods) is None):
                yield record, mods

    def _find(self, inst: ir.Inst) -> Form:
        candidates = list(self._candidates(inst.opcode))
        for record, mods in candidates:
            if not record.accepts(inst.operands, mods):
                continue
            for spec, operand in zip(record.present(len(inst.operands), mods) or (), inst.operands, strict=False):
                if spec.name in record.counted:
                    mods[f"{spec.name}_count"] = _length(operand)
                if spec.form == "imm":
                    assert isinstance(operand, ir.Imm)
                    mods[spec.name] = operand.value
            reason = _choose_parts(record, inst, mods)
            if reason is None and record.constraint is not None:
                reason = record.constraint(**mods)
            if reason is not None:
                form = f"the form is: {record.syntax}"
                raise InvalidInput(f"'{inst.opcode}': {reason}", where=place(inst), help=form)
            there = [s.name for s in record.present(len(inst.operands), mods) or ()]
            return Form(record, mods, _resolve_types(record, mods), inst.opcode, self.needs_of(record, mods, there))
        if candidates:
            raise InvalidInput(
                f"'{inst.opcode}' does not take these operands", where=place(inst),
                help="; ".join(f"the form is: {r.syntax}" for r, _ in candidates),
            )
        why = next((f": {r}" for p, r in self._left_out.items() if p.search(inst.opcode)), "")
        own = [o for o in self._by_name.get(inst.op, ()) if not o.internal]
        raise Unsupported(
            f"instruction '{inst.opcode}' is not modelled{why}",
            where=place(inst),
            notes=nearest(own, inst.opcode) if own else nearest_name(inst.op, self._by_name),
            help="nothing was executed; report the instruction, or compile the kernel without it",
        )


def _length(operand: ir.Operand) -> int:
    """Elements of a vector, coordinates of a tensor address, 1 for all others."""
    match operand:
        case ir.Vec(items) | ir.TensorMem(_, ir.Vec(items)):
            return len(items)
    return 1


def _choose_parts(record: Op, inst: ir.Inst, mods: dict[str, Any]) -> str | None:
    """Add the parts of registers that operands are to `mods`; why they are illegal, or None."""
    for name in record.parts:
        mods[f"{name}_part"] = None
    for spec, operand in zip(record.operands, inst.operands, strict=False):
        if spec.name not in record.parts:
            continue
        part = f"{'-' * operand.negated}{operand.selector}" if isinstance(operand, ir.Part) else ""
        if part not in record.parts[spec.name]:
            return f"operand {spec.name} cannot be " + (f"part .{part}" if part and part[0] != "-" else "negated so")
        mods[f"{spec.name}_part"] = part
    return None


def _shape(operand: ir.Operand) -> Any:
    """What the choice of a form depends on: vector length, immediate value, kind of operand."""
    match operand:
        case ir.Vec(items):
            return len(items)
        case ir.TensorMem(_, ir.Vec(items), offsets):
            return ("tensor", len(items), offsets is None)
        case ir.Imm(value, _):
            return ("imm", value)
        case ir.Part(_, selector, negated):
            return (selector, negated)
    return type(operand).__name__


def _resolve_types(record: Op, mods: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    given = record.types(**mods) if callable(record.types) else record.types
    out: dict[str, tuple[str, int]] = {}
    for spec in record.operands:
        for name in spec.names:
            wanted = given.get(name, "addr" if spec.form == "mem" else "s64" if spec.form == "imm" else "type")
            kind, count = wanted if isinstance(wanted, tuple) else (wanted, 0)
            if kind in mods:
                kind = mods[kind]
            if kind not in ("addr", "label"):
                if record.counted and not is_type(kind):
                    raise InvalidInput(f"'{record.name}' does not take a vector of this length", help=record.syntax)
                width(kind)  # KeyError here means a record names a type that does not exist
            out[name] = (kind, count)
    return out
