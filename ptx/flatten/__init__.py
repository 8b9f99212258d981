"""A kernel with everything that it calls → one kernel of plain blocks, guarded branches and registers.

    flatten(module, kernel) -> ir.Kernel      the same object where there is nothing to do

Both engines execute kernels whose control transfers are `bra`, `ret`, `exit` and `trap`. What is richer is said in
these here, before planning, so that liveness, uniformity, divergence, counters and findings need no second mechanism:

calls.py     direct and indirect calls: a function's body stands once, with names of its own; a call notes where it came
             from and branches; `ret` branches back. Recursive functions keep registers and variables in stack frames.
branches.py  `brx.idx`, and the ways back: comparisons and branches
barriers.py  `bar.red`, and barriers with a guard or a number in a register
dynamic.py   `alloca` and its kin: local memory with a register that says how much of it is taken
halves.py    registers of 128 bits become two of 64
promote.py   `.param` variables of calls that are only read and written whole become registers
code.py      the line of instructions and labels that these write

Instructions that stand in no text have `made` set: they are executed, but not counted as the kernel's.
"""

from __future__ import annotations

from ptx import ir
from ptx.flatten.barriers import guarded_barrier, numbered, reduces
from ptx.flatten.calls import link, reached
from ptx.flatten.dynamic import is_dynamic
from ptx.flatten.halves import halved
from ptx.flatten.promote import promote

__all__ = ["flatten", "reached"]


def flatten(module: ir.Module, kernel: ir.Kernel) -> ir.Kernel:
    """The kernel as it can be executed. `kernel`: an entry of a verified `module`.

    Raises InvalidInput for a call that does not fit its function, Unsupported for one that is not modelled."""
    if any(_is_rich(inst) for block in kernel.blocks for inst in block.insts):
        kernel = promote(link(module, kernel))
    return halved(kernel)


def _is_rich(inst: ir.Inst) -> bool:
    rich = inst.op in ("call", "brx") or is_dynamic(inst) or reduces(inst)
    return rich or guarded_barrier(inst) or numbered(inst)
