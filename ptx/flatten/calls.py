"""Function calls as branches: every function that a kernel reaches stands once in its body, under names of its own.

    call (r), f, (a);     becomes    copy a to f's parameter; note which call this is; bra f; here: copy f's result to r
    ret;                  in f       branch to the call that was noted (`branches.py`)

PTX ISA 7.1 'Function Declarations and Definitions', 9.7.12 'call', 'ret'. Parameters and results in `.param` space, and
`.param` variables of call sequences, become local variables; those in registers become registers. A call through a
pointer compares it with the functions that it may reach: those of its `.calltargets`, else all whose address the module
takes and whose parameters fit the prototype; a pointer to none of them traps.

Functions that can call themselves keep what a call must not lose (registers, local variables, parameters, the way back)
in frames of a stack of STACK_BYTES a thread; one register holds the frame's address. It traps when it is full.

A function that many places call is one piece of code, so lanes that call it from different places may run it together.
Functions of the device's runtime have no body: `vprintf` and `__assertfail` are instructions of their own here (chapter
`system` of the instruction table), others got one before (`ptx.device_runtime`); the rest is Unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ptx import ir
from ptx.device_runtime import defined_functions
from ptx.errors import InvalidInput, Unsupported
from ptx.flatten import dynamic
from ptx.flatten.barriers import check_number, guarded_barrier, numbered, reduce_at_barrier, reduces
from ptx.flatten.branches import branch_by_index
from ptx.flatten.code import Code
from ptx.flatten.function import STACK, STACK_BYTES, Function, Place
from ptx.record import place
from ptx.types import width

RUNTIME = ("vprintf", "__assertfail")
"""Functions of the device runtime that are instructions here."""
STACK_FULL = "the stack of recursive calls is full"
NO_FUNCTION = "a call through a pointer to none of the functions that it may reach"
NO_LABEL = "the index of brx.idx lies outside its list"
_CALL = "a call's parameters and way back"


def reached(module: ir.Module, kernel: ir.Kernel) -> tuple[ir.Kernel, ...]:
    """The functions with a body that a kernel can reach, in the module's order."""
    return tuple(_Graph(module, kernel).functions.values())


