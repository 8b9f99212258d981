"""Registers of 128 bits on both engines: moves, loads and stores of all spaces, atomics, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from interp.launch import Module
from ptx.errors import InvalidInput

ENGINES = ("compiled", "traced")
HEAD = """.version 8.4
.target sm_90
.address_size 64
.const .align 16 .b64 fixed[2] = {7, 9};
"""


def module(body: str, params: str = ".param .u64 in, .param .u64 out", functions: str = "") -> Module:
    return Module.from_ptx(f"""{HEAD}{functions}
.visible .entry k({params}) {{
.reg .b32 %r<12>; .reg .b64 %d<12>; .reg .b128 %x<6>; .reg .pred %p<3>;
.shared .align 16 .b8 area[1024];
.local .align 16 .b8 own[32];
{body}
ret;
}}
""")


def numbers(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 63, count, np.uint64) * np.uint64(2)


PLACE = """
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
mad.wide.u32 %d0, %r0, 16, %d0; mad.wide.u32 %d1, %r0, 16, %d1;
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_through_every_space(engine: str) -> None:
    """Global to shared to local to registers and their parts, and back, exchanged; one of constant memory added."""
    body = PLACE + """
    mov.b32 %r1, area; shl.b32 %r2, %r0, 4; add.u32 %r1, %r1, %r2; mov.u64 %d2, own; mov.u64 %d3, fixed;
    ld.global.b128 %x0, [%d0];
    st.shared.b128 [%r1], %x0; ld.volatile.shared.b128 %x1, [%r1];
    st.local.b128 [%d2+16], %x1; ld.local.b128 %x2, [%d2+16];
    mov.b128 {%r3, %r4, %r5, %r6}, %x2; mov.b128 %x3, {%r5, %r6, %r3, %r4};
    mov.b128 %x1, %x3; mov.b128 {_, %d4}, %x1; mov.b128 {%d5, _}, %x1;
    ld.const.b128 %x4, [%d3]; mov.b128 {%d6, %d7}, %x4; add.u64 %d5, %d5, %d6; add.u64 %d4, %d4, %d7;
    setp.lt.u32 %p0, %r0, 20; mov.b128 %x5, 0;
    @%p0 mov.b128 %x5, {%d5, %d4};
    st.relaxed.gpu.global.b128 [%d1], %x5;
    """
    given, out = numbers(128), np.zeros(128, np.uint64)
    assert module(body)["k"].launch((1,), (64,), [given, out], engine=engine).findings == ()
    expected = given.reshape(-1, 2)[:, ::-1] + np.array([7, 9], np.uint64)
    expected[20:] = 0
    np.testing.assert_array_equal(out.reshape(-1, 2), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("space", ["global", "shared", ""])
def test_atomics(engine: str, space: str) -> None:
    """Lanes one after the other: an exchange hands the words on; a comparison succeeds for one lane."""
    setup = "" if space != "shared" else "st.shared.b128 [area], %x3; bar.sync 0;"
    ss = f".{space}" if space else ""
    word = "[area]" if space == "shared" else "[%d2]"
    body = PLACE + f"""
    ld.param.u64 %d2, [in]; mov.b128 %x3, {{0, 0}}; {setup}
    cvt.u64.u32 %d3, %r0; add.u64 %d4, %d3, 100; mov.b128 %x0, {{%d3, %d4}};
    atom.acq_rel.cta{ss}.exch.b128 %x1, {word}, %x0;
    mov.b128 %x2, {{5, 105}}; mov.b128 %x4, {{1, 2}};
    bar.sync 0;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 atom{ss}.b128.exch _, {word}, %x2;
    bar.sync 0;
    atom.relaxed.gpu{ss}.cas.b128 %x5, {word}, %x2, %x4;
    mov.b128 {{%d5, %d6}}, %x1; mov.b128 {{%d7, %d8}}, %x5;
    mov.b128 %x1, {{%d5, %d7}}; st.global.b128 [%d1], %x1;
    """
    given, out = np.zeros(64, np.uint64), np.zeros(64, np.uint64)
    assert module(body)["k"].launch((1,), (32,), [given, out], engine=engine).findings == ()
    old, compared = out.reshape(-1, 2).T
    np.testing.assert_array_equal(old, [0, *range(31)])
    np.testing.assert_array_equal(compared, [5] + [1] * 31)
    if space != "shared":
        assert given[:2].tolist() == [1, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_takes_and_returns_them(engine: str) -> None:
    function = """
    .func (.param .align 16 .b8 back[16]) turn(.param .align 16 .b8 it[16]) {
    .reg .b128 %x; .reg .b64 %a, %b;
    ld.param.b128 %x, [it]; mov.b128 {%a, %b}, %x; mov.b128 %x, {%b, %a}; st.param.b128 [back], %x; ret; }
    """
    body = PLACE + """
    ld.global.b128 %x0, [%d0];
    { .param .align 16 .b8 go[16]; .param .align 16 .b8 come[16];
    st.param.b128 [go], %x0; call (come), turn, (go); ld.param.b128 %x1, [come]; }
    st.global.b128 [%d1], %x1;
    """
    given, out = numbers(64), np.zeros(64, np.uint64)
    assert module(body, functions=function)["k"].launch((1,), (32,), [given, out], engine=engine).findings == ()
    np.testing.assert_array_equal(out.reshape(-1, 2), given.reshape(-1, 2)[:, ::-1])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("what", ["ld.global.b128 %x0, [%d0+8]", "st.global.b128 [%d1+8], %x0",
                                  "atom.global.exch.b128 %x1, [%d0+8], %x0"])
def test_alignment_is_that_of_the_whole(engine: str, what: str) -> None:
    body = PLACE + f"mov.b128 %x0, {{1, 2}}; {what};"
    given, out = numbers(64), np.zeros(64, np.uint64)
    (finding,) = module(body)["k"].launch((1,), (2,), [given, out], engine=engine).findings
    assert finding.kind == "misaligned"
    assert "16 bytes" in finding.message


def test_hooks_metrics_and_liveness_see_sixteen_bytes() -> None:
    body = PLACE + "ld.global.b128 %x0, [%d0]; st.global.b128 [%d1], %x0;"
    given, out = numbers(64), np.zeros(64, np.uint64)
    result = module(body)["k"].launch((1,), (32,), [given, out], metrics=True)
    assert result.metrics is not None
    values = result.metrics.to_dict()
    assert "512" in str(values)
    np.testing.assert_array_equal(out, given)


@pytest.mark.parametrize("engine", ENGINES)
def test_stored_into_the_other_cta(engine: str) -> None:
    body = PLACE + """
    mov.b32 %r1, area; mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1; setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [%r1+512], 1; @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+512], 512;
    fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %r5, %r1, %r4; shl.b32 %r6, %r0, 4; add.u32 %r7, %r5, %r6; add.u32 %r8, %r1, %r6;
    cvt.u64.u32 %d3, %r0; cvt.u64.u32 %d4, %r3; mov.b128 %x0, {%d3, %d4};
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r7], %x0, [%r5+512];
    AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+512], 0; @!%p1 bra AGAIN;
    ld.shared.b128 %x1, [%r8]; mov.u32 %r9, %ctaid.x; mul.wide.u32 %d5, %r9, 512; add.u64 %d1, %d1, %d5;
    st.global.b128 [%d1], %x1;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    """
    text = module(body).ptx.replace(".version 8.4", ".version 9.2")
    out = np.zeros(128, np.uint64)
    entry = Module.from_ptx(text)["k"]
    assert entry.launch((2,), (32,), [numbers(64), out], cluster=(2,), engine=engine).findings == ()
    np.testing.assert_array_equal(out.reshape(2, 32, 2)[:, :, 0], np.tile(np.arange(32), (2, 1)))
    assert out.reshape(2, 32, 2)[:, :, 1].tolist() == [[1] * 32, [0] * 32]


@pytest.mark.parametrize(("body", "message"), [
    ("ld.global.b128 {%d2, %d3}, [%d0];", "does not take these operands"),
    ("ld.global.b64 %x0, [%d0];", "register %x0 is .b128"),
    ("mov.b64 %d2, %x0;", "register %x0 is .b128"),
    ("mov.b128 {%d2, %d3}, {%d0, %d1};", "does not take these operands"),
    ("mov.b128 %x0, {%r0, %r1};", "register %r0 is .b32"),
    ("mov.b128 %x0, {%d0, %d1, %d2};", "two or four parts"),
])
def test_refused(body: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message.replace("{", r"\{")):
        module(PLACE + body)["k"].launch((1,), (32,), [numbers(64), numbers(64)])


@pytest.mark.parametrize("body", ["atom.global.and.b128 %x0, [%d0], %x1;", "ld.global.v2.b128 {%x0, %x1}, [%d0];"])
def test_not_modelled_because_there_is_none(body: str) -> None:
    with pytest.raises(Exception, match="is not modelled"):
        module(PLACE + body)["k"].launch((1,), (32,), [numbers(64), numbers(64)])
