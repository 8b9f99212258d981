"""`alloca`, `stacksave`, `stackrestore`: memory of a size that is known when it is asked for (PTX ISA 9.7.15).

One register holds the address behind what a thread has so far of DYNAMIC_BYTES of local memory. A function notes it
when it begins and puts it back when it returns. It traps when the memory is full.
"""

from __future__ import annotations

import msgspec

from ptx import ir
from ptx.flatten.code import Code
from ptx.types import width

DYNAMIC = "dynamic::"
DYNAMIC_BYTES = 16384
"""Bytes a thread has for `alloca`, as many as for recursive calls."""
FULL = "the memory of `alloca` is full"
_NOTED = "%dynamic::noted"
_WHY = "memory for `alloca`"
_LEAST = 8
"""The smallest alignment of an allocation, by the manual."""


def is_dynamic(inst: ir.Inst) -> bool:
    """Whether an instruction is one of the three."""
    return inst.op in ("alloca", "stacksave", "stackrestore")


def allocates(kernel: ir.Kernel) -> bool:
    """Whether a kernel or function has one."""
    return any(is_dynamic(inst) for block in kernel.blocks for inst in block.insts)


def top(code: Code) -> ir.Reg:
    """The register that holds where the next allocation may begin."""
    return code.register("%dynamic::top", "b64")


def begin(code: Code, at: ir.Loc) -> None:
    """At the beginning of the kernel: nothing is allocated."""
    code.variable(DYNAMIC, DYNAMIC_BYTES, 16)
    code.put("mov.u64", top(code), ir.Sym(DYNAMIC), at=at, why=_WHY)


def with_note(function: ir.Kernel) -> ir.Kernel:
    """A function that allocates, with the register in which it notes what its caller had."""
    if not allocates(function):
        return function
    return msgspec.structs.replace(function, registers=function.registers | {_NOTED: "b64"})


def note(code: Code, prefix: str, at: ir.Loc) -> None:
    """At the beginning of a function that allocates."""
    code.put("mov.b64", ir.Reg(prefix + _NOTED, "b64"), top(code), at=at, why=_WHY)


def give_back(code: Code, prefix: str, at: ir.Loc) -> None:
    """At its end."""
    code.put("mov.b64", top(code), ir.Reg(prefix + _NOTED, "b64"), at=at, why=_WHY)


def rewrite(code: Code, inst: ir.Inst, operands: tuple[ir.Operand, ...]) -> None:
    """One of the three, without a guard and with the names that its operands have in the kernel."""
    at, free = inst.loc, top(code)
    narrow = width(inst.mods[-1]) == 32
    if inst.op == "stackrestore":
        code.put("cvt.u64.u32" if narrow else "mov.b64", free, operands[0], at=at, why=_WHY)
        code.copy(ir.Inst("stackrestore", (".done",), (), at))
        return
    start = free
    if inst.op == "alloca":
        align = operands[2].value if len(operands) > 2 and isinstance(operands[2], ir.Imm) else _LEAST
        align = max(align, _LEAST)
        start, size, base, used, full = (code.fresh(t) for t in ("b64", "b64", "b64", "b64", "pred"))
        code.put("cvt.u64.u32" if narrow else "mov.b64", size, operands[1], at=at, why=_WHY)
        code.put("add.u64", start, free, ir.Imm(align - 1), at=at, why=_WHY)
        code.put("and.b64", start, start, ir.Imm(-align), at=at, why=_WHY)
        code.put("mov.u64", base, ir.Sym(DYNAMIC), at=at, why=_WHY)
        code.put("sub.u64", used, start, base, at=at, why=_WHY)
        code.put("min.u64", size, size, ir.Imm(DYNAMIC_BYTES + 1), at=at, why=_WHY)  # so that the sum does not wrap
        code.put("add.u64", used, used, size, at=at, why=_WHY)
        code.put("setp.gt.u64", full, used, ir.Imm(DYNAMIC_BYTES), at=at, why=_WHY)
        code.put("trap", at=at, why=FULL, guard=ir.Guard(full))
        code.put("add.u64", free, start, size, at=at, why=_WHY)
    if narrow:
        low = code.fresh("b32")
        code.put("cvt.u32.u64", low, start, at=at, why=_WHY)
        start = low
    code.copy(ir.Inst(inst.op, (".done", *inst.mods), (operands[0], start), at))
