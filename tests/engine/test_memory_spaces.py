"""State spaces: shared (static and dynamic), local, const, global variables, generic addresses, vector accesses."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.errors import InvalidInput
from tests.engine.assembly import STORE, launch, words

LANE = np.arange(32)


def test_static_and_dynamic_shared_memory_do_not_overlap() -> None:
    outside = ".shared .align 16 .b8 fixed[100];\n.extern .shared .align 16 .b8 rest[];\n"
    body = """
        mov.u32 %r10, fixed;
        mov.u32 %r11, rest;
        mov.u32 %r12, 0xAAAAAAAA;
        st.shared.u32 [fixed+96], %r12;
        shl.b32 %r4, %r0, 2;
        add.u32 %r5, %r11, %r4;
        st.shared.u32 [%r5], %r0;
        bar.sync 0;
        sub.u32 %r6, 124, %r4;
        add.u32 %r6, %r6, %r11;
        ld.shared.u32 %r3, [%r6];
        ld.shared.u32 %r7, [fixed+96];
        sub.u32 %r7, %r7, %r12;
        add.u32 %r3, %r3, %r7;
        sub.u32 %r8, %r11, %r10;
        mad.lo.u32 %r3, %r8, 1000, %r3;
    """
    assert (words(body + STORE, outside=outside, shared=128) == 112_000 + 31 - LANE).all()


def test_size_of_dynamic_shared_memory() -> None:
    body = "mov.u32 %r3, %dynamic_smem_size;\n" + STORE
    assert (words(body, outside=".extern .shared .align 16 .b8 rest[];", shared=4096) == 4096).all()


def test_every_cta_has_its_own_shared_memory() -> None:
    body = """
        .shared .align 4 .b32 word;
        mov.u32 %r4, %ctaid.x;
        add.u32 %r5, %r4, 100;
        setp.eq.u32 %p1, %r0, 0;
        setp.ne.u32 %p2, %r4, 2;
        and.pred %p1, %p1, %p2;
        @%p1 st.shared.u32 [word], %r5;
        bar.sync 0;
        ld.shared.u32 %r3, [word];
        mad.wide.u32 %rd1, %r4, 4, %rd0;
    """
    got = words(body + STORE, grid=4, size=4)
    assert got[0] == 100 and got[1] == 101 and got[3] == 103
    assert got[2] == 0xFFFFFFFF, "shared memory that was never written holds a NaN pattern, not another CTA's data"


def test_local_memory_is_private_and_starts_the_same_in_every_cta() -> None:
    body = """
        .local .align 8 .b8 mine[64];
        mov.u32 %r10, mine;
        mov.u32 %r2, %ctaid.x;
        and.b32 %r4, %r0, 15;
        shl.b32 %r4, %r4, 2;
        add.u32 %r4, %r4, %r10;
        ld.local.u32 %r5, [%r4];
        st.local.u32 [%r4], %r0;
        ld.local.u32 %r6, [%r4];
        setp.eq.u32 %p1, %r5, 0xFFFFFFFF;
        selp.u32 %r5, 1000, 0, %p1;
        add.u32 %r3, %r5, %r6;
        mad.lo.u32 %r2, %r2, 64, %r0;
        mad.wide.u32 %rd1, %r2, 4, %rd0;
    """
    assert (words(body + STORE, block=64, grid=3, size=192) == np.tile(np.arange(64) + 1000, 3)).all()


def test_const_and_global_variables_with_initialisers() -> None:
    outside = """
        .const .align 4 .b32 table[4] = {10, 20, 30, 40};
        .global .align 8 .b8 bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        .global .align 4 .f32 number = 0f3F800000;
        .global .align 8 .u64 pointer = table;
        .global .align 4 .b32 counter;
    """
    body = """
        and.b32 %r4, %r0, 3;
        mov.u64 %rd4, table;
        mad.wide.u32 %rd4, %r4, 4, %rd4;
        ld.const.u32 %r3, [%rd4];
        ld.global.u8 %r5, [bytes+6];
        mad.lo.u32 %r3, %r5, 1000, %r3;
        ld.global.f32 %f1, [number];
        cvt.rzi.u32.f32 %r6, %f1;
        mad.lo.u32 %r3, %r6, 100000, %r3;
        ld.global.u64 %rd5, [pointer];
        mov.u64 %rd6, table;
        setp.eq.u64 %p1, %rd5, %rd6;
        @%p1 add.u32 %r3, %r3, 1000000;
        atom.global.add.u32 %r7, [counter], 1;
        bar.sync 0;
        ld.global.u32 %r8, [counter];
        mad.lo.u32 %r3, %r8, 10000000, %r3;
    """
    assert (words(body + STORE, outside=outside) == np.array([10, 20, 30, 40])[LANE % 4] + 321_107_000).all()


def test_variables_of_other_widths_and_addresses_in_32_bits() -> None:
    outside = """
        .global .b128 wide[2] = {1, 7};
        .global .f32 beyond = 1.0e300;
        .global .u64 target;
        .global .u32 half = target;
    """
    body = """
        ld.global.u32 %r3, [wide+16];
        ld.global.u32 %r4, [half];
        mov.u64 %rd4, target;
        cvt.u32.u64 %r5, %rd4;
        sub.u32 %r4, %r4, %r5;
        add.f32 %f1, 1.0e300, 0f00000000;
        mov.b32 %r6, %f1;
        ld.global.u32 %r7, [beyond];
        or.b32 %r3, %r3, %r4;
        and.b32 %r6, %r6, %r7;
        add.u32 %r3, %r3, %r6;
    """
    assert (words(body + STORE, outside=outside) == 0x7F80_0007).all()


@pytest.mark.parametrize("other", [".extern .global .u32 w;", ".shared .u32 w;", ""])
def test_address_of_what_there_is_not(other: str) -> None:
    with pytest.raises(InvalidInput, match="`x` holds the address of `w`"):
        words(STORE, outside=other + ".global .u64 x = w;")


def test_generic_addresses_of_three_spaces() -> None:
    body = """
        .shared .align 4 .b8 buffer[128];
        .local .align 4 .b32 mine;
        mov.u64 %rd4, buffer;
        cvta.shared.u64 %rd5, %rd4;
        mad.wide.u32 %rd5, %r0, 4, %rd5;
        st.u32 [%rd5], %r0;
        mov.u64 %rd6, mine;
        cvta.local.u64 %rd7, %rd6;
        add.u32 %r4, %r0, 100;
        st.u32 [%rd7], %r4;
        cvta.to.shared.u64 %rd8, %rd5;
        ld.shared.u32 %r5, [%rd8];
        ld.local.u32 %r6, [mine];
        add.u32 %r3, %r5, %r6;
        isspacep.shared %p1, %rd5;
        isspacep.local %p2, %rd7;
        isspacep.global %p3, %rd1;
        isspacep.shared %p4, %rd1;
        @%p1 add.u32 %r3, %r3, 1000;
        @%p2 add.u32 %r3, %r3, 2000;
        @%p3 add.u32 %r3, %r3, 4000;
        @%p4 add.u32 %r3, %r3, 8000;
        st.u32 [%rd1], %r3;
        ret;
    """
    assert (words(body) == 2 * LANE + 100 + 7000).all()


def test_vector_accesses() -> None:
    source = np.arange(256, dtype=np.uint32)
    out = np.zeros(256, np.uint32)
    body = """
        ld.param.u64 %rd2, [p1];
        mad.wide.u32 %rd4, %r0, 32, %rd2;
        mad.wide.u32 %rd5, %r0, 32, %rd0;
        ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd4];
        ld.global.v2.u64 {%rd6, %rd7}, [%rd4+16];
        st.global.v4.u32 [%rd5+16], {%r7, %r6, %r5, %r4};
        st.global.v2.u64 [%rd5], {%rd7, %rd6};
        ret;
    """
    assert launch(body, out, source).findings == ()
    rows = source.reshape(32, 8)
    assert (out.reshape(32, 8) == rows[:, [6, 7, 4, 5, 3, 2, 1, 0]]).all()


def test_narrow_accesses_extend_and_truncate() -> None:
    """A byte or half-word fills a wider register by its type's sign; a store takes the low bits."""
    source = np.array([0x80, 0x7F, 0xFE, 0x01, 0xFF, 0xFF, 0x00, 0x80], np.uint8)
    out = np.zeros(12, np.uint32)
    body = """
        ld.param.u64 %rd2, [p1];
        ld.global.u8 %r4, [%rd2];
        ld.global.s8 %r5, [%rd2];
        ld.global.u16 %r6, [%rd2+4];
        ld.global.s16 %r7, [%rd2+6];
        ld.global.s8 %h1, [%rd2+2];
        cvt.s32.s16 %r8, %h1;
        ld.global.s32 %rd4, [%rd2+4];
        st.global.v4.u32 [%rd0], {%r4, %r5, %r6, %r7};
        st.global.u32 [%rd0+16], %r8;
        st.global.u64 [%rd0+24], %rd4;
        st.global.u8 [%rd0+32], %r6;
        st.global.u16 [%rd0+36], %r5;
        ret;
    """
    assert launch(body, out, source, block=1).findings == ()
    assert list(out) == [
        0x80,
        0xFFFFFF80,
        0xFFFF,
        0xFFFF8000,
        0xFFFFFFFE,
        0,
        0x8000FFFF,
        0xFFFFFFFF,
        0xFF,
        0xFF80,
        0,
        0,
    ]


