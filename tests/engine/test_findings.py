"""Defects of kernels as findings: what, which array and index, which thread, which line; and nothing is written."""

from __future__ import annotations

import numpy as np
import pytest

from interp.launch import Module
from tests.engine.assembly import entry, launch, text

LOAD = "ld.param.u64 %rd2, [p1];\n{address}\nld.global.u32 %r3, [%rd3];\nst.global.u32 [%rd1], %r3;\nret;"
OWN = "mad.wide.u32 %rd3, %r0, 4, %rd2;"


def test_read_past_the_end() -> None:
    out, source = np.zeros(64, np.uint32), np.arange(50, dtype=np.uint32)
    (f,) = launch(LOAD.format(address=OWN), out, source, block=64).findings
    assert (f.kind, f.array, f.index) == ("out-of-bounds", "p1", (50,))
    assert f.message == "read of 4 bytes at p1[50], shape (50,)"
    assert f.evidence["cta"] == [0, 0, 0] and f.evidence["warp"] == 1 and f.evidence["lane"] == 18
    assert (
        f.evidence["thread"] == [50, 0, 0] and f.evidence["instruction"] == "ld.global.u32" and f.evidence["bytes"] == 4
    )


def test_write_before_the_start() -> None:
    out = np.zeros(40, np.uint32)
    body = "sub.u64 %rd1, %rd1, 8;\nst.global.u32 [%rd1], %r0;\nret;"
    (f,) = launch(body, out).findings
    assert (f.kind, f.array, f.index) == ("out-of-bounds", "out", (-2,)) and "write" in f.message


@pytest.mark.parametrize(
    ("shape", "byte", "index"), [((4, 5), 4 * 23, (4, 3)), ((4, 5), -4, (-1, 4)), ((2, 3, 4), 4 * 24, (2, 0, 0))]
)
def test_index_continues_along_the_outermost_dimension(
    shape: tuple[int, ...], byte: int, index: tuple[int, ...]
) -> None:
    source = np.zeros(shape, np.uint32)
    (f,) = launch(LOAD.format(address=f"add.s64 %rd3, %rd2, {byte};"), np.zeros(32, np.uint32), source).findings
    assert f.array == "p1" and f.index == index


def test_access_across_the_end() -> None:
    source = np.zeros(7, np.uint16)
    body = "ld.param.u64 %rd2, [p1];\nld.global.u32 %r3, [%rd2+12];\nret;"
    (f,) = launch(body, np.zeros(1, np.uint32), source).findings
    assert f.kind == "out-of-bounds" and f.array == "p1" and f.index == (6,)


def test_misaligned_access() -> None:
    source = np.zeros(64, np.uint8)
    (f,) = launch(LOAD.format(address="add.u64 %rd3, %rd2, 2;"), np.zeros(32, np.uint32), source).findings
    assert f.kind == "misaligned" and f.array == "p1" and f.index == (2,)
    body = "ld.param.u64 %rd2, [p1];\nld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd2+8];\nret;"
    (f,) = launch(body, np.zeros(32, np.uint32), source).findings
    assert f.kind == "misaligned" and f.evidence["bytes"] == 16


def test_write_into_a_read_only_array() -> None:
    out = np.zeros(32, np.uint32)
    out.flags.writeable = False
    for body in (
        "st.global.u32 [%rd1], %r0;\nret;",
        "red.global.add.u32 [%rd0], 1;\nret;",
        "atom.global.add.u32 %r3, [%rd0], 1;\nret;",
    ):
        (f,) = launch(body, out).findings
        assert f.kind == "read-only" and f.array == "out" and f.index == (0,)
    assert (out == 0).all()


def test_write_into_a_constant() -> None:
    body = "mov.u64 %rd4, table;\nst.global.u32 [%rd4], %r0;\nret;"
    (f,) = launch(body, np.zeros(32, np.uint32), outside=".const .align 4 .b32 table[4];").findings
    assert f.kind == "read-only"


