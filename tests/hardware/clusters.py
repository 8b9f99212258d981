"""Small PTX kernels over clusters of two CTAs, for the comparison with a real GPU (`cases.py`).

Each says its cluster shape itself, so that a plain launch runs it. Words of the output: `LANES` a CTA and row. Nothing
here depends on the order in which CTAs run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gpuemu
from tests.hopper.snippets import kernel, wait

GRID, LANES = 4, 32
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
START = f"""
.reg .f32 %f<8>; mov.u32 %r0, %cluster_ctarank; xor.b32 %r1, %r0, 1; mov.u32 %r2, %ctaid.x;
mad.lo.u32 %r3, %r2, {LANES}, %t; mad.wide.u32 %po, %r3, 4, %out; mad.wide.u32 %pi, %r3, 4, %in;
shl.b32 %r4, %t, 2; add.u32 %r4, %r4, %s; mapa.shared::cluster.u32 %r5, %r4, %r1; setp.eq.u32 %p0, %t, 0;
mapa.shared::cluster.u32 %r6, %s, %r1; ld.global.u32 %r7, [%pi];
"""
"""%r0: rank, %r1: the other rank, %r4: the lane's word, %r5: the other CTA's, %r6: its memory, %r7: the input word."""


def _store(row: int, register: str, type: str = "u32") -> str:
    return f"st.global.{type} [%po+{4 * GRID * LANES * row}], {register};"


def _arm(size: int) -> str:
    """A barrier at byte 4096 for the bytes that the other CTA sends."""
    return f"""@%p0 mbarrier.init.shared::cta.b64 [%s+4096], 1; fence.mbarrier_init.release.cluster;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+4096], {size}; {MEET}"""


def _got(row: int) -> str:
    return f"{wait(4096, 0)} ld.shared.u32 %r9, [%r4]; {_store(row, '%r9')} {MEET}"


REGISTERS = [f"%{r}.{c}" for r in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for c in "xyz"]
REGISTERS += ["%cluster_ctarank", "%cluster_nctarank"]

BODIES: dict[str, tuple[str, int]] = {
    "registers": (
        "".join(f"mov.u32 %r8, {name}; {_store(i, '%r8')}" for i, name in enumerate(REGISTERS))
        + "mov.pred %p1, %is_explicit_cluster; selp.u32 %r8, 1, 0, %p1;" + _store(14, "%r8")
        + _store(15, "%s") + _store(16, "%r5")
        + "getctarank.shared::cluster.u32 %r8, %r5;" + _store(17, "%r8")
        + "cvta.shared.u64 %d0, s; mapa.u64 %d1, %d0, %r1; getctarank.u64 %r8, %d1;" + _store(18, "%r8")
        + "cvta.to.shared.u64 %d2, %d1; cvt.u32.u64 %r8, %d2;" + _store(19, "%r8")
        + "".join(
            f"isspacep.{space} %p1, {address}; selp.u32 %r8, 1, 0, %p1;" + _store(20 + 2 * i + j, "%r8")
            for i, space in enumerate(("shared::cta", "shared::cluster", "global"))
            for j, address in enumerate(("%d0", "%d1"))
        ),
        26,
    ),
    "memory": (
        f"""st.shared.u32 [%r4], %r7; {MEET} ld.shared::cluster.u32 %r8, [%r5]; {MEET} {_store(0, "%r8")}
st.shared::cluster.u32 [%r5+128], %r7; {MEET} ld.shared.u32 %r8, [%r4+128]; {_store(1, "%r8")}
mov.b32 %f0, %r7; atom.shared::cluster.add.f32 %f1, [%r5], %f0; {MEET} ld.shared.f32 %f2, [%r4];
{_store(2, "%f1", "f32")} {_store(3, "%f2", "f32")}
red.relaxed.cluster.shared::cluster.add.f32 [%r5+128], %f0; {MEET} ld.shared.f32 %f2, [%r4+128];
{_store(4, "%f2", "f32")} {MEET}
atom.shared::cluster.max.u32 %r8, [%r5], %t; {_store(5, "%r8")}
atom.shared::cluster.cas.b32 %r8, [%r5+128], %r7, %t; {_store(6, "%r8")} {MEET}
ld.shared.v2.u32 {{%r8, %r9}}, [%s]; {_store(7, "%r8")} {_store(8, "%r9")}""",
        9,
    ),
    "generic_atomics": (
        f"""st.shared.u32 [%r4], %r7; {MEET} cvt.u64.u32 %d0, %r4; cvta.shared.u64 %d0, %d0; mov.b32 %f0, %r7;
atom.add.f32 %f1, [%d0], %f0; mapa.u64 %d1, %d0, %r1; ld.shared.f32 %f2, [%r4]; {_store(0, "%f1", "f32")}
{_store(1, "%f2", "f32")} {MEET} red.add.f32 [%d1], %f0; {MEET} ld.shared.f32 %f2, [%r4]; {_store(2, "%f2", "f32")}""",
        3,
    ),
    "arrivals": (
        f"""@%p0 mbarrier.init.shared::cta.b64 [%s+4096], {LANES}; fence.mbarrier_init.release.cluster; {MEET}
st.shared::cluster.u32 [%r5], %r7; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6+4096]; {_got(0)}""",
        1,
    ),
    "words": (
        f"""{_arm(4 * LANES)}
st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r5], %r7, [%r6+4096]; {_got(0)}""",
        1,
    ),
    "bulk": (
        f"""{_arm(4 * LANES)} st.shared.u32 [%r4+1024], %r7; fence.proxy.async.shared::cta; bar.sync 0;
@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [%s+1024], 128, [%r6+4096];
{_got(0)}""",
        1,
    ),
    "multicast": (
        f""".reg .b16 %h0; mov.u16 %h0, 3; {_arm(4 * LANES)} setp.eq.u32 %p1, %r0, 1; and.pred %p1, %p1, %p0;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
[%s], [%pi], 128, [%s+4096], %h0; {_got(0)}""",
        1,
    ),
}  # fmt: skip


def case(name: str) -> Callable[[], None]:
    """A function that launches one of the kernels."""

    def run() -> None:
        body, rows = BODIES[name]
        text = kernel(START + body + MEET).replace("p_out) {", "p_out) .explicitcluster .reqnctapercluster 2 {")
        given = np.random.default_rng(5).standard_normal(GRID * LANES).astype(np.float32).view(np.uint32)
        given[:LANES] = np.arange(1, LANES + 1) * 0x11111  # subnormal numbers
        module = gpuemu.Module.from_ptx(text, device="sm_90", fmad="off")
        result = module["k"].launch((GRID,), (LANES,), [given, np.zeros((rows, GRID * LANES), np.uint32)])
        assert result.findings == ()

    return run
