"""Emission of eight-lane vector code: columns of a tensor-core tile, or lanes of a warp, as one LLVM vector.

Purpose: loops over raw addresses vectorise unreliably and cost numba a tenth of a second a function, so the inner
kernels are emitted as LLVM IR over `<8 x i32>`, `<8 x float>` and `<8 x double>`. LLVM splits these for hosts with
narrower registers; results do not depend on it.

Guarantees: float operations are separate IEEE operations (never contracted or reordered); memory access needs no
alignment. `Lanes.truncate` is undefined outside the int32 range: callers prove the range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

LANES = 8
I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
INTS, LONGS = ir.VectorType(I32, LANES), ir.VectorType(I64, LANES)
FLOATS, DOUBLES = ir.VectorType(F32, LANES), ir.VectorType(F64, LANES)
QUAD = ir.VectorType(I32, 4)

Value = Any


def define(module: ir.Module, name: str, result: ir.Type, parameters: Sequence[ir.Type]) -> tuple[ir.Function, bool]:
    """The function of that name in a module, and whether its body is still to be written."""
    known = module.globals.get(name)
    if known is not None:
        return known, False
    function = ir.Function(module, ir.FunctionType(result, parameters), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("nounwind")
    function.attributes.add("noinline")
    return function, True


def lanes_of(vector: ir.VectorType, value: int) -> Value:
    """A constant integer in every lane of a vector type."""
    return ir.Constant(vector, [value & ((1 << vector.element.width) - 1)] * vector.count)


class _Freeze(ir.Instruction):  # type: ignore[misc]
    """The value, or if that is undefined, any one value."""

    def __init__(self, parent: ir.Block, value: Value) -> None:
        super().__init__(parent, value.type, "freeze", [value])

    def descr(self, buf: list[str]) -> None:
        value = self.operands[0]
        buf.append(f"freeze {value.type} {value.get_reference()}\n")


class Lanes:
    """An IR builder with the vector operations the kernels need. Plain Python integers become splatted constants."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.b = builder

    # constants and splats
    def const(self, value: int) -> Value:
        """Eight times a constant word."""
        return ir.Constant(INTS, [value & 0xFFFFFFFF] * LANES)

    def long_const(self, value: int) -> Value:
        """Eight times a constant 64-bit word."""
        return ir.Constant(LONGS, [value & 0xFFFFFFFFFFFFFFFF] * LANES)

    def of(self, value: Value | int) -> Value:
        """A vector from a vector or a Python integer."""
        return self.const(value) if isinstance(value, int) else value

    def splat(self, value: Value) -> Value:
        """Eight times a scalar."""
        vector = ir.VectorType(value.type, LANES)
        undefined = ir.Constant(vector, ir.Undefined)
        one = self.b.insert_element(undefined, value, ir.Constant(I32, 0))
        return self.b.shuffle_vector(one, undefined, ir.Constant(INTS, [0] * LANES))

    # memory; addresses are i64
    def at(self, address: Value, offset: int) -> Value:
        """address + offset."""
        return self.b.add(address, ir.Constant(I64, offset)) if offset else address

    def load(self, address: Value, kind: ir.Type) -> Value:
        """A scalar or vector at an address."""
        return self.b.load(self.b.inttoptr(address, kind.as_pointer()), align=4)

    def store(self, address: Value, value: Value) -> None:
        """Store a scalar or vector."""
        self.b.store(value, self.b.inttoptr(address, value.type.as_pointer()), align=4)

    def load_halves(self, first: Value, second: Value) -> Value:
        """Four words at one address, then four at another."""
        return self.shuffle(self.load(first, QUAD), self.load(second, QUAD), list(range(8)))

    def store_halves(self, first: Value, second: Value, value: Value) -> None:
        """The first four words to one address, the others to another."""
        self.store(first, self.shuffle(value, value, [0, 1, 2, 3]))
        self.store(second, self.shuffle(value, value, [4, 5, 6, 7]))

    # words
    def add(self, x: Value, y: Value | int) -> Value:
        """Sum modulo 2**32."""
        return self.b.add(self.of(x), self.of(y))

    def sub(self, x: Value | int, y: Value | int) -> Value:
        """Difference modulo 2**32."""
        return self.b.sub(self.of(x), self.of(y))

    def mul(self, x: Value, y: Value) -> Value:
        """Product modulo 2**32."""
        return self.b.mul(x, y)

    def bit_and(self, x: Value, y: Value | int) -> Value:
        """Bitwise and."""
        return self.b.and_(x, self.of(y))

    def bit_or(self, x: Value, y: Value | int) -> Value:
        """Bitwise or."""
        return self.b.or_(x, self.of(y))

    def bit_xor(self, x: Value, y: Value) -> Value:
        """Bitwise exclusive or."""
        return self.b.xor(x, y)

    def shl(self, x: Value, n: Value | int) -> Value:
        """Left shift by less than 32."""
        return self.b.shl(x, self.of(n))

    def shr(self, x: Value, n: Value | int) -> Value:
        """Logical right shift by less than 32."""
        return self.b.lshr(x, self.of(n))

    def shr_signed(self, x: Value, n: Value | int) -> Value:
        """Arithmetic right shift by less than 32."""
        return self.b.ashr(x, self.of(n))

    def greater(self, x: Value | int, y: Value | int) -> Value:
        """Signed comparison, a mask."""
        return self.b.icmp_signed(">", self.of(x), self.of(y))

    def equal(self, x: Value, y: Value | int) -> Value:
        """Equality, a mask."""
        return self.b.icmp_unsigned("==", x, self.of(y))

    def select(self, mask: Value, x: Value | int, y: Value | int) -> Value:
        """Choice by lane."""
        return self.b.select(mask, self.of(x), self.of(y))

    def maximum(self, x: Value, y: Value | int) -> Value:
        """Signed maximum."""
        return self.select(self.greater(x, y), x, y)

    def maximum_unsigned(self, x: Value, y: Value) -> Value:
        """Unsigned maximum."""
        return self.b.select(self.b.icmp_unsigned(">", x, y), x, y)

    def minimum(self, x: Value, y: Value | int) -> Value:
        """Signed minimum."""
        return self.select(self.greater(x, y), y, x)

    def shuffle(self, x: Value, y: Value, lanes: list[int]) -> Value:
        """Lanes of x (0 ...) and y (after those of x)."""
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))

    def any(self, mask: Value) -> Value:
        """i1: whether a mask is set in any lane."""
        return self.b.icmp_unsigned("!=", self.b.bitcast(mask, I8), ir.Constant(I8, 0))

    # floats
    def floats(self, bits: Value) -> Value:
        """The f32 with these bits."""
        return self.b.bitcast(bits, FLOATS)

    def bits(self, floats: Value) -> Value:
        """The bits of f32."""
        return self.b.bitcast(floats, INTS)

    def doubles(self, bits: Value) -> Value:
        """The f64 with these bits."""
        return self.b.bitcast(bits, DOUBLES)

    def long_bits(self, doubles: Value) -> Value:
        """The bits of f64."""
        return self.b.bitcast(doubles, LONGS)

    def truncate(self, x: Value) -> Value:
        """Signed words of f32 or f64 toward zero; only for |x| < 2**31."""
        return self.b.fptosi(x, INTS)

    def freeze(self, x: Value) -> Value:
        """x, or where a conversion was out of range some value or other."""
        instruction = _Freeze(self.b.block, x)
        self.b._insert(instruction)
        return instruction

    def exact_doubles(self, words: Value) -> Value:
        """f64 of signed words."""
        return self.b.sitofp(words, DOUBLES)

    def power_of_two(self, exponent: Value) -> Value:
        """f64 2**exponent, for exponents of normal numbers."""
        biased = self.b.zext(self.add(exponent, 1023), LONGS)
        return self.doubles(self.b.shl(biased, self.long_const(52)))


