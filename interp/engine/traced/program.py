"""A planned kernel as tables that the step loop reads: regions, instructions, operand rows.

Every register has a row of 32 words in the warp frame, in the order of its declaration; nothing is shared or
coloured. Constants and addresses of variables have rows too, outside the frame, so that an operand is always a row: a
*row word* is the offset of a row in the frame, or its absolute address plus one (rows are even). A predicate's row is
a 32-bit lane mask.

The tables' columns are named in `tables.py`. A table holds host addresses, so a program
belongs to the process that made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from interp.engine.compiled import Recipe, asynchronous
from interp.engine.emit import literal_bits
from interp.engine.plan import Plan, Region, Step
from interp.engine.traced import machine
from interp.engine.traced.handlers import Handler, Nested, Source, Target, handler
from interp.engine.traced.tables import BARRIER, EXIT, GO, INST, PROGRAM, REGION, SPLIT, SPLIT_EXIT, SPLIT_TRAP, TRAP
from interp.runtime import native
from ptx import ir
from ptx.errors import GpuemuError, InvalidInput
from ptx.isa import Effect
from ptx.record import Form, place, registers
from ptx.syntax_line import OperandSpec
from ptx.types import width

_ROW_BYTES = 256
_CHUNK = 256
_BYTES = {1: 4, 8: 32, 16: 64, 32: 128, 64: 256}
_DTYPE = {1: np.uint32, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}

RowWord = tuple[int, int]
"""A row word and the width of its words in bits."""


@dataclass(frozen=True, slots=True)
class Address:
    """One memory operand: base and offset rows, state space ("global", "shared", "local", "generic", "const",
    "param"), bytes a lane, whether it reads and writes, and whether the rank of the CTA belongs into it."""

    base: RowWord
    offset: RowWord
    space: str
    size: int
    reads: bool
    writes: bool
    ranked: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """What can be observed of an instruction. `sources`: rows by operand order, None for what has no row (special
    registers)."""

    inst: ir.Inst
    sources: tuple[RowWord | None, ...]
    targets: tuple[RowWord | None, ...]
    addresses: tuple[Address, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """`address`: of the program table. `owners`: the arrays and handlers that the tables point into."""

    address: int
    recipe: Recipe
    sites: tuple[Site, ...]
    owners: tuple[Any, ...]


class _Constants:
    """Rows of equal words outside the frame."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], int] = {}
        self.chunks: list[np.ndarray[Any, np.dtype[np.uint8]]] = []
        self._free: list[int] = []

    def row(self, n: int, value: int) -> RowWord:
        value &= (1 << n) - 1
        at = self.rows.get((n, value))
        if at is None:
            words = np.full(32, value, _DTYPE[n]) if n > 1 else np.full(1, 0xFFFF_FFFF if value else 0, np.uint32)
            at = self.rows[n, value] = self._place(words)
        return at + 1, n

    def table(self, values: list[int]) -> RowWord:
        """A row of different 32-bit words, the rest 0."""
        return self._place(np.array([*values, *[0] * (32 - len(values))], np.uint32)) + 1, 32

    def _place(self, words: np.ndarray[Any, Any]) -> int:
        if not self._free:
            chunk = np.zeros(_ROW_BYTES * (_CHUNK + 1), np.uint8)
            first = _address(chunk) + -_address(chunk) % _ROW_BYTES
            self.chunks.append(chunk)
            self._free = [first + _ROW_BYTES * i for i in reversed(range(_CHUNK))]
        at = self._free.pop()
        start = at - _address(self.chunks[-1])
        self.chunks[-1][start : start + words.nbytes] = words.view(np.uint8)
        return at


def build_program(
    plan: Plan,
    symbols: Mapping[str, int],
    device: int,
    counters: bool,
    ranked: frozenset[str] = frozenset(),
    measured: bool = False,
) -> Program:
    """The tables of a kernel. `symbols`, `ranked`, `measured`: as for the compiled engine; `device`: whose arithmetic;
    `counters`: whether to count."""
    native.prefetch([machine.RUN_WARP])
    return _Builder(plan, symbols, device, ranked, measured).build(counters)


