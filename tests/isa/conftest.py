"""One compilation of the lane instructions for all tests here: a few forms a record, on three sets of lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from gpuemu.conform.answers import Answers, stored
from gpuemu.conform.compare import execute
from gpuemu.conform.forms import WORDS, Form, forms, lane_records, spread, vector_form
from gpuemu.conform.words import inputs, place
from ptx.record import Op, Vector

FORMS_PER_RECORD = 3


@dataclass(frozen=True)
class Executed:
    """What the compiled engine returned. `words`: inputs, u64 [lane, WORDS]; `results`: key of a form → u64
    [result, lane]; `examples`: by lane, an example of a record; `stored`, `random`: lanes with the hardware's inputs,
    with new ones."""

    words: np.ndarray
    results: dict[str, np.ndarray]
    chosen: dict[str, Form]
    examples: dict[int, tuple[Op, Vector, Form]]
    stored: range
    random: range


@pytest.fixture(scope="session")
def answers() -> Answers:
    (found,) = stored()
    return found


@pytest.fixture(scope="session")
def stored_words(answers: Answers) -> np.ndarray:
    return answers.words


@pytest.fixture(scope="session")
def executed(stored_words: np.ndarray) -> Executed:
    chosen: dict[str, Form] = {}
    examples: list[tuple[Op, Vector, Form, list[int]]] = []
    for op in lane_records():
        for f in spread(forms(op), FORMS_PER_RECORD):
            chosen[f.key] = f
        for vector in op.vectors:
            f, sources = vector_form(op, vector)
            if f.immediate is not None:
                continue  # its opcode does not name the form
            chosen[f.key] = f
            examples.append((op, vector, f, sources))
    fresh = inputs(int(np.random.SeedSequence().entropy) & 0xFFFF_FFFF, 96)
    padding = -(len(examples) + len(stored_words) + len(fresh)) % 32
    words = np.zeros((len(examples) + padding, WORDS), np.uint64)
    for lane, (_, _, f, sources) in enumerate(examples):
        place(words, lane, f, sources)
    first = len(words)
    second = first + len(stored_words)
    words = np.concatenate([words, stored_words, fresh])
    return Executed(
        words,
        execute(list(chosen.values()), words),
        chosen,
        {lane: (op, v, f) for lane, (op, v, f, _) in enumerate(examples)},
        range(first, second),
        range(second, len(words)),
    )
