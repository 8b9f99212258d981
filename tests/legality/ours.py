"""What the front end and the verifier say of single lines of a text."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interp.ops import ISA
from ptx import ir
from ptx.carry import with_carry_flag
from ptx.errors import GpuemuError
from ptx.parse import parse
from ptx.spaces import with_spaces
from ptx.verify import verify


class Lines:
    """Lines parsed once, to be judged for many targets and versions. `unreadable`: index → why it does not parse, or
    has no record. The latter, too, depends on neither, and looking for a record that is not there takes long."""

    def __init__(self, lines: list[str], write: Callable[[list[str]], str], first: int) -> None:
        self.lines, self._first = lines, first
        self.unreadable: dict[int, str] = {}
        now = list(lines)
        while True:
            try:
                module = _parsed(write(now))
                break
            except GpuemuError as error:
                where = error.diagnostic.where
                at = (where.ptx_line or 0) - first if where else -1
                if not 0 <= at < len(now) or not now[at]:
                    raise
                self.unreadable[at] = error.diagnostic.what
                now[at] = ""
        unknown: dict[int, str] = {}
        for inst in (i for kernel in module.kernels for block in kernel.blocks for i in block.insts):
            try:
                ISA.match(inst)
            except GpuemuError as error:
                unknown[(inst.loc.ptx_line or 0) - first] = error.diagnostic.what
        self.unreadable |= unknown
        self.module: ir.Module = _parsed(write(["" if i in unknown else line for i, line in enumerate(now)]))

    def refused(self, version: tuple[int, int], target: str) -> dict[int, str]:
        """Index of each line that is refused → why."""
        module = msgspec.structs.replace(self.module, version=version, target=target)
        out = dict(self.unreadable)
        for d in verify(module, ISA):
            if d.where is None or d.where.ptx_line is None:
                raise AssertionError(d)
            out.setdefault(d.where.ptx_line - self._first, d.what)
        return out


def _parsed(text: str) -> ir.Module:
    return with_spaces(with_carry_flag(parse(text)))
