"""Error bounds for the kernels' tests, derived from the arithmetic that the kernels do, and the check against them.

`u32` is the unit roundoff of f32; a half ulp of the output type is added where the result is stored in a smaller type.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
u32 = 2.0**-24
ROUNDOFF = {"float64": 2.0**-53, "float32": u32, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_SMALLEST = {"float64": 5e-324, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}


def stored(exact: Array, dtype: Any) -> Array:
    """Half an ulp of the type that a result is stored in."""
    name = np.dtype(dtype).name
    return np.maximum(np.abs(exact) * ROUNDOFF[name], _SMALLEST[name] / 2)


def check(got: Array, exact: Array, bound: Array, use: float = 0.02) -> None:
    """Every element within its bound, and some element near enough (`use`) that the bound is not idle."""
    error = np.abs(got.astype(np.float64) - exact)
    assert np.isfinite(got.astype(np.float64)).all()
    worst = float(np.max(error / bound))
    assert worst <= 1, f"{worst} of the bound at {np.unravel_index(np.argmax(error / bound), error.shape)}"
    assert worst >= use, f"the bound is {1 / max(worst, 1e-9):.0f} times what is needed"


def softmax(x: Array) -> tuple[Array, Array]:
    """Exact softmax of the rows, and the bound of exp(v - max) / sum in f32.

    The exponent d = v - max is rounded once and multiplied by log2(e) once, which moves exp(d) by 2|d|u; ex2.approx is
    within 2 ulp (4u); the sum of positive terms is as good as its terms plus a rounding a level; div.full is within
    2 ulp."""
    v = x.astype(np.float64)
    d = v - v.max(-1, keepdims=True)
    e = np.exp(d)
    y = e / e.sum(-1, keepdims=True)
    term = (2.5 * np.abs(d) + 5) * u32
    total = (term * y).sum(-1, keepdims=True) + (np.log2(x.shape[-1]) + 5) * u32
    return y, y * (term + total + 5 * u32) + 2.0**-149


def product(a: Array, b: Array, precision: float, chunk: int = 8) -> tuple[Array, Array]:
    """Exact product, and the bound of tensor-core accumulation: operands rounded to `precision`, truncating f32 sums
    of `chunk` products each, (K / chunk + chunk) of them."""
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    size = np.abs(a64) @ np.abs(b64)
    steps = a.shape[-1] / chunk + 2
    return a64 @ b64, size * (2 * precision + steps * 2.0**-23) + 2.0**-149


def numbers(seed: int, shape: Any, dtype: Any = np.float32, scale: float = 1.0) -> Array:
    """Normal numbers of a type."""
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(dtype)


def integers(seed: int, shape: Any, low: int, high: int, dtype: Any = np.int32) -> Array:
    """Whole numbers low <= n < high, as any type: products of small ones are exact in every format."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


FLOATS = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
