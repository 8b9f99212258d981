"""Which cases a sweep tries: shapes from candidates, times dtype, distribution, target and launch option.

Shapes: not the full product (it explodes) but a cover: every candidate of every dim appears, candidates of different
dims are paired by coprime strides, and the first and the last shape are the all-smallest and the all-largest. Per op at
most `limit` shapes, in a fixed order that does not depend on the seed.

A case's seed is a hash of run seed, op, shape, dtype, distribution, target and option, so adding an op or a dim changes
no other case. Its low bit chooses the layout (dense or padded rows) where an argument allows both.

`quick` keeps about a third of the shapes (the first, the last, and every third between) and drops nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gpuemu.gate.bits import seed_of
from gpuemu.gate.declare import Op
from gpuemu.gate.values import DISTRIBUTIONS
from ptx.errors import InvalidInput

SHAPE_LIMIT = 16


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to run. `index` is its place in the sweep; `seed` is 64 bits, shown as 16 hexadecimal digits."""

    index: int
    op: str
    file: str
    dims: dict[str, int]
    dtype: str
    distribution: str
    target: str
    device: str | None
    option: dict[str, Any]
    seed: int

    @property
    def seed_text(self) -> str:
        return f"{self.seed:016x}"

    @property
    def padded(self) -> bool:
        return bool(self.seed & 1)

    def label(self) -> str:
        """One line for people: op, sizes, dtype, distribution, target."""
        sizes = " ".join(f"{k}={v}" for k, v in self.dims.items())
        option = "".join(f" {k}={v}" for k, v in self.option.items())
        return f"{self.op} {sizes} {self.dtype} {self.distribution} {self.target}{option}"


def shapes_of(op: Op, limit: int = SHAPE_LIMIT) -> list[dict[str, int]]:
    """The shapes tried for an op: those it lists, else a cover of its candidates (see the module).

    Raises InvalidInput when the op's condition leaves none.
    """

    def holds(shape: dict[str, int]) -> bool:
        return op.where is None or bool(op.where(**shape))

    if op.shapes is not None:
        kept = [dict(s) for s in op.shapes if holds(dict(s))]
    else:
        names = sorted(op.dims, key=lambda n: -len(op.dims[n]))
        ordered = {n: sorted(op.dims[n]) for n in names}
        longest = max((len(v) for v in ordered.values()), default=1)
        smallest = {n: ordered[n][0] for n in op.dims}
        largest = {n: ordered[n][-1] for n in op.dims}
        tried: list[dict[str, int]] = []
        for step in range(4 * longest):
            turn, place = divmod(step, longest)
            # The first dim walks through its candidates; each other one walks with another stride and start.
            shape = {n: ordered[n][(place * (1 + 2 * i) + i + turn) % len(ordered[n])] for i, n in enumerate(names)}
            shape[names[0]] = ordered[names[0]][place]
            tried.append({n: shape[n] for n in op.dims})
        cover = _cover([s for s in tried if holds(s)], op, limit - 2)
        kept = _unique([s for s in (smallest, *cover, largest) if holds(s)])
    if not kept:
        raise InvalidInput(f"op '{op.name}': its condition leaves no shape to try")
    return kept


def _cover(tried: Sequence[dict[str, int]], op: Op, limit: int) -> list[dict[str, int]]:
    """The fewest leading shapes that show each candidate once, then more up to eight, at most `limit`."""
    missing = {(n, v) for n, sizes in op.dims.items() for v in sizes}
    chosen: list[dict[str, int]] = []
    spare: list[dict[str, int]] = []
    for shape in _unique(tried):
        new = missing & set(shape.items())
        (chosen if new else spare).append(shape)
        missing -= new
    chosen += spare[: max(0, 8 - len(chosen))]
    return chosen[:limit]


def _unique(shapes: Iterable[dict[str, int]]) -> list[dict[str, int]]:
    return [dict(s) for s in dict.fromkeys(tuple(s.items()) for s in shapes)]


def quick_subset(shapes: list[dict[str, int]]) -> list[dict[str, int]]:
    """The first, the last and every third shape between."""
    return _unique([*shapes[::3], shapes[-1]])


def enumerate_cases(
    ops: Sequence[Op],
    *,
    seed: int,
    targets: Sequence[str],
    device: str | None = None,
    quick: bool = False,
    distributions: Sequence[str] = DISTRIBUTIONS,
    dtypes: Sequence[str] | None = None,
) -> list[Case]:
    """All cases of a sweep, in the order of its report: op, shape, dtype, distribution, target, option."""
    cases: list[Case] = []
    for op in ops:
        shapes = shapes_of(op)
        for shape in quick_subset(shapes) if quick else shapes:
            for dtype in op.dtypes:
                if dtypes is not None and dtype not in dtypes:
                    continue
                for distribution in distributions:
                    for target in op.targets or targets:
                        for option in op.options:
                            parts = [f"{k}={v}" for k, v in [*sorted(shape.items()), *sorted(option.items())]]
                            own = seed_of("case", seed, op.name, *parts, dtype, distribution, target)
                            cases.append(
                                Case(
                                    index=len(cases), op=op.name, file=op.file, dims=shape, dtype=dtype,
                                    distribution=distribution, target=target, device=device, option=option, seed=own,
                                )
                            )  # fmt: skip
    return cases
