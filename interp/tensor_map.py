"""Tensor maps that the host makes: the `CUtensorMap` argument of a kernel that copies parts of an array.

    TensorMap(array, shape=(m, k), strides=(k * 2,), box=(64, 64), element_type="f16", swizzle=128)
    TensorMap(array, shape=(n, h, w, c), strides=(h * w * c * 2, w * c * 2, c * 2), box=(128, 64), element_type="f16",
              swizzle=128, im2col=Im2col(lower=(-1, -1), upper=(-1, -1)))

What `cuTensorMapEncodeTiled`, `cuTensorMapEncodeIm2col` and `cuTensorMapEncodeIm2colWide` take, outermost dimension
first as numpy and Triton write it. A launch takes one wherever the kernel has a 128-byte parameter; the array is then
part of the launch's memory like any other. The bytes are this project's own (`interp.runtime.tensor_layout`), as they
are opaque on hardware too.

Source: CUDA driver API, 'Tensor Map Object Management' (limits and alignment). The arguments that are refused are those
that the driver of CUDA 13.0 refuses (tests/hardware: 331 calls on a machine with an H200), the wide modes without
swizzle, which only the manual forbids, and what is not modelled: interleaved layouts and packed types.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp.runtime.layout import TENSOR_MAP_BYTES, TENSOR_TYPES
from interp.runtime.tensor_layout import IM2COL, IM2COL_W, IM2COL_W128, TILE
from ptx.errors import InvalidInput, Unsupported

_BYTES = {
    "u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f32.ftz": 4,
    "tf32": 4, "tf32.ftz": 4,
}  # fmt: skip
_INTEGERS = ("u8", "u16", "u32", "s32", "u64", "s64")
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_ALONG = {"all": IM2COL, "w": IM2COL_W, "w128": IM2COL_W128}
_CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
"""Range of a corner by rank; in the wide modes that of rank 3 for all."""


@dataclass(frozen=True, slots=True)
class Im2col:
    """How a map in im2col mode walks: the corners of the bounding box in pixels, outermost first (D, H, W as far as
    there are): from `lower` to size - 1 + `upper`. `along`: "all", or "w" or "w128" for the wide modes of sm_100
    (im2col::w, im2col::w::128), whose corners are of W only."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    along: str = "all"


