"""A sample of the instruction forms against an H200's stored answers, as a program for another processor.

    python -m tests.portability.forms EVERY        one form in so many; prints JSON

Matrix instructions are left to the programs beside this: their runtime functions alone take minutes to compile there.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from gpuemu.conform import answers as stored
from gpuemu.conform.compare import compare_forms
from gpuemu.conform.forms import forms, lane_records

FIRST = 3
"""The first form of a sample: any will do, and always the same."""


def sample(every: int) -> dict[str, Any]:
    """Forms and result words that were compared, words that differ, and the first differences."""
    answers = stored.stored()[0]
    known = [f.key for op in lane_records() for f in forms(op) if f.key in answers.results]
    chosen = frozenset(known[FIRST::every])
    found = [o for o in compare_forms(answers, lambda f: f.key in chosen) if o.compared]
    return {
        "forms": len(found), "words": sum(o.compared for o in found), "different": sum(o.different for o in found),
        "examples": [o.example for o in found if o.example][:5],
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(sample(int(sys.argv[1]))))
