"""Shuffles, votes, matches, reductions: member masks, segments, lanes that are elsewhere or have ended."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.assembly import STORE, launch, words

LANE = np.arange(32)


def _shuffled(mode: str, b: int, c: int) -> list[int]:
    """PTX ISA 'shfl.sync', pseudocode, over lane values 10 + lane; plus 1000 where the source is in range."""
    out = []
    clamp, segment = c & 31, c >> 8 & 31
    for lane in range(32):
        most, least = (lane & segment) | (clamp & ~segment & 31), lane & segment
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | (b & ~segment & 31)}[mode]
        inside = j >= most if mode == "up" else j <= most
        out.append((10 + j if inside else 10 + lane) + (1000 if inside else 0))
    return out


@pytest.mark.parametrize(
    ("mode", "b", "c"),
    [("up", 1, 0), ("up", 3, 0x1800), ("down", 1, 31), ("down", 5, 0x181F), ("bfly", 16, 31), ("bfly", 3, 31),
     ("bfly", 8, 0x181F), ("idx", 0, 31), ("idx", 13, 31), ("idx", 5, 0x1C1F), ("idx", 31, 15)],
)  # fmt: skip
def test_shuffle(mode: str, b: int, c: int) -> None:
    body = f"""
        add.u32 %r2, %r0, 10;
        shfl.sync.{mode}.b32 %r3|%p1, %r2, {b}, {c}, 0xffffffff;
        @%p1 add.u32 %r3, %r3, 1000;
    """
    assert (words(body + STORE) == _shuffled(mode, b, c)).all()


def test_shuffle_with_a_source_lane_of_its_own_a_lane() -> None:
    body = """
        mul.lo.u32 %r2, %r0, %r0;
        mul.lo.u32 %r4, %r0, 7;
        shfl.sync.idx.b32 %r3, %r2, %r4, 31, -1;
    """
    assert (words(body + STORE) == (LANE * 7 % 32) ** 2).all()


def test_shuffle_within_the_lanes_of_a_branch() -> None:
    body = """
        mov.u32 %r3, 0;
        setp.ge.u32 %p1, %r0, 8;
        @%p1 bra JOIN;
        shfl.sync.bfly.b32 %r3, %r0, 7, 31, 0xff;
        add.u32 %r3, %r3, 100;
    JOIN:
    """
    assert (words(body + STORE) == np.where(LANE < 8, 107 - LANE, 0)).all()


def test_lanes_wait_for_their_member_mask() -> None:
    """The lanes come to the vote through a loop of different lengths, and vote together all the same."""
    body = """
        mov.u32 %r4, 0;
    TOP:
        add.u32 %r4, %r4, 1;
        setp.lt.u32 %p1, %r4, %r0;
        @%p1 bra TOP;
        and.b32 %r5, %r0, 1;
        setp.eq.u32 %p2, %r5, 1;
        vote.sync.ballot.b32 %r3, %p2, -1;
    """
    assert (words(body + STORE) == 0xAAAAAAAA).all()


def test_one_vote_reached_by_two_paths() -> None:
    """Both paths have to come to the same instruction before it runs."""
    body = """
        setp.lt.u32 %p1, %r0, 8;
        mov.u32 %r4, 0;
        @%p1 bra VOTE;
    SPIN:
        add.u32 %r4, %r4, 1;
        setp.lt.u32 %p2, %r4, 50;
        @%p2 bra SPIN;
    VOTE:
        vote.sync.ballot.b32 %r3, %p1, -1;
    """
    assert (words(body + STORE) == 0xFF).all()


def test_lanes_that_ended_are_not_waited_for() -> None:
    body = """
        setp.ge.u32 %p1, %r0, 20;
        @%p1 ret;
        setp.ge.u32 %p2, %r0, 4;
        vote.sync.ballot.b32 %r3, %p2, -1;
    """
    assert (words(body + STORE)[:20] == 0xFFFF0).all()


def test_lanes_that_end_later_release_those_that_wait() -> None:
    body = """
        setp.ge.u32 %p1, %r0, 20;
        @%p1 bra OUT;
        setp.ge.u32 %p2, %r0, 4;
        vote.sync.ballot.b32 %r3, %p2, -1;
        st.global.u32 [%rd1], %r3;
        ret;
    OUT:
        ret;
    """
    assert (words(body)[:20] == 0xFFFF0).all()


def test_votes() -> None:
    for mode, limit, expected in [
        ("all", 32, 1), ("all", 31, 0), ("any", 0, 0), ("any", 1, 1), ("uni", 0, 1), ("uni", 32, 1), ("uni", 7, 0),
    ]:  # fmt: skip
        body = f"""
            setp.lt.u32 %p1, %r0, {limit};
            vote.sync.{mode}.pred %p2, %p1, -1;
            selp.u32 %r3, 1, 0, %p2;
        """
        assert (words(body + STORE) == expected).all(), (mode, limit)


def test_vote_of_a_negated_predicate() -> None:
    body = "setp.lt.u32 %p1, %r0, 4;\nvote.sync.ballot.b32 %r3, !%p1, -1;\n"
    assert (words(body + STORE) == 0xFFFFFFF0).all()


MASKS = """
        setp.lt.u32 %p1, %r0, 16;
        selp.b32 %r4, 0x0000ffff, 0xffff0000, %p1;
