"""Values of integer inputs, by what they are for (`Input.kind`) and by distribution.

any          regular: uniform in [low, high); boundary: the ends and their neighbours; adversarial: each row all the
             same, or only the ends, or a run from one end
duplicates   few distinct values, so that most occur several times (a scatter without atomics loses some)
sorted       as "duplicates", ascending along the last axis
unique       different along the last axis; in an array of more axes different over all of it where the range allows,
             as a table of pages is
offsets      cumulative lengths along the last axis: first 0, last `high`, ascending; boundary and adversarial cases
             have empty segments, one segment that holds everything, and segments of length 1
lengths      in [low, high], both ends included; boundary and adversarial cases have the ends
flags        0 or 1; adversarial: rows of only 0 and of only 1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuemu.gate.bits import Bits
from gpuemu.gate.declare import Input
from gpuemu.gate.dims import size_of_axis
from gpuemu.gate.dtypes import numpy_dtype
from ptx.errors import InvalidInput

I64 = NDArray[np.int64]
_SMALL = 8
"""Largest magnitude of integers whose range the op does not state, in the exact mode."""


def integers(
    argument: Input,
    shape: tuple[int, ...],
    dims: Mapping[str, int],
    bits: Bits,
    distribution: str = "regular",
    dtype: str | None = None,
) -> NDArray[Any]:
    """Values for one integer input of `shape` and `dtype` (default: the argument's, else int32).

    The range is [low, high); ends may be expressions of dims. Without ends: 0 and 1 for a fixed dtype, all of the
    dtype's range for a swept one (small numbers in the exact mode). Raises InvalidInput for a range that
    cannot fill a "unique" array.
    """
    fixed = argument.dtype if isinstance(argument.dtype, str) else None
    form = numpy_dtype(dtype or fixed or "int32")
    low, high = (size_of_axis(e, dims) if isinstance(e, str) else e for e in (argument.low, argument.high))
    if low is None and high is None and argument.dtype is None and form.kind in "iu":
        info = np.iinfo(form)
        low, high = int(info.min), int(info.max) + 1
        if distribution == "exact":
            low, high = max(low, -_SMALL), _SMALL + 1
    low, high = 0 if low is None else low, 2 if high is None else high
    count = int(np.prod(shape, dtype=np.int64))
    row = max(shape[-1], 1) if shape else 1
    kind = argument.kind or "any"
    if kind == "any":
        values = _any(count, row, low, max(high - low, 1), distribution, bits)
    elif kind in ("duplicates", "sorted"):
        few = np.array([low + int(v) for v in bits.below(max(high - low, 1), max(2, min(5, count // 4 + 1)))])
        values = few[bits.below(len(few), count)]
        if kind == "sorted":
            values = np.sort(values.reshape(-1, row), axis=1).reshape(-1) if count else values
    elif kind == "unique":
        values = _unique(count, row, low, high, bits)
    elif kind == "offsets":
        rows = count // row
        values = np.concatenate(
            [_offsets(row, high, distribution, bits) for _ in range(rows)] or [np.zeros(0, np.int64)]
        )
    elif kind == "lengths":
        values = low + bits.below(max(high - low + 1, 1), count)
        if distribution in ("boundary", "adversarial"):
            ends = np.where(bits.below(2, count) == 1, high, low)
            values = np.where(bits.below(4, count) < 3, ends, values)
    else:  # flags
        values = bits.below(2, count)
        if distribution == "adversarial":
            whole = np.repeat(bits.below(3, -(-count // row)), row)[:count]
            values = np.where(whole == 0, 0, np.where(whole == 1, 1, values))
    return np.asarray(values).astype(np.int64).astype(form).reshape(shape)


def _any(count: int, row: int, low: int, width: int, distribution: str, bits: Bits) -> I64:
    uniform = low + _wide(bits, width, count)
    if distribution == "boundary":
        edges = np.array(sorted({e for e in (0, 1, width // 2, width - 2, width - 1) if 0 <= e < width}), dtype=object)
        chosen = np.array([_signed(low + int(e)) for e in edges[bits.below(len(edges), count)]], dtype=np.int64)
        return np.where(bits.below(4, count) < 3, chosen, uniform)
    if distribution == "adversarial" and count:
        rows = -(-count // row)
        first = uniform[:rows].repeat(row)[:count] if count >= rows else uniform
        place = np.arange(count) % row
        pattern = np.repeat((np.arange(rows) + int(bits.below(4, 1)[0])) % 4, row)[:count]
        ends = np.where(place % 2 == 0, low, _signed(low + width - 1))
        run = low + np.minimum(place, min(width - 1, 1 << 62))
        return np.select([pattern == 0, pattern == 1, pattern == 2], [first, ends, run], uniform)
    return uniform


def _signed(value: int) -> int:
    """The 64-bit integer with the same bits, so that unsigned ones pass through int64 arrays."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _wide(bits: Bits, width: int, count: int) -> I64:
    """Uniform in [0, width), also beyond 32 bits."""
    if width <= 1 << 32:
        return bits.below(width, count)
    words = bits.words(2 * count).astype(np.uint64)
    whole = (words[0::2] << np.uint64(32)) | words[1::2]
    return (whole % np.uint64(min(width, (1 << 64) - 1))).astype(np.int64)


def _unique(count: int, row: int, low: int, high: int, bits: Bits) -> I64:
    width = high - low
    if row > width:
        raise InvalidInput(f"{row} different values do not exist in a range of {width}")
    if count <= width:
        return low + np.argsort(bits.words(width), kind="stable")[:count]
    rows = count // row
    return low + np.concatenate([np.argsort(bits.words(width), kind="stable")[:row] for _ in range(rows)])


def _offsets(length: int, total: int, distribution: str, bits: Bits) -> I64:
    """`length` cumulative offsets from 0 to `total`."""
    if length == 1:
        return np.array([0])
    inner = np.sort(bits.below(total + 1, max(length - 2, 0)))
    if distribution in ("boundary", "adversarial") and inner.size:
        pattern = int(bits.below(4, 1)[0])
        if pattern == 0:
            inner[:] = 0  # everything in the last segment
        elif pattern == 1:
            inner[:] = total  # everything in the first
        elif pattern == 2:
            inner[: (inner.size + 1) // 2] = inner[0]  # empty ones in the middle
        else:
            inner = np.minimum(np.arange(1, inner.size + 1), total)  # of length 1
    return np.concatenate([[0], inner, [total]])
