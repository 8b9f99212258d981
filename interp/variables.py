"""Where a module's variables live: the address of every name that an instruction may use.

* kernel parameters: byte offset in the parameter block;
* `.shared`: address in the CTA's window, static variables first, then the one dynamic array (`.extern .shared`);
* `.local`: offset in each thread's local memory;
* `.global` and `.const`: device addresses from `memory.VARIABLES_BASE` and `CONSTANTS_BASE` on, backed by host
  bytes that live as long as the module, initialised as the PTX says;
* functions: numbers from `memory.FUNCTIONS_BASE` on, for pointers to functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from interp.memory import CONSTANTS_BASE, FUNCTIONS_BASE, GUARD, VARIABLES_BASE, Allocation
from interp.runtime.layout import SHARED_BASE
from ptx import ir
from ptx.errors import InvalidInput, LaunchFailure
from ptx.types import width


@dataclass(frozen=True, slots=True)
class Globals:
    """Module-scope `.global` and `.const` variables: addresses, the allocations that back them, and (name, bytes as
    elements of the variable's type, address) of each."""

    symbols: dict[str, int]
    allocations: tuple[Allocation, ...]
    storage: tuple[np.ndarray[Any, Any], ...]
    named: tuple[tuple[str, np.ndarray[Any, Any], int], ...]


@dataclass(frozen=True, slots=True)
class Places:
    """Names of one kernel: `symbols` by address or offset, those of shared variables among them, bytes of static shared
    and of local memory a thread."""

    symbols: dict[str, int]
    shared_names: frozenset[str]
    static_shared: int
    local: int


def _align(value: int, to: int) -> int:
    return (value + to - 1) // to * to


def place_globals(module: ir.Module) -> Globals:
    """Give module-scope variables addresses and bytes."""
    symbols = {k.name: FUNCTIONS_BASE + 256 * i for i, k in enumerate(module.kernels)}
    allocations, storage, named = [], [], []
    wanted = [v for v in module.variables if v.space in (".global", ".const") and not v.extern]
    for space, at in ((".global", VARIABLES_BASE), (".const", CONSTANTS_BASE)):
        for v in wanted:
            if v.space == space:
                at = _align(at, max(v.align, 256))
                symbols[v.name] = at
                at += v.size + GUARD
    for v in wanted:
        try:
            data = np.zeros(max(v.size, 1), np.uint8)
        except (MemoryError, ValueError):
            raise LaunchFailure(f"variable `{v.name}` has {v.size} bytes, more than this machine holds") from None
        if v.init is not None:
            data[: len(v.init)] = np.frombuffer(v.init, np.uint8)
        word = 4 if width(v.type) == 32 else 8  # bytes of an address in it, the lower ones
        for offset, name, addend in v.relocations:
            if name not in symbols:
                raise InvalidInput(
                    f"`{v.name}` holds the address of `{name}`, which is no function and no .global or .const variable",
                    help="a variable that is `.extern` needs the text that defines it: Module.from_ptx([text, other])",
                )
            at = symbols[name] + addend & (1 << 64) - 1
            data[offset : offset + word] = np.frombuffer(at.to_bytes(8, "little")[:word], np.uint8)
        low = symbols[v.name]
        host = int(data.__array_interface__["data"][0])
        if v.size:
            allocations.append(Allocation(low, low + v.size, host, v.space == ".global", ()))
            item = min(width(v.type) // 8, 8)
            named.append((v.name, data.view(f"u{item}") if v.size % item == 0 else data, low))
        storage.append(data)
    return Globals(symbols, tuple(allocations), tuple(storage), tuple(named))


def place_kernel(module: ir.Module, kernel: ir.Kernel, outer: Globals) -> Places:
    """Addresses of everything that the kernel's instructions may name."""
    symbols = dict(outer.symbols)
    symbols.update({p.name: p.offset for p in kernel.params})
    variables = [*module.variables, *kernel.variables]
    shared = local = 0
    for v in variables:
        if v.space == ".shared" and not v.extern:
            shared = _align(shared, v.align)
            symbols[v.name] = SHARED_BASE + shared
            shared += v.size
        elif v.space == ".local":
            local = _align(local, v.align)
            symbols[v.name] = local
            local += v.size
    dynamic = [v for v in variables if v.space == ".shared" and v.extern]
    if dynamic:
        shared = _align(shared, max(v.align for v in dynamic))
        symbols.update({v.name: SHARED_BASE + shared for v in dynamic})
    names = frozenset(v.name for v in variables if v.space == ".shared")
    return Places(symbols, names, shared, _align(local, 16))
