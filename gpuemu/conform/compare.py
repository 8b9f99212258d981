"""The emulator against a GPU's answers: every form on the stored operand words, every result word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpuemu.conform import matrices
from gpuemu.conform.answers import Answers
from gpuemu.conform.explained import reason
from gpuemu.conform.forms import Form, forms, lane_records, ptx, target_of
from gpuemu.conform.words import Words, operand_words
from interp.launch import Module

BATCH = 64
"""Forms of one kernel."""


@dataclass(frozen=True)
class Outcome:
    """One opcode: result words compared, those that differ and are not explained, those that do and are; the first
    difference in words. `compared` is 0 where the answers do not have the opcode."""

    opcode: str
    syntax: str
    compared: int
    different: int = 0
    explained: int = 0
    why: str | None = None
    example: str | None = None


def execute(
    items: Sequence[Form], words: Words, device: str | None = None, engine: str = "compiled"
) -> dict[str, Words]:
    """Results of forms on input words: key of a form → u64 [results, lanes]. Lanes are run in whole warps."""
    lanes = len(words)
    out: dict[str, Words] = {}
    for target, batch in _batches(items):
        results = np.zeros((sum(len(f.results) for f in batch), lanes), np.uint64)
        entry = Module.from_ptx(ptx(batch, lanes, target), device=device)["forms"]
        arguments = [words.reshape(-1), results.reshape(-1)]
        done = entry.launch((lanes // 32,), (32,), arguments, counters=False, engine=engine)
        assert not done.findings, done.findings
        at = 0
        for f in batch:
            out[f.key] = results[at : at + len(f.results)]
            at += len(f.results)
    return out


def _batches(items: Sequence[Form]) -> Iterator[tuple[str, list[Form]]]:
    """Forms that one module can hold, with its target."""
    for target in sorted({target_of(f.op) for f in items}):
        same = [f for f in items if target_of(f.op) == target]
        for start in range(0, len(same), BATCH):
            yield target, same[start : start + BATCH]


def compare(answers: Answers) -> list[Outcome]:
    """Every form of the instruction table against a GPU's answers, in the table's order; then matrix instructions."""
    return compare_forms(answers) + compare_matrices(answers)


def compare_forms(answers: Answers, chosen: Callable[[Form], bool] = lambda _: True) -> list[Outcome]:
    """The lane instructions that are chosen."""
    items = [f for op in lane_records() for f in forms(op) if chosen(f)]
    known = [f for f in items if f.key in answers.results]
    results = execute(known, answers.words, answers.target)
    return [_outcome(f, answers, results.get(f.key)) for f in items]


def compare_matrices(answers: Answers, chosen: Callable[[matrices.Case], bool] = lambda _: True) -> list[Outcome]:
    """The matrix instructions of the answers' target that are chosen."""
    found = []
    for batch in matrices.batches([c for c in matrices.cases() if c.target == answers.target and chosen(c)]):
        got = matrices.execute(batch, [matrices.inputs(c, matrices.SEED) for c in batch], device=answers.target)
        for case, words in zip(batch, got, strict=True):
            expected = answers.matrices.get(case.name)
            if expected is None:
                found.append(Outcome(case.name, case.opcode, 0, why="not asked"))
                continue
            wrong = np.argwhere(words != expected)
            example = None
            if len(wrong):
                lane, word = wrong[0]
                pair = f"{int(words[lane, word]):#x}, {answers.gpu.partition(',')[0]} {int(expected[lane, word]):#x}"
                example = f"{case.name} warp {lane // 32} lane {lane % 32} word {word}: {pair}"
            found.append(Outcome(case.name, case.opcode, words.size, len(wrong), example=example))
    return found


def _outcome(f: Form, answers: Answers, got: Words | None) -> Outcome:
    if got is None:
        missing = "the assembler refuses it" if f.key in answers.refused else "not asked"
        return Outcome(f.key, f.op.syntax, 0, why=missing)
    expected = answers.results[f.key]
    wrong = explained = 0
    why = example = None
    for row, lane in zip(*np.nonzero(got != expected), strict=True):
        sources = operand_words(f, answers.words[lane])
        known = reason(f.opcode, sources)
        if known is not None:
            explained, why = explained + 1, known
            continue
        wrong += 1
        example = example or (
            f"{f.opcode} {' '.join(map(hex, sources))}: {int(got[row, lane]):#x}, "
            f"{answers.gpu.partition(',')[0]} {int(expected[row, lane]):#x}"
        )
    return Outcome(f.key, f.op.syntax, got.size, wrong, explained, why, example)
