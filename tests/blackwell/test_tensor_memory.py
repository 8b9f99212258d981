"""Tensor memory: allocation, the shapes of loads and stores, copies from shared memory, and each rule that can be
broken."""

from __future__ import annotations

import numpy as np
import pytest

import gpuemu
from tests.blackwell.snippets import COMMIT, WAIT, finding, kernel, launch, output
from tests.blackwell.tcgen05_ptx import place

REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
BITS = {"32x32b": 32, "16x64b": 64, "16x128b": 128, "16x256b": 256, "16x32bx2": 64}


def cell(shape: str, num: int, t: int, r: int) -> tuple[int, int]:
    """(lane, column) of register r of thread t: CUTLASS's layouts of bits (`cute/atom/copy_traits_sm100.hpp`)."""
    row = BITS[shape] * num
    if shape == "32x32b":
        bit = t * row + 32 * r
    elif shape == "16x64b":
        bit = t % 2 * 8 * row + t // 2 % 2 * 32 + t // 4 * row + r * 64
    elif shape == "16x128b":
        bit = t % 4 * 32 + t // 4 * row + r % 2 * 8 * row + r // 2 * 128
    elif shape == "16x256b":
        bit = t % 4 * 64 + t // 4 * row + r % 2 * 32 + r // 2 % 2 * 8 * row + r // 4 * 256
    else:
        bit = t % 16 * row + t // 16 * (row // 2) + 32 * r
    return bit // row, bit % row // 32


def registers(count: int) -> str:
    return "{" + ", ".join(f"%v{i}" for i in range(count)) + "}"


def fill(columns: int) -> str:
    """Cell (lane, column) = lane * 65536 + column, for the first columns."""
    body = "mul.lo.u32 %r0, %t, 65536;"
    for c in range(columns):
        body += f"add.u32 %v0, %r0, {c}; tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine+{c}], {{%v0}};"
    return body + "tcgen05.wait::st.sync.aligned;"


def write(count: int) -> str:
    """Registers v of all threads to the output, a thread's together."""
    body = f"mul.wide.u32 %d0, %t, {4 * count}; add.u64 %d0, %d0, %out;"
    return body + "".join(f"st.global.b32 [%d0+{4 * i}], %v{i};" for i in range(count))


CASES = [(shape, num) for shape in REGISTERS for num in (1, 2, 4, 16) if not (shape == "16x256b" and num == 16)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("shape", "num"), CASES)
def test_loads(shape: str, num: int, packed: bool) -> None:
    count = REGISTERS[shape] * num
    split = (", 64" if packed else f", {num}") if shape == "16x32bx2" else ""
    lane = 0 if shape == "32x32b" else 16
    pack = ".pack::16b" if packed else ""
    body = (
        f"{fill(128)} add.u32 %r1, %mine, {lane << 16};"
        f"tcgen05.ld.sync.aligned.{shape}.x{num}{pack}.b32 {registers(count)}, [%r1]{split}; {write(count)}"
    )
    got = output(kernel(body), count=128 * count).reshape(128, count)
    for t in range(128):
        for r in range(count):
            row, column = cell(shape, num, t % 32, r)
            where = (t // 32 * 32 + lane + row) * 65536
            if packed and shape == "16x32bx2":
                column = 2 * (column % num) + 64 * (column // num)
            elif packed:
                column = 2 * column
            expected = (column | (column + 1) << 16) if packed else where + column
            assert got[t, r] == expected, (t, r)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("shape", "num"), [c for c in CASES if c[1] < 16])
def test_stores(shape: str, num: int, packed: bool) -> None:
    count = REGISTERS[shape] * num
    split = ", 32" if shape == "16x32bx2" else ""
    pack = ".unpack::16b" if packed else ""
    values = "mul.lo.u32 %r0, %t, 65537;" + "".join(f"add.u32 %v{i}, %r0, {1000 * i + 7};" for i in range(count))
    clear = "mov.u32 %v0, 0;" + "".join(
        f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine+{c}], {{%v0}};" for c in range(64)
    )
    body = (
        f"{clear} tcgen05.wait::st.sync.aligned; {values}"
        f"tcgen05.st.sync.aligned.{shape}.x{num}{pack}.b32 [%mine]{split}, {registers(count)};"
        f"tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned.32x32b.x64.b32 {registers(64)}, [%mine]; {write(64)}"
    )
    got = output(kernel(body), count=128 * 64).reshape(128, 64)
    expected = np.zeros((128, 64), np.uint32)
    for t in range(128):
        for r in range(count):
            row, column = cell(shape, num, t % 32, r)
            word = 65537 * t + 1000 * r + 7
            if shape == "16x32bx2":
                column = (2 if packed else 1) * (column % num) + 32 * (column // num)
            elif packed:
                column = 2 * column
            lane = t // 32 * 32 + row
            if packed:
                expected[lane, column], expected[lane, column + 1] = word & 0xFFFF, word >> 16
            else:
                expected[lane, column] = word
    np.testing.assert_array_equal(got, expected)


def test_what_was_not_written() -> None:
    body = f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v0}}, [%mine+31]; {write(1)}"
    assert (output(kernel(body, columns=32)) == 0xFFFFFFFF).all()


