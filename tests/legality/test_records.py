"""Every form of every record on every target and PTX version: gpuemu takes what ptxas takes and refuses the rest.

The judge is NVIDIA's assembler, release 13.4 of Triton's wheel (PTX 9.4, the version whose manual the records follow).
`make judges` asks about everything; the plain suite about a small sample on one old and one new pair of target and
version. A form is one line of a file, and a file holds thousands.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from interp.ops import ISA
from ptx.targets import VERSIONS, name_problem
from tests.legality.assembler import complaints
from tests.legality.disagree import REFUSED_HERE, TAKEN_HERE, reason
from tests.legality.instances import FIRST, all_instances, instances, module
from tests.legality.ours import Lines

TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_120a", "sm_100",
           "sm_120", "sm_120f")
OLDER = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")
"""Targets that are asked about with every PTX version."""
NEWEST = (9, 4)
"""What ptxas 13.4 knows."""
OLDEST = (6, 3)
SAMPLE = 600


@pytest.fixture(scope="module")
def ptxas() -> Path:
    triton = pytest.importorskip("triton")
    path = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas-blackwell"
    if not path.exists():
        pytest.skip("no ptxas of release 13.4 in this Triton")
    return path


class Tally:
    """Compares, counts, and keeps what nothing explains."""

    def __init__(self, lines: list[str], ptxas: Path) -> None:
        self.lines, self._ptxas, self.compared = lines, ptxas, 0
        self._ours = Lines(lines, lambda ls: module(ls, NEWEST, "sm_90"), FIRST)
        self.explained: Counter[str] = Counter()
        self.wrong: list[str] = []

    def ask(self, version: tuple[int, int], target: str) -> set[int]:
        """Lines that ptxas takes."""
        theirs = complaints(self._ptxas, self.lines, lambda ls: module(ls, version, target), FIRST, target)
        ours = self._ours.refused(version, target)
        self.compared += len(self.lines)
        for i, line in enumerate(self.lines):
            if (i in theirs) == (i in ours):
                continue
            if (why := reason(line, taken=i in theirs)) is not None:
                self.explained[why] += 1
            else:
                said = f"ptxas: {theirs[i]}" if i in theirs else f"gpuemu: {ours[i]}"
                self.wrong.append(f"{version[0]}.{version[1]} {target} {line} ({said})")
        return set(range(len(self.lines))) - theirs.keys()

    def report(self) -> str:
        shown = random.Random(1).sample(self.wrong, min(40, len(self.wrong)))
        return f"{len(self.wrong)} of {self.compared} comparisons differ, for example:\n" + "\n".join(shown)


def versions(target: str) -> list[tuple[int, int]]:
    return [v for v in VERSIONS if OLDEST <= v <= NEWEST and name_problem(v, target) is None]


def test_a_sample(ptxas: Path) -> None:
    rng = random.Random(7)
    records = rng.sample([op for op in ISA.ops if op.name not in ("ld", "st")], 60)
    found = list(dict.fromkeys(i.text for op in records for i in instances(op)))
    tally = Tally(rng.sample(found, SAMPLE), ptxas)
    for version, target in ((NEWEST, "sm_100a"), ((7, 4), "sm_80")):
        tally.ask(version, target)
    assert not tally.wrong, tally.report()


@pytest.mark.judge
def test_every_form_on_every_target_and_version(ptxas: Path) -> None:
    """All forms with the newest version; those that any target takes with every version of six targets."""
    everything = Tally([i.text for i in all_instances()], ptxas)
    legal = set().union(*(everything.ask(NEWEST, target) for target in TARGETS))
    older = Tally([everything.lines[i] for i in sorted(legal)], ptxas)
    for target in OLDER:
        for version in versions(target):
            older.ask(version, target)
    explained = everything.explained + older.explained
    print(f"\n{len(everything.lines)} forms, {everything.compared + older.compared} comparisons")
    for pattern, count in explained.most_common():
        print(f"{count:7} {pattern}: {(REFUSED_HERE | TAKEN_HERE)[pattern]}")
    assert not everything.wrong, everything.report()
    assert not older.wrong, older.report()
    assert explained.keys() == (REFUSED_HERE | TAKEN_HERE).keys(), "a reason that nothing needs any more"


@pytest.mark.judge
def test_modifiers_in_other_orders(ptxas: Path) -> None:
    """Modifiers of legal forms, shuffled."""
    rng = random.Random(3)
    legal = Tally([i.text for i in all_instances()], ptxas)
    taken = rng.sample(sorted(legal.ask(NEWEST, "sm_90a")), 6000)
    shuffled = []
    for text in (legal.lines[i] for i in taken):
        opcode, space, operands = text.partition(" ")
        name, *mods = opcode.rstrip(";").split(".")
        shuffled.append(".".join((name, *rng.sample(mods, len(mods)))) + (space + operands if space else ";"))
    tally = Tally(shuffled, ptxas)
    tally.ask(NEWEST, "sm_90a")
    assert not [w for w in tally.wrong if "(ptxas:" in w], tally.report()
    assert len(tally.wrong) <= len(shuffled) // 50, tally.report()  # what is refused in the usual order, too
