"""Conversions (PTX ISA, 'Data Movement and Conversion Instructions': cvt).

The frequent forms are emitted in line: integer to integer, f32 to and from f16 and bf16, 32-bit integers to f32, f32 to
32-bit integers toward zero, tf32. All others are lane functions over the integer code of `interp.formats`.

Out-of-range values: a float converted to an integer clamps to its range (with or without `.sat`, as PTX says), and NaN
gives what `interp.formats.integers` states; overflow of a float target follows the rounding mode; `.sat` on a float
target clamps to [0, 1], NaN to +0; `.relu` turns negative results, -0 included, to +0; `.satfinite` turns infinities
into the largest finite number. `.ftz` flushes subnormal f32 inputs and results.

Conversions that keep the type are in `interp.ops.convert_same`; the packed targets, tf32, FP8 and cvt.pack in
`interp.ops.convert_packed`.
"""

from __future__ import annotations

from typing import Any

from interp.formats.rounding import MODES
from interp.kit import Kit
from interp.ops.formats import INFINITY, canonical, flush32, widen16
from interp.ops.table import isa
from ptx.isa import Cost, vec
from ptx.targets import at
from ptx.types import is_signed, width

REF = "data-movement-and-conversion-instructions-cvt"
_BF16 = {".bf16": at((7, 8), 90)}
INTEGERS = (".u8", ".u16", ".u32", ".u64", ".s8", ".s16", ".s32", ".s64")
FLOATS = (".f16", ".bf16", ".f32", ".f64")
TO_INTEGRAL = (".rni", ".rzi", ".rmi", ".rpi")
ROUNDINGS = (".rn", ".rz", ".rm", ".rp")
ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F80_0000, "f64": 0x3FF0_0000_0000_0000}
_TYPES = {"d": "dtype", "a": "atype"}


def legal(dtype: str, atype: str, ftz: bool, sat: bool, **_: object) -> str | None:
    """What ptxas accepts: `.ftz` needs f32, and bf16 has no `.sat`."""
    both = (dtype, atype)
    if "bf16" in both and sat:
        return "bf16 has no '.sat'"
    return "'.ftz' needs f32" if ftz and "f32" not in both else None


# ------------------------------------------------------------------------------------------------ modifiers on results
def saturate(k: Kit, type: str) -> Any:
    """Clamp a float word to [+0, 1], NaN to +0: negative numbers and NaN are the words above Inf."""
    n = width(type)
    lt, select, one, inf, zero = (
        k.lt_u(n),
        k.select(n),
        k.const(n, ONE[type]),
        k.const(n, INFINITY[type]),
        k.const(n, 0),
    )
    return lambda a: select(lt(inf, a), zero, select(lt(one, a), one, a))


def chain(*steps: Any) -> Any:
    """The composition of the given functions, first one first; None stands for no step."""
    kept = [s for s in steps if s is not None]

    def run(a: Any) -> Any:
        for step in kept:
            a = step(a)
        return a

    return run


# ---------------------------------------------------------------------------------------------------------- bit formats
def _to_f16_nearest(k: Kit) -> Any:
    """f32 to f16, nearest even, without branches (the scheme of the FP16 library, M. Dukhan, MIT).

    |a| * 2^112 * 2^-110 overflows to Inf exactly for what is Inf in f16; adding a power of two that puts the f16 last
    place at the f32 last place does the one rounding, subnormals included, because the power has a floor."""
    mul, add, and_, or_, shr, plus, lt, select = (
        k.fmul(32),
        k.fadd(32),
        k.and_(32),
        k.or_(32),
        k.shr_u(32),
        k.add(32),
        k.lt_u(32),
        k.select(32),
    )
    c = {
        v: k.const(32, v)
        for v in (
            0x7FFF_FFFF,
            0x7780_0000,
            0x0880_0000,
            0x7F80_0000,
            0x3880_0000,
            0x0780_0000,
            13,
            16,
            0x7C00,
            0xFFF,
            0x8000,
            0x7FFF,
        )
    }
    narrow = k.trunc(32, 16)

    def convert(a: Any) -> Any:
        magnitude = and_(a, c[0x7FFF_FFFF])
        base = mul(mul(magnitude, c[0x7780_0000]), c[0x0880_0000])
        exponent = and_(a, c[0x7F80_0000])
        floor = select(lt(exponent, c[0x3880_0000]), c[0x3880_0000], exponent)
        bits = add(plus(floor, c[0x0780_0000]), base)
        number = plus(and_(shr(bits, c[13]), c[0x7C00]), and_(bits, c[0xFFF]))
        word = or_(and_(shr(a, c[16]), c[0x8000]), number)
        return narrow(select(lt(c[0x7F80_0000], magnitude), c[0x7FFF], word))

    return convert


