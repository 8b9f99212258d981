"""Small sm_90a kernels from a body: registers, the thread's number, pointers `%in` and `%out`, 8 KiB of shared memory
`s`."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuemu


def kernel(body: str, params: str = "") -> str:
    """PTX of entry `k(in, out, params)`. Ready: %t = tid.x, %s = address of s, %in, %out, %pi (&in[tid]), %po
    (&out[tid])."""
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p_in, .param .u64 p_out{params}) {{
.shared .align 1024 .b8 s[8192];
.reg .b32 %t, %s, %r<32>; .reg .b64 %in, %out, %pi, %po, %o, %d<16>; .reg .pred %p<16>;
mov.u32 %t, %tid.x; mov.u32 %s, s; ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out];
mul.wide.u32 %o, %t, 4; add.u64 %pi, %in, %o; add.u64 %po, %out, %o;
{body}
ret;
}}
"""


def launch(text: str, block: int, given: Any, count: int, *more: Any, grid: int = 1, **options: Any) -> tuple[Any, Any]:
    """(result, output of `count` words) of a kernel on an input array."""
    out = np.zeros(count, np.uint32)
    module = gpuemu.Module.from_ptx(text)
    return module["k"].launch(grid=(grid,), block=(block,), args=[given, out, *more], **options), out


def output(text: str, block: int, given: Any, count: int, *more: Any, **options: Any) -> Any:
    """The output of a kernel that has no findings."""
    result, out = launch(text, block, given, count, *more, **options)
    assert result.findings == ()
    return out


def wait(offset: int, parity: int | str) -> str:
    """Wait for a phase of the barrier at a byte of s."""
    poll = f"mbarrier.try_wait.parity.shared::cta.b64 done, [%s+{offset}], {parity};"
    return f"{{ .reg .pred done; again: {poll} @!done bra again; }}"