def test_a_store_without_its_wait() -> None:
    body = (
        "mov.u32 %v0, 7; tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine], {%v0}; tcgen05.wait::st.sync.aligned;"
        "mov.u32 %v0, 8; tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine], {%v0}; WAIT"
        f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v0}}, [%mine]; {write(1)}"
    )
    right, wrong = kernel(body.replace("WAIT", "tcgen05.wait::st.sync.aligned;")), kernel(body.replace("WAIT", ""))
    assert (output(right) == 8).all()
    assert (output(wrong) == 7).all()
    for text in (right, wrong):
        assert (output(text, asynchrony="eager") == 8).all()


def test_allocations_are_apart_and_come_back() -> None:
    body = """
@%warp0 tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d0], 128;
@%warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s+20], 64;
bar.sync 0; ld.shared.b32 %r1, [%s+16]; ld.shared.b32 %r2, [%s+20];
@%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128;
@%warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s+24], 32;
@%warp0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
bar.sync 0; ld.shared.b32 %r3, [%s+24];
@%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;
@%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
@%first st.global.v4.b32 [%out], {%base, %r1, %r2, %r3};
"""
    body = "add.u32 %r9, %s, 16; cvt.u64.u32 %d1, %r9; cvta.shared.u64 %d0, %d1;" + body
    assert list(output(kernel(body, columns=64))[:4]) == [0, 64, 192, 64]


