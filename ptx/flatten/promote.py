"""Variables of calls that are only read and written whole become registers.

After linking (`calls.py`) parameters, results and `.param` variables are local memory, whose loads may differ from lane
to lane and cost a gather. Compilers nearly always store and load them field by field: where every access of a variable
is a scalar at a constant offset, of a register just as wide, and two accesses are either the same field or apart, each
field becomes a register and each access a move. An access keeps whether it is counted.
"""

from __future__ import annotations

import msgspec

from ptx import ir
from ptx.errors import InvalidInput
from ptx.record import place
from ptx.types import is_type, width

_FUNCTION_SPACE = ".param::func"


def promote(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with such variables in registers. InvalidInput for an access outside one."""
    insts = [inst for block in kernel.blocks for inst in block.insts]
    sizes = {v.name: v.size for v in kernel.variables if v.space == ".local"}
    local = set(sizes)
    fields: dict[str, set[tuple[int, int]]] = {}
    for inst in insts:
        for name in _names(inst):
            if name in local:
                field = _field(inst)
                if field is not None and not 0 <= field[0] <= sizes[name] - field[1]:
                    raise InvalidInput(
                        f"bytes {field[0]} to {sum(field)} of `{name.rpartition('::')[2]}`, which has {sizes[name]}",
                        where=place(inst),
                    )
                if field is None:
                    local.discard(name)
                else:
                    fields.setdefault(name, set()).add(field)
    chosen = {name for name in local if name in fields and _apart(fields[name])}
    registers = dict(kernel.registers)
    for name in sorted(chosen):
        registers |= {_register(name, offset, size).name: f"b{8 * size}" for offset, size in sorted(fields[name])}
    blocks = tuple(
        ir.Block(b.labels, tuple(_moved(i) if chosen.intersection(_names(i)) else i for i in b.insts))
        for b in kernel.blocks
    )
    variables = tuple(v for v in kernel.variables if v.name not in chosen)
    return msgspec.structs.replace(kernel, registers=registers, variables=variables, blocks=blocks)


def _names(inst: ir.Inst) -> list[str]:
    """Variables that an instruction names."""
    found = []
    for o in inst.operands:
        base = o.base if isinstance(o, ir.Mem | ir.TensorMem) else o
        if isinstance(base, ir.Sym):
            found.append(base.name)
    return found


def _field(inst: ir.Inst) -> tuple[int, int] | None:
    """(offset, bytes) of an access that a move can do; None for any other mention."""
    if inst.op not in ("ld", "st") or _FUNCTION_SPACE not in inst.mods or len(inst.operands) != 2:
        return None
    memory, value = inst.operands if inst.op == "st" else inst.operands[::-1]
    kind = inst.mods[-1][1:]
    if not isinstance(memory, ir.Mem) or not isinstance(memory.base, ir.Sym) or not is_type(kind):
        return None
    if isinstance(value, ir.Reg):
        if width(value.type) != width(kind) or value.type == "pred":
            return None
    elif not (isinstance(value, ir.Imm) and inst.op == "st" and width(kind) >= 16):
        return None
    return memory.base.offset + memory.offset, width(kind) // 8


def _apart(fields: set[tuple[int, int]]) -> bool:
    ordered = sorted(fields)
    return all(a + n <= b for (a, n), (b, _) in zip(ordered, ordered[1:], strict=False))


def _register(name: str, offset: int, size: int) -> ir.Reg:
    return ir.Reg(f"%{name}::{offset}", f"b{8 * size}")


def _moved(inst: ir.Inst) -> ir.Inst:
    field = _field(inst)
    assert field is not None
    memory, value = inst.operands if inst.op == "st" else inst.operands[::-1]
    assert isinstance(memory, ir.Mem) and isinstance(memory.base, ir.Sym)
    register = _register(memory.base.name, *field)
    kind = inst.mods[-1][1:]
    pair = (register, value) if inst.op == "st" else (value, register)
    opcode = f".{kind}" if kind[0] in "fus" and width(kind) >= 16 else f".b{width(kind)}"
    return msgspec.structs.replace(inst, op="mov", mods=(opcode,), operands=pair)
