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
  `{, c}` optional. Operands called `d`, or listed in `writes`, are written; all others are read. Records of one
  opcode may differ in which operands are vectors (`mov.b64 d, a` and `mov.b64 d, {a}`). For an operand listed in
  `counted` the number of vector elements (of a tensor address: coordinates) is given to `types` and to the meaning as
  `<operand>_count`.
* `parts` maps operands that may be a part of a register (`a.h0`), or negated, to the parts that they may be; "" is all
  of it, "-" and "-h0" are negated. The meaning receives what was written as `<operand>_part`, or None for an optional
  operand that is left out, and the register as it is.
* a register of 128 bits is handed over as the pair of its halves, the low one first (`ptx.flatten.halves`).

**Types.** `types` maps an operand to the name of a modifier (`"type"`), to a literal PTX type (`"u32"`), to `"addr"`,
or to a pair (type, count) for vectors; it may be a function of the modifiers. Default: the modifier `type` for all.

**Meaning.** `meaning(k, **modifiers)` runs once a form against a kit `k` (interp/kit.py) and returns a function of the
source operands that gives the destination words. It has no Python control flow on values, so the same text is executed
over vectors by the compiled engine, over lane arrays by the traced engine and over plain integers in tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ptx import ir
from ptx.errors import InternalError, InvalidInput, Unsupported, Where
from ptx.nearest import nearest, nearest_name
from ptx.syntax_line import OperandSpec, compile_mods, compile_operands, reorderings
from ptx.types import is_type, width


class Cost(Enum):
    """Issue class of an instruction; names follow Nsight Compute's pipes where the meaning is the same."""

    INT = "alu"
    FP32 = "fma"
    FP64 = "fp64"
    FP16 = "fp16"
    SFU = "xu"
    CONVERT = "cvt"
    MOVE = "move"
    LOAD_STORE = "lsu"
    ATOMIC = "atomic"
    TENSOR = "tensor"
    CONTROL = "control"
    SYNC = "sync"
    ASYNC = "async"


class Effect(Enum):
    """What an instruction does besides writing its destination registers."""

    NONE = "none"
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    WARP = "exchanges values between lanes"
    BARRIER = "waits for other warps"
    BRANCH = "transfers control"
    EXIT = "ends the thread"
    ASYNC = "starts or awaits an asynchronous operation"
    FENCE = "orders memory"
    CALL = "transfers control by plain branches that stand behind it (ptx.flatten)"


class Varies(Enum):
    """How a result depends on the lane, for the uniformity analysis."""

    WITH_INPUTS = 0
    ALWAYS = 1
    NEVER = 2


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
    """One instruction record; see the module docstring for the fields' meaning."""

    syntax: str
    name: str
    pattern: re.Pattern[str]
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
    constraint: Callable[..., str | None] | None = None
    counted: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    settles: bool = False
    internal: bool = False
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def accepts(self, operands: tuple[ir.Operand, ...]) -> bool:
        """Whether vectors, addresses and immediates stand where the syntax line has them."""
        if len(operands) > len(self.operands):
            return False
        return all(
            spec.name in self.parts if isinstance(operand, ir.Part) else _fits(spec, operand)
            for spec, operand in zip(self.operands, operands, strict=False)
        )

    def modifiers(self, text: str) -> dict[str, Any] | None:
        """What the meaning receives for an opcode's modifiers, given with their dots; None when they do not fit."""
        m = self.pattern.fullmatch(text)
        return m and {k: t is not None if k in self.flags else (t[1:] if t else None) for k, t in m.groupdict().items()}

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

    def type_of(self, name: str) -> str:
        return self.types[name][0]

    def count_of(self, name: str) -> int:
        return self.types[name][1]

    def bind(self, inst: ir.Inst) -> list[tuple[OperandSpec, ir.Operand]]:
        """Pair the syntax line's operands with those of `inst`, parts of registers as the registers; InvalidInput when
        their number is wrong."""
        specs = self.op.operands
        required = sum(not s.optional for s in specs)
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


class Isa:
    """The table of records. `version`: the PTX ISA version whose manual was read."""

    def __init__(self, version: tuple[int, int]) -> None:
        self.version = version
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
        vectors: Iterable[Vector] = (),
        constraint: Callable[..., str | None] | None = None,
        counted: Iterable[str] = (),
        in_place: Iterable[str] = (),
        settles: bool = False,
        internal: bool = False,
        parts: Mapping[str, Iterable[str]] | None = None,
        **choices: Iterable[str],
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a record; the decorated function is its meaning.

        `since`: lowest (PTX version, sm) of the whole record. `constraint(**mods)` returns why a combination of
        modifiers is illegal, or None; it is asked again with integer immediates and counts, which need defaults.
        `writes`: names of written operands. `in_place`: operands read and written where the machine keeps them, now or
        later (the meaning gets their places, see `interp.ops.wgmma`); `settles`: may complete such earlier ones.
        `internal`: stands in no text; passes make it (`Inst.made`), or it replaces what stands there.
        """
        head, _, tail = syntax.partition(" ")
        name = re.match(r"[a-z_0-9]+", head)
        if name is None:
            raise InternalError(f"bad syntax line '{syntax}'")
        chosen = {k: tuple(v) for k, v in choices.items()}
        pattern, flags = compile_mods(head[name.end() :], chosen)

        def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
            record = Op(
                syntax=syntax,
                name=name[0],
                pattern=pattern,
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
                constraint=constraint,
                counted=tuple(counted),
                in_place=tuple(in_place),
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
        """Records that have an opcode. The assembler takes modifiers in other orders than the manual's, types apart;
        so do these, when nothing has them as they stand."""
        found = False
        for item in self._as_written(opcode):
            found = True
            yield item
        if not found and opcode.partition(".")[0] in self._by_name:
            again = (list(self._as_written(other)) for other in reorderings(opcode))
            yield from next(filter(None, again), ())

    def _as_written(self, opcode: str) -> Iterator[tuple[Op, dict[str, Any]]]:
        name, dot, rest = opcode.partition(".")
        for record in self._by_name.get(name, ()):
            mods = record.modifiers(dot + rest)
            if mods is not None and (record.constraint is None or record.constraint(**mods) is None):
                yield record, mods

    def _find(self, inst: ir.Inst) -> Form:
        candidates = list(self._candidates(inst.opcode))
        for record, mods in candidates:
            if not record.accepts(inst.operands):
                continue
            for spec, operand in zip(record.operands, inst.operands, strict=False):
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
            return Form(record, mods, _resolve_types(record, mods), inst.opcode)
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


