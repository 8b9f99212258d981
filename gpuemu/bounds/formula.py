"""An error model from an op's formula, evaluated in running error analysis (`bounds/running.py`).

The formula is an ordinary function of `Running` numbers: it takes inputs, dims, options, `dtype` and `device` by
parameter name (an optional input that the case leaves out is None; an integer input is a plain array) and returns one
`Running`, a tuple in the order of the outputs, or a mapping by output. Its values are those of the reference, which the
tests check, so that a formula cannot drift from what it bounds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuemu.bounds.model import Bound, Exact, Model
from gpuemu.bounds.running import Running, lift
from gpuemu.gate.dtypes import INTEGERS


def formula(
    function: Callable[..., Any],
    says: str,
    *,
    family: str = "",
    precision: Mapping[str, str] | None = None,
    products: Callable[[str, str, str | None], str] | None = None,
) -> Model:
    """The model whose bound is the error that `function` carries to its results."""
    parameters = tuple(inspect.signature(function).parameters)

    def evaluate(exact: Exact) -> Bound:
        return {name: r.error for name, r in evaluated(function, parameters, exact).items()}

    return Model(evaluate, says, dict(precision or {}), family or says, products)


def evaluated(function: Callable[..., Any], parameters: tuple[str, ...], exact: Exact) -> dict[str, Running]:
    """The results of a formula by output."""
    known: dict[str, Any] = {**exact.dims, **exact.options, "dtype": exact.dtype, "device": exact.device}
    for name, values in exact.inputs.items():
        integer = exact.dtypes.get(name, "") in INTEGERS
        known[name] = values.astype(np.int64) if integer else lift(values)
    # An optional input that is left out is an option that is False, as a flag that is off; None serves both.
    known = {n: None if v is False else v for n, v in known.items()}
    with np.errstate(all="ignore"):
        answer = function(**{n: known[n] for n in parameters if n in known})
    names = list(exact.outputs)
    if isinstance(answer, Running):
        return dict.fromkeys(names, answer)
    if isinstance(answer, tuple):
        return dict(zip(names, answer, strict=False))
    return {n: r for n, r in answer.items() if n in exact.outputs}
