"""NVIDIA's assembler takes the forms of `tcgen05`, block-scaled `mma.sp` and sparse `wgmma` that the tests use."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from interp.ops import ISA
from ptx.lower import toolchain

_PLAIN = [f"tcgen05.mma.sp.cta_group::1.kind::{k}" for k in ("f16", "tf32", "f8f6f4")]
_SCALED = [
    "kind::mxf8f6f4.block_scale", "kind::mxf4.block_scale", "kind::mxf4nvf4.block_scale.scale_vec::2X",
    "kind::mxf4nvf4.block_scale.block16",
]  # fmt: skip
TENSOR_MEMORY = [
    *(f"{op}{use} [%r0], {a}, %d1, [%r2], %r3, {lanes}%p0{scale};"
      for op in _PLAIN for use, a, lanes in (("", "%d0", ""), (".collector::a::fill", "[%r1]", "{%r4,%r5,%r6,%r7}, "))
      for scale in (("", ", 3") if "f8f6f4" not in op else ("",))),
    *(f"tcgen05.mma.sp.cta_group::1.{kind} [%r0], {a}, %d1, [%r2], %r3, [%r4], [%r5], %p0;"
      for kind in _SCALED for a in ("%d0", "[%r1]")),
    *(f"tcgen05.mma.ws.sp.cta_group::1.kind::f16{use} [%r0], {a}, %d1, [%r2], %r3, %p0{zeros};"
      for use, a, zeros in (("", "%d0", ""), (".collector::b2::use", "[%r1]", ", %d2"))),
]  # fmt: skip


_WARP = (
    "{%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r8,%r9,%r10,%r11}, {%r0,%r1,%r2,%r3}, %r12, 0, "
    "%r13, {0,0}, %r14, {0,0};"
)
BLOCK_SCALED = [
    f"mma{early}.sync.aligned{middle}.f32.{x}.{y}.f32.{scale} {_WARP}"
    for early, middle, x, y, scale in (
        (".sp::ordered_metadata", ".m16n8k64.row.col.kind::mxf8f6f4.block_scale", "e4m3", "e2m1", "ue8m0"),
        ("", ".kind::mxf8f6f4.sp::ordered_metadata.block_scale.scale_vec::1X.m16n8k64.row.col", "e2m3", "e3m2",
         "ue8m0"),
        (".sp::ordered_metadata", ".m16n8k128.row.col.kind::mxf4.block_scale", "e2m1", "e2m1", "ue8m0"),
        ("", ".kind::mxf4nvf4.sp::ordered_metadata.block_scale.scale_vec::4X.m16n8k128.row.col", "e2m1", "e2m1",
         "ue4m3"),
    )
]  # fmt: skip
HOPPER = [
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 {%r0,%r1}, %d0, %d1, %r2, 1, %p0, 1, -1, 0, 1;",
    "wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, %d1, %r8, 1, %p0, "
    "1, 1;",
    "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2 {%r0,%r1,%r2,%r3}, %d0, %d1, %r8, 0, %p0, 1, 1;",
    "wgmma.mma_async.sp.sync.aligned.m64n8k64.satfinite.s32.u8.s8 {%r0,%r1,%r2,%r3}, %d0, %d1, %r8, 0, %p0;",
    "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%r0,%r1,%r2,%r3}, %d0, %d1, %p0;",
]  # fmt: skip


def assemble(lines: list[str], target: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the assembler on a kernel of such lines."""
    body = "\n".join(lines)
    (folder / "k.ptx").write_text(
        f".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k() {{\n"
        ".reg .b32 %r<64>; .reg .b64 %d<8>; .reg .f32 %f<16>; .reg .b16 %h<4>; .reg .pred %p<2>;\n"
        f"{body}\nret;\n}}\n"
    )
    command = [str(toolchain.tool("ptxas-blackwell")), f"-arch={target}", folder / "k.ptx", "-o", folder / "k.cubin"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("target", "lines"),
    [("sm_90a", HOPPER), ("sm_100a", TENSOR_MEMORY), ("sm_103a", TENSOR_MEMORY), ("sm_120a", BLOCK_SCALED)],
)
def test_forms(target: str, lines: list[str], tmp_path: Path) -> None:
    done = assemble(lines, target, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line for line in lines if not ISA.knows(line.partition(" ")[0])] == []
