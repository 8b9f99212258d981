"""Which arithmetic a tensor-core instruction has on each architecture: numbers for the model, and the function that
does it.

The five numbers of `model.py` (block length L, fraction bits F, exponent floor e0, result fraction bits; result
rounding follows from the result type) by architecture, unit and type. Evidence: `hw` compared with hardware results
(V100, A100, A2, Ada, L40S, H100, H200, B200), `mmasim` as MMA-Sim 2.1.1 has it (arXiv 2511.10909), `guess` taken over
from the nearest relative.

Sources: MMA-Sim; Khattak and Mikaitis (arXiv 2512.07004) and their hardware result files; SASS for what the compiler
expands."""

from __future__ import annotations

from dataclasses import dataclass

from interp.tensorcore.model import F16, F32, KINDS
from ptx.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The model's numbers: products per block, F, e0, fraction bits of an f32 result, and how well they are known."""

    block: int
    fraction: int
    floor: int
    out_fraction: int
    evidence: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How an `mma.sync` is executed: `function(out, a, b, c, *arguments)`, all integers.

    function: "mma" (`fast.mma`), "mma_fp8_expanded", "mma_f64" (`expanded`) or "mma_s8" (`integers`). registers:
    32-bit registers of a, b, c (f64: 64-bit ones)."""

    function: str
    arguments: tuple[int, ...]
    registers: tuple[int, int, int]
    evidence: str


@dataclass(frozen=True, slots=True)
class Generation:
    """What an architecture's tensor core has in common: bytes of one operand row in a block, F, input types of
    `mma.sync`."""

    name: str
    row_bytes: int
    fraction: int
    types: frozenset[str]
    evidence: str


_HALF = frozenset({"f16"})
_AMPERE = frozenset({"f16", "bf16", "tf32"})
_FP8 = frozenset({"e4m3", "e5m2"})

GENERATIONS: dict[int, Generation] = {
    70: Generation("Volta", 8, 23, _HALF, "hw"),
    72: Generation("Volta", 8, 23, _HALF, "guess"),
    75: Generation("Turing", 16, 24, _HALF, "mmasim"),
    80: Generation("Ampere", 16, 24, _AMPERE, "hw"),
    86: Generation("Ampere", 16, 24, _AMPERE, "hw"),
    87: Generation("Ampere", 16, 24, _AMPERE, "guess"),
    89: Generation("Ada", 16, 24, _AMPERE | _FP8, "hw"),
    90: Generation("Hopper", 32, 25, _AMPERE | _FP8, "hw"),
    100: Generation("Blackwell", 32, 25, _AMPERE | _FP8, "hw"),
    103: Generation("Blackwell", 32, 25, _AMPERE | _FP8, "guess"),
    120: Generation("RTX Blackwell", 32, 25, _AMPERE | _FP8, "mmasim"),
    121: Generation("RTX Blackwell", 32, 25, _AMPERE | _FP8, "guess"),
}
"""sm number -> tensor-core generation."""

_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1}
_SHAPES = {"f16": (8, 16), "bf16": (8, 16), "tf32": (4, 8), "e4m3": (16, 32), "e5m2": (16, 32)}
EXPANDED_FP8 = frozenset({90, 100, 103})
"""Architectures whose FP8 `mma.sync` the compiler expands to f16 operations."""


def arithmetic(sm: int, kind: str, result: str, *, unit: str = "mma") -> Arithmetic:
    """The numbers for an input type (f16, bf16, tf32, e4m3, e5m2) and result type (f32, f16) on a unit (mma, wgmma,
    tcgen05).

    Raises Unsupported for what an architecture does not have. FP8 `mma.sync` on EXPANDED_FP8 has none: see `plan`.
    """
    generation = GENERATIONS.get(sm)
    if generation is None:
        raise Unsupported(f"tensor cores of sm_{sm} are not modelled", help=f"modelled: {sorted(GENERATIONS)}")
    if unit == "wgmma" and sm != 90 or unit == "tcgen05" and sm not in (100, 103):
        raise Unsupported(f"sm_{sm} has no {unit}")
    native_fp8 = kind not in _FP8 or unit != "mma" or sm not in EXPANDED_FP8
    if kind not in generation.types or not native_fp8 or (result == "f16" and kind not in _FP8 | _HALF):
        raise Unsupported(f"sm_{sm} has no {unit} operation of {kind} with {result} result")
    fraction, floor_fraction = generation.fraction, generation.fraction
    out_fraction = 23
    evidence = generation.evidence
    if kind in _FP8 and (sm == 89 or unit == "wgmma"):
        fraction, out_fraction = 13, 13
        evidence = "mmasim" if unit == "wgmma" and result == "f16" else "hw"
    if unit == "tcgen05":
        evidence = "mmasim"
    floor = 4 - floor_fraction if result == "f16" else -(108 + floor_fraction)
    return Arithmetic(generation.row_bytes // _BYTES[kind], fraction, floor, out_fraction, evidence)


def narrow(sm: int, result: str) -> Arithmetic:
    """The numbers of `mma.sync` of kind f8f6f4 with FP6 or FP4 operands. Raises Unsupported where there is none."""
    if sm not in (120, 121):
        raise Unsupported(f"sm_{sm} has no mma.sync of FP6 and FP4", help="sm_120a and sm_121a have it")
    return arithmetic(sm, "e4m3", result)


def sparse(sm: int, kind: str, result: str) -> Arithmetic:
    """The numbers of `mma.sp`: those of the dense instruction, for the products of stored elements, in blocks of as
    many. So it is on an H200 for f16, bf16 and tf32 (`gpuemu.conform`); elsewhere it is a guess.

    Raises Unsupported for what an architecture does not have. FP8 on EXPANDED_FP8 has none: it is code of the
    compiler's around f16 (`expanded_sparse`)."""
    if sm < 80:
        raise Unsupported(f"sm_{sm} has no sparse tensor-core operations")
    numbers = arithmetic(sm, kind, result)
    evidence = "hw" if sm == 90 else "guess"
    return Arithmetic(numbers.block, numbers.fraction, numbers.floor, numbers.out_fraction, evidence)


