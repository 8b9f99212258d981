"""The compiled engine against the records' examples, the exact kit, and an H200.

`gpuemu/conform/answers` has the answers of a GPU for every form that it has."""

from __future__ import annotations

import numpy as np
import pytest

from gpuemu.conform.answers import Answers
from gpuemu.conform.compare import compare, execute
from gpuemu.conform.explained import NOT_ASKED, reason
from gpuemu.conform.forms import exact_kit, lane_records
from gpuemu.conform.words import operand_words
from tests.isa.conftest import Executed


def in_register(word: int, type: str) -> int:
    """A result as it stands in the 32-bit register of `ptx`: 8-bit results are extended there."""
    return word | 0xFFFF_FF00 if type == "s8" and word >> 7 else word


def test_examples(executed: Executed) -> None:
    wrong = []
    for lane, (_, vector, f) in executed.examples.items():
        got = tuple(int(row[lane]) for row in executed.results[f.key])
        if got != tuple(in_register(w, t) for w, t in zip(vector.results, f.results, strict=False)):
            wrong.append(f"{f.opcode}: {vector.why}: {[hex(w) for w in got]}, not {[hex(w) for w in vector.results]}")
    assert wrong == []


@pytest.mark.parametrize("op", lane_records(), ids=lambda op: op.syntax)
def test_random_words_as_the_exact_kit(op, executed: Executed) -> None:  # type: ignore[no-untyped-def]
    wrong = []
    for f in (f for f in executed.chosen.values() if f.op is op):
        function = op.meaning(exact_kit(op), **f.mods)
        for lane in executed.random:
            sources = operand_words(f, executed.words[lane])
            outcome = function(*f.operands(sources))
            exact = outcome if isinstance(outcome, tuple) else (outcome,)
            expected = tuple(in_register(word, type) for word, type in zip(exact, f.results, strict=False))
            got = tuple(int(row[lane]) for row in executed.results[f.key])
            if got != expected:
                a, b, c = ([hex(w) for w in words] for words in (sources, got, expected))
                wrong.append(f"{f.opcode} {a}: {b}, exact {c}")
    assert wrong == []


def test_new_forms_on_the_other_engine(executed: Executed) -> None:
    """The random programs compare the engines for sm_90; one form of each newer record is compared here."""
    newer = {f.op.syntax: f for f in executed.chosen.values() if f.op.since[1] > 90}
    traced = execute(list(newer.values()), executed.words, engine="traced")
    for opcode, got in traced.items():
        np.testing.assert_array_equal(got, executed.results[opcode], opcode)


def test_answers_of_an_h200(executed: Executed, answers: Answers) -> None:
    """A few forms of every record here; all of them in `make judges`."""
    wrong, missing = [], []
    for opcode, f in executed.chosen.items():
        if f.op.name in NOT_ASKED or opcode in answers.refused or f.op.since[1] > 90:
            continue
        if opcode not in answers.results:
            missing.append(opcode)
            continue
        for row, expected in zip(executed.results[opcode], answers.results[opcode], strict=True):
            for i in np.nonzero(row[executed.stored] != expected)[0]:
                lane = executed.stored[int(i)]
                sources = operand_words(f, executed.words[lane])
                if reason(opcode, sources) is None:
                    wrong.append(f"{opcode} {[hex(w) for w in sources]}: {int(row[lane]):#x}, {int(expected[i]):#x}")
    assert missing == [], "ask the hardware: gpuemu conform --export"
    assert wrong == []


@pytest.mark.judge
def test_every_form_on_the_answers_of_an_h200(answers: Answers) -> None:
    found = compare(answers)
    assert [o.example for o in found if o.different] == []
    assert sum(o.compared > 0 for o in found) > 2500
