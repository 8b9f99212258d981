"""The kit that emits LLVM IR text: a word is a value of type `<32 x iN>`, one element a lane of a warp.

Why text: building IR through llvmlite's object layer costs several times more than the rest of the compiler; a line of
text costs a format string. Everything emitted is one basic block; control flow lives in `interp.engine.control`.

Float operations are limited to `fadd fsub fmul fdiv fma sqrt fcmp` on float and double, and the two exact-or-rounded
width changes between them (`fpext`, `fptrunc`, one IEEE instruction each on every host); no fast-math flags. A NaN result
is made canonical lazily: a float result keeps its raw form as long as only float operations read it, and is
canonicalised once when its bits are looked at (stored, moved to integer code, passed to a runtime function). That is
exact, because no float operation here distinguishes NaN payloads.

Where the host has no fused multiply-add (x86-64-v2), `fma` on float goes through double with round-to-odd, and on double
through the runtime's integer code: LLVM would otherwise call libm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from interp.kit import CANONICAL_NAN
from interp.runtime.functions import LANE_FUNCTIONS
from interp.runtime.layout import CTX, WARP
from ptx.errors import InternalError

LANES = 32
VEC = {n: f"<{LANES} x i{n}>" for n in (1, 8, 16, 32, 64, 128)}
FVEC = {32: f"<{LANES} x float>", 64: f"<{LANES} x double>"}
BYTES = {1: 4, 8: 32, 16: 64, 32: 128, 64: 256}
"""Bytes of a stored word; a predicate is stored as a 32-bit lane mask."""


class Value:
    """A word of the LLVM kit: the SSA name (or constant) of its integer form, made on demand from `raw` floats."""

    __slots__ = ("_name", "const", "kit", "n", "raw")

    def __init__(self, kit: LlvmKit, n: int, name: str | None, raw: str | None = None, const: int | None = None) -> None:
        self.kit, self.n, self._name, self.raw, self.const = kit, n, name, raw, const

    @property
    def name(self) -> str:
        """The integer form, NaN canonical."""
        if self._name is None:
            assert self.raw is not None
            k, n, f = self.kit, self.n, FVEC[self.n]
            nan = k.emit(f"fcmp uno {f} {self.raw}, {self.raw}")
            bits = k.emit(f"bitcast {f} {self.raw} to {VEC[n]}")
            canon = splat(n, CANONICAL_NAN[n])
            self._name = k.emit(f"select {VEC[1]} {nan}, {VEC[n]} {canon}, {VEC[n]} {bits}")
        return self._name

    @property
    def fname(self) -> str:
        """The float form; its NaNs may be of any payload."""
        if self.raw is None:
            self.raw = self.kit.emit(f"bitcast {VEC[self.n]} {self.name} to {FVEC[self.n]}")
        return self.raw


def splat(n: int, value: int) -> str:
    """The text of a constant word."""
    value &= (1 << n) - 1
    if value == 0:
        return "zeroinitializer"
    if n == 1:
        return f"splat (i1 {'true' if value else 'false'})"
    return f"splat (i{n} {value - (1 << n) if value >> (n - 1) else value})"


class LlvmKit:
    """Emits into `lines`. One instance a function; `mask` is the name of the i32 that holds the active lanes of the
    instruction being emitted, `site` its ordinal in the kernel."""

    def __init__(self, has_fma: bool, device: int) -> None:
        self.has_fma, self.device = has_fma, device
        self.lines: list[str] = []
        self.externs: dict[str, str] = {}
        self.count = 0
        self.buffer = 0
        self.mask = "%mask"
        self.site = 0
        self._specials: dict[str, Value] = {}

    # ---------------------------------------------------------------- text
    def emit(self, text: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def emit_void(self, text: str) -> None:
        self.lines.append("  " + text)

    def word(self, n: int, text: str) -> Value:
        return Value(self, n, self.emit(text))

    def const(self, n: int, value: int) -> Value:
        value &= (1 << n) - 1
        return Value(self, n, splat(n, value), const=value)

    def table(self, values: Sequence[int]) -> Value:
        """A 32-bit constant of its own in each lane (up to 32, the rest 0)."""
        words = [*values, *([0] * (LANES - len(values)))]
        return Value(self, 32, "<" + ", ".join(f"i32 {v}" for v in words) + ">")

    def _binary(self, op: str, n: int) -> Callable[[Value, Value], Value]:
        head = f"{op} {VEC[n]} "
        return lambda a, b: self.word(n, f"{head}{a.name}, {b.name}")

    def _compare(self, op: str, n: int) -> Callable[[Value, Value], Value]:
        head = f"icmp {op} {VEC[n]} "
        return lambda a, b: self.word(1, f"{head}{a.name}, {b.name}")

    def _convert(self, op: str, n: int, m: int) -> Callable[[Value], Value]:
        if n == m:
            return lambda a: a
        return lambda a: self.word(m, f"{op} {VEC[n]} {a.name} to {VEC[m]}")

    def zext(self, n: int, m: int) -> Callable[[Value], Value]:
        return self._convert("zext", n, m)

    def sext(self, n: int, m: int) -> Callable[[Value], Value]:
        return self._convert("sext", n, m)

    def trunc(self, n: int, m: int) -> Callable[[Value], Value]:
        return self._convert("trunc", n, m)

    # ---------------------------------------------------------------- integers
    def add(self, n: int) -> Callable[[Value, Value], Value]:
        return self._binary("add", n)

    def sub(self, n: int) -> Callable[[Value, Value], Value]:
        return self._binary("sub", n)

    def mul(self, n: int) -> Callable[[Value, Value], Value]:
        return self._binary("mul", n)

    def _mulhi(self, extend: str, n: int) -> Callable[[Value, Value], Value]:
        def mulhi(a: Value, b: Value) -> Value:
            wide = VEC[2 * n]
            x = self.emit(f"{extend} {VEC[n]} {a.name} to {wide}")
            y = self.emit(f"{extend} {VEC[n]} {b.name} to {wide}")
            p = self.emit(f"mul {wide} {x}, {y}")
            h = self.emit(f"lshr {wide} {p}, splat (i{2 * n} {n})")
            return self.word(n, f"trunc {wide} {h} to {VEC[n]}")

        return mulhi

    def mulhi_u(self, n: int) -> Callable[[Value, Value], Value]:
        return self._mulhi("zext", n)

    def mulhi_s(self, n: int) -> Callable[[Value, Value], Value]:
        return self._mulhi("sext", n)

    def _divide(self, op: str, n: int, is_signed: bool, on_zero: Callable[[Value], str]) -> Callable[..., Value]:
        t = VEC[n]

        def divide(a: Value, b: Value) -> Value:
            if b.const and not (is_signed and b.const == (1 << n) - 1):
                return self.word(n, f"{op} {t} {a.name}, {b.name}")
            zero = self.emit(f"icmp eq {t} {b.name}, zeroinitializer")
            bad = zero
            if is_signed:  # MIN / -1 traps on x86: divide by 1 instead, which gives MIN (and remainder 0)
                low = self.emit(f"icmp eq {t} {a.name}, {splat(n, 1 << (n - 1))}")
                ones = self.emit(f"icmp eq {t} {b.name}, {splat(n, -1)}")
                both = self.emit(f"and {VEC[1]} {low}, {ones}")
                bad = self.emit(f"or {VEC[1]} {zero}, {both}")
            safe = self.emit(f"select {VEC[1]} {bad}, {t} {splat(n, 1)}, {t} {b.name}")
            q = self.emit(f"{op} {t} {a.name}, {safe}")
            return self.word(n, f"select {VEC[1]} {zero}, {t} {on_zero(a)}, {t} {q}")

        return divide

    def div_u(self, n: int) -> Callable[[Value, Value], Value]:
        return self._divide("udiv", n, False, lambda a: splat(n, -1))

    def div_s(self, n: int) -> Callable[[Value, Value], Value]:
        return self._divide("sdiv", n, True, lambda a: splat(n, -1))

    def rem_u(self, n: int) -> Callable[[Value, Value], Value]:
        return self._divide("urem", n, False, lambda a: a.name)

    def rem_s(self, n: int) -> Callable[[Value, Value], Value]:
        return self._divide("srem", n, True, lambda a: a.name)

    # ---------------------------------------------------------------- bits
    def and_(self, n: int) -> Callable[[Value, Value], Value]:
        return self._binary("and", n)

    def or_(self, n: int) -> Callable[[Value, Value], Value]:
        return self._binary("or", n)

    def xor(self, n: int) -> Callable[[Value, Value], Value]:
        return self._binary("xor", n)

    def not_(self, n: int) -> Callable[[Value], Value]:
        return lambda a: self.word(n, f"xor {VEC[n]} {a.name}, {splat(n, -1)}")

    def _shift(self, op: str, n: int) -> Callable[[Value, Value], Value]:
        t = VEC[n]

        def shift(a: Value, b: Value) -> Value:
            if b.const is not None and b.const < n:
                return self.word(n, f"{op} {t} {a.name}, {b.name}")
            small = self.emit(f"icmp ult {t} {b.name}, {splat(n, n)}")
            if op == "ashr":
                amount = self.emit(f"select {VEC[1]} {small}, {t} {b.name}, {t} {splat(n, n - 1)}")
                return self.word(n, f"ashr {t} {a.name}, {amount}")
            amount = self.emit(f"select {VEC[1]} {small}, {t} {b.name}, {t} zeroinitializer")
            out = self.emit(f"{op} {t} {a.name}, {amount}")
            return self.word(n, f"select {VEC[1]} {small}, {t} {out}, {t} zeroinitializer")

        return shift

    def shl(self, n: int) -> Callable[[Value, Value], Value]:
        return self._shift("shl", n)

    def shr_u(self, n: int) -> Callable[[Value, Value], Value]:
        return self._shift("lshr", n)

    def shr_s(self, n: int) -> Callable[[Value, Value], Value]:
        return self._shift("ashr", n)

    def _intrinsic(self, name: str, n: int, extra: str = "") -> Callable[[Value], Value]:
        t, symbol = VEC[n], f"@llvm.{name}.v{LANES}i{n}"

        def call(a: Value) -> Value:
            self.externs[symbol] = f"declare {t} {symbol}({t}{', i1' if extra else ''})"
            return self.word(n, f"call {t} {symbol}({t} {a.name}{extra})")

        return call

    def popc(self, n: int) -> Callable[[Value], Value]:
        return self._intrinsic("ctpop", n)

    def clz(self, n: int) -> Callable[[Value], Value]:
        return self._intrinsic("ctlz", n, ", i1 false")

    def brev(self, n: int) -> Callable[[Value], Value]:
        return self._intrinsic("bitreverse", n)

    # ---------------------------------------------------------------- comparison and choice
    def eq(self, n: int) -> Callable[[Value, Value], Value]:
        return self._compare("eq", n)

    def ne(self, n: int) -> Callable[[Value, Value], Value]:
        return self._compare("ne", n)

    def lt_u(self, n: int) -> Callable[[Value, Value], Value]:
        return self._compare("ult", n)

    def le_u(self, n: int) -> Callable[[Value, Value], Value]:
        return self._compare("ule", n)

    def lt_s(self, n: int) -> Callable[[Value, Value], Value]:
        return self._compare("slt", n)

    def le_s(self, n: int) -> Callable[[Value, Value], Value]:
        return self._compare("sle", n)

    def select(self, n: int) -> Callable[[Value, Value, Value], Value]:
        t = VEC[n]

        def select(p: Value, a: Value, b: Value) -> Value:
            if p.const is not None:
                return a if p.const else b
            return self.word(n, f"select {VEC[1]} {p.name}, {t} {a.name}, {t} {b.name}")

        return select

    # ---------------------------------------------------------------- floats
    def _float(self, op: str, n: int) -> Callable[[Value, Value], Value]:
        head = f"{op} {FVEC[n]} "
        return lambda a, b: Value(self, n, None, self.emit(f"{head}{a.fname}, {b.fname}"))

    def fadd(self, n: int) -> Callable[[Value, Value], Value]:
        return self._float("fadd", n)

    def fsub(self, n: int) -> Callable[[Value, Value], Value]:
        return self._float("fsub", n)

    def fmul(self, n: int) -> Callable[[Value, Value], Value]:
        return self._float("fmul", n)

    def fdiv(self, n: int) -> Callable[[Value, Value], Value]:
        return self._float("fdiv", n)

    def fsqrt(self, n: int) -> Callable[[Value], Value]:
        t, symbol = FVEC[n], f"@llvm.sqrt.v{LANES}f{n}"

        def sqrt(a: Value) -> Value:
            self.externs[symbol] = f"declare {t} {symbol}({t})"
            return Value(self, n, None, self.emit(f"call {t} {symbol}({t} {a.fname})"))

        return sqrt

    def fma(self, n: int) -> Callable[[Value, Value, Value], Value]:
        if not self.has_fma:
            return self._fma_by_double if n == 32 else self.lane("fma_directed_f64", 0)
        t, symbol = FVEC[n], f"@llvm.fma.v{LANES}f{n}"

        def fma(a: Value, b: Value, c: Value) -> Value:
            self.externs[symbol] = f"declare {t} {symbol}({t}, {t}, {t})"
            call = f"call {t} {symbol}({t} {a.fname}, {t} {b.fname}, {t} {c.fname})"
            return Value(self, n, None, self.emit(call))

        return fma

    def _fma_by_double(self, a: Value, b: Value, c: Value) -> Value:
        """float fma without the instruction: the product is exact in double; the sum is rounded to odd (Boldo and
        Melquiond 2008), so that the final rounding to float is the only one that shows."""
        d, w, one = FVEC[64], VEC[64], VEC[1]
        x, y, z = (self.emit(f"fpext {FVEC[32]} {v.fname} to {d}") for v in (a, b, c))
        p = self.emit(f"fmul {d} {x}, {y}")
        s = self.emit(f"fadd {d} {p}, {z}")
        # two-sum error of p + z
        t = self.emit(f"fsub {d} {s}, {p}")
        u = self.emit(f"fsub {d} {s}, {t}")
        e1 = self.emit(f"fsub {d} {p}, {u}")
        e2 = self.emit(f"fsub {d} {z}, {t}")
        e = self.emit(f"fadd {d} {e1}, {e2}")
        bits = self.emit(f"bitcast {d} {s} to {w}")
        inexact = self.emit(f"fcmp one {d} {e}, zeroinitializer")
        low = self.emit(f"and {w} {bits}, splat (i64 1)")
        even = self.emit(f"icmp eq {w} {low}, zeroinitializer")
        fix = self.emit(f"and {one} {inexact}, {even}")
        # towards the error: up in magnitude when the error has the sign of the sum
        neg_e = self.emit(f"fcmp olt {d} {e}, zeroinitializer")
        neg_s = self.emit(f"icmp slt {w} {bits}, zeroinitializer")
        differ = self.emit(f"xor {one} {neg_e}, {neg_s}")
        step = self.emit(f"select {one} {differ}, {w} splat (i64 -1), {w} splat (i64 1)")
        moved = self.emit(f"add {w} {bits}, {step}")
        odd = self.emit(f"select {one} {fix}, {w} {moved}, {w} {bits}")
        back = self.emit(f"bitcast {w} {odd} to {d}")
        return Value(self, 32, None, self.emit(f"fptrunc {d} {back} to {FVEC[32]}"))

    def _fcompare(self, op: str, n: int) -> Callable[[Value, Value], Value]:
        head = f"fcmp {op} {FVEC[n]} "
        return lambda a, b: self.word(1, f"{head}{a.fname}, {b.fname}")

    def feq(self, n: int) -> Callable[[Value, Value], Value]:
        return self._fcompare("oeq", n)

    def flt(self, n: int) -> Callable[[Value, Value], Value]:
        return self._fcompare("olt", n)

    def fle(self, n: int) -> Callable[[Value, Value], Value]:
        return self._fcompare("ole", n)

    def isnan(self, n: int) -> Callable[[Value], Value]:
        return lambda a: self.word(1, f"fcmp uno {FVEC[n]} {a.fname}, {a.fname}")

    # ---------------------------------------------------------------- runtime calls
    def _store_operands(self, words: tuple[Value, ...], reserve: int) -> None:
        """Write operands one after the other into the call buffer, behind `reserve` bytes of result space."""
        at = reserve
        for w in words:
            if w.n == 1:
                bits = self.mask_of(w)
                self.emit_void(f"store i32 {bits}, ptr {self.slot(at)}, align 4")
            else:
                self.emit_void(f"store {VEC[w.n]} {w.name}, ptr {self.slot(at)}, align 32")
            at += max(BYTES[w.n], 32)
        self.buffer = max(self.buffer, at)

    def _load_results(self, widths: tuple[int, ...]) -> tuple[Value, ...]:
        out, at = [], 0
        for n in widths:
            if n == 1:
                bits = self.emit(f"load i32, ptr {self.slot(at)}, align 4")
                out.append(self.predicate(bits))
            else:
                out.append(self.word(n, f"load {VEC[n]}, ptr {self.slot(at)}, align 32"))
            at += max(BYTES[n], 32)
        return tuple(out)

    def slot(self, at: int) -> str:
        return "%buf" if at == 0 else self.emit(f"getelementptr i8, ptr %buf, i64 {at}")

    def mask_of(self, p: Value) -> str:
        """The i32 lane mask of a predicate."""
        return self.emit(f"bitcast {VEC[1]} {p.name} to i32")

    def predicate(self, bits: str) -> Value:
        return self.word(1, f"bitcast i32 {bits} to {VEC[1]}")

    def lane(self, name: str, *params: int) -> Callable[..., Value]:
        f = LANE_FUNCTIONS[name]
        values = ", ".join(f"i64 {p}" for p in (*params, 0, 0, 0)[:3])

        def call(*words: Value) -> Value:
            reserve = sum(max(BYTES[n], 32) for n in f.results)
            self._store_operands(words, reserve)
            self.externs["@" + f.symbol] = f"declare void @{f.symbol}(ptr, ptr, i64, i64, i64)"
            self.emit_void(f"call void @{f.symbol}(ptr %buf, ptr {self.slot(reserve)}, {values})")
            return self._load_results(f.results)[0]

        return call

    def warp(self, name: str, results: tuple[int, ...], *params: int) -> Callable[..., tuple[Value, ...]]:
        if len(params) > 4:
            raise InternalError(f"runtime function {name}: at most four parameters")
        values = ", ".join(f"i64 {p}" for p in (*params, 0, 0, 0, 0)[:4])

        def call(*words: Value) -> tuple[Value, ...]:
            reserve = sum(max(BYTES[n], 32) for n in results)
            self._store_operands(words, reserve)
            self.buffer = max(self.buffer, reserve)
            types = "ptr, ptr, i64, i64, ptr, ptr, i64, i64, i64, i64"
            self.externs["@" + name] = f"declare void @{name}({types})"
            mask = self.emit(f"zext i32 {self.mask} to i64")
            head = f"ptr %ctx, ptr %warp, i64 {self.site}, i64 {mask}, ptr %buf, ptr {self.slot(reserve)}"
            self.emit_void(f"call void @{name}({head}, {values})")
            return self._load_results(results)

        return call

    def load(self, space: str, n: int, count: int) -> Callable[[Value], tuple[Value, ...]]:
        call = self.warp(f"load_b{n}", (n,) * count, SPACE_CODES[space], count)
        if space != "param":
            return call
        return lambda a: call(a) if a.const is None else self._load_param(a.const, n, count)

    def _load_param(self, offset: int, n: int, count: int) -> tuple[Value, ...]:
        """A kernel parameter is the same in every lane: one scalar load."""
        at = self.emit(f"getelementptr i64, ptr %ctx, i64 {CTX['PARAMS']}")
        block = self.emit(f"load ptr, ptr {at}, align 8")
        out = []
        for c in range(count):
            p = self.emit(f"getelementptr i8, ptr {block}, i64 {offset + c * n // 8}")
            out.append(self.splat_of(self.emit(f"load i{n}, ptr {p}, align 1"), n))
        return tuple(out)

    def store(self, space: str, n: int, count: int) -> Callable[..., tuple[Value, ...]]:
        return self.warp(f"store_b{n}", (), SPACE_CODES[space], count)

    def atomic(self, space: str, op: str, type: str) -> Callable[..., Value]:
        from interp.runtime.atomics import atomic_symbol

        symbol, n, code = atomic_symbol(op, type)
        call = self.warp(symbol, (n,), SPACE_CODES[space], code)
        return lambda *words: call(*words)[0]

    # ---------------------------------------------------------------- special registers
    def special(self, name: str) -> Value:
        if name.startswith(("%clock", "%globaltimer")):
            return self._read_special(name)  # every reading is later than the one before
        if name not in self._specials:
            self._specials[name] = self._read_special(name)
        return self._specials[name]

    def _scalar(self, pointer: str, index: int, n: int) -> Value:
        p = self.emit(f"getelementptr i64, ptr {pointer}, i64 {index}")
        wide = self.emit(f"load i64, ptr {p}, align 8")
        s = wide if n == 64 else self.emit(f"trunc i64 {wide} to i{n}")
        return self.splat_of(s, n)

    def splat_of(self, scalar: str, n: int) -> Value:
        one = self.emit(f"insertelement {VEC[n]} poison, i{n} {scalar}, i32 0")
        return self.word(n, f"shufflevector {VEC[n]} {one}, {VEC[n]} poison, <{LANES} x i32> zeroinitializer")

    def _read_special(self, name: str) -> Value:
        base, _, axis = name[1:].partition(".")
        if base == "tid":
            if axis not in "xyz":
                return self.const(32, 0)
            p = self.emit(f"getelementptr i64, ptr %warp, i64 {WARP['TID'] + 16 * 'xyz'.index(axis)}")
            return self.word(32, f"load {VEC[32]}, ptr {p}, align 32")
        if base in ("ntid", "ctaid", "nctaid"):
            if axis not in "xyz":
                return self.const(32, 0)
            return self._scalar("%ctx", CTX[base.upper()] + "xyz".index(axis), 32)
        if base == "laneid":
            return self.word(32, f"add {VEC[32]} zeroinitializer, {_iota()}")
        if base.startswith("lanemask_"):
            return self._lanemask(base[9:])
        if base == "warpid":
            return self._scalar("%warp", WARP["ID"], 32)
        if base == "nwarpid":
            return self._scalar("%ctx", CTX["NWARPS"], 32)
        if base in ("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"):
            n = 64 if base in ("clock64", "globaltimer") else 32
            (wide,) = self.warp("read_clock", (64,), 0)()
            if base.endswith("_hi"):
                wide = self.shr_u(64)(wide, self.const(64, 32))
            return wide if n == 64 else self.trunc(64, 32)(wide)
        if base in ("smid", "gridid"):
            return self.const(32 if base == "smid" else 64, 0)
        if base in ("nsmid", "dynamic_smem_size", "total_smem_size"):
            return self._scalar("%ctx", CTX[base.upper()], 32)
        raise InternalError(f"special register {name} reached the emitter")

    def _lanemask(self, which: str) -> Value:
        i = [1 << lane for lane in range(LANES)]
        masks = {
            "eq": i,
            "lt": [m - 1 for m in i],
            "le": [2 * m - 1 for m in i],
            "gt": [0xFFFFFFFF & ~(2 * m - 1) for m in i],
            "ge": [0xFFFFFFFF & ~(m - 1) for m in i],
        }[which]
        body = ", ".join(f"i32 {m - (1 << 32) if m >> 31 else m}" for m in masks)
        return self.word(32, f"or {VEC[32]} zeroinitializer, <{body}>")


SPACE_CODES = {"global": 0, "shared": 1, "local": 2, "generic": 3, "const": 4, "param": 5}
"""How runtime access functions are told the state space."""

SPECIAL_WIDTHS = {"clock64": 64, "globaltimer": 64, "gridid": 64}


def _iota() -> str:
    return "<" + ", ".join(f"i32 {i}" for i in range(LANES)) + ">"
