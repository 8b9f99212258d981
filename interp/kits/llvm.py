"""The kit that emits LLVM IR text: a word is a value of type `<32 x iN>`, one element a lane of a warp.

Why text: building IR through llvmlite's object layer costs several times more than the rest of the compiler; a line of
text costs a format string. Everything emitted is one basic block; control flow lives in `interp.engine.control`.

Float operations are limited to `fadd fsub fmul fdiv fma sqrt fcmp` on float and double; no fast-math flags. A NaN
result is made canonical lazily: a float result keeps its raw form as long as only float operations read it, and is
made so once when its bits are looked at (stored, moved to integer code, passed to a runtime function). That is
exact, because no float operation here distinguishes NaN payloads.

Where the host has no fused multiply-add (x86-64-v2), `fma` is the runtime's integer code: LLVM would otherwise call
libm. Emitted in line as double arithmetic rounded to odd, it made a large matrix product of 6,410 instructions compile
ten times longer.
"""

from __future__ import annotations

from collections.abc import Callable

from interp.kits.llvm_words import BYTES, LANES, VEC, LlvmWords, Value
from interp.runtime.layout import CTX, WARP
from ptx.errors import InternalError, Unsupported

__all__ = ["LlvmKit", "Value"]


class LlvmKit(LlvmWords):
    """The whole kit: words, and what reaches the machine (runtime functions, memory, special registers)."""

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
        if base in DIMENSIONS:
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
        if base in ("nsmid", "dynamic_smem_size", "total_smem_size", "cluster_ctarank", "cluster_nctarank"):
            return self._scalar("%ctx", CTX[base.upper()], 32)
        if base == "is_explicit_cluster":
            return self.ne(64)(self._scalar("%ctx", CTX[base.upper()], 64), self.const(64, 0))
        raise Unsupported(f"special register {name}", help="its value depends on the driver or on counters of the GPU")

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


DIMENSIONS = ("ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
"""Special registers of three components that a context has under the same names."""
SPACE_CODES = {"global": 0, "shared": 1, "local": 2, "generic": 3, "const": 4, "param": 5, "cluster": 6}
"""How runtime access functions are told the state space."""


def _iota() -> str:
    return "<" + ", ".join(f"i32 {i}" for i in range(LANES)) + ">"
