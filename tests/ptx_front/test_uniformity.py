"""Which registers vary between lanes, on hand cases; and soundness against lock-step runs of random programs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptx
from ptx import ir
from tests.ptx_front.texts import ISA, kernel


def varying(inst: ir.Inst, operands: bool) -> bool:
    """%tid varies, loads from memory vary, the rest follows its operands."""
    lanes = any(isinstance(o, ir.Special) and o.name.startswith(("%tid", "%laneid")) for o in inst.operands)
    return lanes or operands or inst.op == "ld"


def analyse(body: str, *, reconverges: bool = True) -> ptx.Uniformity:
    k = kernel(body)
    return ptx.uniformity(k, ptx.control_flow(k), ISA.reads_writes, varying, reconverges=reconverges)


def test_data() -> None:
    found = analyse("mov.b32 %r1, %tid.x; mov.b32 %r2, %ctaid.x; add.s32 %r3, %r1, %r2; add.s32 %r4, %r2, 1; ret;")
    assert found.varying == {"%r1", "%r3"}
    assert found.divergent == frozenset()
    assert found.is_uniform("%r4")


def test_guards() -> None:
    body = (
        "mov.b32 %r1, %tid.x; mov.b32 %r2, 0; setp.lt.s32 %p1, %r1, 5; @%p1 mov.b32 %r2, 1; @%p2 mov.b32 %r3, 1; ret;"
    )
    assert analyse(body).varying == {"%r1", "%p1", "%r2"}


DIVERGES = "mov.b32 %r1, %tid.x; setp.lt.s32 %p1, %r1, 5;\n"


def test_paths_that_meet() -> None:
    body = DIVERGES + "@%p1 bra ELSE;\nmov.b32 %r2, 1; mov.b32 %r3, 1;\nELSE: st.global.b32 [%rd1], %r2;\nret;"
    found = analyse(body)
    assert found.varying == {"%r1", "%p1", "%r2"}  # %r3 is not live where the paths meet
    assert found.divergent == {0}
    assert found.partial == {1}


def test_a_uniform_branch_mixes_nothing() -> None:
    body = DIVERGES.replace("%tid", "%ctaid") + "@%p1 bra E;\nmov.b32 %r2, 1;\nE: st.global.b32 [%rd1], %r2;\nret;"
    assert analyse(body) == ptx.Uniformity(frozenset(), frozenset(), frozenset())


def test_turns_of_a_loop() -> None:
    body = (
        "mov.b32 %r1, %tid.x; mov.b32 %r2, 0; mov.b32 %r4, 0;\n"
        "TOP: add.s32 %r2, %r2, 1; add.s32 %r4, %r4, 1;\nsetp.lt.s32 %p1, %r2, %r1;\n@%p1 bra TOP;\n"
        "st.global.b32 [%rd1], %r2;\nret;"
    )
    found = analyse(body)
    # %r2 leaves the loop, %r4 does not: inside the loop both are the same in all lanes that are still there.
    assert found.varying == {"%r1", "%p1", "%r2"}
    assert found.partial == {1}
    # Without reconvergence lanes of different turns may meet inside, when the loop has a branch to do so.
    assert analyse(body, reconverges=False).varying == {"%r1", "%p1", "%r2"}


MEETS_INSIDE = """
mov.b32 %r1, %tid.x; mov.b32 %r2, 0; setp.lt.s32 %p1, %r1, 1;
TOP: add.s32 %r2, %r2, 1;
@%p1 bra SKIP;
mov.b32 %r3, 1;
SKIP: setp.lt.s32 %p2, %r2, 3;
@%p2 bra TOP;
ret;"""


def test_meeting_inside_a_loop_without_reconvergence() -> None:
    assert "%r2" not in analyse(MEETS_INSIDE).varying
    assert "%r2" in analyse(MEETS_INSIDE, reconverges=False).varying
    k = kernel(MEETS_INSIDE)
    for seed in range(20):
        rng = random.Random(seed)
        _run(k, analyse(MEETS_INSIDE, reconverges=False), lambda waiting, rng=rng: rng.choice(sorted(waiting)))
    # The difference is real: blocks in a random order do bring lanes of different turns together.
    with pytest.raises(AssertionError, match="%r2"):
        for seed in range(20):
            rng = random.Random(seed)
            _run(k, analyse(MEETS_INSIDE), lambda waiting, rng=rng: rng.choice(sorted(waiting)))


def test_ending_some_lanes_mixes_nothing() -> None:
    body = DIVERGES + "@%p1 ret;\nmov.b32 %r2, 1;\nst.global.b32 [%rd1], %r2;\nret;"
    found = analyse(body)
    assert found.varying == {"%r1", "%p1"}
    assert found.divergent == {0}
    assert found.partial == {1}
    jump = DIVERGES + "@%p1 bra END;\nmov.b32 %r2, 1;\nst.global.b32 [%rd1], %r2;\nEND: ret;"
    for reconverges in (True, False):
        assert analyse(jump, reconverges=reconverges).varying == {"%r1", "%p1"}


def test_a_varying_index_splits() -> None:
    body = "mov.b32 %r1, %tid.x;\nts: .branchtargets A, B;\nbrx.idx %r1, ts;\n"
    body += "A: mov.b32 %r2, 1;\nB: st.global.b32 [%rd1], %r2;\nret;"
    assert analyse(body).varying == {"%r1", "%r2"}


def test_a_loop_with_two_ways_in_does_not_make_lanes_meet() -> None:
    body = (
        "mov.b32 %r5, %tid.x; setp.lt.s32 %p1, %r5, 1;\n"
        "add.s32 %r1, %r1, 1;\n@!%p1 bra L1;\nL2: add.s32 %r2, %r1, 1;\nL1: add.s32 %r1, %r1, 1;\n@!%p1 bra L2;\nret;"
    )
    assert not ptx.control_flow(kernel(body)).reducible
    assert "%r1" in analyse(body).varying


# ------------------------------------------------------------------------------------------------ soundness
_number = st.integers(1, 4)
_guard = st.sampled_from(["@%p1 ", "@!%p1 ", "@%p2 "])
_statements = st.lists(
    st.one_of(
        st.builds("add.s32 %r{}, %r{}, 1;".format, _number, _number),
        st.builds("{}mov.b32 %r{}, {};".format, _guard, _number, _number),
        st.builds("mov.b32 %r{}, {};".format, _number, _number),
        st.builds("setp.lt.s32 %p{}, %r{}, {};".format, st.integers(1, 2), st.integers(1, 5), _number),
        st.builds("{}bra L{};".format, _guard, st.integers(0, 2)),
        st.builds("{}bra L{};".format, _guard, st.integers(0, 2)),
        st.just("@%p1 ret;"),
    ),
    min_size=6,
    max_size=16,
)
_places = st.lists(st.integers(0, 16), min_size=3, max_size=3)


@settings(deadline=None, derandomize=True)
@given(_statements, _places, st.randoms(use_true_random=False))
def test_uniform_registers_are_equal_whatever_runs(
    statements: list[str], places: list[int], rng: random.Random
) -> None:
    """Runs three lanes; those that wait at one block go on together. Which block is next is drawn at random: an engine
    that never waits for lanes to meet."""
    k = program(statements, places)
    cfg = ptx.control_flow(k)
    found = ptx.uniformity(k, cfg, ISA.reads_writes, varying, reconverges=False)
    _run(k, found, lambda waiting: rng.choice(sorted(waiting)))


@settings(deadline=None, derandomize=True)
@given(_statements, _places)
def test_uniform_registers_are_equal_with_thread_frontiers(statements: list[str], places: list[int]) -> None:
    """The same with the lowest block in `order` next, which makes lanes meet at post-dominators."""
    k = program(statements, places)
    cfg = ptx.control_flow(k)
    found = ptx.uniformity(k, cfg, ISA.reads_writes, varying)
    _run(k, found, lambda waiting: min(waiting, key=lambda b: cfg.index[b]))


def program(statements: list[str], places: list[int]) -> ir.Kernel:
    """The statements with three labels among them, after a lane number in %r5 and a predicate that varies."""
    lines = [""] * (len(statements) + 1)
    for label, place in enumerate(places):
        lines[place % len(lines)] += f"L{label}: "
    start = "mov.b32 %r5, %tid.x; setp.lt.s32 %p1, %r5, 1;\n"
    return kernel(start + "\n".join(a + b for a, b in zip(lines, [*statements, "ret;"], strict=True)))


def _run(k: ir.Kernel, uniform: ptx.Uniformity, choose: Callable[[set[int]], int]) -> None:
    labels = {name: i for i, b in enumerate(k.blocks) for name in b.labels}
    lanes = [dict.fromkeys(k.registers, 0) for _ in range(3)]
    at: dict[int, int] = dict.fromkeys(range(3), 0)
    for _ in range(200):
        if not at:
            return
        block = choose(set(at.values()))
        together = [lane for lane, b in at.items() if b == block]
        for inst in k.blocks[block].insts:
            reads, writes = ISA.reads_writes(inst)
            _agree(reads, together, lanes, uniform)
            for lane in together:
                _step(inst, lanes[lane], lane)
            _agree(writes, together, lanes, uniform)
        last = k.blocks[block].insts[-1] if k.blocks[block].insts else None
        for lane in together:
            target = _next(last, lanes[lane], block, labels)
            if target is None or target >= len(k.blocks):
                del at[lane]
            else:
                at[lane] = target
        if len({at[lane] for lane in together if lane in at}) > 1:
            assert block in uniform.divergent


def _agree(names: Iterable[str], together: list[int], lanes: list[dict[str, int]], found: ptx.Uniformity) -> None:
    """What is called uniform is the same in the lanes that are together."""
    for name in names:
        assert name in found.varying or len({lanes[lane][name] for lane in together}) == 1, name


def _holds(inst: ir.Inst, registers: dict[str, int]) -> bool:
    return inst.guard is None or bool(registers[inst.guard.reg.name]) != inst.guard.negated


def _step(inst: ir.Inst, registers: dict[str, int], lane: int) -> None:
    if not _holds(inst, registers) or inst.op in ("bra", "ret"):
        return
    d, *rest = inst.operands
    values = [
        registers[o.name] if isinstance(o, ir.Reg) else lane if isinstance(o, ir.Special) else o.value for o in rest
    ]  # type: ignore[union-attr]
    value = values[0] if inst.op == "mov" else sum(values) if inst.op == "add" else int(values[0] < values[1])
    registers[d.name] = value  # type: ignore[union-attr]


def _next(last: ir.Inst | None, registers: dict[str, int], block: int, labels: dict[str, int]) -> int | None:
    if last is None or last.op not in ("bra", "ret") or not _holds(last, registers):
        return block + 1
    return None if last.op == "ret" else labels[last.operands[0].name]  # type: ignore[union-attr]
