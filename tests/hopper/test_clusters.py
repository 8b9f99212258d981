"""Clusters of CTAs on both engines: whole Triton kernels with `num_ctas`, then one mechanism at a time in small PTX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuemu
from interp.hooks import Access, Barrier, Hooks
from interp.launch import recording
from interp.tensor_map import TensorMap
from tests.hopper.launches import CASES
from tests.hopper.snippets import kernel, launch, output, wait

ENGINES = ("compiled", "traced")
NOTHING = np.zeros(1, np.uint32)
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
RANK = "mov.u32 %r0, %cluster_ctarank; xor.b32 %r1, %r0, 1;"
"""%r0: own rank, %r1: the other's in a cluster of two."""
PLACE = "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r2, %r2, %r3, %t; mad.wide.u32 %po, %r2, 4, %out;"
"""%r2: number of the thread in the grid, %po: its word of the output."""
OWN = "shl.b32 %r4, %t, 2; add.u32 %r4, %r4, %s; mapa.shared::cluster.u32 %r5, %r4, %r1;"
"""%r4: the thread's word in its CTA, %r5: the same word in the other CTA."""
INIT = (
    "setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared::cta.b64 [%s+4096], {count}; "
    "fence.mbarrier_init.release.cluster;"
)

engines = pytest.mark.parametrize("engine", ENGINES)


# ------------------------------------------------------------------------------------------------ Triton kernels
@pytest.mark.parametrize("num_ctas", [2, 4])
@pytest.mark.parametrize(
    "name",
    [
        "softmax", "layernorm", "lock", "matmul_f16_3_stages", "matmul_f16_no_wgmma", "attention", "host_descriptors",
        "device_descriptors", "persistent_descriptors", "attention_descriptors",
    ],
)  # fmt: skip
def test_triton_kernel(name: str, num_ctas: int) -> None:
    pytest.importorskip("triton")
    compiled, traced = (CASES[name]("sm_90", num_ctas=num_ctas, engine=engine) for engine in ENGINES)
    compiled.check()
    traced.check()
    assert compiled.result.resident == num_ctas
    np.testing.assert_array_equal(compiled.got.view(np.uint8), traced.got.view(np.uint8))


def test_correct_kernels_give_the_same_bytes_under_any_asynchrony() -> None:
    pytest.importorskip("triton")
    late, other = (CASES["attention_descriptors"]("sm_90", num_ctas=2, asynchrony=a) for a in ("late", "seeded:3"))
    assert other.result.findings == ()
    np.testing.assert_array_equal(late.got, other.got)


def test_triton_refuses_clusters_before_sm_90() -> None:
    pytest.importorskip("triton")
    with pytest.raises(gpuemu.InvalidInput, match="num_ctas > 1 requires"):
        CASES["softmax"]("sm_80", num_ctas=2)


# ------------------------------------------------------------------------------------------------ mechanisms
@engines
def test_special_registers(engine: str) -> None:
    names = [f"%{r}.{c}" for r in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for c in "xyz"]
    names += ["%cluster_ctarank", "%cluster_nctarank"]
    body = """
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
mad.wide.u32 %po, %r1, 60, %out; mov.pred %p0, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p0;
st.global.u32 [%po+56], %r1;
""" + "".join(f"mov.u32 %r0, {name}; st.global.u32 [%po+{4 * i}], %r0;" for i, name in enumerate(names))
    result, out = _launch_grid(kernel(body), (4, 6), 1, 4 * 6 * 15, cluster=(2, 3), engine=engine)
    assert result.findings == ()
    for row, (y, x) in zip(out.reshape(24, 15).tolist(), np.ndindex(6, 4), strict=True):
        assert row == [x % 2, y % 3, 0, 2, 3, 1, x // 2, y // 3, 0, 2, 2, 1, x % 2 + 2 * (y % 3), 6, 1]
    result, out = _launch_grid(kernel(body), (2, 2), 1, 4 * 15, engine=engine)
    assert out.reshape(4, 15)[3].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 0, 2, 2, 1, 0, 1, 0]


@engines
def test_reading_the_other_ctas_shared_memory(engine: str) -> None:
    body = f"{RANK}{PLACE}{OWN} st.shared.u32 [%r4], %r2; {MEET} ld.shared::cluster.u32 %r6, [%r5];"
    body += f"st.global.u32 [%po], %r6; {MEET}"
    got = output(kernel(body), 64, NOTHING, 256, grid=4, cluster=(2,), engine=engine)
    np.testing.assert_array_equal(got, np.arange(256) ^ 64)