ALLOC = "@%warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s+16], {};"
LD = "tcgen05.ld.sync.aligned.{}.b32 {{%v0}}, [{}];"
BROKEN = {
    "48 columns": (ALLOC.format(48), 0, "not 32, 64, 128, 256 or 512"),
    "16 columns": (ALLOC.format(16), 0, "not 32, 64, 128, 256 or 512"),
    "too much": (ALLOC.format(512), 32, "not free"),
    "given up": (
        "@%warp0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" + ALLOC.format(32), 32, "given up",
    ),
    "leak": (ALLOC.format(32), 32, "not deallocated"),
    "other size": (
        "@%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 32;", 64, "not those of an allocation",
    ),
    "twice": (
        "@%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 64;" * 2, 64, "not those of an allocation",
    ),
    "part of a warp": (
        "@%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s+16], 32;", 0, "not all 32 threads",
    ),
    "two addresses": ("add.u32 %r0, %mine, %t;" + LD.format("32x32b.x1", "%r0"), 512, "different operands"),
    "another quarter": (LD.format("32x32b.x1", "%base"), 32, "another quarter"),
    "a lane that does not fit": ("add.u32 %r0, %mine, 0x100000;" + LD.format("32x32b.x1", "%r0"), 32, "does not fit"),
    "lane 8": ("add.u32 %r0, %mine, 0x80000;" + LD.format("16x64b.x1", "%r0"), 32, "does not fit"),
    "behind the allocation": (LD.format("32x32b.x1", "%mine+32"), 32, "not allocated"),
    "partly behind it": (LD.format("16x64b.x1", "%mine+31"), 32, "not allocated"),
    "behind the memory": (LD.format("32x32b.x1", "%mine+512"), 512, "not allocated"),
    "mixed groups": ("@%warp0 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;", 32, "same .cta_group"),
    "no pair": (ALLOC.format(32).replace("group::1", "group::2"), 0, "launch the kernel with clusters"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rules(name: str) -> None:
    body, columns, message = BROKEN[name]
    for engine in ("compiled", "traced") if name in ("leak", "another quarter") else ("compiled",):
        found = finding(kernel(body, columns=columns), engine=engine)
        assert found.kind == "bad-tensor-memory" and message in found.message
        assert "tcgen05" in found.evidence["instruction"]


def test_a_guarded_instruction_that_nobody_executes() -> None:
    body = "@%zero tcgen05.st.sync.aligned.32x32b.x1.b32 [%t], {%t}; @%zero tcgen05.wait::st.sync.aligned;"
    body += "mov.u32 %v0, 5; @%zero tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%t];" + write(1)
    assert (output(kernel(body, columns=32)) == 5).all()


# ------------------------------------------------------------------------------------------------ tcgen05.cp
LOAD_SHARED = """
mov.u32 %r10, %t;
CP: shl.b32 %r11, %r10, 2; cvt.u64.u32 %d1, %r11; add.u64 %d2, %in, %d1; ld.global.b32 %r12, [%d2];
add.u32 %r11, %r11, %s; st.shared.b32 [%r11+4096], %r12; add.u32 %r10, %r10, 128; setp.lt.u32 %p1, %r10, 2048; @%p1 bra
CP; fence.proxy.async; bar.sync 0; add.u32 %r13, %s, 4096; shr.u32 %r13, %r13, 4; cvt.u64.u32 %d3, %r13;
"""


def copied(opcode: str, rows: np.ndarray, swizzle: int, columns: int, **options: object) -> np.ndarray:
    """Cells [lane, column] after one copy of rows of 32 bytes."""
    placed = place(rows, 1, swizzle)
    body = (
        f"{LOAD_SHARED} or.b64 %d3, %d3, {placed.descriptor:#x}; @%first tcgen05.cp.cta_group::1.{opcode} [%base], %d3;"
        f"{COMMIT} {WAIT} tcgen05.ld.sync.aligned.32x32b.x8.b32 {registers(8)}, [%mine]; {write(8)}"
    )
    got = output(kernel(body, columns=32), np.frombuffer(placed.image.tobytes(), np.uint32)[:2048], 1024, **options)
    return got.reshape(128, 8)[:, :columns]


@pytest.mark.parametrize("swizzle", [0, 32])
@pytest.mark.parametrize(
    ("opcode", "rows", "columns"),
    [
        ("128x256b", np.arange(128), 8), ("128x128b", np.arange(128), 4),
        ("32x128b.warpx4", np.tile(np.arange(32), 4), 4), ("64x128b.warpx2::02_13", np.tile(np.arange(64), 2), 4),
        ("64x128b.warpx2::01_23", np.concatenate([np.tile(np.arange(32), 2), np.tile(np.arange(32, 64), 2)]), 4),
    ],
)  # fmt: skip
def test_copies(opcode: str, rows: np.ndarray, columns: int, swizzle: int) -> None:
    given = np.random.default_rng(4).integers(0, 256, (128, 32)).astype(np.uint8)
    got = copied(opcode, given, swizzle, columns)
    np.testing.assert_array_equal(got, given.view(np.uint32)[rows, :columns])


@pytest.mark.parametrize(("form", "bits", "shift"), [("b4x16_p64", 4, 2), ("b6x16_p32", 6, 0)])
def test_copies_that_unpack(form: str, bits: int, shift: int) -> None:
    given = np.random.default_rng(5).integers(0, 256, (128, 32)).astype(np.uint8)
    got = copied(f"128x128b.b8x16.{form}", given, 0, 4).view(np.uint8).reshape(128, 16)
    for lane in range(128):
        value = int.from_bytes(given[lane, :16].tobytes(), "little")
        assert list(got[lane]) == [(value >> bits * i & ((1 << bits) - 1)) << shift for i in range(16)]


def test_a_copy_without_its_wait() -> None:
    given = np.full((128, 32), 3, np.uint8)
    placed = place(given, 1, 0)
    body = (
        f"{LOAD_SHARED} or.b64 %d3, %d3, {placed.descriptor:#x}; @%first tcgen05.cp.cta_group::1.128x256b [%base], %d3;"
        f"{COMMIT} tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v0}}, [%mine]; {write(1)}"
    )
    words = np.frombuffer(placed.image.tobytes(), np.uint32)[:2048]
    assert (output(kernel(body), words) == 0xFFFFFFFF).all()
    assert (output(kernel(body), words, asynchrony="eager") == 0x03030303).all()


def test_a_copy_from_outside_shared_memory() -> None:
    body = "mov.u64 %d3, 0x3FFF | (1 << 46); @%first tcgen05.cp.cta_group::1.128x256b [%base], %d3;" + COMMIT + WAIT
    found = finding(kernel(body.replace("0x3FFF | (1 << 46)", str(0x3FFF | 1 << 46))))
    assert found.kind == "out-of-bounds" and "tcgen05.cp" in found.evidence["instruction"]


REFUSED = [
    "@%first tcgen05.shift.cta_group::1.down [%base];",
    "@%first tcgen05.cp.cta_group::1.4x256b [%base], %d0;",
    "@%first tcgen05.cp.cta_group::1.32x128b [%base], %d0;",
    "@%first tcgen05.mma.sp.cta_group::1.kind::i8 [%base], %d0, %d1, [%r1], %r2, %p1, 1;",
    "@%first tcgen05.mma.cta_group::1.kind::f16.ashift [%base], [%r0], %d1, %r2, %p1;",
    "@%first tcgen05.mma.cta_group::1.kind::f16 [%base], %d0, %d1, %r2, {%r3, %r4}, %p1;",
    "@%first tcgen05.mma.cta_group::1.kind::i8 [%base], %d0, %d1, %r2, %p1, 4;",
    "@%first tcgen05.mma.cta_group::1.kind::f16 [%base], %d0, %d1, %r2, %p1, 16;",
    "@%first tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%base], %d0, %d1, %r2, [%r3], [%r4], %p1;",
    "@%first tcgen05.mma.ws.cta_group::2.kind::f16 [%base], %d0, %d1, %r2, %p1;",
    "tcgen05.ld.sync.aligned.16x256b.x64.b32 {%v0}, [%mine];",
]


@pytest.mark.parametrize("line", REFUSED)
def test_refused_before_launch(line: str) -> None:
    with pytest.raises((gpuemu.Unsupported, gpuemu.InvalidInput), match="tcgen05"):
        launch(kernel(line))


@pytest.mark.parametrize(
    ("line", "why"),
    [(REFUSED[0], "which neighbour"), (REFUSED[1], "four rows"), (REFUSED[4], "which neighbour")],
)
def test_reasons_of_what_is_left_out(line: str, why: str) -> None:
    with pytest.raises(gpuemu.Unsupported, match=why):
        launch(kernel(line))


def test_other_targets_have_no_tensor_memory() -> None:
    with pytest.raises(gpuemu.InvalidInput, match="needs sm_100"):
        launch(kernel("", target="sm_90a"))


def test_rtx_blackwell_has_none_either() -> None:
    with pytest.raises(gpuemu.InvalidInput, match="needs sm_100f or sm_110f, the text says sm_120a"):
        launch(kernel("", target="sm_120a"))
