"""One compilation of the lane instructions for all tests here: a few forms a record, on three sets of lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from interp.launch import Module
from ptx.isa import Op, Vector
from tests.isa.forms import (
    WORDS,
    Form,
    forms,
    inputs,
    lane_records,
    place,
    ptx,
    rows,
    spread,
    target_of,
    vector_form,
)

FORMS_PER_RECORD = 3
BATCH = 64
ANSWERS = Path(__file__).with_name("h200_forms.npz")


@dataclass(frozen=True)
class Executed:
    """What the compiled engine returned. `words`: inputs, u64 [lane, WORDS]; `results`: key of a form → u64 [result,
    lane]; `examples`: by lane, an example of a record; `stored`, `random`: lanes with the hardware's inputs, with new
    ones."""

    words: np.ndarray
    results: dict[str, np.ndarray]
    chosen: dict[str, Form]
    examples: dict[int, tuple[Op, Vector, Form]]
    stored: range
    random: range


def batches(items: list[Form]) -> Iterator[tuple[tuple[str, str], list[Form]]]:
    """Forms that one module can hold, with its target and PTX version."""
    for target in sorted({target_of(f.op) for f in items}):
        same = [f for f in items if target_of(f.op) == target]
        for start in range(0, len(same), BATCH):
            yield target, same[start : start + BATCH]


def execute(items: list[Form], words: np.ndarray, engine: str = "compiled") -> dict[str, np.ndarray]:
    """Results of forms on input words, by their keys."""
    lanes = len(words)
    out: dict[str, np.ndarray] = {}
    for target, batch in batches(items):
        order = list(rows(batch))
        results = np.zeros((len(order), lanes), np.uint64)
        entry = Module.from_ptx(ptx(batch, lanes, *target))["forms"]
        arguments = [words.reshape(-1), results.reshape(-1)]
        done = entry.launch((lanes // 32,), (32,), arguments, counters=False, engine=engine)
        assert not done.findings
        for (f, index), row in zip(order, results, strict=True):
            if index == 0:
                out[f.key] = row[None]
            else:
                out[f.key] = np.concatenate([out[f.key], row[None]])
    return out


@pytest.fixture(scope="session")
def stored_words() -> np.ndarray:
    with np.load(ANSWERS, allow_pickle=False) as archive:
        return archive["words"]


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
