"""The compiled engine against the records' examples, the exact kit, and an H200.

`h200_forms.npz`: answers of an NVIDIA H200 (driver API 13.0) for every form that existed when it was made; `on_gpu.py`
makes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.isa.conftest import ANSWERS, Executed, execute
from tests.isa.forms import asked, exact_kit, lane_records, operand_words

NOT_ASKED = {
    "cvta": "32-bit addresses are not accepted by the assembler for sm_90",
    "mapa": "the assembler for sm_90 makes a byte permutation of it",
    "getctarank": "the assembler for sm_90 makes a shift of it",
    "isspacep": "the answer depends on where the driver lays the state spaces",
}
"""Opcodes whose answers are not compared, by what they begin with."""
DIFFERENT = {
    "mad.hi.sat.s32": "the assembler merges it with mad.hi.s32 of the same operands, losing the clamp; alone it clamps",
}


UNDEFINED: dict[str, Callable[[list[int]], bool]] = {"fns.b32": lambda sources: sources[1] > 31}
"""Operands for which the manual leaves the answer open, by opcode."""


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


@pytest.mark.judge
def test_answers_of_an_h200(executed: Executed) -> None:
    with np.load(ANSWERS, allow_pickle=False) as archive:
        index = {str(opcode): i for i, opcode in enumerate(archive["opcodes"])}
        first, answers = archive["first"], archive["answers"]
    wrong, missing = [], []
    for opcode, f in executed.chosen.items():
        if f.op.name in NOT_ASKED or opcode in DIFFERENT or not asked(f.op):
            continue
        if opcode not in index:
            missing.append(opcode)
            continue
        for row, got in enumerate(executed.results[opcode]):
            expected = answers[first[index[opcode]] + row]
            for i in np.nonzero(got[executed.stored] != expected)[0]:
                lane = executed.stored[int(i)]
                sources = operand_words(f, executed.words[lane])
                if opcode in UNDEFINED and UNDEFINED[opcode](sources):
                    continue
                wrong.append(f"{opcode} {[hex(w) for w in sources]}: {int(got[lane]):#x}, H200 {int(expected[i]):#x}")
    assert missing == [], "ask the hardware: tests/isa/on_gpu.py"
    assert wrong == []
