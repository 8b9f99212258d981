"""From register fragments to what the fast path computes with: values as f32, exponents as small integers.

A warp's operand is stored as consecutive vectors of 32 words: register r of lane l at address + (r * 32 + l) * 4. In
`mma.sync` fragments (`fragments.py`) lane l holds row (of A) or column (of B) l // 4, so four consecutive words are
neighbouring k of one row: a register is eight rows of 16 bytes. A's registers 2g and 2g + 1 (rows 0-7, 8-15) and B's
register g hold group g of k: 4, 8 or 16 of them for 32-, 16- and 8-bit elements.

Exponents are those of the model: subnormals have the smallest normal number's; a zero has one far below all others.
They are biased, so that the sum of two is the field of an f32, and bytes where that fits (f16 and the 8-bit types),
otherwise 16-bit words: one instruction adds 32 or 16 of them. A *vector of exponents* is 32 bytes, eight columns of as
many rows as that takes (`together`).

Scratch:
    A: values f32[8][K][8], of two rows each four times;
    exponents [16 / together][K][together][8], of each row eight times
    B: values f32[K][8], exponents [K][8], columns in the order 0 2 4 6 1 3 5 7 (that of an even accumulator register,
    then the odd one)
"""

from __future__ import annotations

from llvmlite import ir

from interp.runtime.vector import F32, I16, I32, I64, INTS, Lanes, Value, define, lanes_of, loop
from interp.tensorcore.model import BF16, E4M3, E5M2, F16, TF32

MODERATE = 50
"""Products of numbers with exponents of at most this size are normal f32, exact, and above 2**`FLOOR` (`rows.py`)."""
BIAS_A, BIAS_B = 64, 63
"""What is added to exponents: a product's is the field of an f32."""
LOWERED = 40
"""f32 values of A are 2**-LOWERED of the operands where exponents are bytes (`rows.py`)."""
NOTHING = {8: 0, 16: -16384}
"""Exponent of a zero by width. A sum with it stays below any floor."""

F16_BESIDE_BF16 = 16
"""The kind of f16 operands whose partner is bf16 (`tcgen05` has that): their exponents are 16-bit words, too."""

# kind -> width, fraction bits, exponent bias, largest finite magnitude
LAYOUT = {
    F16: (16, 10, 15, 0x7BFF),
    F16_BESIDE_BF16: (16, 10, 15, 0x7BFF),
    BF16: (16, 7, 127, 0x7F7F),
    TF32: (32, 23, 127, 0x7F7FFFFF),
    E4M3: (8, 3, 7, 0x7E),
    E5M2: (8, 2, 15, 0x7B),
}
NAMES = {F16: "f16", F16_BESIDE_BF16: "f16.words", BF16: "bf16", TF32: "tf32", E4M3: "e4m3", E5M2: "e5m2"}


def exponent_bits(kind: int) -> int:
    """Width of the exponents of a kind."""
    return 16 if LAYOUT[kind][2] == 127 or kind == F16_BESIDE_BF16 else 8


def together(bits: int) -> int:
    """Rows of A in one vector of exponents of that width."""
    return 32 // bits


def floats_of_halves(b: ir.IRBuilder, halves: Value, converts: bool) -> Value:
    """f32 of f16 words, exact. `converts`: the target has an instruction for it."""
    count = halves.type.count
    floats = ir.VectorType(F32, count)
    if converts:
        return b.fpext(b.bitcast(halves, ir.VectorType(ir.HalfType(), count)), floats)
    ints = ir.VectorType(I32, count)

    def const(value: int) -> Value:
        return lanes_of(ints, value)

    h = b.zext(halves, ints)
    a = b.and_(h, const(0x7FFF))
    normal = b.add(b.shl(a, const(13)), const(112 << 23))
    normal = b.select(b.icmp_signed(">", a, const(0x7BFF)), b.add(normal, const(112 << 23)), normal)
    # subnormals: a whole number of units, through the binade where f32's last place is one
    whole = b.fsub(b.bitcast(b.or_(a, const(0x4B000000)), floats), b.bitcast(const(0x4B000000), floats))
    small = b.bitcast(b.fmul(whole, b.bitcast(const((127 - 24) << 23), floats)), ints)
    bits = b.select(b.icmp_signed(">", a, const(0x3FF)), normal, small)
    return b.bitcast(b.or_(bits, b.shl(b.lshr(h, const(15)), const(31))), floats)


