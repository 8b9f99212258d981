"""Calls, pointers to functions, recursion, indexed branches, on both engines: what each thread would compute alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from interp.launch import Module
from ptx.errors import InvalidInput, Unsupported
from tests.engine.assembly import STORE, text

LANE = np.arange(32, dtype=np.uint32)
pytestmark = pytest.mark.parametrize("engine", ["compiled", "traced"])


def run(body: str, engine: str, outside: str = "", words: int = 32) -> tuple[np.ndarray, object]:
    out = np.zeros(words, np.uint32)
    module = Module.from_ptx(text(body, outside=outside))
    return out, module["k"].launch(grid=(1,), block=(32,), args=[out], engine=engine)


def answers(body: str, engine: str, outside: str = "") -> np.ndarray:
    out, result = run(body + STORE, engine, outside)
    assert result.findings == ()
    return out


TWICE = """
.func (.param .b32 r) twice(.param .b32 a) {
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [a];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [r+0], %r2;
    ret;
}
"""
CALL = """
    {{ .param .b32 p0; st.param.b32 [p0+0], {source}; .param .b32 r0;
    {guard} call.uni (r0), {callee}, (p0){tail};
    ld.param.b32 {target}, [r0+0]; }}
"""


def call(callee: str, source: str, target: str, tail: str = "", guard: str = "") -> str:
    return CALL.format(callee=callee, source=source, target=target, tail=tail, guard=guard)


def test_one_function_from_three_places(engine: str) -> None:
    body = call("twice", "%r0", "%r3") + call("twice", "%r3", "%r4") + call("twice", "%r4", "%r5")
    body += "mad.lo.u32 %r3, %r5, 100, %r4;"
    assert (answers(body, engine, TWICE) == LANE * 804).all()


def test_calls_of_a_part_of_the_warp(engine: str) -> None:
    """Lanes that call the function from two places at once bring back their own answers."""
    body = f"""
        and.b32 %r2, %r0, 1;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 bra EVEN;
        {call("twice", "%r0", "%r3")}
        add.u32 %r3, %r3, 1000;
        bra JOIN;
    EVEN:
        mul.lo.u32 %r4, %r0, 3;
        {call("twice", "%r4", "%r3")}
    JOIN:
        add.u32 %r3, %r3, 1;
    """
    assert (answers(body, engine, TWICE) == np.where(LANE % 2 == 0, LANE * 6 + 1, LANE * 2 + 1001)).all()


def test_guarded_call(engine: str) -> None:
    body = "setp.gt.u32 %p1, %r0, 9; .param .b32 a0; .param .b32 b0; st.param.b32 [a0], %r0; st.param.b32 [b0], 7;"
    body += "@%p1 call (b0), twice, (a0); ld.param.b32 %r3, [b0];"
    assert (answers(body, engine, TWICE) == np.where(LANE > 9, 2 * LANE, 7)).all()


def test_parameters_in_registers(engine: str) -> None:
    outside = """
        .func (.reg .u32 q, .reg .u32 m) divide(.reg .u32 a, .reg .u32 b) { div.u32 q, a, b; rem.u32 m, a, b; ret.uni; }
    """
    body = "add.u32 %r4, %r0, 100; call (%r3, %r5), divide, (%r4, 7); mad.lo.u32 %r3, %r3, 1000, %r5;"
    assert (answers(body, engine, outside) == (LANE + 100) // 7 * 1000 + (LANE + 100) % 7).all()


def test_structure_by_parts(engine: str) -> None:
    """Written as bytes and words, read as other parts of the same bytes: memory, not registers."""
    outside = """
        .func (.param .align 8 .b8 r[8]) f(.param .align 8 .b8 a[16]) { .reg .b16 %h<4>; .reg .b64 %rd<4>;
            ld.param.u16 %h1, [a+2]; ld.param.b64 %rd1, [a+8]; cvt.u64.u16 %rd2, %h1; add.u64 %rd3, %rd1, %rd2;
            st.param.b64 [r], %rd3; ret; }
    """
    body = """
        .param .align 8 .b8 p[16]; .param .align 8 .b8 q[8];
        cvt.u16.u32 %h1, %r0;
        st.param.b32 [p], 0x50000; st.param.b8 [p+3], %h1; st.param.v2.b32 [p+8], {%r0, 1};
        call (q), f, (p);
        ld.param.v2.b32 {%r3, %r4}, [q];
        add.u32 %r3, %r3, %r4;
    """
    assert (answers(body, engine, outside) == LANE + 5 + (LANE << 8) + 1).all()


def test_factorial(engine: str) -> None:
    outside = """
        .func (.param .b32 r) fact(.param .b32 n) { .reg .b32 %r<9>; .reg .pred %p;
            ld.param.u32 %r1, [n]; mov.u32 %r4, 1; setp.lt.u32 %p, %r1, 2; @%p bra DONE; sub.u32 %r2, %r1, 1;
            { .param .b32 p0; st.param.b32 [p0], %r2; .param .b32 q0; call (q0), fact, (p0); ld.param.b32 %r3, [q0]; }
            mul.lo.u32 %r4, %r3, %r1;
        DONE: st.param.b32 [r], %r4; ret; }
    """
    body = "and.b32 %r4, %r0, 7;" + call("fact", "%r4", "%r3")
    assert answers(body, engine, outside).tolist() == [math.factorial(n % 8) for n in range(32)]


def test_recursion_in_registers_that_trade_places(engine: str) -> None:
    """gcd(a, b) = gcd(b, a mod b): one parameter's register is the argument of another."""
    outside = """
        .func (.reg .u32 g) gcd(.reg .u32 a, .reg .u32 b) { .reg .u32 t; .reg .pred z;
            setp.eq.u32 z, b, 0; @z bra END; rem.u32 t, a, b; call (g), gcd, (b, t); ret;
        END: mov.u32 g, a; ret; }
    """
    body = "mul.lo.u32 %r4, %r0, 6; call (%r3), gcd, (%r4, 84);"
    assert answers(body, engine, outside).tolist() == [math.gcd(6 * n, 84) for n in range(32)]


