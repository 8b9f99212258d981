"""Where a thread is: indices in blocks and grids of one to three dimensions, lanes, masks, sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.assembly import STORE, launch, words


@pytest.mark.parametrize("block", [(32, 1, 1), (7, 5, 3), (1, 1, 64), (1, 33, 2), (100, 1, 1)])
def test_thread_index_in_a_block(block: tuple[int, int, int]) -> None:
    body = """
        mov.u32 %r3, %tid.z;
        mul.lo.u32 %r3, %r3, 1000000;
        mov.u32 %r4, %tid.y;
        mad.lo.u32 %r3, %r4, 1000, %r3;
        mov.u32 %r4, %tid.x;
        add.u32 %r3, %r3, %r4;
    """
    x, y, z = block
    expected = [k * 1000000 + j * 1000 + i for k in range(z) for j in range(y) for i in range(x)]
    assert (words(body + STORE, block=block) == expected).all()


def test_lane_warp_and_lane_masks() -> None:
    t = np.arange(70)
    lane = (t % 32).astype(np.uint64)
    below = (1 << lane) - 1
    all_ = np.uint64(0xFFFFFFFF)
    for register, expected in {
        "%laneid": lane,
        "%warpid": t // 32,
        "%nwarpid": None,
        "%lanemask_eq": 1 << lane,
        "%lanemask_lt": below,
        "%lanemask_le": below | (1 << lane),
        "%lanemask_gt": all_ & ~(below | (1 << lane)),
        "%lanemask_ge": all_ & ~below,
    }.items():
        got = words(f"mov.u32 %r3, {register};\n{STORE}", block=70)
        assert expected is None or (got == expected).all(), register


def test_sizes() -> None:
    body = """
        mov.u32 %r3, %ntid.x;
        mov.u32 %r4, %ntid.y;
        mad.lo.u32 %r3, %r3, 10, %r4;
        mov.u32 %r4, %ntid.z;
        mad.lo.u32 %r3, %r3, 10, %r4;
        mov.u32 %r4, %nctaid.x;
        mad.lo.u32 %r3, %r3, 10, %r4;
        mov.u32 %r4, %nctaid.y;
        mad.lo.u32 %r3, %r3, 10, %r4;
        mov.u32 %r4, %nctaid.z;
        mad.lo.u32 %r3, %r3, 10, %r4;
    """
    assert (words(body + STORE, block=(4, 3, 2), grid=(7, 8, 9)) == 432789).all()


def test_cta_index_in_a_grid() -> None:
    body = """
        mov.u32 %r2, %ctaid.z;
        mov.u32 %r4, %nctaid.y;
        mov.u32 %r5, %ctaid.y;
        mad.lo.u32 %r2, %r2, %r4, %r5;
        mov.u32 %r4, %nctaid.x;
        mov.u32 %r5, %ctaid.x;
        mad.lo.u32 %r2, %r2, %r4, %r5;
        mad.wide.u32 %rd1, %r2, 4, %rd0;
        mov.u32 %r3, %ctaid.z;
        mov.u32 %r4, %ctaid.y;
        mad.lo.u32 %r3, %r3, 100, %r4;
        mad.lo.u32 %r3, %r3, 100, %r5;
    """
    expected = [z * 10000 + y * 100 + x for z in range(3) for y in range(4) for x in range(5)]
    assert (words(body + STORE, block=1, grid=(5, 4, 3), size=60) == expected).all()


@pytest.mark.parametrize("threads", [1, 31, 33, 63, 127, 1023, 1024])
def test_partial_warps_run_their_threads_only(threads: int) -> None:
    out = np.full(1100, 0xFFFFFFFF, np.uint32)
    result = launch("add.u32 %r3, %r0, 1;\n" + STORE, out, block=threads)
    assert result.findings == ()
    assert (out[:threads] == np.arange(threads) + 1).all() and (out[threads:] == 0xFFFFFFFF).all()


def test_clock_goes_forward() -> None:
    body = """
        mov.u32 %r4, %clock;
        mov.u32 %r5, %clock;
        sub.u32 %r6, %r5, %r4;
        setp.gt.s32 %p1, %r6, 0;
        mov.u64 %rd4, %clock64;
        mov.u64 %rd5, %clock64;
        setp.gt.s64 %p2, %rd5, %rd4;
        and.pred %p1, %p1, %p2;
        selp.u32 %r3, 1, 0, %p1;
    """
    assert (words(body + STORE) == 1).all()


def test_only_the_chosen_ctas_run_and_the_result_says_so() -> None:
    body = """
        mov.u32 %r3, %ctaid.x;
        mad.wide.u32 %rd1, %r3, 4, %rd0;
        mov.u32 %r4, %nctaid.x;
        add.u32 %r3, %r3, %r4;
    """
    out = np.zeros(1000, np.uint32)
    result = launch(body + STORE, out, grid=1000, block=1, ctas=[(999, 0, 0), (17, 0, 0)])
    assert set(np.flatnonzero(out)) == {17, 999} and out[17] == 1017 and out[999] == 1999
    assert "partial" in result.exactness
    assert "partial" not in launch(body + STORE, out, grid=2, block=1, ctas=[(0, 0, 0), (1, 0, 0)]).exactness
