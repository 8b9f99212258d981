"""Integer arithmetic (PTX ISA, 'Integer Arithmetic Instructions').

Values wrap modulo 2**n. Division by zero is unspecified by PTX; an H200 returns all ones, for the remainder too, and so
do these entries.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.types import is_signed, width

WORDS = (".u16", ".u32", ".u64", ".s16", ".s32", ".s64")
WORD32 = (".u32", ".s32")
NARROW = (".u16", ".u32", ".s16", ".s32")
MAX_S32, MIN_S32 = 0x7FFF_FFFF, 0x8000_0000


def _saturating(k: Kit, op: str) -> Any:
    """32-bit signed add or sub that clamps to MIN_S32..MAX_S32."""
    wide = k.sext(32, 64)
    return clamp_s32(k, lambda a, b: getattr(k, op)(64)(wide(a), wide(b)))


def clamp_s32(k: Kit, wide_op: Any) -> Any:
    """The function that clamps a signed 64-bit result of `wide_op` to 32 bits."""
    lt, select, trunc = k.lt_s(64), k.select(64), k.trunc(64, 32)
    high, low = k.const(64, MAX_S32), k.const(64, MIN_S32 - (1 << 32))

    def clamped(*words: Any) -> Any:
        s = wide_op(*words)
        s = select(lt(high, s), high, s)
        return trunc(select(lt(s, low), low, s))

    return clamped


@isa.op("add.type d, a, b", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-add",
        vectors=[vec(".u32", 0xFFFF_FFFF, 1, d=0, why="wraps"), vec(".u16", 0xFFFF, 2, d=1, why="wraps at 16 bits")])
def add(k: Kit, type: str) -> Any:
    """d = a + b"""
    return k.add(width(type))


@isa.op("add.sat.s32 d, a, b", cost=Cost.INT, types=dict.fromkeys("dab", "s32"),
        ref="integer-arithmetic-instructions-add",
        vectors=[vec(".sat.s32", MAX_S32, 1, d=MAX_S32, why="clamps at MAXINT"),
                 vec(".sat.s32", MIN_S32, 0xFFFF_FFFF, d=MIN_S32, why="clamps at MININT")])
def add_sat(k: Kit) -> Any:
    """d = a + b, clamped to the range of s32"""
    return _saturating(k, "add")


@isa.op("sub.type d, a, b", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-sub",
        vectors=[vec(".u32", 0, 1, d=0xFFFF_FFFF, why="wraps")])
def sub(k: Kit, type: str) -> Any:
    """d = a - b"""
    return k.sub(width(type))


@isa.op("sub.sat.s32 d, a, b", cost=Cost.INT, types=dict.fromkeys("dab", "s32"),
        ref="integer-arithmetic-instructions-sub",
        vectors=[vec(".sat.s32", MIN_S32, 1, d=MIN_S32, why="clamps at MININT")])
def sub_sat(k: Kit) -> Any:
    """d = a - b, clamped to the range of s32"""
    return _saturating(k, "sub")


@isa.op("mul.lo.type d, a, b", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-mul",
        vectors=[vec(".lo.s32", 0x10000, 0x10001, d=0x10000, why="keeps the low half")])
def mul_lo(k: Kit, type: str) -> Any:
    """d = low half of a * b"""
    return k.mul(width(type))


@isa.op("mul.hi.type d, a, b", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-mul",
        vectors=[vec(".hi.u32", 0xFFFF_FFFF, 0xFFFF_FFFF, d=0xFFFF_FFFE, why="unsigned high half"),
                 vec(".hi.s32", 0xFFFF_FFFF, 1, d=0xFFFF_FFFF, why="signed high half of -1")])
def mul_hi(k: Kit, type: str) -> Any:
    """d = high half of a * b"""
    return (k.mulhi_s if is_signed(type) else k.mulhi_u)(width(type))


def _double(type: str) -> str:
    return f"{type[0]}{2 * width(type)}"


def _wide_types(type: str) -> dict[str, str]:
    return {"d": _double(type), "a": type, "b": type, "c": _double(type)}


def _wide_product(k: Kit, type: str) -> Any:
    n = width(type)
    extend, mul = (k.sext if is_signed(type) else k.zext)(n, 2 * n), k.mul(2 * n)
    return lambda a, b: mul(extend(a), extend(b))


@isa.op("mul.wide.type d, a, b", type=NARROW, types=_wide_types, cost=Cost.INT,
        ref="integer-arithmetic-instructions-mul",
        vectors=[vec(".wide.s32", 0xFFFF_FFFF, 4, d=0xFFFF_FFFF_FFFF_FFFC, why="sign-extends its operands"),
                 vec(".wide.u32", 0xFFFF_FFFF, 4, d=0x3_FFFF_FFFC, why="zero-extends its operands")])
def mul_wide(k: Kit, type: str) -> Any:
    """d = a * b at twice the width"""
    return _wide_product(k, type)


@isa.op("mad.lo.type d, a, b, c", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-mad",
        vectors=[vec(".lo.u32", 3, 4, 5, d=17, why="a*b+c")])
def mad_lo(k: Kit, type: str) -> Any:
    """d = low half of a * b, plus c"""
    n = width(type)
    mul, add_ = k.mul(n), k.add(n)
    return lambda a, b, c: add_(mul(a, b), c)


@isa.op("mad.hi.type d, a, b, c", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-mad",
        vectors=[vec(".hi.u32", 0x8000_0000, 4, 5, d=7, why="high half plus c")])
def mad_hi(k: Kit, type: str) -> Any:
    """d = high half of a * b, plus c"""
    n = width(type)
    mul, add_ = (k.mulhi_s if is_signed(type) else k.mulhi_u)(n), k.add(n)
    return lambda a, b, c: add_(mul(a, b), c)


@isa.op("mad.hi.sat.s32 d, a, b, c", cost=Cost.INT, types=dict.fromkeys("dabc", "s32"),
        ref="integer-arithmetic-instructions-mad",
        vectors=[vec(".hi.sat.s32", MAX_S32, MAX_S32, MAX_S32, d=MAX_S32, why="clamps")])
def mad_hi_sat(k: Kit) -> Any:
    """d = high half of a * b, plus c, clamped to the range of s32"""
    mul, wide, add_ = k.mulhi_s(32), k.sext(32, 64), k.add(64)
    return clamp_s32(k, lambda a, b, c: add_(wide(mul(a, b)), wide(c)))


@isa.op("mad.wide.type d, a, b, c", type=NARROW, types=_wide_types, cost=Cost.INT,
        ref="integer-arithmetic-instructions-mad",
        vectors=[vec(".wide.s32", 0xFFFF_FFFF, 2, 10, d=8, why="signed product, wide sum")])
def mad_wide(k: Kit, type: str) -> Any:
    """d = a * b at twice the width, plus c"""
    product, add_ = _wide_product(k, type), k.add(2 * width(type))
    return lambda a, b, c: add_(product(a, b), c)


def _low24(k: Kit, type: str) -> Any:
    """The low 24 bits of a word, extended to 32."""
    up, down = k.shl(32), (k.shr_s if is_signed(type) else k.shr_u)(32)
    eight = k.const(32, 8)
    return lambda a: down(up(a, eight), eight)


def _mul24(k: Kit, type: str, half: str) -> Any:
    low24, mul, shift = _low24(k, type), _wide_product(k, type), k.shr_u(64)
    trunc, amount = k.trunc(64, 32), k.const(64, 0 if half == "lo" else 16)
    return lambda a, b: trunc(shift(mul(low24(a), low24(b)), amount))


@isa.op("mul24.half.type d, a, b", half=(".lo", ".hi"), type=WORD32, cost=Cost.INT,
        ref="integer-arithmetic-instructions-mul24",
        vectors=[vec(".lo.u32", 0xFF00_0003, 2, d=6, why="ignores the top byte"),
                 vec(".hi.u32", 0xFF_FFFF, 0xFF_FFFF, d=0xFFFF_FE00, why="high 32 of 48 bits")])
def mul24(k: Kit, half: str, type: str) -> Any:
    """d = low or high 32 bits of the 48-bit product of 24-bit operands"""
    return _mul24(k, type, half)


@isa.op("mad24.half.type d, a, b, c", half=(".lo", ".hi"), type=WORD32, cost=Cost.INT,
        ref="integer-arithmetic-instructions-mad24", vectors=[vec(".lo.u32", 3, 4, 5, d=17, why="a*b+c")])
def mad24(k: Kit, half: str, type: str) -> Any:
    """d = mul24 plus c"""
    mul, add_ = _mul24(k, type, half), k.add(32)
    return lambda a, b, c: add_(mul(a, b), c)


@isa.op("sad.type d, a, b, c", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-sad",
        vectors=[vec(".u32", 3, 5, 1, d=3, why="|a-b|+c")])
def sad(k: Kit, type: str) -> Any:
    """d = |a - b| + c"""
    n = width(type)
    lt, sub_, add_, select = (k.lt_s if is_signed(type) else k.lt_u)(n), k.sub(n), k.add(n), k.select(n)
    return lambda a, b, c: add_(c, select(lt(a, b), sub_(b, a), sub_(a, b)))


@isa.op("div.type d, a, b", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-div",
        vectors=[vec(".s32", 0xFFFF_FFF9, 2, d=0xFFFF_FFFD, why="-7/2 rounds toward zero"),
                 vec(".u32", 7, 0, d=0xFFFF_FFFF, why="division by zero gives all ones", seen="sm_90")])
def div(k: Kit, type: str) -> Any:
    """d = a / b, toward zero"""
    return (k.div_s if is_signed(type) else k.div_u)(width(type))


@isa.op("rem.type d, a, b", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-rem",
        vectors=[vec(".s32", 0xFFFF_FFF9, 2, d=0xFFFF_FFFF, why="sign of the dividend"),
                 vec(".u32", 7, 0, d=0xFFFF_FFFF, why="remainder by zero gives all ones", seen="sm_90")])
def rem(k: Kit, type: str) -> Any:
    """d = a - b * (a / b)"""
    n = width(type)
    op, eq, select = (k.rem_s if is_signed(type) else k.rem_u)(n), k.eq(n), k.select(n)
    zero, ones = k.const(n, 0), k.const(n, -1)
    return lambda a, b: select(eq(b, zero), ones, op(a, b))


@isa.op("abs.type d, a", type=(".s16", ".s32", ".s64"), cost=Cost.INT, ref="integer-arithmetic-instructions-abs",
        vectors=[vec(".s32", 0xFFFF_FFFF, d=1, why="|-1|"), vec(".s32", MIN_S32, d=MIN_S32, why="wraps")])
def abs_(k: Kit, type: str) -> Any:
    """d = |a|"""
    n = width(type)
    zero, lt, sub_, select = k.const(n, 0), k.lt_s(n), k.sub(n), k.select(n)
    return lambda a: select(lt(a, zero), sub_(zero, a), a)


@isa.op("neg.type d, a", type=(".s16", ".s32", ".s64"), cost=Cost.INT, ref="integer-arithmetic-instructions-neg",
        vectors=[vec(".s32", 1, d=0xFFFF_FFFF, why="-1")])
def neg(k: Kit, type: str) -> Any:
    """d = -a"""
    n = width(type)
    zero, sub_ = k.const(n, 0), k.sub(n)
    return lambda a: sub_(zero, a)


def _extreme(k: Kit, type: str, largest: bool) -> Any:
    n = width(type)
    lt, select = (k.lt_s if is_signed(type) else k.lt_u)(n), k.select(n)
    return (lambda a, b: select(lt(a, b), b, a)) if largest else (lambda a, b: select(lt(b, a), b, a))


@isa.op("min.type d, a, b", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-min",
        vectors=[vec(".s32", 1, 0xFFFF_FFFF, d=0xFFFF_FFFF, why="signed"),
                 vec(".u32", 1, 0xFFFF_FFFF, d=1, why="unsigned")])
def min_(k: Kit, type: str) -> Any:
    """d = the smaller of a and b"""
    return _extreme(k, type, False)


@isa.op("max.type d, a, b", type=WORDS, cost=Cost.INT, ref="integer-arithmetic-instructions-max",
        vectors=[vec(".s32", 1, 0xFFFF_FFFF, d=1, why="signed"),
                 vec(".u32", 1, 0xFFFF_FFFF, d=0xFFFF_FFFF, why="unsigned")])
def max_(k: Kit, type: str) -> Any:
    """d = the larger of a and b"""
    return _extreme(k, type, True)


@isa.op("popc.type d, a", type=(".b32", ".b64"), types={"d": "u32", "a": "type"}, cost=Cost.INT,
        ref="integer-arithmetic-instructions-popc", vectors=[vec(".b32", 0xF0F0, d=8, why="counts ones")])
def popc(k: Kit, type: str) -> Any:
    """d = number of one bits in a"""
    n = width(type)
    count, narrow = k.popc(n), k.trunc(n, 32)
    return lambda a: narrow(count(a))


@isa.op("clz.type d, a", type=(".b32", ".b64"), types={"d": "u32", "a": "type"}, cost=Cost.INT,
        ref="integer-arithmetic-instructions-clz",
        vectors=[vec(".b32", 1, d=31, why="leading zeros"), vec(".b32", 0, d=32, why="width for zero")])
def clz(k: Kit, type: str) -> Any:
    """d = number of leading zero bits of a"""
    n = width(type)
    count, narrow = k.clz(n), k.trunc(n, 32)
    return lambda a: narrow(count(a))


@isa.op("bfind{.shiftamt}.type d, a", type=(".u32", ".u64", ".s32", ".s64"), types={"d": "u32", "a": "type"},
        cost=Cost.INT, ref="integer-arithmetic-instructions-bfind",
        vectors=[vec(".u32", 0x100, d=8, why="position of the leading one"),
                 vec(".u32", 0, d=0xFFFF_FFFF, why="all ones when there is none"),
                 vec(".s32", 0xFFFF_FEFF, d=8, why="a negative number's leading zero")])
def bfind(k: Kit, shiftamt: bool, type: str) -> Any:
    """d = position of the most significant bit that is not the sign; with .shiftamt the shift that moves it to the
    top"""
    n = width(type)
    count, narrow, sub_, select = k.clz(n), k.trunc(n, 32), k.sub(32), k.select(32)
    none, top, all_ones, eq = k.const(32, n), k.const(32, n - 1), k.const(32, -1), k.eq(32)
    flip, sign = k.xor(n), k.shr_s(n)
    shift = k.const(n, n - 1)

    def find(a: Any) -> Any:
        x = flip(a, sign(a, shift)) if is_signed(type) else a
        z = narrow(count(x))
        return select(eq(z, none), all_ones, z if shiftamt else sub_(top, z))

    return find


@isa.op("brev.type d, a", type=(".b32", ".b64"), cost=Cost.INT, ref="integer-arithmetic-instructions-brev",
        vectors=[vec(".b32", 1, d=0x8000_0000, why="reverses")])
def brev(k: Kit, type: str) -> Any:
    """d = a with its bits in reverse order"""
    return k.brev(width(type))


def _bit_count(k: Kit, n: int) -> Any:
    """A position or length of `bfe` and `bfi`: the machine has 32-bit forms, which read a byte; the code that ptxas
    makes for 64 bits shifts by the whole word (H200)."""
    widen, byte, and_ = k.zext(32, n), k.const(32, 0xFF), k.and_(32)
    return (lambda w: and_(w, byte)) if n == 32 else widen


@isa.op("bfe.type d, a, b, c", type=(".u32", ".u64", ".s32", ".s64"),
        types={"d": "type", "a": "type", "b": "u32", "c": "u32"}, cost=Cost.INT,
        ref="integer-arithmetic-instructions-bfe",
        vectors=[vec(".u32", 0xABCD, 4, 8, d=0xBC, why="8 bits from bit 4"),
                 vec(".s32", 0xABCD, 8, 8, d=0xFFFF_FFAB, why="sign-extended"),
                 vec(".u32", 5, 0, 0, d=0, why="no bits"),
                 vec(".u32", 6, 0x101, 0x102, d=3, why="the low bytes count"),
                 vec(".u64", 6, 0x101, 2, d=0, why="not at 64 bits", seen="sm_90")])
def bfe(k: Kit, type: str) -> Any:
    """d = c bits of a from bit b, zero- or sign-extended; at 32 bits only the low 8 bits of b and c count"""
    n = width(type)
    count = _bit_count(k, n)
    shl, shr, and_, or_, not_ = k.shl(n), k.shr_u(n), k.and_(n), k.or_(n), k.not_(n)
    add_, sub_, lt, eq, select = k.add(n), k.sub(n), k.lt_u(n), k.eq(n), k.select(n)
    zero, one, top, ones = k.const(n, 0), k.const(n, 1), k.const(n, n - 1), k.const(n, -1)

    def extract(a: Any, b: Any, c: Any) -> Any:
        pos, length = count(b), count(c)
        mask = and_(sub_(shl(one, length), one), shr(ones, pos))  # bits of d that exist in a
        field = and_(shr(a, pos), mask)
        if not is_signed(type):
            return field
        last = sub_(add_(pos, length), one)
        sign = and_(shr(a, select(lt(top, last), top, last)), one)
        fill = and_(sub_(zero, sign), not_(mask))
        return select(eq(length, zero), zero, or_(field, fill))

    return extract


@isa.op("bfi.type f, a, b, c, e", type=(".b32", ".b64"), writes=("f",),
        types={"f": "type", "a": "type", "b": "type", "c": "u32", "e": "u32"}, cost=Cost.INT,
        ref="integer-arithmetic-instructions-bfi",
        vectors=[vec(".b32", 0xF, 0, 4, 4, d=0xF0, why="4 bits at bit 4"),
                 vec(".b32", 1, 7, 40, 4, d=7, why="past the top")])
def bfi(k: Kit, type: str) -> Any:
    """f = b with e bits from bit c replaced by the low bits of a; at 32 bits only the low 8 bits of c and e count"""
    n = width(type)
    count = _bit_count(k, n)
    shl, and_, or_, sub_, not_ = k.shl(n), k.and_(n), k.or_(n), k.sub(n), k.not_(n)
    one = k.const(n, 1)

    def insert(a: Any, b: Any, c: Any, e: Any) -> Any:
        pos, length = count(c), count(e)
        mask = shl(sub_(shl(one, length), one), pos)
        return or_(and_(b, not_(mask)), and_(shl(a, pos), mask))

    return insert


@isa.op("szext.mode.type d, a, b", mode=(".clamp", ".wrap"), type=WORD32, types={"d": "type", "a": "type", "b": "u32"},
        cost=Cost.INT, ref="integer-arithmetic-instructions-szext", since=((7, 6), 70),
        vectors=[vec(".wrap.s32", 0xF8, 8, d=0xFFFF_FFF8, why="sign-extends 8 bits"),
                 vec(".clamp.u32", 5, 40, d=5, why="clamps")])
def szext(k: Kit, mode: str, type: str) -> Any:
    """d = the low b bits of a, sign- or zero-extended (b modulo 32, or clamped to 32)"""
    shl, shr = k.shl(32), k.shr_s(32) if is_signed(type) else k.shr_u(32)
    sub_, and_, select, lt, eq = k.sub(32), k.and_(32), k.select(32), k.lt_u(32), k.eq(32)
    size, zero = k.const(32, 32), k.const(32, 0)

    def extend(a: Any, b: Any) -> Any:
        bits = and_(b, k.const(32, 31)) if mode == "wrap" else select(lt(size, b), size, b)
        up = sub_(size, bits)
        return select(eq(bits, zero), zero, shr(shl(a, up), up))

    return extend


@isa.op("bmsk.mode.b32 d, a, b", mode=(".clamp", ".wrap"), types=dict.fromkeys("dab", "b32"), cost=Cost.INT,
        ref="integer-arithmetic-instructions-bmsk", since=((7, 6), 70),
        vectors=[vec(".clamp.b32", 4, 8, d=0xFF0, why="8 ones from bit 4"), vec(".wrap.b32", 33, 1, d=2, why="wraps")])
def bmsk(k: Kit, mode: str) -> Any:
    """d = b ones from bit a (both modulo 32, or clamped)"""
    shl, sub_, and_ = k.shl(32), k.sub(32), k.and_(32)
    one, low5 = k.const(32, 1), k.const(32, 31)

    def mask(a: Any, b: Any) -> Any:
        if mode == "wrap":
            a, b = and_(a, low5), and_(b, low5)
        return shl(sub_(shl(one, b), one), a)

    return mask


@isa.op("fns.b32 d, a, b, c", types={"d": "b32", "a": "b32", "b": "u32", "c": "s32"}, cost=Cost.INT,
        ref="integer-arithmetic-instructions-fns", since=((6, 0), 30),
        vectors=[vec(".b32", 0b1011_0000, 0, 3, d=7, why="the third one from bit 0 up"),
                 vec(".b32", 0b1011_0000, 7, 0xFFFF_FFFE, d=5, why="the second one from bit 7 down"),
                 vec(".b32", 1, 0, 0, d=0, why="0: whether the base is set"),
                 vec(".b32", 1, 0, 2, d=0xFFFF_FFFF, why="none")])
def fns(k: Kit) -> Any:
    """d = position of the |c|-th set bit of a from bit b on, upwards for positive c, downwards for negative; all ones
    if there is none"""
    return k.lane("find_nth_set")
