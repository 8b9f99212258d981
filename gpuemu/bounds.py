"""Error models: from the FP64 run of an op to how far a correct kernel's result may lie from it, element by element.

A model gives the error *before* the result is rounded to the output's format; the judge adds that half ulp itself. It
is a bound, derived from the arithmetic that the hardware does and from the order-free theory of summation, with no
constant fitted to any kernel. u = 2**-24 is the unit roundoff of binary32, in which kernels compute; half-precision
inputs are exact in it.

Pieces, with their sources:

summation     |error| <= depth * u * sum|terms| (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed.,
              4.2): depth = n-1 additions in the worst order, less for a tree (`tree_depth`).
tensor core   one block adds L products and the accumulator after truncating each to 2**(e-F), where 2**e <= the largest
              of them (subnormal operands counted as the smallest normal), then truncates to binary32: (L+1) * 2**-F +
              2**-23 of sum|a||b| a block. L and F by architecture
              (Fasi, Higham, Mikaitis, Pranesh 2021; Khattak and Mikaitis, arXiv 2512.07004): see `TENSOR_CORES`.
tf32          inputs lose all but 11 significand bits: at most 2**-10 relative each when the hardware truncates them
              (2**-11 when they were rounded first; the bound allows both).
exact sums    where all inputs are integers (exact in the multiplier's format) and sum|a||b| <= 2**22, every partial sum
              in any order is exact, in every model above: the bound is 0, any difference at all is a bug.
ex2.approx    2 ulp over the full range, results below 2**-126 may be flushed (PTX ISA, ex2).
div.full      2 ulp (PTX ISA, div).
exp(z)        computed as ex2(z * log2 e): the argument carries relative error 2u (the rounded constant, the product)
              besides that of z itself, and an absolute error d of the exponent is a relative error d of the result.

A kernel that rounds an intermediate to a narrow format makes more error than these bounds allow, and that is meant to
be seen. State it (`precision=`) where it is intended: the verdict shows the mode.

An own model is any function `(Exact) -> array` or `{output: array}`, broadcastable to the outputs. Infinity or NaN in a
bound means "not judged here"; an output with no judged element is not called checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.dtypes import FORMATS

F64 = NDArray[np.float64]
U32 = 2.0**-24
TINY32 = 2.0**-126
LEAST32 = 2.0**-149


@dataclass(frozen=True, slots=True)
class Exact:
    """The FP64 run of one case: inputs as the kernel got them, outputs of the reference, and what the case was.

    `device`: the sm_XX whose arithmetic runs.
    """

    inputs: Mapping[str, F64]
    outputs: Mapping[str, F64]
    dims: Mapping[str, int]
    dtype: str
    device: str


Bound = F64 | float | Mapping[str, F64 | float]


@dataclass(frozen=True, slots=True)
class Model:
    """A ready error model: `evaluate` gives the bound, `statement` says its terms and precision mode in words."""

    evaluate: Callable[[Exact], Bound]
    says: str
    precision: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, exact: Exact) -> Bound:
        return self.evaluate(exact)

    def statement(self, dtype: str) -> str:
        mode = self.precision.get(dtype)
        return f"{self.says}, {mode} products" if mode else self.says


def statement_of(bound: Callable[..., object], dtype: str) -> str:
    """The words that a verdict shows for an error model, also for an author's own function."""
    return bound.statement(dtype) if isinstance(bound, Model) else f"author's model '{getattr(bound, '__name__', '?')}'"


def half_ulp(values: F64, dtype: str) -> F64:
    """Half the spacing of `dtype` at |values|: the error of one rounding to nearest (finite values)."""
    from gpuemu.gate.dtypes import quantum

    return quantum(np.abs(values), FORMATS[dtype]) / 2


