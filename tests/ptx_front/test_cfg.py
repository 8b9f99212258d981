"""Basic blocks, control flow and liveness on cases small enough to check by hand, and against a naive solver."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptx
from ptx import ir
from ptx.errors import InvalidInput
from tests.ptx_front.texts import ISA, kernel, sample, sample_names

DIAMOND = """
setp.eq.s32 %p1, %r1, 0;
@%p1 bra ELSE;
mov.b32 %r2, 1;
bra JOIN;
ELSE: mov.b32 %r2, 2;
JOIN: add.s32 %r3, %r2, %r1;
ret;"""

LOOP = """
mov.b32 %r1, 0;
TOP: setp.eq.s32 %p1, %r1, %r5;
@%p1 bra OUT;
add.s32 %r1, %r1, 1;
bra TOP;
OUT: st.global.b32 [%rd1], %r1;
ret;"""


def test_blocks_are_cut_after_transfers_and_before_targets() -> None:
    blocks = kernel("UNUSED: mov.b32 %r1, 1;\nALSO: mov.b32 %r2, 1;\n@%p1 bra L;\nret;\nL: M: exit;\nEND:").blocks
    assert [(b.labels, [i.op for i in b.insts]) for b in blocks] == [
        (("UNUSED",), ["mov", "mov", "bra"]),
        ((), ["ret"]),
        (("L", "M"), ["exit"]),
    ]


def test_a_label_at_the_end_that_is_branched_to_keeps_its_place() -> None:
    k = kernel("@%p1 bra END;\nmov.b32 %r1, 1;\nEND:")
    assert [b.labels for b in k.blocks] == [(), (), ("END",)]
    assert ptx.control_flow(k).successors == ((2, 1), (2,), ())


def test_diamond() -> None:
    cfg = ptx.control_flow(kernel(DIAMOND))
    assert cfg.successors == ((2, 1), (3,), (3,), ())
    assert cfg.predecessors == ((), (0,), (0,), (1, 2))
    assert cfg.order == (0, 1, 2, 3)
    assert cfg.idom == (None, 0, 0, 0)
    assert cfg.ipdom == (3, 3, 3, None)
    assert cfg.back_edges == frozenset()
    assert cfg.exits == {3}
    assert cfg.dominates(0, 3) and cfg.dominates(3, 3) and not cfg.dominates(1, 3)


def test_loop() -> None:
    cfg = ptx.control_flow(kernel(LOOP))
    assert cfg.successors == ((1,), (3, 2), (1,), ())
    assert cfg.back_edges == {(2, 1)}
    assert cfg.loop_depth == (0, 1, 1, 0)
    assert cfg.order == (0, 1, 2, 3)
    assert cfg.ipdom == (1, 3, 1, None)


def test_what_leaves_a_loop_in_the_middle_comes_after_it() -> None:
    body = """
    TOP: @%p1 bra FOUND;
    add.s32 %r1, %r1, 1;
    @%p2 bra TOP;
    bra DONE;
    FOUND: mov.b32 %r2, 1;
    DONE: ret;"""
    k = kernel(body)
    cfg = ptx.control_flow(k)
    place = {label: cfg.index[i] for i, b in enumerate(k.blocks) for label in b.labels}
    assert place["TOP"] == 0
    assert cfg.index[1] == 1  # the rest of the loop
    assert place["FOUND"] < place["DONE"]
    # also when the exit stands before the loop's body in the text
    early = kernel("bra TOP;\nOUT: ret;\nTOP: @%p1 bra OUT;\nadd.s32 %r1, %r1, 1;\nbra TOP;")
    assert ptx.control_flow(early).order == (0, 2, 3, 1)


def test_nested_loops_are_ordered_inside_out() -> None:
    body = """
    OUTER: mov.b32 %r1, 0;
    INNER: @%p1 bra NEXT;
    bra INNER;
    NEXT: @%p2 bra OUTER;
    ret;"""
    cfg = ptx.control_flow(kernel(body))
    assert cfg.loop_depth == (1, 2, 2, 1, 0)
    assert cfg.order == (0, 1, 2, 3, 4)
    assert cfg.back_edges == {(2, 1), (3, 0)}


def test_indirect_branch_guarded_exit_and_unreachable_code() -> None:
    body = """
    ts: .branchtargets A, B, A;
    @%p1 exit;
    brx.idx %r1, ts;
    mov.b32 %r9, 1;
    A: ret;
    B: bra B;"""
    cfg = ptx.control_flow(kernel(body))
    assert cfg.successors == ((1,), (3, 4), (3,), (), (4,))
    assert cfg.unreachable == {2}
    assert cfg.exits == {0, 3}
    assert cfg.ipdom[0] is None  # some threads end there
    assert cfg.ipdom[4] is None  # nothing leaves it
    assert cfg.back_edges == {(4, 4)}
    assert cfg.index[2] == 4


def test_branches_to_nowhere() -> None:
    with pytest.raises(InvalidInput, match="branch to label `X`, which `k` does not have"):
        ptx.control_flow(kernel("bra X;"))
    with pytest.raises(InvalidInput, match=r"needs the name of a \.branchtargets list"):
        ptx.control_flow(kernel("brx.idx %r1, nothing;"))


# ------------------------------------------------------------------------------------------------ liveness
def test_liveness_of_a_diamond() -> None:
    live = ptx.liveness(kernel(DIAMOND), ISA.reads_writes)
    assert live.live_in == ({"%r1"}, {"%r1"}, {"%r1"}, {"%r1", "%r2"})
    assert live.live_out == ({"%r1"}, {"%r1", "%r2"}, {"%r1", "%r2"}, frozenset())
    assert live.live_after(0, 0) == {"%p1", "%r1"}
    assert live.live_before(0, 0) == {"%r1"}
    with pytest.raises(IndexError):
        live.live_after(0, 7)


def test_liveness_of_a_loop() -> None:
    live = ptx.liveness(kernel(LOOP), ISA.reads_writes)
    assert live.live_in[0] == {"%r5", "%rd1"}
    assert live.live_in[1] == live.live_in[2] == {"%r1", "%r5", "%rd1"}
    assert live.live_in[3] == {"%r1", "%rd1"}


def test_a_guarded_write_keeps_the_old_value() -> None:
    live = ptx.liveness(
        kernel("mov.b32 %r1, 0;\n@%p1 mov.b32 %r1, 1;\nst.global.b32 [%rd1], %r1;\nret;"), ISA.reads_writes
    )
    assert live.live_in[0] == {"%p1", "%rd1"}
    assert live.live_after(0, 0) == {"%p1", "%rd1", "%r1"}
    walked = {i: frozenset(s) for i, s in live.walk_back(0)}
    assert walked == {i: live.live_after(0, i) for i in range(4)}


def naive(kernel: ir.Kernel) -> dict[tuple[int, int], frozenset[str]]:
    """Live before each instruction, by iterating over single instructions until nothing changes."""
    cfg = ptx.control_flow(kernel)
    before: dict[tuple[int, int], frozenset[str]] = {}
    changed = True
    while changed:
        changed = False
        for b, block in enumerate(kernel.blocks):
            after = frozenset().union(*(before.get((s, 0), frozenset()) for s in cfg.successors[b]))
            for i in range(len(block.insts) - 1, -1, -1):
                inst = block.insts[i]
                reads, writes = map(set, ISA.reads_writes(inst))
                if inst.guard:
                    reads |= writes | {inst.guard.reg.name}
                    writes = set()
                after = frozenset((after - writes) | reads)
                if before.get((b, i)) != after:
                    before[b, i], changed = after, True
    return before


_statements = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 5), st.integers(1, 5), st.booleans()).map(
            lambda t: f"{'@%p1 ' if t[2] else ''}add.s32 %r{t[0]}, %r{t[1]}, 1;"
        ),
        st.tuples(st.integers(0, 4), st.booleans()).map(lambda t: f"{'@%p1 ' if t[1] else ''}bra L{t[0]};"),
        st.integers(1, 5).map(lambda r: f"setp.eq.s32 %p1, %r{r}, 0;"),
        st.just("@%p1 ret;"),
    ),
    min_size=5,
    max_size=14,
)


@settings(deadline=None, derandomize=True)
@given(_statements, st.lists(st.integers(0, 13), min_size=5, max_size=5))
def test_liveness_and_order_of_any_program(statements: list[str], places: list[int]) -> None:
    lines = [""] * (len(statements) + 1)
    for label, place in enumerate(places):
        lines[place % len(lines)] += f"L{label}: "
    body = "\n".join(a + b for a, b in zip(lines, [*statements, "ret;"], strict=True))
    k = kernel(body)
    cfg, live, expected = ptx.control_flow(k), ptx.liveness(k, ISA.reads_writes), naive(k)
    for (b, i), names in expected.items():
        assert live.live_before(b, i) == names
    # order: a permutation that starts at the entry; every edge forward or a back edge; dominators come first
    assert sorted([*cfg.order, *cfg.unreachable]) == list(range(len(k.blocks)))
    assert cfg.order[0] == 0
    for b in cfg.order:
        dominator = cfg.idom[b]
        assert dominator is None or cfg.index[dominator] < cfg.index[b]
        for s in cfg.successors[b]:
            assert (cfg.index[b] < cfg.index[s]) != ((b, s) in cfg.back_edges)
    for b in cfg.order:
        for a in cfg.order:
            assert cfg.dominates(a, b) == (a == b or not _reaches(cfg, 0, b, without=a))
            if (join := cfg.ipdom[a]) is not None:
                assert not _ends(cfg, a, without=join)


def _reaches(cfg: ptx.Cfg, start: int, goal: int, without: int) -> bool:
    seen: set[int] = {without}
    work = [start]
    while work:
        b = work.pop()
        if b not in seen:
            seen.add(b)
            if b == goal:
                return True
            work += cfg.successors[b]
    return False


def _ends(cfg: ptx.Cfg, start: int, without: int) -> bool:
    """Whether some path from `start` ends the thread without passing a block."""
    return any(_reaches(cfg, start, e, without) for e in cfg.exits)


@pytest.mark.parametrize("name", sample_names())
def test_no_real_kernel_reads_what_nothing_wrote(name: str) -> None:
    for k in ptx.parse(sample(name)).kernels:
        live = ptx.liveness(k, roughly)
        assert live.live_in[0] == frozenset() or name == "functions_sm80"


def roughly(inst: ir.Inst) -> tuple[list[str], list[str]]:
    """Reads and writes by PTX's habit: the first operand is written unless it is an address or nothing is."""
    from ptx.record import registers

    named = [[r.name for r in registers(o)] for o in inst.operands]
    if ".try_wait" in inst.mods:
        return named[1], named[0]
    first = inst.operands[0] if inst.operands else None
    silent = inst.op in ("st", "red", "bar", "barrier", "call", "tcgen05", "cp", "mbarrier") or isinstance(
        first, ir.Mem
    )
    if silent or first is None:
        return [n for names in named for n in names], []
    return [n for names in named[1:] for n in names], named[0]
