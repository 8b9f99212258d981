"""How a kernel author states what an op is: `@gpuemu.op(...)` on the function that launches it.

    @gpuemu.op(
        dims={"M": (1, 3), "N": (1, 127, 128, 129, 1000)},
        inputs={"x": Input("M N", padded=True)},
        outputs={"y": Output("M N", padded=True)},
        reference=lambda x: ...,          # FP64 numpy in, FP64 numpy out
        bound=bounds.softmax("x"),        # FP64 run -> error allowed before the final rounding
    )
    def softmax(run, x, y):
        run(softmax_kernel, (x.shape[0],), x, y, ...)

The launcher gets `run` (as `gpuemu.run`, with target and device already chosen), and any of the inputs, outputs, dims
and options by parameter name. It may launch several kernels and make temporaries with numpy. The reference gets inputs
and dims by parameter name and returns an array, a tuple in the order of `outputs`, or a dict.

An op is data plus three functions; nothing runs at declaration. What is wrong with a declaration is an InvalidInput
that names the op and the field. `collecting()` is how files are searched for ops: a declaration registers itself with
the innermost collector, and with nobody otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from gpuemu.gate.dtypes import FORMATS, INTEGERS, dtype_name
from ptx.errors import InvalidInput

NONFINITE = ("nan", "inf", "-inf")
DEFAULT_DTYPES = ("float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class Input:
    """One array argument.

    `shape`: dim names or integers, separated by spaces or commas ("M K"). `dtype`: fixed dtype, None = the case's.
    `largest`: bound on magnitudes (None = the format's largest finite value). `nonfinite`: which of nan, inf, -inf the
    op's contract covers; the adversarial distribution then contains them. `positive`: only values >= 0.
    `low`, `high`: range [low, high) of an integer input, each an integer or a dim's name. `padded`: the kernel takes a
    row stride, so cases may pass a view whose rows lie in a larger buffer.
    """

    shape: str
    dtype: str | None = None
    largest: float | None = None
    nonfinite: tuple[str, ...] = ()
    positive: bool = False
    low: int | str = 0
    high: int | str = 2
    padded: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """One array that the op writes in full. Fields as in Input; it is filled with 0xFF bytes (NaN) before the run."""

    shape: str
    dtype: str | None = None
    padded: bool = False


@dataclass(frozen=True, slots=True)
class Op:
    """A declared op. `file` and `line` are where the launcher stands; `options` are launch variants (one case each)."""

    name: str
    dims: dict[str, tuple[int, ...]]
    inputs: dict[str, Input]
    outputs: dict[str, Output]
    launcher: Callable[..., None]
    reference: Callable[..., Any]
    bound: Callable[..., Any]
    dtypes: tuple[str, ...]
    targets: tuple[str, ...] | None
    where: Callable[..., bool] | None
    shapes: tuple[dict[str, int], ...] | None
    options: tuple[dict[str, Any], ...]
    file: str
    line: int
    _parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def call(self, function: str, values: Mapping[str, Any], *first: Any) -> Any:
        """Call the launcher or the reference with those of `values` that it names."""
        names = self._parameters[function]
        return getattr(self, function)(*first, **{n: values[n] for n in names if n in values})


def axes_of(shape: str) -> tuple[str, ...]:
    """The axes of a shape text: 'M K' or 'M, K' or 'M 128'."""
    return tuple(shape.replace(",", " ").split())


_collector: ContextVar[list[Op] | None] = ContextVar("gpuemu_ops", default=None)


@contextmanager
def collecting() -> Iterator[list[Op]]:
    """Within it, declared ops are appended to the list that it yields."""
    found: list[Op] = []
    token = _collector.set(found)
    try:
        yield found
    finally:
        _collector.reset(token)


def op(
    *,
    dims: Mapping[str, Sequence[int]],
    inputs: Mapping[str, Input | str],
    outputs: Mapping[str, Output | str],
    reference: Callable[..., Any],
    bound: Callable[..., Any],
    name: str | None = None,
    dtypes: Sequence[str] = DEFAULT_DTYPES,
    targets: Sequence[str] | None = None,
    where: Callable[..., bool] | None = None,
    shapes: Sequence[Mapping[str, int]] | None = None,
    options: Sequence[Mapping[str, Any]] = ({},),
) -> Callable[[Callable[..., None]], Op]:
    """Declare an op; decorates its launcher and returns the Op.

    `dims`: candidate sizes by name. `where`: a condition on dims. `shapes`: the exact shapes to try instead of a choice
    from the candidates. `targets`: None = the sweep's. Raises InvalidInput for a declaration that cannot be swept.
    """

    def declare(launcher: Callable[..., None]) -> Op:
        code = launcher.__code__
        built = Op(
            name=name or launcher.__name__,
            dims={k: tuple(dict.fromkeys(v)) for k, v in dims.items()},
            inputs={k: v if isinstance(v, Input) else Input(v) for k, v in inputs.items()},
            outputs={k: v if isinstance(v, Output) else Output(v) for k, v in outputs.items()},
            launcher=launcher,
            reference=reference,
            bound=bound,
            dtypes=tuple(dtype_name(d) for d in dtypes),
            targets=tuple(targets) if targets is not None else None,
            where=where,
            shapes=tuple(dict(s) for s in shapes) if shapes is not None else None,
            options=tuple(dict(o) for o in options),
            file=code.co_filename,
            line=code.co_firstlineno,
        )
        _check(built)
        if (found := _collector.get()) is not None:
            found.append(built)
        return built

    return declare


def _check(op: Op) -> None:
    def wrong(what: str, help: str | None = None) -> InvalidInput:
        return InvalidInput(f"op '{op.name}': {what}", help=help)

    if not op.outputs:
        raise wrong("no outputs: nothing would be checked")
    if not op.dtypes or not op.options:
        raise wrong("dtypes and options must not be empty")
    for dtype in op.dtypes:
        if dtype not in FORMATS:
            raise wrong(f"dtype {dtype} is not a floating-point format of the sweep", f"one of {', '.join(FORMATS)}")
    for dim, sizes in op.dims.items():
        if not sizes or any(type(s) is not int or s < 1 for s in sizes):
            raise wrong(f"dim {dim}: candidates must be integers >= 1, got {sizes}")
    for shape in op.shapes or ():
        if set(shape) != set(op.dims):
            raise wrong(f"shapes: {shape} does not give exactly the dims {', '.join(op.dims)}")
    arguments: dict[str, Input | Output] = {**op.inputs, **op.outputs}
    for label, argument in arguments.items():
        for axis in axes_of(argument.shape):
            if axis not in op.dims and not axis.isdigit():
                raise wrong(f"argument {label}: axis '{axis}' is not a dim", f"dims are {', '.join(op.dims)}")
        if argument.dtype is not None:
            dtype_name(argument.dtype)
        if argument.padded and len(axes_of(argument.shape)) < 2:
            raise wrong(f"argument {label}: only arrays of two or more axes can have padded rows")
    for label, given in op.inputs.items():
        if unknown := set(given.nonfinite) - set(NONFINITE):
            raise wrong(f"input {label}: nonfinite takes {', '.join(NONFINITE)}, not {', '.join(sorted(unknown))}")
        for end in (given.low, given.high):
            if isinstance(end, str) and end not in op.dims:
                raise wrong(f"input {label}: range end '{end}' is not a dim")
        if given.dtype is not None and dtype_name(given.dtype) in INTEGERS and given.largest is not None:
            raise wrong(f"input {label}: integer inputs take low and high, not largest")
    if clash := set(op.inputs) & set(op.outputs) | (set(op.inputs) | set(op.outputs)) & set(op.dims):
        raise wrong(f"{', '.join(sorted(clash))} is named twice")
    known = set(op.inputs) | set(op.outputs) | set(op.dims) | {k for o in op.options for k in o}
    for function, allowed, skip in (
        ("launcher", known, 1),
        ("reference", set(op.inputs) | set(op.dims), 0),
    ):
        parameters = list(inspect.signature(getattr(op, function)).parameters.values())[skip:]
        names = tuple(p.name for p in parameters)
        unknown_names = [p.name for p in parameters if p.name not in allowed and p.default is p.empty]
        if unknown_names:
            raise wrong(
                f"{function} takes '{unknown_names[0]}', which is not declared",
                f"declared: {', '.join(sorted(allowed))}",
            )
        op._parameters[function] = names
    if missing := [n for n in op.outputs if n not in op._parameters["launcher"]]:
        raise wrong(f"the launcher does not take the output '{missing[0]}'")