def values(b: ir.IRBuilder, words: Value, kind: int, converts: bool) -> Value:
    """f32 of elements of a kind; those of FP8's infinities and NaN are void."""
    count = words.type.count
    floats, ints, shorts = (ir.VectorType(t, count) for t in (F32, I32, I16))
    if kind in (F16, F16_BESIDE_BF16):
        return floats_of_halves(b, words, converts)
    if kind == BF16:
        return b.bitcast(b.shl(b.zext(words, ints), lanes_of(ints, 16)), floats)
    if kind == TF32:
        return b.bitcast(b.and_(words, lanes_of(ints, -0x2000)), floats)
    h = b.zext(words, shorts)
    if kind == E5M2:
        return floats_of_halves(b, b.shl(h, lanes_of(shorts, 8)), converts)
    # e4m3 lies in f16 with its fields in place, but for the bias, which is 8 less
    a = b.shl(b.and_(h, lanes_of(shorts, 0x7F)), lanes_of(shorts, 7))
    sign = b.shl(b.and_(h, lanes_of(shorts, 0x80)), lanes_of(shorts, 8))
    small = floats_of_halves(b, b.or_(a, sign), converts)
    return b.fmul(small, b.bitcast(lanes_of(ints, (127 + 8) << 23), floats))


def _maximum(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_signed(">", x, y), x, y)


def _minimum(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_signed("<", x, y), x, y)


class _Decoder:
    """Values and exponents of vectors of `count` elements of a kind, and what was seen among them."""

    def __init__(self, b: ir.IRBuilder, kind: int, count: int, bias: int, converts: bool) -> None:
        self.b, self.kind, self.added, self.converts = b, kind, bias, converts
        self.lowered = bias == BIAS_A and exponent_bits(kind) == 8
        width, _fraction, bias, _finite = LAYOUT[kind]
        self.words = ir.VectorType(ir.IntType(width), count)
        self.narrow = ir.VectorType(ir.IntType(exponent_bits(kind)), count)
        self.unseen = [lanes_of(self.words, 0)] * (3 if bias == 127 else 1)

    def convert(self, words: Value, seen: list[Value]) -> tuple[Value, Value, list[Value]]:
        """(f32 values, exponents, new state)."""
        b, of = self.b, self.words
        width, fraction, bias, _finite = LAYOUT[self.kind]
        a = b.and_(words, lanes_of(of, (1 << (width - 1)) - (0x2000 if self.kind == TF32 else 1)))
        exponent = b.sub(_maximum(b, b.lshr(a, lanes_of(of, fraction)), lanes_of(of, 1)), lanes_of(of, bias))
        zero = b.icmp_unsigned("==", a, lanes_of(of, 0))
        following = [_maximum(b, seen[0], a)]
        if bias == 127:
            present = b.select(zero, lanes_of(of, 0), exponent)
            following += [_maximum(b, seen[1], present), _minimum(b, seen[2], present)]
        exponent = b.add(exponent, lanes_of(of, self.added))
        exponent = b.select(zero, lanes_of(of, NOTHING[self.narrow.element.width]), exponent)
        if of != self.narrow:
            exponent = b.trunc(exponent, self.narrow)
        x = values(b, words, self.kind, self.converts)
        if self.lowered:
            x = b.fmul(x, b.bitcast(lanes_of(ir.VectorType(I32, words.type.count), (127 - LOWERED) << 23), x.type))
        return x, exponent, following

    def verdict(self, seen: list[Value]) -> Value:
        """i64: bit 0 for exponents outside the moderate range, bit 1 for NaN or Inf."""
        b = self.b
        beyond = self._any(b.icmp_signed(">", seen[0], lanes_of(self.words, LAYOUT[self.kind][3])))
        result = b.shl(b.zext(beyond, I64), ir.Constant(I64, 1))
        if len(seen) > 1:
            high = b.icmp_signed(">", seen[1], lanes_of(self.words, MODERATE))
            low = b.icmp_signed("<", seen[2], lanes_of(self.words, -MODERATE))
            result = b.or_(result, b.zext(self._any(b.or_(high, low)), I64))
        return result

    def _any(self, mask: Value) -> Value:
        bits = ir.IntType(mask.type.count)
        return self.b.icmp_unsigned("!=", self.b.bitcast(mask, bits), ir.Constant(bits, 0))