@engines
def test_a_forgotten_cluster_barrier_shows(engine: str) -> None:
    """Rank 0 runs first and reads what rank 1 has not written yet; the end is in order, so there is no finding."""
    body = f"{RANK}{PLACE}{OWN} st.shared.u32 [%r4], %r2; ld.shared::cluster.u32 %r6, [%r5];"
    body += f"st.global.u32 [%po], %r6; {MEET}"
    got = output(kernel(body), 32, NOTHING, 64, grid=2, cluster=(2,), engine=engine)
    np.testing.assert_array_equal(got, [0xFFFFFFFF] * 32 + list(range(32)))


@engines
def test_the_phases_of_the_barrier(engine: str) -> None:
    """Work between arrival and wait, many phases, warps that are a phase apart; every CTA counts its turns."""
    body = f"""{RANK}{PLACE}{OWN}
mov.u32 %r8, 0; st.shared.u32 [%r4], %r8; {MEET}
again: add.u32 %r8, %r8, 1; ld.shared::cluster.u32 %r6, [%r5]; barrier.cluster.arrive.relaxed; add.u32 %r7, %r7, 1;
barrier.cluster.wait; add.u32 %r6, %r6, %r8; st.shared.u32 [%r4], %r6;
barrier.cluster.arrive.release; barrier.cluster.wait.acquire; setp.lt.u32 %p0, %r8, 20; @%p0 bra again;
ld.shared.u32 %r6, [%r4]; st.global.u32 [%po], %r6;
"""
    got = output(kernel(body), 96, NOTHING, 384, grid=4, cluster=(4,), engine=engine)
    np.testing.assert_array_equal(got, np.full(384, 210))


@engines
def test_a_cta_that_has_exited_is_not_awaited(engine: str) -> None:
    body = f"{RANK}{PLACE} setp.eq.u32 %p0, %r0, 1; @%p0 ret; {MEET} st.global.u32 [%po], %r2;"
    got = output(kernel(body), 32, NOTHING, 64, grid=2, cluster=(2,), engine=engine)
    np.testing.assert_array_equal(got, [*range(32), *[0] * 32])


@engines
def test_stores_atomics_and_generic_addresses(engine: str) -> None:
    """Both CTAs add to words of rank 0: by shared, by generic address, and by a plain store."""
    body = f"""{RANK}{PLACE}
mov.u32 %r6, 0; setp.eq.u32 %p0, %t, 0;
@%p0 st.shared.u32 [%s], %r6; @%p0 st.shared.u32 [%s+4], %r6; {MEET}
mapa.shared::cluster.u32 %r7, %s, 0; mov.u32 %r8, 1;
atom.shared::cluster.add.u32 %r9, [%r7], %r8; red.relaxed.cluster.shared::cluster.add.u32 [%r7], %r8;
cvta.shared.u64 %d0, s; mapa.u64 %d1, %d0, 0; atom.add.u32 %r9, [%d1+4], %r8;
getctarank.u64 %r10, %d0; getctarank.shared::cluster.u32 %r11, %r7; mad.lo.u32 %r10, %r10, 16, %r11;
isspacep.shared::cta %p1, %d1; @%p1 add.u32 %r10, %r10, 256; isspacep.shared::cluster %p1, %d1;
@%p1 add.u32 %r10, %r10, 512;
setp.eq.u32 %p2, %t, 1; mapa.u64 %d2, %d0, %r1; @%p2 st.u32 [%d2+8], %r10;
{MEET}
ld.shared.u32 %r9, [%s+8]; @%p0 st.global.u32 [%po], %r9; ld.shared.v2.u32 {{%r6, %r7}}, [%s];
@%p0 st.global.v2.u32 [%po+8], {{%r6, %r7}};
"""
    got = output(kernel(body), 32, NOTHING, 64, grid=2, cluster=(2,), engine=engine)
    # what each CTA says of itself stands in the other one: 16 times its rank, and where the mapped address lies
    assert got[[0, 2, 3]].tolist() == [16 + 512, 128, 64]
    assert got[[32, 34, 35]].tolist() == [256 + 512, 0, 0]