def test_lanes_that_store_to_one_address_leave_the_highest() -> None:
    out = np.zeros(1, np.uint32)
    assert launch("st.global.u32 [%rd0], %r0;\nret;", out).findings == ()
    assert out[0] == 31


def test_parameters_of_every_width() -> None:
    from interp.launch import Module

    text = """
        .version 8.8
        .target sm_80
        .address_size 64
        .visible .entry k(.param .u64 out, .param .u8 a, .param .s16 b, .param .f32 c, .param .u64 d, .param .f64 e,
                          .param .align 8 .b8 f[12])
        {
            .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<2>; .reg .f64 %fd<2>; .reg .b16 %h<2>;
            ld.param.u64 %rd0, [out];
            ld.param.u8 %r1, [a];
            st.global.u32 [%rd0], %r1;
            ld.param.s16 %r2, [b];
            st.global.u32 [%rd0+4], %r2;
            ld.param.f32 %f1, [c];
            st.global.f32 [%rd0+8], %f1;
            ld.param.u64 %rd1, [d];
            st.global.u32 [%rd0+12], %rd1;
            ld.param.f64 %fd1, [e];
            st.global.f64 [%rd0+16], %fd1;
            ld.param.b32 %r3, [f+8];
            st.global.u32 [%rd0+24], %r3;
            ret;
        }
    """
    out = np.zeros(8, np.uint32)
    result = Module.from_ptx(text)["k"].launch(
        grid=1, block=1, args=[out, 200, -5, 1.5, 1 << 40 | 77, 2.5, bytes(range(12))]
    )
    assert result.findings == ()
    assert (
        list(out[:4]) == [200, 0xFFFFFFFB, 0x3FC00000, 77]
        and out[4:6].view(np.float64)[0] == 2.5
        and out[6] == 0x0B0A0908
    )


