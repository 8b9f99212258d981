"""The arrays of one case: inputs with their values, outputs filled with poison, in buffers laid out as the case says.

Inputs are read-only views: a store into one is a finding of the engine, with its line. Their bytes come from the case's
seed and the argument's name only (derived ones from the others). An output holds the case's poison before the launch
(`gate/poison.py`), so an element that a kernel does not write is seen; or its `fill`; or, in place of an input, that
input, whose original values the reference and the error model get.

Layouts (`gate/layouts.py`) are chosen by the seed. A gap is 7, 9, 11, ... elements wide (odd: rows lose their vector
alignment; another number for each argument: a kernel that takes one's stride for another's is seen). The gap of an
input holds values that spoil a result, that of an output must be the same afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.bits import Bits, seed_of
from gpuemu.gate.cases import Case
from gpuemu.gate.declare import Input, Op, Output
from gpuemu.gate.dims import axes_of, size_of_axis
from gpuemu.gate.dtypes import F64, FORMATS, INTEGERS, numpy_dtype, quantise, to_float64, to_storage
from gpuemu.gate.indices import integers
from gpuemu.gate.layouts import Layout
from gpuemu.gate.poison import Poison, fill, poison_of
from gpuemu.gate.values import floats, padding, whole_limit

PAD = 7


@dataclass(frozen=True, slots=True)
class Argument:
    """One array of a case. `view`: what the launcher gets; `base`: all of the buffer; `before`: its first bytes.

    `role`: 'input', 'inplace' (an input that the kernel overwrites) or 'output'. `original`: the values of an input
    before the launch, contiguous. `poison`: what unwritten elements of an output hold, if that can be told.
    """

    name: str
    role: str
    dtype: str
    base: NDArray[Any]
    view: NDArray[Any]
    before: bytes
    layout: Layout
    original: NDArray[Any] | None = None
    poison: Poison | None = None

    def changed_gap(self) -> NDArray[np.bool_]:
        """True for the elements of the base buffer outside the view whose bytes differ from what they were."""
        width = self.base.itemsize
        old = np.frombuffer(self.before, np.uint8).reshape(*self.base.shape, width)
        new = words_of(self.base).view(np.uint8).reshape(old.shape)
        return np.asarray((old != new).any(axis=-1) & self.layout.gap())

    def gap_touched(self) -> bool:
        """Whether any byte of the buffer outside the view differs from what it was."""
        return self.view.size != self.base.size and bool(self.changed_gap().any())


def words_of(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous copy or view of the array as unsigned words of its element size."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def size_of(argument: Input | Output, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an argument under given dims."""
    return tuple(size_of_axis(a, dims) for a in axes_of(argument.shape))


def make_arguments(op: Op, case: Case) -> dict[str, Argument]:
    """Fresh arrays for a case, the same bytes every time. Optional arguments that it leaves out are not among them."""
    made: dict[str, Argument] = {}
    overwritten = {o.inplace for n, o in op.outputs.items() if case.option.get(n, True)}
    for position, (name, given) in enumerate(op.inputs.items()):
        if given.optional and not case.option.get(name, True):
            continue
        dtype = op.dtype_of(given, case.dtype, case.option)
        layout = _layout(given, size_of(given, case.dims), case, name, position)
        values, gap = _values(op, case, name, given, dtype, layout, made)
        base = np.empty(layout.base_shape, values.dtype)
        base[...] = gap
        layout.stored(base)[...] = values
        view = layout.view(base)
        role = "inplace" if name in overwritten else "input"
        view.flags.writeable = role == "inplace"
        original = np.array(view) if role == "inplace" else np.ascontiguousarray(view)
        made[name] = Argument(name, role, dtype, base, view, base.tobytes(), layout, original)
    for name, wanted in op.outputs.items():
        if wanted.optional and not case.option.get(name, True):
            continue
        dtype = op.dtype_of(wanted, case.dtype, case.option)
        if wanted.inplace is not None:
            over = made[wanted.inplace]
            made[name] = Argument(name, "output", dtype, over.base, over.view, over.before, over.layout)
            continue
        layout = _layout(wanted, size_of(wanted, case.dims), case, name, len(made))
        base = np.empty(layout.base_shape, numpy_dtype(dtype))
        poison = poison_of(case.seed, dtype)
        fill(base, poison)
        view = layout.view(base)
        if wanted.fill is not None:
            view[...] = np.float64(wanted.fill).astype(view.dtype)
        known = poison if wanted.fill is None else None
        made[name] = Argument(name, "output", dtype, base, view, base.tobytes(), layout, poison=known)
    return made


