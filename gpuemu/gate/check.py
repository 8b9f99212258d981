"""What can be wrong with a declaration, found before anything runs: an InvalidInput names the op and the field."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gpuemu.gate.declare import KINDS, NONFINITE, VIEWS, Input, Op, Output, dims_of
from gpuemu.gate.dims import axes_of, names_in
from gpuemu.gate.dtypes import FORMATS, INTEGERS, dtype_name
from ptx.errors import InvalidInput

READ_ONLY_VIEWS = ("expanded", "scalar")
FLOAT_KINDS = ("value", "gradient", "scale")


def check(op: Op) -> None:
    """Raises InvalidInput for a declaration that cannot be swept; notes the parameters of the op's functions."""

    def wrong(what: str, help: str | None = None) -> InvalidInput:
        return InvalidInput(f"op '{op.name}': {what}", help=help)

    _check_sizes(op, wrong)
    arguments: dict[str, Input | Output] = {**op.inputs, **op.outputs}
    for label, argument in arguments.items():
        _check_argument(op, label, argument, wrong)
    for label, given in op.inputs.items():
        _check_input(op, label, given, wrong)
    for label, made in op.outputs.items():
        if made.inplace is not None and made.inplace not in op.inputs:
            raise wrong(f"output {label}: in place of '{made.inplace}', which is not an input")
        if set(made.layouts) & set(READ_ONLY_VIEWS):
            raise wrong(f"output {label}: an output cannot have stride 0")
    if clash := set(op.inputs) & set(op.outputs) | (set(op.inputs) | set(op.outputs)) & set(op.dims):
        raise wrong(f"{', '.join(sorted(clash))} is named twice")
    _check_functions(op, wrong)


def _check_sizes(op: Op, wrong: Callable[..., InvalidInput]) -> None:
    if not op.outputs:
        raise wrong("no outputs: nothing would be checked")
    if not op.dtypes or not op.options:
        raise wrong("dtypes and options must not be empty")
    for dtype in op.dtypes:
        if dtype not in FORMATS and dtype not in INTEGERS:
            raise wrong(f"dtype {dtype} is not one of the sweep", f"one of {', '.join([*FORMATS, *INTEGERS])}")
    for dim, sizes in op.dims.items():
        if not sizes or any(type(s) is not int or s < 0 for s in sizes):
            raise wrong(f"dim {dim}: candidates must be integers >= 0, got {sizes}")
    for shape in op.shapes or ():
        if set(shape) != set(op.dims):
            raise wrong(f"shapes: {shape} does not give exactly the dims {', '.join(op.dims)}")
    for dim in op.linear or ():
        if dim not in op.dims:
            raise wrong(f"linear: '{dim}' is not a dim", f"dims are {', '.join(op.dims)}")


def _check_argument(op: Op, label: str, argument: Input | Output, wrong: Callable[..., InvalidInput]) -> None:
    if isinstance(argument, Output) and argument.inplace is not None:
        return
    if unknown := dims_of(argument) - set(op.dims):
        raise wrong(f"argument {label}: axis '{sorted(unknown)[0]}' is not a dim", f"dims are {', '.join(op.dims)}")
    options = {k for o in op.options for k in o}
    if isinstance(argument.dtype, str) and argument.dtype not in options:
        dtype_name(argument.dtype)
    for view in argument.layouts:
        if view not in VIEWS:
            raise wrong(f"argument {label}: unknown view '{view}'", f"one of {', '.join(VIEWS)}")
        if view in ("padded", "transposed") and len(axes_of(argument.shape)) < 2:
            what = "padded rows" if view == "padded" else "a transposed view"
            raise wrong(f"argument {label}: only arrays of two or more axes can have {what}")


def _check_input(op: Op, label: str, given: Input, wrong: Callable[..., InvalidInput]) -> None:
    if unknown := set(given.nonfinite) - set(NONFINITE):
        raise wrong(f"input {label}: nonfinite takes {', '.join(NONFINITE)}, not {', '.join(sorted(unknown))}")
    for end in (given.low, given.high):
        if isinstance(end, str) and names_in(end) - set(op.dims):
            raise wrong(f"input {label}: range end '{end}' is not a dim")
    if given.kind is not None and given.kind not in KINDS:
        raise wrong(f"input {label}: unknown kind '{given.kind}'", f"one of {', '.join(KINDS)}")
    if given.within is not None and not given.within[0] <= given.within[1]:
        raise wrong(f"input {label}: within {given.within} is empty")
    options = {k for o in op.options for k in o}
    fixed = isinstance(given.dtype, str) and given.dtype not in options
    integer = fixed and dtype_name(str(given.dtype)) in INTEGERS
    if integer and given.largest is not None:
        raise wrong(f"input {label}: integer inputs take low and high, not largest")
    if integer and given.kind in FLOAT_KINDS:
        raise wrong(f"input {label}: kind '{given.kind}' is one of floating-point inputs")


def _check_functions(op: Op, wrong: Callable[..., InvalidInput]) -> None:
    options = {k for o in op.options for k in o}
    arrays = set(op.inputs) | set(op.outputs)
    common = set(op.dims) | options | {"dtype"}
    functions: list[tuple[str, Callable[..., Any], set[str], int]] = [
        ("launcher", op.launcher, arrays | common, 1),
        ("reference", op.reference, set(op.inputs) | common, 0),
        *((f"where {i}", condition, set(op.dims) | options, 0) for i, condition in enumerate(op.where)),
    ]
    earlier: set[str] = set()
    for label, given in op.inputs.items():
        if given.derived is not None:
            functions.append((f"derived {label}", given.derived, earlier | common, 0))
        earlier.add(label)
    for function, called, allowed, skip in functions:
        parameters = list(inspect.signature(called).parameters.values())[skip:]
        named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        every = tuple(sorted(allowed)) if any(p.kind == p.VAR_KEYWORD for p in parameters) else ()
        unknown_names = [p.name for p in named if p.name not in allowed and p.default is p.empty]
        if unknown_names:
            what = function.split()[0]
            raise wrong(
                f"{what} takes '{unknown_names[0]}', which is not declared",
                f"declared: {', '.join(sorted(allowed))}",
            )
        op._parameters[function] = tuple(dict.fromkeys((*(p.name for p in named if p.name in allowed), *every)))
    taken = op._parameters["launcher"]
    for name, output in op.outputs.items():
        if output.inplace is None and name not in taken:
            raise wrong(f"the launcher does not take the output '{name}'")
        if output.inplace is not None and output.inplace not in taken and name not in taken:
            raise wrong(f"the launcher does not take '{output.inplace}', which output '{name}' overwrites")
