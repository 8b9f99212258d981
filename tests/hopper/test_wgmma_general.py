"""`wgmma` without vector code: `wgmma.mma_async.sp` against an H200's answers (`tests/hardware/h200_wgmma_general.npz`)
and in layouts that it was asked for elsewhere, and products of bits."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuemu
from tests.isa.test_matrices import expanded

FILE = Path(__file__).parents[1] / "hardware" / "h200_wgmma_general.npz"
COLUMNS = 16
A_BYTES, B_BYTES = 64 * 32, COLUMNS * 64


@cache
def answers() -> dict[str, np.ndarray]:
    """Array of each name: accumulators before and after [thread, words]; NAME:a, :b, :e operands."""
    with np.load(FILE, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def ptx(opcode: str, registers: int, selector: int | None, in_registers: bool, tail: str, a: int, b: int) -> str:
    """Kernel `k(a, b, c, e, d)` of 128 threads; a, b: descriptors without address, matrices as they lie in shared
    memory; A in registers: [thread, 4]."""
    d = ", ".join(f"%d{i}" for i in range(registers))
    sparse = "" if selector is None else f" %e, {selector},"
    first = "{%a0, %a1, %a2, %a3}" if in_registers else "%da"
    loads = "".join(f"ld.global.b32 %d{i}, [%x+{4 * i}];" for i in range(registers))
    stores = "".join(f"st.global.b32 [%x+{4 * i}], %d{i};" for i in range(registers))
    from_registers = (
        "mul.wide.u32 %x, %t, 16; add.u64 %x, %x, %p0; ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%x];"
        if in_registers else "mov.u32 %r2, sa; L: shl.b32 %r3, %r1, 2; cvt.u64.u32 %x, %r3; add.u64 %x, %x, %p0;"
        f"ld.global.b32 %r4, [%x]; add.u32 %r3, %r3, %r2; st.shared.b32 [%r3], %r4; add.u32 %r1, %r1, 128;"
        f"setp.lt.u32 %q, %r1, {A_BYTES // 4}; @%q bra L;"
    )  # fmt: skip
    return f"""
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pe, .param .u64 pd) {{
.shared .align 1024 .b8 sa[{A_BYTES}]; .shared .align 1024 .b8 sb[8192];
.reg .b32 %t, %e, %r<8>, %a<4>, %d<{registers}>; .reg .b64 %p<5>, %x, %da, %db; .reg .pred %q, %yes;
ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb]; ld.param.u64 %p2, [pc]; ld.param.u64 %p3, [pe]; ld.param.u64 %p4, [pd];
mov.u32 %t, %tid.x; mov.u32 %r1, %t; {from_registers}
mov.u32 %r1, %t; mov.u32 %r5, sb;
M: shl.b32 %r3, %r1, 2; cvt.u64.u32 %x, %r3; add.u64 %x, %x, %p1; ld.global.b32 %r4, [%x]; add.u32 %r3, %r3, %r5;
st.shared.b32 [%r3], %r4; add.u32 %r1, %r1, 128; setp.lt.u32 %q, %r1, 2048; @%q bra M;
mul.wide.u32 %x, %t, 4; add.u64 %x, %x, %p3; ld.global.b32 %e, [%x];
mul.wide.u32 %x, %t, {4 * registers}; add.u64 %x, %x, %p2; {loads}
fence.proxy.async; bar.sync 0;
mov.u32 %r2, sa; shr.u32 %r2, %r2, 4; cvt.u64.u32 %da, %r2; or.b64 %da, %da, {a:#x};
shr.u32 %r5, %r5, 4; cvt.u64.u32 %db, %r5; or.b64 %db, %db, {b:#x};
setp.eq.u32 %yes, %t, %t; wgmma.fence.sync.aligned;
{opcode} {{{d}}}, {first}, %db,{sparse} %yes{tail};
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
mul.wide.u32 %x, %t, {4 * registers}; add.u64 %x, %x, %p4; {stores}
ret;
}}
"""


PLAIN_A, PLAIN_B = (1024 >> 4) << 16 | (128 >> 4) << 32, (16 * COLUMNS >> 4) << 16 | (128 >> 4) << 32
"""Descriptors without swizzling: 16 bytes of all rows after those of the k before."""


LEADING = 2048


def launch(text: str, operands: dict[str, np.ndarray], **options: Any) -> tuple[Any, np.ndarray]:
    d = np.zeros_like(operands["c"])
    b = np.zeros(2048, np.uint32)
    b[: operands["b"].size] = operands["b"].reshape(-1)
    args = [np.ascontiguousarray(operands["a"]), b, np.ascontiguousarray(operands["c"]), operands["e"], d]
    return gpuemu.Module.from_ptx(text)["k"].launch((1,), (128,), args, **options), d


NAMES = sorted(n for n in answers() if n.startswith("wgmma") and ":" not in n)


def tail_of(opcode: str, in_registers: bool) -> str:
    if ".s32." in opcode:
        return ""
    return ", 1, 1" + (", 0" * (1 if in_registers else 2) if "k32." in opcode else "")


@pytest.mark.parametrize("name", NAMES)
def test_answers_of_a_gpu(name: str) -> None:
    opcode, selector, *where = name.split(" ")
    held = answers()[name]
    registers = held.shape[1] // 2
    sparse = None if selector == "none" else int(selector)
    text = ptx(opcode, registers, sparse, bool(where), tail_of(opcode, bool(where)), PLAIN_A, PLAIN_B)
    operands = {"c": held[:, :registers], **{k: answers()[f"{name}:{k}"] for k in "abe"}}
    result, d = launch(text, operands)
    assert result.findings == ()
    np.testing.assert_array_equal(d, held[:, registers:])


def test_engines_agree() -> None:
    name = "wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16 1"
    held = answers()[name]
    text = ptx(name[:-2], 8, 1, False, ", 1, 1, 0, 0", PLAIN_A, PLAIN_B)
    operands = {"c": held[:, :8], **{k: answers()[f"{name}:{k}"] for k in "abe"}}
    np.testing.assert_array_equal(launch(text, operands, engine="traced")[1], held[:, 8:])


@pytest.mark.parametrize(("width", "transposed"), [(32, False), (64, False), (128, False), (32, True), (0, True)])
def test_layouts_and_signs_of_b(width: int, transposed: bool) -> None:
    """f16 products of whole numbers, A in registers and negated. An H200 has B so in these layouts: with 32-byte
    swizzling the second half of a column of 64 bytes is a leading offset behind the first."""
    rng = np.random.default_rng(4)
    stored = rng.integers(-2, 4, (64, 16))
    b = rng.integers(-2, 4, (COLUMNS, 32))
    nibbles = rng.choice((0x4, 0x8, 0xC, 0x9, 0xD, 0xE), (128, 8)).astype(np.uint64)
    words = (nibbles << np.arange(0, 32, 4, np.uint64)).sum(1).astype(np.uint32)
    image = np.zeros(4096, np.float16)
    line = max(width, 16)
    for n in range(COLUMNS):
        for k in range(32):
            if not transposed:
                at = n // 8 * 8 * line + n % 8 * line + 2 * k % line + 2 * k // line * LEADING
            elif width:
                at = 2 * n % line + 2 * n // line * 4 * 8 * line + k % 8 * line + k // 8 * 8 * line
            else:
                at = n // 8 * 128 + k % 8 * 16 + n % 8 * 2 + k // 8 * 256
            at ^= {0: 0, 32: at >> 7 & 1, 64: at >> 7 & 3, 128: at >> 7 & 7}[width] << 4
            image[at // 2] = b[n, k]
    across = (8 * line, 4 * 8 * line) if width else (128, 256)
    offsets = across if transposed else (8 * line, LEADING)
    mode = {0: 0, 128: 1, 64: 2, 32: 3}[width]
    described = (offsets[1] >> 4) << 16 | (offsets[0] >> 4) << 32 | mode << 62
    # registers of A: a warp's sixteen rows, lane = 4 * row + pair of k, register = 2 * eight of k + upper rows
    a = stored.astype(np.float16).reshape(4, 2, 8, 2, 4, 2).transpose(0, 2, 4, 3, 1, 5).reshape(128, 8)
    c = np.zeros((128, 8), np.uint32)
    opcode = "wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16"
    text = ptx(opcode, 8, 0, True, f", -1, 1, {int(transposed)}", 0, described)
    operands = {"a": np.ascontiguousarray(a).view(np.uint32), "b": image.view(np.uint32), "c": c, "e": words}
    result, d = launch(text, operands)
    assert result.findings == ()
    got = d.view(np.float32).reshape(4, 8, 4, 2, 2, 2).transpose(0, 4, 1, 3, 2, 5).reshape(64, 16)
    rows = [expanded(stored[16 * w : 16 * w + 16], words[32 * w : 32 * w + 32], 0, 16) for w in range(4)]
    np.testing.assert_array_equal(got, -np.concatenate(rows) @ b.T)


@pytest.mark.parametrize("in_registers", [False, True])
def test_bits(in_registers: bool) -> None:
    rng = np.random.default_rng(6)
    a = rng.integers(0, 1 << 32, (64, 8), dtype=np.uint64).astype(np.uint32)
    b = rng.integers(0, 1 << 32, (COLUMNS, 8), dtype=np.uint64).astype(np.uint32)
    c = rng.integers(0, 1000, (128, 8)).astype(np.uint32)
    opcode = "wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc"
    text = ptx(opcode, 8, None, in_registers, "", PLAIN_A, PLAIN_B)
    # in shared memory four words of every row and then the other four; in registers lane 4 * row + word mod 4
    chunks = [np.ascontiguousarray(x.reshape(-1, 2, 4).transpose(1, 0, 2)) for x in (a, b)]
    held = np.ascontiguousarray(a.reshape(4, 2, 8, 2, 4).transpose(0, 2, 4, 3, 1).reshape(128, 4))
    e = np.zeros(128, np.uint32)
    result, d = launch(text, {"a": held if in_registers else chunks[0], "b": chunks[1], "c": c, "e": e})
    assert result.findings == ()
    ones = np.unpackbits((a[:, None] & b[None]).view(np.uint8), axis=-1).sum(-1)
    got = (d - c).reshape(4, 8, 4, 2, 2, 2).transpose(0, 4, 1, 3, 2, 5).reshape(64, 16)
    np.testing.assert_array_equal(got, ones)


def test_a_selector_that_bytes_do_not_have() -> None:
    text = ptx("wgmma.mma_async.sp.sync.aligned.m64n16k64.s32.s8.s8", 8, 1, True, "", 0, 0)
    zeros = np.zeros(2048, np.uint32)
    with pytest.raises(gpuemu.InvalidInput, match="selector must be 0"):
        launch(text, {"a": zeros, "b": zeros, "c": np.zeros((128, 8), np.uint32), "e": zeros[:128]})
