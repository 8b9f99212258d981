"""Machine instructions by class: one table from the opcode's first word, and what its later words change.

The table covers sm_75 to sm_121. An opcode that is not in it is counted as `unclassified` and named, never dropped, so
a new chip shows up as a number instead of a silent hole. The uniform data path (`UIADD3` ...) counts with the class of
its vector twin: a report is about what is computed, not about where.

Not counted: padding. ptxas fills the end of a function with NOPs up to its alignment, and may place NOPs whose
predicate is never true; neither is ever issued. The branch to itself before the padding stays, it is a real one.

Source of the opcodes: NVIDIA, 'CUDA Binary Utilities', 'Instruction Set Reference' (Turing; Ampere and Ada; Hopper;
Blackwell), and what the assemblers of Triton's wheel emit for the kernels of the tests. The division into classes is
ours: by what an instruction is for, not by the pipe that issues it, which differs between chips.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

CLASSES = {
    "tensor": "tensor cores",
    "fp16": "16-bit floats",
    "fp32": "32-bit floats",
    "fp64": "64-bit floats",
    "int": "integers, logic, predicates, addresses",
    "sfu": "special-function unit",
    "load_global": "loads from global memory",
    "store_global": "stores to global memory",
    "load_shared": "loads from shared memory",
    "store_shared": "stores to shared memory",
    "load_local": "loads from local memory: stack and spills",
    "store_local": "stores to local memory: stack and spills",
    "load_constant": "loads from constant memory",
    "load_generic": "loads through generic addresses, textures and tensor memory",
    "store_generic": "stores through generic addresses, surfaces and tensor memory",
    "atomic": "atomics and reductions in memory",
    "async": "asynchronous copies and their groups",
    "control": "branches, calls, exits, reconvergence",
    "barrier": "barriers, fences, waits for earlier instructions",
    "warp": "exchanges between the lanes of a warp",
    "convert": "conversions between formats",
    "move": "moves, selections, special registers",
    "other": "cache control, queries, NOPs inside the code",
    "unclassified": "opcodes that the table does not have",
}

_OPCODES: dict[str, str] = {
    "tensor": "HMMA IMMA BMMA DMMA QMMA OMMA HGMMA IGMMA BGMMA QGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA",
    "fp16": "HADD2 HADD2_32I HFMA2 HFMA2_32I HMUL2 HMUL2_32I HMNMX2 HSET2 HSETP2 VHMNMX",
    "fp32": "FADD FADD32I FADD2 FFMA FFMA32I FFMA2 FMUL FMUL32I FMUL2 FMNMX FMNMX3 FSET FSETP FSWZADD FCHK FHADD FHFMA "
    "UFADD UFFMA UFMUL UFMNMX UFSET UFSETP UFHADD UFHFMA",
    "fp64": "DADD DFMA DMUL DSETP DMNMX DSET",
    "int": "IADD IADD3 IADD32I IABS IMAD IMUL IMNMX ISCADD ISETP ISET LEA LOP LOP3 LOP32I SHF SHL SHR BMSK BREV FLO "
    "IDP IDP4A POPC PLOP3 PSETP SGXT VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 UIADD3 UIABS UIMAD UIMNMX "
    "UISETP UISET ULEA ULOP ULOP3 ULOP32I USHF USHL USHR UBMSK UBREV UFLO UPOPC UPLOP3 UPSETP USGXT UVIADD UVIMNMX",
    "sfu": "MUFU",
    "load_global": "LDG",
    "store_global": "STG",
    "load_shared": "LDS LDSM",
    "store_shared": "STS STSM STAS",
    "load_local": "LDL",
    "store_local": "STL",
    "load_constant": "LDC LDCU ULDC",
    "load_generic": "LD LDT LDTM TEX TLD TLD4 TMML TXD SULD",
    "store_generic": "ST STT STTM SUST USTGR",
    "atomic": "ATOM ATOMG ATOMS RED REDG REDS REDAS SUATOM SURED UREDGR",
    "async": "LDGSTS LDGDEPBAR ARRIVES UTMALDG UTMASTG UTMAREDG UTMAPF UTMACMDFLUSH UBLKCP UBLKPF UBLKRED UTCCP "
    "UTCSHIFT UGETNEXTWORKID",
    "control": "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT BPT KILL BREAK BSSY BSYNC WARPSYNC YIELD NANOSLEEP RTT RPCMOV "
    "ACQBULK ENDCOLLECTIVE PREEXIT USETMAXREG LEPC ULEPC",
    "barrier": "BAR DEPBAR MEMBAR ERRBAR CGAERRBAR FENCE SYNCS B2R R2B UCGABAR_ARV UCGABAR_WAIT UTCBAR WARPGROUP "
    "WARPGROUPSET",
    "warp": "SHFL VOTE VOTEU MATCH REDUX CREDUX MOVM ELECT",
    "convert": "F2F F2I F2IP F2FP FRND I2F I2FP I2I I2IP UF2F UF2FP UF2I UF2IP UFRND UI2F UI2FP UI2I UI2IP",
    "move": "MOV MOV32I MOV64IUR BMOV UMOV UMOV32I UCLEA SEL USEL FSEL UFSEL PRMT UPRMT S2R S2UR CS2R CS2UR P2R R2P "
    "R2UR UP2UR UR2UP SPMETADATA",
    "other": "NOP CCTL CCTLL CCTLT UTMACCTL QSPC PMTRIG GETLMEMBASE SETLMEMBASE SETCTAID TXQ SUQUERY UMEMSETS "
    "UVIRTCOUNT UTCATOMSWS",
}

CLASS_OF = {opcode: name for name, opcodes in _OPCODES.items() for opcode in opcodes.split()}
"""Opcode's first word -> class."""

_NEVER = ("@!PT", "@!UPT")

Machine = tuple[str, str, str]
"""One machine instruction as nvdisasm writes it: predicate ('' for none), opcode with modifiers, operands."""


@dataclass(frozen=True, slots=True)
class Count:
    """Instructions by class (every class has an entry), their sum, and the opcodes that the table does not have."""

    classes: dict[str, int]
    total: int
    unclassified: dict[str, int]


def count(instructions: Iterable[Machine]) -> Count:
    """Count instructions given in code order."""
    kept = [(opcode, operands) for guard, opcode, operands in instructions if opcode != "NOP" or guard not in _NEVER]
    while kept and kept[-1][0] == "NOP":
        kept.pop()
    classes = dict.fromkeys(CLASSES, 0)
    unclassified: dict[str, int] = {}
    for opcode, operands in kept:
        found = class_of(opcode, operands)
        classes[found] += 1
        if found == "unclassified":
            unclassified[opcode] = unclassified.get(opcode, 0) + 1
    return Count(classes, len(kept), unclassified)


_ZEROES = re.compile(r"\w+,\s*-?RZ,\s*-?RZ,")


def class_of(opcode: str, operands: str = "") -> str:
    """The class of an opcode with its modifiers: `LDG.E.128` is load_global.

    Two instructions are moves in disguise, which ptxas uses when another pipe is busy: `IMAD.MOV`, and a half-precision
    multiply-add of zeroes, whose sum is a constant (`HFMA2 R0, -RZ, RZ, 0, 1`)."""
    first, _, rest = opcode.partition(".")
    if first in ("IMAD", "UIMAD") and rest.startswith("MOV"):
        return "move"
    if first == "HFMA2" and _ZEROES.match(operands):
        return "move"
    return CLASS_OF.get(first, "unclassified")
