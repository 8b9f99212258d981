"""PTX text → `ir.Module`. `parse(text)` is the front end's entrance.

Steps: `ptx.read` (grammar), then this walk: module directives and variables; for each function its parameters,
then its body, flattened: braces dissolve (`ptx.scope` renames), `.loc` becomes the `loc` of each instruction
(`ptx.source_map`), and the line of instructions is cut into basic blocks. What instructions mean is not looked at,
except which ones transfer control; `ptx.verify` checks the rest.

A `.func` without a body is kept (`blocks == ()`) unless the text also defines it. `.pragma` strings are dropped.

Errors carry the PTX line and, where `.loc` gave one, the source line: InvalidInput, Unsupported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ptx import ir
from ptx.blocks import cut
from ptx.errors import GpuemuError, InvalidInput, Where
from ptx.read import read
from ptx.scope import Names, Scope
from ptx.source_map import SourceMap
from ptx.syntax import (
    AliasDirective,
    Declaration,
    FileDirective,
    Function,
    Header,
    Instruction,
    Label,
    LocDirective,
    PrototypeDirective,
    RangeItem,
    Targets,
    integer,
)
from ptx.syntax import Scope as Braces
from ptx.types import width
from ptx.variables import parameters, read_words, variables


def parse(text: str) -> ir.Module:
    """Parses a PTX translation unit. Raises InvalidInput (not PTX, undeclared names) or Unsupported (see module)."""
    return _ModuleReader(text).module()


def _of_module(found: list[ir.Variable]) -> list[ir.Variable]:
    """Variables declared outside functions."""
    for v in found:
        if v.space not in (".global", ".const", ".shared"):
            raise InvalidInput(f"`{v.name}`: outside functions there are no {v.space} variables")
    return found


def _line_of(item: Any) -> int | None:
    """The PTX line of a syntax record."""
    if isinstance(item, Instruction):
        return item.line
    if isinstance(item, Declaration):
        return getattr(item.words[0], "line", None)
    for part in item if isinstance(item, tuple) else ():
        line = getattr(part, "line", None)
        if line is not None:
            return int(line)
    return None


class _ModuleReader:
    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._items = read(text)
        self.files = {i.number: i.path for i in self._items if isinstance(i, FileDirective)}
        self._source = SourceMap(self.files)

    def module(self) -> ir.Module:
        version: tuple[int, int] | None = None
        target: list[str] = []
        address_size = 64
        found: list[ir.Variable] = []
        aliases: list[AliasDirective] = []
        kernels: list[ir.Kernel] = []
        self._check_beginning()
        for item in self._items:
            try:
                if isinstance(item, Header):
                    if item.name == ".version":
                        major, minor = str(item.values[0]).split(".")
                        version = int(major), int(minor)
                    elif item.name == ".target":
                        target = [str(v) for v in item.values]
                    else:
                        address_size = integer(item.values[0])
                elif isinstance(item, Declaration):
                    found += _of_module(variables(item))
                elif isinstance(item, AliasDirective):
                    aliases.append(item)
                elif isinstance(item, Function):
                    reader = _FunctionReader(item, self._source)
                    kernels.append(reader.kernel())
                    found += reader.outside
            except GpuemuError as error:
                raise self._located(error, item) from None
        if version is None or not target:
            missing = ".version" if version is None else ".target"
            raise InvalidInput(
                f"no {missing} directive",
                where=Where(ptx_line=1),
                help="PTX starts with .version, .target, .address_size",
            )
        kernels += self._aliases(aliases, kernels)
        defined = {k.name for k in kernels if k.blocks}
        unique: dict[str, ir.Kernel] = {}
        for k in kernels:
            if k.blocks and unique.get(k.name, k) is not k:
                raise InvalidInput(f"function `{k.name}` is defined twice", where=self._where(k.loc))
            if k.blocks or k.name not in defined:
                unique[k.name] = k
        return ir.Module(
            version,
            target[0],
            tuple(target[1:]),
            address_size,
            tuple(found),
            tuple(unique.values()),
            self.files,
        )

    def _check_beginning(self) -> None:
        """A text starts with `.version`, `.target` and perhaps `.address_size`, once each."""
        order = [".version", ".target", ".address_size"]
        for at, item in enumerate(self._items):
            if isinstance(item, Header) and (at > 2 or item.name != order[at]):
                line = item.values[0].line
                what = f"`{item.name}` stands where it does not belong"
                help = "PTX starts with .version, .target, .address_size, once each"
                raise InvalidInput(what, where=Where(ptx_line=line, ptx_text=self._text(line)), help=help)

    def _aliases(self, aliases: list[AliasDirective], kernels: list[ir.Kernel]) -> list[ir.Kernel]:
        """The functions that aliases name once more: the same body under the other name."""
        made = []
        for alias in aliases:
            body = next((k for k in kernels if k.name == alias.function and k.blocks and not k.is_entry), None)
            declared = any(k.name == alias.name and not k.blocks and not k.is_entry for k in kernels)
            if body is None or not declared:
                what = f"`.alias {alias.name}, {alias.function}` needs a declared function and one with a body"
                raise InvalidInput(what, where=self._where(ir.Loc(alias.name.line)))
            made.append(msgspec.structs.replace(body, name=str(alias.name)))
        return made

    def _where(self, loc: ir.Loc | None) -> Where | None:
        if loc is None:
            return None
        user = loc.user
        return Where(
            user.file if user else None,
            user.line if user else None,
            user.column if user else None,
            loc.ptx_line,
            self._text(loc.ptx_line),
        )

    def _text(self, line: int) -> str | None:
        return self._lines[line - 1].strip() if 0 < line <= len(self._lines) else None

    def _located(self, error: GpuemuError, item: Any) -> GpuemuError:
        """The same error with the place it came from."""
        if error.diagnostic.where is not None and error.diagnostic.where.ptx_text is not None:
            return error
        line = error.diagnostic.where.ptx_line if error.diagnostic.where else _line_of(item)
        frames = self._source.frames if isinstance(item, Function) else ()
        where = self._where(ir.Loc(line, frames)) if line else None
        d = error.diagnostic
        return type(error)(d.what, where=where, notes=d.notes, help=d.help)


class _FunctionReader:
    """One `.entry` or `.func`: its body walked once, in text order."""

    def __init__(self, item: Function, source: SourceMap) -> None:
        self._item = item
        self._source = source
        self._names = Names()
        self._stream: list[ir.Inst | str] = []  # labels are strings
        self._variables: list[ir.Variable] = []
        self.outside: list[ir.Variable] = []  # declared in the body, but of the module
        self._branch_targets: dict[str, tuple[str, ...]] = {}
        self._prototypes: dict[str, ir.Prototype] = {}
        self._opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._guards: dict[tuple[int, str], ir.Guard] = {}
        self._line = item.name.line

    def kernel(self) -> ir.Kernel:
        item, source = self._item, self._source
        source.start_function()
        linkage = [str(w) for w in item.linkage]
        if set(linkage) - {".extern", ".visible", ".weak"} or len(linkage) > 1:
            raise InvalidInput(f"`{' '.join(linkage)}` has no place before a function")
        if ".extern" in linkage and item.body is not None:
            raise InvalidInput(f"`{item.name}` is `.extern` and has a body")
        params, results = parameters(item.params), parameters(item.results)
        first_loc: tuple[ir.Frame, ...] = ()
        if item.body is not None:
            for statement in item.body:
                if isinstance(statement, LocDirective):
                    source.enter(statement.text)
                    first_loc = source.frames
                    break
            source.start_function()
            self._names.taken.update(p.name for p in (*params, *results) if not p.register)
            try:
                scope = Scope(self._names)
                params, results = (tuple(_declared(ps, scope)) for ps in (params, results))
                self._walk(item.body, scope)
            except GpuemuError as error:
                d = error.diagnostic
                raise type(error)(d.what, where=Where(ptx_line=self._line), notes=d.notes, help=d.help) from None
        targets = {name for names in self._branch_targets.values() for name in names}
        return ir.Kernel(
            name=str(item.name),
            is_entry=item.word == ".entry",
            params=params,
            registers=self._names.registers(),
            variables=tuple(self._variables),
            blocks=cut(self._stream, targets) if item.body is not None else (),
            directives={str(a.word): tuple(a.values) for a in item.attributes},
            branch_targets=self._branch_targets,
            results=results,
            loc=ir.Loc(item.name.line, first_loc),
            prototypes=self._prototypes,
        )

    # -------------------------------------------------------------------------------------------- walking
    def _declare(self, statements: Sequence[Any], scope: Scope) -> None:
        """Enters the labels of one level of braces, which may be used before they stand."""
        for s in statements:
            if isinstance(s, Label):
                self._line = s.name.line
                if s.name[:-1].rstrip() == "_":
                    raise InvalidInput("`_` is no label")
                scope.declare_symbol(s.name[:-1].rstrip(), "label")

    def _declare_one(self, s: Declaration, scope: Scope) -> None:
        words = read_words(s.words)
        if words.space != ".reg":
            for v in variables(s):
                if v.space in (".global", ".const"):  # lives as long as the module: one of its variables
                    self.outside.append(_renamed(v, scope.declare_outside(v.name, str(self._item.name))))
                    continue
                name = scope.declare_symbol(v.name, "variable")
                self._variables.append(v if name == v.name else _renamed(v, name))
            return
        for item in s.items:
            if isinstance(item, RangeItem):
                prefix, count = re.match(r"([\w$%]+)\s*<\s*(\w+)", item.text).groups()  # type: ignore[union-attr]
                scope.declare_range(prefix, integer(count), words.type)
            else:
                if item.dims is not None or item.init is not None:
                    raise InvalidInput(f"register `{item.name}` takes neither array bounds nor an initial value")
                scope.declare_register(str(item.name), words.type, words.vector)

    def _walk(self, statements: Sequence[Any], scope: Scope) -> None:
        self._declare(statements, scope)
        stream, source, operand = self._stream, self._source, scope.operand
        label: str | None = None
        for s in statements:
            kind = type(s)
            if kind is Instruction:
                self._line = line = s.line
                opcode = self._opcodes.get(s.opcode)
                if opcode is None:
                    op, *mods = s.opcode.split(".")
                    opcode = self._opcodes[s.opcode] = op, tuple(f".{m}" for m in mods)
                guard = None if s.guard is None else self._guard(s.guard, scope)
                if opcode[0] == "call":
                    operands = _call_operands(tuple([scope.call_operand(o) for o in s.operands]))
                else:
                    operands = tuple([operand(o) for o in s.operands])
                stream.append(ir.Inst(opcode[0], opcode[1], operands, ir.Loc(line, source.frames), guard))
            elif kind is LocDirective:
                source.enter(s.text)
            elif kind is Label:
                label = scope.symbol(s.name[:-1].rstrip())
                stream.append(label)
                continue
            elif kind is Declaration:
                self._line = s.words[0].line
                self._declare_one(s, scope)
            elif kind is Braces:
                inner = Scope(self._names, scope)
                self._walk(s.statements, inner)
            elif kind is Targets:
                self._branch_targets[self._named(label, s)] = tuple(scope.symbol(str(n)) for n in s.names)
            elif kind is PrototypeDirective:
                self._prototypes[self._named(label, s)] = ir.Prototype(parameters(s.results), parameters(s.params))
            label = None

    def _named(self, label: str | None, s: Any) -> str:
        """The label in front of a `.branchtargets` or `.callprototype`, which is its name and no place in the code."""
        if label is None or self._stream[-1] != label:
            self._line = s.word.line
            raise InvalidInput(f"`{s.word}` needs a label in front of it")
        self._stream.pop()
        return label

    def _guard(self, text: str, scope: Scope) -> ir.Guard:
        register = scope.operand(text.lstrip("@! \t\n"))
        if not isinstance(register, ir.Reg):
            raise InvalidInput(f"`{text}`: a guard is a predicate register")
        return ir.Guard(register, "!" in text)


def _declared(params: Sequence[ir.Param], scope: Scope) -> Iterator[ir.Param]:
    """Parameters, those in registers declared in the body's scope; a vector is one parameter an element."""
    for p in params:
        if not p.register:
            yield p
            continue
        size = max(width(p.type) // 8, 1)
        count = p.size // size
        scope.declare_register(p.name, p.type, count if count > 1 else 0)
        names = [p.name] if count <= 1 else [f"{p.name}.{c}" for c in "xyzw"[:count]]
        for register in map(scope.register, names):
            assert register is not None
            yield ir.Param(register.name, p.type, size, size, 0, register=True)


def _call_operands(operands: tuple[ir.Operand, ...]) -> tuple[ir.Operand, ...]:
    """`call f;` and its longer forms, always as (results, callee, arguments[, prototype or target list])."""
    rest = list(operands)
    results = rest.pop(0) if rest and isinstance(rest[0], ir.Vec) else ir.Vec(())
    callee = rest.pop(0) if rest else None
    if not isinstance(callee, ir.Sym | ir.Reg):
        raise InvalidInput("`call` needs the name of a function, or a register with its address")
    arguments = rest.pop(0) if rest and isinstance(rest[0], ir.Vec) else ir.Vec(())
    if len(rest) > 1 or not all(isinstance(o, ir.Sym) for o in rest):
        raise InvalidInput("`call` ends with its arguments and, for an indirect call, a prototype or list of targets")
    return results, callee, arguments, *rest


def _renamed(v: ir.Variable, name: str) -> ir.Variable:
    return ir.Variable(name, v.space, v.type, v.align, v.size, v.init, v.extern, v.relocations)
