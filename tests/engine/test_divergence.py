"""Lanes of a warp on different paths: every thread's answer is what it would compute alone, and lanes meet again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.assembly import STORE, launch, words

LANE = np.arange(32, dtype=np.uint32)


def test_if_else() -> None:
    body = """
        and.b32 %r2, %r0, 1;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 bra EVEN;
        mul.lo.u32 %r3, %r0, 100;
        bra JOIN;
    EVEN:
        add.u32 %r3, %r0, 7;
    JOIN:
        add.u32 %r3, %r3, 1;
    """
    assert (words(body + STORE) == np.where(LANE % 2 == 0, LANE + 8, LANE * 100 + 1)).all()


def test_register_kept_by_lanes_that_are_elsewhere() -> None:
    """A slot of the frame is written on one path only; the other lanes keep what they had."""
    body = """
        add.u32 %r3, %r0, 1000;
        cvt.u64.u32 %rd3, %r3;
        setp.lt.u32 %p2, %r0, 8;
        setp.lt.u32 %p1, %r0, 20;
        @!%p1 bra JOIN;
        mov.u32 %r3, 5;
        mov.u64 %rd3, 6;
        setp.ge.u32 %p2, %r0, 8;
    JOIN:
        cvt.u32.u64 %r4, %rd3;
        add.u32 %r3, %r3, %r4;
        selp.u32 %r5, 1, 0, %p2;
        add.u32 %r3, %r3, %r5;
    """
    taken = LANE < 20
    expected = np.where(taken, 11, 2 * (LANE + 1000)) + np.where(taken, LANE >= 8, LANE < 8)
    assert (words(body + STORE) == expected).all()


def test_loop_with_its_own_number_of_turns_a_lane() -> None:
    body = """
        mov.u32 %r3, 0;
        mov.u32 %r4, 0;
    TOP:
        setp.ge.u32 %p1, %r4, %r0;
        @%p1 bra DONE;
        add.u32 %r4, %r4, 1;
        add.u32 %r3, %r3, %r4;
        bra TOP;
    DONE:
    """
    assert (words(body + STORE, block=80) == [t * (t + 1) // 2 for t in range(80)]).all()


def test_loop_with_break_and_continue() -> None:
    """Sum of the odd numbers below 40, but a lane breaks off at three times its index."""
    body = """
        mov.u32 %r3, 0;
        mov.u32 %r4, 0;
        mul.lo.u32 %r5, %r0, 3;
    TOP:
        setp.eq.u32 %p1, %r4, %r5;
        @%p1 bra DONE;
        add.u32 %r4, %r4, 1;
        and.b32 %r6, %r4, 1;
        setp.eq.u32 %p2, %r6, 0;
        @%p2 bra NEXT;
        add.u32 %r3, %r3, %r4;
    NEXT:
        setp.lt.u32 %p3, %r4, 39;
        @%p3 bra TOP;
    DONE:
    """
    assert (words(body + STORE) == [sum(n for n in range(min(3 * t, 39) + 1) if n % 2) for t in range(32)]).all()


def test_nested_ifs_and_an_inner_loop() -> None:
    body = """
        mov.u32 %r3, 0;
        and.b32 %r4, %r0, 3;
        setp.lt.u32 %p1, %r0, 16;
        @!%p1 bra HIGH;
        setp.eq.u32 %p2, %r4, 0;
        @%p2 bra ZERO;
        setp.eq.u32 %p3, %r4, 1;
        @%p3 bra ONE;
        mov.u32 %r3, 300;
        bra LOW_END;
    ONE:
        mov.u32 %r3, 200;
        bra LOW_END;
    ZERO:
        add.u32 %r3, %r3, 10;
        setp.lt.u32 %p4, %r3, %r0;
        @%p4 bra ZERO;
    LOW_END:
        add.u32 %r3, %r3, 1;
        bra JOIN;
    HIGH:
        sub.u32 %r3, %r0, 16;
    JOIN:
        shl.b32 %r3, %r3, 1;
    """

    def one(t: int) -> int:
        if t >= 16:
            return 2 * (t - 16)
        v = [max(10, (t + 9) // 10 * 10), 200, 300, 300][t % 4]
        return 2 * (v + 1)

    assert (words(body + STORE) == [one(t) for t in range(32)]).all()


def test_early_return_of_some_lanes() -> None:
    body = """
        setp.ge.u32 %p1, %r0, 40;
        @%p1 ret;
        and.b32 %r2, %r0, 1;
        setp.eq.u32 %p2, %r2, 1;
        @%p2 exit;
        mov.u32 %r3, %r0;
    """
    t = np.arange(64)
    assert (words(body + STORE, block=64) == np.where((t < 40) & (t % 2 == 0), t, 0xFFFFFFFF)).all()


def test_return_from_inside_a_loop() -> None:
    body = """
        mov.u32 %r3, 0;
    TOP:
        setp.eq.u32 %p1, %r3, %r0;
        @%p1 bra LEAVE;
        add.u32 %r3, %r3, 1;
        bra TOP;
    LEAVE:
        st.global.u32 [%rd1], %r3;
        ret;
    """
    assert (words(body) == LANE).all()


def test_lanes_meet_again_behind_a_branch() -> None:
    """Thread frontiers: at the join all 32 lanes are together."""
    body = """
        setp.lt.u32 %p1, %r0, 5;
        @%p1 bra JOIN;
        add.u32 %r4, %r0, 1;
        setp.lt.u32 %p1, %r0, 11;
        @%p1 bra JOIN;
        add.u32 %r4, %r0, 2;
    JOIN:
        activemask.b32 %r3;
    """
    assert (words(body + STORE) == 0xFFFFFFFF).all()
    assert (words(body + STORE, block=20) == 0xFFFFF).all()


def test_lanes_meet_again_behind_a_loop() -> None:
    body = """
        mov.u32 %r4, 0;
    TOP:
        add.u32 %r4, %r4, 1;
        setp.lt.u32 %p1, %r4, %r0;
        @%p1 bra TOP;
        activemask.b32 %r3;
    """
    assert (words(body + STORE) == 0xFFFFFFFF).all()


def test_active_lanes_inside_a_branch() -> None:
    body = """
        mov.u32 %r3, 0;
        setp.lt.u32 %p1, %r0, 5;
        @%p1 bra JOIN;
        activemask.b32 %r3;
    JOIN:
    """
    assert (words(body + STORE) == np.where(LANE < 5, 0, 0xFFFFFFE0)).all()


def test_predicated_memory_accesses() -> None:
    """Lanes whose guard is false keep their register, and their address is not looked at."""
    source = np.arange(32, dtype=np.uint32) * 3
    body = """
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd3, %r0, 4, %rd2;
        mov.u32 %r3, 77;
        setp.lt.u32 %p1, %r0, 10;
        @!%p1 mov.u64 %rd3, 0;
        @%p1 ld.global.u32 %r3, [%rd3];
        setp.ne.u32 %p2, %r0, 4;
        @!%p2 mov.u64 %rd1, 1;
        @%p2 st.global.u32 [%rd1], %r3;
        ret;
    """
    expected = np.where(LANE < 10, source, 77)
    expected[4] = 0xFFFFFFFF
    assert (words(body, source) == expected).all()


def test_guard_that_no_lane_has() -> None:
    body = """
        setp.gt.u32 %p1, %r0, 100;
        mov.u32 %r3, 1;
        @%p1 mov.u32 %r3, 2;
        mov.u64 %rd9, 1;
        @%p1 ld.global.u32 %r3, [%rd9];
        @%p1 trap;
    """
    assert (words(body + STORE) == 1).all()


def test_irreducible_loop() -> None:
    """Two entries into one loop: lanes come in at different places."""
    body = """
        mov.u32 %r3, 0;
        setp.lt.u32 %p1, %r0, 16;
        @%p1 bra SECOND;
    FIRST:
        add.u32 %r3, %r3, 1;
    SECOND:
        add.u32 %r3, %r3, 100;
        setp.lt.u32 %p2, %r3, 350;
        @%p2 bra FIRST;
    """
    assert (words(body + STORE) == np.where(LANE < 16, 403, 404)).all()


@pytest.mark.parametrize("space", ["local", "generic"])
def test_branch_on_a_value_from_thread_private_memory(space: str) -> None:
    """All lanes use one local address, yet each finds its own value there: the branch diverges."""
    address = "mov.u64 %rd2, mine;" + ("cvta.local.u64 %rd2, %rd2;" if space == "generic" else "")
    dot = ".local" if space == "local" else ""
    body = f"""
        .local .align 4 .b32 mine;
        {address}
        st{dot}.u32 [%rd2], %r0;
        ld{dot}.u32 %r4, [%rd2];
        mov.u32 %r3, 0;
        setp.lt.u32 %p1, %r4, 8;
        @%p1 bra LOW;
        add.u32 %r3, %r0, 500;
        bra JOIN;
    LOW:
        add.u32 %r3, %r0, 100;
    JOIN:
        add.u32 %r3, %r3, 1;
    """
    assert (words(body + STORE) == np.where(LANE < 8, LANE + 101, LANE + 501)).all()


def test_long_block_is_cut_into_regions() -> None:
    """More instructions than a region holds, in a kernel that diverges and in one that does not."""
    chain = "\n".join("mad.lo.u32 %r3, %r3, 3, 1;" for _ in range(150))
    expected = [0] * 32
    for t in range(32):
        v = t
        for _ in range(150):
            v = (v * 3 + 1) & 0xFFFFFFFF
        expected[t] = v
    assert (words(f"mov.u32 %r3, %r0;\n{chain}\n{STORE}") == expected).all()
    split = f"mov.u32 %r3, 0;\nsetp.lt.u32 %p1, %r0, 9;\n@%p1 bra JOIN;\nmov.u32 %r3, %r0;\n{chain}\nJOIN:\n{STORE}"
    assert (words(split) == np.where(LANE < 9, 0, expected)).all()


def test_trap_of_one_lane_is_a_finding() -> None:
    body = """
        setp.eq.u32 %p1, %r0, 3;
        @%p1 trap;
        st.global.u32 [%rd1], %r0;
        ret;
    """
    finding = launch(body, np.zeros(32, np.uint32)).findings[0]
    assert finding.kind == "trap" and finding.evidence["instruction"] == "trap"
