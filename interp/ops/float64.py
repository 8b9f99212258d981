"""Double precision (PTX ISA, 'Floating-Point Instructions', f64 forms).

Round to nearest even through the host's IEEE operations; the other roundings are integer code (`interp.formats`).
Subnormals are always kept. The double-precision unit passes a NaN operand on, made quiet, sign and payload kept, and
makes 0xFFF8000000000000 where a NaN arises (measured on an H200); of several NaN operands it passes on the first in the
order that a record states.

The approximate forms are in `interp.ops.transcend`.
"""

from __future__ import annotations

from typing import Any

from interp.formats.rounding import MODES
from interp.kit import CANONICAL_NAN, Kit
from interp.ops.formats import class_test, extreme, nan_test
from interp.ops.table import isa
from ptx.isa import Cost, vec

ROUNDINGS = (".rn", ".rz", ".rm", ".rp")
ONE, TWO, INF, NAN = 0x3FF0 << 48, 0x4000 << 48, 0x7FF0 << 48, CANONICAL_NAN[64]
MINUS_ZERO, MINUS_INF, QUIET = 1 << 63, 0xFFF0 << 48, 1 << 51
_F64 = dict.fromkeys("dabc", "f64")
REF = "floating-point-instructions-"


def passing_nan(k: Kit, op: Any, order: str) -> Any:
    """`op` with a NaN operand passed on, made quiet; `order` names the operands from first choice to last."""
    isnan, or_, select, quiet = nan_test(k, "f64"), k.or_(64), k.select(64), k.const(64, QUIET)

    def wrapped(*words: Any) -> Any:
        out = op(*words)
        for name in reversed(order):
            word = words["abc".index(name)]
            out = select(isnan(word), or_(word, quiet), out)
        return out

    return wrapped


def _arithmetic(k: Kit, name: str, rnd: str | None) -> Any:
    if rnd in (None, "rn"):
        return {"add": k.fadd, "sub": k.fsub, "mul": k.fmul, "fma": k.fma, "div": k.fdiv, "sqrt": k.fsqrt}[name](64)
    return k.lane(f"{name}_directed_f64", MODES[rnd])


@isa.op(
    "add{.rnd}.f64 d, a, b",
    rnd=ROUNDINGS,
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "add",
    vectors=[
        vec(".f64", ONE, ONE, d=TWO, why="1+1"),
        vec(".f64", INF, MINUS_INF, d=NAN, why="Inf-Inf", seen="sm_90"),
        vec(".rn.f64", ONE, 0xFFF6_E6E1_BC0F_B749, d=0xFFFE_E6E1_BC0F_B749, why="NaN passed on, quiet", seen="sm_90"),
        vec(".rp.f64", ONE, 1, d=ONE + 1, why="rounds up"),
        vec(".rm.f64", ONE, ONE | MINUS_ZERO, d=MINUS_ZERO, why="x-x down is -0"),
    ],
)
def add(k: Kit, rnd: str | None) -> Any:
    """d = a + b"""
    return passing_nan(k, _arithmetic(k, "add", rnd), "ba")


@isa.op(
    "sub{.rnd}.f64 d, a, b",
    rnd=ROUNDINGS,
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "sub",
    vectors=[vec(".f64", ONE, ONE, d=0, why="x-x is +0"), vec(".rz.f64", ONE, 1, d=ONE - 1, why="toward zero")],
)
def sub(k: Kit, rnd: str | None) -> Any:
    """d = a - b"""
    return passing_nan(k, _arithmetic(k, "sub", rnd), "ba")


@isa.op(
    "mul{.rnd}.f64 d, a, b",
    rnd=ROUNDINGS,
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "mul",
    vectors=[
        vec(".f64", INF, 0, d=NAN, why="Inf*0"),
        vec(".rp.f64", 1, ONE - 1, d=1, why="rounds up to the smallest subnormal"),
    ],
)
def mul(k: Kit, rnd: str | None) -> Any:
    """d = a * b"""
    return passing_nan(k, _arithmetic(k, "mul", rnd), "ba")


@isa.op(
    "fma.rnd.f64 d, a, b, c",
    rnd=ROUNDINGS,
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "fma",
    vectors=[
        vec(".rn.f64", ONE + 1, ONE + 1, (ONE + 2) | MINUS_ZERO, d=0x3970 << 48, why="one rounding: 2^-104 remains"),
        vec(".rz.f64", ONE, ONE, 1, d=ONE, why="toward zero"),
    ],
)
def fma(k: Kit, rnd: str) -> Any:
    """d = a * b + c with one rounding"""
    return passing_nan(k, _arithmetic(k, "fma", rnd), "bca")


@isa.op(
    "mad.rnd.f64 d, a, b, c",
    rnd=ROUNDINGS,
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "mad",
    vectors=[vec(".rn.f64", ONE, ONE, ONE, d=TWO, why="the same as fma")],
)
def mad(k: Kit, rnd: str) -> Any:
    """d = a * b + c with one rounding"""
    return passing_nan(k, _arithmetic(k, "fma", rnd), "bca")


