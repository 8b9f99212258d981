"""Running error analysis: an exact value carried together with a bound on what binary32 arithmetic makes of it.

A schema's error model is the op's own formula, evaluated once in this arithmetic (Wilkinson; Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd ed., 3.3). Each operation passes on the errors of its operands to first order,
with their product, and adds its own rounding, u = 2**-24 of the result and half the smallest subnormal; the constants
of approximate functions are those in the package's docstring:

    + - *       u           exp     3u|z| + 5u, or 0 below 2**-126       sqrt, rsqrt   4u
    /           4u          log     2**-22 ln 2 max(|log2 v|, 1) + 3u|log v|

A kernel may order a sum as it likes and fuse products into sums: `sum` counts additions that one term passes through.
Where a value may leave the range of binary32 the error is infinite: nothing to judge there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuemu.bounds.model import F64, LARGEST32, LEAST32, TINY32, U32
from gpuemu.bounds.products import dot_bound
from gpuemu.bounds.sums import tree_depth
from gpuemu.gate.dtypes import FORMATS, quantum


@dataclass(frozen=True, slots=True)
class Running:
    """`value`: exact, float64; `error`: bound on |computed - value|, of the same shape."""

    value: F64
    error: F64

    def __add__(self, other: Running | float) -> Running:
        o = lift(other)
        return _rounded(self.value + o.value, self.error + o.error, U32)

    def __sub__(self, other: Running | float) -> Running:
        o = lift(other)
        return _rounded(self.value - o.value, self.error + o.error, U32)

    def __mul__(self, other: Running | float) -> Running:
        o = lift(other)
        passed = _times(self.error, np.abs(o.value) + o.error) + _times(o.error, np.abs(self.value))
        return _rounded(self.value * o.value, passed, U32)

    def __truediv__(self, other: Running | float) -> Running:
        o = lift(other)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.value / o.value
            least = np.abs(o.value) - o.error
            passed = (self.error + np.abs(value) * o.error) / np.where(least > 0, least, np.nan)
            passed = np.where((self.error == 0) & (o.error == 0), 0.0, np.where(least > 0, passed, np.inf))
        return _rounded(value, passed, 4 * U32)

    def __neg__(self) -> Running:
        return Running(-self.value, self.error)

    def __getitem__(self, index: Any) -> Running:
        return Running(self.value[index], np.broadcast_to(self.error, self.value.shape)[index])

    @property
    def turned(self) -> Running:
        """The last two axes swapped."""
        return Running(np.swapaxes(self.value, -1, -2), np.swapaxes(self.error, -1, -2))

    def exp(self) -> Running:
        """exp as ex2.approx(z * log2 e)."""
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.exp(self.value)
            relative = np.expm1(self.error + 3 * U32 * np.abs(self.value) + 5 * U32)
            error = np.where(value == 0, 0.0, value * relative) + TINY32
        return Running(value, _in_range(value, error))

    def log(self) -> Running:
        """log as lg2.approx * ln 2."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(self.value)
            least = self.value - self.error
            passed = np.where(self.error == 0, 0.0, np.where(least > 0, self.error / least, np.inf))
            own = 2.0**-22 * np.log(2.0) * np.maximum(np.abs(value) / np.log(2.0), 1.0) + 3 * U32 * np.abs(value)
        return Running(value, passed + own)

    def sqrt(self) -> Running:
        """sqrt.approx, which may flush a subnormal operand."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.sqrt(self.value)
            passed = np.where(self.error == 0, 0.0, np.minimum(self.error / value, np.sqrt(self.error)))
            tiny = np.where(self.value - self.error < TINY32, np.sqrt(TINY32), 0.0)
        return _rounded(value, passed + np.where(self.value == 0, 0.0, tiny), 4 * U32)

    def rsqrt(self) -> Running:
        """1 / sqrt, by rsqrt.approx or a root and a division; evaluated at the worse end of the operand's interval."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = 1 / np.sqrt(self.value)
            least = self.value - self.error
            passed = np.where(least > 0, 1 / np.sqrt(np.where(least > 0, least, 1.0)) - value, np.inf)
        return _rounded(value, np.where(self.error == 0, 0.0, passed), 8 * U32)

    def sigmoid(self) -> Running:
        """1 / (1 + exp(-x)) in any of its forms: e / (1 + e) with e = exp(-|x|) has the same error, and where exp(-x)
        overflows the result is 0 instead of less than 2**-126."""
        e = Running(-np.abs(self.value), self.error).exp()
        s = Running(np.where(self.value >= 0, 1.0, e.value), np.where(self.value >= 0, 0.0, e.error)) / (e + 1.0)
        return Running(s.value, s.error + 2 * U32 * s.value + 4 * TINY32)

    def tanh(self) -> Running:
        """tanh through exponentials, by whatever formula: near zero its error is absolute, since 1 cancels."""
        t = (self * 2.0).sigmoid() * 2.0 - 1.0
        return Running(np.tanh(self.value), t.error + 6 * U32)

    def abs(self) -> Running:
        """The magnitude; exact."""
        return Running(np.abs(self.value), self.error)

    def sum(
        self,
        axis: int,
        *,
        keepdims: bool = False,
        depth: int | Callable[[int], int] = tree_depth,
        atomic: bool = False,
    ) -> Running:
        """A sum over one axis in any order in which a term passes through at most `depth` additions. `atomic`: perhaps
        by float32 atomics in global memory, which flush subnormal operands and results (PTX ISA, red, atom)."""
        n = self.value.shape[axis]
        steps = depth(n) if callable(depth) else depth
        error = np.broadcast_to(self.error, self.value.shape)
        size = (np.abs(self.value) + error).sum(axis=axis, keepdims=keepdims)
        own = size * (steps * U32 * (1 + 2 * steps * U32)) + n * (2 * TINY32 if atomic else LEAST32)
        value = self.value.sum(axis=axis, keepdims=keepdims)
        total = error.sum(axis=axis, keepdims=keepdims) + own
        return Running(value, np.where(size * (1 + 2.0**-20) < LARGEST32, total, np.inf))

    def mean(self, axis: int, *, keepdims: bool = False, depth: int | Callable[[int], int] = tree_depth) -> Running:
        """The sum divided by the length of the axis."""
        return self.sum(axis, keepdims=keepdims, depth=depth) / float(max(self.value.shape[axis], 1))

    def max(self, axis: int, *, keepdims: bool = False) -> Running:
        """The largest; exact but for the errors of what it compares."""
        error = np.broadcast_to(self.error, self.value.shape).max(axis=axis, keepdims=keepdims, initial=0.0)
        return Running(self.value.max(axis=axis, keepdims=keepdims, initial=-np.inf), error)

    def where(self, chosen: np.ndarray[Any, np.dtype[np.bool_]], other: float = 0.0) -> Running:
        """The value where `chosen` is True, the exact `other` elsewhere."""
        return Running(np.where(chosen, self.value, other), np.where(chosen, self.error, 0.0))

    def looser(self, *parts: Running, count: float = 4.0) -> Running:
        """As this, for formulas that round `count` times something as large as the parts together (terms multiplied
        out before they cancel)."""
        size = sum((np.abs(p.value) + p.error for p in parts), start=np.zeros(()))
        return Running(self.value, self.error + count * U32 * size)

    def narrowed(self, dtype: str) -> Running:
        """Rounded to a narrower format, as an operand of a tensor core is; float32 stays."""
        if dtype == "float32":
            return self
        with np.errstate(invalid="ignore"):
            reach = np.abs(self.value) + self.error
            form = FORMATS[dtype]
            half = quantum(np.where(np.isfinite(reach), np.minimum(reach, form.largest), 0.0), form) / 2
        return Running(self.value, np.where(reach <= form.largest, self.error + half, np.inf))

    def dot(self, other: Running, dtype: str, device: str, mode: str | None = None) -> Running:
        """The matrix product over the last axis and the one before the last, of operands in `dtype` (see products)."""
        a, b = np.abs(self.value), np.abs(other.value)
        with np.errstate(over="ignore", invalid="ignore"):
            passed = self.error @ (b + other.error) + a @ np.broadcast_to(other.error, b.shape)
            own = dot_bound(a + self.error, b + other.error, dtype, device, mode)
            return Running(self.value @ other.value, passed + own)


def lift(value: Running | F64 | float) -> Running:
    """An exact operand: an input, or a number that binary32 holds."""
    if isinstance(value, Running):
        return value
    array = np.asarray(value, np.float64)
    return Running(array, np.zeros(array.shape))


def constant(value: float) -> Running:
    """A number that has to be rounded to binary32, or that a kernel computes in it."""
    return Running(np.float64(value) * np.ones(()), np.abs(np.float64(value)) * U32 * np.ones(()))


def _times(error: F64, size: F64) -> F64:
    """Their product, 0 where no error meets an infinite size."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(error == 0, 0.0, error * size)


def _rounded(value: F64, passed: F64, share: float) -> Running:
    with np.errstate(invalid="ignore", over="ignore"):
        return Running(value, _in_range(value, passed + share * (np.abs(value) + passed) + LEAST32))


def _in_range(value: F64, error: F64) -> F64:
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(value) & (np.abs(value) + error >= LARGEST32), np.inf, error)