@pytest.mark.parametrize("offset", [0, 16, 4000])
def test_null_pointer(offset: int) -> None:
    body = f"ld.param.u64 %rd2, [p1];\nld.global.u32 %r3, [%rd2+{offset}];\nret;"
    (f,) = launch(body, np.zeros(32, np.uint32), 0, params=["p1"]).findings
    assert f.kind == "out-of-bounds" and f.array is None
    assert "null pointer" in f.message and "shared" not in f.message


def test_wild_pointer_names_no_array() -> None:
    body = "ld.param.u64 %rd2, [p1];\nld.global.u32 %r3, [%rd2];\nret;"
    (f,) = launch(body, np.zeros(32, np.uint32), 0x1234_5678_9ABC, params=["p1"]).findings
    assert f.kind == "out-of-bounds" and f.array is None and "0x123456789abc" in f.message


def test_shared_memory_has_bounds() -> None:
    body = """
        .shared .align 4 .b8 buffer[64];
        mov.u32 %r4, buffer;
        shl.b32 %r5, %r0, 2;
        add.u32 %r4, %r4, %r5;
        st.shared.u32 [%r4], %r0;
        ret;
    """
    (f,) = launch(body, np.zeros(32, np.uint32)).findings
    assert (
        f.kind == "out-of-bounds" and "byte 64 of 64 bytes of shared memory" in f.message and f.evidence["lane"] == 16
    )


def test_local_memory_has_bounds() -> None:
    body = ".local .align 4 .b8 mine[16];\nmov.u32 %r4, mine;\nld.local.u32 %r3, [%r4+16];\nret;"
    (f,) = launch(body, np.zeros(32, np.uint32)).findings
    assert f.kind == "out-of-bounds" and "byte 16 of 16 bytes of local memory" in f.message


def test_generic_address_beyond_shared_memory() -> None:
    body = """
        .shared .align 4 .b8 buffer[64];
        mov.u64 %rd4, buffer;
        cvta.shared.u64 %rd4, %rd4;
        ld.u32 %r3, [%rd4+64];
        ret;
    """
    (f,) = launch(body, np.zeros(32, np.uint32)).findings
    assert f.kind == "out-of-bounds" and f.array is None and "byte 64 of 64 bytes of shared memory" in f.message


def test_module_variable_is_named() -> None:
    body = "mov.u64 %rd4, table;\nld.global.u32 %r3, [%rd4+16];\nret;"
    (f,) = launch(body, np.zeros(32, np.uint32), outside=".global .align 4 .b32 table[4];").findings
    assert f.kind == "out-of-bounds" and f.array == "table" and f.index == (4,)


def test_first_fault_stops_the_launch() -> None:
    """Later CTAs do not run; what was stored before stays; the faulty store itself is dropped."""
    out = np.zeros(4, np.uint32)
    body = """
        mov.u32 %r2, %ctaid.x;
        mul.wide.u32 %rd4, %r2, 8;
        add.u64 %rd4, %rd0, %rd4;
        st.global.u32 [%rd4], 1;
        ret;
    """
    (f,) = launch(body, out, block=1, grid=10).findings
    assert f.index == (4,) and f.evidence["cta"] == [2, 0, 0]
    assert list(out) == [1, 0, 1, 0]


def test_source_line_comes_from_loc() -> None:
    body = """
        .loc 1 42 7
        sub.u64 %rd1, %rd0, 4;
        .loc 1 43 9
        st.global.u32 [%rd1], %r0;
        ret;
    """
    ptx = text(body) + '.file 1 "/src/kernel.cu"\n'
    (f,) = Module.from_ptx(ptx)["k"].launch(grid=1, block=32, args=[np.zeros(32, np.uint32)]).findings
    assert (f.file, f.line) == ("/src/kernel.cu", 43)


def test_launch_without_a_finding_has_none() -> None:
    out = np.zeros(32, np.uint32)
    result = entry("st.global.u32 [%rd1], %r0;\nret;").launch(grid=1, block=32, args=[out])
    assert result.findings == () and result.exactness == () and (out == np.arange(32)).all()
