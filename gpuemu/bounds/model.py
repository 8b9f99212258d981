"""What an error model is: a function of the FP64 run, with words for the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.dtypes import FORMATS, quantum

F64 = NDArray[np.float64]
U32 = 2.0**-24
TINY32 = 2.0**-126
LEAST32 = 2.0**-149
LARGEST32 = (2 - 2.0**-23) * 2.0**127


@dataclass(frozen=True, slots=True)
class Exact:
    """The FP64 run of one case: inputs as the kernel got them, outputs of the reference, and what the case was.

    `device`: the sm_XX whose arithmetic runs. `options`: the case's launch variant. `dtypes`: of each argument; an
    optional one that the case leaves out is in none of these.
    """

    inputs: Mapping[str, F64]
    outputs: Mapping[str, F64]
    dims: Mapping[str, int]
    dtype: str
    device: str
    options: Mapping[str, Any] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)


Bound = F64 | float | Mapping[str, F64 | float]


@dataclass(frozen=True, slots=True)
class Model:
    """A ready error model: `evaluate` gives the bound, `says` its terms in words.

    `precision`: by dtype, how products are made where that is not the default; the verdict shows it. `family`: the
    name under which `gpuemu calibrate` keeps what controls use of the model ("" = its words). `products`: the words
    for how products of (dtype, device) are made, where the model has some.
    """

    evaluate: Callable[[Exact], Bound]
    says: str
    precision: Mapping[str, str] = field(default_factory=dict)
    family: str = ""
    products: Callable[[str, str, str | None], str] | None = None

    def __call__(self, exact: Exact) -> Bound:
        return self.evaluate(exact)

    def statement(self, dtype: str, device: str | None = None) -> str:
        """The words for a case of `dtype` on `device`."""
        mode = self.precision.get(dtype)
        if self.products is not None and device is not None:
            return f"{self.says}, {self.products(dtype, device, mode)}"
        return f"{self.says}, {mode} products" if mode else self.says


def statement_of(bound: Callable[..., object], dtype: str, device: str | None = None) -> str:
    """The words that a verdict shows for an error model, also for an author's own function."""
    if isinstance(bound, Model):
        return bound.statement(dtype, device)
    return f"author's model '{getattr(bound, '__name__', '?')}'"


def family_of(bound: Callable[..., object]) -> str | None:
    """The model's family for calibration; None for an author's own function, which is never calibrated."""
    return (bound.family or bound.says) if isinstance(bound, Model) else None


def where_finite(bound: F64, size: F64) -> F64:
    """`bound` where a sum of terms whose magnitudes add up to `size` stays finite in binary32 in any order; elsewhere
    infinite, since a partial sum may overflow although the result does not: nothing to judge."""
    return np.where(size * (1 + 2.0**-20) < LARGEST32, bound, np.inf)


def half_ulp(values: F64, dtype: str) -> F64:
    """Half the spacing of `dtype` at |values|: the error of one rounding to nearest (finite values)."""
    return quantum(np.abs(values), FORMATS[dtype]) / 2
