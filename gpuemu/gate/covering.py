"""Pairwise covering: the few rows of a table that together show every pair of values that the whole table shows.

Most faults of software need one or two particular settings together (Kuhn, Wallace, Gallo, "Software fault interactions
and implications for software testing", IEEE TSE 30(6), 2004); a cover keeps each value, and each pair of values of two
columns, at least once. Greedy: the row with most pairs not yet seen, the first of equals, so that a cover is always
the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np


def pairwise(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Indices of a covering subset of `rows`, ascending. Every row has the same keys; values need only a `repr`.

    With one column, every value once; with none, the first row.
    """
    if not rows:
        return []
    names = list(rows[0])
    groups: list[tuple[str, ...]] = [*combinations(names, 2)] or [(n,) for n in names]
    if not groups:
        return [0]
    columns: list[np.ndarray[Any, np.dtype[np.bool_]]] = []
    text = {n: [repr(row[n]) for row in rows] for n in names}
    for group in groups:
        keys = list(zip(*(text[n] for n in group), strict=True))
        number = {k: i for i, k in enumerate(dict.fromkeys(keys))}
        shown = np.zeros((len(rows), len(number)), np.bool_)
        shown[np.arange(len(rows)), [number[k] for k in keys]] = True
        columns.append(shown)
    table = np.concatenate(columns, axis=1)
    missing = np.ones(table.shape[1], np.bool_)
    chosen: list[int] = []
    while missing.any():
        best = int(np.argmax(table[:, missing].sum(axis=1)))
        chosen.append(best)
        missing &= ~table[best]
    return sorted(chosen)
