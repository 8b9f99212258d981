"""PTX fundamental types (PTX ISA, 'Types'): width in bits and class, plus state spaces.

Register values are untyped words; a type matters only at an instruction, where it says how many bits are read and what
they mean. Widths here are those of one element; packed types (`f16x2`) are one word of the packed width.
"""

from __future__ import annotations

import struct
from enum import Enum


class Kind(Enum):
    PRED = "predicate"
    BITS = "untyped bits"
    UINT = "unsigned integer"
    SINT = "signed integer"
    FLOAT = "floating point"
    PACKED = "packed floating point or integer"


_TYPES: dict[str, tuple[int, Kind]] = {
    "pred": (1, Kind.PRED),
    **{f"b{n}": (n, Kind.BITS) for n in (8, 16, 32, 64, 128)},
    **{f"u{n}": (n, Kind.UINT) for n in (8, 16, 32, 64)},
    **{f"s{n}": (n, Kind.SINT) for n in (8, 16, 32, 64)},
    "f16": (16, Kind.FLOAT),
    "bf16": (16, Kind.FLOAT),
    "tf32": (32, Kind.FLOAT),
    "f32": (32, Kind.FLOAT),
    "f64": (64, Kind.FLOAT),
    **dict.fromkeys(("f16x2", "bf16x2", "u16x2", "s16x2", "u8x4", "s8x4"), (32, Kind.PACKED)),
    **dict.fromkeys(("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4"), (32, Kind.PACKED)),
    **dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2", "s2f6x2", "e2m1x4"), (16, Kind.PACKED)),
    "e2m1x2": (8, Kind.PACKED),
    "f32x2": (64, Kind.PACKED),
}

SPACES = (".global", ".shared", ".local", ".const", ".param", ".generic", ".reg", ".sreg")


def is_type(name: str) -> bool:
    """True for a PTX type name, with or without its leading dot."""
    return name.lstrip(".") in _TYPES


def width(name: str) -> int:
    """Bits of a value of type `name` (`.u32` or `u32`); 1 for predicates. KeyError for an unknown name."""
    return _TYPES[name.lstrip(".")][0]


def kind(name: str) -> Kind:
    """Class of type `name`. KeyError for an unknown name."""
    return _TYPES[name.lstrip(".")][1]


def is_signed(name: str) -> bool:
    return kind(name) is Kind.SINT


def is_float(name: str) -> bool:
    return kind(name) in (Kind.FLOAT, Kind.PACKED)


def float_bits(number: float, type: str) -> int:
    """Bits of a number rounded to f32 or f64; beyond the largest f32 that is infinity."""
    if type != "f32":
        return int.from_bytes(struct.pack("<d", number), "little")
    try:
        return int.from_bytes(struct.pack("<f", number), "little")
    except OverflowError:
        return 0x7F800000 if number > 0 else 0xFF800000
