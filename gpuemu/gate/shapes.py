"""Which shapes of an op are tried: those it lists, else a cover of its candidates.

Not the full product (it explodes) but a cover: every candidate of every dim that the op's conditions and its memory
bound allow appears, candidates of different dims are paired by coprime strides, and the first and the last shape are
the all-smallest and the all-largest. About `limit` shapes, more only where the candidates of a dim need them; in a
fixed order that does not depend on the seed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from gpuemu.gate.declare import Input, Op, Output
from gpuemu.gate.dims import axes_of, size_of_axis
from gpuemu.gate.dtypes import numpy_dtype
from ptx.errors import InvalidInput

SHAPE_LIMIT = 16
_SEARCHED = 50_000
"""Shapes looked at to find one that shows a candidate which the strides missed."""

Shape = dict[str, int]


def shapes_of(op: Op, limit: int = SHAPE_LIMIT) -> list[Shape]:
    """The shapes tried for an op. Raises InvalidInput when the op's conditions leave none."""
    if op.shapes is not None:
        kept = [dict(s) for s in op.shapes if allowed(op, s)]
    elif not op.dims:
        kept = [{}] if allowed(op, {}) else []
    else:
        names = sorted(op.dims, key=lambda n: -len(op.dims[n]))
        ordered = {n: sorted(op.dims[n]) for n in names}
        longest = max(len(v) for v in ordered.values())
        smallest = {n: ordered[n][0] for n in op.dims}
        largest = {n: ordered[n][-1] for n in op.dims}
        tried: list[Shape] = []
        for step in range(4 * longest):
            turn, place = divmod(step, longest)
            # The first dim walks through its candidates; each other one walks with another stride and start.
            shape = {n: ordered[n][(place * (1 + 2 * i) + i + turn) % len(ordered[n])] for i, n in enumerate(names)}
            shape[names[0]] = ordered[names[0]][place]
            tried.append({n: shape[n] for n in op.dims})
        ends = [s for s in (smallest, largest) if allowed(op, s)]
        cover = _cover([s for s in tried if allowed(op, s)], op, limit - 2)
        kept = _unique([*ends[:1], *cover, *ends[1:]])
        kept = _with_missing(kept, op, ordered)
    if not kept:
        raise InvalidInput(f"op '{op.name}': its condition leaves no shape to try")
    return kept


def allowed(op: Op, shape: Shape) -> bool:
    """Whether the op's conditions and its memory bound allow a shape."""
    return op.holds(shape) and (op.memory is None or bytes_of(op, shape) <= op.memory)


def bytes_of(op: Op, shape: Shape) -> int:
    """Bytes of all arguments together, with the largest of the op's dtypes."""
    dtype = max(op.dtypes, key=lambda d: numpy_dtype(d).itemsize)
    total = 0
    arguments: list[Input | Output] = [*op.inputs.values(), *op.outputs.values()]
    for argument in arguments:
        if not (isinstance(argument, Output) and argument.inplace):
            size = numpy_dtype(op.dtype_of(argument, dtype, op.options[0])).itemsize
            total += size * math.prod(size_of_axis(a, shape) for a in axes_of(argument.shape))
    return total


def _cover(tried: Sequence[Shape], op: Op, limit: int) -> list[Shape]:
    """The fewest leading shapes that show each candidate once, then more up to eight; at most `limit` or as many."""
    missing = {(n, v) for n, sizes in op.dims.items() for v in sizes}
    chosen: list[Shape] = []
    spare: list[Shape] = []
    for shape in _unique(tried):
        new = missing & set(shape.items())
        (chosen if new else spare).append(shape)
        missing -= new
    return [*chosen, *spare[: max(0, min(8, limit) - len(chosen))]]


def _with_missing(kept: list[Shape], op: Op, ordered: dict[str, list[int]]) -> list[Shape]:
    """`kept` and, for each candidate that no shape of it shows, one that does, where any is allowed."""
    shown = {item for shape in kept for item in shape.items()}
    for dim, sizes in op.dims.items():
        for size in sizes:
            if (dim, size) in shown:
                continue
            others = [n for n in op.dims if n != dim]
            choices = [_middle_first(ordered[n]) for n in others]
            for values in itertools.islice(itertools.product(*choices), _SEARCHED):
                found = dict(zip(others, values, strict=True)) | {dim: size}
                if allowed(op, found):
                    kept = [*kept, {n: found[n] for n in op.dims}]
                    shown |= set(found.items())
                    break
    return kept


def _middle_first(sizes: Sequence[int]) -> list[int]:
    """Sizes from the middle outwards: small enough to be cheap, large enough to be no special case."""
    middle = len(sizes) // 2
    return [sizes[i] for i in sorted(range(len(sizes)), key=lambda i: abs(i - middle))]


def _unique(shapes: Iterable[Shape]) -> list[Shape]:
    return [dict(s) for s in dict.fromkeys(tuple(s.items()) for s in shapes)]
