"""The benchmark's counting: what is identical, of one sign, opposite, and what says nothing."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("triton")

from benchmarks.delta_study import METRICS, Deltas, summary, table, verdict

REGISTERS = "launch__registers_per_thread"


def deltas(*pairs: tuple[float, ...]) -> dict[str, Deltas]:
    """Pairs whose every metric has these differences, on sm_80, sm_90 ..."""
    return {
        f"pair {i}": {m: {f"sm_{t}": x for t, x in zip((80, 90, 100), pair, strict=False)} for m in METRICS}
        for i, pair in enumerate(pairs)
    }


ROWS = [
    ([(3, 3, 3)], "holds: of the 1 pairs .* identical on all targets in 1, and has one sign in 1"),
    ([(3, 2, 3), (1, -1, 0)], "does not hold: of the 2 pairs .* in 0, and has one sign in 1"),
    ([(0, 0, 0), (2, 2, 2)], "holds: of the 1 pairs"),
    ([(0, 0, 0)], "nothing can be said"),
    ([(5,)], "nothing can be said"),
]  # fmt: skip


@pytest.mark.parametrize("pairs, words", ROWS)
def test_verdict(pairs: list[tuple[float, ...]], words: str) -> None:
    assert re.search(words, verdict(REGISTERS, deltas(*pairs)))


def test_table() -> None:
    lines = table(deltas((3, 2, 3), (1, -1, 0), (0, 0, 0), (4, 4, 4)), ["sm_80", "sm_90", "sm_100"])
    assert "| pair 1 | +1 | -1 | +0 |" in lines
    assert f"| `{REGISTERS}` | physical | 4 | 2 | 1 | 3 | 1 | 2 |" in lines


def test_summary() -> None:
    words = summary(deltas((3, 2, 3), (1, -1, 0), (0, 0, 0), (4, 4, 4)), ["sm_80", "sm_90", "sm_100"])
    assert words.startswith("4 pairs of control and bug, the same PTX assembled for 3 targets: ")
    changes = "changes in 3, by the same number on all targets in 1, up on one and down on another in 1"
    assert f"`{REGISTERS}` {changes}" in words
