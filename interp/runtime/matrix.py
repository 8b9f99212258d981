"""Warp-level matrix operations: `mma.sync` through the tensor-core models, `ldmatrix`, `movmatrix`.

Operands of a multiplication arrive as registers of A, then B, then C, each a vector of 32 words
(`interp.tensorcore.fragments`). Arithmetic is chosen by the parameters, which come from `interp.tensorcore.table` for
the launch's device.

Source of the load layout: PTX ISA 'ldmatrix': lane 8 m + r gives the address of row r of matrix m; lane l receives
elements 2 (l mod 4) and 2 (l mod 4) + 1 of row l / 4 (with `.trans` of column l / 4).
"""

from __future__ import annotations

from collections.abc import Callable

from interp.runtime.access import get, locate
from interp.runtime.native import symbol
from interp.runtime.raw import load_u16, load_u32, native_inline, store_u16, store_u32, u32
from interp.tensorcore.expanded import mma_f64, mma_fp8_expanded
from interp.tensorcore.fast import mma
from interp.tensorcore.integers import mma_s8


def pack(arguments: tuple[int, ...]) -> tuple[int, ...]:
    """A float plan's eight arguments as four parameters: (groups, kinds, out kind), block, (F, out fraction), floor."""
    groups, kind_a, kind_b, block, fraction, floor, out_kind, out_fraction = arguments
    return groups | kind_a << 8 | kind_b << 16 | out_kind << 24, block, fraction | out_fraction << 8, floor


@native_inline
def _float(
    product: Callable[..., None], results: int, operands: int, kinds: int, block: int, fractions: int, floor: int
) -> None:
    groups = kinds & 255
    b = operands + 256 * groups
    c = b + 128 * groups
    product(
        results, operands, b, c, groups, kinds >> 8 & 255, kinds >> 16 & 255, block, fractions & 255, floor,
        kinds >> 24, fractions >> 8,
    )  # fmt: skip


@symbol("warp_mma")
def warp_mma(
    ctx: int,
    warp: int,
    site: int,
    mask: int,
    results: int,
    operands: int,
    kinds: int,
    block: int,
    fractions: int,
    floor: int,
) -> None:
    _float(mma, results, operands, kinds, block, fractions, floor)


@symbol("warp_mma_fp8_expanded")
def warp_mma_fp8_expanded(
    ctx: int,
    warp: int,
    site: int,
    mask: int,
    results: int,
    operands: int,
    kinds: int,
    block: int,
    fractions: int,
    floor: int,
) -> None:
    _float(mma_fp8_expanded, results, operands, kinds, block, fractions, floor)


@symbol("warp_mma_s8")
def warp_mma_s8(
    ctx: int,
    warp: int,
    site: int,
    mask: int,
    results: int,
    operands: int,
    groups: int,
    signed_a: int,
    signed_b: int,
    satfinite: int,
) -> None:
    b = operands + 256 * groups
    mma_s8(results, operands, b, b + 128 * groups, groups, signed_a, signed_b, satfinite)


@symbol("warp_mma_f64")
def warp_mma_f64(
    ctx: int,
    warp: int,
    site: int,
    mask: int,
    results: int,
    operands: int,
    rows: int,
    depth: int,
    registers_a: int,
    registers_b: int,
) -> None:
    b = operands + 256 * registers_a
    mma_f64(results, operands, b, b + 256 * registers_b, rows, depth)


@symbol("warp_ldmatrix")
def warp_ldmatrix(
    ctx: int,
    warp: int,
    site: int,
    mask: int,
    results: int,
    operands: int,
    count: int,
    transpose: int,
    space: int,
    p3: int,
) -> None:
    """Operand: row addresses. Results: `count` registers."""
    for m in range(count):
        for r in range(8):
            lane = 8 * m + r
            row = locate(ctx, warp, site, lane, space, get(operands + 8 * lane), 16, False)
            if row == 0:
                return
            for j in range(4):
                if transpose:
                    # elements (r, 2j) and (r, 2j+1): half r & 1 of the lanes that own columns 2j and 2j+1
                    for e in range(2):
                        at = results + 128 * m + 4 * (4 * (2 * j + e) + (r >> 1))
                        half = u32(load_u16(row + 4 * j + 2 * e))
                        if r & 1:
                            store_u32(at, (load_u32(at) & u32(0xFFFF)) | (half << u32(16)))
                        else:
                            store_u32(at, (load_u32(at) & u32(0xFFFF0000)) | half)
                else:
                    store_u32(results + 128 * m + 4 * (4 * r + j), load_u32(row + 4 * j))


@symbol("warp_stmatrix")
def warp_stmatrix(
    ctx: int,
    warp: int,
    site: int,
    mask: int,
    results: int,
    operands: int,
    count: int,
    transpose: int,
    space: int,
    p3: int,
) -> None:
    """Operands: row addresses (64 bits), then `count` registers; the inverse of `ldmatrix`."""
    for m in range(count):
        for r in range(8):
            lane = 8 * m + r
            row = locate(ctx, warp, site, lane, space, get(operands + 8 * lane), 16, True)
            if row == 0:
                return
            source = operands + 256 + 128 * m
            if transpose:
                for c in range(8):
                    store_u16(row + 2 * c, load_u16(source + 4 * (4 * c + (r >> 1)) + 2 * (r & 1)))
            else:
                for j in range(4):
                    store_u32(row + 4 * j, load_u32(source + 4 * (4 * r + j)))


@symbol("warp_movmatrix")
def warp_movmatrix(
    ctx: int, warp: int, site: int, mask: int, results: int, operands: int, p0: int, p1: int, p2: int, p3: int
) -> None:
    """Transpose an 8x8 matrix of 16-bit elements held across the warp."""
    for lane in range(32):
        word = u32(0)
        for e in range(2):
            row, column = 2 * (lane & 3) + e, lane >> 2
            source = load_u32(operands + 4 * (4 * row + (column >> 1)))
            half = source >> u32(16) if column & 1 else source & u32(0xFFFF)
            word |= half << u32(16 * e)
        store_u32(results + 4 * lane, word)
