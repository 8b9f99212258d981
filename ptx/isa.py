"""The instruction record: everything the project knows about one PTX instruction, in one place.

This module holds the *type* of a record and the table that finds one; the *entries* live in `interp/ops/`, one file a
chapter of the PTX manual. The verifier, liveness and accounting take the table as an argument, so that a test can pass
a toy instruction set, and nothing here depends on how an instruction is executed.

A record is declared by decorating its meaning:

    @isa.op("add{.sat}.type d, a, b", type=(".u32", ".s32"), cost=Cost.INT, ref="integer-arithmetic-instructions-add")
    def add(k, type, sat): ...

**Syntax line.** The manual's own: opcode with modifiers, then operands.

* `.name` where `name` is a keyword argument: exactly one of those alternatives; otherwise the literal modifier.
* `{.name}`: optional. The meaning receives the alternative without its dot (or None); for an optional literal, a bool.
* operands: `d` (register or, where it is read, also an immediate), `d|p` (pair), `[a]` (address),
  `{d}` (vector), `#n` (integer immediate, handed to the meaning as a Python int when the form is built);
  `{, c}` optional. Operands called `d`, or listed in `writes`, are written; all others are read.

**Types.** `types` maps an operand to the name of a modifier (`"type"`), to a literal PTX type (`"u32"`), to `"addr"`,
or to a pair (type, count) for vectors; it may be a function of the modifiers. Default: the modifier `type` for all.

**Meaning.** `meaning(k, **modifiers)` runs once a form against a kit `k` (interp/kit.py) and returns a function of the
source operands that gives the destination words. It has no Python control flow on values, so the same text is executed
over vectors by the compiled engine, over lane arrays by the traced engine and over plain integers in tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ptx import ir
from ptx.errors import InternalError, InvalidInput, Unsupported, Where
from ptx.types import width


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


class Varies(Enum):
    """How a result depends on the lane, for the uniformity analysis."""

    WITH_INPUTS = 0
    ALWAYS = 1
    NEVER = 2


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand of a syntax line. `form`: "reg", "pair", "mem", "vec" or "imm"."""

    names: tuple[str, ...]
    form: str
    optional: bool

    @property
    def name(self) -> str:
        return self.names[0]


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

    @property
    def doc(self) -> str:
        return (self.meaning.__doc__ or "").strip()


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
        """Pair the syntax line's operands with those of `inst`; InvalidInput when their number is wrong."""
        specs = self.op.operands
        required = sum(not s.optional for s in specs)
        if not required <= len(inst.operands) <= len(specs):
            wanted = str(required) if required == len(specs) else f"{required} to {len(specs)}"
            raise InvalidInput(
                f"'{inst.opcode}' takes {wanted} operands, not {len(inst.operands)}",
                where=place(inst),
                help=f"the form is: {self.op.syntax}",
            )
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


# ------------------------------------------------------------------------------------------------ syntax lines
_MOD = re.compile(r"\{\.([A-Za-z0-9_:]+)\}|\.([A-Za-z0-9_:]+)")


