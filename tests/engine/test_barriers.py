"""CTA barriers: who is waited for, who is released, and the deadlocks that they make."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.assembly import STORE, launch, words

EXCHANGE = """
        .shared .align 4 .b8 buffer[4096];
        mov.u32 %r10, buffer;
        shl.b32 %r11, %r0, 2;
        add.u32 %r11, %r10, %r11;
"""


def test_values_pass_between_warps() -> None:
    body = (
        EXCHANGE
        + """
        st.shared.u32 [%r11], %r0;
        bar.sync 0;
        mov.u32 %r4, 508;
        sub.u32 %r4, %r4, %r11;
        add.u32 %r4, %r4, %r10;
        add.u32 %r4, %r4, %r10;
        ld.shared.u32 %r3, [%r4];
    """
    )
    assert (words(body + STORE, block=128) == 127 - np.arange(128)).all()


def test_barrier_in_a_loop_keeps_the_warps_in_step() -> None:
    """Every turn reads what the neighbour of the next warp wrote in the turn before."""
    body = (
        EXCHANGE
        + """
        mov.u32 %r3, %r0;
        mov.u32 %r4, 0;
        add.u32 %r5, %r0, 32;
        and.b32 %r5, %r5, 127;
        shl.b32 %r5, %r5, 2;
        add.u32 %r5, %r5, %r10;
    TOP:
        st.shared.u32 [%r11], %r3;
        bar.sync 0;
        ld.shared.u32 %r3, [%r5];
        bar.sync 0;
        add.u32 %r4, %r4, 1;
        setp.lt.u32 %p1, %r4, 3;
        @%p1 bra TOP;
    """
    )
    assert (words(body + STORE, block=128) == (np.arange(128) + 96) % 128).all()


def test_warps_that_ended_are_not_waited_for() -> None:
    body = (
        EXCHANGE
        + """
        setp.ge.u32 %p1, %r0, 64;
        @%p1 ret;
        st.shared.u32 [%r11], %r0;
        bar.sync 0;
        xor.b32 %r4, %r11, 128;
        ld.shared.u32 %r3, [%r4];
    """
    )
    got = words(body + STORE, block=128)
    assert (got[:64] == np.arange(64) ^ 32).all() and (got[64:] == 0xFFFFFFFF).all()


def test_lanes_that_ended_are_not_waited_for() -> None:
    body = (
        EXCHANGE
        + """
        and.b32 %r4, %r0, 1;
        setp.eq.u32 %p1, %r4, 1;
        @%p1 ret;
        st.shared.u32 [%r11], %r0;
        barrier.sync 0;
        xor.b32 %r4, %r11, 128;
        ld.shared.u32 %r3, [%r4];
    """
    )
    got = words(body + STORE, block=64)
    assert (got[::2] == np.arange(0, 64, 2) ^ 32).all()


def test_lane_that_ends_does_not_open_the_barrier_for_its_warp() -> None:
    """Lanes 0..15 of warp 0 wait at the barrier, with a shuffle right behind it, when lanes 16..31 end. They must stay
    until warp 1 has come, too."""
    body = """
        .shared .align 4 .b32 word;
        setp.eq.u32 %p3, %r0, 40;
        setp.ge.u32 %p1, %r0, 16;
        setp.lt.u32 %p2, %r0, 32;
        and.pred %p1, %p1, %p2;
        @%p1 bra OUT;
        @%p3 st.shared.u32 [word], 4711;
        barrier.sync 0;
        shfl.sync.idx.b32 %r4, %r0, 0, 31, %r5;
        ld.shared.u32 %r3, [word];
        st.global.u32 [%rd1], %r3;
        ret;
    OUT:
        ret;
    """
    prologue = "setp.lt.u32 %p4, %r0, 32;\nselp.b32 %r5, 0x0000ffff, 0xffffffff, %p4;\n"
    got = words(prologue + body, block=64)
    assert (got[:16] == 4711).all() and (got[16:32] == 0xFFFFFFFF).all() and (got[32:] == 4711).all()


def test_lanes_of_one_warp_at_the_barrier_of_different_branches() -> None:
    """Independent thread scheduling: bar.sync counts threads, and both branches wait at barrier 0."""
    body = """
        setp.lt.u32 %p1, %r0, 16;
        @%p1 bra LOW;
        barrier.sync 0;
        mov.u32 %r3, 1;
        bra JOIN;
    LOW:
        barrier.sync 0;
        mov.u32 %r3, 2;
    JOIN:
    """
    assert (words(body + STORE, block=64)[:32] == np.where(np.arange(32) < 16, 2, 1)).all()


def test_named_barrier_with_a_thread_count() -> None:
    """Warps 0 and 1 meet at barrier 3; warps 2 and 3 do not take part and wait at 0 for the end only."""
    body = (
        EXCHANGE
        + """
        mov.u32 %r3, 0;
        setp.ge.u32 %p1, %r0, 64;
        @%p1 bra JOIN;
        st.shared.u32 [%r11], %r0;
        bar.sync 3, 64;
        xor.b32 %r4, %r11, 128;
        ld.shared.u32 %r3, [%r4];
    JOIN:
        bar.sync 0;
    """
    )
    t = np.arange(128)
    assert (words(body + STORE, block=128) == np.where(t < 64, t ^ 32, 0)).all()


def test_barrier_number_from_a_register() -> None:
    body = (
        EXCHANGE
        + """
        shr.u32 %r6, %r0, 6;
        add.u32 %r6, %r6, 1;
        st.shared.u32 [%r11], %r0;
        bar.sync %r6, 64;
        xor.b32 %r4, %r11, 128;
        ld.shared.u32 %r3, [%r4];
    """
    )
    assert (words(body + STORE, block=128) == np.arange(128) ^ 32).all()


def test_barrier_that_only_some_warps_reach_twice_is_a_deadlock() -> None:
    body = """
        bar.sync 0;
        setp.ge.u32 %p1, %r0, 32;
        @%p1 bra OTHER;
        bar.sync 1;
        ret;
    OTHER:
        bar.sync 2;
        ret;
    """
    result = launch(body, np.zeros(64, np.uint32), block=64, grid=3)
    (finding,) = result.findings
    assert finding.kind == "barrier-deadlock"
    assert "barrier 1" in finding.message and "barrier 2" in finding.message
    assert finding.evidence["cta"] == [0, 0, 0] and len(finding.evidence["waiting"]) == 2


def test_deadlock_names_the_barrier_that_is_waited_at() -> None:
    body = """
        setp.lt.u32 %p1, %r0, 16;
        @%p1 bra LOW;
        barrier.sync 5, 64;
        shfl.sync.idx.b32 %r3, %r0, 0, 31, 0xffff0000;
        ret;
    LOW:
        ret;
    """
    (finding,) = launch(body, np.zeros(32, np.uint32)).findings
    assert finding.kind == "barrier-deadlock"
    assert "16 lanes" in finding.message and "'barrier.sync'" in finding.message


@pytest.mark.parametrize(
    "form", ["bar.sync 0", "bar.cta.sync 0", "barrier.sync 0", "barrier.cta.sync.aligned 0", "barrier.sync.aligned 0"]
)
def test_spellings(form: str) -> None:
    assert (words(f"{form};\nmov.u32 %r3, %r0;\n{STORE}", block=64) == np.arange(64)).all()


@pytest.mark.parametrize("engine", ["compiled", "traced"])
@pytest.mark.parametrize("red", ["bar.red", "bar.cta.red", "barrier.red", "barrier.cta.red"])
def test_predicates_reduced_over_the_block(red: str, engine: str) -> None:
    """Twice in a row, so that one round's outcome is not another's; one barrier for part of the threads."""
    body = f"""
        setp.eq.u32 %p7, %r0, %r0; setp.lt.u32 %p1, %r0, 70; setp.lt.u32 %p2, %r0, 96; setp.ge.u32 %p3, %r0, 96;
        {red}.popc.u32 %r3, 0, %p1;
        {red}.popc.u32 %r4, 0, !%p1;
        {red}.and.pred %p4, 0, %p1;
        {red}.or.pred %p5, 0, %p1;
        {red}.and.pred %p6, 0, %p7;
        mad.lo.u32 %r3, %r3, 1000, %r4;
        @%p4 add.u32 %r3, %r3, 10000000;
        @%p5 add.u32 %r3, %r3, 1000000;
        @%p6 add.u32 %r3, %r3, 2000000;
        @%p2 {red}.popc.u32 %r3, 1, 96, %p1;
    """
    expected = np.where(np.arange(128) < 96, 70, 70 * 1000 + 58 + 3000000)
    assert (words(body + STORE, block=128, engine=engine) == expected).all()


@pytest.mark.parametrize("engine", ["compiled", "traced"])
def test_guarded_barrier(engine: str) -> None:
    body = EXCHANGE + """
        st.shared.u32 [%r11], %r0;
        setp.lt.u32 %p1, %r0, 64;
        @%p1 bar.sync 3, 64;
        mov.u32 %r3, 7;
        @%p1 ld.shared.u32 %r3, [%r10+252];
    """
    assert (words(body + STORE, block=96, engine=engine) == np.where(np.arange(96) < 64, 63, 7)).all()


@pytest.mark.parametrize("engine", ["compiled", "traced"])
@pytest.mark.parametrize("form", ["bar.sync %r5;", "bar.arrive %r5, 64;", "bar.red.popc.u32 %r6, %r5, %p3;"])
def test_there_is_no_barrier_16(form: str, engine: str) -> None:
    """Not even when the number comes from a register, where the assembler cannot see it."""
    body = f"add.u32 %r5, %r0, 15; and.b32 %r5, %r5, 16; setp.eq.u32 %p3, %r0, 0; {form}"
    (finding,) = launch(body + STORE, np.zeros(128, np.uint32), block=128, engine=engine).findings
    assert finding.kind == "bad-barrier" and "no barrier 16" in finding.message and finding.evidence["lane"] == 1