def _to_bf16_nearest(k: Kit) -> Any:
    """f32 to bf16, nearest even: rounding acts on the word, since the formats share exponents."""
    add, and_, shr, lt, select, narrow = k.add(32), k.and_(32), k.shr_u(32), k.lt_u(32), k.select(32), k.trunc(32, 16)
    c = {v: k.const(32, v) for v in (16, 1, 0x7FFF, 0x7FFF_FFFF, 0x7F80_0000)}

    def convert(a: Any) -> Any:
        odd = and_(shr(a, c[16]), c[1])
        word = shr(add(a, add(odd, c[0x7FFF])), c[16])
        return narrow(select(lt(c[0x7F80_0000], and_(a, c[0x7FFF_FFFF])), c[0x7FFF], word))

    return convert


def narrow32(k: Kit, dtype: str, rnd: str) -> Any:
    """f32 word to an f16 or bf16 word."""
    if rnd == "rn":
        return _to_f16_nearest(k) if dtype == "f16" else _to_bf16_nearest(k)
    return k.lane(f"f32_to_{dtype}", MODES[rnd])


# ------------------------------------------------------------------------------------------------ integers
def _range(type: str) -> tuple[int, int]:
    n = width(type)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if is_signed(type) else (0, (1 << n) - 1)


def clamp_integer(k: Kit, dtype: str, atype: str) -> Any:
    """Clamp a word of `atype` to the values of `dtype`; the word keeps the width of `atype`."""
    n, signed = width(atype), is_signed(atype)
    lt, select = (k.lt_s if signed else k.lt_u)(n), k.select(n)
    (low, high), (least, most) = _range(dtype), _range(atype)
    lower = k.const(n, low) if low > least else None
    upper = k.const(n, high) if high < most else None

    def clamp(a: Any) -> Any:
        if lower is not None:
            a = select(lt(a, lower), lower, a)
        return a if upper is None else select(lt(upper, a), upper, a)

    return clamp


def resize(k: Kit, n: int, m: int, signed: bool) -> Any:
    """Word of n bits as one of m bits: cut, or extended by sign or zeros."""
    return k.trunc(n, m) if m <= n else (k.sext if signed else k.zext)(n, m)


def _clamps(sat: bool, dtype: str, atype: str) -> str | None:
    low, high = _range(dtype)
    least, most = _range(atype)
    return "'.sat' needs a target that does not hold every value" if sat and low <= least and most <= high else None


@isa.op(
    "cvt{.sat}.dtype.atype d, a",
    dtype=INTEGERS,
    atype=INTEGERS,
    types=_TYPES,
    constraint=_clamps,
    cost=Cost.CONVERT,
    ref=REF,
    vectors=[
        vec(".s64.s32", 0xFFFF_FFFF, d=0xFFFF_FFFF_FFFF_FFFF, why="sign-extends"),
        vec(".u64.u32", 0xFFFF_FFFF, d=0xFFFF_FFFF, why="zero-extends"),
        vec(".u32.u64", 0x1_0000_0002, d=2, why="keeps the low bits"),
        vec(".sat.u8.s32", 0xFFFF_FFFF, d=0, why="clamps at 0"),
        vec(".sat.s8.s32", 200, d=127, why="clamps at 127"),
        vec(".sat.u32.s64", 0x8000_0000_0000_0000, d=0, why="clamps before it cuts"),
    ],
)
def cvt_integer(k: Kit, sat: bool, dtype: str, atype: str) -> Any:
    """d = a as another integer type: cut or extended by the sign of a, with .sat clamped"""
    change = resize(k, width(atype), width(dtype), is_signed(atype))
    return chain(clamp_integer(k, dtype, atype), change) if sat else change