@engines
def test_arriving_at_a_barrier_of_another_cta(engine: str) -> None:
    """Rank 1 writes into rank 0 and arrives there; rank 0 waits, and tells rank 1 that it has read."""
    body = f"""{RANK}{PLACE}{OWN}{INIT.format(count=32)} {MEET}
mapa.shared::cluster.u32 %r7, %s, %r1; setp.eq.u32 %p1, %r0, 0; @%p1 bra reader;
st.shared::cluster.u32 [%r5], %r2; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7+4096];
{wait(4096, 0)} ret;
reader: {wait(4096, 0)}
ld.shared.u32 %r6, [%r4]; st.global.u32 [%po], %r6; mbarrier.arrive.shared::cluster.b64 _, [%r7+4096];
"""
    got = output(kernel(body), 32, NOTHING, 64, grid=2, cluster=(2,), engine=engine)
    np.testing.assert_array_equal(got, [*range(32, 64), *[0] * 32])


def sends(size: int, copy: str, offset: str = "", waits: str = wait(4096, 0)) -> str:
    """Each CTA expects `size` bytes, sends them to the other, and writes out what it got at `offset`."""
    return kernel(f"""{RANK}{PLACE}{OWN}{INIT.format(count=1)}
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+4096], {size}; {MEET}
mapa.shared::cluster.u32 %r7, %s, %r1; {copy}
{waits}
ld.shared.u32 %r6, [%r4{offset}]; st.global.u32 [%po], %r6; {MEET}""")


@pytest.mark.parametrize("asynchrony", ["late", "eager", "seeded:2"])
@engines
@pytest.mark.parametrize(
    ("size", "offset", "copy"),
    [
        (128, "", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r5], %r2, [%r7+4096];"),
        (512, "", """shl.b32 %r8, %t, 4; add.u32 %r8, %r8, %r7;
            shl.b32 %r10, %t, 2; shr.u32 %r11, %r2, 5; shl.b32 %r11, %r11, 5; add.u32 %r10, %r10, %r11;
            add.u32 %r11, %r10, 1; add.u32 %r12, %r10, 2; add.u32 %r13, %r10, 3;
            st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32
            [%r8], {%r10, %r11, %r12, %r13}, [%r7+4096];"""),
        (128, "+1024", """st.shared.u32 [%r4+2048], %r2; fence.proxy.async.shared::cta; bar.sync 0;
            @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
            [%r7+1024], [%s+2048], 128, [%r7+4096];"""),
    ],
    ids=["st.async", "st.async.v4", "bulk"],
)  # fmt: skip
def test_copies_to_another_cta(size: int, offset: str, copy: str, engine: str, asynchrony: str) -> None:
    text = sends(size, copy, offset)
    got = output(text, 32, NOTHING, 64, grid=2, cluster=(2,), engine=engine, asynchrony=asynchrony)
    np.testing.assert_array_equal(got, np.arange(64) ^ 32)


@pytest.mark.parametrize("asynchrony", ["late", "eager", "seeded:2"])
@engines
@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("add.u32", lambda old, new: old + new),
        ("min.s32", np.minimum),
        ("xor.b32", lambda old, new: old ^ new),
        ("inc.u32", lambda old, new: np.where(old >= new, 0, old + 1)),
    ],
)
def test_reductions_in_another_cta(op: str, expected: Any, engine: str, asynchrony: str) -> None:
    """Each thread sends its number in the grid to a word of the other CTA that holds 40."""
    copy = f"""mov.u32 %r8, 40; st.shared.u32 [%r4], %r8; {MEET}
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op} [%r5], %r2, [%r7+4096];"""
    got = output(sends(128, copy), 32, NOTHING, 64, grid=2, cluster=(2,), engine=engine, asynchrony=asynchrony)
    np.testing.assert_array_equal(got, expected(np.full(64, 40), np.arange(64) ^ 32))


@engines
def test_a_copy_that_nobody_waits_for_is_late(engine: str) -> None:
    copy = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r5], %r2, [%r7+4096];"
    got = output(sends(128, copy, waits=MEET), 32, NOTHING, 64, grid=2, cluster=(2,), engine=engine)
    np.testing.assert_array_equal(got, np.full(64, 0xFFFFFFFF))


