"""One `wgmma` as a kernel: matrices placed in shared memory in any of the canonical layouts, accumulators in and out.

Layouts are written here as CUTLASS writes them (`cute/arch/mma_sm90_desc.hpp`): T is 16 bytes of elements, K-major
`((8,m),(T,2)):((W,SBO),(1,LBO or T))`, MN-major `((T,W/T,m),(8,k)):((1,T,LBO),(W,SBO))`, without swizzle SBO and LBO
swapped; then the address bits are swizzled. The engine's own formulas are in `interp.runtime.wgmma`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
MODES = {0: 0, 128: 1, 64: 2, 32: 3}
"""Bytes of the swizzling pattern -> the descriptor's two bits."""


@dataclass(frozen=True)
class Placed:
    """Bytes of a matrix in shared memory, and the descriptor without its address."""

    image: Bytes
    descriptor: int


def place(matrix: npt.NDArray[np.unsignedint], swizzle: int, mn_major: bool) -> Placed:
    """Lay out `matrix` [rows of A or columns of B, k]; one instruction's k, 32 bytes.

    swizzle: 0, 32, 64 or 128 bytes. mn_major: k-rows (the instruction's transposed operand)."""
    rows, depth = matrix.shape
    size = matrix.dtype.itemsize
    chunk = 16 // size  # T, in elements
    width = swizzle or 16
    image = np.zeros(1 << 17, np.uint8)
    if mn_major:
        line = width // size
        if swizzle:
            sbo = 8 * width
            lbo = sbo * (depth // 8)
        else:
            lbo = 128 * (rows // 8)
            sbo = 128
    else:
        lbo, sbo = (128 * (rows // 8), 128) if not swizzle else (16, 8 * width)
    top = 0
    for r in range(rows):
        for k in range(depth):
            if not mn_major:
                address = r // 8 * sbo + r % 8 * width + k % chunk * size + (k // chunk) * (lbo if not swizzle else 16)
            elif swizzle:
                address = r % line * size + r // line * lbo + k % 8 * width + k // 8 * sbo
            else:
                address = r % chunk * size + r // chunk * sbo + k % 8 * 16 + k // 8 * lbo
            if swizzle:
                mask = {32: 1, 64: 3, 128: 7}[swizzle]
                address ^= (address >> 7 & mask) << 4
            image[address : address + size] = np.frombuffer(matrix[r, k].tobytes(), np.uint8)
            top = max(top, address + size)
    top = (top + 1023) // 1024 * 1024
    return Placed(image[:top], (lbo >> 4) << 16 | (sbo >> 4) << 32 | MODES[swizzle] << 62)


def kernel(
    opcode: str, tail: str, registers: int, a: Placed | None, b: Placed, *, waits: bool = True, overwrite: bool = False
) -> str:
    """PTX of entry `k(pa, pb, pc, po)`: A's image (or registers, four words a thread), B's, accumulators in and out.

    waits: with the wait for the product. overwrite: B is set to zero between the product and its wait."""
    d = ",".join(f"%o{i}" for i in range(registers))
    size_a = len(a.image) if a else 16
    lines = [
        ".version 8.4", ".target sm_90a", ".address_size 64",
        ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po) {",
        f".shared .align 1024 .b8 sa[{size_a}]; .shared .align 1024 .b8 sb[{len(b.image)}];",
        f".reg .b32 %o<{registers}>; .reg .b32 %a<4>; .reg .b32 %t<16>;",
        ".reg .b64 %p<16>; .reg .b64 %d<8>; .reg .pred %q<4>;",
        "mov.u32 %t0, %tid.x; ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb];",
        "ld.param.u64 %p2, [pc]; ld.param.u64 %p3, [po];",
        "mov.u32 %t1, sa; mov.u32 %t2, sb;",
    ]  # fmt: skip

    def copy(pointer: str, shared: str, size: int, label: str) -> list[str]:
        return [
            "mov.u32 %t3, %t0;",
            f"{label}: shl.b32 %t4, %t3, 2; cvt.u64.u32 %p4, %t4; add.u64 %p5, {pointer}, %p4;",
            f"ld.global.b32 %t5, [%p5]; add.u32 %t6, {shared}, %t4; st.shared.b32 [%t6], %t5;",
            f"add.u32 %t3, %t3, 128; setp.lt.u32 %q0, %t3, {size // 4}; @%q0 bra {label};",
        ]

    if a is not None:
        lines += copy("%p0", "%t1", size_a, "LA")
        lines += ["shr.u32 %t7, %t1, 4; cvt.u64.u32 %d0, %t7;", f"or.b64 %d0, %d0, {a.descriptor:#x};"]
        source = "%d0"
    else:
        lines += ["mul.wide.u32 %p4, %t0, 16; add.u64 %p5, %p0, %p4; ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%p5];"]
        source = "{%a0, %a1, %a2, %a3}"
    lines += copy("%p1", "%t2", len(b.image), "LB")
    lines += ["shr.u32 %t8, %t2, 4; cvt.u64.u32 %d1, %t8;", f"or.b64 %d1, %d1, {b.descriptor:#x};"]
    lines += [f"mul.wide.u32 %p6, %t0, {4 * registers}; add.u64 %p2, %p2, %p6; add.u64 %p3, %p3, %p6;"]
    lines += [f"ld.global.b32 %o{i}, [%p2+{4 * i}];" for i in range(registers)]
    lines += [
        "fence.proxy.async; bar.sync 0; setp.eq.u32 %q1, 0, 0; wgmma.fence.sync.aligned;",
        f"{opcode} {{{d}}}, {source}, %d1, %q1{tail};",
        "wgmma.commit_group.sync.aligned;",
    ]
    if overwrite:
        lines += ["bar.sync 0; shl.b32 %t9, %t0, 2; add.u32 %t9, %t9, %t2; mov.u32 %t10, 0; st.shared.b32 [%t9], %t10;"]
    if waits:
        lines += ["wgmma.wait_group.sync.aligned 0;"]
    lines += [f"st.global.b32 [%p3+{4 * i}], %o{i};" for i in range(registers)]
    return "\n".join([*lines, "ret;", "}"])
