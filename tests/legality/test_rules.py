"""One line for each kind of rule: from which version and on which target a form exists, what excludes what, which
operands and orders of modifiers there are."""

from __future__ import annotations

import pytest

from ptx.errors import InvalidInput
from ptx.targets import name_problem, runs_on
from tests.legality.instances import FIRST, module
from tests.legality.ours import Lines

# text | version | target | what the message contains, "" where the text is legal
RULES = [
    ("ld.global.L2::cache_hint.b32 %r1, [%d1], %d2;", (7, 4), "sm_80", ""),
    ("ld.global.L2::cache_hint.b32 %r1, [%d1], %d2;", (7, 3), "sm_80", "needs PTX 7.4"),
    ("ld.global.L2::cache_hint.b32 %r1, [%d1], %d2;", (9, 4), "sm_75", "needs sm_80"),
    ("ld.global.v4.b64 {%d1,%d2,%d3,%d4}, [%d5];", (9, 4), "sm_90", "needs sm_100"),
    ("ld.global.v8.b16 {%h1,%h2,%h3,%h4,%h5,%h6,%h7,%h8}, [%d5];", (8, 0), "sm_80", ""),
    ("st.relaxed.cluster.b32 [%d1], %r1;", (9, 4), "sm_89", "needs sm_90"),
    ("mbarrier.arrive.b64 %d1, [%d2];", (7, 0), "sm_80", ""),
    ("mbarrier.arrive.b64 %d1, [%d2], %r1;", (7, 0), "sm_80", "needs PTX 7.8"),
    ("cvt.f32.bf16 %r1, %h1;", (7, 1), "sm_80", ""),
    ("cvt.ftz.f32.bf16 %r1, %h1;", (7, 1), "sm_80", "needs PTX 7.8"),
    ("wgmma.fence.sync.aligned;", (8, 0), "sm_90a", ""),
    ("wgmma.fence.sync.aligned;", (9, 4), "sm_90", "needs sm_90a"),
    ("tcgen05.fence::before_thread_sync;", (8, 8), "sm_103f", ""),
    ("tcgen05.fence::before_thread_sync;", (9, 4), "sm_100", "needs sm_100f or sm_110f"),
    ("tcgen05.fence::before_thread_sync;", (9, 4), "sm_120a", "needs sm_100f or sm_110f"),
    ("ld.release.gpu.b32 %r1, [%d1];", (9, 4), "sm_90", "not modelled"),
    ("ld.volatile.cg.b32 %r1, [%d1];", (9, 4), "sm_90", "not modelled"),
    ("ld.global.b32 %r1, [%d1], %d2;", (9, 4), "sm_90", "does not take these operands"),
    ("cp.async.ca.shared.global.L2::cache_hint [%d1], [%d2], 4, %d3;", (9, 4), "sm_90", ""),
    ("cp.async.ca.shared.global.L2::cache_hint [%d1], [%d2], 4, %r1, %d3;", (9, 4), "sm_90", ""),
    ("cp.async.ca.shared.global.L2::cache_hint [%d1], [%d2], 4, %r1;", (9, 4), "sm_90", "register %r1 is .b32"),
    ("mbarrier.arrive.shared::cluster.b64 %d1, [%d2];", (9, 4), "sm_90", "the destination is `_`"),
    ("mbarrier.arrive.shared::cluster.b64 _, [%d2];", (9, 4), "sm_90", ""),
    ("setp.lt.f16 %p1|%p2, %h1, %h2;", (9, 4), "sm_90", "has one result"),
    ("add.f16 %h1, %h2, 0x3C00;", (9, 4), "sm_90", "a literal where a .f16 belongs"),
    ("add.u32 _, %r1, %r2;", (9, 4), "sm_90", "cannot be discarded"),
    ("mov.b64 {_, %r1}, %d1;", (9, 4), "sm_90", ""),
    ("mov.b64 {_, _}, %d1;", (9, 4), "sm_90", "discards all of its elements"),
    ("ld.b32.global %r1, [%d1];", (9, 4), "sm_90", ""),
    ("cvt.f32.rn.s32 %r1, %r2;", (9, 4), "sm_90", ""),
    ("cvt.s32.rn.f32 %r1, %r2;", (9, 4), "sm_90", "not modelled"),
    ("atom.add.u32.global.gpu.relaxed %r1, [%d1], %r2;", (9, 4), "sm_90", ""),
    ("mul.u32.wide %d1, %r1, %r2;", (9, 4), "sm_90", "not modelled"),
    ("cp.async.global.ca.shared [%d1], [%d2], 4;", (9, 4), "sm_90", "not modelled"),
    ("ld.global.L2::cache_hint.b128 %q1, [%d1];", (9, 4), "sm_90", "does not take these operands"),
    ("st.release.sys.b128 [%d1], %q1;", (8, 3), "sm_90", "needs PTX 8.4"),
    ("atom.global.b128.exch _, [%d1], %q1;", (9, 4), "sm_90", ""),
    ("ld.shared.nc.b128 %q1, [%d1];", (9, 4), "sm_90", "not modelled"),
    ("ld.volatile.local.b128 %q1, [%d1];", (9, 0), "sm_90", "needs PTX 9.1"),
    ("vadd.u32.u32.u32 %r1.b0, %r2, %r3, %r4;", (6, 3), "sm_75", ""),
    ("clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%d1], [%d2];",
     (9, 4), "sm_120", "needs sm_100f"),
    ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%d1, {%r1,%r2,%r3,%r4,%r5}];", (9, 4), "sm_120a",
     "needs sm_100f"),
    ("ldu.global.v4.f32 {%r1,%r2,%r3,%r4}, [%d1];", (9, 4), "sm_90", ""),
]


@pytest.mark.parametrize(("text", "version", "target", "message"), RULES)
def test_rule(text: str, version: tuple[int, int], target: str, message: str) -> None:
    said = Lines([text], lambda lines: module(lines, version, target), FIRST).refused(version, target)
    assert (message in said[0]) if message else not said


@pytest.mark.parametrize(
    ("version", "target", "message"),
    [
        ((9, 4), "sm_103f", None),
        ((8, 7), "sm_100f", "came with PTX 8.8"),
        ((7, 8), "sm_90a", "came with PTX 8.0"),
        ((9, 0), "sm_90f", "there is no target"),
        ((8, 9), "sm_90", "there is no PTX 8.9"),
        ((9, 6), "sm_90", "PTX 9.6"),
    ],
)
def test_name(version: tuple[int, int], target: str, message: str | None) -> None:
    found = name_problem(version, target)
    assert found is None if message is None else found is not None and message in found.what


def test_code_runs_on() -> None:
    assert runs_on("sm_80", 90) and not runs_on("sm_90", 80)
    assert runs_on("sm_90a", 90) and not runs_on("sm_90a", 100)
    assert runs_on("sm_100f", 103) and not runs_on("sm_100f", 120) and not runs_on("sm_103f", 100)
    with pytest.raises(InvalidInput):
        runs_on("compute_90", 90)
