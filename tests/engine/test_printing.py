"""`printf` and assertions of kernels, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from interp.launch import Module, Result
from tests.engine.assembly import text

pytestmark = pytest.mark.parametrize("engine", ["compiled", "traced"])
DECLARED = """
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 line, .param .b64 g, .param .b64 size);
"""


def string(name: str, value: str) -> str:
    data = [*value.encode(), 0]
    return f".global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};\n"


PRINT = """
    {{ .param .b64 p0; .param .b64 p1; .param .b32 r0; mov.u64 %rd20, {format}; st.param.b64 [p0], %rd20;
    cvta.local.u64 %rd21, %rd19; st.param.b64 [p1], %rd21;
    call.uni (r0), vprintf, (p0, p1); ld.param.b32 %r3, [r0]; }}
"""


def run(body: str, outside: str, engine: str, block: int = 1, grid: int = 1) -> Result:
    module = Module.from_ptx(text(body + "ret;", outside=DECLARED + outside))
    return module["k"].launch(grid=(grid,), block=(block,), args=[np.zeros(64, np.uint32)], engine=engine)


def test_every_conversion(engine: str) -> None:
    """As the C library formats them; arguments at their natural alignment."""
    form = "%d|%5.2f|%-4u|%lld|%x|%#llX|%c|%s|%%|%*d|%e|%hhd|%p\\n".replace("\\n", "\n")
    body = """
        .local .align 8 .b8 a[104]; mov.u64 %rd19, a;
        st.local.s32 [a], -7; st.local.f64 [a+8], 0d400921FB54442D18; st.local.u32 [a+16], 42;
        st.local.s64 [a+24], -5000000000; st.local.u32 [a+32], 0xBEEF; st.local.u64 [a+40], 0xABCDEF0123;
        st.local.u32 [a+48], 90; mov.u64 %rd5, word; st.local.u64 [a+56], %rd5; st.local.u32 [a+64], 6;
        st.local.u32 [a+68], 77; st.local.f64 [a+72], 0d7FF0000000000000; st.local.u32 [a+80], 0x1FF;
        st.local.u64 [a+88], 4096;
    """ + PRINT.format(format="form")
    result = run(body, string("form", form) + string("word", "déjà"), engine)
    assert result.findings == ()
    assert result.printed == "-7| 3.14|42  |-5000000000|beef|0XABCDEF0123|Z|déjà|%|    77|inf|-1|0x1000\n"


def test_threads_and_blocks_in_the_order_of_execution(engine: str) -> None:
    body = ".local .align 8 .b8 a[8]; mov.u64 %rd19, a; mov.u32 %r4, %ctaid.x; st.local.v2.u32 [a], {%r4, %r0};"
    result = run(body + PRINT.format(format="form"), string("form", "%u.%u "), engine, block=3, grid=2)
    assert result.printed == "0.0 0.1 0.2 1.0 1.1 1.2 "


def test_a_full_buffer_drops_calls_and_says_so(engine: str) -> None:
    body = ".local .align 8 .b8 a[8]; mov.u64 %rd19, a;" + PRINT.format(format="form")
    result = run(body, string("form", "x" * 4000), engine, block=512)
    assert result.printed.count("x") == 260 * 4000
    assert result.printed.endswith("[252 calls of printf did not fit into 1048576 bytes]\n")


def test_a_format_that_is_no_string(engine: str) -> None:
    body = ".local .align 8 .b8 a[8]; mov.u64 %rd19, a; mov.u64 %rd20, 4096;" + PRINT.format(format="%rd20")
    (finding,) = run(body, "", engine).findings
    assert finding.kind == "out-of-bounds"


def test_failed_assertion(engine: str) -> None:
    body = """
        .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 g; .param .b64 s;
        mov.u64 %rd5, what; st.param.b64 [m], %rd5; st.param.b64 [f], %rd5; st.param.b32 [l], 12;
        st.param.b64 [g], %rd5; st.param.b64 [s], 1; setp.gt.u32 %p1, %r0, 20;
        @%p1 call __assertfail, (m, f, l, g, s);
    """
    (finding,) = run(body, string("what", "lane <= 20"), engine, block=32).findings
    assert finding.kind == "assertion" and finding.message == "device assertion failed: lane <= 20"
    assert finding.evidence["lane"] == 21


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("%", "%"), ("%5", "%5"), ("%-", "%-"), ("%l", "%l"), ("%..5d", "%..5d"), ("%1.2.3f", "%1.2.3f"),
        ("%99999999999d", "%99999999999d"), ("%#o", "037777777775"), ("%+u", "4294967293"), ("%+d", "-3"),
        ("%.*d|", "-3|"), ("%y", "%y"),
    ],
)  # fmt: skip
def test_odd_formats(form: str, expected: str, engine: str) -> None:
    """What C has not stays as it is written; a negative precision counts as none."""
    body = ".local .align 8 .b8 a[16]; mov.u64 %rd19, a; st.local.s32 [a], -3; st.local.s32 [a+4], -3;"
    result = run(body + PRINT.format(format="form"), string("form", form), engine)
    assert result.findings == () and result.printed == expected


def test_printf_returns_the_number_of_arguments(engine: str) -> None:
    out = np.zeros(64, np.uint32)
    body = ".local .align 8 .b8 a[16]; mov.u64 %rd19, a;" + PRINT.format(format="form") + "st.global.u32 [%rd1], %r3;"
    module = Module.from_ptx(text(body + "ret;", outside=DECLARED + string("form", "%d %*d%%")))
    module["k"].launch(grid=(1,), block=(1,), args=[out], engine=engine)
    assert out[0] == 3
