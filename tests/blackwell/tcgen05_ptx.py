"""One `tcgen05.mma` as a kernel: operands placed in shared memory in any canonical layout, or in tensor memory, scales
and accumulators through `tcgen05.st`, the result through `tcgen05.ld`.

Layouts are written as CUTLASS writes them (`cute/arch/mma_sm100_desc.hpp`), in units of 16 bytes: K-major
`((8,n),2):((W,SBO),1 or LBO)`, MN-major `((W,n),(8,k)):((1,LBO),(W,SBO))`, without swizzle
`((1,n),(8,k)):((X,SBO),(1,LBO))`, with 32-byte atoms `((8,n),(4,k)):((1,LBO),(8,SBO))`. The engine's own formulas are
in `interp.runtime.tcgen05_matrix`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import gpuemu

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
MODES = {0: 0, 128: 2, 64: 4, 32: 6, "128 by 32": 1}
"""Bytes of the swizzling pattern -> the descriptor's three bits."""
ROOM = 32768
LANES = 128
D, A, SCALES, METADATA = 0, 256, 272, 304
"""Columns of tensor memory: accumulators, A (16), scales (16 of A, 16 of B), metadata (8)."""
EXTRA = 16 + 32 + 8


@dataclass(frozen=True)
class Placed:
    """Bytes of a matrix in shared memory, and the descriptor without its address."""

    image: Bytes
    descriptor: int


