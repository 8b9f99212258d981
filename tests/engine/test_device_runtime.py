"""What a driver adds to a module: a heap, the barrier of a grid; and memory of `alloca`. On both engines."""

from __future__ import annotations

import numpy as np
import pytest

from interp.launch import Module
from tests.engine.assembly import STORE, text

LANE = np.arange(32, dtype=np.uint32)
pytestmark = pytest.mark.parametrize("engine", ["compiled", "traced"])
HEAP = ".extern .func (.param .b64 r) malloc(.param .b64 size);\n.extern .func free(.param .b64 address);\n"
GRID = """
    .extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
    .extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
"""


def malloc(size: str, into: str) -> str:
    return (
        f"{{ .param .b64 p; .param .b64 q; st.param.b64 [p], {size}; call.uni (q), malloc, (p);"
        f" ld.param.b64 {into}, [q]; }}\n"
    )


def free(address: str) -> str:
    return f"{{ .param .b64 p; st.param.b64 [p], {address}; call.uni free, (p); }}\n"


def launch(body: str, engine: str, outside: str = "", grid: int = 1, words: int = 32) -> tuple[np.ndarray, object]:
    out = np.zeros(words, np.uint32)
    result = Module.from_ptx(text(body, outside=outside))["k"].launch((grid,), (32,), [out], engine=engine)
    return out, result


def test_every_thread_has_memory_of_its_own(engine: str) -> None:
    body = malloc("20", "%rd2") + malloc("1", "%rd3") + "st.u32 [%rd2+16], %r0; st.u8 [%rd3], %r0;"
    body += "bar.warp.sync -1; ld.u32 %r3, [%rd2+16]; ld.u8 %r4, [%rd3]; mad.lo.u32 %r3, %r3, 100, %r4;"
    body += "cvt.u32.u64 %r5, %rd2; and.b32 %r5, %r5, 15; add.u32 %r3, %r3, %r5;" + free("%rd2") + free("%rd3") + STORE
    out, result = launch(body, engine, HEAP)
    assert (out == LANE * 101).all() and result.findings == ()


def test_memory_is_used_again_when_all_is_free(engine: str) -> None:
    """100 rounds of 32 times 32 KiB: 1 MiB at once, 100 MiB in all."""
    loop = "mov.u32 %r4, 0; AGAIN:" + malloc("32768", "%rd2") + "st.u32 [%rd2], %r4;" + free("%rd2")
    loop += "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 100; @%p1 bra AGAIN; mov.u32 %r3, %r4;" + STORE
    out, result = launch(loop, engine, HEAP)
    assert (out == 100).all() and result.findings == ()


def test_too_much_memory(engine: str) -> None:
    """More than the heap ever has: no address. More than is left: the model says so."""
    out, result = launch(malloc("8388609", "%rd2") + "cvt.u32.u64 %r3, %rd2;" + STORE, engine, HEAP)
    assert not out.any() and result.findings == ()
    _, result = launch(malloc("1000000", "%rd2"), engine, HEAP)
    (finding,) = result.findings
    assert finding.kind == "trap" and "heap of 8 MiB is full" in finding.message


def test_freeing_nothing(engine: str) -> None:
    out, result = launch(free("0") + "mov.u32 %r3, 1;" + STORE, engine, HEAP)
    assert out.all() and result.findings == ()


@pytest.mark.parametrize("ctas", [1, 5])
def test_barrier_of_the_grid(engine: str, ctas: int) -> None:
    """Each CTA reads what the next one wrote in the round before."""
    handle = "{ .param .b32 p; .param .b64 q; st.param.b32 [p], 1; call.uni (q), cudaCGGetIntrinsicHandle, (p);"
    handle += "ld.param.b64 %rd5, [q]; }\n"
    sync = "{ .param .b64 p; .param .b32 f; .param .b32 q; st.param.b64 [p], %rd5; st.param.b32 [f], 0;"
    sync += "call.uni (q), cudaCGSynchronize, (p, f); }\n"
    body = (
        handle
        + f"""
        mov.u32 %r3, %ctaid.x; mul.wide.u32 %rd2, %r3, 128; add.u64 %rd2, %rd2, %rd1;
        add.u32 %r4, %r3, 1; rem.u32 %r4, %r4, {ctas}; mul.wide.u32 %rd3, %r4, 128; add.u64 %rd3, %rd3, %rd1;
        mov.u32 %r5, 0; st.global.u32 [%rd2], %r3;
    ROUND: {sync}
        ld.volatile.global.u32 %r6, [%rd3]; add.u32 %r6, %r6, 10; {sync}
        st.global.u32 [%rd2], %r6; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra ROUND;
    """
    )
    out, result = launch(body, engine, GRID, ctas, 32 * ctas)
    assert result.findings == ()
    assert (out.reshape(ctas, 32) == ((np.arange(ctas) + 3) % ctas + 30)[:, None]).all()


