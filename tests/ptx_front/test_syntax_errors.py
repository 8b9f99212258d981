"""Malformed PTX: what the message says, and the line it points at."""

from __future__ import annotations

import pytest

import ptx
from ptx.errors import GpuemuError, InvalidInput, Unsupported
from tests.ptx_front.texts import HEADER, kernel_text


def error(text: str) -> GpuemuError:
    with pytest.raises(GpuemuError) as caught:
        ptx.parse(text)
    return caught.value


# body (its first line is PTX line 8) | line | what the message contains
BODIES = [
    ("add.s32 %r1, %r2\nsub.s32 %r1, %r2, 1;", 9, "expected `,` or `;`, found `sub.s32 %r1, %r2, 1;`"),
    ("add.s32 %r1 %r2;", 8, "expected `,` or `;`, found `%r2`"),
    ("add.s32 %r1, , %r2;", 8, "expected an operand (register, literal, symbol, [address] or {vector}), found `,`"),
    ("add.s32 %r1, %r2,;", 8, "found `;`"),
    ("\n\nadd.s32 %r77, %r2, %r3;", 10, "register `%r77` is not declared"),
    ("add.s32 %r01, %r2, %r3;", 8, "register `%r01` is not declared"),
    ("ld.global.b32 %r1, [%rd1;", 8, "`[` opens an operand here"),
    ("ld.global.b32 %r1, [%rd1+];", 8, "`[%rd1+]` is not an address"),
    ("ld.global.b32 %r1, [%rd1*4];", 8, "`[%rd1*4]` is not an address"),
    ("mov.b32 {%r1, %r2, %rd1;", 8, "`{` opens an operand here"),
    ("mov.b32 {%r1, [%rd1]}, 5;", 8, "`[%rd1]` cannot be an element"),
    ("mov.f32 %f1, 0f3F80;", 8, "found `0f3F80`"),
    ("mov.b32 %r1, 08;", 8, "`08` is not a literal"),
    ("mov.b32 %r1, !1.5;", 8, "`!` of a floating-point number"),
    ("mov.b32 %r1, 1+1.5;", 8, "between an integer and a floating-point number"),
    ("mov.b32 %r1, 1/0;", 8, "division by zero"),
    ("mov.b32 %r1, (.s64)(1.0/0.0);", 8, "cast (.s64)"),
    ("mov.u32 %r1, 0xFFFFFFFFFFFFFFFFF;", 8, "does not fit in 64 bits"),
    ("mov.b32 %r1, 99999999999999999999;", 8, "does not fit in 64 bits"),
    (".reg .b32 %q<08>;", 8, "`08` is not a literal"),
    ("mov.b32 %r1, -0f3F800000;", 8, "stand alone"),
    ("ld.b32 %r1, [%rd1-4];", 8, "is not an address"),
    ("mov.b32 %r1, 1;;", 8, "found `;`"),
    ('mov.b32 %r1, "x";', 8, 'found `"x"`'),
    ("mov.b32 %r1, %r2+8;", 8, "an offset belongs to a symbol"),
    ("setp.eq.s32 %p1|7, %r1, %r2;", 8, "found `|`"),
    ("selp.b32 %r1, 1, 2, !%tid.x;", 8, "`!` negates a predicate register"),
    ("@%p9 bra L;\nL: ret;", 8, "register `%p9` is not declared"),
    ("@ bra L;\nL: ret;", 8, "a guard is a predicate register"),
    ("mov.b32 %r1, 1;\nL: ret;\nL: ret;", 10, "label `L` is declared twice"),
    ("ADD.s32 %r1, %r2, %r3;", 8, "expected an instruction, a label, a directive or `}`, found `ADD.s32`"),
    (".reg .foo %x;", 8, "`.foo` has no place in a declaration"),
    (".reg %x;", 8, "a declaration needs a type"),
    (".reg .b32 q;\n.reg .b32 q;", 9, "`q` is declared twice in one scope"),
    (".reg .b32 %r<9>;", 8, "register range `%r<16>` is declared twice"),
    (".shared .align 3 .b8 x[4];", 8, ".align takes a power of two, not 3"),
    (".shared .b8 x[4] = {1};", 8, "only .global and .const variables take an initialiser"),
    ("call;", 8, "`call` needs the name of a function"),
    ("call (%r1), f, (%r2), a, b;", 8, "`call` ends with its arguments"),
    (".branchtargets A, B;", 8, "`.branchtargets` needs a label in front of it"),
    ("L: mov.b32 %r1, 1;\n.callprototype _;", 9, "`.callprototype` needs a label"),
    ("{ mov.b32 %r1, 1;", 9, "the `{` on line 7 is never closed"),
]