@pytest.mark.parametrize(
    "operator", [".ca", ".cg", ".cs", ".lu", ".cv", ".nc", ".L1::evict_last", ".L1::no_allocate.L2::128B"]
)
def test_cache_operators_change_nothing(operator: str) -> None:
    source = np.arange(32, dtype=np.uint32) + 5
    body = f"ld.param.u64 %rd2, [p1];\nmad.wide.u32 %rd3, %r0, 4, %rd2;\nld.global{operator}.u32 %r3, [%rd3];\n{STORE}"
    assert (words(body, source) == source).all()


def test_generic_addresses_of_constants() -> None:
    """Code that is not optimised asks for them (`__isConstant`)."""
    body = """
        mov.u64 %rd4, table;
        cvta.const.u64 %rd5, %rd4;
        mov.u64 %rd6, word;
        isspacep.const %p1, %rd5;
        isspacep.global %p2, %rd5;
        isspacep.const %p3, %rd6;
        isspacep.global %p4, %rd6;
        isspacep.const %p5, %rd1;
        ld.u32 %r3, [%rd5+4];
        @%p1 add.u32 %r3, %r3, 1000;
        @%p2 add.u32 %r3, %r3, 2000;
        @%p3 add.u32 %r3, %r3, 4000;
        @%p4 add.u32 %r3, %r3, 8000;
        @%p5 add.u32 %r3, %r3, 16000;
    """
    outside = ".const .align 4 .u32 table[2] = {5, 6};\n.global .align 4 .u32 word;\n"
    assert (words(body + STORE, outside=outside) == 9006).all()
