"""Input values: four distributions, aware of the format, of what a value means, and of the op's contract.

regular       a bell with standard deviation 1: what a random test tries.
boundary      three of four elements are values where formats change their behaviour: +-0, smallest subnormal, around
              the smallest normal, 1 and its neighbours, powers of two, ties of a sum with 1, small integers, and in
              every other row the largest magnitude allowed.
adversarial   every row (of the last axis) follows a pattern that breaks wrong kernels: all values far below zero (a
              leaked 0 becomes the maximum), one large value at the end, a maximum that rises all along the row, a
              large offset with a small spread, cancellation, mixed magnitudes, exact small integers, all equal, all
              zero, few values with many ties, neighbours one ulp apart, one value far larger than the rest; with -inf
              (some, all but the last, all), inf, NaN only where the argument says that its contract covers them.
exact         small integers whose sums are exact in the format that accumulates, in any order: any difference at all
              is a bug. Only for ops that are linear (`Op.linear`); `whole_limit` says how large they may be.

What a value means (`Input.kind`): an upstream "gradient" has rows 0, 1, 2, ..., one-hot rows and rows of one number
each, never only ones; a "scale" is positive, with powers of two, 0.75 and 1.5, and extremes of 2**+-20.

All values are exact in the format (integer steps from random bits, no libm), so the FP64 reference sees what the kernel
sees, and the bytes are the same on every CPU. `padding` is what the gaps of a buffer hold: NaN in adversarial cases, a
large finite value otherwise (a maximum ignores NaN, a sum does not).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.bits import Bits
from gpuemu.gate.declare import Input
from gpuemu.gate.dtypes import F64, FloatFormat, quantise, quantum

DISTRIBUTIONS = ("regular", "boundary", "adversarial", "exact")
WHOLE = 8
"""Largest integer of the exact mode."""
_ROW_OF_VECTOR = 64
"""A one-axis array is cut into rows of this length, so that it too meets several patterns."""

Pattern = Callable[[F64, NDArray[np.int64]], F64]
"""Maps (bell, 16 random bits per element) of a row to its values."""


def floats(
    argument: Input, shape: tuple[int, ...], form: FloatFormat, distribution: str, bits: Bits, whole: int = WHOLE
) -> F64:
    """Values for one floating-point input, float64 of `shape`, each exact in `form`.

    `distribution` is one of DISTRIBUTIONS; `whole`: the largest integer of the exact mode.
    """
    top = form.largest if argument.largest is None else min(float(argument.largest), form.largest)
    if argument.within is not None:
        top = min(top, max(abs(end) for end in argument.within))
    count = int(np.prod(shape, dtype=np.int64))
    row = max(shape[-1], 1) if len(shape) > 1 else _ROW_OF_VECTOR
    if distribution == "exact":
        values = _exact(argument, count, int(min(whole, top, 2.0**form.precision)), bits)
    elif argument.kind == "scale":
        values = _scale(count, distribution, top, bits)
    elif distribution == "regular":
        values = bits.bell(count) * min(1.0, top / 4)
    elif distribution == "boundary":
        values = _boundary(count, row, form, top, bits)
    else:
        moderate = min(top, 2.0 ** (form.emax // 2))
        if argument.kind == "gradient":
            patterns = _gradients(form, moderate)
        else:
            patterns = _patterns(form, moderate, argument.nonfinite)
        values = _rows(count, row, patterns, bits)
    if argument.positive:
        values = np.abs(values)
    if argument.within is not None:
        values = _folded(values, argument.within, form)
    with np.errstate(invalid="ignore"):
        clipped = np.where(np.isfinite(values), np.clip(values, -top, top), values)
    return quantise(clipped, form).reshape(shape)


def whole_limit(terms: int, factors: int, form: FloatFormat) -> int:
    """The largest magnitude of the integers of the exact mode: a sum of `terms` products of `factors` of them stays
    below 2**22 (2**11 for 8-bit floats, whose tensor cores keep 13 bits; see bounds/products), at least 1."""
    room = 2.0**11 if form.itemsize == 1 else 2.0**22
    return max(1, min(WHOLE, int((room / max(terms, 1)) ** (1 / max(factors, 1)) + 1e-9)))


def padding(form: FloatFormat, distribution: str) -> float:
    """What lies between the rows of a padded input."""
    return float("nan") if distribution == "adversarial" else float(quantise(np.array(form.largest / 2), form))


def _exact(argument: Input, count: int, whole: int, bits: Bits) -> F64:
    if argument.kind == "scale":
        return np.ldexp(1.0, (bits.below(5, count) - 2).astype(np.int32))
    return (bits.below(2 * whole + 1, count) - whole).astype(np.float64)


def _scale(count: int, distribution: str, top: float, bits: Bits) -> F64:
    fraction = 1 + bits.below(256, count) / 256.0
    if distribution == "regular":
        return np.minimum(np.ldexp(fraction, (bits.below(5, count) - 2).astype(np.int32)), top)
    table = np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0])
    values = np.where(bits.below(4, count) < 3, table[bits.below(len(table), count)], fraction)
    if distribution == "adversarial":
        extreme = np.ldexp(fraction, np.where(bits.below(2, count) == 1, 20, -20).astype(np.int32))
        values = np.where(bits.below(3, count) == 0, extreme, values)
    return np.minimum(values, top)


def _folded(values: F64, within: tuple[float, float], form: FloatFormat) -> F64:
    """Values outside a domain brought into it: by their remainder, or to the end where the domain has no width."""
    low, high = within
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.abs(values) if low >= 0 else values
        width = high - low
        inner = low + np.fmod(np.abs(moved), width) if 0 < width < np.inf else np.clip(moved, low, high)
        rounded = quantise(np.where((moved < low) | (moved > high), inner, moved), form)
        step = quantum(np.where(np.isfinite(rounded), rounded, 0.0), form)
        return np.where(rounded > high, rounded - step, np.where(rounded < low, rounded + step, rounded))


def _boundary(count: int, row: int, form: FloatFormat, top: float, bits: Bits) -> F64:
    ulp = 2.0 ** (1 - form.precision)
    magnitudes = [
        0.0, form.smallest, 3 * form.smallest, form.smallest_normal - form.smallest, form.smallest_normal,
        1.0 - ulp / 2, 1.0, 1.0 + ulp, 1.5, 2.0 - ulp, top, quantise(np.array(top * (1 - ulp)), form).item(),
        *(2.0**k for k in (-14, -8, -3, -2, -1, 1, 2, 3, 4)), ulp / 2, 3.0, 5.0, 7.0, 10.0,
    ]  # fmt: skip
    table = np.array(sorted(m for m in magnitudes if m <= top))
    chosen = table[bits.below(len(table), count)]
    # A huge value hides every other one of its row (in a softmax, a sum): every other row has none.
    moderate = table[table <= 4.0]
    odd = (np.arange(count) // row + int(bits.below(2, 1)[0])) % 2 == 1
    chosen = np.where(odd, moderate[bits.below(len(moderate), count)], chosen)
    sign = np.where(bits.below(2, count) == 1, -1.0, 1.0)
    regular = bits.bell(count) * min(1.0, top / 4)
    return np.where(bits.below(4, count) == 0, regular, np.copysign(chosen, sign))


def _rows(count: int, row: int, patterns: list[Pattern], bits: Bits) -> F64:
    """Rows that follow the patterns in turn, from a random one on."""
    rows = -(-count // row)
    bell = bits.bell(rows * row).reshape(rows, row)
    coin = bits.below(1 << 16, rows * row).reshape(rows, row)
    order = int(bits.below(len(patterns), 1)[0])
    out = np.empty((rows, row))
    for i in range(rows):
        out[i] = patterns[(order + i) % len(patterns)](bell[i], coin[i])
    return out.reshape(-1)[:count]


def _gradients(form: FloatFormat, top: float) -> list[Pattern]:
    """Patterns of upstream gradients: never the same for all elements of an array."""
    whole = int(min(2.0**form.precision, top))

    def one_hot(bell: F64, coin: NDArray[np.int64]) -> F64:
        out = np.zeros(bell.size)
        out[int(coin[0]) % bell.size] = 1.0 + abs(bell[0])
        return out

    return [
        lambda bell, coin: (np.arange(bell.size) % whole).astype(np.float64),
        lambda bell, coin: bell,
        lambda bell, coin: np.full(bell.size, bell[0]),
        one_hot,
        lambda bell, coin: np.ldexp(bell, (coin % 17 - 8).astype(np.int32)),
        lambda bell, coin: np.where(np.arange(bell.size) % 2 == 0, 1.0, -1.0) * (1 + (coin[0] % 8)),
        lambda bell, coin: np.zeros(bell.size),
    ]


def _patterns(form: FloatFormat, top: float, nonfinite: tuple[str, ...]) -> list[Pattern]:
    """The patterns of a row of values."""
    offset = 2.0 ** (form.precision // 2 + 1)
    ulp = 2.0 ** (1 - form.precision)

    def last(large: float, rest: float) -> Pattern:
        def pattern(bell: F64, coin: NDArray[np.int64]) -> F64:
            out = rest + bell / 4
            out[-1] = large
            return out

        return pattern

    def ramp(sign: float) -> Pattern:
        return lambda bell, coin: sign * (np.arange(bell.size) * (16.0 / bell.size) - 8.0) + bell / 64

    def cancel(bell: F64, coin: NDArray[np.int64]) -> F64:
        big = np.repeat(bell[::2], 2)[: bell.size] * min(64.0, top / 4)
        out = big * np.where(np.arange(bell.size) % 2 == 0, 1.0, -1.0)
        out[-1] = 0.015625
        return out

    def mixed(bell: F64, coin: NDArray[np.int64]) -> F64:
        return np.ldexp(bell, (coin % 25 - 12).astype(np.int32))

    def sprinkle(value: float, one_in: int) -> Pattern:
        return lambda bell, coin: np.where(coin % one_in == 0, value, bell)

    def only_last(bell: F64, coin: NDArray[np.int64]) -> F64:
        out = np.full(bell.size, -np.inf)
        out[-1] = bell[-1]
        return out

    def ties(bell: F64, coin: NDArray[np.int64]) -> F64:
        return (coin % 3).astype(np.float64) / 2 - 1.0

    def neighbours(bell: F64, coin: NDArray[np.int64]) -> F64:
        return 1.0 + ulp * (coin % 3 - 1).astype(np.float64)

    def outlier(bell: F64, coin: NDArray[np.int64]) -> F64:
        out = bell / 16
        out[int(coin[0]) % bell.size] = min(top, 1024.0)
        return out

    patterns: list[Pattern] = [
        lambda bell, coin: -24.0 - 4 * np.abs(bell),
        last(10.0, -10.0),
        ramp(1.0),
        lambda bell, coin: offset + bell,
        cancel,
        mixed,
        lambda bell, coin: (coin % 17 - 8).astype(np.float64),
        lambda bell, coin: np.full(bell.size, bell[0]),
        lambda bell, coin: 24.0 + 4 * np.abs(bell),
        ramp(-1.0),
        lambda bell, coin: np.where(coin & 1, -0.0, 0.0),
        lambda bell, coin: -offset + bell,
        last(-10.0, 10.0),
        ties,
        neighbours,
        outlier,
    ]
    if "-inf" in nonfinite:
        patterns += [sprinkle(-np.inf, 2), only_last, lambda bell, coin: np.full(bell.size, -np.inf)]
    if "inf" in nonfinite:
        patterns.append(sprinkle(np.inf, 64))
    if "nan" in nonfinite:
        patterns.append(sprinkle(np.nan, 64))
    return patterns