def test_fibonacci_keeps_its_array_in_each_frame(engine: str) -> None:
    """Two calls inside one function, and a local array whose address is passed on."""
    outside = """
        .func (.param .b32 r) fib(.param .b64 where) { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;
            .local .align 4 .b8 mine[8];
            ld.param.u64 %rd1, [where]; ld.local.u32 %r1, [%rd1]; mov.u32 %r5, %r1;
            setp.lt.u32 %p, %r1, 2; @%p bra DONE;
            mov.u64 %rd2, mine; sub.u32 %r2, %r1, 1; st.local.u32 [%rd2+4], %r2;  add.u64 %rd3, %rd2, 4;
            { .param .b64 p0; st.param.b64 [p0], %rd3; .param .b32 q0; call (q0), fib, (p0); ld.param.b32 %r3, [q0]; }
            ld.local.u32 %r2, [mine+4]; sub.u32 %r2, %r2, 1; st.local.u32 [mine], %r2;
            { .param .b64 p0; st.param.b64 [p0], %rd2; .param .b32 q0; call (q0), fib, (p0); ld.param.b32 %r4, [q0]; }
            add.u32 %r5, %r3, %r4;
        DONE: st.param.b32 [r], %r5; ret; }
    """
    body = """.local .align 4 .b8 top[4]; and.b32 %r4, %r0, 7; st.local.u32 [top], %r4; mov.u64 %rd4, top;
        { .param .b64 p0; st.param.b64 [p0], %rd4; .param .b32 q0; call (q0), fib, (p0); ld.param.b32 %r3, [q0]; }"""
    fib = [0, 1, 1, 2, 3, 5, 8, 13]
    assert answers(body, engine, outside).tolist() == [fib[n % 8] for n in range(32)]


def test_two_functions_that_call_each_other(engine: str) -> None:
    outside = """
        .func (.reg .u32 r) odd(.reg .u32 n);
        .func (.reg .u32 r) even(.reg .u32 n) { .reg .pred z; .reg .u32 m; setp.eq.u32 z, n, 0; @z bra YES;
            sub.u32 m, n, 1; call (r), odd, (m); add.u32 r, r, 10; ret; YES: mov.u32 r, 1; ret; }
        .func (.reg .u32 r) odd(.reg .u32 n) { .reg .pred z; .reg .u32 m; setp.eq.u32 z, n, 0; @z bra NO;
            sub.u32 m, n, 1; call (r), even, (m); add.u32 r, r, 100; ret; NO: mov.u32 r, 0; ret; }
    """
    expected = (LANE % 2 == 0) + (LANE + 1) // 2 * 10 + LANE // 2 * 100
    assert (answers("call (%r3), even, (%r0);", engine, outside) == expected).all()


def test_endless_recursion_fills_the_stack(engine: str) -> None:
    outside = ".func down(.reg .u32 n) { add.u32 n, n, 1; call down, (n); ret; }"
    _, result = run("call down, (%r0);" + STORE, engine, outside)
    (finding,) = result.findings
    assert finding.kind == "trap" and "stack of recursive calls is full" in finding.message


