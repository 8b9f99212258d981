"""Results made of additions, subtractions and multiplications alone, whatever the formula: one rule bounds them all.

Each operand reaches the result through at most k roundings, so the computed value is the exact formula with every
operand multiplied by some (1 + d), |d| <= (1+u)**k - 1 < 1.01ku (Higham, "Accuracy and Stability of Numerical
Algorithms", 2nd ed., lemma 3.1 and 3.4). The error is therefore at most that times the *same formula on absolute
values, with every minus a plus*: `formula`. No cancellation, no reordering and no fused multiply-add escapes it.

A division by a number known exactly (a length) is one more rounding, two units where it is approximate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuemu.bounds.model import LEAST32, U32, Bound, Exact, Model, where_finite


def absolute(formula: Callable[..., Any], *, roundings: int | Callable[..., int], out: str | None = None) -> Model:
    """|error| <= 1.01 * roundings * 2**-24 * formula(|inputs|), and some 2**-149 for products that underflow.

    `formula` takes inputs (absolute values, float64; integer inputs as integers) and dims by parameter name and returns
    an array that broadcasts to the output `out` (None = every output), or a dict by output. `roundings`: the most that
    any operand goes through, as a number or as a function of dims by parameter name.
    """

    def evaluate(exact: Exact) -> Bound:
        with np.errstate(invalid="ignore", over="ignore"):
            known: dict[str, Any] = {n: np.abs(v) for n, v in exact.inputs.items()}
            known.update(exact.dims)
            size = _call(formula, known)
            steps = _call(roundings, known) if callable(roundings) else roundings
            share = 1.01 * steps * U32
            sizes: Mapping[str, Any]
            sizes = size if isinstance(size, Mapping) else dict.fromkeys(exact.outputs if out is None else (out,), size)
            return {
                n: where_finite(share * np.asarray(s) + 2 * steps * LEAST32 * (1 + np.asarray(s)), np.asarray(s))
                for n, s in sizes.items()
            }

    return Model(evaluate, "binary32, rounded at each step")


def _call(function: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    return function(**{n: known[n] for n in inspect.signature(function).parameters if n in known})
