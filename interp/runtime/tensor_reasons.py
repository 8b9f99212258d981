"""Why a use of tensor memory or a tcgen05 operation is a fault: numbers that native code records, and what they say."""

from __future__ import annotations

(
    PARTIAL_WARP, DIFFERENT_ADDRESSES, OTHER_QUARTER, MISALIGNED_LANE, NOT_ALLOCATED, BAD_COUNT, RELINQUISHED, NO_ROOM,
    NOT_AN_ALLOCATION, LEAK, MIXED_GROUPS, NO_PEER,
) = range(1, 13)  # fmt: skip
MEMORY: dict[int, str] = {
    PARTIAL_WARP: "not all 32 threads of the warp execute it together",
    DIFFERENT_ADDRESSES: "the threads of the warp give different operands",
    OTHER_QUARTER: "warp w of a warpgroup reaches lanes 32 w to 32 w + 31 only, and this is another quarter",
    MISALIGNED_LANE: "the lane of the address does not fit the shape: a multiple of 32, or of 16 for shapes of 16 "
    "lanes",
    NOT_ALLOCATED: "the columns are not allocated",
    BAD_COUNT: "the number of columns is not 32, 64, 128, 256 or 512",
    RELINQUISHED: "the CTA has given up its right to allocate (tcgen05.relinquish_alloc_permit)",
    NO_ROOM: "so many columns in a row are not free, and waiting for other warps to give them back is not modelled",
    NOT_AN_ALLOCATION: "the address and the number of columns are not those of an allocation",
    LEAK: "tensor memory that is allocated here is not deallocated when the CTA ends",
    MIXED_GROUPS: "the tcgen05 instructions of a kernel must have the same .cta_group",
    NO_PEER: ".cta_group::2 needs the other CTA of the pair: launch the kernel with clusters",
}  # fmt: skip

(
    SPARSITY, BAD_TYPES, BAD_SHAPE, BAD_SWIZZLE, BAD_VERSION, BASE_OFFSET, ABSOLUTE_STRIDE, BAD_TRANSPOSE, BAD_SCALE,
    BAD_SCALE_ID, DEEP, BAD_MASK, NEGATED, SWIZZLED_32, HALF_SPARSE, BAD_SELECTOR, METADATA_COLUMN, NARROW_LINE,
    DEEP_LAYOUT, DEEP_PAIR, BAD_SHIFT,
) = range(1, 22)  # fmt: skip
OPERATION: dict[int, str] = {
    SPARSITY: "its instruction descriptor says sparse and the instruction is dense, or the other way round",
    BAD_TYPES: "its instruction descriptor names types that the kind does not have",
    BAD_SHAPE: "its instruction descriptor names an M or N that the kind does not have",
    BAD_SWIZZLE: "a shared memory descriptor has swizzling mode 3, 5 or 7",
    BAD_VERSION: "a shared memory descriptor does not have 0b001 in bits 46 to 48",
    BASE_OFFSET: "a shared memory descriptor has a base offset, which is not modelled",
    ABSOLUTE_STRIDE: "a shared memory descriptor has an absolute leading dimension, which goes with K = 96 only",
    BAD_TRANSPOSE: "a transposed matrix: 32-bit types need 128-byte swizzling with 32-byte atoms, other types must not "
    "have it, and 4- and 6-bit types, and N that is not a multiple of 16 for 8-bit B, cannot be transposed",
    BAD_SCALE: "its instruction descriptor names a scale type that the kind and block size do not have",
    BAD_SCALE_ID: "its instruction descriptor has a scale factor number that the block size does not have",
    DEEP: "K = 96 needs sm_103a, a dense product, and '.block16' or '.block32' instead of '.scale_vec'",
    BAD_MASK: "a zero-column mask descriptor has reserved bits",
    NEGATED: "its instruction descriptor negates a matrix, which the kind does not do",
    SWIZZLED_32: "128-byte swizzling with 32-byte atoms goes with transposed 32-bit matrices only",
    HALF_SPARSE: "a sparse product with M = 64 (128 with two CTAs) is not modelled: where its metadata lies is told in "
    "figures of the manual only, and CUTLASS does not use it",
    BAD_SELECTOR: "the sparsity selector must be 0, with kind::f16 and kind::tf32 0 or 1 (what 2 and 3 select is told "
    "in figures of the manual only)",
    METADATA_COLUMN: "sparsity metadata begin at an even column of tensor memory, and the selector names the column of "
    "the pair",
    NARROW_LINE: "a K-major B of a sparse product has 64 bytes a column, and where the second half lies with 32-byte "
    "swizzling is not documented",
    DEEP_LAYOUT: "K = 96 needs 128-byte swizzling, and an absolute leading dimension where its 48 bytes of a row go "
    "beyond 128",
    DEEP_PAIR: "K = 96 with M = 128 and two CTAs is not modelled: where the scales of B lie is not documented",
    BAD_SHIFT: "a zero-column mask descriptor shifts B by more columns than the instruction descriptor allows",
}  # fmt: skip
