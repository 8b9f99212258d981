"""The arrays of one case: inputs with their values, outputs filled with poison, both inside larger buffers if padded.

Inputs are read-only views: a store into one is a finding of the engine, with its line. Their bytes come from the case's
seed and the argument's name only. Outputs hold 0xFF in every byte before the launch (NaN in every float format), so an
element that a kernel does not write is seen. A padded array is a view of the first columns of a buffer whose rows are
7, 9, 11, ... elements longer (odd: rows lose their vector alignment; another number for each argument: a kernel that
takes one's stride for another's is seen); the gap of an input holds values that spoil a result, the gap of an output
must still be 0xFF afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.bits import Bits
from gpuemu.gate.cases import Case
from gpuemu.gate.declare import Input, Op, Output, axes_of
from gpuemu.gate.dtypes import F64, FORMATS, dtype_name, numpy_dtype, to_float64, to_storage
from gpuemu.gate.values import floats, integers, padding

PAD = 7
POISON = 0xFF


@dataclass(frozen=True, slots=True)
class Argument:
    """One array of a case. `view`: what the launcher gets; `base`: all of the buffer; `before`: its first bytes."""

    name: str
    role: str
    dtype: str
    base: NDArray[Any]
    view: NDArray[Any]
    before: bytes

    def gap_touched(self) -> bool:
        """Whether any byte between the rows differs from what it was."""
        if self.view.shape == self.base.shape:
            return False
        old = np.frombuffer(self.before, np.uint8).reshape(*self.base.shape[:-1], -1)
        width = self.view.shape[-1] * self.base.itemsize
        new = words_of(self.base).view(np.uint8).reshape(old.shape)
        return bool((old[..., width:] != new[..., width:]).any())


def words_of(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous copy or view of the array as unsigned words of its element size."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def size_of(argument: Input | Output, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an argument under given dims."""
    return tuple(int(a) if a.isdigit() else dims[a] for a in axes_of(argument.shape))


def make_arguments(op: Op, case: Case) -> dict[str, Argument]:
    """Fresh arrays for a case, the same bytes every time."""
    made: dict[str, Argument] = {}
    for name, given in op.inputs.items():
        dtype = dtype_name(given.dtype or case.dtype)
        shape = size_of(given, case.dims)
        bits = Bits(case.seed, name)
        if dtype in FORMATS:
            form = FORMATS[dtype]
            values = to_storage(floats(given, shape, form, case.distribution, bits), form)
            gap = to_storage(np.array([padding(form, case.distribution)]), form)[0]
        else:
            values = integers(given, shape, case.dims, bits)
            gap = values.dtype.type(0)
        base = _buffer(shape, values.dtype, _pad(given, case, len(made)))
        base[...] = gap
        view = base[..., : shape[-1]] if shape else base
        view[...] = values
        view.flags.writeable = False
        made[name] = Argument(name, "input", dtype, base, view, base.tobytes())
    for name, wanted in op.outputs.items():
        dtype = dtype_name(wanted.dtype or case.dtype)
        shape = size_of(wanted, case.dims)
        base = _buffer(shape, numpy_dtype(dtype), _pad(wanted, case, len(made)))
        base.reshape(-1).view(np.uint8)[...] = POISON
        made[name] = Argument(name, "output", dtype, base, base[..., : shape[-1]] if shape else base, base.tobytes())
    return made


def _pad(argument: Input | Output, case: Case, position: int) -> int:
    """Elements between the rows of an argument: 0, or an odd number that no other argument of the case has."""
    return PAD + 2 * position if argument.padded and case.padded else 0


def _buffer(shape: tuple[int, ...], dtype: np.dtype[Any], pad: int) -> NDArray[Any]:
    return np.zeros((*shape[:-1], shape[-1] + pad) if pad else shape, dtype)


def reference_values(op: Op, case: Case, arguments: Mapping[str, Argument]) -> dict[str, F64]:
    """The outputs of the op's FP64 reference, checked for shape. Raises ReferenceFailed with the reason."""
    inputs = {n: to_float64(np.ascontiguousarray(a.view)) for n, a in arguments.items() if a.role == "input"}
    floating = {n: v if arguments[n].dtype in FORMATS else arguments[n].view.copy() for n, v in inputs.items()}
    try:
        with np.errstate(all="ignore"):
            answer = op.call("reference", {**case.dims, **floating})
    except Exception as error:
        raise ReferenceFailed(f"the reference of op '{op.name}' raised {type(error).__name__}: {error}") from error
    if not isinstance(answer, dict):
        parts = answer if isinstance(answer, tuple) else (answer,)
        answer = dict(zip(op.outputs, parts, strict=False)) if len(parts) == len(op.outputs) else {}
    if set(answer) != set(op.outputs):
        raise ReferenceFailed(f"the reference of op '{op.name}' must return {', '.join(op.outputs)}")
    result = {}
    for name, values in answer.items():
        values = np.asarray(values, dtype=np.float64)
        if values.shape != arguments[name].view.shape:
            raise ReferenceFailed(
                f"the reference of op '{op.name}' returned shape {values.shape} for output '{name}' of shape "
                f"{arguments[name].view.shape}"
            )
        result[name] = values
    return result


class ReferenceFailed(Exception):
    """The op's own reference or error model could not be used; the case is unchecked."""


def input_values(arguments: Mapping[str, Argument]) -> dict[str, F64]:
    """The inputs as the FP64 run sees them."""
    return {n: to_float64(np.ascontiguousarray(a.view)) for n, a in arguments.items() if a.role == "input"}


def count_elements(arguments: Mapping[str, Argument]) -> int:
    """Elements over all outputs."""
    return sum(math.prod(a.view.shape) for a in arguments.values() if a.role == "output")
