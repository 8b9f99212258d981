"""What the verifier refuses and takes, with a toy instruction table. `judge`: ptxas agrees, line by line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import ptx
from ptx import ir
from ptx.errors import Diagnostic, InvalidInput, Unsupported
from ptx.isa import Isa
from ptx.verify import require, verify
from tests.ptx_front.texts import HEADER, ISA, kernel_text

# body | what the message contains
REFUSED = [
    ("add.f32 %f1, %f1, 1;", "1 is an integer, a .f32 belongs here"),
    ("mov.b32 %r1, 1.5;", "a floating-point literal where a .b32 belongs"),
    ("mov.u32 %r1, 0f3F800000;", "a floating-point literal where a .u32 belongs"),
    ("st.global.f32 [%rd1], 1;", "1 is an integer"),
    ("add.s32 %f1, %r1, %r2;", "register %f1 is .f32, a .s32 belongs here"),
    ("add.f32 %f1, %u1, %f1;", "register %u1 is .u32, a .f32 belongs here"),
    ("add.s32 %s1, %r1, %r1;", "register %s1 is .s64"),
    ("mov.u32 %f1, %r1;", "register %f1 is .f32"),
    ("mov.f32 %f1, %u1;", "register %u1 is .u32"),
    ("ld.global.u8 %f1, [%rd1];", "register %f1 is .f32"),
    ("ld.global.f32 %u1, [%rd1];", "register %u1 is .u32"),
    ("ld.global.b64 %r1, [%rd1];", "register %r1 is .b32"),
    ("ld.global.f32 %fd1, [%rd1];", "register %fd1 is .f64"),
    ("ld.global.u32 %r1, [%r2];", "address register %r2 has 32 bits, and global addresses have 64"),
    ("ld.u32 %r1, [%r2];", "generic addresses have 64"),
    ("ld.global.u32 %r1, [%f1];", "address register %f1 is .f32"),
    ("st.global.u32 [%rd1], %rs1;", "register %rs1 is .b16"),
    ("cvt.u32.u16 %r1, %f1;", "register %f1 is .f32"),
    ("mov.b16 %rs1, %r1;", "register %r1 is .b32"),
    ("shl.b32 %r1, %r1, %rd1;", "a .u32 belongs here"),
    ("shl.b32 %r1, %r1, 0f3F800000;", "a floating-point literal where a .u32 belongs"),
    ("setp.eq.s32 %r1, %r1, %r2;", "register %r1 is .b32, a .pred belongs here"),
    ("setp.lt.f32 %p1, %f1, 0;", "0 is an integer"),
    ("and.pred %p1, %p2, %r1;", "a .pred belongs here"),
    ("@%r1 ret;", "guard `%r1` is .b32, not .pred"),
    ("add.s32 %r1, %r2;", "takes 3 operands, not 2"),
    ("bra NOWHERE;", "branch to label `NOWHERE`, which `k` does not have"),
    ("mov.u64 %rd1, nosuch;", "`nosuch` is not declared"),
    ("mov.u64 %rd1, %tid.x;", "special register %tid.x does not fit in .u64"),
    ("mov.u32 %r1, %clock64;", "special register %clock64 does not fit in .u32"),
    ("mov.f32 %f1, %tid.x;", "special register %tid.x does not fit in .f32"),
    ("add.u32 %r1, %tid.x, 1;", "special register %tid.x may be read by mov only"),
    ("mov.u32 %r1, variable;", "the address of `variable` does not fit in .u32"),
    ("add.s64 %rd1, %rd1, variable;", "`variable` is a name: take its address with mov first"),
    ("mov.b32 %r1, _;", "operand a is read, so it cannot be `_`"),
    ("mov.b32 7, %r1;", "operand d is written, so it must be a register"),
    ("ld.param.u64 %rd1, [q];", "`q` is not declared"),
    ("ld.global.v2.b32 {%r1, %r2, %r3}, [%rd1];", "operand d has 3 elements where 2 belong"),
    ("ld.global.v2.b32 %rd1, [%rd1];", "operand d is a vector of 2 in { }"),
    ("ld.const.u32 %r1, [variable];", "`variable` is in .global, the instruction says .const"),
    ("ld.shared.u32 %r1, [variable];", "`variable` is in .global, the instruction says .shared"),
    ("ld.global.u32 %r1, [p];", "`p` is in .param, the instruction says .global"),
    ("selp.f32 %f1, 1, 0, %p1;", "1 is an integer"),
    ("elect.sync %r1|%p1, -1;", "`elect.sync` needs sm_90, the text says sm_80"),
]

TAKEN = [
    "add.s16 %rs1, %rs1, 70000;",
    "and.b32 %r1, %r1, 0x1FFFFFFFF;",
    "mov.b32 %r1, -3000000000;",
    "add.u32 %r1, %r1, -1;",
    "add.f32 %f1, %f1, 1.5;",
    "add.f32 %f1, %f1, 0d3FF0000000000000;",
    "add.f64 %fd1, %fd1, 0f3F800000;",
    "mov.b32 %r1, 0f3F800000;",
    "mov.b64 %rd1, 0d3FF0000000000000;",
    "and.b32 %r1, %r1, 0f3F800000;",
    "st.global.b32 [%rd1], 1;",
    "st.global.b32 [%rd1], 0f3F800000;",
    "add.f32 %r1, %r2, %r3;",
    "add.s32 %u1, %r1, %r1;",
    "mov.b32 %f1, %r1;",
    "and.b32 %f1, %f1, %u1;",
    "ld.global.u8 %r1, [%rd1];",
    "ld.global.f32 %rd1, [%rd1];",
    "ld.global.b32 %f1, [%rd1];",
    "ld.shared.u32 %r1, [%r2];",
    "ld.global.u32 %r1, [%s1];",
    "st.global.u8 [%rd1], %r1;",
    "cvt.u32.u16 %r1, %r2;",
    "cvt.u16.u32 %r1, %r2;",
    "and.pred %p1, %p2, 1;",
    "mov.pred %p1, -1;",
    "selp.b32 %r1, %r2, %r3, !%p1;",
    "mov.u32 %r1, %tid.x;",
    "mov.u16 %rs1, %tid.x;",
    "mov.u64 %rd1, %clock64;",
    "mov.u32 %r1, %gridid;",
    "mov.u64 %rd1, %gridid;",
    "cvt.u64.u32 %rd1, %tid.x;",
    "mov.b64 %rd1, variable;",
    "mov.b64 %rd1, variable+4;",
    "mov.b32 %r1, buffer;",
    "mov.u64 %rd1, p;",
    "ld.u32 %r1, [variable];",
    "ld.param.u32 %r1, [p+4];",
    "ld.global.v2.b32 {%r1, _}, [%rd1];",
    "st.global.v2.b32 [%rd1], {%r1, 5};",
    "setp.eq.u32 %p1|%p2, %r1, 3;",
    "selp.f32 %r1, %r2, 0f3F800000, %p1;",
    "@!%p1 bra L;\nL: mov.u32 %r1, 1;",
]


def problems(body: str) -> list[Diagnostic]:
    return verify(ptx.parse(kernel_text(body)), ISA)


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_refused(body: str, message: str) -> None:
    found = problems(body)
    assert any(message in d.what for d in found), [d.what for d in found]
    assert all(d.kind == InvalidInput.kind for d in found)
    assert all(d.where is not None and d.where.ptx_line == 8 for d in found)


@pytest.mark.parametrize("body", TAKEN)
def test_taken(body: str) -> None:
    assert problems(body) == []


# ptxas stops at the first of these instead of going on to the next line.
FATAL = (
    "ld.global.u32 %r1, [%r2]",
    "ld.u32 %r1, [%r2]",
    "mov.u32 %r1, variable",
    "mov.b32 %r1, _",
    "mov.b32 7",
    "mov.u32 %r1, 0xFF",
)


@pytest.fixture(scope="module")
def ptxas() -> Path:
    triton = pytest.importorskip("triton")
    path = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    if not path.exists():
        pytest.skip("no ptxas in this Triton")
    return path


def _lines_with_errors(ptxas: Path, directory: Path, bodies: list[str]) -> set[int]:
    """1-based indices of the bodies that ptxas complains about; {0} for a complaint without a line."""
    text = kernel_text(
        "\n".join(b.replace("\n", " ").replace("L:", f"L{i}:").replace(" L;", f" L{i};") for i, b in enumerate(bodies))
        + "\nret;"
    )
    file = directory / "k.ptx"
    file.write_text(text)
    run = subprocess.run(
        [ptxas, "-arch=sm_80", file, "-o", directory / "k.cubin"], capture_output=True, text=True, timeout=60
    )
    complaints = re.findall(r"line (\d+); (?:error|fatal)", run.stderr)
    return {int(line) - 7 for line in complaints} or ({0} if run.returncode else set())


@pytest.mark.judge
def test_ptxas_draws_the_line_at_the_same_place(ptxas: Path, tmp_path: Path) -> None:
    assert _lines_with_errors(ptxas, tmp_path, TAKEN) == set()
    refused = [b for b, _ in REFUSED if not b.startswith(FATAL)]
    assert len(refused) >= len(REFUSED) - len(FATAL)
    assert _lines_with_errors(ptxas, tmp_path, refused) >= set(range(1, len(refused) + 1))
    for body in FATAL:
        (whole,) = (b for b, _ in REFUSED if b.startswith(body))
        assert _lines_with_errors(ptxas, tmp_path, [whole]) != set()


def test_an_unknown_instruction_is_named_once_with_its_places() -> None:
    text = kernel_text(".loc 1 33 4\nfrobnicate.b32 %r1, %r2;\nfrobnicate.b32 %r1, %r2;\nmov.b9 %r1, 1;")
    text += '.file 1 "/src/k.py"\n'
    found = verify(ptx.parse(text), ISA)
    assert [d.kind for d in found] == [Unsupported.kind, Unsupported.kind]
    assert "frobnicate.b32" in found[0].what
    where = found[0].where
    assert where is not None
    assert (where.file, where.line, where.ptx_line) == ("/src/k.py", 33, 9)


def test_require_raises_what_is_worse() -> None:
    with pytest.raises(Unsupported, match="frobnicate"):
        require(ptx.parse(kernel_text("frobnicate %r1;")), ISA)
    with pytest.raises(InvalidInput, match="guard"):
        require(ptx.parse(kernel_text("frobnicate %r1;\n@%r1 ret;")), ISA)
    require(ptx.parse(kernel_text("ret;")), ISA)


def test_only_one_function() -> None:
    module = ptx.parse(HEADER + ".entry good { ret; }\n.entry bad { frobnicate; }")
    assert verify(module, ISA, only="good") == []
    assert len(verify(module, ISA, only="bad")) == 1


MODULES = [
    (HEADER.replace("sm_80", "compute_80") + ".entry k { ret; }", "target `compute_80` is not of the form sm_NN"),
    (HEADER.replace("64", "32") + ".entry k { ret; }", ".address_size 32"),
    (HEADER + ".global .b32 k;\n.entry k { ret; }", "`k` is declared twice at module level"),
    (HEADER + ".global .u64 x = y;", "the initial value of `x` names `y`, which is unknown"),
    (HEADER + ".entry k;", "entry `k` has no body"),
    (HEADER + ".entry k { ts: .branchtargets A, B; A: ret; }", "names label `B`, which is unknown"),
    (HEADER.replace("8.8", "6.5") + ".entry k { cp.async.wait_group 0; }", "needs PTX 7.0, the text says 6.5"),
    (HEADER.replace("80", "75") + ".entry k { cp.async.wait_group 0; }", "needs sm_80, the text says sm_75"),
]


@pytest.mark.parametrize(("text", "message"), MODULES)
def test_module_level(text: str, message: str) -> None:
    assert any(message in d.what for d in verify(ptx.parse(text), ISA))


def test_ir_made_by_hand_is_checked_too() -> None:
    loc, r = ir.Loc(1), ir.Reg("%r1", "b32")
    blocks = (
        ir.Block(("L",), (ir.Inst("mov", (".b32",), (r, ir.Imm(1)), loc),)),
        ir.Block(("L",), (ir.Inst("ret", (), (), loc),)),
    )
    k = ir.Kernel("k", True, (), {}, (), blocks, {}, {})
    found = [d.what for d in verify(ir.Module((8, 8), "sm_80", (), 64, (), (k,), {}), ISA)]
    assert found == ["label `L` stands at two places in `k`", "register `%r1` of type .b32 is not declared"]


def test_the_toy_table_is_an_isa() -> None:
    assert isinstance(ISA, Isa)
    assert all(re.match(r"[a-z]", op.name) for op in ISA.ops)
