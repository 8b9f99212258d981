"""The kit that writes Python: a word is a name, an operation is a line of source, the whole a *handler* for one form.

A handler executes one instruction for one warp. numba compiles it (`interp.engine.traced.handlers`), so the text
keeps to what numba compiles quickly and exactly: calls of the typed words of `interp.kits.words`, one loop over the
32 lanes, no branches.

    def handler(ctx, warp, site, mask, ops):
        d0 = row(warp, ops, 2)
        r0 = at32(row(warp, ops, 0))
        r1 = at32(row(warp, ops, 1))
        t0 = room32()
        for i in range(32):
            v1 = r0[i]
            v2 = r1[i]
            v3 = add32(v1, v2)
            t0[i] = v3
        keep32(d0, t0, mask)

It depends on the form and on the widths of the registers, not on which registers they are: `ops` is the address of
the instruction's operand table (rows, then runtime functions). Results go to stack rows first and are kept in the
lanes of the mask at the end, so that the loops are free of aliasing and become vector code.

A runtime function (memory, warp and lane functions) needs whole vectors, so a call ends a loop and starts another: a
meaning becomes *segments*, each a loop and the call after it. A value that a later segment uses gets a row of its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from interp.kits.llvm import DIMENSIONS, SPACE_CODES
from interp.kits.words import NUMPY
from interp.runtime.functions import LANE_FUNCTIONS
from interp.runtime.layout import CTX, WARP
from ptx.errors import InternalError, Unsupported

BYTES = {1: 32, 8: 32, 16: 64, 32: 128, 64: 256}
"""Bytes of a word in a call buffer; a predicate is a 32-bit lane mask in its first four."""
_FULL = 0xFFFF_FFFF


@dataclass(eq=False)
class Word:
    """A word of n bits. Exactly one of: `const`, its value; `scalar`, a name valid everywhere and the same in all
    lanes; `row`, the name of a vector (for a predicate: of a lane mask); `local`, a name inside the loop of
    `segment`."""

    n: int
    const: int | None = None
    scalar: str | None = None
    row: str | None = None
    local: str | None = None
    segment: int = 0
    spilled: str | None = None


@dataclass
class _Segment:
    """Lines before a loop, in it and after it; `names`: of words already at hand in the loop."""

    before: list[str] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)


class PythonKit:
    """One instance a handler."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.start: list[str] = []
        self.segments = [_Segment()]
        self.finish: list[str] = []
        self.constants: dict[str, Any] = {}
        self.operands = 0
        self.symbols: list[str] = []
        self.count = 0
        self._kept: list[Word] = []  # names are by identity: words must stay alive

    # ---------------------------------------------------------------- text
    def text(self) -> str:
        """The handler's source."""
        lines = list(self.start)
        for s in self.segments:
            lines += s.before
            if s.lanes:
                lines.append("for i in range(32):")
                lines += ["    " + line for line in s.lanes]
            lines += s.after
        lines += self.finish
        offset = self.operands
        body = "\n".join("    " + line for line in lines).replace("@SYMBOL", str(offset))
        return f"def handler(ctx, warp, site, mask, ops):\n{body or '    pass'}\n"

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    @property
    def now(self) -> _Segment:
        return self.segments[-1]

    def use(self, word: Word) -> str:
        """The name of a word inside the current loop."""
        if word.const is not None:
            return self._constant(word.n, word.const)
        if word.scalar is not None:
            return word.scalar
        known = self.now.names.get(id(word))
        if known is not None:
            return known
        if word.row is not None:
            text = f"bit({word.row}, i)" if word.n == 1 else f"{word.row}[i]"
        else:
            text = self._spill(word)
        local = self.name("v")
        self.now.lanes.append(f"{local} = {text}")
        self.now.names[id(word)] = local
        self._kept.append(word)
        return local

    def _spill(self, word: Word) -> str:
        """The text that reads a word of an earlier segment from its stack row."""
        n = max(word.n, 8)
        if word.spilled is None:
            word.spilled = self.name("s")
            home = self.segments[word.segment]
            self.start.append(f"{word.spilled} = room{n}()")
            home.lanes.append(f"{word.spilled}[i] = " + (f"flag({word.local})" if word.n == 1 else str(word.local)))
        return f"trunc8_1({word.spilled}[i])" if word.n == 1 else f"{word.spilled}[i]"

    def _constant(self, n: int, value: int) -> str:
        name = f"C{n}_{value:X}"
        self.constants[name] = NUMPY[n](value)
        return name

    def emit(self, n: int, operation: str, *words: Word) -> Word:
        """A word of n bits, the result of an operation of `interp.kits.words`."""
        arguments = ", ".join(self.use(w) for w in words)
        local = self.name("v")
        self.now.lanes.append(f"{local} = {operation}({arguments})")
        word = Word(n, local=local, segment=len(self.segments) - 1)
        self.now.names[id(word)] = local
        self._kept.append(word)
        return word

    def _pure(self, result: int, operation: str) -> Callable[..., Word]:
        return lambda *words: self.emit(result, operation, *words)

    # ---------------------------------------------------------------- operands and results
    def source(self, n: int) -> Word:
        """The next operand: a row of n-bit words."""
        index, self.operands = self.operands, self.operands + 1
        name = self.name("r")
        address = f"row(warp, ops, {index})"
        self.start.append(f"{name} = " + (f"mask_at({address})" if n == 1 else f"at{n}({address})"))
        return Word(n, row=name)

    def results(self, words: list[Word]) -> None:
        """Store words into the following operands, in the lanes of the mask. The last thing to call."""
        for word in words:
            index, self.operands = self.operands, self.operands + 1
            target = f"row(warp, ops, {index})"
            if word.n == 1:
                self.finish.append(f"keep1({target}, {self._mask(word)}, mask)")
            elif word.row is not None and (len(words) == 1 or word.row.startswith("b")):
                self.finish.append(f"keep{word.n}({target}, {word.row}, mask)")
            else:
                room = self.name("t")
                self.start.append(f"{room} = room{word.n}()")
                self.now.lanes.append(f"{room}[i] = {self.use(word)}")
                self.finish.append(f"keep{word.n}({target}, {room}, mask)")

    def _mask(self, word: Word) -> str:
        """The lane mask of a predicate, after the current loop."""
        if word.const is not None:
            return self._constant(32, _FULL if word.const else 0)
        if word.row is not None:
            return word.row
        flags = self.name("f")
        self.start.append(f"{flags} = room8()")
        self.now.lanes.append(f"{flags}[i] = flag({self.use(word)})")
        return f"mask_of({flags})"

    # ---------------------------------------------------------------- constants and width changes
    def const(self, n: int, value: int) -> Word:
        return Word(n, const=value & ((1 << n) - 1))

    def _resize(self, operation: str, n: int, m: int) -> Callable[[Word], Word]:
        if n == m:
            return lambda a: a
        return lambda a: self.emit(m, f"{operation}{n}_{m}", a)

    def zext(self, n: int, m: int) -> Callable[[Word], Word]:
        return self._resize("zext", n, m)

    def sext(self, n: int, m: int) -> Callable[[Word], Word]:
        return self._resize("sext", n, m)

    def trunc(self, n: int, m: int) -> Callable[[Word], Word]:
        return self._resize("trunc", n, m)

    # ---------------------------------------------------------------- runtime calls
    def _symbol(self, name: str) -> str:
        """The text of a runtime function's address."""
        if name not in self.symbols:
            self.symbols.append(name)
        return f"function_at(ops + 8 * (@SYMBOL + {self.symbols.index(name)}))"

    def _buffer(self, results: tuple[int, ...], words: tuple[Word, ...]) -> tuple[str, int]:
        """A call buffer with the operands in place once the loop is done: its name, and where the operands start."""
        at = sum(BYTES[n] for n in results)
        size = at + sum(BYTES[w.n] for w in words)
        name, reserve = self.name("buffer"), at
        self.start.append(f"{name} = stack_scratch({max(size, 32)})")
        for word in words:
            if word.n == 1:
                self.now.after.append(f"put_mask({name} + {at}, {self._mask(word)})")
            else:
                place = self.name("o")
                self.start.append(f"{place} = at{word.n}({name} + {at})")
                self.now.lanes.append(f"{place}[i] = {self.use(word)}")
            at += BYTES[word.n]
        return name, reserve

    def _called(self, call: str, buffer: str, results: tuple[int, ...]) -> tuple[Word, ...]:
        """End the segment with a call; its results as words of the next one."""
        self.now.after.append(call)
        self.segments.append(_Segment())
        out, at = [], 0
        for n in results:
            name = self.name("b")
            address = f"{buffer} + {at}"
            self.now.before.append(f"{name} = " + (f"mask_at({address})" if n == 1 else f"at{n}({address})"))
            out.append(Word(n, row=name))
            at += BYTES[n]
        return tuple(out)

    def lane(self, name: str, *params: int) -> Callable[..., Word]:
        f = LANE_FUNCTIONS[name]
        values = ", ".join(str(p) for p in (*params, 0, 0, 0)[:3])

        def call(*words: Word) -> Word:
            address = self._symbol(f.symbol)
            buffer, reserve = self._buffer(f.results, words)
            return self._called(f"call_lane({address}, {buffer}, {buffer} + {reserve}, {values})", buffer, f.results)[0]

        return call

    def warp(self, name: str, results: tuple[int, ...], *params: int) -> Callable[..., tuple[Word, ...]]:
        if len(params) > 4:
            raise InternalError(f"runtime function {name}: at most four parameters")
        values = ", ".join(str(p) for p in (*params, 0, 0, 0, 0)[:4])

        def call(*words: Word) -> tuple[Word, ...]:
            address = self._symbol(name)
            buffer, reserve = self._buffer(results, words)
            head = f"ctx, warp, site, mask, {buffer}, {buffer} + {reserve}"
            return self._called(f"call_warp({address}, {head}, {values})", buffer, results)

        return call

    def load(self, space: str, n: int, count: int) -> Callable[[Word], tuple[Word, ...]]:
        return self.warp(f"load_b{n}", (n,) * count, SPACE_CODES[space], count)

    def store(self, space: str, n: int, count: int) -> Callable[..., tuple[Word, ...]]:
        return self.warp(f"store_b{n}", (), SPACE_CODES[space], count)

    def atomic(self, space: str, op: str, type: str) -> Callable[..., Word]:
        from interp.runtime.atomics import atomic_symbol

        symbol, n, code = atomic_symbol(op, type)
        call = self.warp(symbol, (n,), SPACE_CODES[space], code)
        return lambda *words: call(*words)[0]

    # ---------------------------------------------------------------- special registers
    def _scalar(self, base: str, index: int, n: int) -> Word:
        name = self.name("c")
        self.start.append(f"{name} = scalar{n}({base} + {8 * index})")
        return Word(n, scalar=name)

    def special(self, name: str) -> Word:
        base, _, axis = name[1:].partition(".")
        if base in ("tid", *DIMENSIONS) and axis not in "xyz":
            return self.const(32, 0)
        if base == "tid":
            row = self.name("r")
            self.start.append(f"{row} = at32(warp + {8 * WARP['TID'] + 128 * 'xyz'.index(axis)})")
            return Word(32, row=row)
        if base in DIMENSIONS:
            return self._scalar("ctx", CTX[base.upper()] + "xyz".index(axis), 32)
        if base == "laneid":
            return self.emit(32, "lane_of", Word(64, scalar="i"))
        if base.startswith("lanemask_"):
            return self._lanemask(base[9:])
        if base == "warpid":
            return self._scalar("warp", WARP["ID"], 32)
        if base == "nwarpid":
            return self._scalar("ctx", CTX["NWARPS"], 32)
        if base in ("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"):
            (wide,) = self.warp("read_clock", (64,), 0)()
            if base.endswith("_hi"):
                wide = self.emit(64, "shr_u64", wide, self.const(64, 32))
            return wide if base in ("clock64", "globaltimer") else self.trunc(64, 32)(wide)
        if base in ("smid", "gridid"):
            return self.const(32 if base == "smid" else 64, 0)
        if base in ("nsmid", "dynamic_smem_size", "total_smem_size", "cluster_ctarank", "cluster_nctarank"):
            return self._scalar("ctx", CTX[base.upper()], 32)
        if base == "is_explicit_cluster":
            return self.emit(1, "ne64", self._scalar("ctx", CTX[base.upper()], 64), self.const(64, 0))
        raise Unsupported(f"special register {name}", help="its value depends on the driver or on counters of the GPU")

    def _lanemask(self, which: str) -> Word:
        lane, one = self.special("%laneid"), self.const(32, 1)
        own = self.emit(32, "shl32", one, lane)
        below = self.emit(32, "sub32", own, one)
        if which == "eq":
            return own
        if which == "lt":
            return below
        upto = self.emit(32, "or_32", own, below)
        if which == "le":
            return upto
        return self.emit(32, "not_32", upto if which == "gt" else below)


def _declare() -> None:
    """The operations of the kit that are one word operation each; `{n}` is the width."""
    same = (
        "add",
        "sub",
        "mul",
        "mulhi_u",
        "mulhi_s",
        "div_u",
        "div_s",
        "rem_u",
        "rem_s",
        "and_",
        "or_",
        "xor",
        "not_",
        "shl",
        "shr_u",
        "shr_s",
        "popc",
        "clz",
        "brev",
        "select",
        "fadd",
        "fsub",
        "fmul",
        "fdiv",
        "fma",
        "fsqrt",
    )
    for name in (*same, "eq", "ne", "lt_u", "le_u", "lt_s", "le_s", "feq", "flt", "fle", "isnan"):

        def operation(self: PythonKit, n: int, name: str = name) -> Callable[..., Word]:
            return self._pure(n if name in same else 1, f"{name}{n}")

        operation.__name__ = name
        setattr(PythonKit, name, operation)


_declare()
