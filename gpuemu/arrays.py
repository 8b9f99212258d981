"""Arguments as memory: numpy arrays, and numpy views of torch-CPU tensors, without a copy.

A launch works on host memory in place, so every array-like argument becomes a numpy view of the user's own bytes. torch
is never imported here: a tensor proves by existing that its module is loaded. Types that numpy does not have (bfloat16,
the 8-bit floats) are those of ml_dtypes, in views over the same bytes.
"""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptx.errors import InvalidInput, Unsupported
from ptx.lower.specialise import ELEMENT_TYPES

Array = npt.NDArray[Any]


def as_array(value: object) -> Array | None:
    """`value` as a numpy array over the same bytes, or None if it is not an array.

    Accepts numpy arrays, torch-CPU tensors (any stride) and `triton.reinterpret` of either. Raises `InvalidInput` for a
    tensor that is not in host memory.
    """
    if isinstance(value, np.ndarray):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _tensor_view(torch, value)
    if type(value).__name__ == "TensorWrapper" and hasattr(value, "base"):
        base = as_array(value.base)
        return None if base is None else _reinterpreted(base, getattr(value, "dtype", None))
    return None


def as_scalar(value: object) -> object:
    """numpy and ml_dtypes scalars as Python's own; everything else as it is."""
    if not isinstance(value, np.generic):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    return int(value) if isinstance(value, np.integer) else float(value)


def element_type(array: Array) -> str:
    """Triton's name of the array's element type: "fp32", "bf16", "i8" ... Raises `Unsupported` if there is none."""
    known = _TYPES.get(array.dtype)  # `dtype.name` costs 10 us, and this runs for every array of every launch
    if known is not None:
        return known
    name = ELEMENT_TYPES.get(array.dtype.name)
    if name is None:
        raise Unsupported(
            f"arrays of {array.dtype} have no Triton type",
            help=f"one of {', '.join(ELEMENT_TYPES)}",
        )
    raise InvalidInput(f"array of {array.dtype.str} has the bytes of its elements in foreign order")


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy or ml_dtypes type of that name ("float32", "bfloat16", "float8_e4m3fn")."""
    return np.dtype(getattr(ml_dtypes, name, name))


_TYPES = {numpy_dtype(name): short for name, short in ELEMENT_TYPES.items()}


def _tensor_view(torch: Any, tensor: Any) -> Array:
    if tensor.device.type != "cpu":
        raise InvalidInput(
            f"tensor on {tensor.device}: launches run in host memory", help="pass tensor.cpu(), or make it on the CPU"
        )
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in ELEMENT_TYPES:
        raise Unsupported(f"tensors of {tensor.dtype} have no Triton type", help=f"one of {', '.join(ELEMENT_TYPES)}")
    dtype = numpy_dtype(name)
    # The view's base is the whole storage: views of one storage keep their distance on the device, too.
    storage = torch.empty(0, dtype=torch.uint8).set_(tensor.detach().untyped_storage()).numpy()
    size = dtype.itemsize
    strides = tuple(s * size for s in tensor.stride())
    return np.ndarray(tuple(tensor.shape), dtype, storage, tensor.storage_offset() * size, strides)


def _reinterpreted(array: Array, dtype: object) -> Array:
    for name, short in ELEMENT_TYPES.items():
        if str(dtype) in (short, "int1" if short == "i1" else name):
            return array.view(numpy_dtype(name))
    raise Unsupported(f"triton.reinterpret to {dtype} has no numpy type")
