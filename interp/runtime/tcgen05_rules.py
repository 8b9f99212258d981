"""Which `tcgen05.mma` hardware takes and which of them are modelled: flags of the instruction against its descriptors.

Source: PTX ISA, 'Instruction descriptor', 'Matrix Shape', 'Zero-Column Mask Descriptor', 'Sparse Matrices', and
CUTLASS's assertions (`cute/arch/mma_sm100_umma.hpp`). Every check has a reason of `tensor_reasons`, 0 is none.

Sparse products are modelled where CUTLASS or JAX say where the metadata lies (`tcgen05_metadata`): M = 128 (256 with
two CTAs), and M = 32, 64, 128 of `.ws`. For M = 64, and for 128 with two CTAs, only figures of the manual do.
"""

from __future__ import annotations

from interp.runtime.raw import i64, native
from interp.runtime.tcgen05_matrix import crosses_line, descriptor_reason, is_absolute, swizzle_mode
from interp.runtime.tensor_reasons import (
    ABSOLUTE_STRIDE,
    BAD_MASK,
    BAD_SCALE,
    BAD_SCALE_ID,
    BAD_SELECTOR,
    BAD_SHAPE,
    BAD_SHIFT,
    BAD_TRANSPOSE,
    BAD_TYPES,
    DEEP,
    DEEP_LAYOUT,
    DEEP_PAIR,
    HALF_SPARSE,
    METADATA_COLUMN,
    NARROW_LINE,
    NEGATED,
    SPARSITY,
    SWIZZLED_32,
)

KIND_F16, KIND_TF32, KIND_F8F6F4, KIND_I8, KIND_MXF8F6F4, KIND_MXF4, KIND_MXF4NVF4 = range(7)
A_IN_TENSOR_MEMORY, PAIR, STATIONARY, SPARSE, BY_COUNT = (1 << i for i in range(3, 8))
BLOCK_SHIFT, MASKS_SHIFT, SCALE_D_SHIFT = 8, 16, 20
HAS_96 = 1 << 24
"""Flags of `tcgen05.mma`: kind (3 bits), the bits above (BY_COUNT: the number of scales is named, not their block),
then the block size of scales (16, 32 or 0), the number of words of disable-output-lane and scale-input-d; last whether
the device has K = 96."""


@native
def rows_of(kind: int, idesc: int) -> int:
    """M of an instruction descriptor."""
    return (idesc >> 27 & 3) * 128 if kind >= KIND_MXF8F6F4 else (idesc >> 24 & 31) * 16


@native
def columns_of(idesc: int) -> int:
    """N of an instruction descriptor."""
    return (idesc >> 17 & 63) * 8


@native
def element_size(kind: int) -> int:
    """Bytes of an element in the rows that are gathered; 4-bit kinds count as bytes."""
    return i64(2 if kind == KIND_F16 else 4 if kind == KIND_TF32 else 1)


@native
def is_deep(kind: int, idesc: int) -> bool:
    """Whether K is 96."""
    return kind >= KIND_MXF4 and idesc >> 31 & 1 != 0


@native
def row_chunks(kind: int, idesc: int) -> int:
    """Chunks of 16 bytes in a row of A."""
    return i64(3 if is_deep(kind, idesc) else 2)


@native
def column_chunks(flags: int, idesc: int) -> int:
    """Chunks of 16 bytes in a column of B."""
    return row_chunks(flags & 7, idesc) << (1 if flags & SPARSE else 0)


@native
def column_shift(zeros: int) -> int:
    """Columns of B that `.ws` skips, of a zero-column mask descriptor."""
    return zeros >> 56 & 63


@native
def is_masked(zeros: int, m: int, width: int, column: int) -> bool:
    """Whether a zero-column mask makes column `column` of D that of a zero column of B; width: columns of a sub-mask.

    Each sub-mask is a piece of the pattern of columns that are used and columns that are zero, in turns; it begins
    with the kind that First Span names and leaves out the first Start Count columns. (The manual's examples say which
    of Skip Span and Use Span is which; its table has them the other way round.)"""
    if zeros >> 39 & 1 == 0:
        return False
    part = column // width
    skip, use = (zeros >> 40 & 255) + 1, (zeros >> 48 & 255) + 1
    at = (column - part * width + (zeros >> 8 * part & 255)) % (skip + use)
    return at < skip if zeros >> (32 + part) & 1 else at >= use


@native
def _types_are_good(flags: int, idesc: int) -> bool:
    kind, out, a, b = flags & 7, idesc >> 4 & 3, idesc >> 7 & 7, idesc >> 10 & 7
    if kind == KIND_F16:
        return a < 2 and b < 2 and (out == 1 or (out == 0 and a == 0 and b == 0))
    if kind == KIND_TF32:
        return a == 2 and b == 2 and out == 1
    if kind == KIND_I8:
        return a < 2 and b < 2 and out == 2
    if kind in (KIND_F8F6F4, KIND_MXF8F6F4):
        good = a in (0, 1, 3, 4, 5) and b in (0, 1, 3, 4, 5)
        return good and (kind == KIND_MXF8F6F4 or out < 2)
    return a == 1 and (b == 1 or (b == 5 and not flags & SPARSE))


