"""Gluon kernels, compiled without a GPU. The tool lowers no Gluon itself, so the tests hand its PTX over."""

from __future__ import annotations

from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.blackwell import clc, mbarrier


@gluon.jit
def squares(x, y, n, BLOCK: gl.constexpr, LAYOUT: gl.constexpr):
    """y = x * x, a tile at a time: its own, then those of the CTAs that it can take over."""
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, order=[0]))
    mbarrier.init(bar, count=1)
    tile = gl.program_id(0)
    more = True
    phase = 0
    while more:
        mbarrier.expect(bar, 16)
        clc.try_cancel(answer, bar)
        at = tile * BLOCK + gl.arange(0, BLOCK, layout=LAYOUT)
        v = gl.load(x + at, mask=at < n)
        gl.store(y + at, v * v, mask=at < n)
        mbarrier.wait(bar, phase)
        phase ^= 1
        got = clc.load_result(answer)
        more = got.is_canceled()
        tile = got.program_id(0)
    mbarrier.invalidate(bar)


def squares_ptx(block: int, capability: int) -> str:
    """PTX of `squares` for four warps."""
    constants: dict[str, Any] = {"BLOCK": block, "LAYOUT": gl.BlockedLayout([1], [32], [4], [0])}
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr", "LAYOUT": "constexpr"}
    source = GluonASTSource(squares, signature=types, constexprs=constants)
    options = {"num_warps": 4, "enable_fp_fusion": False}
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    return str(made.asm["ptx"])
