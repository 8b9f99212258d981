"""Host-side tensor descriptors: an array with a shape, strides and a block, as a kernel argument.

    a = TensorDescriptor.from_array(x, block_shape=[64, 32])
    gpuemu.run(kernel, grid, a, ..., BM=64, BK=32)

The same as `triton.tools.tensor_descriptor.TensorDescriptor`, which needs a torch tensor; that one (over a CPU tensor)
is taken too. What a kernel gets of one depends on its target: from sm_90 on a tensor map with the swizzling that the
compiler chose, before that the pointer; and sizes and strides in both cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gpuemu.arrays import Array, as_array
from interp.runtime.layout import TENSOR_TYPES
from interp.tensor_map import TensorMap
from ptx.errors import InvalidInput, Unsupported
from ptx.lower.specialise import DevicePointer


@dataclass(frozen=True, slots=True, eq=False)
class TensorDescriptor:
    """`shape` and `strides` in elements, outermost first; the last dimension's elements are adjacent. `block_shape`:
    elements of one load or store. `padding`: what is read outside, "zero" or "nan". `round_f32_to_tf32`: as in Triton;
    not modelled.

    Raises InvalidInput where Triton's own class asserts."""

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        array = as_array(self.base)
        if array is None:
            raise InvalidInput(f"a tensor descriptor needs an array, not {type(self.base).__name__}")
        size, rank = array.itemsize, len(self.shape)
        for wrong, wanted in (
            (not 1 <= rank <= 5, "one to five dimensions"),
            (len(self.strides) != rank or len(self.block_shape) != rank, "shape, strides and block of one length"),
            (any(n <= 0 for n in self.shape), "positive sizes"),
            (any(n <= 0 or n & (n - 1) for n in self.block_shape), "a block of powers of two"),
            (any(s * size % 16 for s in self.strides[:-1]), "strides that are multiples of 16 bytes"),
            (bool(self.strides) and self.strides[-1] != 1, "a contiguous last dimension"),
            (self.padding not in ("zero", "nan"), "padding 'zero' or 'nan'"),
        ):
            if wrong:
                raise InvalidInput(f"a tensor descriptor of shape {tuple(self.shape)} needs {wanted}")

    @classmethod
    def from_array(cls, array: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        """The descriptor of a whole array (numpy, ml_dtypes or torch-CPU)."""
        view = as_array(array)
        if view is None:
            raise InvalidInput(f"a tensor descriptor needs an array, not {type(array).__name__}")
        return cls(array, view.shape, tuple(s // view.itemsize for s in view.strides), block_shape, padding)


def is_descriptor(value: object) -> bool:
    """Whether an argument is a host-side tensor descriptor, ours or Triton's."""
    if isinstance(value, TensorDescriptor):
        return True
    kind = type(value)
    return kind.__name__ == "TensorDescriptor" and kind.__module__ == "triton.tools.tensor_descriptor"


def for_binder(value: Any, pointer: DevicePointer) -> Any:
    """What Triton's binder takes for a descriptor: an object of its class whose base is the device pointer."""
    kind = import_module("triton.tools.tensor_descriptor").TensorDescriptor
    made = kind.__new__(kind)  # its own checks want a tensor
    made.base, made.shape, made.strides = pointer, [int(n) for n in value.shape], [int(n) for n in value.strides]
    made.block_shape, made.padding = [int(n) for n in value.block_shape], value.padding
    made.round_f32_to_tf32, made.owner = bool(value.round_f32_to_tf32), value
    return made


def base_array(value: Any) -> Array:
    """The array of a descriptor."""
    array = as_array(value.base)
    if array is None:
        raise InvalidInput(f"a tensor descriptor needs an array, not {type(value.base).__name__}")
    return array


def tensor_map(bound: Any, about: Mapping[str, Any]) -> TensorMap:
    """The tensor map of a bound descriptor. `about`: what the compiler says of it (`tensordesc_meta`)."""
    if about.get("is_im2col") or about.get("fp4_padded"):
        raise Unsupported("im2col and packed 4-bit tensor descriptors are not modelled")
    if bound.round_f32_to_tf32:
        raise Unsupported("tensor descriptors that round to tf32 are not modelled")
    size = int(about["elem_size"])
    return TensorMap(
        array=bound.base.array,
        shape=tuple(bound.shape),
        strides=tuple(s * size for s in bound.strides[:-1]),
        box=tuple(about["block_size"]),
        element_type=TENSOR_TYPES[int(about["elem_type"])],
        swizzle=(0, 32, 64, 128)[int(about["swizzle"])],
        fill=bound.padding,
    )
