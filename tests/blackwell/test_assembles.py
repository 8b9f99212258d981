"""The forms of `tcgen05` and block-scaled `mma` that the tests use are what NVIDIA's assembler takes, for both targets
that have tensor memory and for `sm_120a`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
def test_tensor_memory(target: str, tmp_path: Path) -> None:
    done = assemble(TENSOR_MEMORY, target, tmp_path)
    assert done.returncode == 0, done.stderr