def place(rows: Bytes, size: int, swizzle: int | str = 128, transposed: bool = False) -> Placed:
    """Lay out a matrix given as rows [rows of A or columns of B, bytes of k] of elements of `size` bytes."""
    count, depth = len(rows), rows.shape[1] // size
    image = np.zeros(ROOM, np.uint8)
    width = 16 if swizzle == 0 else 128 if isinstance(swizzle, str) else swizzle
    deep = 4 if isinstance(swizzle, str) else 8  # k-rows of an atom
    if transposed:
        line = width // size
        sbo, lbo = (128, 128 * (count * size // 16 + 1)) if not swizzle else (deep * width, 0)
        if swizzle:
            lbo = sbo * (depth // deep)
    else:
        sbo, lbo = (8 * width, 16) if swizzle else (128, 128 * (count // 8 + 1))
    for r in range(count):
        for k in range(depth):
            if transposed and swizzle:
                at = r % line * size + r // line * lbo + k % deep * width + k // deep * sbo
            elif transposed:
                at = r * size // 16 * sbo + r * size % 16 + k % 8 * 16 + k // 8 * lbo
            elif swizzle:
                at = r // 8 * sbo + r % 8 * width + k * size
            else:
                at = r // 8 * sbo + r % 8 * 16 + k * size // 16 * lbo + k * size % 16
            if isinstance(swizzle, str):
                at ^= (at >> 7 & 3) << 5
            elif swizzle:
                at ^= (at >> 7 & {32: 1, 64: 3, 128: 7}[swizzle]) << 4
            image[at : at + size] = rows[r, k * size : (k + 1) * size]
    return Placed(image, (lbo >> 4) << 16 | (sbo >> 4) << 32 | 1 << 46 | MODES[swizzle] << 61)


def place_chunks(rows: Bytes) -> Placed:
    """Rows of 32 bytes for `tcgen05.cp` or as packed numbers: K-major with 128-byte swizzling."""
    return place(rows, 1)


@dataclass
class Product:
    """One instruction: opcode, descriptor, operands (A placed or as words [lane, 8 or more] of tensor memory), and what
    is in tensor memory before: accumulators [lane, columns], scales [lane, 16] of A and B, metadata [lane, 8]. at: the
    address of D, of which A has the lane; metadata_at: columns behind the first one of metadata; before, after: lines
    in front of and behind the instruction and its commit."""

    opcode: str
    idesc: int
    a: Placed | Words
    b: Placed
    c: Words
    enable: bool = True
    scale_a: Words | None = None
    scale_b: Words | None = None
    lanes: tuple[int, ...] = ()
    tail: str = ""
    times: int = 1
    at: int = 0
    before: str = ""
    after: str = ""
    waits: bool = True
    stored: bool = True
    metadata: Words | None = None
    metadata_at: int = 0
    target: str = "sm_100a"

    def words(self) -> Words:
        """What each thread stores into its lane: accumulators, A, scales."""
        extra = np.zeros((LANES, EXTRA), np.uint32)
        if not isinstance(self.a, Placed):
            extra[:, : self.a.shape[1]] = self.a
        for at, what in ((16, self.scale_a), (32, self.scale_b), (48, self.metadata)):
            if what is not None:
                extra[:, at : at + what.shape[1]] = what
        return np.ascontiguousarray(np.concatenate([self.c, extra], 1))

    def ptx(self) -> str:
        """The kernel `k(a, b, words, out)` for 128 threads."""
        columns = self.c.shape[1]
        total = columns + EXTRA

        def copy(pointer: str, shared: str, label: str) -> list[str]:
            return [
                "mov.u32 %t3, %t;",
                f"{label}: shl.b32 %t4, %t3, 2; cvt.u64.u32 %p4, %t4; add.u64 %p5, {pointer}, %p4;",
                f"ld.global.b32 %t5, [%p5]; add.u32 %t6, {shared}, %t4; st.shared.b32 [%t6], %t5;",
                f"add.u32 %t3, %t3, 128; setp.lt.u32 %q0, %t3, {ROOM // 4}; @%q0 bra {label};",
            ]

        def eight(column: int) -> str:
            return f"[%lane+{column}]"

        registers = ", ".join(f"%r{i}" for i in range(8))
        places = [(8 * i, D + 8 * i) for i in range(columns // 8)]
        extra = [(columns + 8 * i, A + 8 * i) for i in range(EXTRA // 8)]
        lines = [
            ".version 8.8", f".target {self.target}", ".address_size 64",
            ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po) {",
            f".shared .align 1024 .b8 sa[{ROOM}]; .shared .align 1024 .b8 sb[{ROOM}]; .shared .align 8 .b8 sm[16];",
            ".reg .b32 %t, %t<16>, %r<8>, %base, %lane, %bar, %i, %m<8>; .reg .b64 %p<16>, %da, %db; .reg .pred %q<8>;",
            "mov.u32 %t, %tid.x; ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb]; ld.param.u64 %p2, [pc];",
            "ld.param.u64 %p3, [po]; mov.u32 %t1, sa; mov.u32 %t2, sb; mov.u32 %bar, sm; add.u32 %bar, %bar, 8;",
            "setp.eq.u32 %q1, %t, 0; setp.lt.u32 %q2, %t, 32;",
            "@%q1 mbarrier.init.shared::cta.b64 [%bar], 1;",
            "@%q2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [sm], 512;",
            *copy("%p0", "%t1", "LA"), *copy("%p1", "%t2", "LB"),
            "bar.sync 0; ld.shared.b32 %base, [sm]; shr.u32 %t7, %t, 5; shl.b32 %t7, %t7, 21;",
            "add.u32 %lane, %base, %t7;",
            f"mul.wide.u32 %p4, %t, {4 * total}; add.u64 %p2, %p2, %p4; mul.wide.u32 %p4, %t, {4 * columns};",
            "add.u64 %p3, %p3, %p4;",
        ]  # fmt: skip
        for source, column in [*places, *extra]:
            lines += [f"ld.global.b32 %r{i}, [%p2+{4 * (source + i)}];" for i in range(8)]
            lines += [f"tcgen05.st.sync.aligned.32x32b.x8.b32 {eight(column)}, {{{registers}}};"]
        if self.stored:
            lines += ["tcgen05.wait::st.sync.aligned;"]
        lines += ["tcgen05.fence::before_thread_sync; fence.proxy.async; bar.sync 0; tcgen05.fence::after_thread_sync;"]
        for name, pointer, what in (("%da", "%t1", self.a), ("%db", "%t2", self.b)):
            if isinstance(what, Placed):
                lines += [f"shr.u32 %t8, {pointer}, 4; cvt.u64.u32 {name}, %t8;"]
                lines += [f"or.b64 {name}, {name}, {what.descriptor:#x};"]
        lines += [f"add.u32 %t9, %base, {self.at}; setp.ne.u32 %q3, {int(self.enable)}, 0;"]
        lines += [f"mov.u32 %i, {self.idesc:#x};"]
        lines += [f"add.u32 %t10, %base, {A + (self.at & 0xFF0000)};", self.before]
        first = "%da" if isinstance(self.a, Placed) else "[%t10]"
        scales = f" [%base+{SCALES}], [%base+{SCALES + 16}]," if self.scale_a is not None else ""
        meta = "" if self.metadata is None else f" [%base+{METADATA + self.metadata_at}],"
        masks = ""
        if self.lanes:
            lines += [f"mov.u32 %m{i}, {m:#x};" for i, m in enumerate(self.lanes)]
            masks = " {" + ", ".join(f"%m{i}" for i in range(len(self.lanes))) + "},"
        lines += [f"@%q1 {self.opcode} [%t9], {first}, %db,{meta} %i,{scales}{masks} %q3{self.tail};"] * self.times
        lines += ["@%q1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];", self.after]
        if self.waits:
            lines += ["W: mbarrier.try_wait.parity.shared::cta.b64 %q4, [%bar], 0; @!%q4 bra W;"]
        lines += ["tcgen05.fence::after_thread_sync;"]
        for target, column in places:
            lines += [f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{registers}}}, {eight(column)};"]
            lines += ["tcgen05.wait::ld.sync.aligned;"]
            lines += [f"st.global.b32 [%p3+{4 * (target + i)}], %r{i};" for i in range(8)]
        lines += ["bar.sync 0;", "@%q2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 512;", "ret;", "}"]
        return "\n".join(lines)

    def launch(self, **options: Any) -> tuple[Any, Words]:
        """(result, accumulators [lane, columns] after)."""
        out = np.zeros_like(self.c)
        none = np.zeros(ROOM, np.uint8)
        a = self.a.image if isinstance(self.a, Placed) else none
        entry = gpuemu.Module.from_ptx(self.ptx())["k"]
        return entry.launch((1,), (LANES,), [a, self.b.image, self.words(), out], **options), out

    def run(self, **options: Any) -> Words:
        """Accumulators after a launch without findings."""
        result, out = self.launch(**options)
        assert result.findings == (), result.findings
        return out
