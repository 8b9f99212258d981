"""Registers of 128 bits → two of 64 bits each, which is how both engines keep them.

PTX can only move, load, store, exchange and compare such a register as a whole, so nothing but its halves is ever
needed. An operand that is one becomes `ir.Wide`, its low half first; the instruction stays what it is, and so do its
counters and findings.
"""

from __future__ import annotations

import msgspec

from ptx import ir

TYPE = "b128"


def halved(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel without registers of 128 bits; the same object where it has none."""
    if TYPE not in kernel.registers.values():
        return kernel
    registers: dict[str, str] = {}
    for name, type in kernel.registers.items():
        halves = (_half(name, "low"), _half(name, "high")) if type == TYPE else (ir.Reg(name, type),)
        registers |= {half.name: half.type for half in halves}
    blocks = tuple(msgspec.structs.replace(b, insts=tuple(_halved(i) for i in b.insts)) for b in kernel.blocks)
    return msgspec.structs.replace(kernel, registers=registers, blocks=blocks)


def _half(name: str, which: str) -> ir.Reg:
    return ir.Reg(f"{name}::{which}", "b64")


def _halved(inst: ir.Inst) -> ir.Inst:
    if not any(isinstance(o, ir.Reg) and o.type == TYPE for o in inst.operands):
        return inst
    operands = tuple(
        ir.Wide(_half(o.name, "low"), _half(o.name, "high")) if isinstance(o, ir.Reg) and o.type == TYPE else o
        for o in inst.operands
    )
    return msgspec.structs.replace(inst, operands=operands)