def tree_depth(n: int) -> int:
    """Additions that one term passes through in a warp-level reduction of n terms (`tl.sum` over one tile).

    A thread adds its own n/32 terms (a vectorised layout gives up to 4 more to some threads), then 5 shuffles combine
    the lanes of a warp and at most 5 more the (up to 32) warps of a CTA. Not valid for a sum carried over a loop: add
    one for each iteration.
    """
    return -(-n // 32) + 4 + 10


TENSOR_CORES: dict[int, tuple[int, int]] = {70: (8, 23), 75: (16, 24), 80: (16, 24), 90: (32, 25)}
"""From this sm on: (bytes of an operand row in one block, F). L = bytes / element size."""


def tensor_core(device: str, dtype: str) -> tuple[int, int]:
    """(L, F) of the arithmetic of `device` for inputs of `dtype` (float32 stands for tf32)."""
    number = int("".join(c for c in device if c.isdigit()) or 0)
    row, width = TENSOR_CORES[max((k for k in TENSOR_CORES if k <= number), default=70)]
    return row // FORMATS[dtype].itemsize, width


def dot(a: str, b: str, *, precision: Mapping[str, str] | None = None, out: str | None = None) -> Model:
    """The product of inputs `a` [..., M, K] and `b` [..., K, N], accumulated in binary32.

    `precision`: how float32 products are made: {'float32': 'tf32'} (Triton's default) or 'ieee' (fma; the default
    here). `out`: the output that is this product (None = every output).
    """
    modes = dict(precision or {})

    def evaluate(exact: Exact) -> Bound:
        x, y = np.abs(exact.inputs[a]), np.abs(exact.inputs[b])
        with np.errstate(invalid="ignore", over="ignore"):
            size = x @ y
        depth = x.shape[-1]
        mode = modes.get(exact.dtype, "ieee" if exact.dtype == "float32" else "tensor core")
        if mode == "ieee":
            bound = (depth + 1) * U32 * size * (1 + depth * U32) + depth * LEAST32
            whole = 24
        else:
            length, width = tensor_core(exact.device, exact.dtype)
            blocks = -(-depth // length)
            share = blocks * ((length + 1) * 2.0**-width + 2.0**-23)
            # A subnormal operand counts with the exponent of the smallest normal number.
            least = FORMATS[exact.dtype].smallest_normal
            with np.errstate(invalid="ignore", over="ignore"):
                aligned = np.where(x > 0, np.maximum(x, least), x) @ np.where(y > 0, np.maximum(y, least), y)
            bound = share * (1 + share) * aligned + 2 * blocks * (length + 1) * LEAST32
            whole = FORMATS[exact.dtype].precision
            if mode == "tf32":
                # Subnormal inputs lose more than that, or are flushed.
                flushed = depth * TINY32 * (x.max(initial=0.0) + y.max(initial=0.0))
                bound = bound + (2.0**-9 + 2.0**-20) * size + flushed
                whole = 11
        integral = _integral(x, whole) and _integral(y, whole)
        bound = np.where(size <= 2.0**22, 0.0, bound) if integral else bound
        return {out: bound} if out else bound

    return Model(evaluate, f"sum of {a}*{b} in binary32", modes)


def _integral(values: F64, precision: int) -> bool:
    return bool(np.all(np.isfinite(values)) and np.all(values == np.rint(values)) and values.max() <= 2.0**precision)


def softmax(x: str, *, axis: int = -1, depth: Callable[[int], int] = tree_depth) -> Model:
    """exp(x - max) / sum over `axis`, in binary32 with ex2.approx and an approximate (or better) division.

    With z = x - max (relative error u, so 3u with log2 e) each exponential has relative error 3u|z| + 4u (2 ulp of
    ex2.approx are at most 4u); the denominator has the average of those, weighted by the exponentials, plus the sum's
    own; the division adds 4u. Exponentials below 2**-126 may be flushed.
    """

    def evaluate(exact: Exact) -> Bound:
        values = exact.inputs[x]
        n = values.shape[axis]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            z = values - values.max(axis=axis, keepdims=True)
            e = np.exp(z)
            size = np.where(e > 0, np.abs(z), 0.0)
            total = e.sum(axis=axis, keepdims=True)
            average = (e * size).sum(axis=axis, keepdims=True) / total
            share = U32 * (3 * size + 3 * average + 4 + 4 + 4 + depth(n))
            bound: F64 = share * (1 + share) * (e / total) + (1 + n * (e / total)) * TINY32 / total
            return bound

    return Model(evaluate, "softmax in binary32 (ex2.approx 2 ulp, division 2 ulp)")


def elementwise(ulps: float, *, of: str | None = None) -> Model:
    """A result that is within `ulps` ulp of binary32 of the exact one (1 ulp <= 2u relative)."""

    def evaluate(exact: Exact) -> Bound:
        bounds = {n: 2 * ulps * U32 * np.abs(v) + LEAST32 for n, v in exact.outputs.items() if of in (None, n)}
        return dict(bounds)

    return Model(evaluate, f"{ulps:g} ulp of binary32")


def total(terms: Callable[..., F64], *, depth: int | Callable[[int], int], axis: int = -1) -> Model:
    """A sum of `terms(**inputs)` over `axis` in binary32, each term with one rounding of its own."""

    def evaluate(exact: Exact) -> Bound:
        values = np.abs(terms(**exact.inputs))
        n = values.shape[axis]
        steps = (depth(n) if callable(depth) else depth) + 1
        bound: F64 = values.sum(axis=axis) * (steps * U32 * (1 + steps * U32)) + n * LEAST32
        return bound

    return Model(evaluate, "sum in binary32")


def exact() -> Model:
    """No error but the rounding to the output's format: copies, maxima, one correctly rounded operation."""
    return Model(lambda run: 0.0, "correctly rounded")
