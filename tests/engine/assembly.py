"""Small PTX kernels for the engine's tests: a body of instructions becomes a module and is launched.

Every kernel has the parameter `out` (an array of 32-bit words, unless the test says otherwise) and starts with

    %rd0 = out       %r0 = linear thread index in the CTA       %rd1 = &out[%r0]

so that a body that computes into %r3 ends with `STORE`. Registers of all kinds are declared; tests use those from
number 2 on (%r2, %rd2 ...). Further parameters are 64-bit: arrays, or integers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from interp.launch import Entry, Module, Result

ENGINE = os.environ.get("GPUEMU_TEST_ENGINE", "compiled")
"""`GPUEMU_TEST_ENGINE=traced` runs the tests of this folder on the other engine."""

REGISTERS = """
    .reg .pred %p<16>;
    .reg .b16 %h<16>;
    .reg .b32 %r<64>;
    .reg .b64 %rd<32>;
    .reg .f32 %f<16>;
    .reg .f64 %fd<16>;
"""
PROLOGUE = """
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, %tid.z;
    mov.u32 %r1, %ntid.y;
    mov.u32 %r2, %tid.y;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
"""
PROLOGUE_LENGTH = PROLOGUE.count(";")


def text(body: str, params: Sequence[str] = (), outside: str = "", target: str = "sm_80", directives: str = "") -> str:
    """PTX of one entry `k(out, *params)`; `outside`: module-scope variables, `directives`: such as `.maxntid 32`."""
    declared = ", ".join(f".param .u64 {name}" for name in ("out", *params))
    return (
        f".version 8.8\n.target {target}\n.address_size 64\n{outside}\n"
        f".visible .entry k({declared}) {directives}\n{{{REGISTERS}{PROLOGUE}{body}\n}}\n"
    )


def entry(body: str, params: Sequence[str] = (), outside: str = "", **options: Any) -> Entry:
    return Module.from_ptx(text(body, params, outside, **options))["k"]


def launch(
    body: str,
    *arrays: Any,
    block: Any = 32,
    grid: Any = 1,
    outside: str = "",
    params: Sequence[str] | None = None,
    target: str = "sm_80",
    **options: Any,
) -> Result:
    """Launch a body with arrays as `out`, `p1`, `p2` ...; further options go to `Entry.launch`."""
    names = [f"p{i}" for i in range(1, len(arrays))] if params is None else list(params)
    options.setdefault("engine", ENGINE)
    kernel = entry(body, names, outside, target=target)
    return kernel.launch(grid=grid, block=block, args=list(arrays), names=["out", *names], **options)


def words(
    body: str, *arrays: Any, block: Any = 32, grid: Any = 1, size: int | None = None, **options: Any
) -> np.ndarray[Any, Any]:
    """The words that a clean launch leaves in `out`, which starts as 0xFFFFFFFF everywhere."""
    threads = int(np.prod(block))
    out = np.full(threads if size is None else size, 0xFFFFFFFF, np.uint32)
    result = launch(body, out, *arrays, block=block, grid=grid, **options)
    assert result.findings == ()
    return out


STORE = "    st.global.u32 [%rd1], %r3;\n    ret;"
"""The usual end: %r3 is the thread's answer."""