"""


def test_groups_with_masks_of_their_own_vote_apart() -> None:
    """Two halves of a warp execute one vote together, each with its own member mask (as cooperative groups do)."""
    body = MASKS + "setp.lt.u32 %p2, %r0, 20;\nvote.sync.ballot.b32 %r3, %p2, %r4;\n"
    assert (words(body + STORE) == np.where(LANE < 16, 0xFFFF, 0x000F0000)).all()
    body = MASKS + "setp.lt.u32 %p2, %r0, 20;\nvote.sync.all.pred %p3, %p2, %r4;\nselp.u32 %r3, 1, 0, %p3;\n"
    assert (words(body + STORE) == np.where(LANE < 16, 1, 0)).all()


def test_groups_with_masks_of_their_own_reduce_apart() -> None:
    body = MASKS + "redux.sync.add.u32 %r3, %r0, %r4;\n"
    assert (words(body + STORE) == np.where(LANE < 16, sum(range(16)), sum(range(16, 32)))).all()


def test_four_groups_match_and_reduce_in_a_kernel_that_diverges() -> None:
    body = """
        shr.u32 %r5, %r0, 3;
        mul.lo.u32 %r6, %r5, 8;
        mov.u32 %r7, 0xff;
        shl.b32 %r4, %r7, %r6;
        mov.u32 %r3, 0;
        setp.eq.u32 %p1, %r5, 2;
        @%p1 bra JOIN;
        redux.sync.max.u32 %r3, %r0, %r4;
        match.any.sync.b32 %r8, 1, %r4;
        add.u32 %r3, %r3, %r8;
    JOIN:
    """
    group = LANE // 8
    expected = np.where(group == 2, 0, group * 8 + 7 + (0xFF << (group * 8)))
    assert (words(body + STORE) == expected).all()


def test_group_that_is_complete_does_not_wait_for_another() -> None:
    """The low half votes while the high half, which it will release, still spins elsewhere."""
    body = """
        .shared .align 4 .b32 flag;
        mov.u32 %r5, 0;
        st.shared.u32 [flag], %r5;
        setp.lt.u32 %p1, %r0, 16;
        selp.b32 %r4, 0x0000ffff, 0xffff0000, %p1;
        bar.warp.sync -1;
        @%p1 bra VOTE;
        setp.ne.u32 %p2, %r0, 31;
        @%p2 bra VOTE;
    SPIN:
        ld.volatile.shared.u32 %r5, [flag];
        setp.eq.u32 %p3, %r5, 0;
        @%p3 bra SPIN;
    VOTE:
        vote.sync.ballot.b32 %r3, %p1, %r4;
        st.volatile.shared.u32 [flag], 1;
    """
    assert (words(body + STORE) == np.where(LANE < 16, 0xFFFF, 0)).all()


def test_match_any_and_all() -> None:
    body = "shr.u32 %r4, %r0, 3;\nmatch.any.sync.b32 %r3, %r4, -1;\n"
    assert (words(body + STORE) == 0xFF << (LANE // 8 * 8)).all()
    body = """
        mov.u64 %rd4, 0x500000001;
        match.all.sync.b64 %r3|%p1, %rd4, -1;
        @!%p1 mov.u32 %r3, 7;
    """
    assert (words(body + STORE) == 0xFFFFFFFF).all()
    body = """
        setp.eq.u32 %p2, %r0, 9;
        selp.u32 %r4, 1, 0, %p2;
        match.all.sync.b32 %r3|%p1, %r4, -1;
        @%p1 mov.u32 %r3, 7;
    """
    assert (words(body + STORE) == 0).all()


@pytest.mark.parametrize(
    ("op", "type", "expected"),
    [("add", "u32", 496 + 32 * 3), ("min", "u32", 3), ("max", "u32", 34), ("and", "b32", 0), ("or", "b32", 63),
     ("xor", "b32", 32 ^ 33 ^ 34 ^ 0 ^ 1 ^ 2)],
)  # fmt: skip
def test_redux(op: str, type: str, expected: int) -> None:
    body = f"add.u32 %r4, %r0, 3;\nredux.sync.{op}.{type} %r3, %r4, -1;\n"
    assert (words(body + STORE) == expected).all()


def test_redux_is_signed_when_it_says_so() -> None:
    body = "sub.s32 %r4, %r0, 20;\nredux.sync.min.s32 %r3, %r4, -1;\n"
    assert (words(body + STORE) == np.uint32(-20 & 0xFFFFFFFF)).all()
    body = "sub.s32 %r4, %r0, 20;\nredux.sync.max.s32 %r3, %r4, -1;\n"
    assert (words(body + STORE) == 11).all()


def test_member_mask_without_the_executing_lane_is_a_finding() -> None:
    finding = launch("shfl.sync.idx.b32 %r3, %r0, 0, 31, 0xfffffffd;\n" + STORE, np.zeros(32, np.uint32)).findings[0]
    assert finding.kind == "bad-member-mask" and finding.evidence["lane"] == 1


def test_waiting_for_a_lane_that_waits_elsewhere_is_a_finding() -> None:
    body = """
        setp.lt.u32 %p1, %r0, 16;
        @%p1 bra LOW;
        vote.sync.ballot.b32 %r3, %p1, -1;
        bra JOIN;
    LOW:
        vote.sync.any.pred %p2, %p1, -1;
    JOIN:
    """
    finding = launch(body + STORE, np.zeros(32, np.uint32)).findings[0]
    assert finding.kind == "warp-deadlock"
    assert "16 lanes" in finding.message and "vote.sync" in finding.message
