"""Matrix instructions of `matrices.py` on both engines, against what the instruction means on whole matrices."""

from __future__ import annotations

import numpy as np
import pytest

from gpuemu.conform.matrices import SEED, WARPS, Case, batches, cases, execute, inputs
from interp.formats.fma64 import f64_fma_directed
from interp.formats.rounding import MODES


@pytest.mark.parametrize("batch", batches(cases()), ids=lambda b: b[0].name)
def test_engines_agree(batch: list[Case]) -> None:
    given = [inputs(c, SEED) for c in batch]
    for case, one, two in zip(batch, execute(batch, given), execute(batch, given, "traced"), strict=True):
        np.testing.assert_array_equal(one, two, case.name)


# ------------------------------------------------------------------------------------------------ whole matrices
FLOATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2),
          "e2m3": (2, 3), "e3m2": (3, 2), "e2m1": (2, 1)}  # fmt: skip


def values(words: np.ndarray, kind: str) -> np.ndarray:
    """f64 values of finite words of a float kind."""
    exponent_bits, fraction_bits = FLOATS[kind]
    x = words.astype(np.int64)
    x = x >> 2 if kind == "e2m1" else x
    field, fraction = x >> fraction_bits & (1 << exponent_bits) - 1, x & (1 << fraction_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    size = (fraction + (field > 0) * (1 << fraction_bits)) * np.exp2(np.maximum(field, 1) - bias - fraction_bits)
    return np.where(x >> exponent_bits + fraction_bits & 1, -size, size)


def fragment(registers: np.ndarray, bits: int) -> np.ndarray:
    """A row for each quad: elements along k, u32 [quad, k], of registers [lane, register] of B, or of one row block of
    A."""
    lanes, count = registers.shape
    per = 32 // bits
    parts = registers[:, :, None] >> np.arange(0, 32, bits, dtype=np.uint32) & np.uint32((1 << bits) - 1)
    # [quad, lane of it, register, part] -> k = register, lane, part
    return parts.reshape(8, 4, count, per).transpose(0, 2, 1, 3).reshape(8, count * 4 * per)


def matrix_a(registers: np.ndarray, bits: int, rows: int) -> np.ndarray:
    """A as [row, k]: of sixteen rows the even registers have the upper eight."""
    if rows == 8:
        return fragment(registers, bits)
    return np.concatenate([fragment(registers[:, 0::2], bits), fragment(registers[:, 1::2], bits)])


def accumulator(registers: np.ndarray, half: bool) -> np.ndarray:
    """Words of C or D as [row, column]."""
    # [lane, block of rows, column of the lane's two]
    parts = np.stack([registers & 0xFFFF, registers >> 16], -1) if half else registers.reshape(32, -1, 2)
    blocks = [parts[:, i].reshape(8, 8) for i in range(parts.shape[1])]
    return np.concatenate(blocks)


def expanded(stored: np.ndarray, metadata: np.ndarray, selector: int, bits: int) -> np.ndarray:
    """A sparse A in full: [row, 2 * k]; metadata: the word of each lane. What an index names twice is added."""
    full = np.zeros((16, 2 * stored.shape[1]), stored.dtype)
    step, held = {32: (2, 1), 16: (4, 2), 8: (4, 2), 4: (8, 4)}[bits]
    chunks = full.shape[1] // step
    for row in range(16):
        quad = metadata[4 * (row % 8) : 4 * (row % 8) + 4]
        if bits >= 16:  # four nibbles a lane for each of its two rows
            lanes = [selector] if chunks == 4 else [2 * selector, 2 * selector + 1]
            nibbles = [int(quad[lane]) >> 16 * (row // 8) + 4 * i & 15 for lane in lanes for i in range(4)]
        else:  # eight nibbles a lane, which has one row
            pairs = [selector] if chunks == 8 else [0, 1]
            nibbles = [int(quad[2 * pair + row // 8]) >> 4 * i & 15 for pair in pairs for i in range(8)]
        for chunk, nibble in enumerate(nibbles):
            places = {32: [nibble >> 1 & 1], 16: [nibble & 3, nibble >> 2], 8: [nibble & 3, nibble >> 2]}.get(bits)
            if places is None:
                places = [2 * (nibble & 3), 2 * (nibble & 3) + 1, 2 * (nibble >> 2), 2 * (nibble >> 2) + 1]
            for i, place in enumerate(places):
                full[row, step * chunk + place] += stored[row, held * chunk + i]
    return full


def operands(case: Case, words: np.ndarray) -> list[np.ndarray]:
    """One warp's registers of each operand, [lane, register]."""
    sizes = [n * (2 if k == "f64" else 1) for n, k in case.sources]
    return np.split(words, np.cumsum(sizes)[:-1], axis=1)


INTEGERS = [c for c in cases() if c.results[1] == "int"]


def signed(words: np.ndarray, type: str) -> np.ndarray:
    bits = int(type[1:])
    x = words.astype(np.int64)
    return np.where(x >> bits - 1 & 1, x - (1 << bits), x) if type[0] == "s" else x


def test_integers() -> None:
    given = [inputs(c, SEED) for c in INTEGERS]
    for case, words, got in zip(INTEGERS, given, execute(INTEGERS, given), strict=True):
        rows = 16 if "m16" in case.opcode else 8
        kinds = case.opcode.split(".s32.")[1].split(".")[:2]
        for warp in range(WARPS):
            lanes = slice(32 * warp, 32 * warp + 32)
            a, b, c, *rest = operands(case, words[lanes])
            if kinds[0] == "b1":
                x, y = matrix_a(a, 1, rows).astype(np.int64), fragment(b, 1).astype(np.int64)
                total = x @ y.T if ".and." in case.opcode else x @ (1 - y.T) + (1 - x) @ y.T
            else:
                bits = int(kinds[0][1:])
                x = signed(matrix_a(a, bits, rows), kinds[0])
                if rest:
                    x = expanded(x, rest[0][:, 0], int(case.tail), bits)
                total = x @ signed(fragment(b, bits), kinds[1]).T
            total = total + accumulator(c, False).astype(np.int32)
            if "satfinite" in case.opcode:
                total = np.clip(total, -(1 << 31), (1 << 31) - 1)
            np.testing.assert_array_equal(accumulator(got[lanes], False), total.astype(np.uint32), case.name)


def small_integers(kind: str, registers: int, rng: np.random.Generator) -> np.ndarray:
    """Words of whole numbers from -2 to 2 (f32, f16: of accumulators), all lanes and registers of one operand."""
    if kind == "int":  # eight e2m1 numbers
        codes = np.array([0, 2, 4, 10, 12], np.uint32)  # 0, 1, 2, -1, -2
        drawn = rng.choice(codes, (32, registers, 8))
        return (drawn << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1).astype(np.uint32)
    exponent_bits, fraction_bits = FLOATS[kind]
    width = {"e2m3": 8, "e3m2": 8, "e2m1": 8}.get(kind, 1 + exponent_bits + fraction_bits)
    bias = (1 << exponent_bits - 1) - 1
    one, two, sign = bias << fraction_bits, bias + 1 << fraction_bits, 1 << exponent_bits + fraction_bits
    codes = np.array([0, one, two, one | sign, two | sign], np.uint64) << np.uint64(2 if kind == "e2m1" else 0)
    drawn = rng.choice(codes, (32, registers * (32 // width))).astype(f"uint{width}")
    return np.ascontiguousarray(drawn).view(np.uint32)


EXACT = [c for c in cases() if c.results[1] in ("f32", "f16") and ".m8n8k4." not in c.opcode]


@pytest.mark.parametrize("target", ["sm_90a", "sm_120a"])
def test_small_whole_numbers_are_exact(target: str) -> None:
    """Products of small whole numbers are exact in every arithmetic: what remains is where the elements are."""
    rng = np.random.default_rng(5)
    chosen = [c for c in EXACT if c.target == target]
    given = []
    for case in chosen:
        words = inputs(case, SEED)
        at = 0
        for n, kind in case.sources:
            if kind in FLOATS or kind == "int":
                for warp in range(WARPS):
                    words[32 * warp : 32 * warp + 32, at : at + n] = small_integers(kind, n, rng)
            elif kind == "ue4m3":  # powers of two from 1 to 8
                scales = (0x38 + 8 * rng.integers(0, 4, (len(words), 4))).astype(np.uint8)
                words[:, at] = scales.view(np.uint32)[:, 0]
            at += n
        given.append(words)
    for case, words, got in zip(chosen, given, execute(chosen, given), strict=True):
        for warp in range(WARPS):
            lanes = slice(32 * warp, 32 * warp + 32)
            a, b, c, *rest = operands(case, words[lanes])
            kinds = [k for _, k in case.sources[:2]]
            bits = [4 if k == "int" else max(8, 1 + sum(FLOATS[k])) for k in kinds]
            x, y = matrix_a(a, bits[0], 16), fragment(b, bits[1])
            if kinds[0] == "int":
                x, y, kinds = x << 2, y << 2, ["e2m1", "e2m1"]
            x, y = values(x, kinds[0]), values(y, kinds[1])
            if case.sources[-1][1].endswith("metadata"):
                x = expanded(x, rest[0][:, 0], int(case.tail), bits[0])
            elif rest:
                byte, lane = (int(n) for n in case.tail.split())
                if len(rest) == 3:
                    x, rest = expanded(x, rest[0][:, 0], 0, bits[0]), rest[1:]
                x, y = scaled_rows(case, x, rest[0][:, 0], byte, lane, True), scaled_rows(
                    case, y, rest[1][:, 0], byte, lane, False
                )  # fmt: skip
            half = case.results[1] == "f16"
            total = x @ y.T + values(accumulator(c, half), case.results[1])
            np.testing.assert_array_equal(values(accumulator(got[lanes], half), case.results[1]), total, case.name)


def scaled_rows(case: Case, x: np.ndarray, words: np.ndarray, byte: int, lane: int, is_a: bool) -> np.ndarray:
    """Rows of A, or columns of B, times their scales."""
    kind = case.sources[-1][1]
    vector = 4 if "4X" in case.opcode else 1 if "mxf8f6f4" in case.opcode else 2
    out = x.copy()
    for row in range(len(x)):
        word = int(words[4 * (row % 8) + (2 * lane + row // 8 if is_a else lane)]) >> 8 * byte
        for i in range(vector):
            scale = word >> 8 * i & 0xFF
            value = 2.0 ** (scale - 127) if kind == "ue8m0" else float(values(np.array(scale), "e4m3"))
            size = x.shape[1] // vector
            out[row, i * size : (i + 1) * size] *= value
    return out


# ------------------------------------------------------------------------------------------------ m8n8k4 and f64
def quads(lanes: np.ndarray) -> np.ndarray:
    """What the eight lanes of each of the four products hold: [product, lane, ...]."""
    return np.concatenate([lanes[:16].reshape(4, 4, *lanes.shape[1:]), lanes[16:].reshape(4, 4, *lanes.shape[1:])], 1)


def halves_of(registers: np.ndarray) -> np.ndarray:
    """f16 of registers [lane, register] as [lane, part]."""
    return np.ascontiguousarray(registers.astype(np.uint32)).view(np.float16)


def product_884(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """D [product, row, column] as sm_80 and later compute it. Products of f16 are exact in f32, so an f32 addition of
    one is the fused operation."""
    la, lb, d = case.opcode.split(".")[4:7]
    x, y = quads(halves_of(a)).astype(np.float32), quads(halves_of(b)).astype(np.float32)  # [product, lane, part]
    if la == "col":  # a lane has four rows of one k
        x = x.reshape(4, 2, 4, 4).transpose(0, 1, 3, 2).reshape(4, 8, 4)
    if lb == "row":
        y = y.reshape(4, 2, 4, 4).transpose(0, 1, 3, 2).reshape(4, 8, 4)
    terms = x[:, :, None, :] * y[:, None, :, :]
    if d == "f16":
        first, second = terms[..., 0] + terms[..., 1], terms[..., 2] + terms[..., 3]
        return ((c + first) + second).astype(np.float16)
    total = np.float32(0) + terms[..., 0]
    for k in range(1, 4):
        total = terms[..., k] + total
    return c + total


def accumulator_884(registers: np.ndarray, kind: str) -> np.ndarray:
    """f16 or f32 of C or D as [product, row, column]."""
    if kind == "f16":
        return quads(halves_of(registers))
    parts = quads(np.ascontiguousarray(registers).view(np.float32))
    out = np.zeros((4, 8, 8), np.float32)
    for lane in range(8):
        for i in range(8):
            out[:, (lane & 1) + (i & 2) + (lane & 4), (i & 4) + (lane & 2) + (i & 1)] = parts[:, lane, i]
    return out


def test_products_of_eight_lanes() -> None:
    chosen = [c for c in cases() if ".m8n8k4." in c.opcode and c.results[1] != "f64"]
    given = [inputs(c, SEED) for c in chosen]
    for case, words, got in zip(chosen, given, execute(chosen, given), strict=True):
        kinds = case.results[1], case.sources[2][1]
        for warp in range(WARPS):
            lanes = slice(32 * warp, 32 * warp + 32)
            a, b, c = operands(case, words[lanes])
            with np.errstate(all="ignore"):
                expected = product_884(case, a, b, accumulator_884(c, kinds[1]).astype(np.float32))
            result = accumulator_884(got[lanes], kinds[0])
            same = (result == expected) | (np.isnan(result) & np.isnan(expected))
            assert same.all(), case.name


def test_doubles_in_directed_roundings() -> None:
    """Against the lane instruction `fma`, one after the other."""
    chosen = [c for c in cases() if c.results[1] == "f64"]
    given = [inputs(c, SEED) for c in chosen]
    for case, words, got in zip(chosen, given, execute(chosen, given), strict=True):
        mode = MODES[case.opcode.split(".")[6]]
        lanes = slice(32, 64)  # of moderate exponents
        a, b, c = (np.ascontiguousarray(x).view(np.uint64) for x in operands(case, words[lanes]))
        rows = 16 if "m16" in case.opcode else 8
        blocks = [a[:, 0::2], a[:, 1::2]] if rows == 16 else [a]
        x = np.concatenate([p.reshape(8, 4, -1).transpose(0, 2, 1).reshape(8, -1) for p in blocks])
        y = b.reshape(8, 4, -1).transpose(0, 2, 1).reshape(8, -1)
        total = np.concatenate([c[:, 2 * i : 2 * i + 2].reshape(8, 8) for i in range(rows // 8)])
        for k in range(x.shape[1]):
            for row in range(rows):
                for n in range(8):
                    total[row, n] = f64_fma_directed(x[row, k], y[n, k], total[row, n], mode)
        d = np.ascontiguousarray(got[lanes]).view(np.uint64)
        result = np.concatenate([d[:, 2 * i : 2 * i + 2].reshape(8, 8) for i in range(rows // 8)])
        np.testing.assert_array_equal(result, total, case.name)