@native
def _shape_is_good(kind: int, flags: int, m: int, n: int, deep: bool) -> bool:
    if n < 8 or n > 256:
        return False
    if flags & STATIONARY:
        return (m == 32 or m == 64 or m == 128) and (n == 64 or n == 128 or n == 256)
    pair = flags & PAIR != 0
    step = i64(16 if pair or deep else 8)
    if kind == KIND_I8:
        step = i64(32 if pair else 16 if n > 32 else 8)
    least = i64(128 if pair or kind >= KIND_MXF8F6F4 else 64)
    most = i64(256 if pair else 128)
    return n % step == 0 and m in (least, most)


@native
def _transpose_reason(kind: int, size: int, transpose: int, small: bool, mode: int) -> int:
    if mode == 1 and not (transpose and size == 4):
        return i64(SWIZZLED_32)
    if transpose and (kind >= KIND_MXF4 or small or (size == 4 and mode != 1)):
        return i64(BAD_TRANSPOSE)
    return i64(0)


@native
def _scale_reason(kind: int, block: int, idesc: int) -> int:
    ue8m0, id_a, id_b = idesc >> 23 & 1, idesc >> 29 & 3, idesc >> 4 & 3
    if not ue8m0 and not (kind == KIND_MXF4NVF4 and block == 16):
        return i64(BAD_SCALE)
    allowed = i64(3 if kind == KIND_MXF8F6F4 else 2 if block == 32 else 0)
    if is_deep(kind, idesc):
        allowed = i64(3 if block == 32 else 2)
    return i64(0) if (id_a | id_b) & ~allowed == 0 else i64(BAD_SCALE_ID)


@native
def _sparse_reason(kind: int, flags: int, m: int, idesc: int, metadata: int) -> int:
    if idesc >> 2 & 1 != (1 if flags & SPARSE else 0):
        return i64(SPARSITY)
    selector = idesc & 3
    if not flags & SPARSE:
        return i64(0)
    if not flags & STATIONARY and m != (256 if flags & PAIR else 128):
        return i64(HALF_SPARSE)
    if selector > (1 if kind in (KIND_F16, KIND_TF32) else 0):
        return i64(BAD_SELECTOR)
    return i64(METADATA_COLUMN) if metadata & 1 else i64(0)


@native
def _layout_reason(flags: int, descriptor: int, transpose: int, chunks: int) -> int:
    """Whether rows of so many chunks go with a shared memory descriptor."""
    if descriptor_reason(descriptor) != 0:
        return descriptor_reason(descriptor)
    if is_absolute(descriptor) and chunks != 3:
        return i64(ABSOLUTE_STRIDE)
    if chunks == 3 and (swizzle_mode(descriptor) != 2 or (crosses_line(descriptor) and not is_absolute(descriptor))):
        return i64(DEEP_LAYOUT)
    if chunks == 4 and not transpose and swizzle_mode(descriptor) == 6:
        return i64(NARROW_LINE)
    return i64(0)


@native
def mma_reason(flags: int, idesc: int, a: int, b: int, metadata: int) -> int:
    """Why an instruction cannot be executed, or 0."""
    kind = flags & 7
    m, n, deep = rows_of(kind, idesc), columns_of(idesc), is_deep(kind, idesc)
    if deep and (flags & (SPARSE | BY_COUNT) or not flags & HAS_96):
        return i64(DEEP)
    if not _types_are_good(flags, idesc):
        return i64(BAD_TYPES)
    if not _shape_is_good(kind, flags, m, n, deep):
        return i64(BAD_SHAPE)
    reason = _sparse_reason(kind, flags, m, idesc, metadata)
    if reason != 0:
        return reason
    if deep and flags & PAIR and m == 128:
        return i64(DEEP_PAIR)
    if kind == KIND_I8 and idesc >> 13 & 3:
        return i64(NEGATED)
    if kind >= KIND_MXF8F6F4:
        reason = _scale_reason(kind, flags >> BLOCK_SHIFT & 255, idesc)
        if reason != 0:
            return reason
    size, eights = element_size(kind), kind in (KIND_F8F6F4, KIND_MXF8F6F4)
    transpose = idesc >> 16 & 1
    reason = _layout_reason(flags, b, transpose, column_chunks(flags, idesc))
    if reason == 0:
        reason = _transpose_reason(kind, size, transpose, eights and idesc >> 10 & 7 > 2, swizzle_mode(b))
        if transpose and size == 1 and n % (32 if flags & PAIR else 16):
            reason = i64(BAD_TRANSPOSE)
    if reason == 0 and not flags & A_IN_TENSOR_MEMORY:
        transpose = idesc >> 15 & 1
        reason = _layout_reason(flags, a, transpose, row_chunks(kind, idesc))
        if reason == 0:
            reason = _transpose_reason(kind, size, transpose, eights and idesc >> 7 & 7 > 2, swizzle_mode(a))
    return reason


@native
def mask_reason(idesc: int, zeros: int) -> int:
    """Why a zero-column mask descriptor cannot be executed, or 0. A shift may reach as far as the instruction
    descriptor says (8, 16 or 32 columns), 16 for M = 32."""
    if zeros >> 36 & 7 or zeros >> 62 & 3:
        return i64(BAD_MASK)
    encoded, shift = idesc >> 30 & 3, column_shift(zeros)
    most = i64(0) if encoded == 0 else i64(4) << encoded
    if rows_of(KIND_F16, idesc) == 32:
        most = min(most, i64(16))
    return i64(BAD_SHIFT) if shift > most else i64(0)
