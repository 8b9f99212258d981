"""IR → PTX text. `parse(print_module(m))` gives `m` again, but for source positions (`loc`, and with it `files`).

One statement a line, no `.loc`: text for people, golden files and tools. Braces that the parser dissolved stay
dissolved, with the unique names it gave. `.func`s are declared before anything uses them, and kernels come out
`.visible`. Decimal literals come out as the bits they stand for.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptx import ir, types


def print_module(module: ir.Module) -> str:
    """The module as PTX text that ends with a newline."""
    lines = [
        f".version {module.version[0]}.{module.version[1]}",
        f".target {', '.join((module.target, *module.target_options))}",
        f".address_size {module.address_size}",
        "",
    ]
    functions = [k for k in module.kernels if not k.is_entry]
    lines += [_head(k) + ";" for k in functions]
    lines += [print_variable(v) for v in module.variables]
    for kernel in module.kernels:
        if kernel.blocks:
            lines += ["", *print_kernel(kernel)]
    return "\n".join(lines) + "\n"


def print_kernel(kernel: ir.Kernel) -> list[str]:
    """The lines of one `.entry` or `.func` with its body."""
    lines = [_head(kernel), "{"]
    named = {p.name for p in (*kernel.params, *kernel.results) if p.register}
    lines += [f"\t.reg .{type} {name};" for name, type in kernel.registers.items() if name not in named]
    lines += [f"\t{print_variable(v)}" for v in kernel.variables]
    for name, labels in kernel.branch_targets.items():
        lines.append(f"{name}: .branchtargets {', '.join(labels)};")
    for name, p in kernel.prototypes.items():
        lines.append(f"{name}: .callprototype {_list(p.results)} _ {_list(p.params)};")
    for block in kernel.blocks:
        lines += [f"{label}:" for label in block.labels]
        lines += [f"\t{print_instruction(inst)}" for inst in block.insts]
    return [*lines, "}"]


def print_instruction(inst: ir.Inst) -> str:
    """One instruction with its guard and semicolon: `@!%p1 add.s32 %r1, %r2, 3;`."""
    guard = f"@{'!' if inst.guard.negated else ''}{inst.guard.reg.name} " if inst.guard else ""
    if inst.op == "call":
        shown = [o for o in inst.operands if o != ir.Vec(())]
        texts = [f"({print_operand(o)[1:-1]})" if isinstance(o, ir.Vec) else print_operand(o) for o in shown]
    else:
        texts = [print_operand(o) for o in inst.operands]
    return f"{guard}{inst.opcode}{' ' if texts else ''}{', '.join(texts)};"


def print_operand(operand: ir.Operand) -> str:
    """An operand as PTX writes it."""
    match operand:
        case ir.Reg(name, _) | ir.Special(name):
            return name
        case ir.Imm(value, kind):
            return str(value) if kind == "int" else f"0f{value:08X}" if kind == "f32" else f"0d{value:016X}"
        case ir.Sym(name, offset):
            return f"{name}+{offset}" if offset else name
        case ir.Not(register):
            return f"!{register.name}"
        case ir.Part(register, selector, negated):
            return f"{'-' * negated}{register.name}{'.' * bool(selector)}{selector}"
        case ir.Sink():
            return "_"
        case ir.Mem(base, offset):
            return f"[{print_operand(base)}{f'+{offset}' if offset else ''}]"
        case ir.Vec(items):
            return "{" + ", ".join(print_operand(i) for i in items) + "}"
        case ir.Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case ir.TensorMem(base, coords, offsets):
            parts = [print_operand(p) for p in (base, coords, offsets) if p is not None]
            return f"[{', '.join(parts)}]"
    raise TypeError(f"not an operand: {operand!r}")


def print_variable(variable: ir.Variable) -> str:
    """A variable's declaration, with its initial bytes as a flat list."""
    unit = max(types.width(variable.type) // 8, 1)
    words = [".extern"] if variable.extern else []
    words += [variable.space, f".align {variable.align}"]
    init, bound, kind = "", "", variable.type
    if variable.init is not None and (
        variable.relocations or kind in ("f16", "bf16", "b128") or len(variable.init) != unit
    ):
        init = " = {" + ", ".join(_initial_values(variable, unit)) + "}"
        bound = f"[{variable.size // unit}]"
    elif variable.init is not None:
        init = f" = {_initial_values(variable, unit)[0]}"
    elif variable.size == 0:
        bound = "[]"
    elif variable.size != unit:
        bound = f"[{variable.size // unit}]"
    return f"{' '.join(words)} .{kind} {variable.name}{bound}{init};"


def _initial_values(variable: ir.Variable, unit: int) -> list[str]:
    assert variable.init is not None
    at = {offset: (symbol, addend) for offset, symbol, addend in variable.relocations}
    texts = []
    for offset in range(0, variable.size, unit):
        here = next((o for o in at if o <= offset < o + 8), None)
        word = int.from_bytes(variable.init[offset : offset + unit], "little")
        if here is not None and unit < 4:
            symbol, addend = at[here]
            texts.append(f"{0xFF << 8 * (offset - here):#x}({symbol})")
        elif here == offset:
            symbol, addend = at[offset]
            texts.append(f"generic({symbol}){f'+{addend}' if addend else ''}")
        elif variable.type == "f32":
            texts.append(f"0f{word:08X}")
        elif variable.type == "f64":
            texts.append(f"0d{word:016X}")
        else:
            texts.append(str(word))
    return texts


def _head(kernel: ir.Kernel) -> str:
    visible = ".visible " if kernel.is_entry else ".extern " if not kernel.blocks else ""
    head = f"{visible}{'.entry' if kernel.is_entry else '.func'} "
    head += f"{_list(kernel.results)} " if kernel.results else ""
    head += f"{kernel.name}{_list(kernel.params)}"
    for word, values in kernel.directives.items():
        head += f" {word} {', '.join(map(str, values))}".rstrip()
    return head


def _list(params: Iterable[ir.Param]) -> str:
    return "(" + ", ".join(_param(p) for p in params) + ")"


def _param(p: ir.Param) -> str:
    if p.register:
        return f".reg .{p.type} {p.name}"
    unit = max(types.width(p.type) // 8, 1)
    text = f".param .{p.type}" if p.pointer_space else f".param .align {p.align} .{p.type}"
    if p.pointer_space:
        space = "" if p.pointer_space == ".generic" else f" {p.pointer_space}"
        text += f" .ptr{space}{f' .align {p.pointer_align}' if p.pointer_align else ''}"
    bound = f"[{p.size // unit}]" if p.is_array else ""
    return f"{text} {p.name}{bound}"
