"""What a refused opcode is told: the nearest forms only, and what is wrong with it."""

from __future__ import annotations

import time

import pytest

from interp.ops import ISA
from ptx import ir
from ptx.errors import Unsupported


def notes(opcode: str) -> tuple[str, ...]:
    name, *mods = opcode.split(".")
    operands = (ir.Reg("%a", "b32"), ir.Reg("%b", "b32"))
    with pytest.raises(Unsupported) as caught:
        ISA.match(ir.Inst(name, tuple("." + m for m in mods), operands, ir.Loc(1)))
    return caught.value.diagnostic.notes


@pytest.mark.parametrize(
    ("opcode", "said"),
    [
        ("cvt.rn.f16.f64.foo", ["cvt.rnd{.ftz}{.sat}.dtype.atype: it has no .foo"]),
        ("cvt.rs.satfinite.e4m3x4.f16", ["cvt.rs.mode.dtype.f32: it has no .f16, it needs .f32"]),
        ("mad.low.u32", ["mad.lo.type: it has no .low, it needs .lo", "mad.hi.type: it has no .low, it needs .hi"]),
        (
            "mma.sync.aligned.m16n8k7.row.col.f32.f16.f16.f32",
            [
                "mma.sync.aligned.shape.row.col.dtype.atype.btype.ctype: it has no .m16n8k7, "
                "it needs one of .m16n8k4 .m16n8k8 .m16n8k16 .m16n8k32"
            ],
        ),
    ],
)
def test_the_nearest_forms(opcode: str, said: list[str]) -> None:
    assert list(notes(opcode)) == [f"nearest form: {s}" for s in said]


def test_a_misspelt_instruction() -> None:
    assert notes("madd.lo.u32") == ("nearest instruction: mad",)
    assert notes("frobnicate.u32") == ()


def test_never_more_than_two() -> None:
    for op in ISA.ops:
        if not op.internal:
            assert len(notes(f"{op.name}.no_such_modifier")) in (1, 2)


def test_many_modifiers_cost_no_factorials() -> None:
    start = time.perf_counter()
    assert notes("add" + ".rn" * 40 + ".f32")
    assert time.perf_counter() - start < 5
