"""From register fragments to what the fast path computes with: values as f32, exponents as int32, one scratch array
each.

A warp's operand is stored as consecutive vectors of 32 words: register r of lane l at address + (r * 32 + l) * 4. In
`mma.sync` fragments (`fragments.py`) lane l holds row (of A) or column (of B) l // 4, so four consecutive words are
neighbouring k of one row: a register is eight rows of 16 bytes. A's registers 2g and 2g + 1 (rows 0-7, 8-15) and B's
register g hold group g of k: 4, 8 or 16 of them for 32-, 16- and 8-bit elements.

Scratch order, the same for both operands: within a group, element s of word q goes to position 4 * s + q. The order of
k inside a block does not matter, since a maximum and an exact sum are taken, and blocks are whole groups.
    A: f32[16][K] and int32[16][K] B: f32[K][8] and int32[K][8], columns in the order 0 2 4 6 1 3 5 7 (that of an even
    accumulator register, then the odd one)

Exponents are those of the model: subnormals have the smallest normal number's, zeros have NOTHING.
"""

from __future__ import annotations

from llvmlite import ir

from interp.runtime.vector import I1, I64, INTS, Lanes, Value, define, loop
from interp.tensorcore.model import BF16, E4M3, E5M2, F16, TF32

NOTHING = -4096  # exponent of a zero: far below any floor, also twice
MODERATE = 50  # f32 products of numbers with exponents of at most this size neither overflow nor lose bits

# kind -> width, fraction bits, exponent bias, largest finite magnitude
LAYOUT = {
    F16: (16, 10, 15, 0x7BFF),
    BF16: (16, 7, 127, 0x7F7F),
    TF32: (32, 23, 127, 0x7F7FFFFF),
    E4M3: (8, 3, 7, 0x7E),
    E5M2: (8, 2, 15, 0x7B),
}
NAMES = {F16: "f16", BF16: "bf16", TF32: "tf32", E4M3: "e4m3", E5M2: "e5m2"}


def decode(v: Lanes, words: Value, part: int, kind: int) -> tuple[Value, Value, Value]:
    """Element `part` of each word: (f32 bits, exponent or NOTHING, mask of NaN and Inf, whose values are void)."""
    width, fraction, bias, finite = LAYOUT[kind]
    h = v.bit_and(v.shr(words, part * width), (1 << width) - 1) if width < 32 else v.bit_and(words, -0x2000)
    a = v.bit_and(h, (1 << (width - 1)) - 1)
    exponent = v.sub(v.maximum(v.shr(a, fraction), 1), bias)
    exponent = v.select(v.equal(a, 0), NOTHING, exponent)
    special = v.greater(a, finite)
    if bias == 127:
        return (v.shl(h, 32 - width) if width < 32 else h), exponent, special
    normal = v.add(v.shl(a, 23 - fraction), (127 - bias) << 23)
    # subnormals: a whole number of units, through the binade where f32's last place is one
    whole = v.b.fsub(v.floats(v.bit_or(a, 0x4B000000)), v.floats(v.const(0x4B000000)))
    unit = v.floats(v.const((127 + 1 - bias - fraction) << 23))
    bits = v.select(v.greater(a, (1 << fraction) - 1), normal, v.bits(v.b.fmul(whole, unit)))
    return v.bit_or(bits, v.shl(v.shr(h, width - 1), 31)), exponent, special


def _note(v: Lanes, seen: list[Value], exponent: Value, special: Value) -> list[Value]:
    """Update (largest exponent, smallest exponent of non-zeros, any special)."""
    largest, smallest, beyond = seen
    present = v.select(v.equal(exponent, NOTHING), 0, exponent)
    return [v.maximum(largest, exponent), v.minimum(smallest, present), v.b.or_(beyond, special)]


def _unseen(v: Lanes) -> list[Value]:
    return [v.const(0), v.const(0), ir.Constant(ir.VectorType(I1, 8), [0] * 8)]


