"""mbarriers, named barriers, elected lanes: phases, counts, waiting, and what is reported when nobody can continue."""

from __future__ import annotations

import numpy as np
import pytest

from tests.hopper.snippets import kernel, launch, output, wait

NOTHING = np.zeros(1, np.uint32)
INIT = "setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared::cta.b64 [%s], {count}; bar.sync 0;"


def test_a_producer_and_a_consumer_take_turns() -> None:
    """Warp 1 hands values to warp 0 through one slot, with a full and an empty barrier."""
    body = f"""
setp.eq.u32 %p0, %t, 0; @%p0 mbarrier.init.shared::cta.b64 [%s], 32;
@%p0 mbarrier.init.shared::cta.b64 [%s+8], 32; bar.sync 0;
and.b32 %r0, %t, 31; shl.b32 %r1, %r0, 2; add.u32 %r1, %r1, %s; mov.u32 %r2, 0; mov.u32 %r9, 0;
setp.lt.u32 %p1, %t, 32; @%p1 bra consumer;
producer: and.b32 %r3, %r2, 1; xor.b32 %r3, %r3, 1;
{wait(8, "%r3")}
mad.lo.u32 %r4, %r2, 1000, %r0; st.shared.u32 [%r1+1024], %r4; mbarrier.arrive.shared::cta.b64 _, [%s];
add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 10; @%p2 bra producer; ret;
consumer: and.b32 %r3, %r2, 1;
{wait(0, "%r3")}
ld.shared.u32 %r4, [%r1+1024]; add.u32 %r9, %r9, %r4; mbarrier.arrive.shared::cta.b64 _, [%s+8];
add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 10; @%p2 bra consumer; st.global.u32 [%po], %r9;
"""
    np.testing.assert_array_equal(output(kernel(body), 64, NOTHING, 64)[:32], 45000 + 10 * np.arange(32))


def test_states_counts_and_drops() -> None:
    body = f"""{INIT.format(count=3)}
@!%p0 bra done;
mbarrier.arrive.shared::cta.b64 %d0, [%s]; mbarrier.test_wait.shared::cta.b64 %p1, [%s], %d0; selp.u32 %r1, 1, 0, %p1;
st.global.u32 [%out], %r1;
mbarrier.pending_count.b64 %r2, %d0; st.global.u32 [%out+4], %r2;
mbarrier.arrive.shared::cta.b64 %d1, [%s], 2;
mbarrier.test_wait.shared::cta.b64 %p1, [%s], %d0; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%out+8], %r1;
mbarrier.arrive_drop.shared::cta.b64 %d1, [%s]; mbarrier.arrive.shared::cta.b64 %d1, [%s], 2;
mbarrier.arrive.shared::cta.b64 %d2, [%s]; mbarrier.pending_count.b64 %r2, %d2; st.global.u32 [%out+12], %r2;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s], 64; mbarrier.arrive.shared::cta.b64 %d3, [%s];
mbarrier.test_wait.shared::cta.b64 %p1, [%s], %d2; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%out+16], %r1;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%s], 64;
mbarrier.test_wait.shared::cta.b64 %p1, [%s], %d2; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%out+20], %r1;
done:"""
    assert output(kernel(body), 32, NOTHING, 6).tolist() == [0, 3, 1, 2, 0, 1]


def test_arriving_at_a_named_barrier_without_waiting() -> None:
    body = """
setp.lt.u32 %p0, %t, 32; shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s; @%p0 bra consumer;
st.shared.u32 [%r1], %t; bar.arrive 3, 64; ret;
consumer: bar.sync 3, 64; ld.shared.u32 %r2, [%r1+128]; st.global.u32 [%po], %r2;
"""
    np.testing.assert_array_equal(output(kernel(body), 64, NOTHING, 32), np.arange(32, 64))


