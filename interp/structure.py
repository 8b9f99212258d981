"""A structure passed by value, in whose bytes addresses lie: what CUDA C++ makes of `struct { float* x; int n; }`.

    Structure(bytes(16), {0: x})          x's address at byte 0

A launch takes one wherever the kernel has a parameter of that many bytes. The arrays, and those of tensor maps among
the parts, are part of the launch's memory like any other argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from interp.tensor_map import TensorMap, memory_of
from ptx.errors import InvalidInput


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """`data`: its bytes. `parts`: byte offset → the array whose address stands there (8 bytes), or a tensor map (128).

    Raises InvalidInput for a part that does not fit."""

    data: bytes
    parts: Mapping[int, np.ndarray[Any, Any] | TensorMap] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes | bytearray) or not isinstance(self.parts, Mapping):
            raise InvalidInput("a structure is made of bytes and a mapping of offsets to arrays", help="see `tobytes`")
        for offset, part in self.parts.items():
            if not isinstance(offset, int | np.integer) or not isinstance(part, np.ndarray | TensorMap):
                raise InvalidInput(
                    f"a part of a structure is an array or tensor map at an offset, not {part!r} at {offset!r}"
                )
            size = 128 if isinstance(part, TensorMap) else 8
            if not 0 <= offset <= len(self.data) - size:
                raise InvalidInput(f"{size} bytes at offset {offset} of a structure of {len(self.data)} bytes")

    def encode(self, addresses: Sequence[int]) -> bytes:
        """The bytes, with the device addresses of the parts' arrays in order."""
        data = bytearray(self.data)
        for (offset, part), address in zip(self.parts.items(), addresses, strict=True):
            word = part.encode(address) if isinstance(part, TensorMap) else address.to_bytes(8, "little")
            data[offset : offset + len(word)] = word
        return bytes(data)


def memories_of(argument: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays that a launch argument stands for."""
    parts = argument.parts.values() if isinstance(argument, Structure) else (argument,)
    return [array for array in map(memory_of, parts) if array is not None]
