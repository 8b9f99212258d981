"""Checks a module against an instruction table before anything is executed. Nothing here runs or changes code.

`verify(module, isa)` returns every problem as a `Diagnostic`; `require` raises them together. What is checked:

module      target name is `sm_NN`, address size is 64; variables and functions have different names; initialisers refer
            to names that exist
kernel      labels are unique and every branch target exists, those of `.branchtargets` and `.calltargets` lists too;
            registers are declared, with the type that operands give them; an entry has a body
instruction the table has it (unknown: Unsupported, once an opcode); its PTX version and sm are met; number of operands
operand     kind (register, address, vector, pair, integer) and vector length fit the form; width and class of a
            register fit the operand's type, wider ones only where PTX allows it (ld, st, cvt but of bf16); predicates
            where predicates belong and nowhere else; literals: integers for integer types (64 bits at most), decimal
            and 0f/0d for floats, for untyped bits of their own width too; special registers in mov and cvt only, with
            their width; names only in mov and cvta, declared; address bases: an integer register of 64 bits, or 32 in
            shared, local, const, param and where the instruction leaves the space open; the variable's state space

The rules on operands were tried on ptxas 12.9 one by one: it refuses what is refused here. It takes integer literals
that are too wide for their type (they are cut), and a body whose end is reached without `ret`; so does this.

Not checked: alignment and range of addresses (the memory model does), reads of registers that were never written,
convergence requirements of `.aligned` instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ptx import ir, types
from ptx.analysis.cfg import branch_labels
from ptx.errors import Diagnostic, GpuemuError, InvalidInput, Unsupported, Where
from ptx.isa import Isa
from ptx.record import Form, place, registers
from ptx.signatures import directive_problems, parameter_problems
from ptx.syntax_line import OperandSpec
from ptx.targets import TARGET_OPTIONS, name_problem
from ptx.types import Kind

_WIDER_ALLOWED = frozenset({"ld", "ldu", "st", "cvt"})
_NAMES_ALLOWED = frozenset({"mov", "cvta"})
_SPECIAL_ALLOWED = frozenset({"mov", "cvt"})
_MEMORY = frozenset({"ld", "ldu", "st", "atom", "red"})
_SPACES = re.compile(r"\.(global|shared|local|const|param)(::\w+)?\Z")
_INTEGER = (Kind.UINT, Kind.SINT)


def verify(module: ir.Module, isa: Isa, *, only: str | None = None) -> list[Diagnostic]:
    """Every problem of the module, or of its module level and the function called `only`. Empty when all is well."""
    found = list(_module_problems(module))
    for kernel in module.kernels:
        if only is None or kernel.name == only:
            found += _KernelCheck(module, kernel, isa).run()
    return found


def require(module: ir.Module, isa: Isa, *, only: str | None = None) -> None:
    """Raises what `verify` finds: InvalidInput if anything is wrong, else Unsupported if anything is not modelled."""
    found = verify(module, isa, only=only)
    if found:
        wrong = tuple(d for d in found if d.kind == InvalidInput.kind)
        raise InvalidInput(wrong) if wrong else Unsupported(tuple(found))


# ------------------------------------------------------------------------------------------------ module
def _module_problems(module: ir.Module) -> Iterator[Diagnostic]:
    if (problem := name_problem(module.version, module.target)) is not None:
        yield problem
    for option in module.target_options:
        if option not in TARGET_OPTIONS:
            yield Diagnostic(InvalidInput.kind, f"`.target` has no option `{option}`")
    if module.address_size != 64:
        yield Diagnostic(Unsupported.kind, f".address_size {module.address_size}", help="compile for 64-bit addresses")
    names: set[str] = set()
    for name in [*(v.name for v in module.variables), *(k.name for k in module.kernels)]:
        if name in names:
            yield Diagnostic(InvalidInput.kind, f"`{name}` is declared twice at module level")
        names.add(name)
    spaces = {v.name: v.space for v in module.variables}
    earlier = {k.name for k in module.kernels}
    for v in module.variables:
        for _, symbol, _ in v.relocations:
            what = f"the initial value of `{v.name}` names `{symbol}`, which"
            if symbol not in names:
                yield Diagnostic(InvalidInput.kind, f"{what} is unknown")
            elif spaces.get(symbol, ".global") not in (".global", ".const"):
                where = f"{what} is in {spaces[symbol]}; only what is in .global and .const has an address then"
                yield Diagnostic(InvalidInput.kind, where)
            elif symbol not in earlier and symbol != v.name:
                yield Diagnostic(InvalidInput.kind, f"{what} is declared behind it")
        earlier.add(v.name)


# ------------------------------------------------------------------------------------------------ kernel
class _KernelCheck:
    def __init__(self, module: ir.Module, kernel: ir.Kernel, isa: Isa) -> None:
        self._module = module
        self._kernel = kernel
        self._isa = isa
        self._found: list[Diagnostic] = []
        self._unknown: set[str] = set()
        self._labels: set[str] = set()
        # name -> state space; functions have none
        self._spaces: dict[str, str] = {k.name: "" for k in module.kernels}
        self._spaces |= {v.name: v.space[1:] for v in (*module.variables, *kernel.variables)}
        self._spaces |= {p.name: "param" for p in (*kernel.params, *kernel.results)}

    def run(self) -> list[Diagnostic]:
        kernel = self._kernel
        if kernel.is_entry and not kernel.blocks:
            self._invalid(
                f"entry `{kernel.name}` has no body", Where(ptx_line=kernel.loc.ptx_line) if kernel.loc else None
            )
        start = Where(ptx_line=kernel.loc.ptx_line) if kernel.loc else None
        for problem in directive_problems(kernel, self._module.version, self._module.target):
            self._invalid(f"`{kernel.name}`: {problem}", start)
        for problem in parameter_problems(kernel):
            self._invalid(f"`{kernel.name}`: {problem}", start)
        for block in kernel.blocks:
            for label in block.labels:
                if label in self._labels:
                    where = place(block.insts[0]) if block.insts else None
                    self._invalid(f"label `{label}` stands at two places in `{kernel.name}`", where)
                self._labels.add(label)
        for name, targets in kernel.branch_targets.items():
            functions = all(self._spaces.get(target) == "" for target in targets)  # `.calltargets`
            for target in targets:
                if not functions and target not in self._labels:
                    self._invalid(f"`{name}: .branchtargets` names label `{target}`, which is unknown", None)
        for block in kernel.blocks:
            for inst in block.insts:
                self._instruction(inst)
        return self._found

    def _invalid(self, what: str, where: Where | None, help: str | None = None) -> None:
        self._found.append(Diagnostic(InvalidInput.kind, what, where, help=help))

    # -------------------------------------------------------------------------------------------- instruction
    def _instruction(self, inst: ir.Inst) -> None:
        try:
            form = self._isa.match(inst)
            bound = form.bind(inst)
            labels = branch_labels(self._kernel, inst)
        except Unsupported as error:
            if inst.opcode not in self._unknown:
                self._unknown.add(inst.opcode)
                self._found += error.diagnostics
            return
        except GpuemuError as error:
            self._found += error.diagnostics
            return
        if (form.op.internal or (inst.op == "brx" and len(inst.operands) == 1)) and not inst.made:
            self._invalid(f"`{inst.opcode}` with these operands is no PTX", place(inst))
        if form.op.rule and (problem := form.op.rule(form.mods, {spec.name: operand for spec, operand in bound})):
            self._invalid(f"`{inst.opcode}`: {problem}", place(inst), f"the form is: {form.op.syntax}")
        if problem := _barrier_problem(inst):
            self._invalid(f"`{inst.opcode}`: {problem}", place(inst))
        if inst.op in ("ld", "st") and not self._kernel.is_entry:
            kept = self._kernel.params if inst.op == "st" else self._kernel.results
            if any(".param" in m for m in inst.mods) and _names_one(inst, kept):
                wrong = "parameters are read only" if inst.op == "st" else "results are written only"
                self._invalid(f"`{inst.opcode}`: {wrong}", place(inst))
        stores = inst.op == "st" and ".param" in inst.mods and self._kernel.is_entry
        if stores and _names_one(inst, self._kernel.params):
            self._invalid(f"`{inst.opcode}`: the parameters of an entry are read only", place(inst))
        for need in form.needs:
            if lacks := need.problem(self._module.version, self._module.target):
                self._invalid(f"`{inst.opcode}` needs {lacks}", place(inst))
        if inst.guard is not None and inst.guard.reg.type != "pred":
            self._invalid(f"guard `{inst.guard.reg.name}` is .{inst.guard.reg.type}, not .pred", place(inst))
        for label in labels:
            if label not in self._labels:
                self._invalid(f"branch to label `{label}`, which `{self._kernel.name}` does not have", place(inst))
        declared = self._kernel.registers
        if inst.guard is not None and declared.get(inst.guard.reg.name) != inst.guard.reg.type:
            self._undeclared(inst.guard.reg, inst)
        wider = _takes_wider(inst)
        for spec, operand in bound:
            if type(operand) is ir.Reg:  # most operands are plain registers that fit: look no further
                if declared.get(operand.name) != operand.type:
                    self._undeclared(operand, inst)
                if spec.form == "reg" and _accepts(operand.type, *form.types[spec.name], wider):
                    continue
            else:
                for r in registers(operand):
                    if declared.get(r.name) != r.type:
                        self._undeclared(r, inst)
            for problem in self._operand(inst, form, spec, operand):
                self._invalid(f"`{inst.opcode}`: {problem}", place(inst), f"the form is: {form.op.syntax}")

    def _undeclared(self, register: ir.Reg, inst: ir.Inst) -> None:
        self._invalid(f"register `{register.name}` of type .{register.type} is not declared", place(inst))

    # -------------------------------------------------------------------------------------------- operand
    def _operand(self, inst: ir.Inst, form: Form, spec: OperandSpec, operand: ir.Operand) -> Iterator[str]:
        type, count = form.types[spec.name]
        written = spec.name in form.op.writes
        if type == "label":
            if inst.op == "bra" and not isinstance(operand, ir.Sym):
                yield f"operand {spec.name} is a label"
            return  # branch targets are checked with the instruction
        match operand:
            case ir.Mem() | ir.TensorMem():
                if spec.form != "mem":
                    yield f"operand {spec.name} is not an address"
                else:
                    yield from self._address(inst, operand)
            case _ if spec.form == "mem":
                yield f"operand {spec.name} is an address in [ ]"
            case ir.Vec(items):
                wanted = count or 1
                if spec.form != "vec" and len(items) != 1:
                    yield f"operand {spec.name} is not a vector"
                elif len(items) != wanted:
                    yield f"operand {spec.name} has {len(items)} elements where {wanted} belong"
                if items and all(isinstance(item, ir.Sink) for item in items):
                    yield f"operand {spec.name} discards all of its elements"
                for item in items:
                    if not (written and isinstance(item, ir.Sink)):
                        yield from self._value(inst, item, form, type, written, spec.name)
            case _ if count > 1:
                yield f"operand {spec.name} is a vector of {count} in {{ }}"
            case ir.Pair(first, second):
                if spec.form != "pair":
                    yield f"operand {spec.name} is one register, not a pair"
                    return
                for name, item in zip(spec.names, (first, second), strict=True):
                    yield from self._value(inst, item, form, form.type_of(name), written, name)
            case ir.Imm(_, kind) if spec.form == "imm":
                if kind != "int":
                    yield f"operand {spec.name} is an integer literal"
            case _ if spec.form == "imm":
                yield f"operand {spec.name} is an integer literal"
            case _:
                yield from self._value(inst, operand, form, type, written, spec.name)

    def _value(
        self, inst: ir.Inst, operand: ir.Operand, form: Form, type: str, written: bool, name: str
    ) -> Iterator[str]:
        """One register-like operand against its type."""
        if not types.is_type(type):
            return
        match operand:
            case ir.Reg():
                if problem := _register_problem(_takes_wider(inst), operand, type):
                    yield problem
            case ir.Sink():
                if not written:
                    yield f"operand {name} is read, so it cannot be `_`"
                elif name not in form.op.discards:
                    yield f"the result {name} cannot be discarded with `_`"
            case _ if written:
                yield f"operand {name} is written, so it must be a register"
            case ir.Imm():
                if problem := _literal_problem(operand, type):
                    yield problem
            case ir.Not(register):
                if type != "pred" or register.type != "pred":
                    yield f"`!{register.name}` where a .{type} belongs: only predicates are negated"
            case ir.Special(special):
                if inst.op not in _SPECIAL_ALLOWED:
                    yield f"special register {special} may be read by mov only"
                elif types.width(type) not in special_widths(special) or types.is_float(type):
                    yield f"special register {special} does not fit in .{type}"
            case ir.Sym(symbol):
                yield from self._name(inst, symbol, type)
                if operand.offset and self._spaces.get(symbol) == "":
                    yield f"`{symbol}` is a function: its address takes no offset"

    def _name(self, inst: ir.Inst, symbol: str, type: str) -> Iterator[str]:
        space = self._spaces.get(symbol)
        if space is None:
            yield f"`{symbol}` is not declared"
        elif inst.op not in _NAMES_ALLOWED:
            yield f"`{symbol}` is a name: take its address with mov first"
        elif types.width(type) != 64 and (types.width(type) != 32 or space in ("", "global", "const")):
            yield f"the address of `{symbol}` does not fit in .{type}"

    def _address(self, inst: ir.Inst, operand: ir.Mem | ir.TensorMem) -> Iterator[str]:
        space = next((m[1] for mod in inst.mods if (m := _SPACES.match(mod))), None)
        match operand.base:
            case ir.Imm() if space != "local":
                yield "an address that is a number is for .local memory"
            case ir.Reg(name, type):
                kind, bits = types.kind(type), types.width(type)
                narrow = inst.op in _MEMORY and space in (None, "global")
                if kind not in (Kind.BITS, *_INTEGER) or bits not in (32, 64):
                    yield f"address register {name} is .{type}; it takes an integer of 64 or 32 bits"
                elif bits == 32 and narrow:
                    yield f"address register {name} has 32 bits, and {space or 'generic'} addresses have 64"
            case ir.Sym(symbol):
                declared = self._spaces.get(symbol)
                if declared is None:
                    yield f"`{symbol}` is not declared"
                elif inst.op in _MEMORY and space is not None and declared != space:
                    yield f"`{symbol}` is in .{declared or 'text'}, the instruction says .{space}"
        if isinstance(operand, ir.TensorMem):
            for item in (*operand.coords.items, *(operand.offsets.items if operand.offsets else ())):
                if isinstance(item, ir.Reg) and types.kind(item.type) not in (Kind.BITS, *_INTEGER):
                    yield f"tensor coordinate {item.name} is .{item.type}"


# ------------------------------------------------------------------------------------------------ rules
def _barrier_problem(inst: ir.Inst) -> str | None:
    """A barrier's number is 0 to 15, its threads whole warps."""
    if inst.op not in ("bar", "barrier") or ".warp" in inst.mods or ".cluster" in inst.mods:
        return None
    places = inst.operands[1:] if ".red" in inst.mods else inst.operands
    numbers = [o.value if isinstance(o, ir.Imm) else None for o in places]
    if numbers and numbers[0] is not None and not 0 <= numbers[0] <= 15:
        return f"there is no barrier {numbers[0]}, only 0 to 15"
    if len(numbers) > 1 and numbers[1] is not None and numbers[1] % 32:
        return f"{numbers[1]} threads are not whole warps"
    return None


