"""Atomic read-modify-write operations, lane after lane in ascending order.

Source: PTX ISA 'atom', 'red'. Float addition rounds to nearest even; `atom.add.f32` on global memory flushes subnormal
inputs and results to zero, on shared memory it keeps them, as the manual says of current hardware; a generic address
decides by where it points (an H200 agrees). The 16-bit formats add and compare in f32 or f64 and round once (exact:
`interp.formats`). In f64 a NaN is passed on, made quiet, memory's before the operand's: what an H200 did with a NaN in
memory in a reduction by the copy unit; the rest is by analogy with its double-precision unit.
"""

from __future__ import annotations

from interp.formats.halves import Word, bf16_add, bf16_max, bf16_min, f16_add, f16_max, f16_min
from interp.runtime.access import get, in_shared, locate, note_write
from interp.runtime.layout import CTX
from interp.runtime.native import symbol
from interp.runtime.raw import (
    bits_from_f64,
    f32_add,
    f64_from_bits,
    load_u16,
    load_u32,
    load_u64,
    native,
    store_u16,
    store_u32,
    store_u64,
    u16,
    u32,
    u64,
)

_OPS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_TYPES = ("u", "s", "f", "f16x2", "bf16x2", "f16", "bf16")
_WATCH_HI = 8 * CTX["WATCH_HI"]
ADD, MIN, MAX, AND, OR, XOR, EXCH, CAS, INC, DEC = range(10)
U, S, F, F16X2, BF16X2, F16, BF16 = range(7)


def atomic_symbol(op: str, type: str) -> tuple[str, int, int]:
    """Runtime symbol, width in bits and code (operation + 16 * number class) of an atomic."""
    if type in _TYPES:
        n, kind = (32 if type.endswith("x2") else 16), _TYPES.index(type)
    else:
        n, kind = int(type[1:]), _TYPES.index(type[0] if type[0] in "sf" else "u")
    return f"atomic_b{n}", n, _OPS.index(op) + 16 * kind


@native
def _flush(word: int) -> int:
    return word & u32(0x80000000) if word & u32(0x7F800000) == 0 else word


@native
def update32(code: int, shared: int, old: int, b: int, c: int) -> int:
    """New 32-bit word."""
    op, kind = code & 15, code >> 4
    if op == EXCH:
        return b
    if op == CAS:
        return c if old == b else old
    if op == INC:
        return u32(0) if old >= b else u32(old + u32(1))
    if op == DEC:
        return b if old == 0 or old > b else u32(old - u32(1))
    if op == AND:
        return old & b
    if op == OR:
        return old | b
    if op == XOR:
        return old ^ b
    if kind == F:
        if shared:
            return f32_add(old, b)
        return _flush(f32_add(_flush(old), _flush(b)))
    if kind in (F16X2, BF16X2):
        half = F16 if kind == F16X2 else BF16
        low = update16(op, half, u16(old & u32(0xFFFF)), u16(b & u32(0xFFFF)))
        high = update16(op, half, u16(old >> u32(16)), u16(b >> u32(16)))
        return u32(low) | u32(u32(high) << u32(16))
    if op == ADD:
        return u32(old + b)
    flip = u32(0x80000000) if kind == S else u32(0)
    less = (old ^ flip) < (b ^ flip)
    if op == MIN:
        return old if less else b
    return b if less else old


@native
def update16(op: int, kind: int, old: int, b: int) -> Word:
    """New 16-bit float word."""
    if kind == F16:
        if op == ADD:
            return f16_add(old, b)
        return f16_min(old, b, 0) if op == MIN else f16_max(old, b, 0)
    if op == ADD:
        return bf16_add(old, b)
    return bf16_min(old, b, 0) if op == MIN else bf16_max(old, b, 0)


@native
def update64(code: int, old: int, b: int, c: int) -> int:
    """New 64-bit word."""
    op, kind = code & 15, code >> 4
    if op == EXCH:
        return b
    if op == CAS:
        return c if old == b else old
    if op == AND:
        return old & b
    if op == OR:
        return old | b
    if op == XOR:
        return old ^ b
    if kind == F:
        for word in (old, b):
            if word & u64(0x7FFFFFFFFFFFFFFF) > u64(0x7FF0000000000000):
                return word | u64(1 << 51)
        total = f64_from_bits(old) + f64_from_bits(b)
        return bits_from_f64(total) if total == total else u64(0xFFF8000000000000)
    if op == ADD:
        return u64(old + b)
    flip = u64(0x8000000000000000) if kind == S else u64(0)
    less = (old ^ flip) < (b ^ flip)
    if op == MIN:
        return old if less else b
    return b if less else old


@symbol("atomic_b32")
def atomic_b32(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, code: int, p2: int, p3: int
) -> None:
    """Operands: address, b, c (for cas). Result: the old word."""
    for i in range(32):
        if not mask >> i & 1:
            store_u32(results + 4 * i, u32(0))
            continue
        address = get(operands + 8 * i)
        at = locate(ctx, warp, site, i, space, address, 4, True)
        if at == 0:
            return
        old = load_u32(at)
        b = load_u32(operands + 256 + 4 * i)
        c = load_u32(operands + 384 + 4 * i) if code & 15 == CAS else b
        store_u32(at, update32(code, in_shared(space, address), old, b, c))
        store_u32(results + 4 * i, old)
        if get(ctx + _WATCH_HI) and not in_shared(space, address):
            note_write(ctx, site, address, 4)


@symbol("atomic_b64")
def atomic_b64(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, code: int, p2: int, p3: int
) -> None:
    """Operands: address, b, c (for cas). Result: the old word."""
    for i in range(32):
        if not mask >> i & 1:
            store_u64(results + 8 * i, u64(0))
            continue
        address = get(operands + 8 * i)
        at = locate(ctx, warp, site, i, space, address, 8, True)
        if at == 0:
            return
        old = load_u64(at)
        b = load_u64(operands + 256 + 8 * i)
        c = load_u64(operands + 512 + 8 * i) if code & 15 == CAS else b
        store_u64(at, update64(code, old, b, c))
        store_u64(results + 8 * i, old)
        if get(ctx + _WATCH_HI) and not in_shared(space, address):
            note_write(ctx, site, address, 8)


@symbol("atomic_b16")
def atomic_b16(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, code: int, p2: int, p3: int
) -> None:
    """Operands: address, b, c (for cas). Result: the old word."""
    for i in range(32):
        if not mask >> i & 1:
            store_u16(results + 2 * i, u16(0))
            continue
        address = get(operands + 8 * i)
        at = locate(ctx, warp, site, i, space, address, 2, True)
        if at == 0:
            return
        old = load_u16(at)
        b = load_u16(operands + 256 + 2 * i)
        c = load_u16(operands + 320 + 2 * i) if code & 15 == CAS else b
        if code & 15 == CAS:
            new = c if old == b else old
        elif code & 15 == EXCH:
            new = b
        else:
            new = update16(code & 15, code >> 4, old, b)
        store_u16(at, new)
        store_u16(results + 2 * i, old)
        if get(ctx + _WATCH_HI) and not in_shared(space, address):
            note_write(ctx, site, address, 2)


@symbol("atomic_vector")
def atomic_vector(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, space: int, size: int, p2: int, p3: int
) -> None:
    """Whether vectors of `size` bytes at the addresses may be written, alignment included; their elements follow."""
    for i in range(32):
        if mask >> i & 1 and locate(ctx, warp, site, i, space, get(operands + 8 * i), size, True) == 0:
            return
