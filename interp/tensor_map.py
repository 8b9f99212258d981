"""Tensor maps that the host makes: the `CUtensorMap` argument of a kernel that copies tiles of an array.

    TensorMap(array, shape=(m, k), strides=(k * 2,), box=(64, 64), element_type="f16", swizzle=128)

What `cuTensorMapEncodeTiled` takes, outermost dimension first as numpy and Triton write it. A launch takes one wherever
the kernel has a 128-byte parameter; the array is then part of the launch's memory like any other. The bytes are this
project's own (`interp.runtime.tensor_copy`), as they are opaque on hardware too.

Source: CUDA driver API, 'Tensor Map Object Management' (limits and alignment), tiled mode.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp.runtime.layout import TENSOR_MAP_BYTES, TENSOR_TYPES
from ptx.errors import InvalidInput, Unsupported

_BYTES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


@dataclass(frozen=True, slots=True, eq=False)
class TensorMap:
    """A tiled tensor map.

    array: its element 0 is the tensor's. shape: sizes in elements, outermost first, up to five. strides: bytes of every
    dimension but the last, whose elements are adjacent. box: elements of a tile. element_type: "f16", "bf16", "f32",
    "u8" ... swizzle: bytes of the pattern, 0, 32, 64 or 128. fill: of elements outside, "zero" or "nan". steps:
    traversal strides.

    Raises InvalidInput for what the driver would refuse, Unsupported for element types that are not modelled.
    """

    array: np.ndarray[Any, Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_type: str
    swizzle: int = 0
    fill: str = "zero"
    steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        size = self.element_bytes
        rank = len(self.shape)
        row = self.box[-1] * size if self.box else 0
        problems = (
            (not 1 <= rank <= 5, "one to five dimensions"),
            (
                len(self.strides) != rank - 1 or len(self.box) != rank,
                "a stride for all dimensions but the last, a box for all",
            ),
            (any(not 1 <= n <= 1 << 32 for n in self.shape), "sizes from 1 to 2^32"),
            (any(s % 16 or not 0 <= s < 1 << 40 for s in self.strides), "strides that are multiples of 16 bytes"),
            (any(not 1 <= n <= 256 for n in self.box), "a box of 1 to 256 elements in each dimension"),
            (row % 16 != 0, "a box whose rows are multiples of 16 bytes"),
            (self.swizzle not in _SWIZZLES, "a swizzle of 0, 32, 64 or 128 bytes"),
            (0 < self.swizzle < row, f"a box whose rows are at most the {self.swizzle} bytes of the swizzle"),
            (self.fill not in ("zero", "nan"), "fill 'zero' or 'nan'"),
            (any(s != 1 for s in self.steps), "traversal strides of 1"),
        )
        for wrong, wanted in problems:
            if wrong:
                raise InvalidInput(f"a tensor map of shape {self.shape} and box {self.box} needs {wanted}")

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        if self.element_type not in _BYTES:
            raise Unsupported(
                f"tensor maps of {self.element_type} elements are not modelled", help=f"one of {', '.join(_BYTES)}"
            )
        return _BYTES[self.element_type]

    def encode(self, address: int) -> bytes:
        """The 128 bytes for a tensor at a device address."""
        if address % 16:
            raise InvalidInput(
                "a tensor map's array must be aligned to 16 bytes", help=f"its device address is {address:#x}"
            )
        rank = len(self.shape)

        def padded(values: tuple[int, ...], count: int) -> list[int]:
            inner_first = list(reversed(values))
            return [v & 0xFFFFFFFFFFFFFFFF for v in inner_first] + [0] * (count - len(inner_first))

        kind, nan = TENSOR_TYPES.index(self.element_type), int(self.fill == "nan")
        head = struct.pack("<Q8B", address, kind, rank - 1, 0, _SWIZZLES[self.swizzle], nan, 0, 0, 0)
        # a size of 2^32 does not fit the field; no access can tell it from one less
        sizes = struct.pack("<5I", *(min(v, 0xFFFFFFFF) for v in padded(self.shape, 5)))
        boxes = struct.pack("<5I", *padded(self.box, 5)) + struct.pack("<5I", *([1] * rank + [0] * (5 - rank)))
        data = head + sizes + boxes + b"\0" * 4 + struct.pack("<4Q", *padded(self.strides, 4))
        return data + b"\0" * (TENSOR_MAP_BYTES - len(data))


def memory_of(argument: Any) -> np.ndarray[Any, Any] | None:
    """The array that a launch argument stands for: itself, or a tensor map's; None for a scalar."""
    if isinstance(argument, TensorMap):
        return argument.array
    return argument if isinstance(argument, np.ndarray) else None