def _names_one(inst: ir.Inst, params: tuple[ir.Param, ...]) -> bool:
    names = {p.name for p in params}
    return any(isinstance(o, ir.Mem) and isinstance(o.base, ir.Sym) and o.base.name in names for o in inst.operands)


def _takes_wider(inst: ir.Inst) -> bool:
    """Whether registers may be wider than the type; those of conversions from and to bf16 may not."""
    return inst.op in _WIDER_ALLOWED and not (inst.op == "cvt" and ".bf16" in inst.mods)


def _register_problem(wider: bool, register: ir.Reg, type: str) -> str | None:
    if _accepts(register.type, type, 0, wider):
        return None
    return f"register {register.name} is .{register.type}, a .{type} belongs here"


@cache
def _accepts(register: str, type: str, count: int, wider: bool) -> bool:
    """Whether a register of one type may stand alone where another type belongs (PTX ISA, 'Type checking' and 'Operand
    size exceeding instruction-type size'). `count`: vector length of the operand, 0 for a scalar."""
    if count > 1 or not types.is_type(type):
        return False
    have, want = types.kind(register), types.kind(type)
    if Kind.PRED in (have, want):
        return have is want
    bits, needed = types.width(register), types.width(type)
    if bits != needed and not (64 >= bits > needed and wider and have in (Kind.BITS, *_INTEGER)):
        return False
    if Kind.BITS in (have, want) or (have in _INTEGER and want in _INTEGER):
        return True
    return have not in _INTEGER and want not in _INTEGER and bits == needed


