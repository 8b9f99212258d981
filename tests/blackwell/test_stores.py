"""What sm_100 brought for stores: st.bulk, and st.async and red.async to global memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuemu

ENGINES = ("compiled", "traced")
engines = pytest.mark.parametrize("engine", ENGINES)


def run(body: str, block: int = 32, count: int = 64, engine: str = "compiled", version: str = "8.7") -> Any:
    text = f"""
.version {version}
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p_out) {{
.shared .align 16 .b8 s[256];
.reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<5>; .reg .b16 %h<4>; .reg .f64 %f<3>;
ld.param.u64 %d0, [p_out]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1;
mad.wide.u32 %d2, %r0, 4, %d0; shl.b32 %r2, %r0, 3; add.u32 %r3, %r1, %r2; setp.eq.u32 %p0, %r0, 0;
{body}
ret; }}
"""
    out = np.zeros(count, np.uint32)
    result = gpuemu.Module.from_ptx(text)["k"].launch((1,), (block,), [out], engine=engine)
    return result, out


FILL = "mov.b64 %d3, -1; st.shared.b64 [%r3], %d3; bar.sync 0;"
READ = (
    "bar.sync 0; ld.shared.v2.b32 {%r4, %r5}, [%r3]; mad.wide.u32 %d3, %r0, 8, %d0;"
    "st.global.v2.b32 [%d3], {%r4, %r5};"
)


@engines
@pytest.mark.parametrize("store", [
    "mov.b64 %d4, 24; @%p0 st.bulk.weak.shared::cta [%r1+16], %d4, 0;",
    "@%p0 st.bulk [%d1+16], 24, 0;",
    "and.b32 %r6, %r0, 7; setp.eq.u32 %p1, %r6, 3; setp.eq.u32 %p2, %r0, 2; selp.u64 %d4, 8, 16, %p2; "
    "setp.eq.u32 %p1, %r0, 3; or.pred %p1, %p1, %p2; @%p1 st.bulk.shared::cta [%r3], %d4, 0;",
])
def test_bulk(engine: str, store: str) -> None:
    result, out = run(FILL + store + READ, engine=engine)
    assert result.findings == ()
    expected = np.full(64, 0xFFFFFFFF, np.uint32)
    expected[4:10] = 0
    np.testing.assert_array_equal(out, expected)


@engines
@pytest.mark.parametrize(("store", "kind"), [
    ("@%p0 st.bulk [%d0], 16, 0;", "out-of-bounds"),
    ("@%p0 st.bulk.shared::cta [%r1+248], 16, 0;", "out-of-bounds"),
    ("@%p0 st.bulk.shared::cta [%r1+4], 16, 0;", "misaligned"),
    ("mov.b64 %d4, 12; @%p0 st.bulk.shared::cta [%r1], %d4, 0;", "misaligned"),
])
def test_bulk_outside(engine: str, store: str, kind: str) -> None:
    result, _ = run(FILL + store, engine=engine)
    assert [f.kind for f in result.findings] == [kind]


@engines
def test_to_global_memory(engine: str) -> None:
    """Each lane its word, a byte of each, and a sum; seen by the thread at once."""
    body = """
    st.async.release.gpu.global.b32 [%d2], %r2; mov.b16 %h0, 9; st.async.mmio.release.sys.b8 [%d2+3], %h0;
    red.async.release.gpu.global.add.u32 [%d2], %r0; red.async.release.sys.global.max.s32 [%d0+128], %r0;
    mov.b64 %d3, 3; red.async.mmio.release.sys.add.s64 [%d0+136], %d3;
    """
    result, out = run(body, engine=engine)
    assert result.findings == ()
    np.testing.assert_array_equal(out[:32], np.arange(32) * 9 + (9 << 24))
    assert out[32:].tolist()[:3] == [31, 0, 96]


@pytest.mark.parametrize(("body", "message"), [
    ("st.bulk.shared::cta [%r1], 16, 1;", "the value must be 0"),
    ("st.async.mmio.release.gpu.global.b32 [%d0], %r0;", "is not modelled"),
    ("red.async.release.gpu.global.min.u64 [%d0], %d1;", "is not modelled"),
    ("st.async.release.cta.global.b32 [%d0], %r0;", "is not modelled"),
])
def test_refused(body: str, message: str) -> None:
    with pytest.raises((gpuemu.InvalidInput, gpuemu.Unsupported), match=message):
        run(body)


def test_needs_its_version() -> None:
    with pytest.raises(gpuemu.InvalidInput, match=r"needs PTX 8\.7"):
        run("st.async.release.gpu.global.b32 [%d0], %r0;", version="8.6")
