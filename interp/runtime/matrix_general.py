"""Matrix instructions that go element by element (`interp.tensorcore.general`): their symbols.

Operands are the registers of A, B, C and what follows, each a vector of 32 words; their numbers are among the
parameters, which `pack_shape` and `pack_extra` make.
"""

from __future__ import annotations

from interp.runtime.native import symbol
from interp.runtime.raw import load_u32
from interp.tensorcore.expanded_sparse import mma_sp_fp8_expanded
from interp.tensorcore.general import mma_f64_directed, mma_float, mma_integer, mma_scaled
from interp.tensorcore.volta import mma_884


def pack_shape(rows: int, depth: int, bits: int, kind_a: int = 0, kind_b: int = 0, out_kind: int = 0) -> int:
    """The first parameter: rows, logical columns, bits of an element, kinds."""
    return rows | depth << 8 | bits << 24 | kind_a << 32 | kind_b << 40 | out_kind << 48


def pack_extra(registers: tuple[int, int, int], sparse: bool = False, selector: int = 0) -> int:
    """The last parameter: registers of A, B and C, whether A is sparse, and which lanes have its metadata."""
    a, b, c = registers
    return a | b << 8 | c << 16 | int(sparse) << 24 | selector << 25


@symbol("warp_mma_general")
def warp_mma_general(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    shape: int, numbers: int, floor: int, extra: int,
) -> None:  # fmt: skip
    """numbers: block, fraction bits, fraction bits of the result, a byte each."""
    b = operands + 128 * (extra & 255)
    c = b + 128 * (extra >> 8 & 255)
    metadata = c + 128 * (extra >> 16 & 255)
    mma_float(
        results, operands, b, c, metadata, shape & 255, shape >> 8 & 0xFFFF, shape >> 24 & 255, shape >> 32 & 255,
        shape >> 40 & 255, shape >> 48, numbers & 255, numbers >> 8 & 255, floor, numbers >> 16, extra >> 24 & 1,
        extra >> 25,
    )  # fmt: skip


@symbol("warp_mma_sp_fp8_expanded")
def warp_mma_sp_fp8_expanded(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    kinds: int, numbers: int, floor: int, p3: int,
) -> None:  # fmt: skip
    """kinds of A and B, a byte each; numbers: block, fraction bits, a byte each."""
    mma_sp_fp8_expanded(
        results, operands, operands + 512, operands + 1024, operands + 1536, kinds & 255, kinds >> 8, numbers & 255,
        numbers >> 8, floor,
    )  # fmt: skip


@symbol("warp_mma_integer")
def warp_mma_integer(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    shape: int, flags: int, p2: int, extra: int,
) -> None:  # fmt: skip
    """flags: signed a, signed b, clamped, a bit each, then the operation on one bits."""
    b = operands + 128 * (extra & 255)
    c = b + 128 * (extra >> 8 & 255)
    metadata = c + 128 * (extra >> 16 & 255)
    mma_integer(
        results, operands, b, c, metadata, shape & 255, shape >> 8 & 0xFFFF, shape >> 24 & 255, flags & 1,
        flags >> 1 & 1, flags >> 3, flags >> 2 & 1, extra >> 24 & 1, extra >> 25,
    )  # fmt: skip


@symbol("warp_mma_f64_directed")
def warp_mma_f64_directed(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    shape: int, mode: int, registers_a: int, registers_b: int,
) -> None:  # fmt: skip
    b = operands + 256 * registers_a
    mma_f64_directed(results, operands, b, b + 256 * registers_b, shape & 255, shape >> 8, mode)


@symbol("warp_mma_scaled")
def warp_mma_scaled(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    kind: int, kinds: int, vector: int, flags: int,
) -> None:  # fmt: skip
    """Behind A, B, C and, of sparse products, metadata: scales of A, their byte and lane selectors (the same in all
    lanes), those of B. flags: bit 0 for scales of ue4m3, bit 1 for a sparse A."""
    sparse = flags >> 1
    c = operands + 128 * (8 if sparse else 6)
    scales_a = c + 128 * (5 if sparse else 4)
    scales_b = scales_a + 128 * 3
    mma_scaled(
        results, operands, operands + 512, c, scales_a, scales_b,
        load_u32(scales_a + 128) & 3, load_u32(scales_a + 256) & 1, load_u32(scales_b + 128) & 3,
        load_u32(scales_b + 256) & 3, kind, kinds & 255, kinds >> 8, vector, flags & 1, c + 512, sparse,
    )  # fmt: skip


@symbol("warp_mma_884")
def warp_mma_884(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int,
    layout: int, half_c: int, out: int, unit: int,
) -> None:  # fmt: skip
    """layout: bit 0 for A by columns, bit 1 for B by rows."""
    mma_884(results, operands, operands + 256, operands + 512, layout & 1, layout >> 1, half_c, out, unit)