def plan(sm: int, shape: str, a: str, b: str, result: str, *, satfinite: bool = False) -> Plan:
    """How `mma.sync` of a shape ("m16n8k16") and types runs on an architecture. `result` is the type of both c and d.

    Raises Unsupported with what is missing.
    """
    what = f"mma.sync.{shape}.{result}.{a}.{b} on sm_{sm}"
    if shape == "m8n8k4" and a == b == result == "f64" and sm >= 80:
        return Plan("mma_f64", (8, 4), (1, 1, 2), "ptx")
    if not shape.startswith("m16n8k"):
        raise Unsupported(f"{what} is not modelled", help="modelled shapes: m16n8k*, and m8n8k4 of f64")
    k = int(shape.removeprefix("m16n8k"))
    arguments: tuple[int, ...]
    if a == b == result == "f64" and sm >= 90 and k in (4, 8, 16):
        return Plan("mma_f64", (16, k), (k // 2, k // 4, 4), "ptx")
    if a in ("s8", "u8") and b in ("s8", "u8") and result == "s32" and sm >= (75 if k == 16 else 80) and k in (16, 32):
        arguments = (k // 16, int(a == "s8"), int(b == "s8"), int(satfinite))
        return Plan("mma_s8", arguments, (k // 8, k // 16, 4), "ptx")
    mixed = a != b and not (a in _FP8 and b in _FP8)
    if a not in _SHAPES or k not in _SHAPES[a] or mixed or result not in ("f16", "f32") or satfinite:
        raise Unsupported(f"{what} is not modelled")
    if sm < (75 if a == "f16" and k == 8 else 80):
        raise Unsupported(f"{what}: the architecture has no such instruction")
    groups = k * _BYTES[a] // 16
    out_kind = F16 if result == "f16" else F32
    expanded = a in _FP8 and sm in EXPANDED_FP8
    numbers = arithmetic(sm, "f16" if expanded else a, result)
    arguments = (
        groups, KINDS[a], KINDS[b], numbers.block, numbers.fraction, numbers.floor, out_kind, numbers.out_fraction
    )  # fmt: skip
    registers = (2 * groups, groups, 2 if result == "f16" else 4)
    return Plan("mma_fp8_expanded" if expanded else "mma", arguments, registers, numbers.evidence)
