"""Virtual registers, most live ones and classes of PTX instructions, on texts small enough to count by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.ops import ISA
from ptx.accounting.metrics import WIDTHS
from ptx.accounting.virtual import Virtual, count_virtual
from ptx.decode import decode
from tests.accounting.ptx_texts import many_live, sample, text


def counted(source: str) -> Virtual:
    module = decode(source)
    return count_virtual(source, module.kernels[0], ISA)


ADD = "ld.param.u32 %r1, [n]; add.u32 %r2, %r1, 1; add.u32 %r3, %r2, %r1;"
LIVE = [
    ("ret;", 0, 0, "nothing"),
    ("mov.u32 %r1, 7; ret;", 1, 0, "a value that nobody reads is still written"),
    ("mov.u32 %r1, 7; mov.u32 %r2, 8; add.u32 %r3, %r1, %r2; ret;", 2, 0, "sources may share with the result"),
    ("ld.param.u64 %d1, [x]; mov.u32 %r1, 7; st.global.u32 [%d1], %r1; ret;", 3, 0, "64 bits are two units"),
    ("mov.b16 %h1, 7; mov.b16 %h2, 8; add.u16 %h3, %h1, %h2; ret;", 2, 0, "16 bits are one unit"),
    ("setp.eq.u32 %p1, %r1, 0; @%p1 ret; mov.u32 %r2, %r1; ret;", 1, 1, "predicates are counted apart"),
    ("mov.u32 %r1, 1; mov.u32 %r2, 2;\nL: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2;\n@%p1 bra L; ret;", 2, 1,
     "what a loop needs again lives on"),
    ("mov.u32 %r1, 1; mov.u32 %r2, 2;\n@%p1 mov.u32 %r2, 3;\nadd.u32 %r3, %r1, %r2; ret;", 2, 1,
     "a guarded write keeps the old value"),
]  # fmt: skip


@pytest.mark.parametrize("body, units, predicates, why", LIVE, ids=[row[3] for row in LIVE])
def test_most_live(body: str, units: int, predicates: int, why: str) -> None:
    found = counted(text(body)).metrics
    assert (found["ptx__registers_live_max"], found["ptx__predicates_live_max"]) == (units, predicates), why


def test_declared_and_used() -> None:
    found = counted(text(f"{{ .reg .f32 t; .reg .v2 .b32 v; mov.f32 t, 0f00000000; }} {ADD} ret;")).metrics
    assert [found[f"ptx__registers_declared_{w}"] for w in WIDTHS] == [4, 4, 16 + 1 + 2, 8, 0]
    assert [found[f"ptx__registers_used_{w}"] for w in WIDTHS] == [0, 0, 4, 0, 0]


def test_the_carry_flag_is_no_register_of_the_text() -> None:
    found = counted(text("add.cc.u32 %r1, %r2, %r3; addc.u32 %r4, %r5, %r6; ret;")).metrics
    assert found["ptx__registers_used_pred"] == 0 and found["ptx__predicates_live_max"] == 0


def test_classes_and_what_the_table_lacks() -> None:
    found = counted(text(f"{ADD} tcgen05.shift.cta_group::1.down [%r3]; frob.x4.b32 %r7, %r3; ret;"))
    assert {k.removeprefix("ptx__inst_"): v for k, v in found.metrics.items() if v and k.startswith("ptx__inst_")} == {
        "alu": 2, "lsu": 1, "control": 1, "unknown": 2,
    }  # fmt: skip
    assert found.unknown == {"tcgen05.shift.cta_group::1.down": 1, "frob.x4.b32": 1}
    assert found.metrics["ptx__inst"] == 6


def test_an_unknown_instruction_writes_its_first_operand_and_reads_the_rest() -> None:
    found = counted(text("mov.u32 %r1, 1; frob.b32 {%r2, %r3}, [%d1], %r1; add.u32 %r4, %r2, %r3; ret;")).metrics
    assert found["ptx__registers_live_max"] == 3  # %d1 and %r1, which dies there


def test_the_peak_names_the_line() -> None:
    source = many_live(10)
    peak = counted(source).peak
    assert peak is not None and source.splitlines()[peak.loc.ptx_line - 1].startswith("ld.volatile.global.b32 %r9")


def test_a_compiled_kernel_points_at_its_source() -> None:
    peak = counted(sample("softmax_f32_sm80")).peak
    assert peak is not None and peak.loc.user is not None and peak.loc.user.file.endswith(".py")


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60))
def test_as_many_live_as_are_loaded(count: int) -> None:
    found = counted(many_live(count)).metrics
    assert found["ptx__registers_live_max"] == count + 2  # and the address
    assert found["ptx__inst"] == 2 * count + 2
