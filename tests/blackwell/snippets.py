"""Small sm_100a kernels with tensor memory from a body: registers, the thread's number, an allocation, shared memory
`s`."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuemu


def kernel(body: str, *, columns: int = 512, deallocates: bool = True, target: str = "sm_100a") -> str:
    """PTX of entry `k(in, out)`. Ready: %t = tid.x, %w = its warp, %s = address of s, %in, %out, %first = thread 0,
    %warp0 = threads 0 to 31, %base = address of `columns` columns (0: none allocated), %mine = %base in the warp's
    quarter, %bar = an mbarrier for one arrival, %zero = false."""
    alloc = free = ""
    if columns:
        alloc = f"@%warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], {columns};"
        alloc += "bar.sync 0; ld.shared.b32 %base, [s];"
    if columns and deallocates:
        free = f"bar.sync 0; @%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, {columns};"
    return f"""
.version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .u64 p_in, .param .u64 p_out) {{
.shared .align 1024 .b8 s[16384];
.reg .b32 %t, %w, %s, %base, %mine, %bar, %r<64>, %v<130>;
.reg .b64 %in, %out, %d<16>; .reg .pred %first, %warp0, %zero, %p<16>;
mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.u32 %s, s; ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out];
setp.eq.u32 %first, %t, 0; setp.lt.u32 %warp0, %t, 32; setp.ne.u32 %zero, %t, %t; mov.u32 %base, 0;
add.u32 %bar, %s, 8; @%first mbarrier.init.shared::cta.b64 [%bar], 1;
{alloc}
bar.sync 0; and.b32 %mine, %w, 3; shl.b32 %mine, %mine, 21; add.u32 %mine, %mine, %base;
{body}
{free}
ret;
}}
"""


WAIT = "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%bar], 0; @!done bra again; }"
COMMIT = "@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];"


def launch(text: str, given: Any = None, count: int = 128, block: int = 128, **options: Any) -> tuple[Any, Any]:
    """(result, output of `count` words) of a kernel on an input array."""
    out = np.zeros(count, np.uint32)
    given = np.zeros(1, np.uint32) if given is None else given
    module = gpuemu.Module.from_ptx(text)
    return module["k"].launch(grid=(1,), block=(block,), args=[given, out], **options), out


def output(text: str, given: Any = None, count: int = 128, **options: Any) -> Any:
    """The output of a kernel that has no findings."""
    result, out = launch(text, given, count, **options)
    assert result.findings == (), result.findings
    return out


def finding(text: str, **options: Any) -> Any:
    """The one finding of a kernel."""
    (found,) = launch(text, **options)[0].findings
    return found
