"""Barriers that reduce a predicate (`bar.red`), as three instructions: contribute, wait, take the answer. A guarded
barrier becomes one that lanes without the guard branch round; one whose number is in a register has the number checked
before it.

PTX ISA 'bar.red': all threads that arrive at the barrier get the number of those whose predicate is true (`.popc`),
or whether all (`.and`) or any (`.or`) are. The runtime counts contributions until the barrier lets go, and leaves the
outcome in the warps that waited there (interp/runtime/named_barrier.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from ptx import ir

_WHY = "bar.red"


def reduces(inst: ir.Inst) -> bool:
    """Whether an instruction is a barrier with a reduction."""
    return inst.op in ("bar", "barrier") and ".red" in inst.mods


def guarded_barrier(inst: ir.Inst) -> bool:
    """Whether an instruction is a barrier of the CTA that only some lanes may come to."""
    waits = inst.op in ("bar", "barrier") and (".sync" in inst.mods or ".red" in inst.mods)
    return waits and inst.guard is not None and ".warp" not in inst.mods


def numbered(inst: ir.Inst) -> bool:
    """Whether an instruction is a barrier of the CTA whose number is in a register."""
    if inst.op not in ("bar", "barrier") or inst.made or not {".sync", ".red", ".arrive"} & {*inst.mods}:
        return False
    at = 1 if ".red" in inst.mods else 0
    return not {".warp", ".cluster"} & {*inst.mods} and isinstance(inst.operands[at], ir.Reg)


def check_number(inst: ir.Inst) -> ir.Inst:
    """What stands before such a barrier: there are barriers 0 to 15."""
    number = inst.operands[1 if ".red" in inst.mods else 0]
    return ir.Inst("bar", (".check",), (number,), inst.loc, None, "the number of a barrier")


def reduce_at_barrier(inst: ir.Inst) -> Iterator[ir.Inst]:
    """What a `bar.red d, a{, b}, c` without a guard becomes. The wait in the middle counts as the instruction."""
    target, number, *threads, value = inst.operands
    operation = next(m for m in inst.mods if m in (".popc", ".and", ".or"))
    waits = tuple(m for m in inst.mods if m in (".cta", ".aligned"))
    yield ir.Inst("bar", (".contribute",), (number, value), inst.loc, None, _WHY)
    if inst.op == "bar":
        yield ir.Inst("bar", (*waits, ".sync"), (number, *threads), inst.loc)
    else:
        mods = tuple(m for m in (".cta", ".sync", ".aligned") if m == ".sync" or m in waits)
        yield ir.Inst("barrier", mods, (number, *threads), inst.loc)
    yield ir.Inst("bar", (".outcome", operation), (target,), inst.loc, None, _WHY)