@isa.op(
    "div.rnd.f64 d, a, b",
    rnd=ROUNDINGS,
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "div",
    vectors=[
        vec(".rn.f64", ONE, 0x4008 << 48, d=0x3FD5_5555_5555_5555, why="1/3"),
        vec(".rn.f64", 0, 0, d=NAN, why="0/0"),
        vec(".rp.f64", ONE, 0x4008 << 48, d=0x3FD5_5555_5555_5556, why="1/3 up"),
        vec(".rz.f64", 1, TWO, d=0, why="below the smallest subnormal"),
    ],
)
def div(k: Kit, rnd: str) -> Any:
    """d = a / b, correctly rounded"""
    return passing_nan(k, _arithmetic(k, "div", rnd), "ab")


@isa.op(
    "rcp.rnd.f64 d, a",
    rnd=ROUNDINGS,
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "rcp",
    vectors=[vec(".rn.f64", MINUS_ZERO, d=MINUS_INF, why="1/-0")],
)
def rcp(k: Kit, rnd: str) -> Any:
    """d = 1 / a, correctly rounded"""
    quotient, one = _arithmetic(k, "div", rnd), k.const(64, ONE)
    return passing_nan(k, lambda a: quotient(one, a), "a")


@isa.op(
    "sqrt.rnd.f64 d, a",
    rnd=ROUNDINGS,
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "sqrt",
    vectors=[
        vec(".rn.f64", TWO, d=0x3FF6_A09E_667F_3BCD, why="square root of 2"),
        vec(".rn.f64", ONE | MINUS_ZERO, d=NAN, why="of -1"),
        vec(".rm.f64", TWO, d=0x3FF6_A09E_667F_3BCC, why="the root of 2 down"),
    ],
)
def sqrt(k: Kit, rnd: str) -> Any:
    """d = square root of a, correctly rounded"""
    return passing_nan(k, _arithmetic(k, "sqrt", rnd), "a")


def _sign(k: Kit, op: Any, constant: int) -> Any:
    """A change of the sign bit of a number; a NaN keeps its sign and becomes quiet."""
    bits = k.const(64, constant)
    return passing_nan(k, lambda a: op(a, bits), "a")


@isa.op(
    "neg.f64 d, a",
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "neg",
    vectors=[
        vec(".f64", 0, d=MINUS_ZERO, why="flips the sign"),
        vec(".f64", 0x7FF0_0000_2000_0000, d=0x7FF8_0000_2000_0000, why="a NaN keeps its sign", seen="sm_90"),
    ],
)
def neg(k: Kit) -> Any:
    """d = -a"""
    return _sign(k, k.xor(64), MINUS_ZERO)


@isa.op(
    "abs.f64 d, a",
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "abs",
    vectors=[
        vec(".f64", MINUS_ZERO, d=0, why="clears the sign"),
        vec(".f64", 0x7FF2_6CED_BB39_4F55, d=0x7FFA_6CED_BB39_4F55, why="NaN made quiet", seen="sm_90"),
    ],
)
def abs_(k: Kit) -> Any:
    """d = |a|"""
    return _sign(k, k.and_(64), MINUS_ZERO - 1)


@isa.op(
    "copysign.f64 d, a, b",
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "copysign",
    vectors=[vec(".f64", MINUS_ZERO, ONE, d=ONE | MINUS_ZERO, why="sign of a, magnitude of b")],
)
def copysign(k: Kit) -> Any:
    """d = magnitude of b with the sign of a"""
    and_, or_, sign, rest = k.and_(64), k.or_(64), k.const(64, MINUS_ZERO), k.const(64, MINUS_ZERO - 1)
    return lambda a, b: or_(and_(a, sign), and_(b, rest))


def _extreme(k: Kit, largest: bool) -> Any:
    isnan, both, or_, select = nan_test(k, "f64"), k.and_(1), k.or_(64), k.select(64)
    choose, quiet = extreme(k, "f64", largest, False), k.const(64, QUIET)
    return lambda a, b: select(both(isnan(a), isnan(b)), or_(b, quiet), choose(a, b))


@isa.op(
    "min.f64 d, a, b",
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "min",
    vectors=[
        vec(".f64", MINUS_ZERO, 0, d=MINUS_ZERO, why="-0 is less than +0"),
        vec(".f64", NAN, ONE, d=ONE, why="NaN loses"),
        vec(".f64", NAN, NAN + 7, d=NAN + 7, why="the second of two NaN", seen="sm_90"),
    ],
)
def min_(k: Kit) -> Any:
    """d = the smaller of a and b; of two NaN operands b"""
    return _extreme(k, False)


@isa.op(
    "max.f64 d, a, b",
    types=_F64,
    cost=Cost.FP64,
    ref=REF + "max",
    vectors=[
        vec(".f64", MINUS_ZERO, 0, d=0, why="+0 is greater than -0"),
        vec(".f64", ONE, NAN, d=ONE, why="NaN loses"),
    ],
)
def max_(k: Kit) -> Any:
    """d = the larger of a and b; of two NaN operands b"""
    return _extreme(k, True)


@isa.op(
    "testp.op.f64 p, a",
    op=(".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal"),
    writes=("p",),
    types={"p": "pred", "a": "f64"},
    cost=Cost.INT,
    ref=REF + "testp",
    vectors=[
        vec(".finite.f64", INF, d=0, why="Inf is not finite"),
        vec(".subnormal.f64", 1, d=1, why="subnormal"),
        vec(".normal.f64", 0, d=1, why="a zero is normal", seen="sm_90"),
    ],
)
def testp(k: Kit, op: str) -> Any:
    """p = a is of the named class; a zero is normal"""
    return class_test(k, "f64", op)
