"""However a launch ends, both engines say the same: faults, traps, deadlocks, endless loops, watched writes."""

from __future__ import annotations

import numpy as np
import pytest

from interp.launch import Module, Result

_HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
\t.reg .pred %p<4>;
\t.reg .b32 %r<8>;
\t.reg .b64 %q<8>;
\t.shared .align 8 .b8 area[256];
\tld.param.u64 %q1, [out];
\tld.param.u32 %r1, [n];
\tmov.u32 %r2, %tid.x;
\tmad.wide.u32 %q2, %r2, 4, %q1;
"""

# name: (body, kind of the finding or None)
ENDS: dict[str, tuple[str, str | None]] = {
    "plain": ("st.global.b32 [%q2], %r2; ret;", None),
    "store outside": (
        "mad.wide.u32 %q2, %r2, 8, %q1; st.global.b32 [%q2], %r2; st.global.b32 [%q1], %r2; ret;",
        "out-of-bounds",
    ),
    "load outside shared": (
        "mov.u32 %r3, 5000; ld.shared.b32 %r4, [%r3]; st.global.b32 [%q2], %r4; ret;",
        "out-of-bounds",
    ),
    "misaligned": ("add.u64 %q2, %q2, 2; st.global.b32 [%q2], %r2; ret;", "misaligned"),
    "null": ("mov.u64 %q3, 0; ld.global.b32 %r4, [%q3+16]; ret;", "out-of-bounds"),
    "guarded store outside": (
        "setp.eq.u32 %p1, %r2, 37; mov.u64 %q3, 64; @%p1 st.global.b32 [%q3], %r2; st.global.b32 [%q2], %r2; ret;",
        "out-of-bounds",
    ),
    "trap": ("st.global.b32 [%q2], %r2; trap;", "trap"),
    "guarded trap": (
        "setp.eq.u32 %p1, %r2, 33; st.global.b32 [%q2], %r2; @%p1 trap; st.global.b32 [%q2], 7; ret;",
        "trap",
    ),
    "barrier that a warp skips": (
        "setp.lt.u32 %p1, %r2, 32; @%p1 bra L; bar.sync 1, 64; L: bar.sync 2, 64; ret;",
        "barrier-deadlock",
    ),
    "barrier after an exit": ("setp.lt.u32 %p1, %r2, 40; @%p1 ret; bar.sync 0; st.global.b32 [%q2], %r2; ret;", None),
    "lanes that never come": (
        "setp.lt.u32 %p1, %r2, 7; @%p1 bra L; shfl.sync.idx.b32 %r3, %r2, 0, 31, -1; bra M; "
        "L: shfl.sync.idx.b32 %r3, %r2, 1, 31, -1; M: st.global.b32 [%q2], %r3; ret;",
        "warp-deadlock",
    ),
    "lane outside its mask": (
        "shfl.sync.idx.b32 %r3, %r2, 0, 31, 3; st.global.b32 [%q2], %r3; ret;",
        "bad-member-mask",
    ),
    "endless": ("L: add.u32 %r2, %r2, 1; bra L;", "no-progress"),
    "endless for some": (
        "and.b32 %r3, %r2, 1; L: add.u32 %r2, %r2, 1; setp.eq.u32 %p1, %r3, 1; @%p1 bra L; ret;",
        "no-progress",
    ),
    "spins on another warp": (
        "mov.u32 %r5, area; setp.ge.u32 %p1, %r2, 32; @%p1 bra L; "
        "W: ld.volatile.shared.b32 %r6, [%r5]; setp.ne.u32 %p2, %r6, 9; @%p2 bra W; bra M; "
        "L: st.volatile.shared.b32 [%r5], 9; M: st.global.b32 [%q2], %r2; ret;",
        None,
    ),
    "lock between lanes": (
        "mov.u32 %r5, area; setp.ne.u32 %p1, %r2, 0; @%p1 bra S; st.shared.b32 [%r5], 0; S: bar.sync 0; "
        "T: atom.shared.cas.b32 %r6, [%r5], 0, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra T; "
        "ld.global.b32 %r3, [%q1]; add.u32 %r3, %r3, 1; st.global.b32 [%q1], %r3; "
        "atom.shared.exch.b32 %r6, [%r5], 0; ret;",
        None,
    ),
    "parted member masks": (
        "and.b32 %r3, %r2, 1; mov.u32 %r4, 0x55555555; shl.b32 %r4, %r4, %r3; shfl.sync.bfly.b32 %r5, %r2, 2, 31, %r4; "
        "st.global.b32 [%q2], %r5; ret;",
        None,
    ),
}


def run(body: str, engine: str, threads: int = 64, watch: int | None = None) -> tuple[Result, bytes]:
    """One CTA on an array of 64 words that starts as zeros."""
    text = _HEAD + "\n".join(f"\t{s.strip()};" for s in body.split(";") if s.strip()) + "\n}\n"
    out = np.zeros(64, np.uint32)
    fuel = 30_000  # more than a poll takes to give way
    result = Module.from_ptx(text)["k"].launch((1,), (threads,), [out, 5], engine=engine, fuel=fuel, watch=watch)
    return result, out.tobytes()


@pytest.mark.parametrize("name", ENDS)
def test_both_engines_end_alike(name: str) -> None:
    body, kind = ENDS[name]
    (a, bytes_a), (b, bytes_b) = run(body, "compiled"), run(body, "traced")
    assert [f.kind for f in b.findings] == ([kind] if kind else [])
    assert a.findings == b.findings
    assert bytes_a == bytes_b
    assert a.counters is not None and b.counters is not None
    assert a.counters.instructions == b.counters.instructions


def test_watched_writes_name_the_same_instruction() -> None:
    body = "st.global.b32 [%q2], %r2; setp.eq.u32 %p1, %r2, 9; @%p1 st.global.b32 [%q1+16], %r2; ret;"
    from interp.memory import plan_addresses

    at = plan_addresses([np.zeros(64, np.uint32)])[0] + 17
    a, b = run(body, "compiled", watch=at)[0], run(body, "traced", watch=at)[0]
    assert a.written_by == b.written_by
    assert b.written_by is not None and b.written_by[0].guard is not None
