"""Random programs give the same bytes, counters and findings on both engines.

Seeds are fixed; a failure names its batch, and `programs.batch(seed, ...)` writes the same text again."""

from __future__ import annotations

import pytest

from interp.ops import ISA
from tests.differential.compare import Tally, differences, key
from tests.differential.programs import ELSEWHERE, batch

BODIES = 12
SHORT = range(1, 26)
LONG = range(1000, 1420)
"""Seeds of the batches: 300 programs with few forms a record, and 5,040 with many."""
FEW, MANY = 2, 12
DRAWN = [o for o in ISA.ops if o.since[1] <= 90 and not o.internal and not o.syntax.startswith(ELSEWHERE)]


def test_a_seed_always_gives_the_same_program() -> None:
    assert batch(5, 3).text == batch(5, 3).text
    assert batch(5, 3).text != batch(6, 3).text


@pytest.mark.slow
def test_random_programs_agree() -> None:
    tally = Tally()
    for seed in SHORT:
        found = differences(batch(seed, BODIES, variety=FEW), tally)
        assert not found, f"batch {seed}, variety {FEW}: {found}"
    print(tally)
    assert tally.programs == len(SHORT) * BODIES
    assert min(tally.divergent, tally.looping, tally.shared) > tally.programs // 5


@pytest.mark.judge
@pytest.mark.slow
def test_thousands_of_random_programs_agree(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    failed = []
    for seed in LONG:
        found = differences(batch(seed, BODIES, variety=MANY), tally)
        if found:
            failed.append(f"batch {seed}, variety {MANY}: {found}")
        if tally.programs % 600 == 0:
            with capsys.disabled():
                print(f"\n{tally}", flush=True)
    with capsys.disabled():
        print(f"\n{tally}")
        for op in DRAWN:
            print(f"{tally.draws[key(op)]:6} {key(op)}")
    assert not failed
    assert tally.programs >= 5000
    assert [key(op) for op in DRAWN if tally.draws[key(op)] < 20] == []
