"""A fusion plan: which additions of a module are fused with which multiplications, and the module with that done.

An approximate division counts as a multiplication: the assembler's code for it ends with one, by the reciprocal.

A plan is written as one line, so that it can stand wherever `fmad` does, in replays too:

    plan:softmax 12<11 40<38 ?51;gelu

Per kernel: `12<11` fuses the addition at place 12 with the multiplication at place 11 (instructions counted from 0 in
text order); `?51` says that the assembler's choice for the addition at place 51 could not be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from ptx import ir
from ptx.errors import InvalidInput
from ptx.record import registers
from ptx.types import Kind, kind, width

_ROUNDED = frozenset({".rn", ".rz", ".rm", ".rp"})
_ITEM = re.compile(r"(\d+)<(\d+)\Z|\?(\d+)\Z", re.ASCII)
PREFIX = "plan:"
_OF_ONE_TEXT = "a plan belongs to one PTX text; fmad='plan' makes it anew"


@dataclass(frozen=True, slots=True)
class Fusions:
    """Of one kernel: addition → multiplication, by place, and additions whose fate is not known."""

    fused: Mapping[int, int]
    unknown: tuple[int, ...] = ()


Plan = Mapping[str, Fusions]
"""By kernel name; kernels with nothing to say are left out."""


def to_text(plan: Plan) -> str:
    """The plan as one line."""
    parts = []
    for name, f in plan.items():
        items = [f"{a}<{m}" for a, m in sorted(f.fused.items())] + [f"?{a}" for a in f.unknown]
        parts.append(" ".join([name, *items]))
    return PREFIX + ";".join(parts)


def from_text(text: str) -> Plan:
    """The plan of a line. InvalidInput when it is none."""
    plan: dict[str, Fusions] = {}
    for part in filter(None, text.removeprefix(PREFIX).split(";")):
        name, *items = part.split(" ")
        if name in plan:
            raise InvalidInput(f"the fusion plan names `{name}` twice")
        fused, unknown = {}, []
        for item in items:
            m = _ITEM.match(item)
            if m is None:
                raise InvalidInput(f"`{item}` in a fusion plan", help="an item is ADD<MUL or ?ADD, places of a kernel")
            if m[3] is not None:
                unknown.append(int(m[3]))
            else:
                fused[int(m[1])] = int(m[2])
        plan[name] = Fusions(fused, tuple(unknown))
    return plan


def bare(inst: ir.Inst, ops: tuple[str, ...]) -> str | None:
    """The floating type of an `add`, `sub` or `mul` without a rounding, which the assembler may fuse; else None."""
    if inst.op not in ops or _ROUNDED.intersection(inst.mods) or not inst.mods:
        return None
    type = inst.mods[-1].lstrip(".")
    return type if kind(type) in (Kind.FLOAT, Kind.PACKED) and width(type) <= 64 else None


def _product(inst: ir.Inst) -> str | None:
    """The type of a product that an addition may take in: a bare multiplication, or an approximate division, whose last
    step is one; else None."""
    if inst.op == "div" and (".approx" in inst.mods or ".full" in inst.mods):
        return "f32"
    return bare(inst, ("mul",))


def multiplies(kernel: ir.Kernel) -> bool:
    """Whether a kernel has a product that could be fused at all."""
    return any(_product(inst) for block in kernel.blocks for inst in block.insts)


def pairs(kernel: ir.Kernel) -> Iterator[tuple[int, list[int], bool]]:
    """(place of a bare addition that the assembler may fuse, places of the bare multiplications it can be fused with
    here, whether a product may also come to it by other ways: through copies, signs and choices, or from several
    places)."""
    insts = [inst for block in kernel.blocks for inst in block.insts]
    products = _products(insts)
    if not products:
        return
    defined: dict[str, list[int]] = {}
    for place, inst in enumerate(insts):
        for r in _written(inst):
            defined.setdefault(r.name, []).append(place)
    start = 0
    for block in kernel.blocks:
        for place in range(start, start + len(block.insts)):
            inst = insts[place]
            type = bare(inst, ("add", "sub"))
            if type is None:
                continue
            makers = [_maker(o.name, start, place, defined) for o in inst.operands[1:3] if isinstance(o, ir.Reg)]
            found = [
                m for m in dict.fromkeys(makers)
                if m is not None and _product(insts[m]) == type and _stays(insts[m], m, start, place, defined)
            ]  # fmt: skip
            direct = {insts[m].operands[0] for m in found}
            more = any(isinstance(o, ir.Reg) and o.name in products and o not in direct for o in inst.operands[1:3])
            if found or more:
                yield place, found, more
        start += len(block.insts)


def _maker(name: str, start: int, place: int, defined: Mapping[str, list[int]]) -> int | None:
    """The place that a register's value at `place` comes from, in the block that begins at `start` or, where it is the
    only one, anywhere; None when several may be."""
    places = defined.get(name, [])
    before = [p for p in places if start <= p < place]
    return before[-1] if before else places[0] if len(places) == 1 else None


def _stays(mul: ir.Inst, at: int, start: int, place: int, defined: Mapping[str, list[int]]) -> bool:
    """Whether a multiplication's factors still hold at a later place, and it is executed by all lanes that come to."""
    if mul.guard is not None:
        return False
    for r in (r for o in mul.operands[1:] for r in registers(o)):
        places = defined.get(r.name, [])
        if at >= start:
            if any(at <= p < place for p in places):
                return False
        elif len(places) > 1:
            return False
    return True