FUNCTIONS = TWICE + """
.func (.param .b32 r) thrice(.param .b32 a) { .reg .b32 %r<4>; ld.param.u32 %r1, [a]; mul.lo.u32 %r2, %r1, 3;
    st.param.b32 [r+0], %r2; ret; }
.func (.param .b32 r) never(.param .b32 a) { .reg .b32 %r<4>; mov.u32 %r2, 9; st.param.b32 [r+0], %r2; ret; }
.global .align 8 .u64 both[2] = {twice, thrice};
"""
POINTER = """
    and.b32 %r2, %r0, 1; mul.wide.u32 %rd2, %r2, 8; mov.u64 %rd3, both; add.u64 %rd3, %rd3, %rd2;
    ld.global.u64 %rd4, [%rd3];
"""


@pytest.mark.parametrize(
    "list_", ["P: .callprototype (.param .b32 _) _ (.param .b32 _);", "P: .calltargets thrice, twice;"]
)
def test_pointers_to_functions(engine: str, list_: str) -> None:
    body = POINTER + list_ + call("%rd4", "%r0", "%r3", ", P").replace("call.uni", "call")
    assert (answers(body, engine, FUNCTIONS) == np.where(LANE % 2 == 0, 2 * LANE, 3 * LANE)).all()


def test_pointer_to_no_function(engine: str) -> None:
    body = "P: .calltargets thrice, twice; mov.u64 %rd4, 64;" + call("%rd4", "%r0", "%r3", ", P")
    _, result = run(body + STORE, engine, FUNCTIONS)
    assert result.findings[0].kind == "trap" and "pointer" in result.findings[0].message


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9])
def test_indexed_branch(engine: str, n: int) -> None:
    labels = ", ".join(f"L{i}" for i in range(n))
    places = " ".join(f"L{i}: mov.u32 %r3, {100 + i}; bra JOIN;" for i in range(n))
    body = f"rem.u32 %r2, %r0, {n}; T: .branchtargets {labels}; brx.idx %r2, T; {places} JOIN: add.u32 %r3, %r3, 1;"
    assert (answers(body, engine) == 101 + LANE % n).all()


def test_index_outside_the_list(engine: str) -> None:
    _, result = run("T: .branchtargets A, B; brx.idx %r0, T; A: mov.u32 %r3, 1; B:" + STORE, engine)
    assert result.findings[0].kind == "trap" and "outside its list" in result.findings[0].message


def test_only_instructions_of_the_text_are_counted(engine: str) -> None:
    out, result = run(call("twice", "%r0", "%r3") + STORE, engine, TWICE)
    counts = [c.opcode for c in result.counters.instructions if not c.opcode.startswith(("mad", "mul", "mov.u32"))]
    assert counts.count("call.uni") == 1 and "shl.b32" in counts
    assert all(c.executions == 1 and c.active_lanes == 32 for c in result.counters.instructions)
    assert (out == 2 * LANE).all()


@pytest.mark.parametrize(
    ("body", "outside", "error", "message"),
    [
        ("call nothing;", "", InvalidInput, "`nothing` is not a function"),
        ("call (%r3), twice, ();", TWICE, InvalidInput, "has 1 arguments, the call 0"),
        ("call (%r3), sinf, (%r0);", ".extern .func (.reg .u32 r) sinf(.reg .u32 a);", Unsupported, "has no body"),
        ("call %rd2, ();", "", InvalidInput, "ends with the name of a .callprototype"),
        (".param .b64 p; .param .b32 q; call (q), twice, (p);", TWICE, InvalidInput, "has 4 bytes in `a`, the call's"),
        (
            ".param .b32 p; .param .b32 q; st.param.b32 [p+64], 7; call (q), twice, (p);", TWICE, InvalidInput,
            "bytes 64 to 68 of `p`, which has 4",
        ),
        ("brx.idx %r0;", "", InvalidInput, "no PTX"),
        ("bar.contribute 0, %p1;", "", InvalidInput, "no PTX"),
        ("div.factors.full.f32 %f1|%f2, %f3, %f4;", "", InvalidInput, "no PTX"),
        ("mov.b64 %rd5, {%r3, %r4, %r5};", "", InvalidInput, "vector of this length"),
        ("bar.sync 16;", "", InvalidInput, "no barrier 16"),
        ("bar.sync 1, 33;", "", InvalidInput, "not whole warps"),
        ("st.param.u32 [out], 1;", "", InvalidInput, "read only"),
        ("mov.u32 %r3, %envreg0;", "", Unsupported, "envreg0"),
    ],
)
def test_refused(engine: str, body: str, outside: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(body, engine, outside)


def test_a_result_that_nobody_wants(engine: str) -> None:
    body = "{ .param .b32 p0; st.param.b32 [p0+0], %r0; call (_), twice, (p0); } mov.u32 %r3, 5;"
    assert (answers(body, engine, TWICE) == 5).all()
