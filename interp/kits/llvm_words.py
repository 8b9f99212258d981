"""Words of the LLVM kit: integers, bits, comparisons and floats as LLVM IR text (design: interp/kits/llvm.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interp.formats.rounding import RN
from interp.kit import CANONICAL_NAN
from interp.runtime.functions import LANE_FUNCTIONS

LANES = 32
VEC = {n: f"<{LANES} x i{n}>" for n in (1, 8, 16, 32, 64, 128)}
FVEC = {32: f"<{LANES} x float>", 64: f"<{LANES} x double>"}
BYTES = {1: 4, 8: 32, 16: 64, 32: 128, 64: 256}
"""Bytes of a stored word; a predicate is stored as a 32-bit lane mask."""


class Value:
    """A word of the LLVM kit: the SSA name (or constant) of its integer form, made on demand from `raw` floats."""

    __slots__ = ("_name", "const", "kit", "n", "raw")

    def __init__(
        self, kit: LlvmWords, n: int, name: str | None, raw: str | None = None, const: int | None = None
    ) -> None:
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


class LlvmWords:
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
        """A comparison. What a limit of the type decides is decided here: LLVM 22 at O0 with AVX2 adds one to the
        constant of an unsigned 'limit < x', which then wraps and is always true."""
        head = f"icmp {op} {VEC[n]} "
        low, high = (1 << (n - 1), (1 << (n - 1)) - 1) if op[0] == "s" else (0, (1 << n) - 1)

        def compare(a: Value, b: Value) -> Value:
            if op in ("ult", "slt") and (a.const == high or b.const == low):
                return self.const(1, 0)
            if op in ("ule", "sle") and (a.const == low or b.const == high):
                return self.const(1, 1)
            return self.word(1, f"{head}{a.name}, {b.name}")

        return compare

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
            return self.lane(f"fma_directed_f{n}", RN)
        t, symbol = FVEC[n], f"@llvm.fma.v{LANES}f{n}"

        def fma(a: Value, b: Value, c: Value) -> Value:
            self.externs[symbol] = f"declare {t} {symbol}({t}, {t}, {t})"
            call = f"call {t} {symbol}({t} {a.fname}, {t} {b.fname}, {t} {c.fname})"
            return Value(self, n, None, self.emit(call))

        return fma

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

    # ---------------------------------------------------------------- calls for what is not emitted in line
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
