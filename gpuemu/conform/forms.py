"""Every form of the lane instructions, and one PTX kernel that executes many of them.

A lane instruction computes registers from registers, lane by lane; what touches memory, other lanes or control is
tested by its own suites. A form is an opcode that a record accepts, e.g. `cvt.rzi.ftz.s32.f32`. The kernel gives every
form the same words as operands: for each kind of type (integer, f16, bf16, f32, f64) and operand position one 64-bit
word a lane.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from interp.kits.exact import ExactKit
from interp.ops import ISA
from ptx import types
from ptx.isa import Effect
from ptx.record import Op, Vector
from ptx.types import Kind, width

KINDS = ("int", "f16", "bf16", "f32", "f64")
POSITIONS = 5
WORDS = len(KINDS) * POSITIONS
CARRY, FLAG = "carry", "flag"
"""Operands that the records have and PTX texts have not (`ptx.carry`)."""
IMMEDIATES = {"lut": 0x96}
# what has no operands to compute from, or reads the machine
MACHINE = {"mov.type d, a"}


def kind_of(type: str) -> str:
    """Which input words suit an operand type."""
    base = type.removesuffix("x2")
    return base if base in KINDS else "int"


@dataclass(frozen=True)
class Form:
    """An opcode of a record: types of its sources in order, the parts of vectors one by one, and of its results (of a
    word of 128 bits, its halves); its
    modifiers as the meaning receives them; `lengths`: of each source operand, 0 for a scalar. `parts`: what operands
    are of their registers (`Op.parts`), and None for those that are left out."""

    op: Op
    opcode: str
    mods: dict[str, Any]
    sources: tuple[str, ...]
    results: tuple[str, ...]
    immediate: int | None
    lengths: tuple[int, ...]
    parts: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The opcode; if an earlier record has it with fewer operands, their number too; parts of registers."""
        first = next(op for op, _ in ISA._candidates(self.opcode))
        key = self.opcode if first is self.op else f"{self.opcode} of {len(self.sources)}"
        return " ".join([key, *(f"{name}.{part}" for name, part in self.parts.items() if part)])

    def wide(self, name: str) -> bool:
        """Whether an operand is a register of 128 bits."""
        given = self.op.types(**self.mods) if callable(self.op.types) else self.op.types
        return given.get(name) == "b128"

    def operands(self, words: Sequence[Any]) -> list[Any]:
        """Source words as the meaning takes them: those of a vector together."""
        rest = iter(words)
        return [[next(rest) for _ in range(n)] if n else next(rest) for n in self.lengths]


def lane_records() -> list[Op]:
    """Records of lane instructions that a text can hold: registers in, registers out."""
    return [
        op
        for op in ISA.ops
        if op.effect is Effect.NONE
        and op.syntax not in MACHINE
        and not op.counted
        and not op.internal
        and all(o.form in ("reg", "pair", "imm") or (o.form == "vec" and o.name not in op.writes) for o in op.operands)
    ]


def target_of(op: Op) -> str:
    """The oldest target that all of the records like this one assemble for."""
    if op.since[1] <= 90:
        return "sm_90a"
    return "sm_100a" if op.since[1] < 120 else "sm_120a"


_VERSIONS = {"sm_90a": (8, 4), "sm_100a": (8, 6), "sm_120a": (8, 7)}
"""The first PTX version for a target, or a later one that its common instructions need."""


def exact_kit(op: Op) -> ExactKit:
    """The exact kit for the device of `target_of`."""
    kit = ExactKit()
    kit.device = int(target_of(op).removeprefix("sm_").removesuffix("a"))
    return kit


def opcodes(op: Op) -> Iterator[str]:
    """Every opcode that a record's syntax line spells and its constraint allows."""
    head = op.syntax.partition(" ")[0][len(op.name) :]
    parts: list[list[str]] = []
    at = 0
    while at < len(head):
        optional = head[at] == "{"
        end = (
            head.index("}", at)
            if optional
            else min((i for i in (head.find(c, at + 1) for c in ".{") if i > 0), default=len(head))
        )
        name = head[at + 2 : end] if optional else head[at + 1 : end]
        key = name.replace("::", "_")
        alternatives = list(op.choices[key]) if key in op.choices else ["." + name]
        parts.append(["", *alternatives] if optional else alternatives)
        at = end + 1 if optional else end
    for chosen in itertools.product(*parts):
        opcode = op.name + "".join(chosen)
        if any(r is op for r, _ in ISA._as_written(opcode)):
            yield opcode


