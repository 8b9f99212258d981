"""Reductions by the copy unit: shared memory into global memory, element by element, ascending.

The arithmetic is that of atomics (`interp.runtime.atomics`), whose codes are used: operation + 16 * number class.
"""

from __future__ import annotations

from interp.runtime.atomics import BF16, BF16X2, F16, F16X2, update16, update32, update64
from interp.runtime.raw import load_u16, load_u32, load_u64, native, store_u16, store_u32, store_u64


@native
def element_bytes(code, wide):
    """Bytes of an element of an atomic's number class; `wide`: 64-bit numbers."""
    kind = code >> 4
    if kind == F16 or kind == BF16:
        return 2
    if kind == F16X2 or kind == BF16X2:
        return 4
    return 8 if wide else 4


@native
def reduce_element(code, size, target, source):
    """target = op(target, source) on one element of 2, 4 or 8 bytes."""
    if size == 2:
        store_u16(target, update16(code & 15, code >> 4, load_u16(target), load_u16(source)))
    elif size == 4:
        word = load_u32(source)
        store_u32(target, update32(code, False, load_u32(target), word, word))
    else:
        long = load_u64(source)
        store_u64(target, update64(code, load_u64(target), long, long))


@native
def reduce_bytes(code, target, source, size):
    """The same over a run of bytes; bit 8 of the code: 64-bit elements."""
    step = element_bytes(code & 255, code >> 8)
    for at in range(0, size, step):
        reduce_element(code & 255, step, target + at, source + at)
