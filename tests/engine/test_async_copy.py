"""cp.async: what is copied, when it is seen, and that a forgotten wait shows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.assembly import STORE, launch, words

SOURCE = np.arange(1, 129, dtype=np.uint32)
BEGIN = """
        .shared .align 16 .b8 buffer[2048];
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd3, %r0, 4, %rd2;
        mov.u32 %r10, buffer;
        shl.b32 %r11, %r0, 2;
        add.u32 %r11, %r11, %r10;
        cp.async.ca.shared.global [%r11], [%rd3], 4;
"""
LOAD = "        ld.shared.u32 %r3, [%r11];\n" + STORE


@pytest.mark.parametrize("wait", ["cp.async.wait_all;", "cp.async.commit_group;\ncp.async.wait_group 0;"])
def test_copy_is_seen_after_its_wait(wait: str) -> None:
    assert (words(BEGIN + wait + LOAD, SOURCE, block=128) == SOURCE).all()


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        "cp.async.commit_group;",
        "cp.async.wait_group 0;",
        "cp.async.commit_group;\ncp.async.wait_group 1;",
        "bar.sync 0;",
    ],
)
def test_forgotten_wait_shows(nothing: str) -> None:
    """Without a wait that covers it (an uncommitted copy belongs to no group), the old contents are read."""
    assert (words(BEGIN + nothing + LOAD, SOURCE, block=128) == 0xFFFFFFFF).all()


def test_groups_complete_in_order() -> None:
    body = (
        BEGIN
        + """
        cp.async.commit_group;
        cp.async.ca.shared.global [%r11+512], [%rd3], 4;
        cp.async.commit_group;
        cp.async.ca.shared.global [%r11+1024], [%rd3], 4;
        cp.async.commit_group;
        cp.async.wait_group 1;
        ld.shared.u32 %r3, [%r11];
        ld.shared.u32 %r4, [%r11+512];
        ld.shared.u32 %r5, [%r11+1024];
        add.u32 %r3, %r3, %r4;
        add.u32 %r5, %r5, 1;
        mad.lo.u32 %r3, %r5, 1000, %r3;
    """
    )
    assert (words(body + STORE, SOURCE, block=128) == 2 * SOURCE).all()


def test_bytes_beyond_the_count_are_zero_and_not_read() -> None:
    source = np.arange(1, 9, dtype=np.uint32)
    body = """
        .shared .align 16 .b8 buffer[32];
        ld.param.u64 %rd2, [p1];
        mov.u32 %r10, buffer;
        cp.async.cg.shared.global [%r10], [%rd2+16], 16, 12;
        mov.u32 %r4, 0;
        cp.async.cg.shared.global [%r10+16], [%rd2+64], 16, %r4;
        cp.async.wait_all;
        ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r10];
        st.global.v4.u32 [%rd0], {%r4, %r5, %r6, %r7};
        ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r10+16];
        st.global.v4.u32 [%rd0+16], {%r4, %r5, %r6, %r7};
        ret;
    """
    out = np.full(8, 77, np.uint32)
    assert launch(body, out, source, block=1).findings == ()
    assert list(out) == [5, 6, 7, 0, 0, 0, 0, 0]


def test_lanes_have_groups_of_their_own() -> None:
    """Lanes that skip the wait still see their old bytes."""
    body = (
        BEGIN
        + """
        cp.async.commit_group;
        and.b32 %r4, %r0, 1;
        setp.eq.u32 %p1, %r4, 1;
        @%p1 bra SKIP;
        cp.async.wait_group 0;
    SKIP:
        ld.shared.u32 %r3, [%r11];
    """
    )
    assert (words(body + STORE, SOURCE) == np.where(np.arange(32) % 2, 0xFFFFFFFF, SOURCE[:32])).all()


def test_out_of_bounds_is_found_at_the_copy() -> None:
    (finding,) = launch(BEGIN + "cp.async.wait_all;" + LOAD, np.zeros(128, np.uint32), SOURCE[:100], block=128).findings
    assert finding.kind == "out-of-bounds" and finding.array == "p1" and finding.index == (100,)
    assert finding.evidence["instruction"].startswith("cp.async") and finding.evidence["thread"] == [100, 0, 0]


def test_many_outstanding_copies() -> None:
    """A loop that issues 300 copies a lane and waits once."""
    body = (
        BEGIN
        + """
        mov.u32 %r4, 0;
    TOP:
        cp.async.ca.shared.global [%r11], [%rd3], 4;
        add.u32 %r4, %r4, 1;
        setp.lt.u32 %p1, %r4, 300;
        @%p1 bra TOP;
        cp.async.wait_all;
    """
    )
    assert (words(body + LOAD, SOURCE) == SOURCE[:32]).all()
