"""Operand and literal texts → IR, nested scopes, variables and their initial bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptx
from ptx import ir
from ptx.printer import print_operand
from ptx.scope import Names, Scope
from tests.ptx_front.texts import HEADER, insts, kernel, kernel_text

R1, R2, RD1, P1 = ir.Reg("%r1", "b32"), ir.Reg("%r2", "b32"), ir.Reg("%rd1", "b64"), ir.Reg("%p1", "pred")


def f64(value: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits


OPERANDS = [
    ("%r1", R1),
    ("7", ir.Imm(7)),
    ("-7", ir.Imm(-7)),
    ("- 7", ir.Imm(-7)),
    ("0x1F", ir.Imm(31)),
    ("0XFFFFFFFFU", ir.Imm(0xFFFFFFFF)),
    ("0b101", ir.Imm(5)),
    ("017", ir.Imm(15)),
    ("0", ir.Imm(0)),
    ("42U", ir.Imm(42)),
    ("0f3F800000", ir.Imm(0x3F800000, "f32")),
    ("0F7f800000", ir.Imm(0x7F800000, "f32")),
    ("-(1.5)", ir.Imm(f64(-1.5), "f64")),
    ("(0f3F800000)", ir.Imm(0x3F800000, "f32")),
    (".5", ir.Imm(f64(0.5), "f64")),
    ("1e3", ir.Imm(f64(1000.0), "f64")),
    ("1.0 < 2.0", ir.Imm(1)),
    ("(1+2)*4", ir.Imm(12)),
    ("-(3)", ir.Imm(-3)),
    ("1<<4", ir.Imm(16)),
    ("-7/2", ir.Imm(-3)),
    ("7 % 3", ir.Imm(1)),
    ("-1 >> 1", ir.Imm(-1)),
    ("-1U >> 1", ir.Imm((1 << 63) - 1)),
    ("!5", ir.Imm(0)),
    ("~1", ir.Imm(-2)),
    ("3 > 2 ? 5 : 6", ir.Imm(5)),
    ("(.u64)-5", ir.Imm((1 << 64) - 5)),
    ("-9223372036854775809", ir.Imm((1 << 63) - 1)),
    ("WARP_SZ-1", ir.Imm(31)),
    ("{1+1, (2)}", ir.Vec((ir.Imm(2), ir.Imm(2)))),
    ("variable+2*4", ir.Sym("variable", 8)),
    ("variable+(1+2)*4", ir.Sym("variable", 12)),
    ("[variable+4-8]", ir.Mem(ir.Sym("variable"), -4)),
    ("[%rd1+1<<4]", ir.Mem(RD1, 16)),
    ("0d3FF0000000000000", ir.Imm(0x3FF0000000000000, "f64")),
    ("1.5", ir.Imm(f64(1.5), "f64")),
    ("-0.0", ir.Imm(f64(-0.0), "f64")),
    ("2.5e-3", ir.Imm(f64(2.5e-3), "f64")),
    ("WARP_SZ", ir.Imm(32)),
    ("_", ir.Sink()),
    ("!%p1", ir.Not(P1)),
    ("%tid.x", ir.Special("%tid.x")),
    ("%laneid", ir.Special("%laneid")),
    ("variable", ir.Sym("variable")),
    ("variable+8", ir.Sym("variable", 8)),
    ("variable + -8", ir.Sym("variable", -8)),
    ("variable+-0x10", ir.Sym("variable", -16)),
    ("[%rd1]", ir.Mem(RD1)),
    ("[%rd1+8]", ir.Mem(RD1, 8)),
    ("[%rd1+-8]", ir.Mem(RD1, -8)),
    ("[%rd1 + -8]", ir.Mem(RD1, -8)),
    ("[ %r1 + 0 ]", ir.Mem(R1, 0)),
    ("[variable+4]", ir.Mem(ir.Sym("variable"), 4)),
    ("[0x100]", ir.Mem(ir.Imm(256))),
    ("{%r1, %r2}", ir.Vec((R1, R2))),
    ("{ %r1 , _ , 5 }", ir.Vec((R1, ir.Sink(), ir.Imm(5)))),
    ("%r1.b0", ir.Part(R1, "b0")),
    ("%r1.h32", ir.Part(R1, "h32")),
    ("%r1.b7654", ir.Part(R1, "b7654")),
    ("-%r1", ir.Part(R1, "", negated=True)),
    ("- %r1.h1", ir.Part(R1, "h1", negated=True)),
    ("%r1|%p1", ir.Pair(R1, P1)),
    ("_|%p1", ir.Pair(ir.Sink(), P1)),
    ("%r1 | %p1", ir.Pair(R1, P1)),
    ("[%rd1, {%r1, %r2}]", ir.TensorMem(RD1, ir.Vec((R1, R2)))),
    ("[%rd1, {%r1}, {%r2}]", ir.TensorMem(RD1, ir.Vec((R1,)), ir.Vec((R2,)))),
]


@pytest.mark.parametrize(("text", "operand"), OPERANDS)
def test_operand(text: str, operand: ir.Operand) -> None:
    assert insts(f"op.x %r1, {text}, %r2;")[0].operands == (R1, operand, R2)
    assert insts(f"op.x\t{text};")[0].operands == (operand,)


@pytest.mark.parametrize(("text", "operand"), OPERANDS)
def test_operand_prints_and_reads_back(text: str, operand: ir.Operand) -> None:
    assert insts(f"op.x {print_operand(operand)};")[0].operands == (operand,)


@settings(deadline=None, derandomize=True)
@given(st.integers(-(1 << 63), (1 << 64) - 1))
def test_integer_literals(value: int) -> None:
    scope = Scope(Names())
    assert scope.operand(str(value)) == ir.Imm(value)
    sign, magnitude = "-" * (value < 0), abs(value)
    assert scope.operand(f"{sign}{magnitude:#x}") == ir.Imm(value)
    assert scope.operand(f"{sign}{magnitude:#b}U") == ir.Imm(value)


_registers = st.sampled_from([R1, R2, RD1, P1])
_atoms = st.one_of(
    _registers,
    st.builds(ir.Imm, st.integers(-(1 << 31), 1 << 32)),
    st.builds(ir.Imm, st.integers(0, (1 << 32) - 1), st.just("f32")),
    st.builds(ir.Imm, st.integers(0, (1 << 64) - 1), st.just("f64")),
    st.builds(ir.Special, st.sampled_from(["%tid.x", "%ctaid.z", "%clock64", "%lanemask_lt"])),
    st.just(ir.Sink()),
)
_operands = st.one_of(
    _atoms,
    st.builds(ir.Mem, st.sampled_from([R1, RD1, ir.Sym("variable")]), st.integers(-4096, 4096)),
    st.builds(ir.Vec, st.lists(_atoms, min_size=1, max_size=64).map(tuple)),
    st.builds(ir.Pair, _registers, _registers),
    st.builds(ir.TensorMem, st.just(RD1), st.builds(ir.Vec, st.lists(_registers, min_size=1, max_size=5).map(tuple))),
)


@settings(deadline=None, derandomize=True)
@given(st.lists(_operands, max_size=6), st.booleans(), st.booleans())
def test_any_instruction_prints_and_reads_back(operands: list[ir.Operand], guarded: bool, negated: bool) -> None:
    guard = ir.Guard(P1, negated) if guarded else None
    written = ir.Inst("op", (".a", ".b::c"), tuple(operands), ir.Loc(8), guard)
    assert insts(ptx.printer.print_instruction(written)) == [written]


# ------------------------------------------------------------------------------------------------ scopes
def test_inner_names_are_renamed_only_when_taken() -> None:
    k = kernel(
        "{ .reg .b32 t; .reg .b64 %r1; mov.b32 t, 1; mov.b64 %r1, 2; }\n"
        "{ .reg .b16 t; .reg .b32 own; mov.b16 t, 1; mov.b32 own, 3; mov.b32 %r2, 4; }"
    )
    assert [i.operands[0] for b in k.blocks for i in b.insts] == [
        ir.Reg("t", "b32"),
        ir.Reg("%r1$1", "b64"),
        ir.Reg("t$1", "b16"),
        ir.Reg("own", "b32"),
        R2,
    ]
    assert k.registers == {"%r2": "b32", "t": "b32", "%r1$1": "b64", "t$1": "b16", "own": "b32"}


def test_a_range_in_inner_braces_hides_the_outer_one() -> None:
    outer, inner, again = insts("mov.b32 %r1, 1;\n{ .reg .b64 %r<4>; mov.b64 %r1, 2; }\nmov.b32 %r1, 3;")
    assert outer.operands[0] == again.operands[0] == R1
    assert inner.operands[0] == ir.Reg("%r1$1", "b64")


def test_labels_belong_to_their_braces() -> None:
    loop = "{ .reg .pred done; again: setp.eq.s32 done, %r1, 0; @!done bra again; }\n"
    k = kernel(loop * 2 + "@%p1 bra again$2;\nagain$2: ret;")
    assert [b.labels for b in k.blocks] == [("again",), ("again$1",), (), ("again$2",)]
    assert [i.operands[0] for b in k.blocks for i in b.insts if i.op == "bra"] == [
        ir.Sym("again"),
        ir.Sym("again$1"),
        ir.Sym("again$2"),
    ]


def test_a_range_prefix_may_end_with_a_digit() -> None:
    k = kernel(".reg .b64 %x1<20>; .reg .b16 %x<4>;\nmov.b64 %x12, 1; mov.b16 %x3, 1; mov.b64 %x119, 1;")
    assert k.registers == {"%x12": "b64", "%x119": "b64", "%x3": "b16"}


def test_vector_registers_are_their_elements() -> None:
    (mov,) = insts(".reg .v2 .b32 v;\nop v, v.y;")
    x, y = ir.Reg("v_x", "b32"), ir.Reg("v_y", "b32")
    assert mov.operands == (ir.Vec((x, y)), y)


def test_registers_are_listed_in_declaration_order() -> None:
    k = kernel("mov.b32 %r10, 1; mov.b32 %r2, 1; mov.pred %p1, 1;")
    assert list(k.registers) == ["%p1", "%r2", "%r10"]


# ------------------------------------------------------------------------------------------------ variables
VARIABLES = [
    (".global .b32 x;", 4, 4, None, ()),
    (".global .align 16 .b8 x[3] = {1, 2, 255};", 16, 3, b"\1\2\xff", ()),
    (".global .b8 x[] = {1, 2};", 1, 2, b"\1\2", ()),
    (".global .s16 x[2] = {-1, 0x1234};", 2, 4, b"\xff\xff\x34\x12", ()),
    (".global .b32 x[2][2] = {{1, 2}, {3}};", 4, 16, struct.pack("<4I", 1, 2, 3, 0), ()),
    (".global .v4 .f32 x;", 16, 16, None, ()),
    (".global .v2 .f32 x[2] = {{1.0, 2.0}, {0f40400000, 4.0}};", 8, 16, struct.pack("<4f", 1, 2, 3, 4), ()),
    (".const .f32 x[2] = {0f3F800000, 2.5};", 4, 8, struct.pack("<2f", 1, 2.5), ()),
    (".const .f64 x = 0d3FF0000000000000;", 8, 8, struct.pack("<d", 1), ()),
    (
        ".global .u64 x[2] = {variable, generic(variable)+8};",
        8,
        16,
        bytes(16),
        ((0, "variable", 0), (8, "variable", 8)),
    ),
    (".global .u64 x = variable+-4;", 8, 8, bytes(8), ((0, "variable", -4),)),
    (
        ".global .u8 x[9] = {5, " + ", ".join(f"{0xFF << 8 * i:#x}(variable)" for i in range(8)) + "};",
        1,
        9,
        b"\5" + bytes(8),
        ((1, "variable", 0),),
    ),
    (".global .b32 x = (1 + 2) * 3 << 2 | 1;", 4, 4, struct.pack("<I", 37), ()),
    (".global .b32 x = -7 / 2;", 4, 4, struct.pack("<i", -3), ()),
    (".global .b32 x = -7 % 4;", 4, 4, struct.pack("<i", -3), ()),
    (".global .b32 x = 1 ? ~0 : 5;", 4, 4, b"\xff" * 4, ()),
    (".global .b32 x = 3 > 2 && !0;", 4, 4, struct.pack("<I", 1), ()),
    (".global .attribute(.managed) .b32 x;", 4, 4, None, ()),
]


@pytest.mark.parametrize(("text", "align", "size", "init", "relocations"), VARIABLES)
def test_variable(text: str, align: int, size: int, init: bytes | None, relocations: tuple[object, ...]) -> None:
    module = ptx.parse(HEADER + ".global .b32 variable;\n" + text)
    x = module.variables[1]
    assert (x.align, x.size, x.init, x.relocations) == (align, size, init, relocations)
    assert ptx.parse(ptx.print_module(module)).variables == module.variables


def test_parameters_have_offsets() -> None:
    module = ptx.parse(
        HEADER + ".entry k(.param .u8 a, .param .align 8 .b8 b[12],"
        " .param .u64 .ptr .global .align 16 c, .param .b16 d) { ret; }"
    )
    assert [(p.offset, p.size, p.align) for p in module.kernels[0].params] == [
        (0, 1, 1),
        (8, 12, 8),
        (24, 8, 8),
        (32, 2, 2),
    ]
    pointer = module.kernels[0].params[2]
    assert (pointer.pointer_space, pointer.pointer_align) == (".global", 16)


def test_declarations_give_way_to_definitions() -> None:
    text = (
        HEADER
        + ".func f(.param .b32 a);\n.extern .func (.param .b32 r) g(.param .b64 x);\n.func f(.param .b32 a) { ret; }"
    )
    kernels = ptx.parse(text).kernels
    assert [(k.name, len(k.blocks)) for k in kernels] == [("g", 0), ("f", 1)]


def test_pragmas_are_nothing() -> None:
    (only,) = insts('.pragma "nounroll";\nmov.b32 %r1, 1;')
    assert only.op == "mov"
    assert ptx.parse('.version 8.8\n.target sm_90a, debug\n.pragma "x";\n').target_options == ("debug",)


def test_text_of_a_kernel_parses_with_windows_line_ends() -> None:
    text = kernel_text("mov.b32 %r1, 1; // comment\nret;").replace("\n", "\r\n")
    assert [i.loc.ptx_line for b in ptx.parse(text).kernels[0].blocks for i in b.insts] == [8, 9]
