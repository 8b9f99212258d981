"""Small PTX programs of what Triton's kernels leave out, for the comparison with a real GPU (`cases.py`): calls,
indexed branches, reducing barriers, the carry flag, refined functions.

Each has the parameters `out` (u32, WORDS a thread) and `given` (u64, WORDS a thread).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gpuemu
from interp.tensor_map import TensorMap
from tests.engine.test_calls import FUNCTIONS, TWICE, call
from tests.hopper.snippets import kernel, wait
from tests.hopper.test_asynchrony import EXPECT, INIT, MAP, ONE_THREAD, READ, TAKE_MAP

THREADS, GRID, WORDS = 128, 2, 4
HEAD = """
.reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f64 %fd<9>; .reg .f32 %f<20>; .reg .b64 %po, %pi;
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r0, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r0;
ld.param.u64 %po, [out]; ld.param.u64 %pi, [given]; mad.wide.u32 %po, %r1, 16, %po; mad.wide.u32 %pi, %r1, 32, %pi;
ld.global.v2.u64 {%rd10, %rd11}, [%pi]; ld.global.v2.u64 {%rd12, %rd13}, [%pi+16];
cvt.u32.u64 %r10, %rd10; cvt.u32.u64 %r11, %rd11; cvt.u32.u64 %r12, %rd12; cvt.u32.u64 %r13, %rd13;
"""
STORE = "st.global.v4.u32 [%po], {%r30, %r31, %r32, %r33}; ret;"

FACTORIAL = """
.func (.param .b32 r) fact(.param .b32 n) { .reg .b32 %r<9>; .reg .pred %p;
    ld.param.u32 %r1, [n]; mov.u32 %r4, 1; setp.lt.u32 %p, %r1, 2; @%p bra DONE; sub.u32 %r2, %r1, 1;
    { .param .b32 p0; st.param.b32 [p0], %r2; .param .b32 q0; call (q0), fact, (p0); ld.param.b32 %r3, [q0]; }
    mul.lo.u32 %r4, %r3, %r1;
DONE: st.param.b32 [r], %r4; ret; }
"""

PROGRAMS: dict[str, tuple[str, str]] = {
    "calls": (
        TWICE,
        call("twice", "%r10", "%r30")
        + "and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra EVEN;"
        + call("twice", "%r11", "%r31")
        + "bra JOIN; EVEN:"
        + call("twice", "%r12", "%r31")
        + "JOIN: add.u32 %r32, %r30, %r31; mov.u32 %r33, 0;",
    ),
    "recursion": (
        FACTORIAL,
        "and.b32 %r3, %r10, 11;" + call("fact", "%r3", "%r30") + "mov.u32 %r31, %r3; mov.u32 %r32, 0; mov.u32 %r33, 0;",
    ),
    "pointers": (
        FUNCTIONS,
        "and.b32 %r3, %r10, 1; mul.wide.u32 %rd2, %r3, 8; mov.u64 %rd3, both; add.u64 %rd3, %rd3, %rd2;"
        "ld.global.u64 %rd4, [%rd3]; P: .callprototype (.param .b32 _) _ (.param .b32 _);"
        + call("%rd4", "%r11", "%r30", ", P").replace("call.uni", "call")
        + "mov.u32 %r31, %r3; mov.u32 %r32, 0; mov.u32 %r33, 0;",
    ),
    "indexed_branch": (
        "",
        "rem.u32 %r3, %r10, 7; T: .branchtargets L0, L1, L2, L3, L4, L5, L6; brx.idx %r3, T;"
        + "".join(f"L{i}: mov.u32 %r30, {100 + i}; bra JOIN;" for i in range(7))
        + "JOIN: mov.u32 %r31, %r3; mov.u32 %r32, 0; mov.u32 %r33, 0;",
    ),
    "reducing_barriers": (
        "",
        "setp.lt.s32 %p1, %r10, 0; setp.ne.u32 %p2, %r0, 200; bar.red.popc.u32 %r30, 0, %p1;"
        "bar.red.popc.u32 %r31, 0, !%p1; bar.red.and.pred %p3, 0, %p2; bar.red.or.pred %p4, 0, !%p2;"
        "selp.u32 %r32, 1, 0, %p3; selp.u32 %r33, 1, 0, %p4;",
    ),
    "carry_mixed": (
        "",
        "sub.cc.u32 %r30, %r10, %r11; addc.u32 %r31, %r12, 0; add.cc.u32 %r32, %r10, %r11; subc.u32 %r33, %r13, 0;",
    ),
    "carry_mixed_64": (
        "",
        "sub.cc.u64 %rd20, %rd10, %rd11; addc.u64 %rd21, %rd12, %rd13; mov.b64 {%r30, %r31}, %rd21;"
        "add.cc.u64 %rd20, %rd10, %rd11; subc.u64 %rd21, %rd12, %rd13; mov.b64 {%r32, %r33}, %rd21;",
    ),
    "fusion": (
        "",
        "mov.b32 %f1, %r10; mov.b32 %f2, %r11; mov.b32 %f3, %r12; mov.b32 %f4, %r13; mul.f32 %f5, %f1, %f2;"
        "add.f32 %f6, %f5, %f3; mul.f32 %f7, %f1, %f4; sub.f32 %f8, %f7, %f6; mul.f32 %f9, %f3, %f4; mul.f32 %f10, %f2,"
        "%f3; add.f32 %f11, %f9, %f10; sub.f32 %f12, %f1, %f10; mul.ftz.f32 %f13, %f3, %f2;"
        "add.ftz.f32 %f14, %f13, %f4;"
        "mov.b32 %r30, %f8; mov.b32 %r31, %f11; mov.b32 %r32, %f12; mov.b32 %r33, %f14;",
    ),
    "fusion_division": (
        "",
        "mov.b32 %f1, %r10; mov.b32 %f2, %r11; mov.b32 %f3, %r12; mov.b32 %f4, %r13; div.full.f32 %f5, %f1, %f2;"
        "add.f32 %f6, %f5, %f3; div.approx.f32 %f7, %f2, %f3; sub.f32 %f8, %f4, %f7; div.full.ftz.f32 %f9, %f1, %f4;"
        "add.ftz.f32 %f10, %f2, %f9; div.approx.ftz.f32 %f11, %f3, %f1; sub.ftz.f32 %f12, %f11, %f2;"
        "mov.b32 %r30, %f6; mov.b32 %r31, %f8; mov.b32 %r32, %f10; mov.b32 %r33, %f12;",
    ),
    "fusion_f64": (
        "",
        "mov.b64 %fd1, %rd10; mov.b64 %fd2, %rd11; mov.b64 %fd3, %rd12; mul.f64 %fd4, %fd1, %fd2; add.f64 %fd5, %fd3,"
        "%fd4; sub.f64 %fd6, %fd4, %fd3; mov.b64 {%r30, %r31}, %fd5; mov.b64 {%r32, %r33}, %fd6;",
    ),
    "fusion_f16": (
        "",
        "mul.f16x2 %r20, %r10, %r11; add.f16x2 %r30, %r20, %r12; sub.f16x2 %r31, %r13, %r20;"
        "mul.f16x2 %r21, %r12, %r13; add.f16x2 %r32, %r20, %r21; mul.bf16x2 %r22, %r10, %r11;"
        "add.bf16x2 %r33, %r22, %r13;",
    ),
    "fusion_loop": (
        "",
        "mov.b32 %f1, %r10; mov.b32 %f2, %r11; mov.b32 %f3, %r12; and.b32 %r20, %r13, 15; add.u32 %r20, %r20, 1;"
        "LOOP: mul.f32 %f4, %f1, %f2; add.f32 %f3, %f4, %f3; mul.f32 %f1, %f3, %f2; add.f32 %f5, %f1, %f2; "
        "sub.u32 %r20, %r20, 1; setp.ne.u32 %p1, %r20, 0; @%p1 bra LOOP;"
        "mov.b32 %r30, %f3; mov.b32 %r31, %f5; mov.b32 %r32, %f1; mov.u32 %r33, 0;",
    ),
    "wide_memory": (
        ".const .align 16 .b64 fixed[2] = {7, 9};",
        ".reg .b128 %x<6>; .shared .align 16 .b8 area[2048]; .local .align 16 .b8 own[32]; mov.u32 %r3, area;"
        "shl.b32 %r4, %r0, 4; add.u32 %r3, %r3, %r4; mov.u64 %rd20, own; mov.u64 %rd21, fixed;"
        "ld.global.b128 %x0, [%pi+16]; st.shared.b128 [%r3], %x0; ld.volatile.shared.b128 %x1, [%r3];"
        "st.local.b128 [%rd20+16], %x1; ld.local.b128 %x2, [%rd20+16]; mov.b128 {%r5, %r6, %r7, %r8}, %x2;"
        "mov.b128 %x3, {%r7, %r8, %r5, %r6}; mov.b128 %x1, %x3; mov.b128 {_, %rd22}, %x1; mov.b128 {%rd23, _}, %x1;"
        "ld.const.b128 %x4, [%rd21]; mov.b128 {%rd24, %rd25}, %x4; add.u64 %rd22, %rd22, %rd24;"
        "add.u64 %rd23, %rd23, %rd25; setp.lt.s32 %p1, %r10, 0; mov.b128 %x5, 0; @%p1 mov.b128 %x5, {%rd22, %rd23};"
        "st.relaxed.gpu.global.b128 [%po], %x5; ld.global.v4.u32 {%r30, %r31, %r32, %r33}, [%po];",
    ),
    "wide_atomics": (
        "",
        ".reg .b128 %x<6>; .shared .align 16 .b8 area[2064]; mov.u32 %r3, area; shl.b32 %r4, %r0, 4;"
        "add.u32 %r4, %r3, %r4; mov.b128 %x0, {%rd10, %rd11}; st.shared.b128 [%r4], %x0; mov.b128 %x5, 0;"
        "st.shared.b128 [%r3+2048], %x5; bar.sync 0; mov.b128 %x1, {%rd12, %rd13};"
        "atom.acq_rel.cta.shared.exch.b128 %x2, [%r4], %x1; atom.shared.cas.b128 %x3, [%r4], %x1, %x2;"
        "atom.shared.cas.b128 %x4, [%r4], %x1, %x5; mov.b128 {%rd20, %rd21}, %x3; mov.b128 {%rd22, %rd23}, %x4;"
        "xor.b64 %rd24, %rd20, %rd22; xor.b64 %rd25, %rd21, %rd23; mov.b64 %rd26, 0; mov.b64 %rd27, 0;"
        "AGAIN: add.cc.u64 %rd28, %rd26, %rd10; addc.u64 %rd29, %rd27, %rd11; mov.b128 %x0, {%rd26, %rd27};"
        "mov.b128 %x1, {%rd28, %rd29}; atom.relaxed.cta.shared.cas.b128 %x2, [%r3+2048], %x0, %x1;"
        "mov.b128 {%rd28, %rd29}, %x2; setp.ne.u64 %p1, %rd28, %rd26; setp.ne.u64 %p2, %rd29, %rd27;"
        "or.pred %p1, %p1, %p2; mov.b64 %rd26, %rd28; mov.b64 %rd27, %rd29; @%p1 bra AGAIN; bar.sync 0;"
        "ld.shared.b128 %x0, [%r3+2048]; mov.b128 {%rd28, %rd29}, %x0; xor.b64 %rd24, %rd24, %rd28;"
        "xor.b64 %rd25, %rd25, %rd29; mov.b64 {%r30, %r31}, %rd24; mov.b64 {%r32, %r33}, %rd25;",
    ),
    "wide_cluster": (
        "",
        ".reg .b128 %x<6>; .shared .align 16 .b8 area[2080]; mov.u32 %r3, area; shl.b32 %r4, %r0, 4;"
        "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [%r3+2064], 1; mov.u64 %rd20, 0;"
        "@%p1 st.shared.u64 [%r3+2048], %rd20;"
        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+2064], 3072; fence.mbarrier_init.release.cluster;"
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
        "mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, 1; mapa.shared::cluster.u32 %r6, %r3, %r5;"
        "add.u32 %r7, %r6, %r4; add.u32 %r8, %r3, %r4; mov.b128 %x0, {%rd10, %rd11};"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r7], %x0, [%r6+2064];"
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s64 [%r6+2048], %rd12, [%r6+2064];"
        "WAITING: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+2064], 0; @!%p2 bra WAITING;"
        "ld.shared.b128 %x1, [%r8]; ld.shared.u64 %rd20, [%r3+2048]; mov.b128 {%rd21, %rd22}, %x1;"
        "xor.b64 %rd22, %rd22, %rd20; mov.b64 {%r30, %r31}, %rd21; mov.b64 {%r32, %r33}, %rd22;"
        "mov.b128 %x2, {%rd12, %rd13}; atom.shared.b128.exch %x3, [%r8], %x2;"
        "atom.shared.b128.cas %x3, [%r8], %x2, %x1;"
        "mov.b128 {%rd21, %rd22}, %x3; mov.b64 {%r5, %r6}, %rd21; xor.b32 %r30, %r30, %r5; xor.b32 %r31, %r31, %r6;"
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    ),
    "rsqrt_f64": (
        "",
        "mov.b64 %fd1, %rd10; rsqrt.approx.f64 %fd2, %fd1; mov.b64 {%r30, %r31}, %fd2;"
        "and.b64 %rd20, %rd11, 0x7FFFFFFFFFFFFFFF; mov.b64 %fd1, %rd20; rsqrt.approx.f64 %fd2, %fd1;"
        "mov.b64 {%r32, %r33}, %fd2;",
    ),
}


def text(outside: str, body: str) -> str:
    """PTX of a program; one whose CTAs meet is for clusters of two, and uses what is new."""
    version, cluster = ("9.2", ".reqnctapercluster 2") if "barrier.cluster" in body else ("8.4", "")
    return (
        f".version {version}\n.target sm_90\n.address_size 64\n{outside}\n"
        f".visible .entry program(.param .u64 out, .param .u64 given) {cluster}\n{{{HEAD}{body}{STORE}}}\n"
    )


def words(seed: int, count: int) -> np.ndarray:
    """Random 64-bit words, a quarter of them with special upper halves."""
    random = np.random.Generator(np.random.PCG64(seed))
    out = random.integers(0, 1 << 64, count, dtype=np.uint64)
    special = np.array([0, 1 << 63, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 1, 1 << 51, (1 << 52) - 1], np.uint64)
    chosen = random.integers(0, 4, count) == 0
    out[chosen] = special[random.integers(0, len(special), count)][chosen]
    return out


def programs() -> dict[str, Callable[[], None]]:
    """Launches by name."""

    def launcher(outside: str, body: str) -> Callable[[], None]:
        def run() -> None:
            fmad = "plan" if "mul.f" in body or "div.f" in body else "off"
            module = gpuemu.Module.from_ptx(text(outside, body), fmad=fmad)
            out = np.zeros(GRID * THREADS * WORDS, np.uint32)
            given = words(5, GRID * THREADS * WORDS)
            module["program"].launch(grid=(GRID,), block=(THREADS,), args=[out, given])

        return run

    made = {f"program_{name}_sm90": launcher(*parts) for name, parts in PROGRAMS.items()}
    return made | {f"fill_{fill}_{kind}_sm90": _filled(kind, fill) for kind in FILLED for fill in ("zero", "nan")}


FILLED = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}
"""Element types of tensor maps that can fill what is outside with NaN, and words of their size."""


def _filled(kind: str, fill: str) -> Callable[[], None]:
    """A tile of 8 rows of 32 bytes that begins a row before the tensor and ends behind it in both directions."""
    dtype = np.dtype(FILLED[kind])
    box = 32 // dtype.itemsize

    def run() -> None:
        opcode = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        body = f"""
            {ONE_THREAD} {TAKE_MAP} {INIT} {EXPECT.format(bytes=256)} mov.u32 %r4, 0; mov.u32 %r5, -1;
            @%p0 {opcode} [%s], [%d1, {{%r4, %r5}}], [%s+4096]; {wait(4096, 0)} {READ}
        """
        tensor = (words(9, 64) & np.uint64(0x3FFF_3FFF_3FFF_3FFF)).view(dtype)[: 5 * box].reshape(5, box)
        inner = tensor[:, : box - 2]
        described = TensorMap(tensor, inner.shape, (tensor.strides[0],), (8, box), kind, fill=fill)
        module = gpuemu.Module.from_ptx(
            kernel(body, MAP).replace("entry k(", "entry program("), fmad="off"
        )
        module["program"].launch((1,), (64,), [np.zeros(64, np.uint32), np.zeros(64, np.uint32), described])

    return run
