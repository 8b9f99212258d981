"""Aligning two versions of a kernel: names do not count, literals and data flow do."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.ops import ISA
from ptx.accounting.alignment import Step, align, changed
from ptx.decode import decode
from ptx.printer import print_instruction
from tests.accounting.ptx_texts import sample, text

BASE = "mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 7; mul.lo.u32 %r3, %r2, %r1; st.global.u32 [%d1], %r3; ret;"
ROWS = [
    (BASE, "", "nothing changed"),
    (BASE.replace("%r1", "%r9").replace("%r2", "%r1"), "", "other register names"),
    (BASE.replace("7", "8"), "#1", "another immediate"),
    (BASE.replace("[%d1]", "[%d1+4]"), "#1", "another offset"),
    (BASE.replace("%r2, %r1;", "%r2, %r2;"), "~1", "another operand of the same type"),
    (BASE.replace("mul.lo.u32", "mul.hi.u32"), "-1 +1", "another opcode"),
    (BASE.replace("mul.lo", "@%p1 mul.lo"), "-1 +1", "a guard"),
    (BASE.replace("st.global", "add.u32 %r3, %r3, 1; st.global"), "+1", "one more"),
    (BASE.replace("add.u32 %r2, %r1, 7; ", "").replace("%r2", "%r1"), "-1 ~1", "one fewer: its reader reads another"),
    (BASE.replace("%r3, %r2, %r1; st", "%r3, %r2, %r1; add.u32 %r4, %r3, 1; st").replace("], %r3", "], %r4"), "+1 ~1",
     "one more in between: its reader reads another"),
    ("L: " + BASE.replace("ret;", "@%p1 bra L; ret;"), "+1", "a branch"),
]  # fmt: skip
SIGN = {"immediates": "#", "operands": "~", "removed": "-", "added": "+"}


def kernel(source: str):
    return decode(source).kernels[0]


def told(steps: tuple[Step, ...]) -> str:
    counts = Counter(s.kind for s in steps)
    return " ".join(f"{SIGN[k]}{counts[k]}" for k in ("removed", "added", "immediates", "operands") if counts[k])


@pytest.mark.parametrize("body, expected, why", ROWS, ids=[row[2] for row in ROWS])
def test_change(body: str, expected: str, why: str) -> None:
    assert told(align(kernel(text(BASE)), kernel(text(body)), ISA)) == expected


def test_labels_and_parameters_may_be_renamed() -> None:
    body = "ld.param.u64 %d1, [x]; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; B: st.global.u32 [%d1], %r1; A: ret;"
    renamed = text(body.replace("A", "Q1").replace("B:", "Q2:")).replace("k(.param .u64 x", "j(.param .u64 j_0")
    assert told(align(kernel(text(body)), kernel(renamed.replace("[x]", "[j_0]")), ISA)) == ""


def test_groups_follow_the_source_line_where_code_moved() -> None:
    def located(first: int, extra: str) -> str:
        return (
            text(
                f".loc 1 {first} 1\nmov.u32 %r1, %tid.x;\nadd.u32 %r2, %r1, 7;\n.loc 1 {first + 1} 1\n{extra}\n"
                "st.global.u32 [%d1], %r2;\nret;"
            )
            + '.file 1 "k.py"\n'
        )

    old, new = kernel(located(10, "not.b32 %r2, %r2;")), kernel(located(20, "neg.s32 %r2, %r2;"))
    (group,) = changed(align(old, new, ISA))
    assert (group.file, group.line, group.gone) == ("k.py", 21, False)
    assert [(s.kind, print_instruction(s.old or s.new)) for s in group.changes] == [
        ("removed", "not.b32 %r2, %r2;"), ("added", "neg.s32 %r2, %r2;"),
    ]  # fmt: skip


def test_a_line_that_is_gone_says_so() -> None:
    body = ".loc 1 5 1\nmov.u32 %r1, %tid.x;\n.loc 1 6 1\nnot.b32 %r2, %r1;\n.loc 1 7 1\nret;"
    old = kernel(text(body) + '.file 1 "k.py"\n')
    new = kernel(text(body.replace(".loc 1 6 1\nnot.b32 %r2, %r1;\n", "")) + '.file 1 "k.py"\n')
    (group,) = changed(align(old, new, ISA))
    assert (group.line, group.gone, len(group.changes)) == (6, True, 1)


# ------------------------------------------------------------------------------------------------ properties
SAMPLE = sample("layernorm_f16_sm80")
LINES = [i for i, line in enumerate(SAMPLE.splitlines()) if re.match(r"\s+(add|mul|fma|max|mov)\.\S+\s+%", line)]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_renaming_all_registers_changes_nothing(seed: int) -> None:
    chosen = random.Random(seed)
    text_ = SAMPLE
    for prefix in ("r", "rd", "rs", "p"):
        match = re.search(rf"%{prefix}<(\d+)>", text_)
        if match is None:
            continue
        order = list(range(int(match[1])))
        chosen.shuffle(order)
        text_ = re.sub(rf"%{prefix}(\d+)\b", lambda m, o=order, p=prefix: f"%{p}{o[int(m[1])]}", text_)
    assert told(align(kernel(SAMPLE), kernel(text_), ISA)) == ""


@settings(max_examples=20, deadline=None)
@given(st.sets(st.sampled_from(LINES), max_size=5))
def test_instructions_left_out_are_the_ones_that_are_missing(lines: set[int]) -> None:
    kept = "\n".join("" if i in lines else line for i, line in enumerate(SAMPLE.splitlines()))
    old, new = kernel(SAMPLE), kernel(kept + "\n")
    forward, back = align(old, new, ISA), align(new, old, ISA)
    assert Counter(s.kind for s in forward)["removed"] - Counter(s.kind for s in forward)["added"] == len(lines)
    for steps, a, b in ((forward, old, new), (back, new, old)):
        assert [s.old for s in steps if s.old is not None] == [i for block in a.blocks for i in block.insts]
        assert [s.new for s in steps if s.new is not None] == [i for block in b.blocks for i in block.insts]
    assert bool(changed(forward)) == bool(lines)
