"""What the PTX text itself says: virtual registers, how many of them live at once, instructions by class.

Virtual registers are unlimited and mostly assigned once each; their number says how much code there is, not how many
registers a thread will hold. The most that *live* at one instruction is the better virtual number: in the order in
which the PTX stands, no machine could do with fewer. ptxas orders anew, keeps what a whole warp shares in registers of
another kind and computes values twice, so it may still take fewer (a matmul of the tests: 115 live, 80 to 116 taken).

Liveness needs to know what an instruction reads and writes. The instruction table says it for every form that is
modelled. For the rest a rule stands in: an operand in first place that is a register, vector or pair is written, all
others are read (PTX writes destinations first; stores and the like have an address there). Such instructions are
counted as `unknown` and named.

Units of 32 bits: a 64-bit register takes two; 16-bit ones take one each, since ptxas rarely packs two of them.
Predicates have registers of their own and are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from ptx import cache, ir, types
from ptx.accounting.metrics import UNKNOWN, WIDTHS
from ptx.analysis.liveness import liveness
from ptx.carry import FLAG
from ptx.errors import InvalidInput, Unsupported
from ptx.isa import Cost, Isa
from ptx.read import read
from ptx.record import registers
from ptx.syntax import Declaration, Function, RangeItem, Scope
from ptx.variables import read_words

_UNITS = {"pred": 0, "b16": 1, "b32": 1, "b64": 2, "b128": 4}


@dataclass(frozen=True, slots=True)
class Virtual:
    """`metrics`: the numbers of level 'virtual'. `unknown`: opcode -> times, of what the table does not have. `peak`:
    the instruction at which most registers live, None in a kernel without code."""

    metrics: dict[str, int]
    unknown: dict[str, int]
    peak: ir.Inst | None


def count_virtual(text: str, kernel: ir.Kernel, isa: Isa) -> Virtual:
    """The virtual numbers of one kernel of a PTX text."""
    metrics = {f"ptx__registers_declared_{w}": n for w, n in _declared(text, kernel.name).items()}
    used = [type for name, type in kernel.registers.items() if name != FLAG.name]
    metrics |= {f"ptx__registers_used_{w}": sum(_width(t) == w for t in used) for w in WIDTHS}
    classes, unknown = _classes(kernel, isa)
    units, predicates, peak = _most_live(kernel, isa)
    metrics |= {
        "ptx__registers_live_max": units,
        "ptx__predicates_live_max": predicates,
        "ptx__inst": sum(classes.values()),
        **{f"ptx__inst_{name}": n for name, n in classes.items()},
    }
    return Virtual(metrics, unknown, peak)


def _width(type: str) -> str:
    return "pred" if type == "pred" else f"b{max(types.width(type), 16)}"


def _classes(kernel: ir.Kernel, isa: Isa) -> tuple[dict[str, int], dict[str, int]]:
    classes = {**{c.value: 0 for c in Cost}, UNKNOWN: 0}
    unknown: dict[str, int] = {}
    for inst in instructions(kernel):
        try:
            classes[isa.match(inst).op.cost.value] += 1
        except (Unsupported, InvalidInput):
            classes[UNKNOWN] += 1
            unknown[inst.opcode] = unknown.get(inst.opcode, 0) + 1
    return classes, unknown


def instructions(kernel: ir.Kernel) -> Iterator[ir.Inst]:
    """All instructions of a kernel in text order."""
    return (inst for block in kernel.blocks for inst in block.insts)


def _most_live(kernel: ir.Kernel, isa: Isa) -> tuple[int, int, ir.Inst | None]:
    """(most 32-bit units, most predicates, the first instruction with the most units)."""
    live = live_registers(kernel, isa)
    most = max((units for units, _ in live), default=0)
    peak = next((inst for inst, (units, _) in zip(instructions(kernel), live, strict=True) if units == most), None)
    return most, max((predicates for _, predicates in live), default=0), peak


_PREDICATE = 1 << 32


def live_registers(kernel: ir.Kernel, isa: Isa) -> tuple[tuple[int, int], ...]:
    """(32-bit units, predicates) that are live at each instruction of a kernel, in text order.

    Weights of registers are units, and predicates above bit 32, so that one running sum counts both."""
    effects = {id(inst): reads_writes(inst, isa) for inst in instructions(kernel)}
    weights = {name: _UNITS[_width(type)] for name, type in kernel.registers.items()}
    weights |= {n: _PREDICATE for n, type in kernel.registers.items() if type == "pred" and n != FLAG.name}
    found = liveness(kernel, lambda inst: effects[id(inst)])
    out: list[tuple[int, int]] = []
    for number, block in enumerate(kernel.blocks):
        here: list[tuple[int, int]] = []
        total = sum(weights.get(n, 0) for n in found.live_out[number])
        for index, live in found.walk_back(number):
            reads, writes = (frozenset(names) for names in effects[id(block.insts[index])])
            # A value that nobody reads still needs a register to be written to; a source may share with a result.
            after = total + sum(weights.get(n, 0) for n in writes - live)
            before = total - sum(weights.get(n, 0) for n in writes & live)
            before += sum(weights.get(n, 0) for n in reads if n not in live or n in writes)
            here.append((max(after % _PREDICATE, before % _PREDICATE), max(after, before) // _PREDICATE))
            needs, kills = (frozenset(names) for names in found.step(number, index))
            total -= sum(weights.get(n, 0) for n in kills & live)
            total += sum(weights.get(n, 0) for n in needs if n not in live or n in kills)
        out += reversed(here)
    return tuple(out)


def reads_writes(inst: ir.Inst, isa: Isa) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the registers that an instruction reads and writes, its guard not included; by the rule of this module
    where the table does not know it."""
    try:
        return isa.reads_writes(inst)
    except (Unsupported, InvalidInput):
        pass
    reads: list[str] = []
    writes: list[str] = []
    for place, operand in enumerate(inst.operands):
        written = place == 0 and isinstance(operand, ir.Reg | ir.Part | ir.Vec | ir.Pair)
        (writes if written else reads).extend(r.name for r in registers(operand))
    return tuple(reads), tuple(writes)


def _declared(text: str, kernel: str) -> dict[str, int]:
    """Registers that the `.reg` lines of a function declare, by width. Kept on disk: it means parsing the text."""
    key = cache.digest(_DECLARED, text, kernel)
    if (data := cache.get("declared", key)) is not None:
        return msgspec.msgpack.decode(data, type=dict[str, int])
    counts = _count_declared(text, kernel)
    cache.put("declared", key, msgspec.msgpack.encode(counts))
    return counts


_DECLARED = "declared 1"


def _count_declared(text: str, kernel: str) -> dict[str, int]:
    counts = dict.fromkeys(WIDTHS, 0)

    def walk(statements: list[Any]) -> None:
        for s in statements:
            if isinstance(s, Scope):
                walk(s.statements)
            elif isinstance(s, Declaration):
                words = read_words(s.words)
                if words.space != ".reg":
                    continue
                for item in s.items:
                    many = int(str(item.text).partition("<")[2].rstrip("> ")) if isinstance(item, RangeItem) else 1
                    counts[_width(words.type)] += many * max(words.vector, 1)

    for item in read(text):
        if isinstance(item, Function) and str(item.name) == kernel and item.body is not None:
            walk(item.body)
    return counts
