"""Input values: three distributions, aware of the format and of what the op's contract covers.

regular       a bell with standard deviation 1: what a random test tries.
boundary      three of four elements are values where formats change their behaviour: +-0, smallest subnormal, around
              the smallest normal, 1 and its neighbours, powers of two, small integers, and in every other row the
              largest magnitude allowed.
adversarial   every row (of the last axis) follows a pattern that breaks wrong kernels: all values far below zero (a
              leaked 0 becomes the maximum), one large value at the end, a maximum that rises all along the row, a
              large offset with a small spread, cancellation, mixed magnitudes, exact small integers, all equal, all
              zero; with -inf, inf, NaN only where the argument says that its contract covers them.

All values are exact in the format (integer steps from random bits, no libm), so the FP64 reference sees what the kernel
sees, and the bytes are the same on every CPU. `padding` is what the gaps of a padded buffer hold: NaN in adversarial
cases, a large finite value otherwise (a maximum ignores NaN, a sum does not).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.bits import Bits
from gpuemu.gate.declare import Input
from gpuemu.gate.dtypes import F64, FloatFormat, numpy_dtype, quantise

DISTRIBUTIONS = ("regular", "boundary", "adversarial")
_ROW_OF_VECTOR = 64
"""A one-axis array is cut into rows of this length, so that it too meets several patterns."""


def floats(argument: Input, shape: tuple[int, ...], form: FloatFormat, distribution: str, bits: Bits) -> F64:
    """Values for one floating-point input, float64 of `shape`, each exact in `form`.

    `distribution` is one of DISTRIBUTIONS.
    """
    top = form.largest if argument.largest is None else min(float(argument.largest), form.largest)
    count = int(np.prod(shape, dtype=np.int64))
    if distribution == "regular":
        values = bits.bell(count) * min(1.0, top / 4)
    else:
        row = max(shape[-1], 1) if len(shape) > 1 else _ROW_OF_VECTOR
        if distribution == "boundary":
            values = _boundary(count, row, form, top, bits)
        else:
            values = _adversarial(count, row, form, top, argument.nonfinite, bits)
    if argument.positive:
        values = np.abs(values)
    with np.errstate(invalid="ignore"):
        clipped = np.where(np.isfinite(values), np.clip(values, -top, top), values)
    return quantise(clipped, form).reshape(shape)


def integers(argument: Input, shape: tuple[int, ...], dims: Mapping[str, int], bits: Bits) -> NDArray[Any]:
    """Values in [low, high) for an integer input; an end may be a dim's name."""
    low, high = (dims[e] if isinstance(e, str) else e for e in (argument.low, argument.high))
    count = int(np.prod(shape, dtype=np.int64))
    return (bits.below(max(high - low, 1), count) + low).astype(numpy_dtype(argument.dtype or "int32")).reshape(shape)


def padding(form: FloatFormat, distribution: str) -> float:
    """What lies between the rows of a padded input."""
    return float("nan") if distribution == "adversarial" else float(quantise(np.array(form.largest / 2), form))


def _boundary(count: int, row: int, form: FloatFormat, top: float, bits: Bits) -> F64:
    ulp = 2.0 ** (1 - form.precision)
    magnitudes = [
        0.0, form.smallest, 3 * form.smallest, form.smallest_normal - form.smallest, form.smallest_normal,
        1.0 - ulp / 2, 1.0, 1.0 + ulp, 1.5, 2.0 - ulp, top, quantise(np.array(top * (1 - ulp)), form).item(),
        *(2.0**k for k in (-14, -8, -3, -2, -1, 1, 2, 3, 4)), 3.0, 5.0, 7.0, 10.0,
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


def _adversarial(count: int, row: int, form: FloatFormat, top: float, nonfinite: tuple[str, ...], bits: Bits) -> F64:
    rows = -(-count // row)
    bell = bits.bell(rows * row).reshape(rows, row)
    coin = bits.below(1 << 16, rows * row).reshape(rows, row)
    patterns = _patterns(form, min(top, 2.0 ** (form.emax // 2)), nonfinite)
    order = int(bits.below(len(patterns), 1)[0])
    out = np.empty((rows, row))
    for i in range(rows):
        out[i] = patterns[(order + i) % len(patterns)](bell[i], coin[i])
    return out.reshape(-1)[:count]


def _patterns(
    form: FloatFormat, top: float, nonfinite: tuple[str, ...]
) -> list[Callable[[F64, NDArray[np.int64]], F64]]:
    """The patterns of a row: each maps (bell, 16 random bits per element) to values."""
    offset = 2.0 ** (form.precision // 2 + 1)

    def last(large: float, rest: float) -> Callable[[F64, NDArray[np.int64]], F64]:
        def pattern(bell: F64, coin: NDArray[np.int64]) -> F64:
            out = rest + bell / 4
            out[-1] = large
            return out

        return pattern

    def ramp(sign: float) -> Callable[[F64, NDArray[np.int64]], F64]:
        return lambda bell, coin: sign * (np.arange(bell.size) * (16.0 / bell.size) - 8.0) + bell / 64

    def cancel(bell: F64, coin: NDArray[np.int64]) -> F64:
        big = np.repeat(bell[::2], 2)[: bell.size] * min(64.0, top / 4)
        out = big * np.where(np.arange(bell.size) % 2 == 0, 1.0, -1.0)
        out[-1] = 0.015625
        return out

    def mixed(bell: F64, coin: NDArray[np.int64]) -> F64:
        return np.ldexp(bell, (coin % 25 - 12).astype(np.int32))

    def sprinkle(value: float, one_in: int) -> Callable[[F64, NDArray[np.int64]], F64]:
        return lambda bell, coin: np.where(coin % one_in == 0, value, bell)

    def only_last(bell: F64, coin: NDArray[np.int64]) -> F64:
        out = np.full(bell.size, -np.inf)
        out[-1] = bell[-1]
        return out

    patterns: list[Callable[[F64, NDArray[np.int64]], F64]] = [
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
    ]
    if "-inf" in nonfinite:
        patterns += [sprinkle(-np.inf, 2), only_last, lambda bell, coin: np.full(bell.size, -np.inf)]
    if "inf" in nonfinite:
        patterns.append(sprinkle(np.inf, 64))
    if "nan" in nonfinite:
        patterns.append(sprinkle(np.nan, 64))
    return patterns
