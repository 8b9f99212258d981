"""From the step loop's calls to the typed events of `interp.hooks`.

The step loop is native; it calls one C function, made here, with addresses of the context and the warp frame. An
exception cannot pass through native code: it is kept, the function answers "stop", and the launch raises it
afterwards.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from interp.engine.traced.machine import OBSERVE_AFTER, OBSERVE_BARRIER, OBSERVE_BEFORE, OBSERVE_BRANCH
from interp.engine.traced.program import Address, Program, RowWord
from interp.hooks import Access, Barrier, Branch, Hooks, Instruction
from interp.runtime.layout import CTX, RANK_SHIFT, WARP
from ptx import ir

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)
_METHODS = ("before_instruction", "after_instruction", "on_read", "on_write", "on_branch", "on_barrier")
_DTYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


class Observer:
    """`address`: what the context's hook has to be; keep the object alive during the launch. `error`: what a hook
    raised."""

    def __init__(self, program: Program, hooks: Hooks) -> None:
        self.program, self.hooks = program, hooks
        self.error: BaseException | None = None
        self.wanted = frozenset(m for m in _METHODS if getattr(type(hooks), m) is not getattr(Hooks, m))
        self._function = _CALLBACK(self._call)
        pointer = ctypes.cast(self._function, ctypes.c_void_p).value
        self.address = int(pointer or 0) if self.wanted else 0

    def _call(self, ctx: int, warp: int, event: int, site: int, mask: int, extra: int) -> int:
        try:
            self._dispatch(ctx, warp, event, site, mask, extra)
        except BaseException as error:  # every kind: nothing may unwind through native code
            self.error = error
            return 1
        return 0

    def _dispatch(self, ctx: int, warp: int, event: int, site: int, mask: int, extra: int) -> None:
        wanted, hooks = self.wanted, self.hooks
        if event == OBSERVE_BEFORE:
            if "before_instruction" in wanted:
                hooks.before_instruction(self._instruction(ctx, warp, site, mask))
            if "on_read" in wanted or "on_write" in wanted:
                self._accesses(ctx, warp, site, mask)
        elif event == OBSERVE_AFTER:
            if "after_instruction" in wanted:
                hooks.after_instruction(self._instruction(ctx, warp, site, mask))
        elif event == OBSERVE_BRANCH:
            if "on_branch" in wanted:
                hooks.on_branch(Branch(*self._who(ctx, warp, site, mask), extra))
        elif event == OBSERVE_BARRIER and "on_barrier" in wanted:
            hooks.on_barrier(Barrier(*self._who(ctx, warp, site, mask), extra & 0xFFFF_FFFF, extra >> 32))

    def _who(self, ctx: int, warp: int, site: int, mask: int) -> tuple[tuple[int, int, int], int, int, int, ir.Inst]:
        x, y, z = (int(v) for v in _view(ctx + 8 * CTX["CTAID"], np.int64, 3))
        number = int(_view(warp + 8 * WARP["ID"], np.int64, 1)[0])
        return (x, y, z), number, mask, site, self.program.sites[site].inst

    def _instruction(self, ctx: int, warp: int, site: int, mask: int) -> Instruction:
        seen = self.program.sites[site]
        operands = tuple(None if row is None else _words(warp, row) for row in seen.sources)
        results = tuple(None if row is None else _words(warp, row) for row in seen.targets)
        return Instruction(*self._who(ctx, warp, site, mask), operands, results)

    def _accesses(self, ctx: int, warp: int, site: int, mask: int) -> None:
        for address in self.program.sites[site].addresses:
            if not address.size or not (address.reads or address.writes):
                continue
            where = _addresses(warp, address)
            if address.ranked:
                where = where + (_view(ctx + 8 * CTX["CLUSTER_CTARANK"], np.uint64, 1) << np.uint64(RANK_SHIFT))
            access = Access(*self._who(ctx, warp, site, mask), address.space, where, address.size)
            if address.reads and "on_read" in self.wanted:
                self.hooks.on_read(access)
            if address.writes and "on_write" in self.wanted:
                self.hooks.on_write(access)


def _view(address: int, dtype: Any, count: int) -> np.ndarray[Any, Any]:
    """A copy of `count` words at a host address."""
    return np.frombuffer(ctypes.string_at(address, count * np.dtype(dtype).itemsize), dtype)


def _words(warp: int, row: RowWord) -> np.ndarray[Any, Any]:
    word, n = row
    address = word - 1 if word & 1 else warp + word
    if n == 1:
        return (int(_view(address, np.uint32, 1)[0]) >> np.arange(32) & 1).astype(bool)
    return _view(address, _DTYPES[n], 32)


def _addresses(warp: int, address: Address) -> np.ndarray[Any, np.dtype[np.uint64]]:
    with np.errstate(over="ignore"):
        total = _words(warp, address.base) + _words(warp, address.offset)
    return np.asarray(total, np.uint64)
