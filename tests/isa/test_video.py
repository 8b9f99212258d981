"""Video instructions against a statement of their own, in exact integers: any types, selectors, clamps and second
operations. Where the assembler's code departs from the manual, so does this (docstring of `interp.ops.video`); the
answers of an H200 judge both (`test_compiled.py`)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ptx
from gpuemu.conform.forms import Form, exact_kit, form, forms, lane_records, legal_parts
from interp.ops import ISA
from ptx.errors import InvalidInput
from ptx.record import Op
from ptx.verify import verify
from tests.ptx_front.texts import kernel_text

WORDS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x80FF_7F01, 31, 33)
VIDEO = [op for op in lane_records() if "video" in op.ref]


def signed(word: int, bits: int) -> int:
    word &= (1 << bits) - 1
    return word - (1 << bits) if word >> bits - 1 else word


def number(word: int, type: str, bits: int = 32) -> int:
    return signed(word, bits) if type == "s32" else word & (1 << bits) - 1


def between(value: int, type: str, bits: int) -> int:
    least, largest = (-(1 << bits - 1), (1 << bits - 1) - 1) if type == "s32" else (0, (1 << bits) - 1)
    return max(least, min(value, largest))


def field(part: str) -> tuple[int, int]:
    """First bit and size of a part of a register."""
    size = {"b": 8, "h": 16, "": 32}[part[:1]]
    return int(part[1:] or 0) * size, size


def source(word: int, type: str, part: str) -> int:
    at, size = field(part)
    return number(word >> at, type, size)


COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def arithmetic(name: str, a: int, b: int, m: dict[str, Any]) -> int:
    match name:
        case "vadd":
            return a + b
        case "vsub":
            return a - b
        case "vabsdiff":
            return abs(a - b)
        case "vmin":
            return min(a, b)
        case "vmax":
            return max(a, b)
        case "vavrg":
            return (a + b + 1 if a + b >= 0 else a + b) // 2
        case "vset":
            return int(COMPARE[m["cmp"]](a, b))
    by = min(b, 32) if m["mode"] == "clamp" else b % 32
    return a << by if name == "vshl" else a >> by


def scalar(name: str, m: dict[str, Any], a: int, b: int, c: int) -> int:
    value = arithmetic(name, source(a, m["atype"], m["a_part"]), source(b, m.get("btype", "u32"), m["b_part"]), m)
    at, size = field(m["d_part"])
    type = m.get("dtype", m["atype"])
    shift, sat = name in ("vshl", "vshr"), m.get("sat", False)
    if sat and shift:
        value = between(signed(value, 34), type, 32)
    elif sat and size < 32:
        value = min(value % (1 << 64), between(1 << 40, type, size))
    elif sat:
        value = between(value, type, 32) if type == "s32" else max(value, 0)
    if m["op2"] in ("min", "max"):
        first = signed(value, 32) if name in ("vadd", "vsub") or shift and sat else value
        first, second = (signed(x, 64) if type == "s32" else x % (1 << 64) for x in (first, number(c, type)))
        value = min(first, second) if m["op2"] == "min" else max(first, second)
    elif m["op2"] == "add":
        value += c
    mask = (1 << size) - 1 << at
    return (c & ~mask | value << at & mask) % (1 << 32)


def vmad(m: dict[str, Any], a: int, b: int, c: int) -> int:
    names = ("a_part", "b_part", "c_part")
    minus = [m[n].startswith("-") for n in names]
    parts = [m[n].removeprefix("-") for n in names]
    x, y = (source(w, t if p else "s32", p) for w, t, p in ((a, m["atype"], parts[0]), (b, m["btype"], parts[1])))
    product, third = x * y * (-1) ** (minus[0] != minus[1]), signed(c, 32) * (-1) ** minus[2]
    value = product + third + m["po"]
    type = "s32" if "s32" in (m["atype"], m["btype"]) or minus[0] != minus[1] or minus[2] else "u32"
    if m["scale"]:
        value = (value if type == "s32" else value % (1 << 64)) >> int(m["scale"][3:])
    return (between(value, type, 32) if m["sat"] else value) % (1 << 32)


def simd(name: str, m: dict[str, Any], a: int, b: int, c: int) -> int:
    count = int(name[-1])
    size, both = 32 // count, b << 32 | a
    digits = {n: [int(x) for x in reversed(m[f"{n}_part"][1:])] for n in "dab"}
    first, second = digits["a"] or range(count), digits["b"] or range(count, 2 * count)
    chosen, out = digits["d"] or range(count), c
    for i, (x, y) in enumerate(zip(first, second, strict=True)):
        pair = (number(both >> size * n, m[t], size) for n, t in ((x, "atype"), (y, "btype")))
        value = arithmetic(name[:-1], *pair, m)
        if m.get("sat"):
            value = between(value, m["dtype"], size)
        if i in chosen:
            mask = (1 << size) - 1 << size * i
            out = out + value if m["add"] else out & ~mask | value << size * i & mask
    return out % (1 << 32)


def expected(f: Form, a: int, b: int, c: int) -> int:
    name = f.op.name
    if name[-1].isdigit():
        return simd(name, f.mods, a, b, c)
    return vmad(f.mods, a, b, c) if name == "vmad" else scalar(name, f.mods, a, b, c)


def drawn(op: Op, f: Form, rng: Random) -> Form:
    """The form with other parts of registers, where its constraint takes them."""
    parts: dict[str, str | None] = {n: rng.choice(p) for n, p in op.parts.items()}
    return form(op, f.opcode, parts=parts) if legal_parts(op, f.mods, parts) else f


@pytest.mark.parametrize("op", VIDEO, ids=lambda op: op.name)
def test_against_exact_integers(op: Op) -> None:
    rng, wrong = Random(op.name), []
    for f in forms(op):
        f = drawn(op, f, rng) if rng.random() < 0.5 else f
        function = op.meaning(exact_kit(op), **f.mods)
        for _ in range(12):
            words = [rng.choice(WORDS) if rng.random() < 0.5 else rng.getrandbits(32) for _ in range(3)]
            got, want = function(*words[: len(f.sources)]), expected(f, *words)
            if got != want:
                wrong.append(f"{f.key} {[hex(w) for w in words]}: {got:#x}, not {want:#x}")
    assert wrong == []


def test_every_instruction_is_there() -> None:
    scalars = {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"}
    packed = {f"v{n}{c}" for n in ("add", "sub", "avrg", "absdiff", "min", "max", "set") for c in (2, 4)}
    assert {op.name for op in VIDEO} == scalars | packed


REFUSED = [
    ("mov.b32 %r1, %r2.b0;", "does not take these operands"),
    ("add.s32 %r1, -%r2, %r2;", "does not take these operands"),
    ("vadd.s32.s32.s32 %r1, %r2.b4, %r2;", "operand a cannot be part .b4"),
    ("vadd.s32.s32.s32 %r1, -%r2, %r2;", "operand a cannot be negated so"),
    ("vadd.s32.s32.s32 %r1, %r2, %rd1.h0;", "register %rd1 is .b64"),
    ("vadd.s32.s32.s32 %r1.h0, %r2, %r2;", "the rest of d comes from it"),
    ("vadd.s32.s32.s32.add %r1, %r2, %r2;", "the second operation takes it"),
    ("vadd.s32.s32.s32.add %r1.h0, %r2, %r2, %r2;", "exclude each other"),
    ("vadd2.s32.s32.s32 %r1.h01, %r2, %r2, %r2;", "operand d cannot be part .h01"),
    ("vmad.s32.s32.s32.po %r1, -%r2, %r2, %r2;", "exclude each other"),
    ("vmad.s32.s32.s32 %r1, -%r2, %r2, -%r2;", "either the product is negated, or c"),
    ("vmad.s32.s32.s32 %r1, %r2, %r2, %r2.h0;", "operand c cannot be part .h0"),
]
"""As the assembler refuses them."""
TAKEN = [
    "vadd.s32.u32.s32.sat %r1, %r2.b3, %r2.h1;",
    "vadd.s32.u32.s32.add.sat %r1, %r2, 5, %r2;",
    "vshl.s32.u32.u32.wrap %r1.h1, %r2.b2, %r2.b1, %r2;",
    "vmad.s32.s32.s32.shr7.sat %r1, -%r2.h0, -%r2, -%r1;",
    "vadd4.s32.s32.u32 %r1.b310, %r2.b7654, %r2.b0123, %r2;",
]


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_refused(body: str, message: str) -> None:
    found = verify(ptx.parse(kernel_text(body)), ISA)
    assert [d.kind for d in found] == [InvalidInput.kind]
    assert message in found[0].what


@pytest.mark.parametrize("body", TAKEN)
def test_taken(body: str) -> None:
    assert verify(ptx.parse(kernel_text(body)), ISA) == []