def link(module: ir.Module, kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its functions in it. InvalidInput, Unsupported."""
    return _Linker(module, kernel).run()


class _Graph:
    """Who calls whom: `calls[name]`, `functions` by name, `recursive` names."""

    def __init__(self, module: ir.Module, kernel: ir.Kernel) -> None:
        self.module = module
        self.known = {k.name: k for k in module.kernels}
        self._taken = _addresses_taken(module)
        self.calls: dict[str, set[str]] = {}
        work = [kernel]
        while work:
            k = work.pop()
            if k.name in self.calls:
                continue
            mine = {c.name for inst in _calls(k) for c in self.candidates(k, inst) if c.blocks}
            self.calls[k.name] = mine
            work += [self.known[name] for name in mine]
        if kernel.name in set().union(*self.calls.values()):
            raise InvalidInput(f"entry `{kernel.name}` is called as a function")
        self.functions = {
            k.name: k for k in module.kernels if k.name in self.calls and k.name != kernel.name
        }
        self.recursive = {name for name in self.functions if name in self._from(name)}

    def _from(self, name: str) -> set[str]:
        """Everything that a function can reach by one call or more."""
        found: set[str] = set()
        work = [name]
        while work:
            for callee in self.calls[work.pop()] - found:
                found.add(callee)
                work.append(callee)
        return found

    def candidates(self, kernel: ir.Kernel, inst: ir.Inst) -> list[ir.Kernel]:
        """Functions that a call may reach: the one it names, or those that a pointer may have."""
        results, callee, arguments, *table = inst.operands
        assert isinstance(results, ir.Vec) and isinstance(arguments, ir.Vec)
        if isinstance(callee, ir.Sym):
            found = self.known.get(callee.name)
            if found is None or found.is_entry:
                raise InvalidInput(f"`{callee.name}` is not a function of the module", where=place(inst))
            return [found]
        name = table[0].name if table and isinstance(table[0], ir.Sym) else ""
        if name in kernel.branch_targets:
            listed = [self.known.get(n) for n in kernel.branch_targets[name]]
            if None in listed:
                raise InvalidInput(f"`{name}: .calltargets` names a function that the module does not have")
            return [f for f in listed if f is not None]
        if name not in kernel.prototypes:
            raise InvalidInput(
                "a call through a register ends with the name of a .callprototype or .calltargets", where=place(inst)
            )
        wanted = kernel.prototypes[name]
        fits = [f for n, f in self.known.items() if n in self._taken and not f.is_entry and _fits(f, wanted)]
        return [f for f in fits if f.blocks]


def _calls(kernel: ir.Kernel) -> Iterator[ir.Inst]:
    return (inst for block in kernel.blocks for inst in block.insts if inst.op == "call")


def _addresses_taken(module: ir.Module) -> set[str]:
    """Names that instructions other than calls, or initial values, mention."""
    names = {symbol for v in module.variables for _, symbol, _ in v.relocations}
    for kernel in module.kernels:
        for block in kernel.blocks:
            for inst in block.insts:
                if inst.op in ("mov", "cvta"):
                    names.update(o.name for o in inst.operands if isinstance(o, ir.Sym))
    return names


def _fits(function: ir.Kernel, wanted: ir.Prototype) -> bool:
    return [(p.size, p.register) for p in (*function.results, *function.params)] == [
        (p.size, p.register) for p in (*wanted.results, *wanted.params)
    ] and len(function.results) == len(wanted.results)


class _Linker:
    def __init__(self, module: ir.Module, kernel: ir.Kernel) -> None:
        self.kernel, self.graph, self.code = kernel, _Graph(module, kernel), Code()
        self.main = Function(kernel, "", recursive=False)
        self.functions = {
            name: Function(dynamic.with_note(k), f"{name}::", recursive=name in self.graph.recursive)
            for name, k in self.graph.functions.items()
        }
        self.returns: dict[str, list[str]] = {name: [] for name in self.functions}

    def run(self) -> ir.Kernel:
        code, start = self.code, self.kernel.loc or ir.Loc(0)
        if self.graph.recursive:
            code.variable(STACK, STACK_BYTES, 16)
            code.put("mov.u64", self._frame(), ir.Sym(STACK), at=start, why=_CALL)
        if any(dynamic.allocates(f.kernel) for f in (self.main, *self.functions.values())):
            dynamic.begin(code, start)
        self._body(self.main)
        last = self.kernel.blocks[-1].insts[-1:]
        if not last or last[0].op not in ("ret", "exit", "trap", "bra") or last[0].guard is not None:
            code.put("ret", at=start, why="the end of the kernel")
        for function in self.functions.values():
            code.label(function.entry)
            if dynamic.allocates(function.kernel):
                dynamic.note(code, function.prefix, function.kernel.loc or start)
            self._body(function)
            code.put("bra", ir.Sym(function.leave), at=function.kernel.loc or start, why=_CALL)
        for name, function in self.functions.items():  # behind all bodies: only now are all ways back known
            self._way_back(function, self.returns[name], function.kernel.loc or start)
        main = self.kernel
        kept = tuple(v for v in main.variables if v.space != ".param")
        return msgspec.structs.replace(
            main, registers=self._registers(), variables=(*kept, *self.code.variables), blocks=code.blocks(),
            branch_targets={}, prototypes={},
        )  # fmt: skip

    def _way_back(self, function: Function, sites: list[str], at: ir.Loc) -> None:
        """Where the function's `ret` branches to."""
        self.code.label(function.leave)
        if dynamic.allocates(function.kernel):
            dynamic.give_back(self.code, function.prefix, at)
        if len(sites) == 1:
            self.code.put("bra", ir.Sym(sites[0]), at=at, why=_CALL)
        else:
            branch_by_index(self.code, function.caller(self.code), sites, at, _CALL)
            self.code.put("trap", at=at, why="a function returned to no call")

    def _registers(self) -> dict[str, str]:
        found = dict(self.kernel.registers)
        for function in self.functions.values():
            found |= {function.prefix + name: type for name, type in function.kernel.registers.items()}
        return found | self.code.registers

    def _frame(self) -> ir.Reg:
        return self.code.register("%frame::", "b64")

    # ---------------------------------------------------------------- bodies
    def _body(self, f: Function) -> None:
        for variable in f.variables():
            self.code.variables.append(variable)
        for block in f.kernel.blocks:
            for label in block.labels:
                self.code.label(f.prefix + label)
            for inst in block.insts:
                if inst.op == "call":
                    self._call(f, inst)
                elif inst.op == "brx":
                    self._indexed(f, inst)
                elif dynamic.is_dynamic(inst):
                    self._dynamic(f, inst)
                elif reduces(inst) or guarded_barrier(inst) or numbered(inst):
                    self._barrier(f, inst)
                else:
                    for made in f.instruction(inst, self.code):
                        self.code.copy(made)

    def _dynamic(self, f: Function, inst: ir.Inst) -> None:
        """Memory for `alloca`."""
        past = self._skip(f, inst)
        dynamic.rewrite(self.code, inst, tuple(f.operand(o) for o in inst.operands))
        if past:
            self.code.label(past)

    def _barrier(self, f: Function, inst: ir.Inst) -> None:
        """A barrier that reduces a predicate, has a guard, or its number in a register."""
        past = self._skip(f, inst)
        bare = msgspec.structs.replace(inst, guard=None)
        check = (check_number(bare),) if numbered(bare) else ()
        for part in (*check, *(reduce_at_barrier(bare) if reduces(bare) else (bare,))):
            for made in f.instruction(part, self.code):
                self.code.copy(made)
        if past:
            self.code.label(past)

    def _indexed(self, f: Function, inst: ir.Inst) -> None:
        """`brx.idx`: counted as itself, then compared and branched."""
        code = self.code
        past = self._skip(f, inst)
        table = inst.operands[-1]
        assert isinstance(table, ir.Sym)
        labels = [f.prefix + label for label in f.kernel.branch_targets[table.name]]
        index = code.fresh("b32")
        source = f.operand(inst.operands[0])
        code.put("mov.b32", index, source, at=inst.loc, why="brx.idx")
        code.copy(ir.Inst("brx", inst.mods, (index,), inst.loc))
        branch_by_index(code, index, labels, inst.loc, "brx.idx")
        code.put("trap", at=inst.loc, why=NO_LABEL)
        if past:
            code.label(past)

    def _skip(self, f: Function, inst: ir.Inst) -> str | None:
        """Lanes whose guard is false go past what the instruction becomes: the label to place behind it."""
        if inst.guard is None:
            return None
        past = self.code.fresh_label("unless")
        guard = f.guard(inst.guard)
        assert guard is not None
        opposite = ir.Guard(guard.reg, not guard.negated)
        self.code.put("bra", ir.Sym(past), at=inst.loc, why="the guard of what follows", guard=opposite)
        return past

    # ---------------------------------------------------------------- calls
    def _call(self, f: Function, inst: ir.Inst) -> None:
        code = self.code
        past = self._skip(f, inst)
        code.copy(ir.Inst("call", inst.mods, (), inst.loc))
        candidates = self.graph.candidates(f.kernel, inst)
        callee = inst.operands[1]
        if isinstance(callee, ir.Sym):
            self._call_one(f, inst, candidates[0])
        else:
            pointer, done = f.operand(callee), code.fresh_label("called")
            for candidate in candidates:
                address, differs, other = code.fresh("b64"), code.fresh("pred"), code.fresh_label("not")
                code.put("mov.u64", address, ir.Sym(candidate.name), at=inst.loc, why=_CALL)
                code.put("setp.ne.u64", differs, pointer, address, at=inst.loc, why=_CALL)
                code.put("bra", ir.Sym(other), at=inst.loc, why=_CALL, guard=ir.Guard(differs))
                self._call_one(f, inst, candidate)
                code.put("bra", ir.Sym(done), at=inst.loc, why=_CALL)
                code.label(other)
            code.put("trap", at=inst.loc, why=NO_FUNCTION)
            code.label(done)
        if past:
            code.label(past)

    def _call_one(self, f: Function, inst: ir.Inst, callee: ir.Kernel) -> None:
        results, _, arguments, *_ = inst.operands
        assert isinstance(results, ir.Vec) and isinstance(arguments, ir.Vec)
        for what, given, wanted in (
            ("results", len(results.items), len(callee.results)),
            ("arguments", len(arguments.items), len(callee.params)),
        ):
            if given != wanted:
                raise InvalidInput(f"`{callee.name}` has {wanted} {what}, the call {given}", where=place(inst))
        for item, param in zip((*results.items, *arguments.items), (*callee.results, *callee.params), strict=True):
            size = f.size(item)
            if size is not None and size != param.size:
                raise InvalidInput(
                    f"`{callee.name}` has {param.size} bytes in `{param.name}`, the call's variable {size}",
                    where=place(inst),
                )
        if not callee.blocks:
            self._runtime(f, inst, callee, results.items, arguments.items)
            return
        code, g, at = self.code, self.functions[callee.name], inst.loc
        saved = f.save(code, inst) if f.recursive else 0
        if f.recursive:
            f.check_stack(code, inst, g.frame_bytes, STACK_FULL)
        passed = [
            self._held(f.place(item, inst, -saved), param, inst)
            for item, param in zip(arguments.items, callee.params, strict=True)
        ]
        for source, param in zip(passed, callee.params, strict=True):
            self._pass(source, g.parameter(param), param, inst)
        sites = self.returns[callee.name]
        back = f"{callee.name}::back::{len(sites)}"
        code.put("mov.u32", g.caller(code), ir.Imm(len(sites)), at=at, why=_CALL)
        sites.append(back)
        code.put("bra", ir.Sym(g.entry), at=at, why=_CALL)
        code.label(back)
        outcome = [self._held(g.parameter(result, saved), result, inst) for result in callee.results]
        if f.recursive:
            f.restore(code, inst)
            outcome = [p if r.register else g.parameter(r, saved) for p, r in zip(outcome, callee.results, strict=True)]
        for to, source, result in zip(results.items, outcome, callee.results, strict=True):
            self._pass(source, f.place(to, inst), result, inst)

    def _held(self, source: Place, param: ir.Param, inst: ir.Inst) -> Place:
        """A register parameter's value in a register of its own: the function may be the caller itself, and then one
        parameter's register is another one's argument."""
        if not param.register or source.register is None:
            return source
        word = self.code.fresh(param.type)
        self.code.put(f"mov.{_moved_as(param.type)}", word, source.register, at=inst.loc, why=_CALL)
        return Place(word, None)

    def _pass(self, source: Place, target: Place, param: ir.Param, inst: ir.Inst) -> None:
        """Copy a parameter's bytes. Between two registers a move; else as large parts as alignment allows."""
        code, at = self.code, inst.loc
        if isinstance(target.register, ir.Sink):  # a result that nobody wants
            return
        if source.register is not None and target.register is not None:
            code.put(f"mov.{_moved_as(param.type)}", target.register, source.register, at=at, why=_CALL)
            return
        for offset, size in _parts(param):
            bits = 8 * size
            word = source.register if source.register is not None else code.fresh(f"b{max(bits, 16)}")
            if source.register is None:
                code.put(f"ld.param::func.b{bits}", word, source.at(offset), at=at, why=_CALL)
            if target.register is None:
                code.put(f"st.param::func.b{bits}", target.at(offset), word, at=at, why=_CALL)
            else:
                code.put(f"mov.b{bits}", target.register, word, at=at, why=_CALL)

    def _runtime(
        self, f: Function, inst: ir.Inst, callee: ir.Kernel, results: tuple[ir.Operand, ...],
        arguments: tuple[ir.Operand, ...],
    ) -> None:  # fmt: skip
        """A function of the device's runtime."""
        if callee.name not in RUNTIME:
            raise Unsupported(
                f"the function `{callee.name}` has no body in the module",
                where=place(inst),
                help="join it with the text that defines it (ptx.join); of the device's runtime these are modelled: "
                + ", ".join((*RUNTIME, *sorted(defined_functions()))),
            )
        code = self.code
        words: list[ir.Operand] = []
        for item, param in zip(arguments, callee.params, strict=True):
            source = f.place(item, inst)
            if source.register is None:
                word = code.fresh(f"b{8 * param.size}")
                code.put(f"ld.param::func.b{8 * param.size}", word, source.at(0), at=inst.loc, why=_CALL)
                words.append(word)
            else:
                words.append(source.register)
        outcome = tuple(code.fresh(f"b{8 * r.size}") for r in callee.results)
        code.copy(ir.Inst("call", (f".{callee.name.strip('_')}",), (*outcome, *words), inst.loc))
        for to, result, word in zip(results, callee.results, outcome, strict=True):
            self._pass(Place(word, None), f.place(to, inst), result, inst)


def _moved_as(type: str) -> str:
    return type if type == "pred" else f"b{width(type)}"


def _parts(param: ir.Param) -> Iterator[tuple[int, int]]:
    """(offset, size) of the pieces that a parameter is copied in."""
    offset = 0
    while offset < param.size:
        fits = min(param.size - offset, max(param.align, 1))
        size = next(s for s in (8, 4, 2, 1) if s <= fits and offset % s == 0)
        yield offset, size
        offset += size