# ------------------------------------------------------------------------------------------------ float to integer
def toward_zero_32(k: Kit, signed: bool) -> Any:
    """f32 to a 32-bit integer toward zero, clamped, NaN to 0. Shifts clamp, so small numbers give 0 by themselves."""
    and_, or_, sub, shr, shl, lt, select = (
        k.and_(32),
        k.or_(32),
        k.sub(32),
        k.shr_u(32),
        k.shl(32),
        k.lt_u(32),
        k.select(32),
    )
    lts, zero = k.lt_s(32), k.const(32, 0)
    c = {v: k.const(32, v) for v in (0x7FFF_FFFF, 23, 0x7F_FFFF, 0x80_0000, 150, 0x7F80_0000)}
    first_too_big = k.const(32, 0x4F00_0000 if signed else 0x4F80_0000)
    largest, smallest = k.const(32, 0x7FFF_FFFF if signed else -1), k.const(32, 0x8000_0000 if signed else 0)

    def convert(a: Any) -> Any:
        m = and_(a, c[0x7FFF_FFFF])
        exponent = shr(m, c[23])
        significand = or_(and_(m, c[0x7F_FFFF]), c[0x80_0000])
        down, up = sub(c[150], exponent), sub(exponent, c[150])
        size = select(lt(exponent, c[150]), shr(significand, down), shl(significand, up))
        negative = lts(a, zero)
        big = select(negative, smallest, largest)
        number = select(negative, sub(zero, size) if signed else zero, size)
        out = select(lt(m, first_too_big), number, big)
        return select(lt(c[0x7F80_0000], m), zero, out)

    return convert


@isa.op(
    "cvt.rnd{.ftz}{.sat}.dtype.atype d, a",
    rnd=TO_INTEGRAL,
    dtype=INTEGERS,
    atype=FLOATS,
    types=_TYPES,
    cost=Cost.CONVERT,
    ref=REF,
    constraint=legal,
    needs=_BF16,
    vectors=[
        vec(".rzi.s32.f32", 0xBFC0_0000, d=0xFFFF_FFFF, why="-1.5 toward zero"),
        vec(".rni.s32.f32", 0x4020_0000, d=2, why="2.5 to even"),
        vec(".rmi.s32.f32", 0xBF00_0000, d=0xFFFF_FFFF, why="-0.5 down"),
        vec(".rpi.s32.f32", 0x3F00_0000, d=1, why="0.5 up"),
        vec(".rzi.u32.f32", 0xBF80_0000, d=0, why="clamps at 0"),
        vec(".rzi.s32.f32", 0x7F80_0000, d=0x7FFF_FFFF, why="Inf clamps"),
        vec(".rzi.s32.f32", 0x7FC0_0000, d=0, why="NaN gives 0"),
        vec(".rzi.s64.f32", 0x7FC0_0000, d=0x8000_0000_0000_0000, why="NaN at 64 bits", seen="sm_90"),
        vec(".rzi.s8.f32", 0x4348_0000, d=127, why="clamps to the narrow type"),
        vec(".rpi.ftz.s32.f32", 1, d=0, why="a subnormal counts as 0"),
        vec(".rzi.s32.f16", 0xC100, d=0xFFFF_FFFE, why="-2.5"),
        vec(".rzi.u8.bf16", 0x4380, d=0xFF, why="256 clamps"),
    ],
)
def cvt_to_integer(k: Kit, rnd: str, ftz: bool, sat: bool, dtype: str, atype: str) -> Any:
    """d = a rounded to an integer, clamped to the type"""
    n, signed = width(dtype), is_signed(dtype)
    first = flush32(k) if ftz else None
    if atype in ("f16", "bf16"):
        first, atype = widen16(k, atype), "f32"
    if rnd == "rzi" and atype == "f32" and n == 32:
        return chain(first, toward_zero_32(k, signed))
    return chain(first, k.lane(f"{atype}_to_integer", MODES[rnd], n, int(signed)), k.trunc(64, n))


# ------------------------------------------------------------------------------------------------ integer to float
def _word32_to_f32(k: Kit, signed: bool) -> Any:
    """A 32-bit integer as f32, nearest even: the upper and lower halves are exact, and their one sum rounds.

    0x4B000000 | low is 2^23 + low; 0x53000000 | high is 2^39 + high * 2^16; the constant takes both offsets away (and,
    for a signed word, the 2^31 that makes it unsigned), all multiples of 2^16 below 2^40: that difference is exact."""
    and_, or_, xor, shr, add, sub = k.and_(32), k.or_(32), k.xor(32), k.shr_u(32), k.fadd(32), k.fsub(32)
    c = {v: k.const(32, v) for v in (0xFFFF, 16, 0x4B00_0000, 0x5300_0000, 0x8000_0000)}
    offset = k.const(32, 0x5300_8080 if signed else 0x5300_0080)

    def convert(a: Any) -> Any:
        if signed:
            a = xor(a, c[0x8000_0000])
        low, high = or_(and_(a, c[0xFFFF]), c[0x4B00_0000]), or_(shr(a, c[16]), c[0x5300_0000])
        return add(sub(high, offset), low)

    return convert


