"""The special-function unit's tables, prepared for fixed-point evaluation.

`coefficients.npz` (7 kB, package data) holds one array a function; a row is a segment, its columns are C0, C1, C2.

Provenance: rcp, rsqrt, sin, ex2 and lg2 are the tables of the G80 as read out by envytools (nvhw/sfu_tab.c, sfu.c,
Marcelina Koscielnicka 2015, MIT-style licence); an H200 has the same tables, unchanged. sqrt and tanh do not exist on
the G80 and were fitted to an H200's outputs (NVIDIA H200, sm_90, driver API 13.0, 2026), with exactly one fit in each
segment. The model was compared with that card on all 2**32 inputs of every f32 instruction; no difference is known.
Other chips were not measured, but the code that ptxas puts round the unit is the same from sm_75 to sm_120.

A segment's value, with r the argument bits below the segment index and S the truncating squarer of `unit.py`, is

    (C0 * 2**shift + C1 * r + C2 * factor * S(r) + constant) >> final shift

Here C0 * 2**shift + constant and C2 * factor are multiplied out once, as int64.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]


class Segments(NamedTuple):
    """Columns of one function's table: constant, linear and squared coefficient of each segment."""

    constant: Int64Array
    linear: Int64Array
    squared: Int64Array


# shift of C0, factor of the squared term, constant added before the final shift
SCALE = {
    "rcp": (13, 1, 0x47E7),
    "rsqrt": (14, 4, 0x7FFF),
    "ex2": (13, 1, 0x77E2),
    "lg2": (12, 2, 0x3345),
    "sin": (11, 1, 0),
    "tanh": (16, 1, 0),
}
SQRT_EVEN, SQRT_ODD = (15, 2, 0x7FFF), (14, 1, 0x3FFF)  # by the parity of the argument's exponent
TANH_INDEX_BITS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3], np.int64)
"""Mantissa bits in tanh's segment index, for the binades 2**-8 to 2**2."""
TANH_FIRST = np.concatenate([[0], np.cumsum(1 << TANH_INDEX_BITS)])[:-1].astype(np.int64)
"""tanh's first segment of each of those binades."""


def _prepare(name: str, rows: npt.NDArray[np.int32]) -> Segments:
    c = rows.astype(np.int64)
    if name == "sqrt":
        scale = np.array([SQRT_EVEN] * 64 + [SQRT_ODD] * 64, np.int64)
    else:
        scale = np.array([SCALE[name]] * len(c), np.int64)
    return Segments((c[:, 0] << scale[:, 0]) + scale[:, 2], c[:, 1].copy(), c[:, 2] * scale[:, 1])


def _load() -> dict[str, npt.NDArray[np.int32]]:
    with files(__package__).joinpath("coefficients.npz").open("rb") as f, np.load(f, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


RAW = _load()
"""Function -> int32 [segment, 3], as stored."""
TABLES = {name: _prepare(name, rows) for name, rows in RAW.items()}
"""Function -> columns prepared for the scalar functions."""
