"""Products of a warpgroup without vector code, in the queue of the others (`interp.runtime.wgmma`): those of a sparse
A, and one-bit ones, which count the ones in a and b.

A sparse A has 32 bytes of stored elements a row, B 64 bytes a column. A warp has the metadata of its sixteen rows as
`mma.sp` of the same types has it (`interp.tensorcore.elements`); with 16- and 32-bit types the selector says which pair
of lanes of each quad. Arithmetic: the dense instruction's on what is stored, in one block. With 32-byte swizzling the
second 32 bytes of a column of a K-major B lie a leading offset behind the first, which is not documented.

An H200 gave the same bits for f16, bf16, tf32, FP8, integers and one-bit operands, and has B so in every layout.

Kernels with such an instruction let all their products take effect through `wgmma_general_multiply`, which does the
others as well.
"""

from __future__ import annotations

from interp.runtime.access import get
from interp.runtime.indirect import STEP_SIGNATURE
from interp.runtime.layout import WARP
from interp.runtime.native import symbol
from interp.runtime.raw import i64, load_u32, load_u64, native, stack_scratch, store_u64, u64
from interp.runtime.wgmma import (
    A_IN_REGISTERS,
    BITS,
    CLAMP,
    E_A,
    E_B,
    E_FLOOR,
    E_FRACTIONS,
    E_KINDS,
    E_METADATA,
    E_REGISTERS,
    E_SCALE,
    E_SHAPE,
    E_SITE,
    E_SLOTS,
    E_WARP,
    INTEGER,
    NEGATE_A,
    NEGATE_B,
    SECOND_PAIR,
    SIGNED_A,
    SIGNED_B,
    SPARSE,
    TRANSPOSE_A,
    TRANSPOSE_B,
    check_descriptor,
    gather,
    issue,
    move_registers,
    multiply,
    negate,
    new_entry,
)
from interp.tensorcore.fast import element_bytes
from interp.tensorcore.general import POPC_AND, mma_float, mma_integer
from interp.tensorcore.model import F16

_WARP_ID = 8 * WARP["ID"]


@symbol("async_wgmma_general")
def async_wgmma_general(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    kinds: int, shape: int, fractions: int, floor: int,
) -> None:  # fmt: skip
    """Operands: metadata (32 bits), then those of `async_wgmma`."""
    entry = new_entry(ctx, warp, site, operands + 128, kinds, shape, fractions, floor)
    if entry == 0:
        return
    for i in range(0, 128, 8):
        store_u64(entry + E_METADATA + i, load_u64(operands + i))
    issue(ctx, warp)


@symbol("wgmma_general_multiply", STEP_SIGNATURE)
def wgmma_general_multiply(ctx: int, entry: int) -> int:
    """Compute a warp's rows of one instruction, accumulators in place."""
    if get(entry + E_SHAPE) >> 16 & (SPARSE | BITS):
        _multiply(ctx, get(entry + E_WARP), entry)
    else:
        multiply(ctx, get(entry + E_WARP), entry)
    return 0


@native
def _operands(ctx: int, warp: int, entry: int, tiles: int, flags: int, a: int, b: int) -> bool:
    """Gather A (two groups of 16 bytes of k) and B (four for a sparse A, else two); False after a fault."""
    site = get(entry + E_SITE)
    if flags & A_IN_REGISTERS:
        for i in range(0, 512, 8):
            store_u64(a + i, load_u64(entry + E_REGISTERS + i))
    else:
        descriptor, row = get(entry + E_A), (get(warp + _WARP_ID) & 3) * 16
        check_descriptor(ctx, warp, site, descriptor)
        for h in range(2):
            if not gather(ctx, warp, site, descriptor, flags & TRANSPOSE_A != 0, row + 8 * h, a + 128 * h, 256, 2):
                return False
    descriptor = get(entry + E_B)
    check_descriptor(ctx, warp, site, descriptor)
    transpose, halves, groups = flags & TRANSPOSE_B != 0, i64(1), i64(4 if flags & SPARSE else 2)
    if groups == 4 and not transpose and descriptor >> 62 & 3 == 3:  # 32-byte swizzling
        halves = i64(2)
    for half in range(halves):
        for t in range(tiles):
            target = b + 128 * groups * t + 256 * half
            if not gather(ctx, warp, site, descriptor, transpose, 8 * t, target, 128, groups // halves):
                return False
        descriptor += descriptor >> 16 & 0x3FFF
    return True


@native
def _multiply(ctx: int, warp: int, entry: int) -> None:
    kinds, shape = get(entry + E_KINDS), get(entry + E_SHAPE)
    tiles, flags = shape >> 8 & 255, shape >> 16
    kind_a, kind_b, out_kind = kinds >> 8 & 255, kinds >> 16 & 255, kinds >> 24
    slots = i64(2 if out_kind == F16 else 4)
    a, b, c = stack_scratch(512), stack_scratch(16384), stack_scratch(16384)
    if not _operands(ctx, warp, entry, tiles, flags, a, b):
        return
    for i in range(slots * tiles):
        if i64(load_u32(entry + E_SLOTS + 4 * i)) == 0xFFFFFFFF:
            return  # nobody reads the result
    size = i64(1) if flags & INTEGER else element_bytes(kind_a)
    if flags & NEGATE_A:
        negate(a, 128, size)
    if flags & NEGATE_B:
        negate(b, 128 * tiles, size)
    move_registers(warp, entry, c, slots * tiles, False)
    if get(entry + E_SCALE) == 0:
        for i in range(0, 128 * slots * tiles, 8):
            store_u64(c + i, u64(0))
    depth, bits, metadata = 64 // size, 8 * size, entry + E_METADATA
    selector, fractions = i64(1 if flags & SECOND_PAIR else 0), get(entry + E_FRACTIONS)
    for t in range(tiles):
        tile, right = c + 128 * slots * t, b + (512 if flags & SPARSE else 256) * t
        if flags & BITS:
            mma_integer(tile, a, right, tile, metadata, 16, 8, 32, 0, 0, POPC_AND, 0, 0, 0)
        elif flags & INTEGER:
            mma_integer(
                tile, a, right, tile, metadata, 16, depth, bits, flags // SIGNED_A & 1, flags // SIGNED_B & 1, 0,
                flags // CLAMP & 1, 1, selector,
            )  # fmt: skip
        else:
            mma_float(
                tile, a, right, tile, metadata, 16, depth, bits, kind_a, kind_b, out_kind, shape & 255,
                fractions & 255, get(entry + E_FLOOR), fractions >> 8, 1, selector,
            )  # fmt: skip
    move_registers(warp, entry, c, slots * tiles, True)