class _Builder:
    def __init__(
        self, plan: Plan, symbols: Mapping[str, int], device: int, ranked: frozenset[str], measured: bool
    ) -> None:
        self.plan, self.symbols, self.device, self.ranked, self.measured = plan, symbols, device, ranked, measured
        self.guard_index = {site: i for i, site in enumerate(plan.guarded)}
        self.constants = _Constants()
        self.rows: dict[str, RowWord] = {}
        at = plan.registers_offset
        for name, type in plan.kernel.registers.items():
            n = width(type)
            if n in _BYTES:
                self.rows[name] = at, n
                at += max(_BYTES[n], 64)
        self.frame_bytes = (at + 127) // 128 * 128
        self.ops: list[int] = []
        self.handlers: list[Handler] = []
        self.seen: dict[int, Site] = {}
        self.symbols_used: set[str] = set()

    def build(self, counters: bool) -> Program:
        plan = self.plan
        insts: list[list[int]] = []
        regions: list[list[int]] = []
        for index, region in enumerate(plan.regions):
            first = len(insts)
            for step in region.steps:
                insts.append(self._inst(step))
            regions.append(self._region(index, region, first, len(insts) - first))
        ops = np.array(self.ops or [0], np.int64)
        inst_table = np.array(insts or [[0] * len(INST)], np.int64)
        inst_table[:, INST["OPS"]] = _address(ops) + 8 * inst_table[:, INST["OPS"]]
        region_table = np.array(regions, np.int64)
        table = np.zeros(len(PROGRAM), np.int64)
        for name, value in {
            "REGIONS": _address(region_table),
            "NREGIONS": len(regions),
            "INSTS": _address(inst_table),
            "COUNTS": int(counters),
            "GUARDED_AT": 2 * len(regions),
            "DIVERGES": int(plan.diverges),
            "FAIR": int(plan.diverges and bool(plan.polling)),
            "MEASURED": int(self.measured),
        }.items():
            table[PROGRAM[name]] = value
        sites = tuple(self.seen.get(i) or Site(inst, (), (), ()) for i, inst in enumerate(plan.sites))
        owners = (ops, inst_table, region_table, table, self.constants, tuple(self.handlers))
        return Program(_address(table), self._recipe(), sites, owners)

    def _recipe(self) -> Recipe:
        plan = self.plan
        members = tuple(tuple(s.site for s in (*r.steps, *((r.end,) if r.end else ()))) for r in plan.regions)
        size = self.frame_bytes - plan.registers_offset
        return Recipe(
            regions=members,
            guarded=plan.guarded,
            frame_bytes=self.frame_bytes,
            registers_offset=plan.registers_offset,
            zeroed=((plan.registers_offset, size),) if size else (),
            symbols=tuple(sorted(self.symbols_used)),
            **asynchronous(self.symbols_used),
            waits=plan.awaited,
        )

    # ---------------------------------------------------------------- instructions
    def _inst(self, step: Step) -> list[int]:
        form, inst = step.form, step.inst
        sources, targets, rows, site = self._operands(form, inst)
        names = _source_names(form, inst) if self.measured else ()
        try:
            found = handler(form, sources, targets, self.device, names)
        except GpuemuError as error:  # what a meaning cannot say: where
            raise type(error)(tuple(replace(d, where=d.where or place(inst)) for d in error.diagnostics)) from None
        at = len(self.ops)
        self.ops += [word for word, _ in rows]
        self.ops += [native.address(name) for name in found.symbols]
        self.symbols_used.update(found.symbols)
        self.handlers.append(found)
        self.seen[step.site] = site
        guard, negated = self._guard(inst)
        return [found.address, at, guard, negated, self.guard_index.get(step.site, -1), step.site]

    def _guard(self, inst: ir.Inst) -> tuple[int, int]:
        if inst.guard is None:
            return -1, 0
        return self.rows[inst.guard.reg.name][0], int(inst.guard.negated)

    def _operands(
        self, form: Form, inst: ir.Inst
    ) -> tuple[tuple[Nested, ...], tuple[Target, ...], list[RowWord], Site]:
        """Kinds of the sources and targets, their rows in a handler's order, and what can be observed."""
        sources: list[Nested] = []
        rows: list[RowWord] = []
        seen: list[RowWord | None] = []
        addresses: list[Address] = []
        targets: list[Target] = []
        target_rows: list[RowWord | None] = []
        for spec, operand in form.bind(inst):
            if spec.name in form.op.in_place:
                places = self._places(operand)
                rows += places
                sources.append((Source("row", 32, 32),) * len(places))
            elif isinstance(operand, ir.Mem | ir.TensorMem):
                memory = operand if isinstance(operand, ir.Mem) else ir.Mem(operand.base)
                base, offset = self._address(memory, inst)
                ranked = isinstance(memory.base, ir.Sym) and memory.base.name in self.ranked
                rows += [base, offset]
                seen.append(base)
                source: Nested = Source("address", base[1], 64, ranked=ranked)
                if isinstance(operand, ir.TensorMem):
                    coordinates = operand.coords.items if operand.offsets is None else ()
                    source = source, self._scalars("s32", coordinates, inst, rows, seen)
                else:
                    addresses.append(replace(_access(form, inst, spec, base, offset), ranked=ranked))
                sources.append(source)
            elif spec.name in form.op.writes:
                for item, type in _written(form, spec, operand):
                    row = self.rows[item.name] if isinstance(item, ir.Reg) else None
                    targets.append(Target(row[1] if row else 0, type))
                    target_rows.append(row)
            elif spec.form != "imm":
                kind, count = form.types[spec.name]
                items: tuple[Any, ...] = operand.items if isinstance(operand, ir.Vec) else (operand,)
                if kind == "b128":
                    kind, count, items = "b64", 2, _halves(operand)
                group = self._scalars(kind, items, inst, rows, seen)
                sources.append(group if count else group[0])
        rows += [row for row in target_rows if row is not None]
        return tuple(sources), tuple(targets), rows, Site(inst, tuple(seen), tuple(target_rows), tuple(addresses))

    def _scalars(
        self, kind: str, items: tuple[Any, ...], inst: ir.Inst, rows: list[RowWord], seen: list[RowWord | None]
    ) -> tuple[Nested, ...]:
        """Several words of one type; their rows are added to `rows` and `seen`."""
        pairs = [self._scalar(kind, item, inst) for item in items]
        rows += [row for _, row in pairs if row is not None]
        seen += [row for _, row in pairs]
        return tuple(source for source, _ in pairs)

    def _places(self, operand: ir.Operand) -> list[RowWord]:
        """Constant rows with the offsets of registers in the frame, 32 to a row."""
        offsets = [self.rows[r.name][0] for r in registers(operand)]
        return [self.constants.table(offsets[i : i + 32]) for i in range(0, len(offsets), 32)]

    def _scalar(self, kind: str, operand: Any, inst: ir.Inst) -> tuple[Source, RowWord | None]:
        n = width(kind)
        match operand:
            case ir.Reg(name):
                row = self.rows[name]
                if row[1] < n:
                    raise InvalidInput(
                        f"register {name} is narrower than the {kind} that '{inst.opcode}' reads", where=place(inst)
                    )
                return Source("row", row[1], n), row
            case ir.Not(reg):
                return Source("not", 1, 1), self.rows[reg.name]
            case ir.Imm(value, literal):
                return Source("row", n, n), self.constants.row(n, literal_bits(value, literal, kind))
            case ir.Special(name):
                return Source("special", 0, n, name), None
            case ir.Sym(name, offset):
                row = self.constants.row(n, self._symbol(name, inst) + offset)
                return Source("row", n, n, ranked=name in self.ranked), row
        raise InvalidInput(f"'{inst.opcode}' cannot read the operand {operand!r}", where=place(inst))

    def _address(self, operand: ir.Mem, inst: ir.Inst) -> tuple[RowWord, RowWord]:
        base, offset = operand.base, operand.offset
        if isinstance(base, ir.Sym):
            return self.constants.row(64, self._symbol(base.name, inst) + base.offset + offset), self.constants.row(
                64, 0
            )
        if isinstance(base, ir.Imm):
            return self.constants.row(64, base.value + offset), self.constants.row(64, 0)
        row = self.rows[base.name]
        return row, self.constants.row(row[1], offset)

    def _symbol(self, name: str, inst: ir.Inst) -> int:
        try:
            return self.symbols[name]
        except KeyError:
            raise InvalidInput(f"undefined symbol '{name}'", where=place(inst)) from None

    # ---------------------------------------------------------------- regions
    def _region(self, index: int, region: Region, first: int, count: int) -> list[int]:
        end = region.end
        row = dict.fromkeys(REGION, -1)
        row.update(FIRST=first, COUNT=count, NEGATED=0, WAITS=int(region.waits))
        row["SITE"] = end.site if end else -1
        targets = region.targets
        row["KIND"], (row["TAKEN"], row["NEXT"]) = _ending(region), (*targets, -1, -1)[:2]
        row["BACK"] = sum(1 << i for i, t in enumerate(targets[:2]) if (index, t) in self.plan.back_edges)
        row["POLLS"] = sum(1 << i for i, t in enumerate(targets[:2]) if (index, t) in self.plan.polling)
        if region.waits:
            row["MEMBERS"], row["ALIKE"] = self._members(region.steps[0])
        if end is not None:
            row["GUARD"], row["NEGATED"] = self._guard(end.inst)
            row["COUNTER"] = self.guard_index.get(end.site, -1)
            self.seen[end.site] = Site(end.inst, (), (), ())
            if row["KIND"] == BARRIER:
                words = [self._scalar("u32", o, end.inst)[1] for o in end.inst.operands]
                known = [w for w in words if w is not None]
                row["NUMBER"], row["THREADS"] = (*(w for w, _ in known), -1, -1)[:2]
                self.seen[end.site] = Site(end.inst, tuple(known), (), ())
        return [row[name] for name in REGION]

    def _members(self, step: Step) -> tuple[int, int]:
        """Row word of the member masks (-1: all lanes), and whether they are the same in all lanes."""
        for spec, operand in step.form.bind(step.inst):
            if spec.name == "members":
                row = self._scalar("u32", operand, step.inst)[1]
                return (row[0] if row is not None else -1), int(isinstance(operand, ir.Imm))
        return -1, 1