def _compile_mods(text: str, choices: Mapping[str, tuple[str, ...]]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    out, flags, at = [], [], 0
    for m in _MOD.finditer(text):
        if m.start() != at:
            raise InternalError(f"bad syntax line near '{text[at:]}'")
        at = m.end()
        optional, name = (True, m[1]) if m[1] else (False, m[2])
        key = name.replace("::", "_")
        if key in choices:
            alternatives = sorted(choices[key], key=len, reverse=True)
            body = "|".join(re.escape(c) for c in alternatives)
            # an alternative must end at a dot or at the end: '.L1' must not match inside '.L1::evict_last'
            out.append(f"(?P<{key}>(?:{body})(?=\\.|$))" + ("?" if optional else ""))
        elif optional:
            flags.append(key)
            out.append(f"(?P<{key}>\\.{re.escape(name)}(?=\\.|$))?")
        else:
            out.append(f"\\.{re.escape(name)}(?=\\.|$)")
    if at != len(text):
        raise InternalError(f"bad syntax line near '{text[at:]}'")
    return re.compile("".join(out)), tuple(flags)


_OPERAND = re.compile(r"(\{,\s*)?(\[\w+\]|\{\w+\}|#\w+|\w+\|\w+|\w+)(\s*\})?\s*,?\s*")


def _compile_operands(text: str) -> tuple[OperandSpec, ...]:
    out, at = [], 0
    while at < len(text):
        m = _OPERAND.match(text, at)
        if m is None:
            raise InternalError(f"bad operand list near '{text[at:]}'")
        at = m.end()
        word, optional = m[2], m[1] is not None
        if word.startswith("["):
            out.append(OperandSpec((word[1:-1],), "mem", optional))
        elif word.startswith("{"):
            out.append(OperandSpec((word[1:-1],), "vec", optional))
        elif word.startswith("#"):
            out.append(OperandSpec((word[1:],), "imm", optional))
        elif "|" in word:
            out.append(OperandSpec(tuple(word.split("|")), "pair", optional))
        else:
            out.append(OperandSpec((word,), "reg", optional))
    return tuple(out)


class Isa:
    """The table of records. `version`: the PTX ISA version whose manual was read."""

    def __init__(self, version: tuple[int, int]) -> None:
        self.version = version
        self.ops: list[Op] = []
        self._by_name: dict[str, list[Op]] = {}
        self._forms: dict[str, Form | None] = {}

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
        **choices: Iterable[str],
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a record; the decorated function is its meaning.

        `since`: lowest (PTX version, sm) of the whole record. `constraint(**mods)` returns why a combination of
        modifiers is illegal, or None. `writes`: names of written operands.
        """
        head, _, tail = syntax.partition(" ")
        name = re.match(r"[a-z_0-9]+", head)
        if name is None:
            raise InternalError(f"bad syntax line '{syntax}'")
        chosen = {k: tuple(v) for k, v in choices.items()}
        pattern, flags = _compile_mods(head[name.end() :], chosen)

        def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
            record = Op(
                syntax=syntax,
                name=name[0],
                pattern=pattern,
                choices=chosen,
                flags=flags,
                operands=_compile_operands(tail.strip()),
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
            )
            self.ops.append(record)
            self._by_name.setdefault(record.name, []).append(record)
            return meaning

        return declare

    def lookup(self, opcode: str) -> Form | None:
        """The form of a full opcode (`ld.global.v4.b32`), or None when no record has it. Cached."""
        if opcode not in self._forms:
            self._forms[opcode] = self._find(opcode)
        return self._forms[opcode]

    def match(self, inst: ir.Inst) -> Form:
        """The form of an instruction; Unsupported when no record has it, with the nearest records as help."""
        form = self.lookup(inst.opcode)
        if form is None:
            near = self._by_name.get(inst.op)
            raise Unsupported(
                f"instruction '{inst.opcode}' is not modelled",
                where=place(inst),
                notes=tuple(f"modelled form: {o.syntax.split(' ')[0]}" for o in near or ()),
                help="nothing was executed; report the instruction, or compile the kernel without it",
            )
        return form

    def reads_writes(self, inst: ir.Inst) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Register names that `inst` reads and writes, its guard not included."""
        reads: list[str] = []
        writes: list[str] = []
        for spec, operand in self.match(inst).bind(inst):
            written = spec.name in self.match(inst).op.writes
            for reg in registers(operand):
                (writes if written and not isinstance(operand, ir.Mem) else reads).append(reg.name)
        return tuple(reads), tuple(writes)

    def _find(self, opcode: str) -> Form | None:
        name, dot, rest = opcode.partition(".")
        for record in self._by_name.get(name, ()):
            m = record.pattern.fullmatch(dot + rest)
            if m is None:
                continue
            mods: dict[str, Any] = {}
            for key, text in m.groupdict().items():
                mods[key] = text is not None if key in record.flags else (text[1:] if text else None)
            if record.constraint is not None and record.constraint(**mods) is not None:
                continue
            return Form(record, mods, _resolve_types(record, mods), opcode)
        return None


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
                width(kind)  # KeyError here means a record names a type that does not exist
            out[name] = (kind, count)
    return out


def registers(operand: ir.Operand) -> tuple[ir.Reg, ...]:
    """All registers named in an operand."""
    match operand:
        case ir.Reg():
            return (operand,)
        case ir.Not(reg):
            return (reg,)
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