@pytest.mark.parametrize(("body", "line", "message"), BODIES, ids=[b[0][:30] for b in BODIES])
def test_body(body: str, line: int, message: str) -> None:
    text = kernel_text(body)
    e = error(text)
    assert isinstance(e, InvalidInput)
    assert message in str(e)
    where = e.diagnostic.where
    assert where is not None
    if "never closed" not in message:
        assert where.ptx_line == line
        assert where.ptx_text == text.splitlines()[line - 1].strip()


MODULES = [
    ("", 1, "no .version directive"),
    ("hello", 1, "expected `.entry`, `.func`, a variable declaration"),
    ("\x00\x01", 1, "found `\\x00\\x01`"),
    (".version 8\n.target sm_80\n", 1, "expected a version number such as 8.8, found `8`"),
    (".version 8.8\n.entry k { ret; }", 1, "no .target directive"),
    (HEADER + ".entry k {", 4, "found the end of the text"),
    (HEADER + ".entry k {", 4, "the `{` on line 4 is never closed"),
    (HEADER + ".entry k { ret; } }", 4, "found `}`"),
    (HEADER + ".entry k(.param .u64) { ret; }", 4, "found `)`"),
    (HEADER + ".entry k() .maxntid x { ret; }", 4, "found `x`"),
    (HEADER + ".entry k { ret; }\n.entry k { ret; }", 5, "function `k` is defined twice"),
    (HEADER + "mov.b32 %r1, 1;", 4, "found `mov.b32 %r1, 1;`"),
    (HEADER + ".global .b32 x = ;", 4, "found `;`"),
    (HEADER + ".global .b32 x[2] = {1,2,3};", 4, "3 initial values for an array of 2"),
    (HEADER + ".global .b32 x = 1/0;", 4, "division by zero"),
    (HEADER + ".global .b32 x[1] = {08};", 4, "`08` is not a literal"),
    (HEADER + ".global .b32 x[08];", 4, "`08` is not a literal"),
    (HEADER + ".global .b32 x[9223372036854775807];", 4, "has 36893488147419103228 bytes"),
    (HEADER + ".global .u64 x = +y;", 4, "`+` on the address of a variable"),
    (HEADER + ".global .u64 x = -(y+1);", 4, "`-` on the address of a variable"),
    (HEADER + ".global .b32 x = 1.5;", 4, "a floating-point value for type .b32"),
    (HEADER + ".global .b16 x = variable;", 4, "does not fit in 2 bytes"),
    (HEADER + ".global .b32 x[2][];", 4, "an array bound is missing"),
]


@pytest.mark.parametrize(("text", "line", "message"), MODULES)
def test_module(text: str, line: int, message: str) -> None:
    e = error(text)
    assert isinstance(e, InvalidInput)
    assert message in str(e)
    assert e.diagnostic.where is not None
    assert e.diagnostic.where.ptx_line == line


UNSUPPORTED = [
    (HEADER + ".global .texref t;", "texture"),
    (HEADER + f".global .b32 x = {'~' * 5000}1;", "constant expression"),
    (HEADER + ".attribute(.unified(1, 2)) .global .b32 x;", "variable attribute"),
    (HEADER + ".global .u8 x[2] = {0xFF(y), 0xFF00(y)};", "part of the address of `y`"),
]


@pytest.mark.parametrize(("text", "message"), UNSUPPORTED)
def test_unsupported_is_said_and_not_skipped(text: str, message: str) -> None:
    e = error(text)
    assert isinstance(e, Unsupported)
    assert message in str(e)


def test_source_line_is_given_where_it_is_known() -> None:
    text = kernel_text(".loc 1 42 7\nmov.b32 %r1, %nothing;") + '.file 1 "/home/me/k.py"\n'
    where = error(text).diagnostic.where
    assert where is not None
    assert (where.file, where.line, where.column, where.ptx_line) == ("/home/me/k.py", 42, 7, 9)
    assert where.render() == "/home/me/k.py:42, PTX line 9: mov.b32 %r1, %nothing;"


def test_comments_and_sections_keep_line_numbers() -> None:
    body = (
        "/* two\n lines { */ mov.b32 %r1, 1; // a } comment\nmov.b32 %r2, /* here; */ 2;\nmov.b32\n  %r3,\n  %nothing;"
    )
    section = '\t.section .debug_info\n\t{\n.b8 1 // it\'s a } and a { here\n.b32 .debug_abbrev\n\t}\n.file 1 "a//b"\n'
    where = error(kernel_text(body).replace(HEADER, HEADER + section)).diagnostic.where
    assert where is not None
    assert where.ptx_line == 6 + 8 + 3  # the section, the entry's first line, `mov.b32` on the body's fourth
