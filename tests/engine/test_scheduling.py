"""Progress: locks between lanes, warps and CTAs end; what cannot end is a finding, within its fuel."""

from __future__ import annotations

import numpy as np

from interp.launch import Module
from tests.engine.assembly import launch, text, words

LOCKED_INCREMENT = """
        ld.param.u64 %rd2, [p1];
    AGAIN:
        atom.global.cas.b32 %r4, [%rd2], 0, 1;
        setp.ne.u32 %p1, %r4, 0;
        @%p1 bra AGAIN;
        ld.volatile.global.u32 %r5, [%rd0];
        add.u32 %r5, %r5, 1;
        st.volatile.global.u32 [%rd0], %r5;
        membar.gl;
        atom.global.exch.b32 %r6, [%rd2], 0;
        ret;
"""


def test_spin_lock_between_the_lanes_of_a_warp_ends() -> None:
    """Legal since Volta: a lane that holds the lock gets its turn although 31 others spin."""
    counter, lock = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    assert launch(LOCKED_INCREMENT, counter, lock).findings == ()
    assert counter[0] == 32 and lock[0] == 0


def test_spin_lock_of_a_whole_block_and_grid_ends() -> None:
    counter, lock = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    assert launch(LOCKED_INCREMENT, counter, lock, block=128, grid=4).findings == ()
    assert counter[0] == 512


def test_cta_may_wait_for_a_later_one() -> None:
    """CTA 0 waits for a flag that the last CTA sets: all of them are resident on the device, so this ends."""
    body = """
        ld.param.u64 %rd2, [p1];
        mov.u32 %r2, %ctaid.x;
        setp.eq.u32 %p1, %r2, 7;
        @%p1 st.global.u32 [%rd2], 1;
        setp.ne.u32 %p2, %r2, 0;
        @%p2 ret;
    WAIT:
        ld.volatile.global.u32 %r3, [%rd2];
        setp.eq.u32 %p3, %r3, 0;
        @%p3 bra WAIT;
        st.global.u32 [%rd0], %r3;
        ret;
    """
    out, flag = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    result = launch(body, out, flag, grid=8, block=1)
    assert result.findings == () and out[0] == 1 and result.resident > 1


def test_waiting_for_a_cta_that_cannot_be_resident_is_a_finding() -> None:
    """A device that holds 16 x 2 CTAs of this size (Jetson: 16 multiprocessors, 2 CTAs of 64 KiB each) and a 33rd."""
    body = """
        .shared .align 4 .b8 big[65536];
        mov.u32 %r2, %ctaid.x;
        mov.u32 %r4, big;
        setp.eq.u32 %p1, %r2, 32;
        @%p1 st.global.u32 [%rd0], 1;
        @%p1 ret;
    WAIT:
        ld.volatile.global.u32 %r3, [%rd0];
        setp.eq.u32 %p3, %r3, 0;
        @%p3 bra WAIT;
        ret;
    """
    out = np.zeros(1, np.uint32)
    entry = Module.from_ptx(text(body), device="sm_87")["k"]
    (finding,) = entry.launch(grid=33, block=32, args=[out], fuel=2_000_000).findings
    assert finding.kind == "no-progress" and out[0] == 0
    assert entry.launch(grid=33, block=32, args=[out], ctas=[(i, 0, 0) for i in range(2, 33)]).findings == ()


def test_loop_without_an_end_uses_up_the_fuel() -> None:
    body = """
    TOP:
        add.u32 %r3, %r3, 1;
        bra TOP;
    """
    (finding,) = launch(body, np.zeros(32, np.uint32), fuel=1000).findings
    assert finding.kind == "no-progress"
    assert "1000 taken back edges" in finding.message and "warp 0 runs" in finding.message


def test_loop_without_an_end_in_some_lanes() -> None:
    body = """
        setp.lt.u32 %p1, %r0, 31;
        @%p1 bra END;
    TOP:
        add.u32 %r3, %r3, 1;
        bra TOP;
    END:
        st.global.u32 [%rd1], %r0;
        ret;
    """
    (finding,) = launch(body, np.zeros(32, np.uint32), fuel=300_000).findings
    assert finding.kind == "no-progress"


def test_fuel_that_is_just_enough() -> None:
    body = """
        mov.u32 %r3, 0;
    TOP:
        add.u32 %r3, %r3, 1;
        setp.lt.u32 %p1, %r3, 101;
        @%p1 bra TOP;
        st.global.u32 [%rd1], %r3;
        ret;
    """
    assert (words(body, fuel=101) == 101).all()
    assert launch(body, np.zeros(32, np.uint32), fuel=99).findings[0].kind == "no-progress"


def test_long_loop_is_not_a_finding() -> None:
    """More turns than a slice of fuel has, with other warps and CTAs beside it."""
    body = """
        mov.u32 %r3, 0;
    TOP:
        add.u32 %r3, %r3, 1;
        setp.lt.u32 %p1, %r3, 250000;
        @%p1 bra TOP;
        mov.u32 %r4, %ctaid.x;
        mad.lo.u32 %r4, %r4, 64, %r0;
        mad.wide.u32 %rd1, %r4, 4, %rd0;
        st.global.u32 [%rd1], %r3;
        ret;
    """
    assert (words(body, block=64, grid=3, size=192) == 250000).all()


def test_launch_after_one_that_stopped_starts_fresh() -> None:
    """Slots, queues and barriers of a launch that faulted do not leak into the next one."""
    body = """
        ld.param.u64 %rd2, [p1];
        bar.sync 0;
        setp.ge.u32 %p1, %r0, 32;
        @%p1 ld.global.u32 %r3, [%rd2];
        bar.sync 0;
        st.global.u32 [%rd1], %r0;
        ret;
    """
    entry = Module.from_ptx(text(body, ["p1"]))["k"]
    out = np.zeros(64, np.uint32)
    assert entry.launch(grid=2, block=64, args=[out, 0]).findings[0].kind == "out-of-bounds"
    assert entry.launch(grid=2, block=64, args=[out, out]).findings == ()
    assert (out == np.arange(64)).all()
