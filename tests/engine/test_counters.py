"""Counters against counts made by hand: executions by warps, and lanes in which each instruction of small kernels took
effect (its guard held; of a branch or exit, it was taken)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from interp.launch import Module
from tests.engine.assembly import PROLOGUE_LENGTH, launch, text


@dataclass(frozen=True)
class Case:
    """`body` in which each instruction stands on its own line; `counts`: (executions, lanes) of each."""

    name: str
    body: str
    block: Any
    grid: Any
    counts: list[tuple[int, int]]
    ctas: Any = None


def _case(name: str, block: Any, grid: Any, lines: str, ctas: Any = None) -> Case:
    """`lines`: `executions lanes | instruction` a line, or a label."""
    body, counts = [], []
    for line in filter(None, map(str.strip, lines.splitlines())):
        numbers, bar, instruction = line.partition("|")
        body.append(instruction if bar else line)
        if bar:
            executions, lanes = numbers.split()
            counts.append((int(executions), int(lanes)))
    return Case(name, "\n".join(body), block, grid, counts, ctas)


CASES = [
    _case("straight", 32, 1, """
        1 32 | add.u32 %r3, %r0, 1;
        1 32 | st.global.u32 [%rd1], %r3;
        1 32 | ret;
    """),
    _case("partial warps and several CTAs", 70, 3, """
        9 210 | add.u32 %r3, %r0, 1;
        9 210 | ret;
    """),
    _case("guards", 64, 1, """
        2 64 | setp.lt.u32 %p1, %r0, 10;
        2 10 | @%p1 mov.u32 %r3, 1;
        2 54 | @!%p1 mov.u32 %r3, 2;
        2 10 | @%p1 st.global.u32 [%rd1], %r3;
        2 64 | ret;
    """),
    _case("if and else", 32, 1, """
        1 32 | setp.lt.u32 %p1, %r0, 12;
        1 12 | @%p1 bra THEN;
        1 20 | mov.u32 %r3, 1;
        1 20 | bra JOIN;
        THEN:
        1 12 | mov.u32 %r3, 2;
        1 12 | add.u32 %r3, %r3, 1;
        JOIN:
        1 32 | st.global.u32 [%rd1], %r3;
        1 32 | ret;
    """),
    _case("branch that whole warps take", 96, 1, """
        3 96 | setp.ge.u32 %p1, %r0, 32;
        3 64 | @%p1 bra JOIN;
        1 32 | mov.u32 %r3, 2;
        JOIN:
        3 96 | ret;
    """),
    _case("loop with one number of turns", 96, 1, """
        3 96 | mov.u32 %r3, 0;
        TOP:
        15 480 | add.u32 %r3, %r3, 1;
        15 480 | setp.lt.u32 %p1, %r3, 5;
        15 384 | @%p1 bra TOP;
        3 96 | ret;
    """),
    # lane t makes max(t, 1) turns: 31 of the warp, 1 + (1 + 2 + ... + 31) = 497 of lanes, and one jump back less
    _case("loop with a number of turns a lane", 32, 1, """
        1 32 | mov.u32 %r3, 0;
        TOP:
        31 497 | add.u32 %r3, %r3, 1;
        31 497 | setp.lt.u32 %p1, %r3, %r0;
        31 465 | @%p1 bra TOP;
        1 32 | ret;
    """),
    _case("early return", 64, 1, """
        2 64 | setp.ge.u32 %p1, %r0, 40;
        2 24 | @%p1 ret;
        2 40 | mov.u32 %r3, 2;
        2 40 | ret;
    """),
    _case("nested ifs", 32, 2, """
        2 64 | setp.ge.u32 %p1, %r0, 24;
        2 16 | @%p1 bra OUT;
        2 48 | setp.ge.u32 %p2, %r0, 4;
        2 40 | @%p2 bra INNER;
        2 8 | mov.u32 %r3, 1;
        INNER:
        2 48 | mov.u32 %r4, 1;
        OUT:
        2 64 | ret;
    """),
    _case("barrier", 128, 2, """
        8 256 | mov.u32 %r3, 0;
        8 256 | bar.sync 0;
        8 256 | st.global.u32 [%rd1], %r3;
        8 256 | ret;
    """),
    _case("lanes that wait for each other execute once", 32, 1, """
        1 32 | setp.lt.u32 %p1, %r0, 8;
        1 8 | @%p1 bra VOTE;
        1 24 | mov.u32 %r4, 1;
        VOTE:
        1 32 | vote.sync.ballot.b32 %r3, %p1, -1;
        1 32 | ret;
    """),
    _case("groups with masks of their own execute once each", 32, 1, """
        1 32 | setp.lt.u32 %p1, %r0, 8;
        1 32 | selp.b32 %r4, 0xff, 0xffffff00, %p1;
        2 32 | vote.sync.ballot.b32 %r3, %p1, %r4;
        2 32 | ret;
    """),
    _case("chosen CTAs", 32, 100, """
        2 64 | mov.u32 %r3, 0;
        2 64 | ret;
    """, [(5, 0, 0), (99, 0, 0)]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_counts(case: Case) -> None:
    out = np.zeros(128, np.uint32)
    result = launch(case.body, out, block=case.block, grid=case.grid, ctas=case.ctas)
    assert result.findings == () and result.counters is not None
    counted = result.counters.instructions[PROLOGUE_LENGTH:]
    assert [(c.executions, c.active_lanes) for c in counted] == case.counts
    lanes = sum(c.active_lanes for c in result.counters.instructions)
    assert result.counters.totals["all"].active_lanes == lanes
    by_class = [count for name, count in result.counters.totals.items() if name != "all"]
    assert sum(c.active_lanes for c in by_class) == lanes


def test_lanes_that_come_to_an_instruction_whatever_its_guard_says() -> None:
    body = "setp.lt.u32 %p1, %r0, 10;\n@%p1 mov.u32 %r3, 1;\n@!%p1 bra OUT;\n@%p1 exit;\nOUT:\nret;"
    result = launch(body, np.zeros(64, np.uint32), block=64)
    assert result.counters is not None
    counted = result.counters.instructions[PROLOGUE_LENGTH:]
    assert [c.issued_lanes for c in counted] == [64, 64, 64, 10, 54]
    assert [c.active_lanes for c in counted] == [64, 10, 54, 10, 54]
    assert result.counters.totals["control"].issued_lanes == 128


def test_counts_by_source_line_and_class() -> None:
    body = """
        .loc 1 10 3
        add.f32 %f1, %f1, 0f3F800000;
        mul.f32 %f1, %f1, %f1;
        .loc 1 11 3
        st.global.f32 [%rd1], %f1;
        ret;
    """
    ptx = text(body) + '.file 1 "/src/kernel.cu"\n'
    out = np.zeros(64, np.float32)
    result = Module.from_ptx(ptx)["k"].launch(grid=1, block=64, args=[out])
    assert result.counters is not None
    line = result.counters.lines["/src/kernel.cu", 10]
    assert (line.executions, line.active_lanes) == (4, 128)
    assert result.counters.totals["fma"].active_lanes == 128
    assert result.exactness == ("contraction not modelled",)


def test_without_counters() -> None:
    out = np.zeros(32, np.uint32)
    assert launch("st.global.u32 [%rd1], %r0;\nret;", out, counters=False).counters is None
    assert (out == np.arange(32)).all()
