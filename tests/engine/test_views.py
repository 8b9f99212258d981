"""Arrays as they come: views, strides, overlaps, empty ones, huge ones."""

from __future__ import annotations

import numpy as np

from interp.memory import GUARD, plan, sparse
from tests.engine.assembly import launch

COPY = """
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd3, %r0, {stride}, %rd2;
        ld.global.u32 %r3, [%rd3];
        st.global.u32 [%rd1], %r3;
        ret;
"""


def _copied(view: np.ndarray, stride: int) -> np.ndarray:
    out = np.zeros(8, np.uint32)
    body = COPY.replace("mad.wide.u32 %rd3, %r0, {stride}", f"mul.wide.s32 %rd3, %r0, {stride};\nadd.s64 %rd3, %rd3")
    result = launch(body, out, view, block=8)
    assert result.findings == ()
    return out


def test_strided_and_reversed_views() -> None:
    base = np.arange(64, dtype=np.uint32)
    assert (_copied(base[5::7], 28) == base[5::7][:8]).all()
    assert (_copied(base[::-1], -4) == base[::-1][:8]).all()
    assert (_copied(base[40::-3], -12) == base[40::-3][:8]).all()
    assert (_copied(base.reshape(8, 8).T, 4) == base[:8]).all()


def test_gaps_of_a_strided_view_may_be_read_and_the_outside_may_not() -> None:
    """A kernel that reads a whole row of which the view has every other element is right on a GPU, too."""
    base = np.arange(64, dtype=np.uint32)
    view = base[8:24:2]
    assert (_copied(view, 4) == base[8:16]).all()
    (f,) = launch(COPY.format(stride=8), np.zeros(32, np.uint32), view, block=9).findings
    assert f.kind == "out-of-bounds" and f.array == "p1" and f.index == (8,)


def test_out_of_bounds_of_a_reversed_view_has_an_index() -> None:
    base = np.arange(16, dtype=np.uint32)
    body = "ld.param.u64 %rd2, [p1];\nld.global.u32 %r3, [%rd2+4];\nret;"
    (f,) = launch(body, np.zeros(1, np.uint32), base[::-1]).findings
    assert f.kind == "out-of-bounds" and f.array == "p1" and f.index == (-1,)


def test_overlapping_views_keep_their_distance() -> None:
    base = np.zeros(40, np.uint32)
    body = """
        ld.param.u64 %rd2, [p1];
        sub.u64 %rd4, %rd2, %rd0;
        cvt.u32.u64 %r3, %rd4;
        st.global.u32 [%rd0], %r3;
        st.global.u32 [%rd2], 7;
        ret;
    """
    assert launch(body, base[:20], base[10:], block=1).findings == ()
    assert base[0] == 40 and base[10] == 7


def test_same_array_twice() -> None:
    base = np.zeros(8, np.uint32)
    assert (
        launch(
            "ld.param.u64 %rd2, [p1];\nsub.u64 %rd4, %rd2, %rd0;\nst.global.u64 [%rd0], %rd4;\n"
            "st.global.u32 [%rd2+4], 5;\nret;",
            base,
            base,
            block=1,
        ).findings
        == ()
    )
    assert base[0] == 0 and base[1] == 5


def test_read_only_view_of_a_writable_array_is_read_only() -> None:
    base = np.zeros(64, np.uint32)
    view = base[32:]
    view.flags.writeable = False
    (f,) = launch("ld.param.u64 %rd2, [p1];\nst.global.u32 [%rd2], 1;\nret;", base[:32], view).findings
    assert f.kind == "read-only" and f.array == "p1"
    body = "ld.param.u64 %rd2, [p1];\nld.global.u32 %r3, [%rd2];\nst.global.u32 [%rd1], 3;\nret;"
    assert launch(body, base, view).findings == (), (
        "a writable argument may be written although a read-only view of it is passed, too"
    )
    assert (base[:32] == 3).all()


def test_empty_array_has_an_address_and_no_bytes() -> None:
    empty = np.zeros((0, 5), np.uint32)
    assert (
        launch(
            "ld.param.u64 %rd2, [p1];\nst.global.u64 [%rd0], %rd2;\nret;", np.zeros(2, np.uint32), empty, block=1
        ).findings
        == ()
    )
    body = "ld.param.u64 %rd2, [p1];\nld.global.u32 %r3, [%rd2];\nret;"
    (f,) = launch(body, np.zeros(2, np.uint32), empty, block=1).findings
    assert f.kind == "out-of-bounds" and f.array == "p1"


def test_zero_dimensional_array() -> None:
    cell = np.array(5, np.uint32)
    assert launch("add.u32 %r3, %r0, 9;\nst.global.u32 [%rd0], %r3;\nret;", cell, block=1).findings == ()
    assert cell == 9


def test_addresses_depend_on_sizes_and_order_only() -> None:
    arrays = [np.zeros(100, np.uint8), np.zeros(3, np.float64), np.zeros((2, 0)), np.zeros(1 << 21, np.uint8)]
    first, second = plan(arrays), plan([np.zeros_like(a) for a in arrays])
    assert first[0] == second[0]
    assert all(a % 256 == 0 for a in first[0])
    rows = first[1]
    assert all(b.low - a.high >= GUARD for a, b in zip(rows, rows[1:], strict=False))


def test_storage_that_wraps_all_of_32_bits() -> None:
    """A row index times a row length beyond 2^31 elements, as a 64-bit offset: the right element of a 24 GB array."""
    big = sparse((3, 1 << 31), np.uint32)
    big[2, 5] = 77
    out = np.zeros(1, np.uint32)
    body = """
        ld.param.u64 %rd2, [p1];
        mov.u64 %rd3, 17179869204;
        add.u64 %rd3, %rd3, %rd2;
        ld.global.u32 %r3, [%rd3];
        st.global.u32 [%rd0], %r3;
        ret;
    """
    assert launch(body, out, big, block=1).findings == ()
    assert out[0] == 77


def test_host_memory_at_an_odd_address() -> None:
    """A view that is misaligned in its storage is so on the device, too, and accesses are found."""
    raw = np.zeros(65, np.uint8)
    view = raw[1:].view(np.uint32)
    out = np.zeros(1, np.uint32)
    assert (
        launch(
            "ld.param.u64 %rd2, [p1];\nld.global.u32 %r3, [%rd2];\nst.global.u32 [%rd0], %r3;\nret;", out, view, block=1
        ).findings
        == ()
    )
    (f,) = launch("ld.param.u64 %rd2, [p2];\nld.global.u32 %r3, [%rd2];\nret;", out, raw, view, block=1).findings
    assert f.kind == "misaligned"
