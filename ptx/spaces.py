"""State spaces that a text leaves out: a memory access that names a variable is in the variable's space.

PTX ISA 'Using Addresses, Arrays, and Vectors': without a space, the address is generic; the assembler takes the space
of a variable that the address names (`ld.u32 %r1, [table+4]` with `table` in shared memory loads from shared memory),
and so does this. Addresses in registers stay generic, and `.const` and `.param` have to be said.
"""

from __future__ import annotations

import re

import msgspec

from ptx import ir

_ACCESSES = frozenset({"ld", "ldu", "st", "atom", "red"})
_SPACE = re.compile(r"\.(global|shared|local|const|param)(::\w+)?\Z")
_BEFORE = re.compile(r"\.(weak|volatile|relaxed|acquire|release|acq_rel|cta|cluster|gpu|sys)\Z")


def with_spaces(module: ir.Module) -> ir.Module:
    """The same module, with the space in every access that names a variable."""
    outer = {v.name: v.space for v in module.variables}
    kernels = tuple(_kernel(k, outer) for k in module.kernels)
    return module if kernels == module.kernels else msgspec.structs.replace(module, kernels=kernels)


def _kernel(kernel: ir.Kernel, outer: dict[str, str]) -> ir.Kernel:
    spaces: dict[str, str] | None = None
    blocks, changed = [], False
    for block in kernel.blocks:
        insts = list(block.insts)
        for i, inst in enumerate(insts):
            name = _named(inst)
            if name is None:
                continue
            if spaces is None:
                spaces = outer | {v.name: v.space for v in kernel.variables}
            if (space := spaces.get(name)) in (".global", ".shared", ".local"):
                at = next((n for n, m in enumerate(inst.mods) if not _BEFORE.match(m)), len(inst.mods))
                insts[i] = msgspec.structs.replace(inst, mods=(*inst.mods[:at], space, *inst.mods[at:]))
                changed = True
        blocks.append(ir.Block(block.labels, tuple(insts)) if changed else block)
    return msgspec.structs.replace(kernel, blocks=tuple(blocks)) if changed else kernel


def _named(inst: ir.Inst) -> str | None:
    """The variable that an access without a space names."""
    if inst.op not in _ACCESSES or any(_SPACE.match(m) for m in inst.mods):
        return None
    return next((o.base.name for o in inst.operands if isinstance(o, ir.Mem) and isinstance(o.base, ir.Sym)), None)
