"""Why a tensor copy is a fault: numbers that native code records in the fault's byte count, and what they say.

They begin at 200, so that a byte count, which other uses of the same faults record, is never taken for one.

An H200 stops with an illegal instruction at all of MAP but NOT_ONE_ROW, and of COORDINATE but OFFSET; these two are the
manual's. UNMODELLED names what this emulator does not do, whatever hardware does.
"""

from __future__ import annotations

(MAP_FIELDS, OTHER_MODE, OTHER_RANK, REDUCED_TYPE, STORED_CORNERS, NOT_ONE_ROW) = range(200, 206)
MAP: dict[int, str] = {
    MAP_FIELDS: "its type, box, sizes, alignment or strides are not those of any map",
    OTHER_MODE: "the map is of another mode (tiled, im2col, im2col::w, im2col::w::128) than the instruction",
    OTHER_RANK: "the map has another rank than the instruction",
    REDUCED_TYPE: "the operation does not take the map's element type",
    STORED_CORNERS: "a store or reduction with a bounding box that leaves the tensor: lower corners must not be "
    "negative, upper corners not positive",
    NOT_ONE_ROW: "gather4 and scatter4 need a box of one row",
}

(UNALIGNED, NEGATIVE, OUTSIDE_BOX, OFFSET) = range(210, 214)
COORDINATE: dict[int, str] = {
    UNALIGNED: "the innermost coordinate is not a multiple of 16 bytes, where hardware stops with an illegal "
    "instruction",
    NEGATIVE: "a store or reduction that begins at a negative coordinate is an illegal instruction",
    OUTSIDE_BOX: "the starting pixel lies outside the bounding box of the map, which is an illegal instruction",
    OFFSET: "as an im2col offset it is larger than the manual allows (3d: 65535, 4d: 255, 5d: 31)",
}

(INTERLEAVED, PACKED, SWIZZLE_96, SWIZZLE_FLIP, STEPPED_ROWS, HALO_128, REPLACED_COLUMNS) = range(220, 227)
UNMODELLED: dict[int, str] = {
    INTERLEAVED: "interleaved layouts",
    PACKED: "packed 4- and 6-bit element types",
    SWIZZLE_96: "the 96-byte swizzling mode",
    SWIZZLE_FLIP: "the swizzle atomicity of 32 bytes with 8-byte flip",
    STEPPED_ROWS: "im2col::w with traversal strides in other dimensions than W",
    REPLACED_COLUMNS: "tensormap.replace.tile of anything but the address in a map of another mode",
    HALO_128: "im2col::w::128 with a halo: where its pixels go stands only in a figure of the manual",
}