def _values(
    op: Op, case: Case, name: str, given: Input, dtype: str, layout: Layout, made: Mapping[str, Argument]
) -> tuple[NDArray[Any], Any]:
    """(values of the stored elements, what a gap holds), both in the argument's dtype."""
    shape = layout.stored_shape
    form = FORMATS.get(dtype)
    gap = numpy_dtype(dtype).type(0) if form is None else to_storage(_one(padding(form, case.distribution)), form)[0]
    if given.derived is not None:
        return _derived(op, case, name, dtype, layout, made), gap
    bits = Bits(case.seed, name)
    if form is None:
        return integers(given, shape, case.dims, bits, case.distribution, dtype), gap
    whole = 1
    if case.distribution == "exact":
        terms = math.prod(case.dims[d] for d in op.linear or ())
        factors = sum(i.derived is None and i.kind != "scale" for i in op.inputs.values() if i.dtype is None)
        narrow = min((FORMATS[d] for d in {dtype, case.dtype} if d in FORMATS), key=lambda f: f.precision)
        whole = whole_limit(terms, factors, narrow)
    return to_storage(floats(given, shape, form, case.distribution, bits, whole), form), gap


def _one(value: float) -> F64:
    return np.array([value])


def _derived(op: Op, case: Case, name: str, dtype: str, layout: Layout, made: Mapping[str, Argument]) -> NDArray[Any]:
    known = {**case.dims, **case.option, "dtype": case.dtype, **absent(op), **reference_inputs(made)}
    function = op.inputs[name].derived
    assert function is not None
    try:
        with np.errstate(all="ignore"):
            answer = np.asarray(function(**{n: known[n] for n in op._parameters[f"derived {name}"]}))
        values = answer if answer.shape == layout.shape else np.broadcast_to(answer, layout.shape)
    except Exception as error:
        reason = f"input '{name}' of op '{op.name}' could not be made: {type(error).__name__}: {error}"
        raise ReferenceFailed(reason) from error
    stored = values[tuple(slice(0, n) for n in layout.stored_shape)]
    form = FORMATS.get(dtype)
    if form is None:
        return np.asarray(stored).astype(numpy_dtype(dtype))
    return to_storage(quantise(np.asarray(stored, np.float64), form), form)


def _layout(argument: Input | Output, shape: tuple[int, ...], case: Case, name: str, position: int) -> Layout:
    choices = ("dense", *argument.layouts)
    if len(choices) <= 2:
        kind = choices[(case.seed & 1) % len(choices)]
    else:
        kind = choices[seed_of("layout", case.seed, name) % len(choices)]
    return Layout(kind, shape, PAD + 2 * position)


def absent(op: Op) -> dict[str, Any]:
    """None for every optional argument: what is there replaces it."""
    names = [n for n, i in op.inputs.items() if i.optional] + [n for n, o in op.outputs.items() if o.optional]
    return dict.fromkeys(names)


def reference_inputs(arguments: Mapping[str, Argument]) -> dict[str, NDArray[Any]]:
    """The inputs as a reference gets them: floats as float64, integers as they are; copies where they are mutable."""
    found: dict[str, NDArray[Any]] = {}
    for name, argument in arguments.items():
        if argument.original is not None:
            given = argument.original
            found[name] = to_float64(given) if argument.dtype in FORMATS else given.copy()
    return found


def reference_values(
    op: Op, case: Case, arguments: Mapping[str, Argument], whole: dict[str, NDArray[Any]] | None = None
) -> dict[str, F64]:
    """The outputs of the op's FP64 reference, checked for shape. Raises ReferenceFailed with the reason.

    `whole` receives those of integer outputs that the reference gives as integers, in the output's dtype.
    """
    known = {**case.dims, **case.option, "dtype": case.dtype, **absent(op), **reference_inputs(arguments)}
    try:
        with np.errstate(all="ignore"):
            answer = op.call("reference", known)
    except Exception as error:
        raise ReferenceFailed(f"the reference of op '{op.name}' raised {type(error).__name__}: {error}") from error
    if not isinstance(answer, dict):
        parts = answer if isinstance(answer, tuple) else (answer,)
        names = list(op.outputs)
        if len(parts) != len(names):
            names = [n for n in names if n in arguments]
        answer = dict(zip(names, parts, strict=False)) if len(parts) == len(names) else {}
    wanted = [n for n in op.outputs if n in arguments]
    if not set(wanted) <= set(answer) or not set(answer) <= set(op.outputs):
        raise ReferenceFailed(f"the reference of op '{op.name}' must return {', '.join(op.outputs)}")
    result = {}
    for name in wanted:
        given = np.asarray(answer[name])
        if whole is not None and given.dtype.kind in "iu" and arguments[name].dtype in INTEGERS:
            whole[name] = given.astype(numpy_dtype(arguments[name].dtype))
        values = given.astype(np.float64)
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
    return {n: to_float64(a.original) for n, a in arguments.items() if a.original is not None}


def count_elements(arguments: Mapping[str, Argument]) -> int:
    """Elements over all outputs."""
    return sum(math.prod(a.view.shape) for a in arguments.values() if a.role == "output")
