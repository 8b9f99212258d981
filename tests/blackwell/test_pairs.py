"""`.cta_group::2`: two CTAs of a cluster multiply together, each with its half of A, of B and of the result."""

from __future__ import annotations

import numpy as np
import pytest

import gpuemu
from tests.blackwell.tcgen05_ptx import ROOM
from tests.blackwell.test_mma import descriptor, in_shared, whole
from tests.blackwell.test_sparse import SPARSE, b_in_shared, columns, drawn, full, in_tensor_memory, wide_b

COLUMNS = 64


def kernel(idesc: int, a: int, b: int, *, lanes: tuple[int, ...] = (), sparse: bool = False) -> str:
    """PTX of entry `k(a, b, out)` for a cluster of two CTAs of 128 threads; a, b: descriptors without address. The even
    CTA issues; the commit arrives in both. Each CTA writes COLUMNS columns of its tensor memory. With a sparse A the
    first word of each row of `out` goes, as metadata, to column 32 before."""
    registers = ", ".join(f"%r{i}" for i in range(8))
    masks, setup = "", ""
    if lanes:
        setup = "".join(f"mov.u32 %m{i}, {m:#x};" for i, m in enumerate(lanes))
        masks = "{" + ", ".join(f"%m{i}" for i in range(8)) + "}, "
    meta = store = ""
    if sparse:
        meta = "[%x10], "
        store = "ld.global.b32 %r0, [%p2]; tcgen05.st.sync.aligned.32x32b.x1.b32 [%lane+32], {%r0};"
        store += "tcgen05.wait::st.sync.aligned; add.u32 %x10, %base, 32;"
    read = ""
    for c in range(0, COLUMNS, 8):
        read += f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{registers}}}, [%lane+{c}]; tcgen05.wait::ld.sync.aligned;"
        read += "".join(f"st.global.b32 [%p2+{4 * (c + i)}], %r{i};" for i in range(8))
    return f"""
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 po) .reqnctapercluster 2 {{
.shared .align 1024 .b8 sa[{ROOM}]; .shared .align 1024 .b8 sb[{ROOM}]; .shared .align 8 .b8 sm[16];
.reg .b32 %t, %rank, %base, %lane, %bar, %i, %x<16>, %r<8>, %m<8>; .reg .b16 %h; .reg .b64 %p<8>, %da, %db;
.reg .pred %q<8>; mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank;
ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb]; ld.param.u64 %p2, [po];
mov.u32 %bar, sm; add.u32 %bar, %bar, 8; setp.eq.u32 %q0, %t, 0; setp.lt.u32 %q1, %t, 32;
@%q0 mbarrier.init.shared::cta.b64 [%bar], 1;
@%q1 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [sm], 64;
mul.wide.u32 %p3, %rank, {ROOM}; add.u64 %p0, %p0, %p3; add.u64 %p1, %p1, %p3; mov.u32 %x1, sa; mov.u32 %x2, sb; mov.u32
%x3, %t; L: shl.b32 %x4, %x3, 2; cvt.u64.u32 %p3, %x4; add.u64 %p4, %p0, %p3; add.u64 %p5, %p1, %p3;
ld.global.b32 %x5, [%p4]; ld.global.b32 %x6, [%p5]; add.u32 %x7, %x1, %x4; st.shared.b32 [%x7], %x5;
add.u32 %x7, %x2, %x4; st.shared.b32 [%x7], %x6; add.u32 %x3, %x3, 128; setp.lt.u32 %q2, %x3, {ROOM // 4}; @%q2 bra L;
fence.proxy.async; bar.sync 0; ld.shared.b32 %base, [sm];
mad.lo.u32 %x8, %rank, 128, %t; mul.wide.u32 %p3, %x8, {4 * COLUMNS}; add.u64 %p2, %p2, %p3;
shr.u32 %lane, %t, 5; shl.b32 %lane, %lane, 21; add.u32 %lane, %lane, %base; {store}
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
shr.u32 %x9, %x1, 4; cvt.u64.u32 %da, %x9; or.b64 %da, %da, {a:#x};
shr.u32 %x9, %x2, 4; cvt.u64.u32 %db, %x9; or.b64 %db, %db, {b:#x};
setp.eq.u32 %q3, %rank, 0; and.pred %q3, %q3, %q0; setp.ne.u32 %q4, %t, %t; mov.u32 %i, {idesc:#x}; mov.u16 %h, 3;
{setup} @%q3 tcgen05.mma{".sp" * sparse}.cta_group::2.kind::f16 [%base], %da, %db, {meta}%i, {masks}%q4;
@%q3 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %h;
W: mbarrier.try_wait.parity.shared::cta.b64 %q5, [%bar], 0; @!%q5 bra W;
tcgen05.fence::after_thread_sync; {read}
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@%q1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %base, 64;
ret;
}}
"""


