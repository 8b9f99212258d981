"""`wmma`: load, product and store together, in all shapes, types, layouts, with leading dimensions, in both spaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from interp.launch import Module
from interp.ops.wmma import dimensions, registers
from interp.tensorcore import fast, fragments
from interp.tensorcore.table import plan
from tests.numerics.plans import run as run_plan

A, B, C = 0, 1, 2
PAD = 8
"""Elements between rows (columns) of a matrix, beyond its width."""


@dataclass(frozen=True)
class Case:
    """A product. `layouts`: of A, B, C and D; `op`: how the product is named behind `wmma.mma`."""

    shape: str
    atype: str
    ctype: str
    dtype: str
    layouts: str
    suffix: str
    op: str = ""

    @property
    def name(self) -> str:
        return f"{self.shape} {self.layouts} {self.suffix}{self.op}"


_ROWS = {"r": "row", "c": "col"}


def _cases() -> list[Case]:
    found = []
    for i, shape in enumerate(("m16n16k16", "m8n32k16", "m32n8k16")):
        for j, (d, c) in enumerate((("f32", "f32"), ("f16", "f16"), ("f32", "f16"), ("f16", "f32"))):
            found.append(Case(shape, "f16", c, d, ("rcrr", "crcr", "rrrc", "cccc")[(i + j) % 4], f"{d}.{c}"))
        found.append(Case(shape, "bf16", "f32", "f32", ("rccr", "crrc", "rrcc")[i], "f32.bf16.bf16.f32"))
        for j, kind in enumerate(("s8", "u8")):
            end = ".satfinite" if j else ""
            found.append(Case(shape, kind, "s32", "s32", ("rcrr", "crcc")[j], f"s32.{kind}.{kind}.s32{end}"))
    found += [Case("m16n16k8", "tf32", "f32", "f32", layouts, "f32.tf32.tf32.f32") for layouts in ("rcrr", "crcr")]
    found += [Case("m8n8k4", "f64", "f64", "f64", layouts, "f64.f64.f64.f64") for layouts in ("rcrr", "crcr")]
    found += [Case("m8n8k32", kind, "s32", "s32", "rcrr", f"s32.{kind}.{kind}.s32") for kind in ("s4", "u4")]
    found += [Case("m8n8k128", "b1", "s32", "s32", "rcrc", "s32.b1.b1.s32", op) for op in (".xor.popc", ".and.popc")]
    return found


CASES = _cases()
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}


def ptx(case: Case, shared: bool) -> str:
    """Entry `k(a, b, c, d)`; with `shared` A goes through shared memory."""
    m, n, k = dimensions(case.shape)
    la, lb, lc, ld = (_ROWS[x] for x in case.layouts)
    lead = {
        A: (k if la == "row" else m) + PAD * (BITS[case.atype] >= 8), B: (n if lb == "row" else k) + PAD *
        (BITS[case.atype] >= 8), C: (n if lc == "row" else m) + PAD, 3: (n if ld == "row" else m) + PAD,
    }  # fmt: skip
    wide = case.atype == "f64"
    kind = "fd" if wide else "r"

    def vector(role: int, type: str, base: int) -> str:
        return "{" + ", ".join(f"%{kind}{base + i}" for i in range(registers(role, case.shape, type))) + "}"

    a, b = vector(A, case.atype, 0), vector(B, case.atype, 10)
    c, d = vector(C, case.ctype, 20), vector(C, case.dtype, 30)
    copy = ""
    source = "global." + case.atype, "%rd1"
    if shared:
        size = (m if la == "row" else k) * lead[A] * BITS[case.atype] // 8
        copy = f"""
            mov.u32 %r50, %tid.x; mul.lo.u32 %r51, %r50, 4; mov.u32 %r52, tile; mov.u32 %r53, 0;
        TOP:
            add.u32 %r54, %r51, %r53; cvt.u64.u32 %rd6, %r54; add.u64 %rd6, %rd6, %rd1; add.u32 %r55, %r52, %r54;
            setp.ge.u32 %p1, %r54, {size}; @%p1 bra NEXT;
            ld.global.b32 %r56, [%rd6]; st.shared.b32 [%r55], %r56;
        NEXT:
            add.u32 %r53, %r53, 128; setp.lt.u32 %p2, %r53, {size}; @%p2 bra TOP;
            bar.warp.sync -1;"""
        source = "shared." + case.atype, "tile"
    strides = "\n".join(f"mov.u32 %r{60 + i}, {lead[i]};" for i in range(4))
    types = case.suffix if case.atype != "f16" else f"{case.dtype}.{case.ctype}"
    return f""".version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {{
    .reg .b32 %r<70>; .reg .f64 %fd<70>; .reg .b64 %rd<9>; .reg .pred %p<3>; .shared .align 32 .b8 tile[8192];
    ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc]; ld.param.u64 %rd4, [pd];
    {strides}{copy}
    wmma.load.a.sync.aligned.{la}.{case.shape}.{source[0]} {a}, [{source[1]}], %r60;
    wmma.load.b.sync.aligned.{lb}.{case.shape}.{case.atype} {b}, [%rd2], %r61;
    wmma.load.c.sync.aligned.{lc}.{case.shape}.global.{case.ctype} {c}, [%rd3], %r62;
    wmma.mma{case.op}.sync.aligned.{la}.{lb}.{case.shape}.{types} {d}, {a}, {b}, {c};
    wmma.store.d.sync.aligned.{ld}.{case.shape}.global.{case.dtype} [%rd4], {d}, %r63;
    ret;
}}
"""


def store(matrix: np.ndarray, layout: str, bits: int) -> np.ndarray:
    """Words of a matrix as memory has it, one byte array; matrix: unsigned words of `bits`."""
    lines = matrix if layout == "r" else matrix.T
    if bits < 8:
        flat = lines.reshape(-1, 8 // bits).astype(np.uint8)
        return (flat << np.arange(0, 8, bits, dtype=np.uint8)).sum(-1).astype(np.uint8)
    padded = np.zeros((lines.shape[0], lines.shape[1] + PAD), f"uint{bits}")
    padded[:, : lines.shape[1]] = lines
    return padded.view(np.uint8).reshape(-1)


def fetch(memory: np.ndarray, layout: str, rows: int, columns: int, bits: int) -> np.ndarray:
    """The inverse of `store` for elements of at least 8 bits."""
    height, width = (rows, columns) if layout == "r" else (columns, rows)
    lines = memory.view(f"uint{bits}").reshape(height, width + PAD)[:, :width]
    return lines if layout == "r" else lines.T


def words_of(numbers: np.ndarray, type: str) -> np.ndarray:
    """Whole numbers as words of a type."""
    if type == "f16":
        return numbers.astype(np.float16).view(np.uint16)
    if type == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if type in ("f32", "tf32"):
        return numbers.astype(np.float32).view(np.uint32)
    if type == "f64":
        return numbers.astype(np.float64).view(np.uint64)
    return (numbers & (1 << BITS[type]) - 1).astype(f"uint{max(BITS[type], 8)}")


def launch(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray, shared: bool, engine: str) -> np.ndarray:
    """Words of D, [row, column]; operands are words."""
    m, n, _ = dimensions(case.shape)
    la, lb, lc, ld = case.layouts
    bits = BITS[case.dtype]
    memory = [store(a, la, BITS[case.atype]), store(b, lb, BITS[case.atype]), store(c, lc, BITS[case.ctype])]
    out = store(np.zeros((m, n), f"uint{bits}"), ld, bits)
    done = Module.from_ptx(ptx(case, shared))["k"].launch((1,), (32,), [*memory, out], engine=engine)
    assert not done.findings
    return fetch(out, ld, m, n, bits)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_whole_numbers(case: Case) -> None:
    """Products of small whole numbers are exact in every type, so every element has to be in its place."""
    m, n, k = dimensions(case.shape)
    rng = np.random.default_rng(3)
    low, high = {"b1": (0, 2), "u8": (0, 9), "u4": (0, 16), "s4": (-8, 8)}.get(case.atype, (-4, 5))
    a, b = rng.integers(low, high, (m, k)), rng.integers(low, high, (k, n))
    c = rng.integers(-50, 50, (m, n))
    shared = case.layouts[0] == "c" and BITS[case.atype] >= 16
    got = launch(case, words_of(a, case.atype), words_of(b, case.atype), words_of(c, case.ctype), shared, "compiled")
    total = a @ (1 - b) + (1 - a) @ b if ".xor" in case.op else a @ b
    np.testing.assert_array_equal(got, words_of(total + c, case.dtype))


@pytest.mark.parametrize("case", [CASES[0], CASES[8], CASES[-1]], ids=lambda c: c.name)
def test_engines_agree(case: Case) -> None:
    m, n, k = dimensions(case.shape)
    rng = np.random.default_rng(4)
    bits = max(BITS[case.atype], 8)
    top = 1 << BITS[case.atype]
    a, b = (rng.integers(0, top, size, dtype=np.uint64).astype(f"uint{bits}") for size in ((m, k), (k, n)))
    c = rng.integers(0, 1 << BITS[case.ctype], (m, n), dtype=np.uint64).astype(f"uint{BITS[case.ctype]}")
    one, two = (launch(case, a, b, c, False, engine) for engine in ("compiled", "traced"))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("result", ["f32", "f16"])
def test_bits_of_the_products_are_those_of_mma(result: str) -> None:
    """m16n16k16 is two m16n8k16 of the same device."""
    rng = np.random.default_rng(6)
    case = Case("m16n16k16", "f16", result, result, "rcrr", "")
    a, b = (
        (rng.standard_normal((16, 16)) * np.exp2(rng.integers(-6, 7, (16, 16)))).astype(np.float16).view(np.uint16)
        for _ in range(2)
    )
    dtype = np.float32 if result == "f32" else np.float16
    c = rng.standard_normal((16, 16)).astype(dtype).view(f"uint{BITS[result]}")
    got = launch(case, a, b, c, False, "compiled")
    how = plan(90, "m16n8k16", "f16", "f16", result)
    for half in range(2):
        columns = slice(8 * half, 8 * half + 8)
        operands = (
            fragments.to_registers("a", a), fragments.to_registers("b", np.ascontiguousarray(b[:, columns])),
            fragments.to_registers("c", np.ascontiguousarray(c[:, columns])),
        )  # fmt: skip
        out = run_plan(fast.mma, how, *(x[None] for x in operands))
        np.testing.assert_array_equal(got[:, columns], fragments.from_registers(out[0], c.dtype))
