"""Emit a planned kernel as LLVM IR text: one internal function a region, then the dispatcher.

A region function is `i64 @r<i>(ptr %ctx, ptr %warp, i32 %mask)`: it loads the registers that it reads from the frame,
runs its instructions as vectors, and stores the registers that live on. It returns what its control transfer needs: the
lane mask of the branch condition, or the barrier's number and thread count.

Operands are adapted here and nowhere else, by PTX 'Operand Size Exceeding Instruction-Type Size': a source wider than
the instruction's type is truncated, a result narrower than its register is sign-extended for signed types, else
zero-extended. A guarded instruction computes for all lanes and keeps the old value where the guard is false;
instructions with effects get the mask of the lanes whose guard holds.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from interp.engine.control import emit_dispatcher
from interp.engine.plan import Plan, Region, Step, awaits_cluster
from interp.kits.llvm import LlvmKit, Value
from interp.measure import measure, measure_branch
from interp.runtime.layout import CLUSTER_BARRIER, CTX, RANK_SHIFT
from ptx import ir
from ptx.errors import GpuemuError, InvalidInput
from ptx.isa import Effect
from ptx.record import Form, place, registers
from ptx.syntax_line import OperandSpec
from ptx.types import float_bits, is_signed, width


@dataclass(frozen=True, slots=True)
class Options:
    """What emitted code depends on besides the plan: host features, the device whose arithmetic is meant, counters.
    `ranked`: variables whose addresses carry the rank of the CTA: shared ones, in a launch with clusters. `measured`:
    accesses and branches are measured (`interp.measure`), which needs counters."""

    has_fma: bool
    device: int
    counters: bool
    ranked: frozenset[str] = frozenset()
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Emitted:
    """IR text, the runtime symbols it calls, and the widest call buffer."""

    text: str
    symbols: tuple[str, ...]


def emit_kernel(plan: Plan, symbols: Mapping[str, int], options: Options) -> Emitted:
    """`symbols`: device address (or parameter offset) of every variable and parameter that instructions may name."""
    externs: dict[str, str] = {}
    parts = []
    guard_index = {site: i for i, site in enumerate(plan.guarded)}
    for index, region in enumerate(plan.regions):
        parts.append(_RegionEmitter(plan, region, symbols, options, externs, guard_index).emit(index))
    parts.append(emit_dispatcher(plan, options.counters, externs))
    declarations = "\n".join(sorted(set(externs.values())))
    runtime = tuple(sorted(name[1:] for name in externs if not name.startswith("@llvm.")))
    return Emitted("\n".join(parts) + "\n" + declarations + "\n", runtime)


class _RegionEmitter:
    """Emits one region."""

    def __init__(
        self,
        plan: Plan,
        region: Region,
        symbols: Mapping[str, int],
        options: Options,
        externs: dict[str, str],
        guard_index: Mapping[int, int],
    ) -> None:
        self.plan, self.region, self.symbols, self.options = plan, region, symbols, options
        self.kit = LlvmKit(options.has_fma, options.device)
        self.kit.externs = externs
        self.values: dict[str, Value] = {}
        self.written: dict[str, None] = {}
        self.guard_index = guard_index

    def emit(self, index: int) -> str:
        kit = self.kit
        for step in self.region.steps:
            self._step(step)
        result = self._end()
        self._store_kept()
        body = "\n".join(kit.lines)
        buffer = f"  %buf = alloca [{kit.buffer} x i8], align 64\n" if kit.buffer or "%buf" in body else ""
        head = f"define internal i64 @r{index}(ptr noalias %ctx, ptr noalias %warp, i32 %mask) noinline nounwind {{\n"
        return f"{head}{buffer}{body}\n  ret i64 {result}\n}}\n"

    # ---------------------------------------------------------------- instructions
    def _step(self, step: Step) -> None:
        kit, form, inst = self.kit, step.form, step.inst
        kit.site, kit.mask = step.site, "%mask"
        guard = self._guard(inst)
        if guard is not None and (form.op.effect is not Effect.NONE or self.options.counters):
            bits = kit.mask_of(guard)
            kit.mask = kit.emit(f"and i32 %mask, {bits}")
            if self.options.counters:
                self._count_lanes(step.site)
        try:
            meaning = form.op.meaning(kit, **form.mods)
        except GpuemuError as error:  # what a meaning cannot say: where
            raise type(error)(tuple(replace(d, where=d.where or place(inst)) for d in error.diagnostics)) from None
        pairs = form.bind(inst)
        sources = [self._source(form, spec, o, inst) for spec, o in pairs if self._is_source(form, spec)]
        if self.options.measured:
            names = [spec.name for spec, _ in pairs if self._is_source(form, spec)]
            measure(kit, form, dict(zip(names, sources, strict=True)))
        outcome = meaning(*sources)
        self._write_results(form, pairs, outcome, guard)

    def _is_source(self, form: Form, spec: OperandSpec) -> bool:
        return spec.form != "imm" and (
            spec.form == "mem" or spec.name not in form.op.writes or spec.name in form.op.in_place
        )

    def _guard(self, inst: ir.Inst) -> Value | None:
        if inst.guard is None:
            return None
        p = self._read(inst.guard.reg)
        return self.kit.not_(1)(p) if inst.guard.negated else p

    def _count_lanes(self, site: int) -> None:
        kit = self.kit
        kit.externs["@llvm.ctpop.i32"] = "declare i32 @llvm.ctpop.i32(i32)"
        lanes = kit.emit(f"call i32 @llvm.ctpop.i32(i32 {kit.mask})")
        wide = kit.emit(f"zext i32 {lanes} to i64")
        base = kit.emit(f"getelementptr i64, ptr %ctx, i64 {CTX['COUNTERS']}")
        counters = kit.emit(f"load ptr, ptr {base}, align 8")
        at = kit.emit(f"getelementptr i64, ptr {counters}, i64 {2 * len(self.plan.regions) + self.guard_index[site]}")
        old = kit.emit(f"load i64, ptr {at}, align 8")
        new = kit.emit(f"add i64 {old}, {wide}")
        kit.emit_void(f"store i64 {new}, ptr {at}, align 8")

    def _source(self, form: Form, spec: OperandSpec, operand: ir.Operand, inst: ir.Inst) -> Any:
        kind, count = form.types[spec.name]
        if spec.name in form.op.in_place:
            return self._places(operand)
        if isinstance(operand, ir.Mem):
            return self._address(operand, inst)
        if isinstance(operand, ir.TensorMem):
            coords = operand.coords.items if operand.offsets is None else ()
            return self._address(ir.Mem(operand.base), inst), tuple(self._scalar("s32", c, inst) for c in coords)
        if kind == "b128":
            return self._halves(operand, inst)
        if isinstance(operand, ir.Vec):
            words = tuple(self._scalar(kind, item, inst) for item in operand.items)
            return words if count else words[0]
        word = self._scalar(kind, operand, inst)
        return (word,) if count else word

    def _halves(self, operand: ir.Operand, inst: ir.Inst) -> tuple[Value, Value]:
        """A word of 128 bits: its halves, the low one first."""
        match operand:
            case ir.Wide(low, high):
                return self._read(low), self._read(high)
            case ir.Imm(value):
                return self.kit.const(64, value), self.kit.const(64, value >> 64)
        raise InvalidInput(f"'{inst.opcode}' cannot read the operand {operand!r}", where=place(inst))

    def _places(self, operand: ir.Operand) -> tuple[Value, ...]:
        """Offsets of registers' slots in the frame, 32 to a word; -1 for one that is not read any more."""
        slots = [self.plan.slots.get(r.name, -1) for r in registers(operand)]
        return tuple(self.kit.table(slots[i : i + 32]) for i in range(0, len(slots), 32))

    def _scalar(self, kind: str, operand: ir.Operand, inst: ir.Inst) -> Value:
        kit, n = self.kit, width(kind)
        match operand:
            case ir.Reg():
                return self._fit(self._read(operand), n, operand.name, kind, inst)
            case ir.Not(reg):
                return kit.not_(1)(self._read(reg))
            case ir.Imm(value, literal):
                return kit.const(n, literal_bits(value, literal, kind))
            case ir.Special(name):
                word = kit.special(name)
                return kit.trunc(word.n, n)(word) if word.n >= n else kit.zext(word.n, n)(word)
            case ir.Sym(name, offset):
                return self._place(name, offset, n, inst)
        raise InvalidInput(f"'{inst.opcode}' cannot read the operand {operand!r}", where=place(inst))

    def _fit(self, word: Value, n: int, name: str, kind: str, inst: ir.Inst) -> Value:
        if word.n < n:
            raise InvalidInput(
                f"register {name} is narrower than the {kind} that '{inst.opcode}' reads", where=place(inst)
            )
        return self.kit.trunc(word.n, n)(word)

    def _address(self, operand: ir.Mem, inst: ir.Inst) -> Value:
        kit, base, offset = self.kit, operand.base, operand.offset
        if isinstance(base, ir.Sym):
            return self._place(base.name, base.offset + offset, 64, inst)
        if isinstance(base, ir.Imm):
            return kit.const(64, base.value + offset)
        word = self._read(base)
        if offset:
            word = kit.add(word.n)(word, kit.const(word.n, offset))
        return kit.zext(word.n, 64)(word)

    def _place(self, name: str, offset: int, n: int, inst: ir.Inst) -> Value:
        """The address of a variable plus an offset, as n bits."""
        kit = self.kit
        word = kit.const(n, self._symbol(name, inst) + offset)
        if name not in self.options.ranked or n < 32:
            return word
        rank = kit.shl(32)(kit.special("%cluster_ctarank"), kit.const(32, RANK_SHIFT))
        return kit.add(n)(word, rank if n == 32 else kit.zext(32, n)(rank))

    def _symbol(self, name: str, inst: ir.Inst) -> int:
        try:
            return self.symbols[name]
        except KeyError:
            raise InvalidInput(f"undefined symbol '{name}'", where=place(inst)) from None

    # ---------------------------------------------------------------- registers
    def _read(self, reg: ir.Reg) -> Value:
        value = self.values.get(reg.name)
        if value is None:
            value = self.values[reg.name] = self._load_slot(reg)
        return value

    def _load_slot(self, reg: ir.Reg) -> Value:
        kit, n = self.kit, width(reg.type)
        slot = self.plan.slots.get(reg.name)
        if slot is None:  # read before any write on every path: an undefined value, fixed here to zero
            return kit.const(n, 0)
        p = kit.emit(f"getelementptr i8, ptr %warp, i64 {slot}")
        if n == 1:
            return kit.predicate(kit.emit(f"load i32, ptr {p}, align 4"))
        return kit.word(n, f"load <32 x i{n}>, ptr {p}, align 64")

    def _write_results(
        self, form: Form, pairs: list[tuple[OperandSpec, ir.Operand]], outcome: Any, guard: Value | None
    ) -> None:
        targets: list[tuple[ir.Reg | ir.Sink, str]] = []
        for spec, operand in pairs:
            if spec.form == "mem" or spec.name not in form.op.writes or spec.name in form.op.in_place:
                continue
            match operand:
                case ir.Sink() if form.type_of(spec.name) == "b128":
                    targets += [(operand, "b64")] * 2
                case ir.Wide(low, high):
                    targets += [(low, "b64"), (high, "b64")]
                case ir.Reg() | ir.Sink():
                    targets.append((operand, form.type_of(spec.name)))
                case ir.Pair(first, second):
                    targets += [(first, form.type_of(spec.names[0])), (second, form.type_of(spec.names[1]))]
                case ir.Vec(items):
                    targets += [(i, form.type_of(spec.name)) for i in items if isinstance(i, ir.Reg | ir.Sink)]
        if not targets:
            return
        words = outcome if isinstance(outcome, tuple) else (outcome,)
        for (target, kind), word in zip(targets, words, strict=False):
            if isinstance(target, ir.Reg):
                self._write(target, kind, word, guard)

    def _write(self, reg: ir.Reg, kind: str, word: Value, guard: Value | None) -> None:
        n = width(reg.type)
        if word.n < n:
            word = (self.kit.sext if is_signed(kind) else self.kit.zext)(word.n, n)(word)
        elif word.n > n:
            raise InvalidInput(f"register {reg.name} is too narrow for a {kind} result")
        if guard is not None:
            word = self.kit.select(n)(guard, word, self._read(reg))
        self.values[reg.name] = word
        self.written[reg.name] = None

    def _store_kept(self) -> None:
        kit, lanes = self.kit, None
        for name in self.written:
            if name not in self.region.keeps:
                continue
            value, slot = self.values[name], self.plan.slots[name]
            p = kit.emit(f"getelementptr i8, ptr %warp, i64 {slot}")
            if value.n == 1:
                bits = kit.mask_of(value)
                if self.plan.diverges:
                    old = kit.emit(f"load i32, ptr {p}, align 4")
                    flip = kit.emit(f"xor i32 {old}, {bits}")
                    changed = kit.emit(f"and i32 {flip}, %mask")
                    bits = kit.emit(f"xor i32 {old}, {changed}")
                kit.emit_void(f"store i32 {bits}, ptr {p}, align 4")
                continue
            t, text = f"<32 x i{value.n}>", value.name
            if self.plan.diverges:
                lanes = lanes or kit.emit("bitcast i32 %mask to <32 x i1>")
                old = kit.emit(f"load {t}, ptr {p}, align 64")
                text = kit.emit(f"select <32 x i1> {lanes}, {t} {text}, {t} {old}")
            kit.emit_void(f"store {t} {text}, ptr {p}, align 64")

    # ---------------------------------------------------------------- the end of a region
    def _end(self) -> str:
        end = self.region.end
        if end is None:
            return "0"
        kit = self.kit
        kit.site, kit.mask = end.site, "%mask"
        if end.form.op.effect is Effect.BARRIER:
            if awaits_cluster(end.form):
                return str(CLUSTER_BARRIER)
            words = [self._uniform(o, end.inst) for o in end.inst.operands]
            number = kit.emit(f"and i64 {words[0]}, 15")
            if len(words) == 1:
                return number
            count = kit.emit(f"shl i64 {words[1]}, 8")
            return kit.emit(f"or i64 {number}, {count}")
        guard = self._guard(end.inst)
        if guard is None:
            return "0"
        bits = kit.mask_of(guard)
        if self.options.measured and end.form.op.effect is Effect.BRANCH:
            measure_branch(kit, guard)
        if self.options.counters:
            kit.mask = kit.emit(f"and i32 %mask, {bits}")
            self._count_lanes(end.site)
        return kit.emit(f"zext i32 {bits} to i64")

    def _uniform(self, operand: ir.Operand, inst: ir.Inst) -> str:
        """A 32-bit operand that must be the same in all lanes: the first active lane's, as an i64."""
        if isinstance(operand, ir.Imm):
            return str(operand.value)
        kit, word = self.kit, self._scalar("u32", operand, inst)
        kit.externs["@llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1)"
        lane = kit.emit("call i32 @llvm.cttz.i32(i32 %mask, i1 true)")
        one = kit.emit(f"extractelement <32 x i32> {word.name}, i32 {lane}")
        return kit.emit(f"zext i32 {one} to i64")


def literal_bits(value: int, literal: str, kind: str) -> int:
    """Bits of an immediate for an operand of type `kind`: a double literal becomes an f32 where one is wanted."""
    if literal == "f64" and kind == "f32":
        number = struct.unpack("<d", struct.pack("<Q", value))[0]
        return float_bits(number, kind)
    return value
