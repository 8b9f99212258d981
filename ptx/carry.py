"""The carry flag made an operand, so that nothing behind the parser has to know about hidden state.

PTX ISA, 'Extended-Precision Integer Arithmetic Instructions': `add.cc`, `sub.cc`, `mad.cc` write the condition code
register's carry flag CC.CF, `addc`, `subc`, `madc` read it. Here the flag is a predicate register of the kernel:

    add.cc.u32 d, a, b;     becomes    add.cc.u32 d|%CC.CF, a, b;
    addc.u32   d, a, b;     becomes    addc.u32 d, a, b, %CC.CF;

so liveness, uniformity, divergence and guards treat it as any other register. The instruction records
(interp/ops/carry.py) are written for this form. Text that has it already is left as it is.
"""

from __future__ import annotations

import msgspec

from ptx import ir

FLAG = ir.Reg("%CC.CF", "pred")
_SOURCES = {"add": 2, "sub": 2, "mad": 3, "addc": 2, "subc": 2, "madc": 3}


def with_carry_flag(module: ir.Module) -> ir.Module:
    """The same module, with the carry flag among the operands of the instructions that use it."""
    kernels = tuple(_kernel(k) for k in module.kernels)
    return module if kernels == module.kernels else msgspec.structs.replace(module, kernels=kernels)


def _kernel(kernel: ir.Kernel) -> ir.Kernel:
    if not any(_uses(inst) for block in kernel.blocks for inst in block.insts):
        return kernel
    blocks = tuple(ir.Block(b.labels, tuple(_inst(i) if _uses(i) else i for i in b.insts)) for b in kernel.blocks)
    return msgspec.structs.replace(kernel, blocks=blocks, registers={**kernel.registers, FLAG.name: FLAG.type})


def _uses(inst: ir.Inst) -> bool:
    return inst.op in ("addc", "subc", "madc") or (inst.op in _SOURCES and ".cc" in inst.mods)


def _inst(inst: ir.Inst) -> ir.Inst:
    target, *sources = inst.operands
    if isinstance(target, ir.Pair) or len(sources) != _SOURCES[inst.op]:
        return inst
    if ".cc" in inst.mods and isinstance(target, ir.Reg | ir.Sink):
        target = ir.Pair(target, FLAG)
    if inst.op.endswith("c"):
        sources.append(FLAG)
    return msgspec.structs.replace(inst, operands=(target, *sources))
