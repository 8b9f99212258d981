"""A sample of the instruction forms against an H200's stored answers, as a program for another processor.

    python -m tests.portability.forms EVERY        one form in so many; prints JSON

`matrices`: of the matrix instructions, one of each combination of types.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from gpuemu.conform import answers as stored
from gpuemu.conform import matrices
from gpuemu.conform.compare import Outcome, compare_forms, compare_matrices
from gpuemu.conform.forms import forms, lane_records


def sample(every: int) -> list[Outcome]:
    """What came of the sample."""
    answers = stored.stored()[0]
    items = [f for op in lane_records() for f in forms(op) if f.key in answers.results]
    keys = {f.key for f in items[::every]}
    first: dict[str, str] = {}
    for case in matrices.cases():
        if case.target == answers.target and case.name in answers.matrices:
            first.setdefault(_types(case.opcode), case.name)
    chosen = set(first.values())
    return [
        *compare_forms(answers, lambda f: f.key in keys),
        *compare_matrices(answers, lambda c: c.name in chosen),
    ]


def _types(opcode: str) -> str:
    """The opcode without shapes and layouts."""
    words = opcode.split(".")
    return ".".join([*words[:2], *(w for w in words[2:] if w[0] in "fbestu" and w[-1].isdigit())])


def summary(found: list[Outcome]) -> dict[str, Any]:
    """Counts, and the first differences in words."""
    compared = [o for o in found if o.compared]
    return {
        "forms": len(compared), "words": sum(o.compared for o in compared),
        "different": sum(o.different for o in compared),
        "examples": [o.example for o in compared if o.example][:5],
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(summary(sample(int(sys.argv[1])))))