def launch(m: int, n: int, **options: object) -> tuple[np.ndarray, np.ndarray]:
    """(cells [rank, lane, column], product of whole numbers [m, n])."""
    (wa, va), (wb, vb) = whole("f16", 1, m), whole("f16", 2, n)
    a = [in_shared(wa[half * m // 2 : (half + 1) * m // 2], "f16") for half in range(2)]
    b = [in_shared(wb[half * n // 2 : (half + 1) * n // 2], "f16", 64) for half in range(2)]
    lanes = options.pop("lanes", ())
    text = kernel(descriptor(m, n, ("f32", "f16", "f16")), a[0].descriptor, b[0].descriptor, lanes=lanes)  # type: ignore[arg-type]
    out = np.zeros((2, 128, COLUMNS), np.uint32)
    images = [np.concatenate([x.image for x in half]) for half in (a, b)]
    result = gpuemu.Module.from_ptx(text)["k"].launch((2,), (128,), [*images, out], **options)  # type: ignore[arg-type]
    assert result.findings == (), result.findings
    return out.view(np.float32), va @ vb.T


@pytest.mark.parametrize("engine", ["compiled", "traced"])
def test_a_product_of_256_rows(engine: str) -> None:
    cells, values = launch(256, 64, engine=engine)
    np.testing.assert_array_equal(cells.reshape(256, 64), values)


@pytest.mark.parametrize("mode", ["late", "eager"])
def test_a_product_of_128_rows_has_two_halves_of_columns(mode: str) -> None:
    cells, values = launch(128, 96, asynchrony=mode)
    for rank in range(2):
        for half in range(2):
            expected = values[64 * rank : 64 * rank + 64, 48 * half : 48 * half + 48]
            np.testing.assert_array_equal(cells[rank, 64 * half : 64 * half + 64, :48], expected)


def test_lanes_that_are_left_out_in_both() -> None:
    cells, values = launch(256, 64, lanes=(1, 0, 0, 0, 0, 0, 0, 0x80000000))
    left = np.zeros(256, bool)
    left[[0, 255]] = True
    np.testing.assert_array_equal(cells.reshape(256, 64)[~left], values[~left])
    assert (cells.reshape(256, 64)[left].view(np.uint32) == 0xFFFFFFFF).all()


def test_a_sparse_product_of_256_rows() -> None:
    m, n, types = 256, 32, ("f32", "f16", "f16")
    nibbles = drawn(m, 2)
    (wa, va), (wb, vb) = whole("f16", 1, m), wide_b("f16", 2, n)
    a = [in_shared(wa[half * 128 : half * 128 + 128], "f16") for half in range(2)]
    b = [b_in_shared(wb[half * 16 : half * 16 + 16], "f16", 64) for half in range(2)]
    text = kernel(descriptor(m, n, types, more=SPARSE), a[0].descriptor, b[0].descriptor, sparse=True)
    out = np.zeros((2, 128, COLUMNS), np.uint32)
    for half in range(2):
        out[half, :, 0] = in_tensor_memory(nibbles[half * 128 : half * 128 + 128], 2)[:, 1]
    images = [np.concatenate([x.image for x in half]) for half in (a, b)]
    result = gpuemu.Module.from_ptx(text)["k"].launch((2,), (128,), [*images, out])
    assert result.findings == (), result.findings
    got = out.view(np.float32).reshape(m, COLUMNS)[:, :n]
    np.testing.assert_array_equal(got, full(va, columns(nibbles, 2)) @ vb.T)