def test_named_barriers_of_some_warps() -> None:
    """Two pairs of warps use barriers of their own, then all meet."""
    body = """
shr.u32 %r0, %t, 6; add.u32 %r0, %r0, 1; xor.b32 %r3, %t, 32; shl.b32 %r1, %t, 2; shl.b32 %r4, %r3, 2;
add.u32 %r1, %r1, %s; add.u32 %r4, %r4, %s; st.shared.u32 [%r1], %t; barrier.sync %r0, 64; ld.shared.u32 %r2, [%r4];
barrier.sync 0; st.global.u32 [%po], %r2;
"""
    np.testing.assert_array_equal(output(kernel(body), 128, NOTHING, 128), np.arange(128) ^ 32)


def test_one_elected_lane() -> None:
    body = """
elect.sync %r0|%p0, 0xffffffff; mov.u32 %r1, 9; @%p0 mov.u32 %r1, 1; st.global.u32 [%po], %r1;
"""
    out = output(kernel(body), 64, NOTHING, 64).reshape(2, 32)
    assert (np.sort(out, -1) == np.array([1] + 31 * [9])).all()


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_is_the_inverse_of_ldmatrix(count: int, trans: str) -> None:
    registers = ", ".join(f"%r{i + 10}" for i in range(count))
    body = f"""
shl.b32 %r1, %t, 4; add.u32 %r1, %r1, %s; mov.u32 %r2, 0;
{" ".join(f"ld.global.u32 %r{i + 10}, [%pi+{128 * i}];" for i in range(count))}
stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r1], {{{registers}}};
{" ".join(f"mov.u32 %r{i + 10}, 0;" for i in range(count))}
ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%r1];
{" ".join(f"st.global.u32 [%po+{128 * i}], %r{i + 10};" for i in range(count))}
"""
    words = np.random.default_rng(1).integers(0, 1 << 32, 128, dtype=np.uint32)
    np.testing.assert_array_equal(output(kernel(body), 32, words, 32 * count), words[: 32 * count])


def test_nanosleep_lets_another_cta_run() -> None:
    """CTA 0 waits for a flag that CTA 1 sets."""
    body = """
mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra setter;
again: nanosleep.u32 100; ld.acquire.gpu.global.u32 %r1, [%in]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again;
st.global.u32 [%out], %r1; ret;
setter: mov.u32 %r2, 5; st.release.gpu.global.u32 [%in], %r2;
"""
    assert output(kernel(body), 1, np.zeros(1, np.uint32), 1, grid=2).tolist() == [5]


# ------------------------------------------------------------------------------------------------ defects
def test_waiting_for_bytes_that_nobody_sends() -> None:
    body = f"""{INIT.format(count=1)}
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 512; setp.lt.u32 %p1, %t, 32; @%p1 bra waits;
bar.sync 1; ret;
waits: {wait(0, 0)}
bar.sync 1;"""
    result, _ = launch(kernel(body), 64, NOTHING, 1)
    (finding,) = result.findings
    assert finding.kind == "mbarrier-deadlock"
    assert "warp 0 waits for phase parity 0 of the mbarrier at byte 0 of shared memory" in finding.message
    assert "512 bytes still expected" in finding.message and "warp 1 (32 lanes) waits at barrier 1" in finding.message


def test_waiting_for_an_arrival_too_many() -> None:
    body = f"{INIT.format(count=33)} mbarrier.arrive.shared::cta.b64 _, [%s]; {wait(0, 0)}"
    (finding,) = launch(kernel(body), 32, NOTHING, 1)[0].findings
    assert finding.kind == "mbarrier-deadlock" and "32 of 33 arrivals" in finding.message


@pytest.mark.parametrize(
    "body",
    [
        "mbarrier.arrive.shared::cta.b64 _, [%s];",
        "mov.u32 %r0, 0; mbarrier.init.shared::cta.b64 [%s], %r0;",
        INIT.format(count=1) + "@%p0 mbarrier.inval.shared::cta.b64 [%s]; bar.sync 0; " + wait(0, 0),
        INIT.format(count=4) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [%s], 5;",
    ],
    ids=["never-initialised", "count-0", "invalidated", "more-arrivals-than-pending"],
)
def test_what_is_no_barrier(body: str) -> None:
    (finding,) = launch(kernel(body), 32, NOTHING, 1)[0].findings
    assert finding.kind == "bad-mbarrier"
