"""What a driver adds to a module that it loads: functions of the device's runtime library, and the word that the
threads of a grid meet at.

`with_device_runtime(module)` gives functions that the text declares and nobody defines the bodies in
`device_runtime.ptx`:

malloc, free               a heap of 8 MiB, the driver's default size. Addresses are multiples of 16 and go upwards.
                           Freed bytes are used again once nothing is allocated any more; so a heap that is full here
                           may have room on hardware, and `malloc` traps there and does not answer 0.
cudaCGGetIntrinsicHandle, cudaCGSynchronize, cudaCGGetSize, cudaCGGetRank
                           cooperative groups as numba-cuda calls them: the grid; a group of several devices traps

CUDA C++ (`grid.sync()`) finds the address of its word in the registers `%envreg1` and `%envreg2`, upper and lower half:
they are replaced by that address. Every launch counts as cooperative; a grid with more CTAs than fit on the device
waits for ever, which is reported.

CUDA C++ Programming Guide, 'Dynamic Global Memory Allocation' and 'Cooperative Groups'; `cuda_device_runtime_api.h` and
`cooperative_groups/details/sync.h` of the toolkit for the signatures. Its instructions stand in no text of the user's:
they are executed and not counted (`ir.Inst.made`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from ptx import ir
from ptx.parse import parse

_TRAPS = {
    "malloc": "the device's heap of 8 MiB is full; freed memory is used again only when all is freed",
    "cudaCGGetIntrinsicHandle": "only the group of a grid is modelled, not that of several devices",
}
_GRID = "gpuemu_grid"
_HALVES = {"%envreg1": 1, "%envreg2": 0}
_WHY = "the address of the grid's barrier"
_ADDRESS, _PARTS = ir.Reg("%grid::", "b64"), (ir.Reg("%grid::lower", "b32"), ir.Reg("%grid::upper", "b32"))


@cache
def _library() -> ir.Module:
    return parse(Path(__file__).with_suffix(".ptx").read_text())


@cache
def defined_functions() -> frozenset[str]:
    """Functions that the library defines."""
    return frozenset(k.name for k in _library().kernels)


def with_device_runtime(module: ir.Module) -> ir.Module:
    """The module with what it needs of the library; the same object where it needs nothing."""
    missing = {k.name for k in module.kernels if not k.blocks and not k.is_entry} & defined_functions()
    kernels = [_made(k.name) if k.name in missing else _with_address(k) for k in module.kernels]
    if all(a is b for a, b in zip(kernels, module.kernels, strict=True)):
        return module
    used = {o.name for k in kernels for inst in _insts(k) for o in _symbols(inst)}
    variables = [v for v in _library().variables if v.name in used]
    return msgspec.structs.replace(module, kernels=tuple(kernels), variables=(*module.variables, *variables))


def _insts(kernel: ir.Kernel) -> Iterator[ir.Inst]:
    return (inst for block in kernel.blocks for inst in block.insts)


def _symbols(inst: ir.Inst) -> Iterator[ir.Sym]:
    for o in inst.operands:
        base = o.base if isinstance(o, ir.Mem) else o
        if isinstance(base, ir.Sym):
            yield base


def _made(name: str) -> ir.Kernel:
    """A function of the library, its instructions marked."""
    kernel = _library().kernel(name)
    why, trap = f"`{name}` of the device's runtime", _TRAPS.get(name, "")
    blocks = tuple(
        msgspec.structs.replace(
            b, insts=tuple(msgspec.structs.replace(i, made=trap if i.op == "trap" else why) for i in b.insts)
        )
        for b in kernel.blocks
    )
    return msgspec.structs.replace(kernel, blocks=blocks)


def _with_address(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with the address of the grid's word where it reads the registers that have it."""
    if not any(_half(inst) is not None for inst in _insts(kernel)):
        return kernel
    blocks = tuple(msgspec.structs.replace(b, insts=tuple(_addressed(b.insts))) for b in kernel.blocks)
    registers = kernel.registers | {r.name: r.type for r in (_ADDRESS, *_PARTS)}
    return msgspec.structs.replace(kernel, blocks=blocks, registers=registers)


def _half(inst: ir.Inst) -> int | None:
    """0 or 1 where the instruction reads the lower or upper half of the address."""
    source = inst.operands[-1] if inst.op == "mov" and inst.operands else None
    return _HALVES.get(source.name) if isinstance(source, ir.Special) else None


def _addressed(insts: tuple[ir.Inst, ...]) -> Iterator[ir.Inst]:
    for inst in insts:
        half = _half(inst)
        if half is None:
            yield inst
            continue
        yield ir.Inst("mov", (".u64",), (_ADDRESS, ir.Sym(_GRID)), inst.loc, None, _WHY)
        yield ir.Inst("mov", (".b64",), (ir.Vec(_PARTS), _ADDRESS), inst.loc, None, _WHY)
        yield msgspec.structs.replace(inst, operands=(inst.operands[0], _PARTS[half]))