def loop(
    b: ir.IRBuilder,
    start: Value,
    stop: Value,
    step: int,
    carried: Sequence[Value],
    body: Callable[[Value, list[Value]], Sequence[Value]],
) -> list[Value]:
    """A counted loop that runs at least once; `body(index, values)` returns the next values; -> the last ones."""
    before = b.block
    head, after = b.append_basic_block("loop"), b.append_basic_block("after")
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(I64)
    phis = [b.phi(value.type) for value in carried]
    index.add_incoming(start, before)
    for phi, value in zip(phis, carried, strict=True):
        phi.add_incoming(value, before)
    values = list(body(index, list(phis)))
    following = b.add(index, ir.Constant(I64, step))
    last = b.block
    index.add_incoming(following, last)
    for phi, value in zip(phis, values, strict=True):
        phi.add_incoming(value, last)
    b.cbranch(b.icmp_signed("<", following, stop), head, after)
    b.position_at_end(after)
    return values


def either(
    b: ir.IRBuilder,
    condition: Value,
    this: Callable[[], Sequence[Value]],
    that: Callable[[], Sequence[Value]],
    rare: bool = False,
) -> list[Value]:
    """The values that one of two pieces of code gives, chosen by an i1. rare: the first is expected to be rare."""
    blocks = [b.append_basic_block("this"), b.append_basic_block("that")]
    after = b.append_basic_block("after")
    branch = b.cbranch(condition, *blocks)
    if rare:
        branch.set_weights([1, 10000])
    found = []
    for block, body in zip(blocks, (this, that), strict=True):
        b.position_at_end(block)
        found.append((body(), b.block))
        b.branch(after)
    b.position_at_end(after)
    results = []
    for pair in zip(*(values for values, _block in found), strict=True):
        phi = b.phi(pair[0].type)
        for value, (_values, block) in zip(pair, found, strict=True):
            phi.add_incoming(value, block)
        results.append(phi)
    return results


def rarely(
    b: ir.IRBuilder, condition: Value, values: Sequence[Value], body: Callable[[list[Value]], Sequence[Value]]
) -> list[Value]:
    """`body(values)` where the condition (i1) holds, which is expected to be rare; otherwise the values unchanged."""
    before = b.block
    inside, after = b.append_basic_block("rare"), b.append_basic_block("usual")
    b.cbranch(condition, inside, after).set_weights([1, 10000])
    b.position_at_end(inside)
    changed = list(body(list(values)))
    last = b.block
    b.branch(after)
    b.position_at_end(after)
    results = []
    for value, other in zip(values, changed, strict=True):
        phi = b.phi(value.type)
        phi.add_incoming(value, before)
        phi.add_incoming(other, last)
        results.append(phi)
    return results
