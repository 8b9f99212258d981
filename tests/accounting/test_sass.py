"""Classes of machine instructions: the table is whole, padding is left out, nothing is dropped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptx.accounting import sass
from ptx.accounting.assemble import Assembled, assemble
from ptx.decode import decode
from tests.accounting.ptx_texts import sample

CLASSES = [
    ("HMMA.16816.F32", "", "tensor"),
    ("HADD2.F32", "R1,-RZ,R2.H0_H0", "fp16"),
    ("HFMA2.MMA", "R0,-RZ,RZ,0,2.384185791015625e-07", "move"),
    ("HFMA2", "R0,R1,R2,R3", "fp16"),
    ("FFMA", "", "fp32"),
    ("DFMA", "", "fp64"),
    ("IMAD.WIDE.U32", "R4,R6,0x4,R4", "int"),
    ("IMAD.MOV.U32", "R1,RZ,RZ,c[0x0][0x28]", "move"),
    ("UIADD3", "", "int"),
    ("MUFU.EX2", "", "sfu"),
    ("LDG.E.128", "", "load_global"),
    ("STG.E", "", "store_global"),
    ("LDSM.16.M88.4", "", "load_shared"),
    ("STL.64", "", "store_local"),
    ("LDC.64", "", "load_constant"),
    ("ATOMG.E.ADD", "", "atomic"),
    ("LDGSTS.E.BYPASS.128", "", "async"),
    ("BRA", "0xbd0", "control"),
    ("BAR.SYNC.DEFER_BLOCKING", "", "barrier"),
    ("SHFL.BFLY", "", "warp"),
    ("F2FP.BF16.F32.PACK_AB", "", "convert"),
    ("S2R", "R8,SR_TID.X", "move"),
    ("NOP", "", "other"),
    ("FROB.X", "", "unclassified"),
]


@pytest.mark.parametrize("opcode, operands, name", CLASSES, ids=[row[0] for row in CLASSES])
def test_class(opcode: str, operands: str, name: str) -> None:
    assert sass.class_of(opcode, operands) == name


def test_no_opcode_has_two_classes() -> None:
    words = [opcode for opcodes in sass._OPCODES.values() for opcode in opcodes.split()]
    assert len(words) == len(set(words))
    assert set(sass._OPCODES) == set(sass.CLASSES) - {"unclassified"}


def test_padding_is_left_out_and_other_nops_are_not() -> None:
    code = [
        ("", "NOP", ""),
        ("@!PT", "NOP", ""),
        ("@P0", "EXIT", ""),
        ("", "BRA", "0x10"),
        ("", "NOP", ""),
        ("", "NOP", ""),
    ]
    found = sass.count(code)
    assert found.total == 3 and found.classes["other"] == 1 and found.classes["control"] == 2


@given(
    st.lists(st.tuples(st.sampled_from(["", "@P0", "@!PT"]), st.sampled_from([row[0] for row in CLASSES]), st.just("")))
)
def test_classes_add_up(code: list[tuple[str, str, str]]) -> None:
    found = sass.count(code)
    assert sum(found.classes.values()) == found.total <= len(code)
    assert found.classes["unclassified"] == sum(found.unclassified.values())


@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
@pytest.mark.parametrize("name", ["matmul_f16_small_sm80", "histogram_atomic_sm80"])
def test_no_opcode_of_real_kernels_is_unclassified(tools: None, name: str, target: str) -> None:
    text = sample(name)
    assembled = assemble(text, decode(text), target)
    assert isinstance(assembled, Assembled)
    ((size, code),) = assembled.sass.values()
    found = sass.count(code)
    assert found.unclassified == {} and found.total > 20 and size == 16 * len(code)