def form(
    op: Op, opcode: str, immediate: int | None = None, parts: Mapping[str, str | None] | None = None
) -> Form:
    """Resolve an opcode of a record. `parts`: of the operands that may be parts of registers, all of them by default;
    an optional operand is left out then if it may be."""
    mods = next(m for r, m in ISA._candidates(opcode) if r is op)
    parts = plain_parts(op, mods) if parts is None else parts
    mods |= {f"{name}_part": part for name, part in parts.items()}
    given_operands = [spec for spec in op.operands if parts.get(spec.name, "") is not None]
    for spec in op.operands:
        if spec.form == "imm":
            immediate = mods[spec.name] = IMMEDIATES[spec.name] if immediate is None else immediate
    given = op.types(**mods) if callable(op.types) else op.types

    def type_of(name: str) -> tuple[str, int]:
        wanted = given.get(name, "type")
        base, count = wanted if isinstance(wanted, tuple) else (wanted, 0)
        return str(mods.get(base, base)), count

    read = [type_of(n) for s in given_operands if s.form != "imm" and s.name not in op.writes for n in s.names]
    read = [("b64", 2) if type == "b128" else (type, count) for type, count in read]
    sources = tuple(type for type, count in read for _ in range(max(count, 1)))
    lengths = tuple(count for _, count in read)
    results = tuple(type_of(n)[0] for s in op.operands if s.name in op.writes for n in s.names)
    if results == ("b128",):
        results = ("b64", "b64")
    if op.name == "setp" and sources[0] in ("f16", "bf16"):
        results = results[:1]  # the manual gives these no second result
    return Form(op, opcode, mods, sources, results, immediate, lengths, parts)


def plain_parts(op: Op, mods: Mapping[str, Any]) -> dict[str, str | None]:
    """No parts of registers, and as few operands as that leaves."""
    whole: dict[str, str | None] = dict.fromkeys(op.parts, "")
    least = whole | {s.name: None for s in op.operands if s.optional and s.name in whole}
    return least if legal_parts(op, mods, least) else whole


def legal_parts(op: Op, mods: Mapping[str, Any], parts: Mapping[str, str | None]) -> bool:
    """Whether a record's constraint takes these parts of registers."""
    named = {f"{name}_part": part for name, part in parts.items()}
    return op.constraint is None or op.constraint(**{**mods, **named}) is None


def forms(op: Op) -> list[Form]:
    """A form for each opcode. Of a record whose operands may be parts of registers two or three more: with parts of
    the sources, and with a part of the destination too, chosen by the opcode; and those of its examples."""
    out = []
    for opcode in opcodes(op):
        out.append(plain := form(op, opcode))
        for written in (False, True) if op.parts else ():
            rng, drawn = Random(f"{opcode} {written}"), dict[str, str | None]()
            drawn |= {n: rng.choice(p) for n, p in op.parts.items() if (n in op.writes) <= written}
            if written <= any(n in op.writes for n in op.parts):
                for parts in ({**plain.parts, **drawn}, {**dict.fromkeys(op.parts, ""), **drawn}):
                    if legal_parts(op, plain.mods, parts):
                        out.append(form(op, opcode, parts=parts))
                        break
    out += [vector_form(op, v)[0] for v in op.vectors if op.parts]
    return list({f.key: f for f in out}.values())