@isa.op(
    "cvt.rnd{.ftz}{.sat}.dtype.atype d, a",
    rnd=ROUNDINGS,
    dtype=FLOATS,
    atype=INTEGERS,
    types=_TYPES,
    cost=Cost.CONVERT,
    ref=REF,
    constraint=legal,
    needs=_BF16,
    vectors=[
        vec(".rn.f32.s32", 0xFFFF_FFFF, d=0xBF80_0000, why="-1"),
        vec(".rn.f32.u32", 0xFFFF_FFFF, d=0x4F80_0000, why="rounds up to 2^32"),
        vec(".rz.f32.u32", 0xFFFF_FFFF, d=0x4F7F_FFFF, why="toward zero"),
        vec(".rn.f32.s32", 0x8000_0000, d=0xCF00_0000, why="-2^31"),
        vec(".rn.f32.s32", 0, d=0, why="+0"),
        vec(".rn.f64.s32", 3, d=0x4008_0000_0000_0000, why="exact"),
        vec(".rn.f16.s32", 70000, d=0x7C00, why="overflows"),
        vec(".rz.f16.u32", 70000, d=0x7BFF, why="or stays finite toward zero"),
        vec(".rn.f32.u64", 0xFFFF_FFFF_FFFF_FFFF, d=0x5F80_0000, why="2^64"),
        vec(".rn.bf16.u16", 257, d=0x4380, why="8 bits remain"),
    ],
)
def cvt_from_integer(k: Kit, rnd: str, ftz: bool, sat: bool, dtype: str, atype: str) -> Any:
    """d = a as a float; with .sat clamped to 1"""
    n, signed = width(atype), is_signed(atype)
    last = saturate(k, dtype) if sat else None
    if dtype == "f32" and rnd == "rn" and n <= 32:
        return chain(resize(k, n, 32, signed), _word32_to_f32(k, signed), last)
    return chain(resize(k, n, 64, signed), k.lane(f"{'s' if signed else 'u'}64_to_{dtype}", MODES[rnd]), last)


# ------------------------------------------------------------------------------------------------ float to float
_LIMITS = {"nearest": 0x380F_FFFF_F000_0000, "away": 0x380F_FFFF_E000_0001, "toward": 0x3810 << 48}
"""Magnitudes of f64 from which on rounding to 24 bits, exponent unbounded, gives a normal f32, by the direction of
rounding."""


def _f64_to_f32_flushed(k: Kit, rnd: str) -> Any:
    """f64 to f32 with `.ftz`: an H200 flushes what is tiny after rounding to 24 bits with an unbounded exponent, also
    where the subnormal grid would round it up to the smallest normal number."""
    convert, and_, lt, select, narrow = (
        k.lane("f64_to_f32", MODES[rnd]),
        k.and_(64),
        k.lt_u(64),
        k.select(64),
        k.select(32),
    )
    shr, low, rest, c32 = k.shr_u(64), k.trunc(64, 32), k.const(64, (1 << 63) - 1), k.const(64, 32)
    directions = {
        "rn": ("nearest", "nearest"),
        "rz": ("toward", "toward"),
        "rm": ("toward", "away"),
        "rp": ("away", "toward"),
    }
    positive, negative = (k.const(64, _LIMITS[d]) for d in directions[rnd])
    sign, sign32, zero, lts = k.and_(32), k.const(32, 0x8000_0000), k.const(64, 0), k.lt_s(64)

    def flushed(a: Any) -> Any:
        limit = select(lts(a, zero), negative, positive)
        return narrow(lt(and_(a, rest), limit), sign(low(shr(a, c32)), sign32), convert(a))

    return flushed


def _narrowing(k: Kit, rnd: str, dtype: str, atype: str) -> Any:
    if atype == "f64":
        return k.lane(f"f64_to_{dtype}", MODES[rnd])
    first = widen16(k, atype) if atype in ("f16", "bf16") else None
    return chain(first, narrow32(k, dtype, rnd))


def _narrows(dtype: str, atype: str, ftz: bool, sat: bool, **_: object) -> str | None:
    if dtype == atype or width(dtype) > width(atype):
        return "rounding applies where precision is lost"
    return legal(dtype, atype, ftz, sat)


