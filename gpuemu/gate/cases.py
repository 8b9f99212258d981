"""Which cases a sweep tries: shapes (`gate/shapes.py`), times dtype, distribution, target and launch option.

A case's seed is a hash of run seed, op, shape, dtype, distribution, target and option, so adding an op or a dim changes
no other case. Its low bit chooses the layout (dense or padded rows) where an argument allows both; the next ones choose
the poison.

`quick` keeps of these cases a pairwise cover (`gate/covering.py`): no size of a dim, no dtype, distribution, target or
option is dropped, nor any pair of them; about a third of the cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gpuemu.gate.bits import seed_of
from gpuemu.gate.covering import pairwise
from gpuemu.gate.declare import Op
from gpuemu.gate.shapes import shapes_of
from gpuemu.gate.values import DISTRIBUTIONS


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to run. `index` is its place in the sweep; `seed` is 64 bits, shown as 16 hexadecimal digits.

    `fmad`: as in `gpuemu.run`; no part of the seed, so that the inputs are the same in every mode. What has its default
    is not written into replays, whose ids are hashes of this record.
    """

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
    fmad: str | None = None

    @property
    def seed_text(self) -> str:
        return f"{self.seed:016x}"

    @property
    def padded(self) -> bool:
        """Whether arguments with one layout besides dense have that one."""
        return bool(self.seed & 1)

    def label(self) -> str:
        """One line for people: op, sizes, dtype, distribution, target, options, contraction where it was chosen."""
        sizes = " ".join(f"{k}={v}" for k, v in self.dims.items())
        option = "".join(f" {k}={v}" for k, v in self.option.items())
        fmad = f" fmad={self.fmad}" if self.fmad is not None else ""
        return f"{self.op} {sizes} {self.dtype} {self.distribution} {self.target}{option}{fmad}"


def quick_subset(cases: list[Case]) -> list[Case]:
    """A pairwise cover of one op's cases: each pair of two dims' sizes, size and dtype, dtype and distribution, ...
    that occurs in `cases` occurs in it. Indices are numbered anew by the caller."""
    rows = [
        {**{f"dim {k}": v for k, v in c.dims.items()}, "dtype": c.dtype, "distribution": c.distribution,
         "target": c.target, **{f"option {k}": v for k, v in c.option.items()}}
        for c in cases
    ]  # fmt: skip
    return [cases[i] for i in pairwise(rows)]


def enumerate_cases(
    ops: Sequence[Op],
    *,
    seed: int,
    targets: Sequence[str],
    device: str | None = None,
    quick: bool = False,
    distributions: Sequence[str] = DISTRIBUTIONS,
    dtypes: Sequence[str] | None = None,
    fmad: str | None = None,
) -> list[Case]:
    """All cases of a sweep, in the order of its report: op, shape, dtype, distribution, target, option.

    The exact distribution belongs to linear ops only. Raises InvalidInput for an op whose conditions leave no case.
    """
    cases: list[Case] = []
    for op in ops:
        own: list[Case] = []
        for shape in shapes_of(op):
            for dtype in op.dtypes:
                if dtypes is not None and dtype not in dtypes:
                    continue
                for distribution in distributions:
                    if distribution == "exact" and op.linear is None:
                        continue
                    for target in op.targets or targets:
                        for option in op.options:
                            if not op.holds(shape, option):
                                continue
                            parts = [f"{k}={v}" for k, v in [*sorted(shape.items()), *sorted(option.items())]]
                            seed_own = seed_of("case", seed, op.name, *parts, dtype, distribution, target)
                            own.append(
                                Case(
                                    index=0, op=op.name, file=op.file, dims=shape, dtype=dtype,
                                    distribution=distribution, target=target, device=device, option=option,
                                    seed=seed_own, fmad=fmad,
                                )
                            )  # fmt: skip
        chosen = quick_subset(own) if quick else own
        cases += [msgspec.structs.replace(c, index=len(cases) + i) for i, c in enumerate(chosen)]
    return cases