def _ending(region: Region) -> int:
    end = region.end
    if end is None:
        return GO if region.targets else EXIT
    effect, guarded = end.form.op.effect, end.inst.guard is not None
    if effect is Effect.BARRIER:
        return BARRIER
    if effect is Effect.BRANCH:
        return SPLIT if guarded else GO
    if end.inst.op == "trap":
        return SPLIT_TRAP if guarded else TRAP
    return SPLIT_EXIT if guarded else EXIT


def _halves(operand: ir.Operand) -> tuple[Any, ...]:
    """The halves of an operand of 128 bits."""
    match operand:
        case ir.Wide(low, high):
            return low, high
        case ir.Imm(value):
            return ir.Imm(value), ir.Imm(value >> 64)
    return (operand,)


def _written(form: Form, spec: OperandSpec, operand: ir.Operand) -> list[tuple[Any, str]]:
    """Written registers (or sinks) of an operand with the PTX type of what they get."""
    match operand:
        case ir.Wide(low, high):
            return [(low, "b64"), (high, "b64")]
        case ir.Sink() if form.type_of(spec.name) == "b128":
            return [(operand, "b64")] * 2
        case ir.Reg() | ir.Sink():
            return [(operand, form.type_of(spec.name))]
        case ir.Pair(first, second):
            return [(first, form.type_of(spec.names[0])), (second, form.type_of(spec.names[1]))]
        case ir.Vec(items):
            return [(i, form.type_of(spec.name)) for i in items if isinstance(i, ir.Reg | ir.Sink)]
    return []