def _verdict(v: Lanes, seen: list[Value]) -> Value:
    """i64: bit 0 for exponents outside the moderate range, bit 1 for NaN or Inf."""
    largest, smallest, beyond = seen
    wide = v.any(v.b.or_(v.greater(largest, MODERATE), v.greater(-MODERATE, smallest)))
    return v.b.or_(v.b.zext(wide, I64), v.b.shl(v.b.zext(v.any(beyond), I64), ir.Constant(I64, 1)))


def rows_function(module: ir.Module, kind: int) -> ir.Function:
    """i64 (source, groups, values, exponents): decode A."""
    function, new = define(module, f"gpuemu.tensorcore.rows.{NAMES[kind]}", I64, [I64] * 4)
    if not new:
        return function
    v = Lanes(ir.IRBuilder(function.append_basic_block()))
    b = v.b
    source, groups, values, exponents = function.args
    size = 16 * (32 // LAYOUT[kind][0])  # scratch bytes of one group of one row
    width = b.mul(groups, ir.Constant(I64, size))

    def rows(index: Value, seen: list[Value]) -> list[Value]:
        """Two rows of one register: index counts 32-byte pieces of the fragment."""
        words = v.load(b.add(source, b.shl(index, ir.Constant(I64, 5))), INTS)
        group = b.lshr(index, ir.Constant(I64, 3))
        row = b.shl(b.and_(index, ir.Constant(I64, 7)), ir.Constant(I64, 1))
        place = b.add(b.mul(row, width), b.mul(group, ir.Constant(I64, size)))
        for part in range(32 // LAYOUT[kind][0]):
            bits, exponent, special = decode(v, words, part, kind)
            for base, what in ((values, bits), (exponents, exponent)):
                first = v.at(b.add(base, place), part * 16)
                v.store_halves(first, b.add(first, width), what)
            seen = _note(v, seen, exponent, special)
        return seen

    pieces = b.shl(groups, ir.Constant(I64, 3))
    b.ret(_verdict(v, loop(b, ir.Constant(I64, 0), pieces, 1, _unseen(v), rows)))
    return function


def columns_function(module: ir.Module, kind: int) -> ir.Function:
    """i64 (source, groups, values, exponents): decode B."""
    function, new = define(module, f"gpuemu.tensorcore.columns.{NAMES[kind]}", I64, [I64] * 4)
    if not new:
        return function
    v = Lanes(ir.IRBuilder(function.append_basic_block()))
    b = v.b
    source, groups, values, exponents = function.args
    parts = 32 // LAYOUT[kind][0]

    def group(index: Value, seen: list[Value]) -> list[Value]:
        start = b.add(source, b.shl(index, ir.Constant(I64, 7)))
        x = [v.load(v.at(start, 32 * j), INTS) for j in range(4)]
        # columns 2j and 2j + 1 are the halves of x[j]: transposing each half gives columns 0 2 4 6 1 3 5 7
        low = [v.shuffle(x[j], x[j + 1], [0, 8, 1, 9, 4, 12, 5, 13]) for j in (0, 2)]
        high = [v.shuffle(x[j], x[j + 1], [2, 10, 3, 11, 6, 14, 7, 15]) for j in (0, 2)]
        columns = [
            v.shuffle(x0, x1, lanes)
            for x0, x1 in (low, high)
            for lanes in ([0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15])
        ]
        place = b.mul(index, ir.Constant(I64, parts * 4 * 32))
        for part in range(parts):
            for q, words in enumerate(columns):
                bits, exponent, special = decode(v, words, part, kind)
                for base, what in ((values, bits), (exponents, exponent)):
                    v.store(v.at(b.add(base, place), (part * 4 + q) * 32), what)
                seen = _note(v, seen, exponent, special)
        return seen

    b.ret(_verdict(v, loop(b, ir.Constant(I64, 0), groups, 1, _unseen(v), group)))
    return function
