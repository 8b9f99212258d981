"""Several texts as one: whose definition stays, what gets a new name."""

from __future__ import annotations

import numpy as np
import pytest

import ptx
from interp.launch import Module
from ptx.errors import InvalidInput
from ptx.join import join

HEADER = ".version {}\n.target {}\n.address_size 64\n"
MAIN = """
.extern .func (.param .b32 r) f(.param .b32 a);
.extern .global .align 4 .u32 shared_word;
.common .global .align 4 .u32 twice;
.global .align 4 .u32 private = 5;
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<9>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [private];
    ld.global.u32 %r2, [shared_word];
    add.u32 %r1, %r1, %r2;
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call.uni (q), f, (p); ld.param.b32 %r3, [q]; }
    st.global.u32 [%rd1], %r3;
    ret;
}
"""
LIBRARY = """
.global .align 4 .u32 private = 100;
.visible .global .align 4 .u32 shared_word = 3;
.common .global .align 4 .u32 twice;
.func (.param .b32 r) helper(.param .b32 a)
{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [a];
    add.u32 %r1, %r1, 1;
    st.param.b32 [r], %r1;
    ret;
}
.visible .func (.param .b32 r) f(.param .b32 a)
{
    .reg .b32 %r<9>;
    ld.param.b32 %r1, [a];
    ld.global.u32 %r2, [private];
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call.uni (q), helper, (p); ld.param.b32 %r2, [q]; }
    mul.lo.u32 %r1, %r1, %r2;
    st.param.b32 [r], %r1;
    ret;
}
"""


def part(body: str, version: str = "8.0", target: str = "sm_80") -> str:
    return HEADER.format(version, target) + body


@pytest.mark.parametrize("order", [1, -1])
def test_functions_and_variables_of_another_text(order: int) -> None:
    out = np.zeros(1, np.uint32)
    Module.from_ptx([part(MAIN), part(LIBRARY, "8.4")][::order])["k"].launch((1,), (1,), [out])
    assert out[0] == (5 + 3) * 101


def test_header_and_names() -> None:
    module = ptx.parse(join([part(MAIN), part(LIBRARY, "8.4")]))
    assert module.version == (8, 4)
    assert sorted(v.name for v in module.variables) == ["private$joined0", "private$joined1", "shared_word", "twice"]


def test_one_text_stays_as_it_is() -> None:
    assert join([part(MAIN)]) == part(MAIN)


def test_a_weak_definition_yields() -> None:
    weak = ".weak .func (.param .b32 r) f(.param .b32 a) { st.param.b32 [r], 7; ret; }"
    for texts in ([part(MAIN), part(weak), part(LIBRARY)], [part(weak), part(LIBRARY), part(MAIN)]):
        out = np.zeros(1, np.uint32)
        Module.from_ptx(texts)["k"].launch((1,), (1,), [out])
        assert out[0] == (5 + 3) * 101


def test_a_brace_in_a_string_and_words_behind_the_target() -> None:
    other = part('.func h() { .pragma "{"; ret; }\n.func g() { ret; }', target="sm_80, debug")
    module = ptx.parse(join([part(MAIN), other]))
    assert [k.name for k in module.kernels if k.blocks] == ["k", "h", "g"] and module.target == "sm_80"


def test_source_lines_of_both_texts() -> None:
    one = '.file 1 "a.cu"\n.visible .func f() {\n.loc 1 7 0\nret;\n}'
    two = '.file 1 "b.cu"\n.visible .func g() {\n.loc 1 9 0\nret;\n}'
    module = ptx.parse(join([part(one), part(two)]))
    lines = [k.blocks[0].insts[0].loc.user for k in module.kernels]
    assert [(u.file, u.line) for u in lines if u] == [("a.cu", 7), ("b.cu", 9)]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([part(LIBRARY), part(LIBRARY)], "`shared_word` is defined in two texts"),
        ([part(MAIN), part(LIBRARY, target="sm_90")], "texts for sm_80, sm_90"),
        ([part(MAIN), part(".visible .func g() { ret;")], "ends inside a function"),
        ([part(MAIN), part(".global .u32 x = 1")], "ends inside an initial value"),
        ([part(MAIN), part(LIBRARY, "8")], "two numbers with a point"),
        ([part(MAIN), ""], "texts for no target, sm_80"),
        ([part(MAIN), b""], "PTX comes as a str"),
    ],
)
def test_refused(texts: list[str], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        join(texts)