def multicast(mask: int, copy: str, params: str = "") -> str:
    """Rank 1 sends 128 bytes to the ranks of a mask; these wait, and write out what they got."""
    return kernel(f""".reg .b16 %h0; {RANK}{PLACE}{OWN}{INIT.format(count=1)}
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+4096], 128; {MEET} mov.u16 %h0, {mask};
setp.eq.u32 %p1, %r0, 1; and.pred %p1, %p1, %p0; @%p1 {copy}
mov.u32 %r8, {mask}; shr.u32 %r8, %r8, %r0; and.b32 %r8, %r8, 1; setp.eq.u32 %p2, %r8, 0; @%p2 bra end;
{wait(4096, 0)}
ld.shared.u32 %r6, [%r4]; st.global.u32 [%po], %r6; end: {MEET}""", params)


@engines
def test_multicast_of_bytes(engine: str) -> None:
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    text = multicast(7, f"{copy} [%s], [%in], 128, [%s+4096], %h0;")
    given = np.arange(100, 132, dtype=np.uint32)
    got = output(text, 32, given, 128, grid=4, cluster=(4,), engine=engine)
    np.testing.assert_array_equal(got.reshape(4, 32), [given, given, given, np.zeros(32)])


@engines
def test_multicast_of_a_box(engine: str) -> None:
    copy = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
    text = multicast(5, f"{copy} [%s], [%d1, {{4, 2}}], [%s+4096], %h0;", ", .param .align 64 .b8 map[128]")
    text = text.replace(".reg .b16 %h0;", ".reg .b16 %h0; mov.u64 %d1, map; cvta.param.u64 %d1, %d1;")
    given = np.arange(12 * 16, dtype=np.uint32).reshape(12, 16)
    described = TensorMap(given, (12, 16), (64,), (4, 8), "u32")
    got = output(text, 32, NOTHING, 128, described, grid=4, cluster=(4,), engine=engine)
    box = given[2:6, 4:12].reshape(-1)
    np.testing.assert_array_equal(got.reshape(4, 32), [box, np.zeros(32), box, np.zeros(32)])


@engines
def test_the_cluster_barrier_of_a_launch_without_clusters(engine: str) -> None:
    body = f"{PLACE} shl.b32 %r4, %t, 2; add.u32 %r4, %r4, %s; st.shared.u32 [%r4], %t; {MEET}"
    body += "xor.b32 %r5, %t, 32; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %s; ld.shared::cluster.u32 %r6, [%r5];"
    got = output(kernel(body + "st.global.u32 [%po], %r6;"), 64, NOTHING, 128, grid=2, engine=engine)
    np.testing.assert_array_equal(got.reshape(2, 64), [np.arange(64) ^ 32] * 2)


@engines
def test_many_clusters_and_some_of_them(engine: str) -> None:
    body = f"{PLACE} mov.u32 %r6, 1; {MEET} st.global.u32 [%po], %r6;"
    result, out = _launch_grid(kernel(body), (6, 1), 32, 192, cluster=(2,), engine=engine)
    assert result.findings == () and out.all()
    some = [(5, 0, 0), (0, 0, 0), (4, 0, 0), (1, 0, 0)]
    result, out = _launch_grid(kernel(body), (6, 1), 32, 192, cluster=(2,), engine=engine, ctas=some)
    assert out.reshape(6, 32)[:, 0].tolist() == [1, 1, 0, 0, 1, 1] and "partial" in result.exactness


def test_clusters_that_wait_for_each_other_are_resident_together() -> None:
    """Cluster 0 polls a flag that cluster 1 sets."""
    body = f"""{PLACE} {MEET} setp.ge.u32 %p0, %r2, 64; @%p0 bra setter;
again: ld.acquire.gpu.global.u32 %r1, [%in]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again; st.global.u32 [%po], %r1; ret;
setter: mov.u32 %r6, 5; st.release.gpu.global.u32 [%in], %r6;"""
    for engine in ENGINES:
        result, out = launch(
            kernel(body), 32, np.zeros(1, np.uint32), 128, grid=4, cluster=(2,), engine=engine, fuel=4_000_000
        )
        assert result.findings == () and result.resident == 4
        assert out.tolist() == [5] * 64 + [0] * 64


def test_a_recorded_launch_is_repeated_with_its_clusters() -> None:
    body = f"{PLACE} mov.u32 %r6, %cluster_ctarank; st.global.u32 [%po], %r6;"
    with recording() as log:
        _launch_grid(kernel(body), (4, 1), 1, 4, cluster=(2,))
    assert np.frombuffer(log.launches[0].after()[1], np.uint32).tolist() == [0, 1, 0, 1]