def spread(items: Sequence[Form], most: int) -> list[Form]:
    """At most `most` of the forms, every modifier value among them as far as that goes, chosen by what is new."""
    if len(items) <= most:
        return list(items)
    seen: set[tuple[str, Any]] = set()
    out: list[Form] = []
    rest = list(items)
    while rest and len(out) < most:
        best = max(rest, key=lambda f: sum(pair not in seen for pair in f.mods.items()))
        if all(pair in seen for pair in best.mods.items()):
            best = rest[len(rest) * len(out) // most % len(rest)]
        rest.remove(best)
        out.append(best)
        seen.update(best.mods.items())
    return out


def _of_bytes(f: Form, type: str) -> bool:
    """Whether an operand takes a register of 8 bits: packed formats do, and conversions between bf16 and bytes."""
    bytes_of_bf16 = f.op.name == "cvt" and ".bf16" in f.opcode
    return width(type) == 8 and (bytes_of_bf16 or types.kind(type) is Kind.PACKED)


def _operand(type: str, position: int, of_bytes: bool = False) -> str:
    at = KINDS.index(kind_of(type)) * POSITIONS + position
    if type == "pred":
        return f"%p{at}"
    n = width(type)
    if of_bytes:
        return f"%c{at}"
    return f"%{'h' if n == 16 else 'r' if n <= 32 else 'd'}{at}"


def _result(type: str, suffix: str, of_bytes: bool) -> tuple[str, str]:
    """The register that takes a result, and the instruction that moves it to %o64."""
    n = width(type)
    if n == 1:
        return f"%o{suffix}", f"selp.u64 %o64, 1, 0, %o{suffix}; "
    if of_bytes:
        extended = "cvt.s32.s8 %q32, %o8; cvt.u64.u32 %o64, %q32; " if type == "s8" else "cvt.u64.u8 %o64, %o8; "
        return "%o8", extended
    if n == 16:
        return "%o16", "cvt.u64.u16 %o64, %o16; "
    if n <= 32:
        register = "%o32" if suffix == "p" else "%q32"
        return register, f"cvt.u64.u32 %o64, {register}; "
    return "%o64", ""


def _part(register: str, part: str | None) -> str:
    """An operand that is a part of a register, or negated."""
    if not part:
        return register
    selector = part.removeprefix("-")
    return "-" * (part[0] == "-") + register + ("." + selector if selector else "")


def ptx(items: Sequence[Form], lanes: int, target: str = "sm_90a") -> str:
    """A module with entry `forms`: parameters input, u64 [lanes, WORDS], and output, u64 [results, lanes]."""
    major, minor = max(_VERSIONS.get(target, (8, 4)), *(n.version for f in items for n in ISA.needs_of(f.op, f.mods)))
    lines = [
        f".version {major}.{minor}",
        f".target {target}",
        ".address_size 64",
        ".visible .entry forms(.param .u64 input, .param .u64 output) {",
        f".reg .b64 %d<{WORDS}>; .reg .b32 %r<{WORDS}>; .reg .b16 %h<{WORDS}>; .reg .pred %p<{WORDS}>;",
        ".reg .b64 %in, %out, %o64, %q64; .reg .b32 %t<4>, %o32, %q32; .reg .b16 %o16; .reg .pred %op, %oq;",
        f".reg .b8 %c<{WORDS}>, %o8;",
        "mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t3, %t0, %t1, %t2;",
        f"ld.param.u64 %in, [input]; ld.param.u64 %out, [output]; mad.wide.u32 %in, %t3, {8 * WORDS}, %in;",
        "mad.wide.u32 %out, %t3, 8, %out;",
    ]
    if any(f.wide(spec.name) for f in items for spec in f.op.operands):
        lines.append(".reg .b128 %wide, %wide<4>;")
    for i in range(WORDS):
        lines += [
            f"ld.global.b64 %d{i}, [%in+{8 * i}]; cvt.u32.u64 %r{i}, %d{i}; cvt.u16.u64 %h{i}, %d{i};",
            f"and.b64 %o64, %d{i}, 1; setp.ne.u64 %p{i}, %o64, 0; mov.b16 {{%c{i}, %o8}}, %h{i};",
        ]
    row = 0
    for f in items:
        position, lengths, names, after = iter(range(POSITIONS)), iter(f.lengths), [], []
        for spec in f.op.operands:
            if spec.form == "imm":
                names.append(str(f.immediate))
            elif spec.form == "reg" and f.wide(spec.name):
                if spec.name in f.op.writes:
                    names.append("%wide")
                    after.append("mov.b128 {%o64, %q64}, %wide;")
                    after += [f"st.global.b64 [%out+{8 * lanes * (row + i)}], %{h}64;" for i, h in enumerate("oq")]
                    row += 2
                else:
                    next(lengths)
                    halves = [_operand("b64", p) for p in itertools.islice(position, 2)]
                    names.append(f"%wide{len(names)}")
                    lines.append(f"mov.b128 {names[-1]}, {{{', '.join(halves)}}};")
            elif spec.name in f.op.writes:
                written = []
                for name, type, suffix in zip(spec.names, f.results, "pq", strict=False):
                    register, move = _result(type, suffix, _of_bytes(f, type))
                    if name == CARRY:
                        register, move = "%o32", "addc.u32 %o32, 0, 0; cvt.u64.u32 %o64, %o32; "
                    else:
                        written.append(_part(register, f.parts.get(spec.name)))
                    after.append(f"{move}st.global.b64 [%out+{8 * lanes * row}], %o64;")
                    row += 1
                names.append("|".join(written))
            elif f.parts.get(spec.name, "") is not None:
                if spec.name == FLAG:
                    p = _operand("pred", next(position))
                    lines.append(f"selp.u32 %t0, 1, 0, {p}; add.cc.u32 %t0, %t0, 0xFFFFFFFF;")
                    continue
                taken = itertools.islice(position, max(next(lengths), 1))
                parts = [_operand(f.sources[p], p, _of_bytes(f, f.sources[p])) for p in taken]
                whole = "{" + ", ".join(parts) + "}" if spec.form == "vec" else parts[0]
                names.append(_part(whole, f.parts.get(spec.name)))
        lines.append(f"{f.opcode} {', '.join(names)};")
        lines += after
    return "\n".join([*lines, "ret;", "}", ""])


def vector_form(op: Op, vector: Vector) -> tuple[Form, list[int]]:
    """The form of a record's example, and its source words; an immediate is the last of the words. Behind the
    modifiers may stand parts of registers: `.u32.u32.u32 d.h0 a.b1`."""
    sources = list(vector.sources)
    has_immediate = any(spec.form == "imm" for spec in op.operands)
    mods, *named = vector.mods.split(" ")
    parts: dict[str, str | None] | None = None
    if named:
        reads = [s for s in op.operands if s.name not in op.writes]
        parts = {n: None if any(s.name == n for s in reads[len(sources) :]) else "" for n in op.parts}
        parts |= {n: p for n, _, p in (text.partition(".") for text in named)}
    return form(op, op.name + mods, sources.pop() if has_immediate else None, parts), sources


def rows(items: Sequence[Form]) -> Iterator[tuple[Form, int]]:
    """(form, index of the result) of each output row of `ptx(items, …)`."""
    for f in items:
        for i in range(len(f.results)):
            yield f, i