_WAYS = frozenset({"mov", "neg", "abs", "selp", "slct", "prmt", "cvt", "and", "or", "xor", "shl", "shr"})
"""Instructions that may hand a product on unchanged, as the assembler sees it."""


def _products(insts: list[ir.Inst]) -> set[str]:
    """Registers that may hold a bare product, itself or as it came through other registers or local memory."""
    found = {r.name for i in insts if _product(i) for r in _written(i)}
    ways = [i for i in insts if i.op in _WAYS or (i.op in ("min", "max") and len(set(i.operands[1:3])) == 1)]
    local = [i for i in insts if i.op in ("ld", "st") and (".local" in i.mods or ".param" in i.mods)]
    grown = bool(found)
    while grown:
        before = len(found)
        kept = any(i.op == "st" and any(r.name in found for r in registers(i.operands[1])) for i in local)
        for inst in (*ways, *((i for i in local if i.op == "ld") if kept else ())):
            if inst.op == "ld" or any(r.name in found for o in inst.operands[1:] for r in registers(o)):
                found.update(r.name for r in _written(inst))
        grown = len(found) > before
    return found


def _written(inst: ir.Inst) -> list[ir.Reg]:
    first = inst.operands[0] if inst.operands else None
    return [] if first is None or isinstance(first, ir.Mem | ir.TensorMem) else list(registers(first))


def apply(module: ir.Module, plan: Plan) -> ir.Module:
    """The module with the additions of the plan as `fma`. InvalidInput when the plan is not one of this module."""
    known = {k.name for k in module.kernels}
    for name in plan:
        if name not in known:
            raise InvalidInput(f"the fusion plan names `{name}`, which the module does not have", help=_OF_ONE_TEXT)
    kernels = tuple(_fuse(k, plan[k.name]) if k.name in plan else k for k in module.kernels)
    return msgspec.structs.replace(module, kernels=kernels)


def _fuse(kernel: ir.Kernel, fusions: Fusions) -> ir.Kernel:
    possible = {place: multiplications for place, multiplications, _ in pairs(kernel)}
    insts = [inst for block in kernel.blocks for inst in block.insts]
    for place in fusions.unknown:
        if place >= len(insts) or not bare(insts[place], ("add", "sub")):
            raise InvalidInput(f"the fusion plan: place {place} of `{kernel.name}` is no addition", help=_OF_ONE_TEXT)
    for addition, multiplication in fusions.fused.items():
        if multiplication not in possible.get(addition, []):
            raise InvalidInput(
                f"the fusion plan fuses places {addition} and {multiplication} of `{kernel.name}`, which cannot be",
                help=_OF_ONE_TEXT,
            )
    declared = dict(kernel.registers)
    place, blocks = 0, []
    for block in kernel.blocks:
        made: list[ir.Inst] = []
        for inst in block.insts:
            if place in fusions.fused:
                made += _fma(inst, insts[fusions.fused[place]], place, declared)
            else:
                made.append(inst)
            place += 1
        blocks.append(ir.Block(block.labels, tuple(made)))
    return msgspec.structs.replace(kernel, registers=declared, blocks=tuple(blocks))


def _fma(addition: ir.Inst, product: ir.Inst, place: int, declared: dict[str, str]) -> Iterator[ir.Inst]:
    """A fused addition: `a * b + c`, with a sign changed where it was a subtraction."""
    type, at, guard = addition.mods[-1], addition.loc, addition.guard
    a, b = product.operands[1:3]
    if product.op == "div":
        factors = tuple(_register(f"%fused::{place}::{c}", type[1:], declared) for c in "ab")
        mods = (".factors", *product.mods)
        yield ir.Inst("div", mods, (ir.Pair(*factors), a, b), at, guard, "the factors of a fused division")
        a, b = factors
    on_left = addition.operands[1] == product.operands[0]
    other = addition.operands[2 if on_left else 1]
    if addition.op == "sub":
        changed = other if on_left else a
        negated = _register(f"%fused::{place}", f"b{width(type)}", declared)
        yield _negation(negated, changed, type, addition)
        if on_left:
            other = negated
        else:
            a = negated
    mods = (".rn", *(m for m in addition.mods if m in (".ftz", ".sat")), type)
    yield ir.Inst("fma", mods, (addition.operands[0], a, b, other), at, guard)


def _register(name: str, type: str, declared: dict[str, str]) -> ir.Reg:
    declared[name] = type
    return ir.Reg(name, type)


def _negation(target: ir.Reg, value: ir.Operand, type: str, addition: ir.Inst) -> ir.Inst:
    """A sign changed as an operand's is in machine code: of a double that is a NaN it is not."""
    why = "the sign of a fused subtraction"
    if type == ".f64":
        return ir.Inst("neg", (type,), (target, value), addition.loc, addition.guard, why)
    n = width(type)
    sign = sum(1 << i for i in range(_element(type) - 1, n, _element(type)))
    return ir.Inst("xor", (f".b{n}",), (target, value, ir.Imm(sign)), addition.loc, addition.guard, why)


def _element(type: str) -> int:
    return width(type) // 2 if type.endswith("x2") else width(type)
