"""One kernel on one target, all numbers: `account(text, target, isa) -> Account | NotAvailable`.

The tools' part is cached by content (`assemble.py`); the rest is recomputed, since it takes milliseconds and depends on
the instruction table. `metrics` is flat, name -> number, so that two accounts compare key by key; a metric that could
not be found is absent, and `missing` says why.
"""

from __future__ import annotations

import msgspec

from ptx import ir
from ptx.accounting import sass
from ptx.accounting.assemble import Assembled, NotAvailable, assemble
from ptx.accounting.metrics import BY_NAME
from ptx.accounting.occupancy import largest_block, occupancy
from ptx.accounting.resources import physical, read_max_threads
from ptx.accounting.virtual import count_virtual
from ptx.decode import decode
from ptx.device import device
from ptx.errors import InternalError, InvalidInput
from ptx.isa import Isa


class Peak(msgspec.Struct, frozen=True):
    """Where the most registers live."""

    ptx_line: int
    file: str | None
    line: int | None


class Account(msgspec.Struct, frozen=True, tag="account", tag_field="is"):
    """The numbers of a kernel on a target; see `ptx.accounting.metrics`.

    `assembled_for`: the architecture given to the assembler (`sm_90a` for a text that needs it). `limiters`: what keeps
    occupancy from being higher. `unknown`: PTX opcodes that the instruction table lacks, `unclassified`: machine
    opcodes that the class table lacks, both with their numbers. `missing`: metric -> why it is not there.
    """

    kernel: str
    target: str
    assembled_for: str
    assembler: str
    metrics: dict[str, int | float]
    peak: Peak | None
    limiters: tuple[str, ...] = ()
    unknown: dict[str, int] = {}
    unclassified: dict[str, int] = {}
    missing: dict[str, str] = {}


class Absent(msgspec.Struct, frozen=True, tag="not available", tag_field="is"):
    """A kernel that has no account on a target, and why."""

    kernel: str
    target: str
    reason: str


def entry_of(module: ir.Module, name: str | None = None) -> ir.Kernel:
    """The entry of that name, or the only one. Raises InvalidInput."""
    entries = [k for k in module.kernels if k.is_entry]
    for kernel in entries:
        if kernel.name == name or (name is None and len(entries) == 1):
            return kernel
    known = ", ".join(k.name for k in entries) or "none"
    if name is None:
        raise InvalidInput(f"the PTX has {len(entries)} entries", help=f"name one of them: {known}")
    raise InvalidInput(f"the PTX has no entry '{name}'", help=f"entries: {known}")


def account(
    text: str,
    target: str,
    isa: Isa,
    *,
    kernel: str | None = None,
    threads: int | None = None,
    shared: int = 0,
    fmad: bool = True,
) -> Account | Absent:
    """Everything that is known about a kernel on a target without running it.

    `kernel`: the entry, where the text has several. `threads`: of a CTA, where the code does not fix them (`.reqntid`);
    `shared`: bytes of dynamic shared memory: both only matter to occupancy. `fmad`: whether ptxas may contract.
    Raises what `decode` raises for a text that is not PTX, and Unsupported without the tools.
    """
    module = decode(text)
    entry = entry_of(module, kernel)
    limits = device(target)
    assembled = assemble(text, module, target, fmad)
    if isinstance(assembled, NotAvailable):
        return Absent(entry.name, target, assembled.reason)
    virtual = count_virtual(text, entry, isa)
    count, code_bytes = _machine(assembled, entry.name)
    metrics: dict[str, int | float] = {
        **virtual.metrics,
        **physical(assembled, entry.name),
        "launch__shared_mem_per_block_dynamic": shared,
        "launch__shared_mem_per_block_driver": limits.reserved,
        "sass__code_bytes": code_bytes,
        "sass__inst": count.total,
        **{f"sass__inst_{name}": n for name, n in count.classes.items()},
    }
    missing: dict[str, str] = {}
    fits = largest_block(limits, int(metrics["launch__registers_per_thread"]))
    allowed = read_max_threads(assembled.attributes, entry.name)
    metrics["ptxas__max_threads"] = fits if allowed is None else min(fits, allowed)
    size = _block_size(entry, threads)
    limiters: tuple[str, ...] = ()
    if size is None:
        for name in (m.name for m in BY_NAME.values() if m.level == "occupancy"):
            missing[name] = "the kernel does not fix its block size, and none was given"
    else:
        static = int(metrics["launch__shared_mem_per_block_static"])
        held = occupancy(limits, size, int(metrics["launch__registers_per_thread"]), static + shared)
        metrics |= held.metrics()
        limiters = held.limiters
    if unnamed := [name for name in metrics if name not in BY_NAME]:
        raise InternalError(f"numbers without a row in the table of metrics: {', '.join(unnamed)}")
    return Account(
        kernel=entry.name,
        target=target,
        assembled_for=assembled.target,
        assembler=f"{assembled.assembler}, {assembled.release}",
        metrics={name: metrics[name] for name in BY_NAME if name in metrics},
        peak=_peak(virtual.peak),
        limiters=limiters,
        unknown=virtual.unknown,
        unclassified=count.unclassified,
        missing=missing,
    )


def _machine(assembled: Assembled, name: str) -> tuple[sass.Count, int]:
    if name not in assembled.sass:
        raise InternalError(f"nvdisasm lists no function '{name}'", notes=tuple(assembled.sass))
    size, instructions = assembled.sass[name]
    return sass.count(instructions), size


def _block_size(entry: ir.Kernel, given: int | None) -> int | None:
    required = entry.directives.get(".reqntid")
    if required is None:
        return given
    size = 1
    for n in required:
        size *= n
    if given not in (None, size):
        raise InvalidInput(
            f"a block of {given} threads: '{entry.name}' was compiled with .reqntid {', '.join(map(str, required))}"
        )
    return size


def _peak(inst: ir.Inst | None) -> Peak | None:
    if inst is None:
        return None
    user = inst.loc.user
    return Peak(inst.loc.ptx_line, user.file if user else None, user.line if user else None)