@dataclass(frozen=True, slots=True, eq=False)
class TensorMap:
    """A tensor map.

    array: its element 0 is the tensor's. shape: sizes in elements, outermost first, up to five. strides: bytes of every
    dimension but the last, whose elements are adjacent. box: elements of a tile; in im2col mode (pixels a column,
    channels a pixel). element_type: "f16", "bf16", "f32", "u8" ... swizzle: bytes of the pattern, 0, 32, 64 or 128.
    fill: of elements outside, "zero" or "nan". steps: traversal strides of all dimensions (the last one is ignored),
    empty: 1. im2col: None is tiled mode.

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
    im2col: Im2col | None = None

    def __post_init__(self) -> None:
        for wrong, wanted in self._wanted():
            if wrong:
                raise InvalidInput(f"a tensor map of shape {self.shape} and box {self.box} needs {wanted}")

    def _wanted(self) -> Iterator[tuple[bool, str]]:
        """What a map needs, and whether it lacks it. Later ones rest on earlier ones: none is asked after the first."""
        numbers = (self.shape, self.strides, self.box, self.steps)
        yield not all(_integers(n) for n in numbers), "tuples of integers"
        yield not isinstance(self.array, np.ndarray), "an array of numpy"
        yield not isinstance(self.im2col, Im2col | None), "an Im2col, or None, as im2col"
        rank = len(self.shape)
        steps = self.steps or (1,) * rank
        yield not 1 <= rank <= 5, "one to five dimensions"
        yield len(self.strides) != rank - 1, "a stride for all dimensions but the last"
        yield len(steps) != rank, "a traversal stride for each dimension, or none"
        yield any(not 1 <= n <= 1 << 32 for n in self.shape), "sizes from 1 to 2^32"
        yield any(s % 16 or not 0 <= s < 1 << 40 for s in self.strides), "strides that are multiples of 16 bytes"
        yield from self._tiled() if self.im2col is None else self._columns(self.im2col)
        row = self.box[-1] * self.element_bytes
        yield row % 16 != 0, "a box whose rows are multiples of 16 bytes"
        yield self.swizzle not in _SWIZZLES, "a swizzle of 0, 32, 64 or 128 bytes"
        yield 0 < self.swizzle < row, f"a box whose rows are at most the {self.swizzle} bytes of the swizzle"
        yield self.fill not in ("zero", "nan"), "fill 'zero' or 'nan'"
        yield self.fill == "nan" and self.element_type in _INTEGERS, "a float type to fill with 'nan'"
        yield any(not 1 <= s <= 8 for s in steps), "traversal strides from 1 to 8"

    def _tiled(self) -> Iterator[tuple[bool, str]]:
        yield len(self.box) != len(self.shape), "a box with as many dimensions"
        yield any(not 1 <= n <= 256 for n in self.box), "a box of 1 to 256 elements in each dimension"

    def _columns(self, walk: Im2col) -> Iterator[tuple[bool, str]]:
        rank = len(self.shape)
        yield not 3 <= rank <= 5, "three to five dimensions in im2col mode"
        yield len(self.box) != 2, "a box (pixels, channels) in im2col mode"
        yield not 1 <= self.box[0] <= 1024, "1 to 1024 pixels a column"
        yield not 1 <= self.box[1] <= 256, "1 to 256 channels a pixel"
        yield walk.along not in _ALONG, f"im2col along {', '.join(_ALONG)}"
        yield not (_integers(walk.lower) and _integers(walk.upper)), "corners that are tuples of integers"
        wide = walk.along != "all"
        images = self.shape[rank - 2 : rank - 1] if wide else self.shape[1:-1]
        corners = (*walk.lower, *walk.upper)
        yield len(walk.lower) != len(images) or len(walk.upper) != len(images), f"corners in {len(images)} dimensions"
        low, high = _CORNERS[3 if wide else rank]
        yield any(not low <= c <= high for c in corners), f"corners from {low} to {high}"
        empty = any(n - 1 + u < c for n, c, u in zip(images, walk.lower, walk.upper, strict=False))
        yield empty, "corners that leave a bounding box"
        yield wide and self.swizzle not in (64, 128), "a swizzle of 64 or 128 bytes for im2col along W"

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
        mode = TILE if self.im2col is None else _ALONG[self.im2col.along]
        head = struct.pack("<Q8B", address, kind, rank - 1, 0, _SWIZZLES[self.swizzle], nan, 0, mode, 0)
        # a size of 2^32 does not fit the field; no access can tell it from one less
        sizes = struct.pack("<5I", *(min(v, 0xFFFFFFFF) for v in padded(self.shape, 5)))
        if self.im2col is None:
            box = struct.pack("<5I", *padded(self.box, 5))
        else:
            corners = (*self._inner_first(self.im2col.lower), *self._inner_first(self.im2col.upper))
            box = struct.pack("<2I6h", self.box[1], self.box[0], *corners)
        steps = struct.pack("<5I", *padded(self.steps or (1,) * rank, 5))
        data = head + sizes + box + steps + b"\0" * 4 + struct.pack("<4Q", *padded(self.strides, 4))
        return data + b"\0" * (TENSOR_MAP_BYTES - len(data))

    @staticmethod
    def _inner_first(corner: tuple[int, ...]) -> list[int]:
        return [*reversed(corner), *[0] * (3 - len(corner))]


def _integers(values: Any) -> bool:
    return isinstance(values, tuple | list) and all(isinstance(n, int | np.integer) for n in values)


def memory_of(argument: Any) -> np.ndarray[Any, Any] | None:
    """The array that a launch argument stands for: itself, or a tensor map's; None for a scalar."""
    if isinstance(argument, TensorMap):
        return argument.array
    return argument if isinstance(argument, np.ndarray) else None
