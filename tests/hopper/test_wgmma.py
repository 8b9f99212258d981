"""`wgmma` through the engine: against what an H200 answered, against the scalar law in every layout, and with its wait
forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpuemu
from interp.tensorcore.model import F16, F32, KINDS, dot
from interp.tensorcore.table import arithmetic
from tests.hopper.wgmma_ptx import Placed, kernel, place
from tests.numerics import hardware

Words = npt.NDArray[np.uint32]
HARDWARE = [name for name in hardware.description() if name.startswith("wgmma.")]
SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def run(ptx: str, a: Any, b: Any, c: Any, **options: Any) -> Any:
    """Accumulators after one launch with one warpgroup."""
    out = np.zeros_like(c)
    result = gpuemu.Module.from_ptx(ptx)["k"].launch(grid=(1,), block=(128,), args=[a, b, c, out], **options)
    assert result.findings == ()
    return out


@pytest.mark.parametrize("name", HARDWARE)
def test_answers_of_an_h200(name: str) -> None:
    about = hardware.description()[name]
    before, after = hardware.lanes(name)
    a, b = hardware.wgmma_operands(name)
    # in the file: core matrices without swizzle, those adjacent in k first
    layout = 0x8 << 16 | 0x10 << 32
    b = np.pad(b, ((0, 0), (0, 64)))  # the kernel copies a whole number of words a thread
    images = [Placed(x.view(np.uint8), layout) for x in (a[0], b[0])]
    opcode = f"wgmma.mma_async.sync.aligned.m64n8k{about['k']}.{about['d']}.{about['a']}.{about['b']}"
    tail = f", {about['tail']}" if about["tail"] else ""
    ptx = kernel(opcode, tail, about["outputs"], *images)
    for group in range(len(before) // 128):
        lanes = slice(128 * group, 128 * group + 128)
        got = run(ptx, a[group].copy(), b[group].copy(), np.ascontiguousarray(before[lanes]))
        np.testing.assert_array_equal(got, after[lanes])


def finite(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Any:
    """Random words of a type without NaN and Inf, of moderate size."""
    if kind in ("s8", "u8"):
        return rng.integers(0, 256, shape, dtype=np.uint8)
    if kind in ("e4m3", "e5m2"):
        signs, magnitudes = rng.integers(0, 2, shape, dtype=np.uint8), rng.integers(0, 0x78, shape, dtype=np.uint8)
        return (signs << 7 | magnitudes).astype(np.uint8)
    values = rng.standard_normal(shape).astype(np.float32)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    words = values.view(np.uint32)
    return (words >> 16).astype(np.uint16) if kind == "bf16" else words


def place_of(n: int) -> tuple[Words, Words]:
    """(row, column) of each accumulator element [thread, element]."""
    thread, element = np.arange(128)[:, None], np.arange(n // 2)[None, :]
    row = thread // 32 * 16 + thread % 32 // 4 + element // 2 % 2 * 8
    return row + 0 * element, thread % 4 * 2 + element // 4 * 8 + element % 2


def law(a: Any, b: Any, c: Any, types: tuple[str, str, str]) -> Any:
    """The product by the scalar model; a [64, K], b [N, K], c [64, N] words of the result type."""
    dtype, atype, btype = types
    if dtype == "s32":
        left, right = (x.view(np.int8 if t == "s8" else np.uint8).astype(np.int64) for x, t in ((a, atype), (b, btype)))
        return (left @ right.T + c.view(np.int32)).astype(np.int32).view(np.uint32)
    numbers = arithmetic(90, atype, dtype, unit="wgmma")
    out = np.zeros_like(c)
    size = a.dtype.itemsize
    for i in range(64):
        for j in range(len(b)):
            word = dot(
                a[i].ctypes.data, b[j].ctypes.data, size, size, a.shape[1], KINDS[atype], KINDS[btype],
                np.uint32(c[i, j]), F16 if dtype == "f16" else F32,
                numbers.block, numbers.fraction, numbers.floor, numbers.out_fraction,
            )  # fmt: skip
            out[i, j] = word
    return out


CASES = [
    # types, N, swizzle and major-ness of A ("r": in registers) and B
    (("f32", "f16", "f16"), 64, 128, False, 128, False),
    (("f32", "f16", "f16"), 24, 64, True, 32, True),
    (("f32", "bf16", "bf16"), 128, 0, True, 128, True),
    (("f32", "bf16", "bf16"), 16, 32, True, 0, True),
    (("f16", "f16", "f16"), 72, 128, True, 64, False),
    (("f16", "f16", "f16"), 256, "r", False, 64, True),
    (("f32", "f16", "f16"), 8, "r", False, 0, False),
    (("f32", "tf32", "tf32"), 40, 128, False, 32, False),
    (("f32", "tf32", "tf32"), 32, "r", False, 64, False),
    (("f32", "e4m3", "e5m2"), 64, 64, False, 128, False),
    (("f16", "e5m2", "e4m3"), 16, "r", False, 0, False),
    (("f32", "e5m2", "e5m2"), 8, 32, False, 32, False),
    (("s32", "s8", "u8"), 64, 128, False, 64, False),
    (("s32", "u8", "s8"), 16, "r", False, 128, False),
]


@pytest.mark.parametrize(("types", "n", "swizzle_a", "mn_a", "swizzle_b", "mn_b"), CASES)
def test_layouts(types: tuple[str, str, str], n: int, swizzle_a: Any, mn_a: bool, swizzle_b: int, mn_b: bool) -> None:
    dtype, atype, btype = types
    depth = 32 // SIZES[atype]
    rng = np.random.default_rng(7)
    a, b = finite(rng, atype, (64, depth)), finite(rng, btype, (n, depth))
    row, column = place_of(n)
    if dtype == "f16":
        c = rng.standard_normal((64, n)).astype(np.float16).view(np.uint16)
    elif dtype == "f32":
        c = rng.standard_normal((64, n)).astype(np.float32).view(np.uint32)
    else:
        c = rng.integers(0, 1 << 32, (64, n), dtype=np.uint32)
    # registers: threads' words, two f16 elements to a word
    fragment = np.ascontiguousarray(c[row, column]).view(np.uint32)
    in_registers = swizzle_a == "r"
    if in_registers:
        # register 2 g + h of lane l: row 8 h + l / 4, bytes 16 g + 4 (l mod 4) of k
        words = a.view(np.uint32)
        thread = np.arange(128)[:, None]
        register = np.arange(4)[None, :]
        first = np.ascontiguousarray(
            words[thread // 32 * 16 + register % 2 * 8 + thread % 32 // 4, register // 2 * 4 + thread % 4]
        )
        placed = None
    else:
        placed = place(a, swizzle_a, mn_a)
        first = placed.image
    second = place(b, swizzle_b, mn_b)
    half = atype in ("f16", "bf16")
    tail = "" if dtype == "s32" else ", 1, 1"
    if half:
        tail += f", {int(mn_b)}" if in_registers else f", {int(mn_a)}, {int(mn_b)}"
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{depth}.{dtype}.{atype}.{btype}"
    got = run(kernel(opcode, tail, fragment.shape[1], placed, second), first, second.image, fragment)
    np.testing.assert_array_equal(got, np.ascontiguousarray(law(a, b, c, types)[row, column]).view(np.uint32))


@pytest.mark.parametrize("signs", [(-1, 1), (1, -1), (-1, -1)])
def test_negated_operands(signs: tuple[int, int]) -> None:
    rng = np.random.default_rng(8)
    a, b = finite(rng, "f16", (64, 16)), finite(rng, "f16", (16, 16))
    pa, pb = place(a, 0, False), place(b, 0, False)
    c = np.zeros((128, 8), np.uint32)
    opcode = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16"
    plain = run(kernel(opcode, ", 1, 1, 0, 0", 8, pa, pb), pa.image, pb.image, c).view(np.float32)
    signed = run(kernel(opcode, f", {signs[0]}, {signs[1]}, 0, 0", 8, pa, pb), pa.image, pb.image, c).view(np.float32)
    np.testing.assert_array_equal(signed, plain * np.float32(signs[0] * signs[1]))


def _simple(**options: Any) -> tuple[str, Any]:
    rng = np.random.default_rng(9)
    pa, pb = (place(finite(rng, "f16", (rows, 16)), 128, False) for rows in (64, 16))
    c = rng.standard_normal((128, 8)).astype(np.float32).view(np.uint32)
    ptx = kernel("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16", ", 1, 1, 0, 0", 8, pa, pb, **options)
    return ptx, (pa.image, pb.image, c)


def test_a_forgotten_wait_leaves_the_accumulators() -> None:
    right, args = _simple()
    wrong, _ = _simple(waits=False)
    good = run(right, *args)
    np.testing.assert_array_equal(run(right, *args, asynchrony="eager"), good)
    np.testing.assert_array_equal(run(wrong, *args, asynchrony="eager"), good)
    np.testing.assert_array_equal(run(wrong, *args), args[2])


def test_an_operand_that_is_overwritten_before_the_wait() -> None:
    right, args = _simple()
    wrong, _ = _simple(overwrite=True)
    good = run(right, *args)
    np.testing.assert_array_equal(run(wrong, *args, asynchrony="eager"), good)
    assert (run(wrong, *args) != good).any()


def test_an_operand_outside_shared_memory() -> None:
    ptx, (a, b, c) = _simple()
    ptx = ptx.replace("or.b64 %d1, %d1,", "add.u64 %d1, %d1, 0x2000; or.b64 %d1, %d1,")
    result = gpuemu.Module.from_ptx(ptx)["k"].launch(grid=(1,), block=(128,), args=[a, b, c, np.zeros_like(c)])
    assert [f.kind for f in result.findings] == ["out-of-bounds"]
    assert "wgmma" in result.findings[0].evidence["instruction"]
