"""Every form of the lane instructions, and one PTX kernel that executes many of them.

A lane instruction computes registers from registers, lane by lane; what touches memory, other lanes or control is
tested by its own suites. A form is an opcode that a record accepts, e.g. `cvt.rzi.ftz.s32.f32`. The kernel gives every
form the same words as operands: for each kind of type (integer, f16, bf16, f32, f64) and operand position one 64-bit
word a lane.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interp.ops import ISA
from ptx.isa import Effect, Op, Vector
from ptx.types import width

KINDS = ("int", "f16", "bf16", "f32", "f64")
POSITIONS = 5
WORDS = len(KINDS) * POSITIONS
IMMEDIATES = {"lut": 0x96}
# what has no operands to compute from, or reads the machine
MACHINE = {"mov.type d, a"}


def kind_of(type: str) -> str:
    """Which input words suit an operand type."""
    base = type.removesuffix("x2")
    return base if base in KINDS else "int"


@dataclass(frozen=True)
class Form:
    """An opcode of a record: its modifiers as the meaning receives them, and the operand types, sources in order."""

    op: Op
    opcode: str
    mods: dict[str, Any]
    sources: tuple[str, ...]
    results: tuple[str, ...]
    immediate: int | None


def lane_records() -> list[Op]:
    """Records of lane instructions: registers in, registers out."""
    return [
        op
        for op in ISA.ops
        if op.effect is Effect.NONE
        and op.syntax not in MACHINE
        and all(o.form in ("reg", "pair", "imm") for o in op.operands)
    ]


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
        if any(r is op for r, _ in ISA._candidates(opcode)):
            yield opcode


def form(op: Op, opcode: str, immediate: int | None = None) -> Form:
    """Resolve an opcode of a record."""
    mods = next(m for r, m in ISA._candidates(opcode) if r is op)
    for spec in op.operands:
        if spec.form == "imm":
            immediate = mods[spec.name] = IMMEDIATES[spec.name] if immediate is None else immediate
    given = op.types(**mods) if callable(op.types) else op.types

    def type_of(name: str) -> str:
        wanted = given.get(name, "type")
        return str(mods.get(wanted, wanted))

    sources = tuple(type_of(n) for s in op.operands if s.form != "imm" and s.name not in op.writes for n in s.names)
    results = tuple(type_of(n) for s in op.operands if s.name in op.writes for n in s.names)
    if op.name == "setp" and sources[0] in ("f16", "bf16"):
        results = results[:1]  # the manual gives these no second result
    return Form(op, opcode, mods, sources, results, immediate)


def forms(op: Op) -> list[Form]:
    return [form(op, o) for o in opcodes(op)]


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


def _operand(type: str, position: int) -> str:
    at = KINDS.index(kind_of(type)) * POSITIONS + position
    if type == "pred":
        return f"%p{at}"
    n = width(type)
    return f"%{'h' if n == 16 else 'r' if n <= 32 else 'd'}{at}"


def ptx(items: Sequence[Form], lanes: int, target: str = "sm_90a") -> str:
    """A module with entry `forms`: parameters input, u64 [lanes, WORDS], and output, u64 [results, lanes]."""
    major, minor = max([(8, 4), *(f.op.since[0] for f in items)])
    lines = [
        f".version {major}.{minor}",
        f".target {target}",
        ".address_size 64",
        ".visible .entry forms(.param .u64 input, .param .u64 output) {",
        f".reg .b64 %d<{WORDS}>; .reg .b32 %r<{WORDS}>; .reg .b16 %h<{WORDS}>; .reg .pred %p<{WORDS}>;",
        ".reg .b64 %in, %out, %o64, %q64; .reg .b32 %t<4>, %o32; .reg .b16 %o16; .reg .pred %op, %oq;",
        "mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t3, %t0, %t1, %t2;",
        f"ld.param.u64 %in, [input]; ld.param.u64 %out, [output]; mad.wide.u32 %in, %t3, {8 * WORDS}, %in;",
        "mad.wide.u32 %out, %t3, 8, %out;",
    ]
    for i in range(WORDS):
        lines += [
            f"ld.global.b64 %d{i}, [%in+{8 * i}]; cvt.u32.u64 %r{i}, %d{i}; cvt.u16.u64 %h{i}, %d{i};",
            f"and.b64 %o64, %d{i}, 1; setp.ne.u64 %p{i}, %o64, 0;",
        ]
    row = 0
    for f in items:
        position, names, after = iter(range(POSITIONS)), [], []
        for spec in f.op.operands:
            if spec.form == "imm":
                names.append(str(f.immediate))
            elif spec.name in f.op.writes:
                written = []
                for type, suffix in zip(f.results, "pq", strict=False):
                    n = 1 if type == "pred" else width(type)
                    reg = f"%o{suffix}" if n == 1 else f"%o{16 if n == 16 else 32 if n <= 32 else 64}"
                    written.append(reg)
                    move = {
                        "%o64": "",
                        "%o32": "cvt.u64.u32 %o64, %o32; ",
                        "%o16": "cvt.u64.u16 %o64, %o16; ",
                    }.get(reg, f"selp.u64 %o64, 1, 0, {reg}; ")
                    after.append(f"{move}st.global.b64 [%out+{8 * lanes * row}], %o64;")
                    row += 1
                names.append("|".join(written))
            else:
                position_ = next(position)
                names.append(_operand(f.sources[position_], position_))
        lines.append(f"{f.opcode} {', '.join(names)};")
        lines += after
    return "\n".join([*lines, "ret;", "}", ""])


def vector_form(op: Op, vector: Vector) -> tuple[Form, list[int]]:
    """The form of a record's example, and its source words; an immediate is the last of the words."""
    sources = list(vector.sources)
    has_immediate = any(spec.form == "imm" for spec in op.operands)
    return form(op, op.name + vector.mods, sources.pop() if has_immediate else None), sources


def rows(items: Sequence[Form]) -> Iterator[tuple[Form, int]]:
    """(form, index of the result) of each output row of `ptx(items, …)`."""
    for f in items:
        for i in range(len(f.results)):
            yield f, i