def _source_names(form: Form, inst: ir.Inst) -> tuple[str, ...]:
    """Names of the operands that become sources, in a handler's order."""
    return tuple(
        spec.name
        for spec, operand in form.bind(inst)
        if isinstance(operand, ir.Mem | ir.TensorMem)
        or spec.name in form.op.in_place
        or (spec.name not in form.op.writes and spec.form != "imm")
    )


def _access(form: Form, inst: ir.Inst, spec: OperandSpec, base: RowWord, offset: RowWord) -> Address:
    """How an address operand is used, by the record's effect and, for two addresses, by which of them it is."""
    effect = form.op.effect
    space = next((m[1:].partition("::")[0] for m in inst.mods if m.startswith(_SPACE_MODS)), "generic")
    size = 0
    value = form.types.get("d") or form.types.get("b")
    if effect in (Effect.LOAD, Effect.STORE, Effect.ATOMIC) and value is not None:
        size = width(value[0]) // 8 * max(value[1], 1)
    elif inst.op == "ldmatrix":
        size = 16
    elif inst.op == "cp" and "size" in form.mods:
        size = int(form.mods["size"])
        space = "shared" if spec.name == "dst" else "global"
        return Address(base, offset, space, size, spec.name == "src", spec.name == "dst")
    reads = effect in (Effect.LOAD, Effect.ATOMIC) or inst.op == "ldmatrix"
    return Address(base, offset, space, size, reads, effect in (Effect.STORE, Effect.ATOMIC))


_SPACE_MODS = (".global", ".shared", ".local", ".const", ".param")


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])
