"""Spellings that compilers and their headers emit, and the manual does not have; what the assembler makes of them."""

from __future__ import annotations

import pytest

import ptx
from interp.ops import ISA
from ptx.verify import verify

BODY = """
.version 8.6\n.target {target}\n.address_size 64
.visible .entry k() {{
    .reg .pred %p<4>; .reg .b8 %c<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f64 %fd<9>;
    {inst}
    ret;
}}
"""


def problems(inst: str, target: str = "sm_90") -> list[str]:
    return [d.what for d in verify(ptx.parse(BODY.format(inst=inst, target=target)), ISA)]


@pytest.mark.parametrize(
    ("inst", "manual"),
    [
        ("atom.add.release.gpu.u32 %r1, [%rd1], %r2;", "atom.release.gpu.add.u32"),  # libcu++
        ("atom.cas.acq_rel.sys.b64 %rd1, [%rd1], %rd2, %rd3;", "atom.acq_rel.sys.cas.b64"),
        ("atom.add.global.relaxed.cta.f64 %fd1, [%rd1], %fd2;", "atom.global.relaxed.cta.add.f64"),
        ("red.add.relaxed.gpu.s32 [%rd1], %r2;", "red.relaxed.gpu.add.s32"),
        ("vote.ballot.sync.b32 %r1, %p1, %r2;", "vote.sync.ballot.b32"),  # CUB
        ("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];",
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),  # CUTLASS
        ("wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rn {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd5, %fd6};",
         "wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64"),  # nvcc
    ],
)  # fmt: skip
def test_modifiers_elsewhere_than_in_the_manual(inst: str, manual: str) -> None:
    operands = inst.partition(" ")[2]
    assert problems(inst) == [] and problems(f"{manual} {operands}") == []
    found, meant = (ptx.parse(BODY.format(inst=i, target="sm_90")).kernels[0].blocks[0].insts[0]
                    for i in (inst, f"{manual} {operands}"))  # fmt: skip
    assert ISA.match(found).op is ISA.match(meant).op


@pytest.mark.parametrize("inst", ["cvt.rzi.s8.bf16 %c1, %h1;", "cvt.rzi.u8.bf16 %c1, %h1;", "cvt.rn.bf16.s8 %h1, %c1;"])
def test_bf16_and_bytes(inst: str) -> None:
    """cuda_bf16.h has them with registers of 8 bits; of other widths the assembler refuses them."""
    assert problems(inst) == []
    (problem,) = problems(inst.replace("%c1", "%r1"))
    assert "register %r1 is .b32" in problem


@pytest.mark.parametrize("inst", ["cvt.rn.bf16.f32 %r1, %r2;", "cvt.f32.bf16 %r1, %r2;", "cvt.rn.bf16.u16 %h1, %r1;"])
def test_registers_of_bf16_are_as_wide_as_it(inst: str) -> None:
    assert len(problems(inst)) == 1 and problems(inst.replace(".bf16", ".f16")) == []


@pytest.mark.parametrize("inst", ["prefetch.tensormap [%rd1];", "prefetch.param.tensormap [%rd1];"])
def test_hints_for_tensor_maps(inst: str) -> None:
    """CUTLASS's kernels for sm_90 and later begin with them."""
    assert problems(inst) == []
    (problem,) = problems(inst, "sm_80")
    assert "needs sm_90" in problem


@pytest.mark.parametrize("inst", ["alloca.u64 %rd1, %rd2, 24;", "alloca.u64 %rd1, %rd2, 16777216;"])
def test_alignment_of_alloca(inst: str) -> None:
    (problem,) = problems(inst)
    assert "a power of two" in problem


def test_what_passes_make_is_no_ptx() -> None:
    for inst in ("alloca.done.u64 %rd1, %rd2;", "stacksave.done.u64 %rd1, %rd2;", "stackrestore.done;"):
        assert "is no PTX" in problems(inst)[0]
