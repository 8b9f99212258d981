"""One function inside the kernel that it is linked into: its names there, where its variables are, its stack frame.

Registers, labels and variables get the function's prefix. Parameters and results in `.param` space, `.param` variables
and local variables of a function that cannot call itself are local variables with fixed addresses; of one that can,
they lie in the frame, at fixed offsets from the frame register. A frame also has room for all registers of the
function: a call saves them there and moves the frame register past the frame, so a callee's frame begins where its
caller's ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from ptx import ir
from ptx.errors import InvalidInput, Unsupported
from ptx.flatten.code import Code
from ptx.record import place
from ptx.types import width

STACK = "stack::"
STACK_BYTES = 16384
"""Bytes of stack a thread has for recursive calls (a driver's default is 1,024, and hosts raise it)."""
FRAME = ir.Reg("%frame::", "b64")
_ALIGN = 16
_WHY = "a recursive call's stack frame"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a parameter's bytes are: a register, or memory."""

    register: ir.Operand | None
    memory: ir.Mem | None

    def at(self, offset: int) -> ir.Mem:
        """The address so many bytes on."""
        assert self.memory is not None
        return msgspec.structs.replace(self.memory, offset=self.memory.offset + offset)


class Function:
    """Names and places of one function. `prefix` is empty for the kernel itself."""

    def __init__(self, kernel: ir.Kernel, prefix: str, recursive: bool) -> None:
        self.kernel, self.prefix, self.recursive = kernel, prefix, recursive
        self.entry, self.leave = f"{prefix}entry::", f"{prefix}leave::"
        passed = (*kernel.params, *kernel.results) if prefix else ()
        self._sizes = {p.name: (p.size, p.align) for p in passed if not p.register}
        self._sizes |= {v.name: (v.size, v.align) for v in kernel.variables if v.space == ".param"}
        if prefix:
            self._sizes |= {v.name: (v.size, v.align) for v in kernel.variables if v.space == ".local"}
        self._shared = {v.name for v in kernel.variables if v.name not in self._sizes} if prefix else set()
        self._offsets: dict[str, int] = {}
        self.frame_bytes = self._lay_out() if recursive else 0

    def _lay_out(self) -> int:
        at = 0
        for name, (size, align) in self._sizes.items():
            at = -(-at // align) * align
            self._offsets[name] = at
            at += size
        self._saved: dict[ir.Reg, int] = {}
        registers = [ir.Reg(self.prefix + n, t) for n, t in self.kernel.registers.items()]
        for reg in (*registers, ir.Reg(f"%{self.prefix}caller", "b32")):
            size = max(width(reg.type) // 8, 4)
            if size > 8:
                raise Unsupported(f"`{self.kernel.name}` is recursive and has 128-bit registers")
            at = -(-at // size) * size
            self._saved[reg] = at
            at += size
        return -(-at // _ALIGN) * _ALIGN

    # ---------------------------------------------------------------- names
    def variables(self) -> Iterator[ir.Variable]:
        """Its variables in the kernel; those of a recursive function are in frames, but for shared ones."""
        if not self.recursive:
            for name, (size, align) in self._sizes.items():
                yield ir.Variable(self.prefix + name, ".local", "b8", align, size)
        for v in self.kernel.variables:
            if v.name in self._shared:
                yield msgspec.structs.replace(v, name=self.prefix + v.name)

    def caller(self, code: Code) -> ir.Reg:
        """The register that says which call to go back to."""
        return code.register(f"%{self.prefix}caller", "b32")

    def guard(self, guard: ir.Guard | None) -> ir.Guard | None:
        """A guard with the register's name here."""
        return None if guard is None else ir.Guard(self._register(guard.reg), guard.negated)

    def _register(self, reg: ir.Reg) -> ir.Reg:
        return ir.Reg(self.prefix + reg.name, reg.type) if self.prefix else reg

    def memory(self, name: str, offset: int = 0) -> ir.Mem:
        """The address of one of the function's own variables or parameters."""
        if self.recursive:
            return ir.Mem(FRAME, self._offsets[name] + offset)
        return ir.Mem(ir.Sym(self.prefix + name), offset)

    def parameter(self, param: ir.Param, frame: int = 0) -> Place:
        """Where a parameter or result is; `frame`: how far the frame register stands below this function's frame."""
        if param.register:
            return Place(ir.Reg(self.prefix + param.name, param.type), None)
        return Place(None, self.memory(param.name, frame if self.recursive else 0))

    def size(self, item: ir.Operand) -> int | None:
        """Bytes of a `.param` variable in a call; None for a register."""
        return self._sizes[item.name][0] if isinstance(item, ir.Sym) and item.name in self._sizes else None

    def place(self, item: ir.Operand, inst: ir.Inst, frame: int = 0) -> Place:
        """Where an argument or result of a call is; `frame` as above."""
        if isinstance(item, ir.Sym):
            if item.name not in self._sizes:
                raise InvalidInput(f"`{item.name}` is not a .param variable", where=place(inst))
            return Place(None, self.memory(item.name, item.offset + (frame if self.recursive else 0)))
        return Place(self.operand(item), None)

    # ---------------------------------------------------------------- instructions
    def instruction(self, inst: ir.Inst, code: Code) -> Iterator[ir.Inst]:
        """An instruction of the body with the names that it has here."""
        mods, operands, guard = inst.mods, inst.operands, self.guard(inst.guard)
        if inst.op == "ret" and self.prefix:
            yield ir.Inst("bra", mods, (ir.Sym(self.leave),), inst.loc, guard, inst.made)
            return
        if inst.op == "bra":
            targets = tuple(ir.Sym(self.prefix + o.name) if isinstance(o, ir.Sym) else o for o in operands)
            yield ir.Inst("bra", mods, targets, inst.loc, guard, inst.made)
            return
        if ".param" in mods and any(self._is_of_call(o) for o in operands):
            mods = tuple(".param::func" if m == ".param" else m for m in mods)
        named = tuple(self._address_taken(o, inst, code) or self.operand(o) for o in operands)
        yield ir.Inst(inst.op, mods, named, inst.loc, guard, inst.made)

    def _is_of_call(self, operand: ir.Operand) -> bool:
        """Whether a `.param` address is one of calls: a kernel's own parameters are the other kind."""
        if not isinstance(operand, ir.Mem):
            return False
        return operand.base.name in self._sizes if isinstance(operand.base, ir.Sym) else bool(self.prefix)

    def _address_taken(self, operand: ir.Operand, inst: ir.Inst, code: Code) -> ir.Reg | None:
        """The address of a variable in the frame, as a register; None for any other operand."""
        if not self.recursive or not isinstance(operand, ir.Sym) or operand.name not in self._sizes:
            return None
        address = code.fresh("b64")
        offset = ir.Imm(self._offsets[operand.name] + operand.offset)
        code.put("add.s64", address, FRAME, offset, at=inst.loc, why=_WHY)
        return address

    def operand(self, o: ir.Operand) -> ir.Operand:
        """An operand with the names that it has here."""
        match o:
            case ir.Reg():
                return self._register(o)
            case ir.Not(reg):
                return ir.Not(self._register(reg))
            case ir.Part(reg, selector, negated):
                return ir.Part(self._register(reg), selector, negated)
            case ir.Sym(name, offset):
                return ir.Sym(self.prefix + name, offset) if name in self._sizes or name in self._shared else o
            case ir.Mem(base, offset):
                if isinstance(base, ir.Sym) and base.name in self._sizes:
                    return self.memory(base.name, base.offset + offset)
                return ir.Mem(self.operand(base), offset)  # type: ignore[arg-type]
            case ir.Vec(items):
                return ir.Vec(tuple(self.operand(i) for i in items))  # type: ignore[misc]
            case ir.Pair(first, second):
                return ir.Pair(self.operand(first), self.operand(second))  # type: ignore[arg-type]
            case ir.TensorMem(base, coords, offsets):
                moved = None if offsets is None else self.operand(offsets)
                return ir.TensorMem(self.operand(base), self.operand(coords), moved)  # type: ignore[arg-type]
        return o

    # ---------------------------------------------------------------- stack frames
    def save(self, code: Code, inst: ir.Inst) -> int:
        """Put all registers into the frame and move on to the next one: the bytes moved."""
        for reg, offset in self._saved.items():
            word, bits = reg, max(width(reg.type), 32)
            if reg.type == "pred":
                word = code.fresh("b32")
                code.put("selp.b32", word, ir.Imm(1), ir.Imm(0), reg, at=inst.loc, why=_WHY)
            elif width(reg.type) < 32:
                bits = 16
            code.put(f"st.local.b{bits}", ir.Mem(FRAME, offset), word, at=inst.loc, why=_WHY)
        code.put("add.s64", FRAME, FRAME, ir.Imm(self.frame_bytes), at=inst.loc, why=_WHY)
        return self.frame_bytes

    def check_stack(self, code: Code, inst: ir.Inst, needed: int, why: str) -> None:
        """Trap when the next frame does not fit."""
        used, full, base = code.fresh("b64"), code.fresh("pred"), code.fresh("b64")
        code.put("mov.u64", base, ir.Sym(STACK), at=inst.loc, why=_WHY)
        code.put("sub.s64", used, FRAME, base, at=inst.loc, why=_WHY)
        code.put("setp.gt.s64", full, used, ir.Imm(STACK_BYTES - needed), at=inst.loc, why=_WHY)
        code.put("trap", at=inst.loc, why=why, guard=ir.Guard(full))

    def restore(self, code: Code, inst: ir.Inst) -> None:
        """Go back to this function's frame and its registers."""
        code.put("sub.s64", FRAME, FRAME, ir.Imm(self.frame_bytes), at=inst.loc, why=_WHY)
        for reg, offset in self._saved.items():
            bits = 16 if reg.type != "pred" and width(reg.type) < 32 else max(width(reg.type), 32)
            word = code.fresh("b32") if reg.type == "pred" else reg
            code.put(f"ld.local.b{bits}", word, ir.Mem(FRAME, offset), at=inst.loc, why=_WHY)
            if reg.type == "pred":
                code.put("setp.ne.u32", reg, word, ir.Imm(0), at=inst.loc, why=_WHY)
