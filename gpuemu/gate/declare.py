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

or, with all of that from the library, and what differs beside it:

    @gpuemu.op(schemas.softmax(), dims={"N": (1, 127, 128, 129)})
    def softmax(run, x, y): ...

The launcher gets `run` (as `gpuemu.run`, with target and device already chosen), and any of the inputs, outputs, dims,
options and `dtype` (the case's, a name) by parameter name. It may launch several kernels and make temporaries with
numpy, or with `run.empty(shape, dtype)`, which holds the poison of the case. The reference gets inputs, dims, options
and `dtype` by parameter name and returns an array, a tuple in the order of `outputs`, or a dict; an optional argument
that the case leaves out is None, for both.

An op is data plus three functions; nothing runs at declaration. What is wrong with a declaration is an InvalidInput
that names the op and the field (`gate/check.py`). `collecting()` is how files are searched for ops: a declaration
registers itself with the innermost collector, and with nobody otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from gpuemu.gate.covering import pairwise
from gpuemu.gate.dims import axes_of, names_in
from gpuemu.gate.dtypes import dtype_name
from ptx.errors import InvalidInput

__all__ = ["Input", "Op", "Output", "axes_of", "collecting", "op"]

NONFINITE = ("nan", "inf", "-inf")
VIEWS = ("padded", "transposed", "expanded", "scalar", "offset", "strided")
KINDS = (
    "value", "gradient", "scale",
    "any", "duplicates", "sorted", "unique", "offsets", "lengths", "flags",
)  # fmt: skip
DEFAULT_DTYPES = ("float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class Input:
    """One array argument.

    `shape`: axes separated by spaces or commas, each an expression of dims ("M K", "B+1", "K/32"; see `gate/dims.py`).
    `dtype`: None = the case's; a dtype; the name of an option whose values are dtypes; or a mapping from the case's
    dtype. `largest`: bound on magnitudes (None = the format's largest finite value). `within`: (low, high), the domain
    of the values. `nonfinite`: which of nan, inf, -inf the op's contract covers; the adversarial distribution then
    contains them. `positive`: only values >= 0.

    `kind`: what the values mean, which chooses the structured ones among them (`gate/values.py`, `gate/indices.py`).
    Of floats: "value"; "gradient" (an upstream gradient: 0, 1, 2, ..., not all ones); "scale" (of a quantised block:
    positive, powers of two in the exact mode, extremes in the adversarial distribution). Of integers, all in [low,
    high), whose ends are integers or expressions of dims: "any"; "duplicates" (few distinct values); "sorted"; "unique"
    (along the last axis, or over all of the array where it is a table); "offsets" (cumulative: first 0, last `high`,
    with empty segments); "lengths" (low <= length <= high, both ends included); "flags" (0 or 1).

    `views`: how the array may lie in memory besides dense, chosen by the case's seed. "padded" (rows in a larger
    buffer), "transposed" (last two axes swapped in memory), "expanded" (stride 0 along the first axis), "scalar"
    (stride 0 along every axis: one element), "offset" (a slice that starts at an odd element), "strided" (every other
    element of the last axis). `padded=True` is short for views=("padded",). The launcher must pass the strides on.

    `optional`: the op may be called without it; cases with and without are tried, and the option of its name says
    which. `derived`: a function of earlier inputs, dims, options and `dtype` that makes its values (a saved mean, a
    log-sum-exp, positions), rounded to its dtype as a kernel would get it.
    """

    shape: str
    dtype: str | Mapping[str, str] | None = None
    largest: float | None = None
    nonfinite: tuple[str, ...] = ()
    positive: bool = False
    low: int | str | None = None
    high: int | str | None = None
    padded: bool = False
    within: tuple[float, float] | None = None
    kind: str | None = None
    views: tuple[str, ...] = ()
    optional: bool = False
    derived: Callable[..., Any] | None = None

    @property
    def layouts(self) -> tuple[str, ...]:
        """The views besides dense, `padded` included."""
        return ("padded", *self.views) if self.padded and "padded" not in self.views else self.views


@dataclass(frozen=True, slots=True)
class Output:
    """One array that the op writes in full. Shape, dtype, views and `optional` as in Input.

    It holds the case's poison before the run, or `fill` where the kernel adds to it (atomics). `inplace`: the input
    that the kernel overwrites with it; the launcher takes that input, writable, and the reference gets its original
    values.
    """

    shape: str = ""
    dtype: str | Mapping[str, str] | None = None
    padded: bool = False
    views: tuple[str, ...] = ()
    fill: float | None = None
    inplace: str | None = None
    optional: bool = False

    @property
    def layouts(self) -> tuple[str, ...]:
        """The views besides dense, `padded` included."""
        return ("padded", *self.views) if self.padded and "padded" not in self.views else self.views


@dataclass(frozen=True, slots=True)
class Op:
    """A declared op. `file` and `line` are where the launcher stands; `options` are launch variants (one case each).

    `where`: conditions on dims and options. `memory`: largest number of bytes of all arguments together. `linear`: the
    dims that the op sums over, if it is linear; it then has the exact mode (`gate/values.py`).
    """

    name: str
    dims: dict[str, tuple[int, ...]]
    inputs: dict[str, Input]
    outputs: dict[str, Output]
    launcher: Callable[..., None]
    reference: Callable[..., Any]
    bound: Callable[..., Any]
    dtypes: tuple[str, ...]
    targets: tuple[str, ...] | None
    where: tuple[Callable[..., bool], ...]
    shapes: tuple[dict[str, int], ...] | None
    options: tuple[dict[str, Any], ...]
    file: str
    line: int
    memory: int | None = None
    linear: tuple[str, ...] | None = None
    _parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def call(self, function: str, values: Mapping[str, Any], *first: Any) -> Any:
        """Call the launcher or the reference with those of `values` that it names."""
        names = self._parameters[function]
        return getattr(self, function)(*first, **{n: values[n] for n in names if n in values})

    def holds(self, dims: Mapping[str, int], option: Mapping[str, Any] | None = None) -> bool:
        """Whether the conditions allow a shape; those that name options count only where an option is given."""
        known = {**dims, **(option or {})}
        for number, condition in enumerate(self.where):
            names = self._parameters[f"where {number}"]
            if all(n in known for n in names) and not condition(**{n: known[n] for n in names}):
                return False
        return True

    def dtype_of(self, argument: Input | Output, dtype: str, option: Mapping[str, Any]) -> str:
        """The full dtype name of an argument in a case. An in-place output has that of its input."""
        if isinstance(argument, Output) and argument.inplace is not None:
            argument = self.inputs[argument.inplace]
        given = argument.dtype
        if given is None:
            return dtype
        if isinstance(given, Mapping):
            return dtype_name(given[dtype]) if dtype in given else dtype
        return dtype_name(str(option[given])) if given in option else dtype_name(given)


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
    schema: Mapping[str, Any] | None = None,
    /,
    *,
    dims: Mapping[str, Sequence[int]] | None = None,
    inputs: Mapping[str, Input | str] | None = None,
    outputs: Mapping[str, Output | str] | None = None,
    reference: Callable[..., Any] | None = None,
    bound: Callable[..., Any] | None = None,
    name: str | None = None,
    dtypes: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    where: Callable[..., bool] | Sequence[Callable[..., bool]] | None = None,
    shapes: Sequence[Mapping[str, int]] | None = None,
    options: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]] | None = None,
    memory: int | None = None,
    linear: str | None = None,
) -> Callable[[Callable[..., None]], Op]:
    """Declare an op; decorates its launcher and returns the Op.

    `schema`: a ready schema of `gpuemu.schemas`, or any mapping of these fields. What is given beside it wins: dims,
    inputs and outputs by name, everything else as a whole. `dims`: candidate sizes by name (`gpuemu.sizes` makes some).
    `where`: a condition on dims and options, or several. `shapes`: the exact shapes to try instead of a choice from the
    candidates. `options`: launch variants, each a mapping; or a mapping from a name to its values, of which every pair
    of values is tried. `targets`: None = the sweep's. `memory`, `linear` (dims separated by spaces, "" for none): as in
    Op. Raises InvalidInput for a declaration that cannot be swept.
    """
    own = {
        "dims": dims, "inputs": inputs, "outputs": outputs, "reference": reference, "bound": bound, "dtypes": dtypes,
        "targets": targets, "where": where, "shapes": shapes, "options": options, "memory": memory, "linear": linear,
    }  # fmt: skip
    fields: dict[str, Any] = dict(schema or {})
    for key, value in own.items():
        if value is not None:
            merged = key in ("dims", "inputs", "outputs") and fields.get(key) is not None
            fields[key] = {**fields[key], **value} if merged else value  # type: ignore[dict-item]

    def declare(launcher: Callable[..., None]) -> Op:
        from gpuemu.gate.check import check

        label = name or fields.pop("name", None) or launcher.__name__
        for needed in ("dims", "inputs", "outputs", "reference", "bound"):
            if fields.get(needed) is None:
                raise InvalidInput(f"op '{label}': {needed} is missing")
        code = launcher.__code__
        made_inputs = {k: v if isinstance(v, Input) else Input(v) for k, v in fields["inputs"].items()}
        made_outputs = {k: v if isinstance(v, Output) else Output(v) for k, v in fields["outputs"].items()}
        given, conditions, summed = fields.get("shapes"), fields.get("where"), fields.get("linear")
        optional = [k for k, i in made_inputs.items() if i.optional]
        optional += [k for k, o in made_outputs.items() if o.optional]
        built = Op(
            name=label,
            dims={k: tuple(dict.fromkeys(v)) for k, v in fields["dims"].items()},
            inputs=made_inputs,
            outputs=made_outputs,
            launcher=launcher,
            reference=fields["reference"],
            bound=fields["bound"],
            dtypes=tuple(dtype_name(d) for d in fields.get("dtypes") or DEFAULT_DTYPES),
            targets=tuple(fields["targets"]) if fields.get("targets") is not None else None,
            where=() if conditions is None else (conditions,) if callable(conditions) else tuple(conditions),
            shapes=tuple(dict(s) for s in given) if given is not None else None,
            options=_variants(fields.get("options"), optional),
            file=code.co_filename,
            line=code.co_firstlineno,
            memory=fields.get("memory"),
            linear=None if summed is None else axes_of(summed),
        )
        check(built)
        if (found := _collector.get()) is not None:
            found.append(built)
        return built

    if unknown := set(fields) - set(own) - {"name"}:
        raise InvalidInput(f"a schema has no field '{sorted(unknown)[0]}'", help=f"fields: {', '.join(own)}")
    return declare


def _variants(
    options: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]] | None, optional: Sequence[str]
) -> tuple[dict[str, Any], ...]:
    """The launch variants: those listed, or pairs of the swept values; times optional arguments present and absent."""
    if options is None:
        rows: list[dict[str, Any]] = [{}]
    elif isinstance(options, Mapping):
        rows = _product({k: tuple(v) for k, v in options.items()})
    else:
        rows = [dict(o) for o in options]
    if not optional:
        return tuple(rows[i] for i in pairwise(rows)) if isinstance(options, Mapping) else tuple(rows)
    whole = [{**row, **more} for row in rows for more in _product(dict.fromkeys(optional, (True, False)))]
    # Which of the listed variants a row belongs to counts as one more factor.
    labelled = [{**row, "": i // 2 ** len(optional)} for i, row in enumerate(whole)]
    return tuple(whole[i] for i in pairwise(labelled))


def _product(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def dims_of(argument: Input | Output) -> frozenset[str]:
    """The dims that an argument's shape depends on."""
    return frozenset[str]().union(*(names_in(axis) for axis in axes_of(argument.shape)))
