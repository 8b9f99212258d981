"""Host-side tensor descriptors: an array with a shape, strides and a block, as a kernel argument.

    a = TensorDescriptor.from_array(x, block_shape=[64, 32])
    gpuemu.run(kernel, grid, a, ..., BM=64, BK=32)

The same as `triton.tools.tensor_descriptor.TensorDescriptor`, which needs a torch tensor; that one (over a CPU tensor)
is taken too. With a `layout` (an `NVMMASharedLayout`) it is the one that Gluon kernels take, as
`triton.experimental.gluon.nvidia.hopper.TensorDescriptor`; `TensorDescriptorIm2Col` stands for the class of that name
there, whose blocks are columns of pixels:

    a = TensorDescriptorIm2Col.from_array(images, [64, 32], layout, pixel_box_lower_corner=[-1, -1],
                                          pixel_box_upper_corner=[-1, -1])

What a kernel gets of a descriptor depends on its target: from sm_90 on a tensor map with the swizzling that the
compiler chose, before that the pointer; and sizes and strides in both cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gpuemu.arrays import Array, as_array
from interp.runtime.layout import TENSOR_TYPES
from interp.tensor_map import Im2col, TensorMap
from ptx.errors import InvalidInput, Unsupported
from ptx.lower.specialise import DevicePointer

_GLUON = "triton.experimental.gluon.nvidia.hopper"
_TRITON = "triton.tools.tensor_descriptor"


def _common(value: Any) -> Iterator[tuple[bool, str]]:
    """What every descriptor needs, and whether it lacks it."""
    array = as_array(value.base)
    if array is None:
        raise InvalidInput(f"a tensor descriptor needs an array, not {type(value.base).__name__}")
    size, rank = array.itemsize, len(value.shape)
    yield not 1 <= rank <= 5, "one to five dimensions"
    yield len(value.strides) != rank, "shape and strides of one length"
    yield any(n <= 0 for n in value.shape), "positive sizes"
    yield any(n <= 0 or n & (n - 1) for n in value.block_shape), "a block of powers of two"
    yield any(s * size % 16 for s in value.strides[:-1]), "strides that are multiples of 16 bytes"
    yield value.strides[-1] != 1, "a contiguous last dimension"
    yield value.padding not in ("zero", "nan"), "padding 'zero' or 'nan'"
    yield value.round_f32_to_tf32 and array.dtype != "float32", "float32 elements to round to tf32"


def _check(value: Any, problems: Iterator[tuple[bool, str]]) -> None:
    for wrong, wanted in problems:
        if wrong:
            raise InvalidInput(f"a tensor descriptor of shape {tuple(value.shape)} needs {wanted}")


def _view(array: Any) -> Array:
    view = as_array(array)
    if view is None:
        raise InvalidInput(f"a tensor descriptor needs an array, not {type(array).__name__}")
    return view


@dataclass(frozen=True, slots=True, eq=False)
class TensorDescriptor:
    """`shape` and `strides` in elements, outermost first; the last dimension's elements are adjacent. `block_shape`:
    elements of one load or store. `padding`: what is read outside, "zero" or "nan". `round_f32_to_tf32`: loads of
    float32 round. `layout`: of the block in shared memory, for Gluon kernels.

    Raises InvalidInput where Triton's own class asserts."""

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False
    layout: Any = None

    def __post_init__(self) -> None:
        _check(self, _common(self))
        _check(self, iter([(len(self.block_shape) != len(self.shape), "a block with as many dimensions")]))

    @classmethod
    def from_array(
        cls, array: Any, block_shape: Sequence[int], padding: str = "zero", layout: Any = None
    ) -> TensorDescriptor:
        """The descriptor of a whole array (numpy, ml_dtypes or torch-CPU)."""
        view = _view(array)
        strides = tuple(s // view.itemsize for s in view.strides)
        return cls(array, view.shape, strides, block_shape, padding, layout=layout)


@dataclass(frozen=True, slots=True, eq=False)
class TensorDescriptorIm2Col:
    """A batch of images, (N, W, C), (N, H, W, C) or (N, D, H, W, C), read by columns of pixels. `block_shape`: pixels
    of a column and channels of a pixel. `pixel_box_lower_corner`, `pixel_box_upper_corner`: of (D, H, W) as far as
    there are, see `interp.runtime.tensor_columns`. `element_strides`: traversal strides of all dimensions, or None.
    `layout`: an `NVMMASharedLayout`.

    Raises InvalidInput where Gluon's own class asserts; the corners' ranges are the tensor map's."""

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    layout: Any
    padding: str = "zero"
    round_f32_to_tf32: bool = False
    element_strides: Sequence[int] | None = None
    pixel_box_lower_corner: Sequence[int] = ()
    pixel_box_upper_corner: Sequence[int] = ()

    def __post_init__(self) -> None:
        _check(self, _common(self))
        _check(self, self._columns())

    def _columns(self) -> Iterator[tuple[bool, str]]:
        images = len(self.shape) - 2
        yield not 1 <= images <= 3, "three to five dimensions for im2col"
        yield len(self.block_shape) != 2, "a block [pixels, channels] for im2col"
        yield len(self.pixel_box_lower_corner) != images, f"a lower corner of {images} dimensions"
        yield len(self.pixel_box_upper_corner) != images, f"an upper corner of {images} dimensions"
        steps = self.element_strides
        yield steps is not None and len(steps) != images + 2, "an element stride for each dimension"
        yield steps is not None and steps[-1] != 1, "an element stride of 1 in the last dimension"

    @classmethod
    def from_array(cls, array: Any, block_shape: Sequence[int], layout: Any, **options: Any) -> TensorDescriptorIm2Col:
        """The descriptor of a whole array (numpy, ml_dtypes or torch-CPU); `options` are the other fields."""
        view = _view(array)
        return cls(array, view.shape, tuple(s // view.itemsize for s in view.strides), block_shape, layout, **options)


def is_descriptor(value: object) -> bool:
    """Whether an argument is a host-side tensor descriptor, ours, Triton's or Gluon's."""
    if isinstance(value, TensorDescriptor | TensorDescriptorIm2Col):
        return True
    kind = type(value)
    return kind.__name__ in ("TensorDescriptor", "TensorDescriptorIm2Col") and kind.__module__ in (_TRITON, _GLUON)


def for_binder(value: Any, pointer: DevicePointer) -> Any:
    """What Triton's binder takes for a descriptor: an object of its class whose base is the device pointer."""
    layout, columns = getattr(value, "layout", None), hasattr(value, "pixel_box_lower_corner")
    module = import_module(_TRITON if layout is None else _GLUON)
    kind = module.TensorDescriptorIm2Col if columns else module.TensorDescriptor
    made = kind.__new__(kind)  # its own checks want a tensor
    made.base, made.shape, made.strides = pointer, [int(n) for n in value.shape], [int(n) for n in value.strides]
    made.block_shape, made.padding = [int(n) for n in value.block_shape], value.padding
    made.round_f32_to_tf32, made.owner = bool(value.round_f32_to_tf32), value
    if layout is not None:
        made.layout = layout
    if columns:
        made.pixel_box_lower_corner = [int(n) for n in value.pixel_box_lower_corner]
        made.pixel_box_upper_corner = [int(n) for n in value.pixel_box_upper_corner]
        steps = value.element_strides
        made.element_strides = None if steps is None else [int(n) for n in steps]
    return made


def base_array(value: Any) -> Array:
    """The array of a descriptor."""
    return _view(value.base)


def tensor_map(bound: Any, about: Mapping[str, Any]) -> TensorMap:
    """The tensor map of a bound descriptor. `about`: what the compiler says of it (`tensordesc_meta`)."""
    if about.get("fp4_padded"):
        raise Unsupported("packed 4-bit tensor descriptors are not modelled")
    size = int(about["elem_size"])
    columns = None
    if about.get("is_im2col"):
        columns = Im2col(tuple(bound.pixel_box_lower_corner), tuple(bound.pixel_box_upper_corner))
    return TensorMap(
        array=bound.base.array,
        shape=tuple(bound.shape),
        strides=tuple(s * size for s in bound.strides[:-1]),
        box=tuple(about["block_size"]),
        element_type="tf32" if bound.round_f32_to_tf32 else TENSOR_TYPES[int(about["elem_type"])],
        swizzle=(0, 32, 64, 128)[int(about["swizzle"])],
        fill=bound.padding,
        steps=tuple((columns is not None and bound.element_strides) or ()),
        im2col=columns,
    )