def test_hooks_see_ranks_and_the_cluster_barrier() -> None:
    class Seen(Hooks):
        def __init__(self) -> None:
            self.barriers: list[tuple[int, int]] = []
            self.reads: list[int] = []

        def on_barrier(self, barrier: Barrier) -> None:
            self.barriers.append((barrier.cta[0], barrier.number))

        def on_read(self, access: Access) -> None:
            self.reads.append(int(access.addresses[0]) >> 24)

    seen = Seen()
    launch(
        kernel(f"{MEET} ld.shared.u32 %r0, [s+4];"), 1, NOTHING, 1, grid=2, cluster=(2,), engine="traced", hooks=seen
    )
    assert seen.barriers == [(0, 16), (1, 16)] and seen.reads[-2:] == [0, 1]


# ------------------------------------------------------------------------------------------------ defects
def _finding(body: str, engine: str, block: int = 32, **options: Any) -> Any:
    (finding,) = launch(kernel(body), block, NOTHING, 64, grid=2, cluster=(2,), engine=engine, **options)[0].findings
    return finding


@engines
def test_a_cluster_barrier_that_one_cta_never_reaches(engine: str) -> None:
    body = f"{RANK}{INIT.format(count=1)} bar.sync 0; setp.eq.u32 %p1, %r0, 0; @%p1 bra meets; {wait(4096, 0)}"
    found = _finding(f"{body} meets: {MEET}", engine)
    assert found.kind == "mbarrier-deadlock"
    assert "no warp of cluster (0, 0, 0) can continue" in found.message
    assert "CTA (0, 0, 0) (rank 0): warp 0 (32 lanes) waits at the cluster barrier" in found.message
    assert "CTA (1, 0, 0) (rank 1): warp 0 waits for phase parity 0 of the mbarrier at byte 4096" in found.message


@engines
def test_waiting_at_the_cluster_barrier_without_arriving(engine: str) -> None:
    found = _finding(f"{RANK} setp.eq.u32 %p1, %r0, 0; @%p1 barrier.cluster.arrive; barrier.cluster.wait;", engine)
    assert found.kind == "barrier-deadlock"
    assert "(rank 1): warp 0 (32 lanes) waits at the cluster barrier, where it has not arrived" in found.message
    assert found.message.count("has not arrived") == 1


@engines
def test_some_threads_do_not_arrive(engine: str) -> None:
    found = _finding(
        "setp.lt.u32 %p1, %t, 40; @%p1 barrier.cluster.arrive; @!%p1 bra other; barrier.cluster.wait; ret; "
        "other: bar.sync 1; ret;", engine, block=64,
    )  # fmt: skip
    assert found.kind == "barrier-deadlock" and "warp 1 (24 lanes) waits at barrier 1" in found.message


@engines
def test_arriving_twice(engine: str) -> None:
    found = _finding("barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;", engine)
    assert found.kind == "bad-cluster-barrier" and "'barrier.cluster.arrive' again" in found.message


@engines
def test_reading_a_cta_that_has_exited(engine: str) -> None:
    body = f"{RANK}{OWN} {MEET} setp.eq.u32 %p1, %r0, 0; @%p1 ret; ld.shared::cluster.u32 %r6, [%r5];"
    body += "st.global.u32 [%po], %r6;"
    found = _finding(body, engine)
    assert found.kind == "exited-cta"
    told = "read of 4 bytes at byte 0 of 8192 bytes of shared memory, of CTA rank 0 in the cluster, which has exited"
    assert found.message == told
    assert found.evidence["cta"] == [1, 0, 0] and found.evidence["ptx_line"] > 0


@engines
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("ld.shared::cluster.u32 %r6, [%r5+8192];", "byte 8192 of 8192 bytes of shared memory, of CTA rank 1"),
        ("mapa.shared::cluster.u32 %r5, %r4, 5; st.shared::cluster.u32 [%r5], %t;",
         "byte 0 of 8192 bytes of shared memory, of CTA rank 5 in a cluster of 2 CTAs"),
        ("ld.shared::cta.u32 %r6, [%r5];", "byte 0 of 8192 bytes of shared memory, of CTA rank 1"),
        ("ld.shared.u32 %r6, [%r4+8192];", "byte 8192 of 8192 bytes of shared memory"),
        ("mbarrier.arrive.shared::cluster.b64 _, [%r5+8192];",
         "byte 8192 of 8192 bytes of shared memory, of CTA rank 1"),
    ],
    ids=["offset", "rank", "shared::cta", "own", "mbarrier"],
)  # fmt: skip
def test_outside_the_shared_memory_of_a_cluster(body: str, told: str, engine: str) -> None:
    found = _finding(f"{RANK}{OWN} {body} st.shared.u32 [%r4], %r6;", engine)
    assert found.kind == "out-of-bounds" and told in found.message