@isa.op(
    "cvt.rnd{.ftz}{.sat}.dtype.atype d, a",
    rnd=ROUNDINGS,
    dtype=(".f16", ".bf16", ".f32"),
    atype=FLOATS,
    types=_TYPES,
    constraint=_narrows,
    needs={"dtype.bf16 atype.f16,atype.f64": at((7, 8), 90), "dtype.f16 atype.bf16": at((7, 8), 90)},
    cost=Cost.CONVERT,
    ref=REF,
    vectors=[
        vec(".rn.f16.f32", 0x3F80_1000, d=0x3C00, why="tie to even"),
        vec(".rn.f16.f32", 0x477F_F000, d=0x7C00, why="overflows"),
        vec(".rz.f16.f32", 0x477F_F000, d=0x7BFF, why="stays finite toward zero", seen="sm_90"),
        vec(".rn.f16.f32", 0x3300_0001, d=1, why="smallest subnormal"),
        vec(".rn.f16.f32", 0xFFC0_0000, d=0x7FFF, why="NaN"),
        vec(".rn.bf16.f32", 0x3F80_8000, d=0x3F80, why="tie to even"),
        vec(".rn.bf16.f32", 0x7F7F_FFFF, d=0x7F80, why="overflows"),
        vec(".rn.f32.f64", 0x3FF0_0000_1000_0000, d=0x3F80_0000, why="tie to even"),
        vec(".rn.sat.f16.f32", 0x4000_0000, d=0x3C00, why="clamps to 1"),
        vec(".rp.ftz.f16.f32", 1, d=1, why="not flushed", seen="sm_90"),
        vec(".rp.ftz.bf16.f32", 1, d=0, why="flushed before rounding", seen="sm_90"),
        vec(".rn.ftz.f32.f64", 0x380F_FFFF_E000_0000, d=0, why="tiny before it is rounded up", seen="sm_90"),
        vec(".rn.bf16.f16", 0x3C01, d=0x3F80, why="8 bits remain"),
    ],
)
def cvt_narrow(k: Kit, rnd: str, ftz: bool, sat: bool, dtype: str, atype: str) -> Any:
    """d = a rounded to a format of less precision; `.ftz` leaves an f32 operand alone where the target is f16 (H200)"""
    before = flush32(k) if ftz and dtype == "bf16" else None
    step = _f64_to_f32_flushed(k, rnd) if ftz and dtype == "f32" else _narrowing(k, rnd, dtype, atype)
    return chain(before, step, saturate(k, dtype) if sat else None)


@isa.op(
    "cvt.bf16.f16 d, a",
    types={"d": "bf16", "a": "f16"},
    cost=Cost.CONVERT,
    ref=REF,
    since=((7, 8), 90),
    vectors=[vec(".bf16.f16", 0x3C01, d=0x3F80, why="8 bits remain")],
)
def cvt_to_bf16(k: Kit) -> Any:
    """as `.rn`: Triton's conversion of e4m3 to bf16 leaves the rounding out, and the assembler takes it"""
    return _narrowing(k, "rn", "bf16", "f16")


def _widens(dtype: str, atype: str, ftz: bool, sat: bool) -> str | None:
    if width(dtype) <= width(atype):
        return "without a rounding the target has to be wider"
    return legal(dtype, atype, ftz, sat)


@isa.op(
    "cvt{.ftz}{.sat}.dtype.atype d, a",
    dtype=(".f32", ".f64"),
    atype=(".f16", ".bf16", ".f32"),
    types=_TYPES,
    constraint=_widens,
    needs={"atype.bf16": at((7, 1), 80), "atype.bf16 dtype.f64,.ftz,.sat": at((7, 8), 90)},
    cost=Cost.CONVERT,
    ref=REF,
    vectors=[
        vec(".f32.f16", 0x3C00, d=0x3F80_0000, why="1"),
        vec(".f32.f16", 1, d=0x3380_0000, why="subnormals are exact"),
        vec(".f32.f16", 0xFE00, d=0x7FFF_FFFF, why="NaN is canonical", seen="sm_90"),
        vec(".f32.bf16", 0xFFC1, d=0xFFC1_0000, why="a shift, NaN kept", seen="sm_90"),
        vec(".f64.f32", 1, d=0x36A0_0000_0000_0000, why="exact"),
        vec(".sat.f32.f16", 0xBC00, d=0, why="clamps to 0"),
    ],
)
def cvt_widen(k: Kit, ftz: bool, sat: bool, dtype: str, atype: str) -> Any:
    """d = a in a wider format, exactly. A NaN is canonical from f16 to f32, and where `.ftz` makes it arithmetic; else
    it is kept"""
    first = None if atype == "f32" else widen16(k, atype)
    flush = flush32(k) if ftz else None
    clean = canonical(k, 32) if ftz or (atype, dtype) == ("f16", "f32") else None
    last = k.lane("f32_to_f64") if dtype == "f64" else None
    return chain(first, flush, clean, last, saturate(k, dtype) if sat else None)
