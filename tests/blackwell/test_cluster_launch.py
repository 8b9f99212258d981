"""Cluster launch control: whose work is done, by whom, in which order, alone, in clusters, and in a Gluon kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuemu
from interp.hooks import Hooks

ENGINES = ("compiled", "traced")
ASYNCHRONY = ("late", "eager", "seeded:1", "seeded:7")
engines = pytest.mark.parametrize("engine", ENGINES)

TEXT = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p_out, .param .u64 p_log) {
.shared .align 16 .b8 answer[16];
.shared .align 8 .b8 bar[8];
.reg .b32 %r<20>; .reg .b64 %d<9>; .reg .b128 %x; .reg .pred %p<5>;
ld.param.u64 %d0, [p_out]; ld.param.u64 %d1, [p_log]; mov.u32 %r10, answer; mov.u32 %r11, bar;
mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
mov.u32 %r12, %cluster_ctarank; setp.eq.and.u32 %p4, %r12, 0, %p0; mov.u32 %r13, 0;
@%p0 mbarrier.init.shared::cta.b64 [%r11], 1;
fence.mbarrier_init.release.cluster;
NEXT:
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], 16;
WHO clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytesMANY.b128 [%r10], [%r11];
mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;
mad.wide.u32 %d2, %r6, 4, %d0; @%p0 atom.global.add.u32 %r7, [%d2], 1;
@%p0 atom.global.add.u32 %r8, [%d1], 1; mad.wide.u32 %d3, %r8, 4, %d1; @%p0 st.global.u32 [%d3+4], %r6;
AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r11], %r13; @!%p1 bra AGAIN;
xor.b32 %r13, %r13, 1;
ld.shared.b128 %x, [%r10];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %x;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3, _}, %x;
mov.u32 %r14, %cluster_ctaid.x; add.u32 %r1, %r1, %r14; mov.u32 %r14, %cluster_ctaid.y; add.u32 %r2, %r2, %r14;
fence.proxy.async.shared::cta;
@%p2 bra NEXT;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret; }
"""
"""Counts each CTA's work in `out`, and appends its number to `log` behind a count."""
ALONE = TEXT.replace("WHO", "@%p0").replace("MANY", "")
TOGETHER = TEXT.replace("WHO", "@%p4").replace("MANY", ".multicast::cluster::all")


def run(text: str, grid: tuple[int, ...], **options: Any) -> tuple[Any, np.ndarray, list[int]]:
    count = int(np.prod(grid))
    out, log = np.zeros(count, np.uint32), np.zeros(count + 1, np.uint32)
    result = gpuemu.Module.from_ptx(text)["k"].launch(grid, (64,), [out, log], **options)
    assert result.findings == ()
    return result, out, log[1 : log[0] + 1].tolist()


@engines
def test_the_first_takes_over_the_others_in_their_order(engine: str) -> None:
    result, out, log = run(ALONE, (3, 2, 2), engine=engine)
    assert (out == 1).all()
    assert log == list(range(12))
    assert result.cancelled == 11
    assert "clusters cancelled in launch order" in result.exactness


def test_cancelled_ctas_are_not_counted() -> None:
    """One CTA initialises its barrier, the others never run."""
    result, *_ = run(ALONE, (9,))
    inits = [i for i in result.counters.instructions if i.opcode.startswith("mbarrier.init")]
    assert [(i.executions, i.active_lanes) for i in inits] == [(2, 1)]


@engines
@pytest.mark.parametrize("asynchrony", ASYNCHRONY)
def test_work_is_done_once_under_any_asynchrony(engine: str, asynchrony: str) -> None:
    result, out, log = run(ALONE, (40,), engine=engine, asynchrony=asynchrony)
    assert (out == 1).all()
    assert sorted(log) == list(range(40))
    assert 0 < result.cancelled < 40
    assert (result.cancelled == 39) == (not asynchrony.startswith("seeded"))  # it may also be refused


@engines
@pytest.mark.parametrize("asynchrony", ASYNCHRONY)
def test_clusters_are_taken_over_whole(engine: str, asynchrony: str) -> None:
    result, out, log = run(TOGETHER, (6, 4), cluster=(2, 2), engine=engine, asynchrony=asynchrony)
    assert (out == 1).all()
    assert sorted(log) == list(range(24))
    assert result.cancelled % 4 == 0
    if asynchrony == "late":
        assert result.cancelled == 20
        assert [sorted(log[i : i + 4]) for i in range(0, 24, 4)] == [
            sorted(y * 6 + x for y in (2 * cy, 2 * cy + 1) for x in (2 * cx, 2 * cx + 1))
            for cy in range(2)
            for cx in range(3)
        ]


def test_both_engines_run_the_same_ctas() -> None:
    class Ctas(Hooks):
        def __init__(self) -> None:
            self.seen: set[tuple[int, int, int]] = set()

        def before_instruction(self, event: Any) -> None:
            self.seen.add(event.cta)

    hooks = Ctas()
    run(ALONE, (5,), engine="traced", hooks=hooks)
    assert hooks.seen == {(0, 0, 0)}


def test_of_chosen_ctas_only_those_are_taken_over() -> None:
    result, out, log = run(ALONE, (8,), ctas=[(5, 0, 0), (1, 0, 0), (6, 0, 0)])
    assert log == [5, 1, 6]
    assert out.tolist() == [0, 1, 0, 0, 0, 1, 1, 0]
    assert result.cancelled == 2


@engines
def test_a_misaligned_answer_is_a_finding(engine: str) -> None:
    text = ALONE.replace("[%r10], [%r11];", "[%r10+8], [%r11];")
    out, log = np.zeros(2, np.uint32), np.zeros(3, np.uint32)
    (finding,) = gpuemu.Module.from_ptx(text)["k"].launch((2,), (64,), [out, log], engine=engine).findings
    assert finding.kind == "misaligned"


def test_a_kernel_that_does_not_wait_reads_no_answer() -> None:
    """What has not arrived is what was there before: under `late` the request counts, the answer does not."""
    text = ALONE.replace("AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r11], %r13; @!%p1 bra AGAIN;", "")
    text = text.replace("NEXT:", "mov.b64 %d4, 0; st.shared.v2.b64 [%r10], {%d4, %d4}; bar.sync 0; NEXT:")
    result, out, _ = run(text, (4,))
    assert out.tolist() != [1, 1, 1, 1]


def test_before_sm_100_there_is_none() -> None:
    with pytest.raises(gpuemu.InvalidInput, match="needs sm_100"):
        gpuemu.Module.from_ptx(ALONE.replace("sm_100a", "sm_90a"))["k"].launch((1,), (64,), [0, 0])


@engines
def test_a_gluon_kernel(engine: str) -> None:
    pytest.importorskip("triton.experimental.gluon")
    from tests.blackwell.gluon_kernels import squares_ptx

    x = np.arange(1000, dtype=np.float32) / 8
    for asynchrony in ("late", "seeded:3"):
        y = np.zeros_like(x)
        entry = gpuemu.Module.from_ptx(squares_ptx(128, 100))["squares"]
        result = entry.launch((8,), (128,), [x, y, 1000, 0, 0], shared=4096, engine=engine, asynchrony=asynchrony)
        assert result.findings == ()
        np.testing.assert_array_equal(y, x * x)
        assert result.cancelled == 7 or asynchrony != "late"