# ------------------------------------------------------------------------------------------------ before a launch
def _launch_grid(text: str, grid: tuple[int, ...], block: int, count: int, **options: Any) -> tuple[Any, Any]:
    out = np.zeros(count, np.uint32)
    return gpuemu.Module.from_ptx(text)["k"].launch(grid, (block,), [NOTHING, out], **options), out


@pytest.mark.parametrize(
    ("directives", "grid", "options", "message"),
    [
        ("", (3,), {"cluster": (2,)}, "grid .* is not a whole number of clusters"),
        (".reqnctapercluster 2", (3,), {}, "grid .* is not a whole number of clusters"),
        (".reqnctapercluster 2", (4,), {"cluster": (4,)}, "compiled with .reqnctapercluster 2, 1, 1"),
        (".explicitcluster", (4,), {}, "compiled with .explicitcluster"),
        (".maxclusterrank 2", (4,), {"cluster": (4,)}, "compiled with .maxclusterrank 2"),
        ("", (9,), {"cluster": (9,)}, "has 9 CTAs"),
        ("", (32,), {"cluster": (32,)}, "has 32 CTAs"),
        ("", (4,), {"cluster": (0,)}, "at least 1"),
        ("", (4,), {"cluster": (2,), "ctas": [(0, 0, 0)]}, "a part of a cluster"),
        ("", (4,), {"cluster": (2,), "ctas": [(0, 0, 0), (3, 0, 0)]}, "a part of a cluster"),
        ("", (4,), {"cluster": (2,), "ctas": [(0, 0, 0), (1, 0, 0), (1, 0, 0)]}, "a CTA twice"),
    ],
)  # fmt: skip
def test_what_is_refused(directives: str, grid: tuple[int, ...], options: Any, message: str) -> None:
    text = kernel("").replace("p_out) {", f"p_out) {directives} {{")
    with pytest.raises(gpuemu.InvalidInput, match=message):
        _launch_grid(text, grid, 1, 1, **options)


@pytest.mark.parametrize("size", [8, 16])
def test_the_largest_clusters(size: int) -> None:
    body = f"{PLACE} mov.u32 %r0, %cluster_ctarank; {MEET} st.global.u32 [%po], %r0;"
    text = kernel(body).replace("p_out) {", f"p_out) .explicitcluster .reqnctapercluster {size} {{")
    result, out = _launch_grid(text, (size,), 1, size)
    assert result.findings == () and out.tolist() == list(range(size))


def test_older_devices_have_no_clusters() -> None:
    text = kernel("").replace("sm_90a", "sm_80")
    with pytest.raises(gpuemu.InvalidInput, match="sm_80 has no clusters"):
        _launch_grid(text, (2,), 1, 1, cluster=(2,))
    text = kernel("ld.shared::cluster.u32 %r0, [%s];").replace("sm_90a", "sm_80")
    with pytest.raises(gpuemu.InvalidInput, match="needs sm_90"):
        _launch_grid(text, (2,), 1, 1)


@pytest.mark.parametrize(
    "instruction",
    [
        "mbarrier.try_wait.parity.shared::cluster.b64 %p0, [%s], 0;",
        "barrier.cluster.arrive.acquire;",
        "barrier.cluster.wait.release;",
        "mapa.shared::cta.u32 %r0, %r1, %r2;",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.u32 [%r0], %r1, [%r2];",
        "st.async.shared::cta.mbarrier::complete_tx::bytes.b32 [%r0], %r1, [%r2];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%in], 16, [%s], 3;",
    ],
)
def test_what_is_no_instruction_or_not_modelled(instruction: str) -> None:
    with pytest.raises(gpuemu.Unsupported, match="is not modelled"):
        _launch_grid(kernel(instruction), (1,), 1, 1)
