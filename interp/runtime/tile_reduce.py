"""Reductions by the copy unit: shared memory into global memory, element by element, ascending.

The arithmetic is that of atomics (`interp.runtime.atomics`), whose codes are used: operation + 16 * number class; bit 8
set for 64-bit elements, bit 9 where f32 keeps subnormals: it does (an H200), but for tensor maps of the `.ftz` types,
which flush them as atomics do. Copies reach it by its address in the context (`interp.runtime.indirect`): it is bulky,
and few kernels use it.
"""

from __future__ import annotations

from interp.runtime.access import get, put
from interp.runtime.atomics import BF16, BF16X2, F16, F16X2, update16, update32, update64
from interp.runtime.indirect import STEP_SIGNATURE, call_by_address
from interp.runtime.layout import CTX
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u16, load_u32, load_u64, native, stack_scratch, store_u16, store_u32, store_u64

_COMBINE = 8 * CTX["COMBINE"]
WIDE, SUBNORMALS = 256, 512


@native
def combine(ctx: int, code: int, target: int, source: int, size: int) -> None:
    """target = op(target, source) on `size` bytes of elements."""
    job = stack_scratch(32)
    put(job, code)
    put(job + 8, target)
    put(job + 16, source)
    put(job + 24, size)
    call_by_address(get(ctx + _COMBINE), ctx, job)


@symbol("bulk_combine", STEP_SIGNATURE)
def bulk_combine(ctx: int, job: int) -> int:
    """What `combine` asks for: code, target, source, bytes."""
    code, target, source, size = get(job), get(job + 8), get(job + 16), get(job + 24)
    kind = code >> 4 & 15
    at = i64(0)
    while at < size:
        if kind in (F16, BF16):
            store_u16(target + at, update16(code & 15, kind, load_u16(target + at), load_u16(source + at)))
            at += 2
        elif code & WIDE == 0 or kind in (F16X2, BF16X2):
            word = load_u32(source + at)
            store_u32(target + at, update32(code & 255, code & SUBNORMALS, load_u32(target + at), word, word))
            at += 4
        else:
            long = load_u64(source + at)
            store_u64(target + at, update64(code & 255, load_u64(target + at), long, long))
            at += 8
    return 0