def _pick(b: ir.IRBuilder, vector: Value, lanes: list[int]) -> Value:
    return b.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))


def rows_function(module: ir.Module, kind: int, converts: bool) -> ir.Function:
    """i64 (source, groups, values, exponents): decode A."""
    function, new = define(module, f"gpuemu.tensorcore.rows.{NAMES[kind]}", I64, [I64] * 4)
    if not new:
        return function
    b = ir.IRBuilder(function.append_basic_block())
    v = Lanes(b)
    source, groups, floats, exponents = function.args
    rows = together(exponent_bits(kind))
    each = 128 // LAYOUT[kind][0]  # elements of a row in a group
    decoder = _Decoder(b, kind, rows * each, BIAS_A, converts)
    depth = b.mul(groups, ir.Constant(I64, each))
    in_group = 16 // rows

    def some_rows(index: Value, seen: list[Value]) -> list[Value]:
        """Consecutive rows of one group."""
        words = v.load(b.add(source, b.mul(index, ir.Constant(I64, 16 * rows))), decoder.words)
        x, e, seen = decoder.convert(words, seen)
        first = b.urem(index, ir.Constant(I64, in_group))
        k = b.mul(b.udiv(index, ir.Constant(I64, in_group)), ir.Constant(I64, each))
        pair = b.mul(first, ir.Constant(I64, rows // 2))
        for r in range(0, rows, 2):
            place = b.add(b.mul(b.add(pair, ir.Constant(I64, r // 2)), depth), k)
            place = b.add(floats, b.shl(place, ir.Constant(I64, 5)))
            for quarter in range(0, each, 4):  # two rows as the halves of a vector, so that one shuffle makes each k's
                lanes = [(r + half) * each + quarter + j for half in range(2) for j in range(4)]
                both = _pick(b, x, lanes)
                for j in range(4):
                    v.store(v.at(place, 32 * (quarter + j)), _pick(b, both, [j] * 4 + [4 + j] * 4))
        place = b.add(exponents, b.shl(b.add(b.mul(first, depth), k), ir.Constant(I64, 5)))
        for j in range(each):
            v.store(v.at(place, 32 * j), _pick(b, e, [r * each + j for r in range(rows) for _ in range(8)]))
        return seen

    count = b.mul(groups, ir.Constant(I64, in_group))
    b.ret(decoder.verdict(loop(b, ir.Constant(I64, 0), count, 1, decoder.unseen, some_rows)))
    return function


def columns_function(module: ir.Module, kind: int, converts: bool) -> ir.Function:
    """i64 (source, groups, values, exponents): decode B."""
    function, new = define(module, f"gpuemu.tensorcore.columns.{NAMES[kind]}", I64, [I64] * 4)
    if not new:
        return function
    b = ir.IRBuilder(function.append_basic_block())
    v = Lanes(b)
    source, groups, floats, exponents = function.args
    parts = 32 // LAYOUT[kind][0]
    decoder = _Decoder(b, kind, 8 * parts, BIAS_B, converts)
    step = exponent_bits(kind)  # bytes of eight exponents

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
        k = b.mul(index, ir.Constant(I64, 4 * parts))
        for q, words in enumerate(columns):
            elements = b.bitcast(words, decoder.words)
            if parts > 1:  # by k, each of eight columns
                elements = _pick(b, elements, [lane * parts + part for part in range(parts) for lane in range(8)])
            values_of, e, seen = decoder.convert(elements, seen)
            v.store(v.at(b.add(floats, b.shl(k, ir.Constant(I64, 5))), 32 * parts * q), values_of)
            v.store(v.at(b.add(exponents, b.mul(k, ir.Constant(I64, step))), step * parts * q), e)
        return seen

    b.ret(decoder.verdict(loop(b, ir.Constant(I64, 0), groups, 1, decoder.unseen, group)))
    return function
