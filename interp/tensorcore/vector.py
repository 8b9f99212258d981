"""Eight-lane vectors for compiled code: `Ints` (<8 x i32>), `Floats` (<8 x float>), `Doubles` (<8 x double>), `Masks` (<8 x i1>).

Purpose: the tensor-core kernels work on the eight columns of a tile at once. Loops over raw addresses do not vectorise reliably, so
these functions emit LLVM vector operations directly. LLVM splits them for hosts with narrower registers; results do not depend on it.

Guarantees: one LLVM instruction each; memory access without alignment; float operations round to nearest-even and are never
contracted. `truncate` is undefined outside the int32 range: callers prove the range.
Limits: only usable inside compiled functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

_I1, _I32, _I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
LANES = 8


class VectorType(types.Type):
    """A vector of eight elements in compiled code."""

    def __init__(self, name: str, element: ir.Type) -> None:
        super().__init__(name=name)
        self.llvm = ir.VectorType(element, LANES)


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: VectorType) -> None:
        super().__init__(dmm, fe_type, fe_type.llvm)


INTS = VectorType("Ints", _I32)
FLOATS = VectorType("Floats", ir.FloatType())
DOUBLES = VectorType("Doubles", ir.DoubleType())
MASKS = VectorType("Masks", _I1)
LONGS = VectorType("Longs", _I64)

Ints = Floats = Doubles = Masks = Longs = Any


def _operation(
    result: types.Type, operands: tuple[types.Type, ...], emit: Callable[..., ir.Value], doc: str
) -> Callable[..., Any]:
    """An intrinsic of fixed types; `emit(builder, *values)` builds it."""
    arity = len(operands)

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return emit(builder, *args)

    def one(typingctx: Any, a: types.Type) -> Any:
        return result(*operands), codegen

    def two(typingctx: Any, a: types.Type, b: types.Type) -> Any:
        return result(*operands), codegen

    def three(typingctx: Any, a: types.Type, b: types.Type, c: types.Type) -> Any:
        return result(*operands), codegen

    function = intrinsic((one, two, three)[arity - 1])
    function.__doc__ = doc
    return function  # type: ignore[no-any-return]


def _load(llvm: ir.Type) -> Callable[..., ir.Value]:
    return lambda b, address: b.load(b.inttoptr(address, llvm.as_pointer()), align=4)


def _store(llvm: ir.Type) -> Callable[..., ir.Value]:
    def emit(b: ir.IRBuilder, address: ir.Value, value: ir.Value) -> ir.Value:
        b.store(value, b.inttoptr(address, llvm.as_pointer()), align=4)
        return ir.Constant(ir.IntType(8).as_pointer(), None)

    return emit


def _splat(b: ir.IRBuilder, vector: ir.VectorType, value: ir.Value) -> ir.Value:
    one = b.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return b.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


def _shuffle(indices: list[int]) -> Callable[..., ir.Value]:
    pattern = ir.Constant(ir.VectorType(_I32, len(indices)), indices)
    return lambda b, x, y: b.shuffle_vector(x, y, pattern)


def _halves(b: ir.IRBuilder, first: ir.Value, second: ir.Value) -> ir.Value:
    four = ir.VectorType(_I32, 4)
    x, y = (b.load(b.inttoptr(a, four.as_pointer()), align=4) for a in (first, second))
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(_I32, 8), list(range(8))))


def _store_halves(b: ir.IRBuilder, first: ir.Value, second: ir.Value, value: ir.Value) -> ir.Value:
    four = ir.VectorType(_I32, 4)
    for address, start in ((first, 0), (second, 4)):
        pattern = ir.Constant(four, list(range(start, start + 4)))
        part = b.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), pattern)
        b.store(part, b.inttoptr(address, four.as_pointer()), align=4)
    return ir.Constant(ir.IntType(8).as_pointer(), None)


def _greater(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return b.select(b.icmp_signed(">", x, y), x, y)


def _smaller(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return b.select(b.icmp_signed("<", x, y), x, y)


def _any(b: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    return b.icmp_unsigned("!=", b.bitcast(mask, ir.IntType(LANES)), ir.Constant(ir.IntType(LANES), 0))


load_ints = _operation(INTS, (types.int64,), _load(INTS.llvm), "Eight consecutive words.")
load_floats = _operation(FLOATS, (types.int64,), _load(FLOATS.llvm), "Eight consecutive f32.")
load_doubles = _operation(DOUBLES, (types.int64,), _load(DOUBLES.llvm), "Eight consecutive f64.")
store_ints = _operation(types.void, (types.int64, INTS), _store(INTS.llvm), "Store eight consecutive words.")
store_floats = _operation(types.void, (types.int64, FLOATS), _store(FLOATS.llvm), "Store eight consecutive f32.")
store_doubles = _operation(types.void, (types.int64, DOUBLES), _store(DOUBLES.llvm), "Store eight consecutive f64.")
load_halves = _operation(INTS, (types.int64, types.int64), _halves, "Four words at one address, then four at another.")
store_halves = _operation(
    types.void, (types.int64, types.int64, INTS), _store_halves, "First four words to one address, the others to another."
)
splat_int = _operation(INTS, (types.int32,), lambda b, x: _splat(b, INTS.llvm, x), "Eight times one word.")
splat_float = _operation(FLOATS, (types.float32,), lambda b, x: _splat(b, FLOATS.llvm, x), "Eight times one f32.")
splat_double = _operation(DOUBLES, (types.float64,), lambda b, x: _splat(b, DOUBLES.llvm, x), "Eight times one f64.")
splat_long = _operation(LONGS, (types.int64,), lambda b, x: _splat(b, LONGS.llvm, x), "Eight times one 64-bit word.")

add = _operation(INTS, (INTS, INTS), lambda b, x, y: b.add(x, y), "Sum modulo 2**32.")
sub = _operation(INTS, (INTS, INTS), lambda b, x, y: b.sub(x, y), "Difference modulo 2**32.")
mul = _operation(INTS, (INTS, INTS), lambda b, x, y: b.mul(x, y), "Product modulo 2**32.")
bit_and = _operation(INTS, (INTS, INTS), lambda b, x, y: b.and_(x, y), "Bitwise and.")
bit_or = _operation(INTS, (INTS, INTS), lambda b, x, y: b.or_(x, y), "Bitwise or.")
bit_xor = _operation(INTS, (INTS, INTS), lambda b, x, y: b.xor(x, y), "Bitwise exclusive or.")
shl = _operation(INTS, (INTS, INTS), lambda b, x, y: b.shl(x, y), "Left shift by less than 32.")
shr_u = _operation(INTS, (INTS, INTS), lambda b, x, y: b.lshr(x, y), "Logical right shift by less than 32.")
shr_s = _operation(INTS, (INTS, INTS), lambda b, x, y: b.ashr(x, y), "Arithmetic right shift by less than 32.")
maximum = _operation(INTS, (INTS, INTS), _greater, "Signed maximum.")
minimum = _operation(INTS, (INTS, INTS), _smaller, "Signed minimum.")

and_long = _operation(LONGS, (LONGS, LONGS), lambda b, x, y: b.and_(x, y), "Bitwise and.")
or_long = _operation(LONGS, (LONGS, LONGS), lambda b, x, y: b.or_(x, y), "Bitwise or.")
add_long = _operation(LONGS, (LONGS, LONGS), lambda b, x, y: b.add(x, y), "Sum modulo 2**64.")
shl_long = _operation(LONGS, (LONGS, LONGS), lambda b, x, y: b.shl(x, y), "Left shift by less than 64.")
shr_long = _operation(LONGS, (LONGS, LONGS), lambda b, x, y: b.lshr(x, y), "Logical right shift by less than 64.")
widen_ints = _operation(LONGS, (INTS,), lambda b, x: b.sext(x, LONGS.llvm), "Sign extension.")
narrow_longs = _operation(INTS, (LONGS,), lambda b, x: b.trunc(x, INTS.llvm), "The low 32 bits.")
max_long = _operation(LONGS, (LONGS, LONGS), _greater, "Signed maximum of 64-bit words.")

fadd = _operation(FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fadd(x, y), "f32 sum.")
fsub = _operation(FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fsub(x, y), "f32 difference.")
fmul = _operation(FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fmul(x, y), "f32 product.")
dadd = _operation(DOUBLES, (DOUBLES, DOUBLES), lambda b, x, y: b.fadd(x, y), "f64 sum.")
dsub = _operation(DOUBLES, (DOUBLES, DOUBLES), lambda b, x, y: b.fsub(x, y), "f64 difference.")
dmul = _operation(DOUBLES, (DOUBLES, DOUBLES), lambda b, x, y: b.fmul(x, y), "f64 product.")
truncate = _operation(INTS, (FLOATS,), lambda b, x: b.fptosi(x, INTS.llvm), "Toward zero; only for |x| < 2**31.")
truncate_doubles = _operation(INTS, (DOUBLES,), lambda b, x: b.fptosi(x, INTS.llvm), "Toward zero; only for |x| < 2**31.")
doubles_of_ints = _operation(DOUBLES, (INTS,), lambda b, x: b.sitofp(x, DOUBLES.llvm), "Exact f64 of signed words.")
doubles_of_floats = _operation(DOUBLES, (FLOATS,), lambda b, x: b.fpext(x, DOUBLES.llvm), "Exact f64 of f32.")
floats_of_doubles = _operation(
    FLOATS, (DOUBLES,), lambda b, x: b.fptrunc(x, FLOATS.llvm), "f32 of f64, nearest-even, overflow to Inf."
)
ints_of_floats = _operation(INTS, (FLOATS,), lambda b, x: b.bitcast(x, INTS.llvm), "The bits of f32.")
floats_of_bits = _operation(FLOATS, (INTS,), lambda b, x: b.bitcast(x, FLOATS.llvm), "The f32 with these bits.")
longs_of_doubles = _operation(LONGS, (DOUBLES,), lambda b, x: b.bitcast(x, LONGS.llvm), "The bits of f64.")
doubles_of_bits = _operation(DOUBLES, (LONGS,), lambda b, x: b.bitcast(x, DOUBLES.llvm), "The f64 with these bits.")

equal = _operation(MASKS, (INTS, INTS), lambda b, x, y: b.icmp_unsigned("==", x, y), "Equality.")
greater = _operation(MASKS, (INTS, INTS), lambda b, x, y: b.icmp_signed(">", x, y), "Signed comparison.")
select = _operation(INTS, (MASKS, INTS, INTS), lambda b, m, x, y: b.select(m, x, y), "Choice by lane.")
both = _operation(MASKS, (MASKS, MASKS), lambda b, x, y: b.and_(x, y), "Conjunction.")
either = _operation(MASKS, (MASKS, MASKS), lambda b, x, y: b.or_(x, y), "Disjunction.")
any_lane = _operation(types.boolean, (MASKS,), _any, "Whether the mask is set in any lane.")

_LOW = [[0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]]
_QUAD = [[0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]]
unpack_low = _operation(INTS, (INTS, INTS), _shuffle(_LOW[0]), "Interleave words 0, 1 of each half.")
unpack_high = _operation(INTS, (INTS, INTS), _shuffle(_LOW[1]), "Interleave words 2, 3 of each half.")
unpack_low_pairs = _operation(INTS, (INTS, INTS), _shuffle(_QUAD[0]), "Words 0, 1 of each half of both.")
unpack_high_pairs = _operation(INTS, (INTS, INTS), _shuffle(_QUAD[1]), "Words 2, 3 of each half of both.")
interleave_low = _operation(INTS, (INTS, INTS), _shuffle([0, 8, 1, 9, 2, 10, 3, 11]), "Alternate the first four of both.")
interleave_high = _operation(
    INTS, (INTS, INTS), _shuffle([4, 12, 5, 13, 6, 14, 7, 15]), "Alternate the last four of both."
)
join = _operation(INTS, (INTS, INTS), _shuffle([0, 1, 2, 3, 8, 9, 10, 11]), "The first halves of both.")
swap_halves = _operation(INTS, (INTS,), lambda b, x: _shuffle([4, 5, 6, 7, 0, 1, 2, 3])(b, x, x), "Exchange the halves.")
