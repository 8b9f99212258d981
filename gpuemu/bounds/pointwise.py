"""Results that depend on one element of each input."""

from __future__ import annotations

import numpy as np

from gpuemu.bounds.model import LEAST32, U32, Bound, Exact, Model


def elementwise(ulps: float, *, of: str | None = None) -> Model:
    """A result that is within `ulps` ulp of binary32 of the exact one (1 ulp <= 2u relative)."""

    def evaluate(exact: Exact) -> Bound:
        bounds = {n: 2 * ulps * U32 * np.abs(v) + LEAST32 for n, v in exact.outputs.items() if of in (None, n)}
        return dict(bounds)

    return Model(evaluate, f"{ulps:g} ulp of binary32", family=f"elementwise, {ulps:g} ulp")


def exact() -> Model:
    """No error but the rounding to the output's format: copies, maxima, one correctly rounded operation."""
    return Model(lambda run: 0.0, "correctly rounded", family="exact")


def gelu(x: str, *, erf_ulps: float = 2.0) -> Model:
    """x/2 * (1 + erf(x / sqrt 2)) in binary32. `erf_ulps`: CUDA's erff is within 2 (CUDA programming guide, 13.1).

    The argument z = x / sqrt 2 has relative error 2u, which moves erf by at most 2u * max z * erf'(z) = 0.97u. With
    erf's own 2 ulp (4u) and the rounding of the sum (u of at most 2), the factor 1 + erf has an *absolute* error of
    at most (1 + 2*erf_ulps + 2)u: where x is far below zero it is nearly all of the result, in any kernel that adds 1.
    """

    def evaluate(exact: Exact) -> Bound:
        values = np.abs(exact.inputs[x])
        y = np.abs(next(iter(exact.outputs.values())))
        return values / 2 * ((3 + 2 * erf_ulps) * U32) + 2 * U32 * y + LEAST32

    return Model(evaluate, f"gelu in binary32 (erf {erf_ulps:g} ulp)", family="gelu")