def test_address_of_the_grid_barrier_in_registers(engine: str) -> None:
    """`%envreg1` and `%envreg2`, as CUDA C++ reads them: upper and lower half of an address in global memory."""
    body = """
        mov.u32 %r2, %envreg2; cvt.u64.u32 %rd2, %r2; mov.u32 %r3, %envreg1; cvt.u64.u32 %rd3, %r3;
        bfi.b64 %rd2, %rd3, %rd2, 32, 32; atom.add.u32 %r4, [%rd2+4], 1; bar.sync 0; ld.volatile.u32 %r3, [%rd2+4];
    """
    out, result = launch(body + STORE, engine)
    assert (out == 32).all() and result.findings == ()
    assert sum(c.executions for c in result.counters.instructions if c.opcode == "mov.u32") == 7  # five of the prologue


def test_groups_of_several_devices_are_not_modelled(engine: str) -> None:
    body = "{ .param .b32 p; .param .b64 q; st.param.b32 [p], 2; call.uni (q), cudaCGGetIntrinsicHandle, (p); }"
    _, result = launch(body, engine, GRID)
    assert [f.kind for f in result.findings] == ["trap"] and "several devices" in result.findings[0].message


def test_the_library_is_not_counted(engine: str) -> None:
    def executed(body: str, outside: str = "") -> int:
        result = launch(body + STORE, engine, outside)[1]
        return sum(c.executions for c in result.counters.instructions)

    assert executed(malloc("8", "%rd2") + "mov.u32 %r3, 1;", HEAP) == executed("mov.u32 %r3, 1;") + 3  # st, call, ld


# ------------------------------------------------------------------------------------------------ alloca
def test_memory_of_a_size_known_late(engine: str) -> None:
    body = """
        and.b32 %r2, %r0, 3; add.u32 %r2, %r2, 1; mul.wide.u32 %rd2, %r2, 4;
        alloca.u64 %rd3, %rd2, 16; alloca.u64 %rd4, %rd2; st.local.u32 [%rd3], %r0; cvta.local.u64 %rd5, %rd4;
        st.u32 [%rd5], 7; ld.local.u32 %r3, [%rd3]; and.b64 %rd6, %rd3, 15; cvt.u32.u64 %r4, %rd6;
        add.u32 %r3, %r3, %r4; sub.u64 %rd7, %rd4, %rd3; cvt.u32.u64 %r5, %rd7; mad.lo.u32 %r3, %r5, 1000, %r3;
    """
    out, result = launch(body + STORE, engine)
    assert (out == np.where(LANE % 4 < 2, 8, 16) * 1000 + LANE).all() and result.findings == ()


def test_stack_is_saved_and_restored(engine: str) -> None:
    body = """
        mov.u32 %r4, 0;
    AGAIN: stacksave.u64 %rd2; alloca.u64 %rd3, 4000; st.local.u32 [%rd3+3996], %r4; ld.local.u32 %r3, [%rd3+3996];
        stackrestore.u64 %rd2; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 20; @%p1 bra AGAIN;
    """
    out, result = launch(body + STORE, engine)
    assert (out == 19).all() and result.findings == ()


def test_a_function_gives_its_memory_back(engine: str) -> None:
    """Forty calls, and recursive ones ten deep, of 400 bytes each."""
    outside = """
        .func (.param .b32 r) deep(.param .b32 n) { .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p;
            ld.param.b32 %r1, [n]; alloca.u64 %rd1, 400; st.local.b32 [%rd1], %r1; mov.b32 %r3, 0;
            setp.eq.u32 %p, %r1, 0; @%p bra DONE; sub.u32 %r2, %r1, 1;
            { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call (q), deep, (p); ld.param.b32 %r3, [q]; }
        DONE: ld.local.b32 %r4, [%rd1]; add.u32 %r3, %r3, %r4; st.param.b32 [r], %r3; ret; }
    """
    body = """
        mov.u32 %r4, 0;
    AGAIN: { .param .b32 p; .param .b32 q; st.param.b32 [p], 10; call (q), deep, (p); ld.param.b32 %r3, [q]; }
        add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 40; @%p1 bra AGAIN;
    """
    out, result = launch(body + STORE, engine, outside)
    assert (out == 55).all() and result.findings == ()


@pytest.mark.parametrize("size", ["16385", "0xFFFFFFFFFFFFFFFF"])
def test_more_than_there_is(engine: str, size: str) -> None:
    _, result = launch(f"mov.u64 %rd2, {size}; alloca.u64 %rd3, %rd2;", engine)
    assert [f.kind for f in result.findings] == ["trap"] and "`alloca` is full" in result.findings[0].message
