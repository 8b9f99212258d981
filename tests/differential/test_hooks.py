"""The events of the traced engine: which, in what order, with what in them; and that watching changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from interp.hooks import Access, Barrier, Branch, Hooks, Instruction
from interp.launch import Module
from ptx.errors import InvalidInput

_TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
\t.reg .pred %p<2>;
\t.reg .b32 %r<8>;
\t.reg .b64 %q<8>;
\t.shared .align 8 .b8 area[256];
\tld.param.u64 %q1, [in];
\tld.param.u64 %q2, [out];
\tmov.u32 %r1, %tid.x;
\tmad.wide.u32 %q3, %r1, 4, %q1;
\tld.global.b32 %r2, [%q3+4];
\tsetp.lt.s32 %p1, %r2, 3;
\t@%p1 add.s32 %r2, %r2, 100;
\tshl.b32 %r3, %r1, 2;
\tmov.u32 %r4, area;
\tadd.u32 %r3, %r3, %r4;
\tst.shared.b32 [%r3], %r2;
\tbar.sync 0;
\t@%p1 bra L;
\tmad.wide.u32 %q4, %r1, 4, %q2;
\tst.global.b32 [%q4], %r2;
L:
\tret;
}
"""


class Recorder(Hooks):
    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []

    def before_instruction(self, event: Instruction) -> None:
        self.seen.append(("before", event))

    def after_instruction(self, event: Instruction) -> None:
        self.seen.append(("after", event))

    def on_read(self, access: Access) -> None:
        self.seen.append(("read", access))

    def on_write(self, access: Access) -> None:
        self.seen.append(("write", access))

    def on_branch(self, branch: Branch) -> None:
        self.seen.append(("branch", branch))

    def on_barrier(self, barrier: Barrier) -> None:
        self.seen.append(("barrier", barrier))


def launch(hooks: Hooks | None, engine: str = "traced") -> tuple[np.ndarray, object]:
    values, out = np.arange(64, dtype=np.uint32) % 7, np.zeros(64, np.uint32)
    result = Module.from_ptx(_TEXT)["k"].launch((1,), (40,), [values, out], engine=engine, hooks=hooks)
    return out, result


def test_events_of_a_small_kernel() -> None:
    hooks = Recorder()
    out, result = launch(hooks)
    plain, other = launch(None)
    assert out.tobytes() == plain.tobytes() == launch(None, "compiled")[0].tobytes()
    first = [(kind, e.inst.opcode) for kind, e in hooks.seen if e.warp == 0]  # type: ignore[attr-defined]
    assert first[:6] == [
        ("before", "ld.param.u64"),
        ("read", "ld.param.u64"),
        ("after", "ld.param.u64"),
        ("before", "ld.param.u64"),
        ("read", "ld.param.u64"),
        ("after", "ld.param.u64"),
    ]
    kinds = [k for k, _ in first]
    assert kinds.count("barrier") == 1 and kinds.count("branch") == 2 and kinds.count("write") == 2
    # warp 1 runs when warp 0 waits at the barrier
    order = [e.warp for k, e in hooks.seen if k == "barrier"]  # type: ignore[attr-defined]
    assert order == [0, 1]


def test_what_events_hold() -> None:
    hooks = Recorder()
    launch(hooks)
    load = next(
        e for k, e in hooks.seen if k == "after" and isinstance(e, Instruction) and e.inst.opcode == "ld.global.b32"
    )
    assert load.cta == (0, 0, 0) and load.warp == 0 and load.mask == 0xFFFF_FFFF
    assert load.results[0] is not None
    np.testing.assert_array_equal(load.results[0], (np.arange(32) + 1) % 7)
    reads = [e for k, e in hooks.seen if k == "read" and isinstance(e, Access) and e.space == "global"]
    assert [int(r.mask).bit_count() for r in reads] == [32, 8]
    assert reads[0].size == 4 and (np.diff(reads[0].addresses.astype(np.int64)) == 4).all()
    assert reads[0].addresses[0] % 16 == 4
    guarded = next(
        e for k, e in hooks.seen if k == "before" and isinstance(e, Instruction) and e.inst.guard and e.inst.op == "add"
    )
    np.testing.assert_array_equal(guarded.lanes, (np.arange(32) + 1) % 7 < 3)
    branch = next(e for k, e in hooks.seen if k == "branch" and isinstance(e, Branch) and e.inst.op == "bra")
    assert branch.taken == guarded.mask
    barrier = next(e for k, e in hooks.seen if isinstance(e, Barrier))
    assert (barrier.number, barrier.threads) == (0, 0)
    store = next(e for k, e in hooks.seen if k == "write" and isinstance(e, Access) and e.space == "global")
    assert store.mask == ~branch.taken & 0xFFFF_FFFF


def test_an_exception_in_a_hook_ends_the_launch() -> None:
    class Stop(Exception):
        pass

    class Stopper(Hooks):
        def on_barrier(self, barrier: Barrier) -> None:
            raise Stop("seen enough")

    with pytest.raises(Stop, match="seen enough"):
        launch(Stopper())
    assert launch(None)[0].any()  # the entry is still usable


def test_hooks_need_the_traced_engine() -> None:
    with pytest.raises(InvalidInput, match="traced"):
        launch(Recorder(), "compiled")
    with pytest.raises(InvalidInput, match="no engine"):
        launch(None, "imaginary")
