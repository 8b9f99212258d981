"""What a GPU returned for the forms of the lane instructions: archives, those of one GPU taken together.

`words`: the input, u64 [lanes, WORDS]. `opcodes`, `first`: an opcode's results are rows `first[i]` and following of
`answers`, u64 [rows, lanes]. `about`: JSON with the GPU's name, driver API version, date, target of the code, and the
opcodes that the assembler refused for it. `matrix NAME`: u32 [lanes, words], of a matrix instruction (`matrices.py`).

New forms may come as one more archive beside the others (`h200_forms_*.npz` beside `h200_forms.npz`), so that nobody
has to ask a GPU for everything again: those of the same GPU, target and input words are one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from gpuemu.conform.words import Words
from gpuemu.files import unreadable, write_atomically
from ptx.errors import InvalidInput

_MATRIX = "matrix "
FOLDER = Path(__file__).parent / "answers"


@dataclass(frozen=True)
class Answers:
    """`results`: opcode → u64 [results, lanes]. `refused`: opcodes that the assembler does not take for `target`.
    `matrices`: name of a matrix instruction → u32 [lanes, words]."""

    gpu: str
    date: str
    target: str
    words: Words
    results: Mapping[str, Words]
    refused: tuple[str, ...] = ()
    matrices: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """One line: which GPU, when."""
        return f"{self.gpu}, code for {self.target}, {self.date}"


def load(path: Path) -> Answers:
    """Read an archive. InvalidInput when it is none of ours."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            about = json.loads(str(archive["about"]))
            rows, first, opcodes = archive["answers"], archive["first"], [str(o) for o in archive["opcodes"]]
            ends = [*first[1:].tolist(), len(rows)]
            results = {o: rows[a:b] for o, a, b in zip(opcodes, first.tolist(), ends, strict=True)}
            matrices = {n.removeprefix(_MATRIX): archive[n] for n in archive.files if n.startswith(_MATRIX)}
            refused = tuple(about["refused"])
            return Answers(
                about["gpu"], about["date"], about["target"], archive["words"], results, refused, matrices
            )
    except OSError as error:
        raise unreadable(path, error) from error
    except (EOFError, BadZipFile, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path} does not hold answers of a GPU", help="`gpuemu conform --gpu --record FILE` makes them"
        ) from error


def save(answers: Answers, path: Path) -> None:
    """Write an archive, atomically."""
    opcodes = sorted(answers.results)
    counts = [len(answers.results[o]) for o in opcodes]
    about = {
        "gpu": answers.gpu, "date": answers.date, "target": answers.target, "refused": list(answers.refused),
    }  # fmt: skip
    data = BytesIO()
    np.savez_compressed(
        data,
        about=np.array(json.dumps(about)),
        words=answers.words,
        opcodes=np.array(opcodes),
        first=np.cumsum([0, *counts])[:-1].astype(np.int32),
        answers=np.concatenate([answers.results[o] for o in opcodes]),
        **{_MATRIX + n: a for n, a in answers.matrices.items()},  # type: ignore[arg-type]
    )
    write_atomically(path, data.getvalue())


def merged(one: Answers, more: Answers) -> Answers:
    """The answers of both, those of `more` first. InvalidInput unless GPU, target and input words are the same."""
    if (one.gpu, one.target) != (more.gpu, more.target) or not np.array_equal(one.words, more.words):
        raise InvalidInput(f"answers of different GPUs, targets or inputs: {one.about}; {more.about}")
    asked = {*more.results, *more.refused}
    results = {o: w for o, w in one.results.items() if o not in asked}
    refused = (*(o for o in one.refused if o not in asked), *more.refused)
    dates = sorted({*one.date.split(" and "), *more.date.split(" and ")})
    return Answers(
        one.gpu, " and ".join(dates), one.target, one.words, {**results, **more.results}, refused,
        {**one.matrices, **more.matrices},
    )  # fmt: skip


def stored() -> list[Answers]:
    """The answers that come with the project, one for each GPU and target."""
    found: dict[tuple[str, str], Answers] = {}
    for path in sorted(FOLDER.glob("*_forms*.npz")):
        answers = load(path)
        key = answers.gpu, answers.target
        found[key] = merged(found[key], answers) if key in found else answers
    return list(found.values())
