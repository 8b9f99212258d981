"""What a launch refuses before anything runs, and how it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from interp.arguments import parameter_block
from interp.launch import Module, recording
from interp.structure import Structure
from ptx.errors import InvalidInput, LaunchFailure, Unsupported
from tests.engine.assembly import entry, text

NOTHING = "ret;"
OUT = np.zeros(4, np.uint32)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"grid": (0, 1, 1)}, LaunchFailure, "grid"),
        ({"grid": (1, 65536, 1)}, LaunchFailure, "grid"),
        ({"block": (1, 1, 65)}, LaunchFailure, "block"),
        ({"block": (33, 32, 1)}, LaunchFailure, "1056 threads"),
        ({"block": (0, 1, 1)}, LaunchFailure, "block"),
        ({"shared": 200_000}, LaunchFailure, "shared memory"),
        ({"shared": -1}, LaunchFailure, "shared memory"),
        ({"grid": 1.5}, InvalidInput, "grid"),
        ({"fuel": 0}, InvalidInput, "fuel=0"),
        ({"fuel": "9"}, InvalidInput, "fuel='9'"),
        ({"ctas": [0]}, InvalidInput, "ctas="),
        ({"grid": (1, 1, 1, 1)}, InvalidInput, "one to three"),
        ({"args": []}, InvalidInput, "1 arguments, not 0"),
        ({"args": [OUT, 1]}, InvalidInput, "1 arguments, not 2"),
        ({"args": ["text"]}, InvalidInput, "parameter 'out'"),
        ({"args": [1.5]}, InvalidInput, "parameter 'out'"),
        ({"args": [1 << 64]}, InvalidInput, "does not fit"),
        ({"ctas": []}, InvalidInput, "ctas is empty"),
        ({"ctas": [(4, 0, 0)], "grid": 4}, InvalidInput, "outside the grid"),
        ({"engine": "imaginary"}, InvalidInput, "engine"),
        ({"grid": (1 << 30, 1000, 1)}, Unsupported, "ctas"),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error) as caught:
        entry(NOTHING).launch(**{"grid": 1, "block": 32, "args": [OUT], **options})
    assert told in str(caught.value)


def test_huge_grid_runs_in_part() -> None:
    out = np.zeros(2, np.uint32)
    body = """
        mov.u32 %r3, %ctaid.x;
        mov.u32 %r4, %nctaid.y;
        st.global.v2.u32 [%rd0], {%r3, %r4};
        ret;
    """
    result = entry(body).launch(grid=(1 << 30, 1000, 1), block=1, args=[out], ctas=[((1 << 30) - 1, 999, 0)])
    assert result.findings == () and list(out) == [(1 << 30) - 1, 1000]


def test_directives_bind_the_block() -> None:
    assert entry(NOTHING, directives=".maxntid 64, 1, 1").launch(grid=1, block=64, args=[OUT]).findings == ()
    with pytest.raises(LaunchFailure, match="maxntid"):
        entry(NOTHING, directives=".maxntid 64, 1, 1").launch(grid=1, block=65, args=[OUT])
    with pytest.raises(LaunchFailure, match="reqntid"):
        entry(NOTHING, directives=".reqntid 128").launch(grid=1, block=64, args=[OUT])


def test_code_and_device() -> None:
    assert Module.from_ptx(text(NOTHING), target="sm_80").target == "sm_80"
    assert Module.from_ptx(text(NOTHING), device="sm_90").device.name == "sm_90"
    with pytest.raises(InvalidInput, match="is for sm_80"):
        Module.from_ptx(text(NOTHING), target="sm_90")
    with pytest.raises(InvalidInput, match="does not run on"):
        Module.from_ptx(text(NOTHING), device="sm_75")
    with pytest.raises(InvalidInput, match="does not run on"):
        Module.from_ptx(text(NOTHING, target="sm_90a"), device="sm_100")
    with pytest.raises(InvalidInput, match="unknown device"):
        Module.from_ptx(text(NOTHING), device="sm_1")


def test_limits_are_those_of_the_device() -> None:
    body = text(NOTHING)
    options: dict[str, Any] = {"grid": 1, "block": 32, "args": [OUT], "shared": 200 * 1024}
    assert Module.from_ptx(body, device="sm_90")["k"].launch(**options).findings == ()
    with pytest.raises(LaunchFailure, match="sm_80 allows"):
        Module.from_ptx(body)["k"].launch(**options)


def test_unknown_names() -> None:
    module = Module.from_ptx(text(NOTHING))
    assert list(module) == ["k"] and len(module) == 1
    with pytest.raises(InvalidInput, match="no entry 'kernel'"):
        module["kernel"]
    with pytest.raises(InvalidInput, match="nowhere"):
        entry("mov.u64 %rd2, nowhere;\nret;").launch(grid=1, block=1, args=[OUT])


def test_what_is_not_modelled_is_named_with_its_line_before_anything_runs() -> None:
    out = np.zeros(32, np.uint32)
    with pytest.raises(Unsupported) as caught:
        entry("st.global.u32 [%rd1], %r0;\ntex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r0}];\nret;").launch(
            grid=1, block=32, args=[out]
        )
    assert "tex.1d" in str(caught.value) and (out == 0).all()


def test_call_of_a_function() -> None:
    """One that the compiler did not inline."""
    outside = """
        .func (.param .b32 result) twice(.param .b32 given)
        {
            .reg .b32 %a;
            ld.param.b32 %a, [given];
            add.u32 %a, %a, %a;
            st.param.b32 [result], %a;
            ret;
        }
    """
    body = """
        {
            .param .b32 argument;
            .param .b32 answer;
            st.param.b32 [argument], %r0;
            call.uni (answer), twice, (argument);
            ld.param.b32 %r3, [answer];
        }
        st.global.u32 [%rd1], %r3;
        ret;
    """
    out = np.zeros(32, np.uint32)
    result = entry(body, outside=outside).launch(grid=1, block=32, args=[out])
    assert result.findings == () and (out == 2 * np.arange(32)).all()


def test_the_cache_tells_texts_apart_whatever_their_lines_begin_with() -> None:
    """`.loc` and `.file` lines do not change code; `.local` begins with the same letters."""
    from interp.engine.compiled import essence

    one, other = (f".local .b8 own[8]; mov.u32 %r1, {n};\n.loc 1 {n} 1\n" for n in (1, 2))
    assert essence(one) != essence(other)
    assert essence(one.replace(".loc 1 1 1", "")) == essence(one)


@pytest.mark.parametrize(
    ("text", "is_noise"),
    [
        (".loc 1 5 0                   // k.py:5:0", True),
        (".loc 1 5 0, function_name $L__info_string0, inlined_at 1 6 0", True),
        ('.file 1 "/a b/https://k.py" 0xAB', False),  # no form that compilers write
        ('.file 1 "/a/k.py"', True),
        ("$L__tmp1:  // a label of debug data", True),
        ("/* mov.u32 %r1, 3; */", True),
        (".section .debug_str\n{\n.b8 1 // }\n.b8 2\n}", True),
        (".loc 1 5 0 mov.u32 %r1, 3;", False),
        ("$L__tmp1: mov.u32 %r1, 3;", False),
        ("/* // */ mov.u32 %r1, 3;", False),
        (".section .debug_str { .b8 1 } mov.u32 %r1, 3;", False),
    ],
)
def test_only_what_changes_no_code_is_left_out_of_the_key(text: str, is_noise: bool) -> None:
    from interp.engine.compiled import essence

    assert (essence(f"add.u32 %r1, %r1, 1;\n{text}\nret;\n") == "add.u32 %r1, %r1, 1;\nret;") == is_noise


def test_a_structure_with_addresses_in_it() -> None:
    """`struct { int* out; int n; float* x; }` by value, as CUDA C++ passes it."""
    out, x = np.zeros(32, np.uint32), np.arange(32, dtype=np.float32)
    ptx = """
        .version 8.0\n.target sm_80\n.address_size 64
        .visible .entry k(.param .align 8 .b8 s[24]) {
            .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<4>;
            ld.param.u64 %rd1, [s]; ld.param.u32 %r1, [s+8]; ld.param.u64 %rd2, [s+16]; mov.u32 %r2, %tid.x;
            mul.wide.u32 %rd3, %r2, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
            ld.global.f32 %f1, [%rd2]; cvt.rzi.u32.f32 %r3, %f1; add.u32 %r3, %r3, %r1; st.global.u32 [%rd1], %r3; ret;
        }"""
    kernel = Module.from_ptx(ptx)["k"]
    data = bytes(8) + (1000).to_bytes(4, "little") + bytes(12)
    result = kernel.launch((1,), (32,), [Structure(data, {0: out, 16: x})])
    assert result.findings == () and (out == 1000 + np.arange(32)).all()
    result = kernel.launch((1,), (32,), [Structure(data, {0: out[:8], 16: x})], names=["s"])
    assert [(f.kind, f.array, f.index) for f in result.findings] == [("out-of-bounds", "s", (8,))]
    with pytest.raises(InvalidInput, match="a structure of 16 bytes"):
        kernel.launch((1,), (32,), [Structure(data[:16], {0: out})])
    with pytest.raises(InvalidInput, match="8 bytes at offset 20 of a structure of 24"):
        Structure(data, {20: out})
    with pytest.raises(InvalidInput, match="at an offset, not 5 at 0"):
        Structure(data, {0: 5})
    with pytest.raises(InvalidInput, match="bytes and a mapping"):
        Structure(16, {0: out})
    with recording(), pytest.raises(Unsupported, match="with a structure"):
        kernel.launch((1,), (32,), [Structure(data, {0: out, 16: x})])


def test_local_memory_that_no_thread_has() -> None:
    with pytest.raises(LaunchFailure, match="bytes of local memory a thread"):
        entry(".local .b8 own[99999999999]; ret;").launch(1, 32, [OUT])


def test_float_beyond_its_parameter() -> None:
    kernel = Module.from_ptx(".version 8.0 .target sm_80 .address_size 64 .entry k(.param .f32 x) { ret; }").ir.kernel(
        "k"
    )
    assert parameter_block(kernel, [1], {})[:4] == np.float32(1).tobytes()
    for value in (1e300, 10**400):
        with pytest.raises(InvalidInput, match="which does not fit"):
            parameter_block(kernel, [value], {})


def test_names_that_a_module_has_not() -> None:
    module = Module.from_ptx(text(NOTHING))
    assert "k" in module and "kernel" not in module
