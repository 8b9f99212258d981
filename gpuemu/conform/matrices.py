"""Matrix instructions of a warp that have no stored answers elsewhere: their PTX, and operand words for them.

A case is an instruction whose lanes read all their operand registers from memory and write their results back. The
same text runs on both engines and, where the target allows, on a GPU (`on_gpu.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp.launch import Module

Words = np.ndarray[tuple[int, ...], np.dtype[Any]]

ORDERED = (0x4, 0x8, 0x9, 0xC, 0xD, 0xE)
"""Metadata nibbles that the manual gives a meaning; of tf32 `TF32_METADATA`. Kind "any metadata": all there are, also
indices out of order and the same twice, which the units take as they are."""
TF32_METADATA = (0x4, 0xE)
ANY_METADATA = tuple(range(16))
WARPS, SEED, BATCH = 12, 11, 20


@dataclass(frozen=True)
class Case:
    """`sources`: registers and kind of words of each operand (of 64 bits for "f64"); `results`: of D; `tail`: operands
    behind these as text."""

    opcode: str
    results: tuple[int, str]
    sources: tuple[tuple[int, str], ...]
    tail: str = ""
    target: str = "sm_90a"

    @property
    def name(self) -> str:
        return f"{self.opcode} {self.tail}".strip()

    @property
    def words(self) -> tuple[int, int]:
        """32-bit words a lane reads and writes."""
        size = {"f64": 2}
        return sum(n * size.get(k, 1) for n, k in self.sources), self.results[0] * size.get(self.results[1], 1)


def _m8n8k4() -> Iterator[Case]:
    for la in ("row", "col"):
        for lb in ("row", "col"):
            for d, c in (("f32", "f32"), ("f16", "f16"), ("f32", "f16")):
                count = {"f32": 8, "f16": 4}
                yield Case(
                    f"mma.sync.aligned.m8n8k4.{la}.{lb}.{d}.f16.f16.{c}", (count[d], d),
                    ((2, "f16"), (2, "f16"), (count[c], c)),
                )  # fmt: skip


def _integers() -> Iterator[Case]:
    shapes = (
        ("m8n8k16", "8", 1, 1, 2), ("m8n8k32", "4", 1, 1, 2), ("m16n8k32", "4", 2, 1, 4), ("m16n8k64", "4", 4, 2, 4),
    )  # fmt: skip
    for shape, bits, a, b, c in shapes:
        for x, y, sat in (("s", "s", ""), ("s", "u", ".satfinite"), ("u", "u", "")):
            opcode = f"mma.sync.aligned.{shape}.row.col{sat}.s32.{x}{bits}.{y}{bits}.s32"
            yield Case(opcode, (c, "int"), ((a, "int"), (b, "int"), (c, "int")))
    for shape, a, b, c in (("m8n8k128", 1, 1, 2), ("m16n8k128", 2, 1, 4), ("m16n8k256", 4, 2, 4)):
        for op in ("and", "xor"):
            opcode = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{op}.popc"
            yield Case(opcode, (c, "int"), ((a, "int"), (b, "int"), (c, "int")))


def _doubles() -> Iterator[Case]:
    for shape, a, b, c in (("m8n8k4", 1, 1, 2), ("m16n8k4", 2, 1, 4), ("m16n8k8", 4, 2, 4), ("m16n8k16", 8, 4, 4)):
        for rounding in ("rz", "rm", "rp"):
            opcode = f"mma.sync.aligned.{shape}.row.col.{rounding}.f64.f64.f64.f64"
            yield Case(opcode, (c, "f64"), ((a, "f64"), (b, "f64"), (c, "f64")))


_SPARSE = (
    ("m16n8k16", "f16", 2, 4), ("m16n8k32", "f16", 4, 2), ("m16n8k16", "bf16", 2, 4), ("m16n8k32", "bf16", 4, 2),
    ("m16n8k8", "tf32", 2, 4), ("m16n8k16", "tf32", 4, 2),
)  # fmt: skip


def _sparse() -> Iterator[Case]:
    for shape, kind, a, selectors in _SPARSE:
        for selector in range(selectors):
            for d in ("f32", "f16") if kind == "f16" else ("f32",):
                c = 2 if d == "f16" else 4
                metadata = "tf32 metadata" if kind == "tf32" else "metadata"
                yield Case(
                    f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.{d}.{kind}.{kind}.{d}", (c, d),
                    ((a, kind), (a, kind), (c, d), (1, metadata)), f"{selector}",
                )  # fmt: skip
    for x in ("e4m3", "e5m2"):
        for y in ("e4m3", "e5m2"):
            for variant, metadata in (("::ordered_metadata", "metadata"), ("", "any metadata")):
                yield Case(
                    f"mma.sp{variant}.sync.aligned.m16n8k64.row.col.f32.{x}.{y}.f32", (4, "f32"),
                    ((4, x), (4, y), (4, "f32"), (1, metadata)), "0",
                )  # fmt: skip
    for shape, bits, a, selectors in (("m16n8k32", 8, 2, 2), ("m16n8k64", 8, 4, 1), ("m16n8k64", 4, 2, 2),
                                      ("m16n8k128", 4, 4, 1)):  # fmt: skip
        for selector in range(selectors):
            for x, y, sat in (("s", "s", ""), ("u", "s", ".satfinite")):
                yield Case(
                    f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col{sat}.s32.{x}{bits}.{y}{bits}.s32",
                    (4, "int"), ((a, "int"), (a, "int"), (4, "int"), (1, "metadata")), f"{selector}",
                )  # fmt: skip


def _narrow() -> Iterator[Case]:
    for x, y in (("e2m1", "e2m3"), ("e4m3", "e2m1"), ("e3m2", "e5m2")):
        for d in ("f32", "f16"):
            c = 2 if d == "f16" else 4
            sources = ((4, x), (2, y), (c, d))
            opcode = f"mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.{d}.{x}.{y}.{d}"
            yield Case(opcode, (c, d), sources, "", "sm_120a")
        sparse = ((4, x), (4, y), (4, "f32"), (1, "metadata"))
        opcode = f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.{x}.{y}.f32"
        yield Case(opcode, (4, "f32"), sparse, "0", "sm_120a")


SCALED = (
    ("m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0", "ue8m0", ("e4m3", "e2m1"),
     ((0, 0), (3, 1))),
    ("m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "ue8m0", ("int", "int"), ((0, 0), (2, 1))),
    ("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "ue4m3", ("int", "int"),
     ((0, 0), (0, 1))),
)  # fmt: skip
"""Opcode without its head, type of the scales, kinds of A and B, selectors (byte, lane) of both."""
SPARSE_SCALED = (
    ("m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e5m2.e3m2.f32.ue8m0", "ue8m0", ("e5m2", "e3m2"), (1, 1)),
    ("m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "ue8m0", ("int", "int"), (2, 0)),
    ("m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "ue4m3", ("int", "int"),
     (0, 1)),
)  # fmt: skip


def scaled() -> Iterator[Case]:
    sources: tuple[tuple[int, str], ...]
    for rest, scale, (x, y), selectors in SCALED:
        for byte, lane in selectors:
            sources = ((4, x), (2, y), (4, "f32"), (1, scale), (1, scale))
            yield Case(f"mma.sync.aligned.{rest}", (4, "f32"), sources, f"{byte} {lane}", "sm_120a")
    for rest, scale, (x, y), (byte, lane) in SPARSE_SCALED:
        sources = ((4, x), (4, y), (4, "f32"), (1, "metadata"), (1, scale), (1, scale))
        opcode = f"mma.sp::ordered_metadata.sync.aligned.{rest}"
        yield Case(opcode, (4, "f32"), sources, f"{byte} {lane}", "sm_120a")


def cases() -> list[Case]:
    """Every case; those of sm_90a can be asked of an H200."""
    return [*_m8n8k4(), *_integers(), *_doubles(), *_sparse(), *_narrow(), *scaled()]


def ptx(batch: list[Case]) -> str:
    """A module with entry `matrices`: parameters input and output, u32; [lane of the grid, word] of a case behind those
    of another."""
    target = batch[0].target
    lanes = 32 * WARPS
    lines = [
        f".version {'8.5' if target == 'sm_90a' else '9.4'}\n.target {target}\n.address_size 64",
        ".visible .entry matrices(.param .u64 input, .param .u64 output) {",
        ".reg .b64 %in, %out, %a, %b; .reg .b32 %t0, %t1, %lane;",
        "mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x; mad.lo.u32 %lane, %t0, 32, %t1;",
        "ld.param.u64 %in, [input]; ld.param.u64 %out, [output];",
    ]
    at_in = at_out = 0
    for case in batch:
        n, m = case.words
        lines.append(f"{{ .reg .b32 %i<{n + 1}>, %o<{m + 1}>; .reg .b64 %x<{n + 1}>, %y<{m + 1}>;")
        lines.append(f"mad.wide.u32 %a, %lane, {4 * n}, %in; mad.wide.u32 %b, %lane, {4 * m}, %out;")
        lines += [f"ld.global.b32 %i{k}, [%a+{4 * (at_in + k)}];" for k in range(n)]
        at, operands = 0, []
        for count, kind in case.sources:
            if kind == "f64":
                names = [f"%x{at + 2 * k}" for k in range(count)]
                lines += [f"mov.b64 %x{at + 2 * k}, {{%i{at + 2 * k}, %i{at + 2 * k + 1}}};" for k in range(count)]
            else:
                names = [f"%i{at + k}" for k in range(count)]
            at += count * (2 if kind == "f64" else 1)
            single = kind.endswith("metadata") or kind in ("ue8m0", "ue4m3")
            operands.append(names[0] if single else "{" + ", ".join(names) + "}")
        wide = case.results[1] == "f64"
        d = "{" + ", ".join(f"%{'y' if wide else 'o'}{k}" for k in range(case.results[0])) + "}"
        if case.sources[-1][1] in ("ue8m0", "ue4m3"):
            chosen = "{" + case.tail.replace(" ", ", ") + "}"
            selector = ["0"] if case.sources[-3][1] == "metadata" else []
            operands = [*operands[:-2], *selector, operands[-2], chosen, operands[-1], chosen]
        elif case.tail:
            operands.append(case.tail)
        lines.append(f"{case.opcode} {d}, {', '.join(operands)};")
        if wide:
            lines += [f"mov.b64 {{%o{2 * k}, %o{2 * k + 1}}}, %y{k};" for k in range(case.results[0])]
        lines += [f"st.global.b32 [%b+{4 * (at_out + k)}], %o{k};" for k in range(m)]
        lines.append("}")
        at_in, at_out = at_in + n * lanes, at_out + m * lanes
    return "\n".join([*lines, "ret;", "}", ""])


# ------------------------------------------------------------------------------------------------ operand words
_FLOATS = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "tf32": (32, 23), "f64": (64, 52), "e4m3": (8, 3),
           "e5m2": (8, 2), "e2m3": (6, 3), "e3m2": (6, 2), "e2m1": (4, 1)}  # fmt: skip


def _elements(rng: np.random.Generator, kind: str, count: int, spread: int) -> Words:
    """Words of a float kind with exponents near that of 1, a few of them zero, and for a `spread` of 0 any bits."""
    width, fraction = _FLOATS[kind]
    drawn = rng.integers(0, 1 << 64, count, dtype=np.uint64)
    mask = np.uint64((1 << fraction) - 1)
    field = (1 << (width - 1 - fraction)) - 1
    if spread == 0:
        out = drawn >> np.uint64(64 - width)
    else:
        exponent = np.clip((field >> 1) + rng.integers(-spread, spread + 1, count), 0, field - (fraction > 1))
        sign = (drawn >> np.uint64(63)) << np.uint64(width - 1)
        out = drawn & mask | exponent.astype(np.uint64) << np.uint64(fraction) | sign
        out[rng.random(count) < 0.1] = 0
    return out << np.uint64(2) if kind == "e2m1" else out  # bits 5 to 2 of a byte


def _source(rng: np.random.Generator, kind: str, registers: int, spread: int) -> Words:
    """Words u32 [lane, registers (f64: twice as many)] of one operand for a warp."""
    if kind == "int":
        return rng.integers(0, 1 << 32, (32, registers), dtype=np.uint64).astype(np.uint32)
    if kind.endswith("metadata"):
        allowed = {"t": TF32_METADATA, "a": ANY_METADATA}.get(kind[0], ORDERED)
        nibbles = rng.choice(np.array(allowed, np.uint64), (32, registers, 8))
        packed: Words = (nibbles << np.arange(0, 32, 4, dtype=np.uint64)).sum(-1).astype(np.uint32)
        return packed
    if kind in ("ue8m0", "ue4m3"):
        middle, by = (127, 4) if kind == "ue8m0" else (0x38, 12)
        return (middle + rng.integers(-by, by + 1, (32, 4 * registers))).astype(np.uint8).view(np.uint32)
    width = max(_FLOATS[kind][0], 8)
    per = max(32 // width, 1)
    elements = _elements(rng, kind, 32 * registers * per, spread).astype(f"uint{width}")
    words: Words = np.ascontiguousarray(elements.reshape(32, registers * per)).view(np.uint32)
    return words


def inputs(case: Case, seed: int) -> Words:
    """Operand words u32 [32 * WARPS, words]: close exponents, wider ones, any bits."""
    rng = np.random.Generator(np.random.PCG64([seed, sum(case.name.encode())]))
    warps = []
    for warp in range(WARPS):
        spread = (2, 6, 12, 0)[warp % 4]
        warps.append(np.concatenate([_source(rng, k, n, spread) for n, k in case.sources], axis=1))
    return np.concatenate(warps)


def batches(chosen: Sequence[Case]) -> list[list[Case]]:
    """Cases that one module can hold."""
    found = []
    for target in sorted({c.target for c in chosen}):
        same = [c for c in chosen if c.target == target]
        found += [same[i : i + BATCH] for i in range(0, len(same), BATCH)]
    return found


def execute(
    batch: list[Case], given: Sequence[Words], engine: str = "compiled", device: str | None = None
) -> list[Words]:
    """Results u32 [lane, word] of each case of a batch, on the emulator."""
    source = np.concatenate([x.reshape(-1) for x in given])
    shapes = [(32 * WARPS, c.words[1]) for c in batch]
    results = np.zeros(sum(a * b for a, b in shapes), np.uint32)
    entry = Module.from_ptx(ptx(batch), device=device)["matrices"]
    done = entry.launch((WARPS,), (32,), [source, results], counters=False, engine=engine)
    assert not done.findings, done.findings
    return split(results, batch)


def split(results: Words, batch: list[Case]) -> list[Words]:
    """The words of a batch's results, case by case."""
    shapes = [(32 * WARPS, c.words[1]) for c in batch]
    parts = np.split(results, np.cumsum([a * b for a, b in shapes])[:-1])
    return [p.reshape(shape) for p, shape in zip(parts, shapes, strict=True)]