def _literal_problem(literal: ir.Imm, type: str) -> str | None:
    kind, bits = types.kind(type), types.width(type)
    if kind is Kind.PACKED or (kind is Kind.FLOAT and bits == 16):
        return f"a literal where a .{type} belongs: move its bits to a register first"
    if literal.kind == "int":
        if not -(1 << 63) <= literal.value < 1 << 64:
            return f"{literal.value} does not fit in 64 bits"
        if type in ("f32", "f64"):
            return f"{literal.value} is an integer, a .{type} belongs here: write {literal.value}.0 or its 0f… bits"
        return None
    if kind is Kind.FLOAT or (kind is Kind.BITS and bits == (32 if literal.kind == "f32" else 64)):
        return None
    return f"a floating-point literal where a .{type} belongs"


_WIDE_SPECIALS = frozenset({"%clock64", "%globaltimer", "%current_graph_exec"})
_OLD_SPECIALS = re.compile(r"%n?(tid|ctaid)\b")


def special_widths(name: str) -> tuple[int, ...]:
    """Bits that a special register may be read as. %tid and its kin were 16 bits before PTX 2.0 and still may be."""
    if name == "%is_explicit_cluster":
        return (1,)
    if name in _WIDE_SPECIALS or name.endswith("_64"):
        return (64,)
    if name == "%gridid":
        return (32, 64)
    return (32, 16) if _OLD_SPECIALS.match(name) else (32,)
