"""The variants of `ptx_tests`: for each instruction family what its template's placeholders become, and the judge.

A template reads one word a thread from each input, executes one instruction, and writes one word. The table here says
which types and modes the suite expands it over, which words go in (`draw`), and when the word that comes out agrees
with the host function: exactly, or within the bound that the PTX manual gives for an approximate function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from tests.outside import host_functions as host
from tests.outside.host_functions import F16, F32, FORMATS, NAN, ONE, SIGN, as_float, flushed, integer

Agrees = Callable[..., bool]
"""(word that came out, *words that went in)"""
BOTH = (False, True)
ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGER_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
FLOAT_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


@dataclass(frozen=True)
class Variant:
    """One expansion of a template. `inputs`: types in the order in which the template takes the addresses; `flag` is
    a word that is 0 or 1, `byte` a byte that is 0 or 1. `agrees`: None where the text must
    not compile."""

    template: str
    name: str
    fill: dict[str, str]
    inputs: tuple[str, ...]
    result: str
    agrees: Agrees | None

    def body(self, text: str) -> str:
        for placeholder, by in self.fill.items():
            text = text.replace(f"<{placeholder}>", by)
        return text


def size(type: str) -> str:
    return str(int(type[1:]) // 8)


def exactly(expected: Callable[..., int], format: host.Format | None = None) -> Agrees:
    if format:
        return lambda out, *words: format.same(expected(*words), out)
    return lambda out, *words: expected(*words) == out


def _one_float(template: str, name: str, fill: dict[str, str], agrees: Agrees) -> Variant:
    return Variant(template, name, fill, ("f32",), "f32", agrees)


def _suffix(*parts: str) -> str:
    return "".join(f"_{p}" for p in parts if p)


def _signs() -> Iterator[Variant]:
    for ftz in BOTH:
        fill, tail = {"FTZ": ".ftz" if ftz else ""}, "_ftz" if ftz else ""
        yield _one_float("abs", f"abs{tail}", fill, exactly(lambda a, ftz=ftz: flushed(a & ~SIGN, ftz), F32))
        yield _one_float("neg", f"neg{tail}", fill, exactly(lambda a, ftz=ftz: flushed(a ^ SIGN, ftz), F32))


def _sums() -> Iterator[Variant]:
    for template, sign in (("add", 1), ("sub", -1)):
        for type, sat in (("u16", False), ("s16", False), ("s32", True)):

            def total(a: int, b: int, sign: int = sign, type: str = type, sat: bool = sat) -> int:
                value = integer(a, type) + sign * integer(b, type)
                return (host.clamp(value, type) if sat else value) % (1 << int(type[1:]))

            fill = {"TYPE": type, "SAT": ".sat" if sat else "", "TYPE_SIZE": size(type)}
            name = f"{template}{'_sat' if sat else ''}_{type}"
            yield Variant(template, name, fill, (type, type), type, exactly(total))


def _floats() -> Iterator[Variant]:
    """add, sub, mul and fma of f32 in all roundings."""
    for rounding, ftz, sat in product(ROUNDINGS, BOTH, BOTH):
        mode = {"mode": rounding, "ftz": ftz, "sat": sat}
        expected: dict[str, Callable[..., int]] = {
            "add": lambda a, b, m=mode: host.fma(a, ONE, b, **m),
            "sub": lambda a, b, m=mode: host.fma(b, ONE | SIGN, a, **m),
            "mul": lambda a, b, m=mode: host.fma(a, b, None, **m),
            "fma": lambda a, b, c, m=mode: host.fma(a, b, c, **m),
        }
        fill = {"RND": f".{rounding}", "FLUSH": ".ftz" if ftz else "", "SAT": ".sat" if sat else ""}
        for op, function in expected.items():
            name = op + _suffix(rounding, "ftz" if ftz else "", "sat" if sat else "", "f32")
            inputs = ("f32",) * (3 if op == "fma" else 2)
            yield Variant(f"{op}_f", name, fill, inputs, "f32", exactly(function, F32))


def _carries() -> Iterator[Variant]:
    """The flag goes in as the last input, and comes out as the upper word. After a subtraction it is 1 where nothing
    was borrowed."""
    for type, cc in product(("u32", "s32"), BOTH):

        def result(total: int, carry: int, cc: bool = cc) -> int:
            """`total` is not cut: what lies beyond 32 bits is the carry."""
            return total % (1 << 32) | (total >> 32 & 1 if cc else carry) << 32

        def addc(a: int, b: int, c: int, result: Callable[..., int] = result) -> int:
            return result(a + b + c, c)

        def subc(a: int, b: int, c: int, result: Callable[..., int] = result) -> int:
            return result(a + (b ^ 0xFFFF_FFFF) + c, c)

        def madc(a: int, b: int, c: int, d: int, result: Callable[..., int] = result) -> int:
            return result(a * b % (1 << 32) + c + d, d)

        fill = {"TYPE": type, "CC": ".cc" if cc else ""}
        tail = _suffix("cc" if cc else "", type)
        three = ("u32", "u32", "flag")
        yield Variant("addc_subc", f"addc{tail}", {"OP": "addc", **fill}, three, "u64", exactly(addc))
        yield Variant("addc_subc", f"subc{tail}", {"OP": "subc", **fill}, three, "u64", exactly(subc))
        yield Variant("madc", f"madc{tail}", fill, ("u32", *three), "u64", exactly(madc))


def _fields() -> Iterator[Variant]:
    for type in ("u32", "s32", "u64", "s64"):

        def bfe(a: int, length: int, position: int, type: str = type) -> int:
            return host.field(a, position, length, int(type[1:]), type[0] == "s")

        fill = {"TYPE": type, "TYPE_SIZE": size(type)}
        yield Variant("bfe", f"bfe_rng_{type}", fill, (type, "u32", "u32"), type, exactly(bfe))
    for bits in (32, 64):

        def bfi(a: int, b: int, length: int, position: int, bits: int = bits) -> int:
            return host.inserted(a, b, position, length, bits)

        type, fill = f"u{bits}", {"TYPE": f"b{bits}", "TYPE_SIZE": str(bits // 8)}
        yield Variant("bfi", f"bfi_rng_b{bits}", fill, (type, type, "u32", "u32"), type, exactly(bfi))
    reverse = exactly(lambda a: int(f"{a:032b}"[::-1], 2))
    yield Variant("brev", "brev_b32", {"TYPE": "b32", "TYPE_SIZE": "4"}, ("u32",), "u32", reverse)
    for mode in ("", *host.SELECTED):
        agrees = exactly(lambda a, b, c, mode=mode: host.permuted(a, b, c, mode))
        yield Variant("prmt", f"prmt{_suffix(mode)}", {"MODE": f".{mode}" if mode else ""}, ("u32",) * 3, "u32", agrees)


def _shifts() -> Iterator[Variant]:
    for direction, mode in product("lr", ("clamp", "wrap")):

        def shf(a: int, b: int, c: int, direction: str = direction, mode: str = mode) -> int:
            by = min(c, 32) if mode == "clamp" else c & 31
            word = b << 32 | a
            return (word << by >> 32 if direction == "l" else word >> by) & 0xFFFF_FFFF

        fill = {"DIR": direction, "MODE": mode}
        yield Variant("shf", f"shf_{direction}_{mode}_b32", fill, ("u32",) * 3, "u32", exactly(shf))
    shifts: dict[str, Callable[[int, int], int]] = {
        "shl.b16": lambda a, b: (a << min(b, 16)) & 0xFFFF,
        "shr.u16": lambda a, b: a >> min(b, 16),
        "shr.s16": lambda a, b: (host.signed(a, 16) >> min(b, 16)) & 0xFFFF,
    }
    for op, function in shifts.items():
        yield Variant("shift", op.replace(".", "_"), {"OP": op}, ("u16", "u16"), "u16", exactly(function))


def _products() -> Iterator[Variant]:
    for type, mode in product(("u16", "s16"), ("lo", "hi", "wide")):
        wide = f"{type[0]}32" if mode == "wide" else type

        def mad(a: int, b: int, c: int = 0, type: str = type, mode: str = mode, wide: str = wide) -> int:
            value = integer(a, type) * integer(b, type)
            return ((value >> 16 if mode == "hi" else value) + c) % (1 << int(wide[1:]))

        fill = {"TYPE_IN": type, "TYPE_IN_SIZE": size(type), "TYPE_OUT": wide, "TYPE_OUT_SIZE": size(wide)}
        fill |= {"MODE": mode}
        yield Variant("mul", f"mul_{mode}_{type}", fill, (type, type), wide, exactly(mad))
        fill = {"STYPE": type, "DTYPE": wide, "STYPE_SIZE": size(type), "DTYPE_SIZE": size(wide), "MODE": mode}
        yield Variant("mad", f"mad_{mode}_{type}", {**fill, "SAT": ""}, (type, type, wide), wide, exactly(mad))

    def mad_hi_sat(a: int, b: int, c: int) -> int:
        a, b, c = (host.signed(w, 32) for w in (a, b, c))
        return host.clamp((a * b >> 32) + c, "s32") % (1 << 32)

    fill = {"STYPE": "s32", "DTYPE": "s32", "STYPE_SIZE": "4", "DTYPE_SIZE": "4", "MODE": "hi", "SAT": ".sat"}
    yield Variant("mad", "mad_hi_sat_s32", fill, ("s32",) * 3, "s32", exactly(mad_hi_sat))
    for type, mode in product(("u32", "s32"), ("lo", "hi")):

        def mul24(a: int, b: int, type: str = type, mode: str = mode) -> int:
            a, b = (integer(w & 0xFF_FFFF, f"{type[0]}24") for w in (a, b))
            return (a * b >> (16 if mode == "hi" else 0)) % (1 << 32)

        yield Variant("mul24", f"mul24_{mode}_{type}", {"TYPE": type, "MODE": mode}, (type, type), type, exactly(mul24))
    for type in ("u16", "s16"):

        def sad(a: int, b: int, c: int, type: str = type) -> int:
            return (abs(integer(a, type) - integer(b, type)) + c) % (1 << 16)

        yield Variant("sad", f"sad_{type}", {"TYPE": type}, (type,) * 3, type, exactly(sad))
    for half, a_signed, b_signed in product(("", "lo", "hi"), BOTH, BOTH):
        parts = ["dp2a" if half else "dp4a", half, "s32" if a_signed else "u32", "s32" if b_signed else "u32"]
        op = ".".join(p for p in parts if p)

        def dp(a: int, b: int, c: int, sa: bool = a_signed, sb: bool = b_signed, half: str = half) -> int:
            return host.dot(a, b, c, sa, sb, half)

        yield Variant("dot_product", op.replace(".", "_"), {"DPINST": op}, ("u32",) * 3, "u32", exactly(dp))


def _must_not_compile(source: str, target: str, rounding: str, ftz: bool, sat: bool) -> bool:
    """The rules of `cvt` as the suite has them: what its authors saw refused."""
    from_float, to_float = source in FORMATS, target in FORMATS
    grows = int(target[1:]) - int(source[1:])
    if sat and not from_float and not to_float:
        same_kind = source[0] == target[0]
        if same_kind and grows >= 0 or source[0] == "u" and target[0] == "s" and grows > 0:
            return True
    if ftz and "f32" not in (source, target):
        return True
    narrowing = from_float and to_float and grows < 0
    if not rounding:
        return narrowing or from_float != to_float
    if rounding.endswith("i"):
        return not from_float or to_float and grows != 0
    return not (narrowing or not from_float and to_float)


def _conversions() -> Iterator[Variant]:
    roundings = ("", "rni", "rzi", "rmi", "rpi", *ROUNDINGS)
    sources = ("s16", "u16", "s32", "u32", "f16", "f32")
    for rounding, ftz, sat, source, target in product(roundings, BOTH, BOTH, sources, (*sources, "s64", "u64", "f64")):

        def agrees(
            out: int, a: int, s: str = source, t: str = target, r: str = rounding, ftz: bool = ftz, sat: bool = sat
        ) -> bool:
            expected = host.converted(a, s, t, r, ftz, sat)
            return expected is None or (FORMATS[t].same(expected, out) if t in FORMATS else expected == out)

        modifiers = _suffix(rounding, "ftz" if ftz else "", "sat" if sat else "")
        fill = {
            "INPUT": source, "INPUT_LD": f"b{source[1:]}", "INPUT_SIZE": size(source), "OUTPUT": target,
            "OUTPUT_ST": f"b{target[1:]}", "OUTPUT_SIZE": size(target), "MODIFIERS": modifiers.replace("_", "."),
        }  # fmt: skip
        judge = None if _must_not_compile(source, target, rounding, ftz, sat) else agrees
        yield Variant("cvt", f"cvt{modifiers}_{target}_{source}", fill, (source,), target, judge)


def _packed_conversions() -> Iterator[Variant]:
    for type in ("u8", "s8"):

        def pack(a: int, b: int, c: int, type: str = type) -> int:
            high, low = (host.clamp(host.signed(w, 32), type) & 0xFF for w in (a, b))
            return (c << 16 | high << 8 | low) & 0xFFFF_FFFF

        yield Variant("cvt_pack", f"cvt_pack_sat_{type}_s32_b32", {"TYPE": type}, ("u32",) * 3, "u32", exactly(pack))
    for type in ("e4m3", "e5m2"):

        def widened(out: int, a: int, type: str = type) -> bool:
            pairs = [(out & 0xFFFF, a & 0xFF), (out >> 16, a >> 8)]
            return all(F16.same(host.float_to_float(word, FORMATS[type], F16, ""), got) for got, word in pairs)

        def narrowed(out: int, a: int, type: str = type) -> bool:
            return all(FORMATS[type].same(host.to_tiny(a, type), got) for got in (out & 0xFF, out >> 8))

        fill = {"INPUT": f"{type}x2", "OUTPUT": f"{type}x2"}
        yield Variant("cvt_rn_f16x2_f8x2type", f"cvt_rn_f16x2_{type}", fill, ("u16",), "u32", widened)
        yield Variant("cvt_rn_satfinite_f8x2_f32", f"cvt_rn_satfinite_{type}x2_f32", fill, ("f32",), "u16", narrowed)


def _within(expected: int, out: int, units: int) -> bool:
    return F32.is_nan(expected) and F32.is_nan(out) or abs(expected - out) <= units


def _quotients() -> Iterator[Variant]:
    for ftz, variant in product(BOTH, ("approx", "full", *ROUNDINGS)):

        def agrees(out: int, a: int, b: int, ftz: bool = ftz, variant: str = variant) -> bool:
            expected = host.divided(a, b, variant if variant in ROUNDINGS else "rn", ftz)
            if variant in ROUNDINGS:
                return F32.same(expected, out)
            divisor = abs(as_float(flushed(b, ftz)))
            if variant == "full" or divisor != divisor or 2.0**-126 <= divisor <= 2.0**126:
                return _within(expected, out, 2)
            if divisor < 2.0**-126 or expected == out:
                return True  # the manual gives no bound for divisors that small
            return F32.is_nan(out) if F32.is_infinite(a) or F32.is_nan(a) else not out & ~SIGN

        fill = {"VARIANT": f".{variant}", "FLUSH": ".ftz" if ftz else ""}
        name = "div" + _suffix(variant, "ftz" if ftz else "", "f32")
        yield Variant("div", name, fill, ("f32", "f32"), "f32", agrees)
        if variant == "full":
            continue
        fill = {"MODE": variant + (".ftz" if ftz else "")}

        def reciprocal(out: int, a: int, ftz: bool = ftz, variant: str = variant) -> bool:
            if variant in ROUNDINGS:
                return F32.same(host.divided(ONE, a, variant, ftz), out)
            return _within(host.divided(ONE, a, "rn", ftz), out, 1)

        def root(out: int, a: int, ftz: bool = ftz, variant: str = variant) -> bool:
            if variant in ROUNDINGS:
                return F32.same(host.square_root(a, variant, ftz), out)
            return _bounded(math.sqrt, out, flushed(a, ftz), relative=2.0**-23)

        yield _one_float("rcp", "rcp" + _suffix(variant, "ftz" if ftz else ""), fill, reciprocal)
        yield _one_float("sqrt", "sqrt" + _suffix(variant, "ftz" if ftz else ""), fill, root)


SPECIAL: dict[Callable[[float], float], dict[float, float]] = {
    math.sqrt: {-math.inf: math.nan, math.inf: math.inf, 0.0: 0.0},
    math.log2: {-math.inf: math.nan, math.inf: math.inf, 0.0: -math.inf},
    math.tanh: {-math.inf: -1.0, math.inf: 1.0, 0.0: 0.0},
    math.sin: {-math.inf: math.nan, math.inf: math.nan, 0.0: 0.0},
    math.cos: {-math.inf: math.nan, math.inf: math.nan, 0.0: 1.0},
}
"""Results that the manual names, by function and operand; -0 stands with +0, and keeps its sign in odd functions."""


def _bounded(
    function: Callable[[float], float], out: int, a: int, relative: float = 0.0, absolute: float = 0.0
) -> bool:
    """Whether a result lies within the bound; at special operands it must be the manual's."""
    x, y = as_float(a), as_float(out)
    if x != x or x < 0 and function in (math.sqrt, math.log2):
        return F32.is_nan(out)
    if x in SPECIAL[function]:
        expected = SPECIAL[function][x]
        if x == 0 and expected == 0:
            return out == a
        return F32.is_nan(out) if expected != expected else y == expected
    exact = function(x)
    return abs(exact - y) <= max(abs(exact) * relative, absolute)


def _reciprocal_root(out: int, a: int) -> bool:
    if not a & ~SIGN:
        return out == F32.infinity | a
    if F32.is_nan(a) or a & SIGN:
        return F32.is_nan(out)
    if F32.is_infinite(a):
        return out == 0
    exact = 1 / math.sqrt(as_float(a))
    return abs(exact - as_float(out)) <= exact * 2.0**-22.9


def _power(out: int, a: int, ftz: bool) -> bool:
    a = flushed(a, ftz)
    x = as_float(a)
    if x != x or math.isinf(x) or x == 0:
        return F32.same(NAN if x != x else 0 if x == -math.inf else ONE if x == 0 else F32.infinity, out)
    exact = math.inf if x >= 1024 else 2.0**x
    scaled = int(math.ldexp(exact, 200)) if exact < 2.0**128 else 1 << 329
    expected = flushed(host.rounded(scaled, 200, F32, "rn", False), ftz) if scaled else 0
    return _within(expected, out, 2)


def _logarithm(out: int, a: int) -> bool:
    near = 0.5 < as_float(a) < 2.0
    return _bounded(math.log2, out, a, **{"absolute" if near else "relative": 2.0**-22})


def _wave(function: Callable[[float], float], out: int, a: int) -> bool:
    x = abs(as_float(a))
    if math.isfinite(x) and x > as_float(0x439D_1463):
        return True  # beyond 100 pi the manual gives no bound
    return _bounded(function, out, a, absolute=2.0**-20.5 if x <= as_float(0x40C9_0FDB) else 2.0**-14.7)


def _functions() -> Iterator[Variant]:
    for ftz in BOTH:
        modifier = ".ftz" if ftz else ""
        functions: dict[str, Agrees] = {
            "sin": lambda out, a, ftz=ftz: _wave(math.sin, out, flushed(a, ftz)),
            "cos": lambda out, a, ftz=ftz: _wave(math.cos, out, flushed(a, ftz)),
            "ex2": lambda out, a, ftz=ftz: _power(out, a, ftz),
            "lg2": lambda out, a, ftz=ftz: _logarithm(out, flushed(a, ftz)),
            "rsqrt": lambda out, a, ftz=ftz: _reciprocal_root(out, flushed(a, ftz)),
        }
        for op, agrees in functions.items():
            fill = {"FTZ": modifier, "FLUSH": modifier, "MODE": f"approx{modifier}"}
            yield _one_float(op, f"{op}_approx{'_ftz' if ftz else ''}", fill, agrees)
    yield _one_float("tanh", "tanh_approx", {}, lambda out, a: _bounded(math.tanh, out, a, relative=2.0**-11))


def _choices() -> Iterator[Variant]:
    for ftz, nan, largest in product(BOTH, BOTH, BOTH):
        name = "max" if largest else "min"
        op = f"{name}{'.ftz' if ftz else ''}{'.NaN' if nan else ''}.f16"

        def chosen(a: int, b: int, largest: bool = largest, nan: bool = nan, ftz: bool = ftz) -> int:
            return host.least_or_largest(a, b, largest, nan, ftz)

        fill = {"TYPE_SIZE": "2", "TYPE": "f16", "BTYPE": "b16", "OP": op}
        name += _suffix("ftz" if ftz else "", "nan" if nan else "")
        yield Variant("minmax", name, fill, ("f16", "f16"), "f16", exactly(chosen, F16))
    classes: dict[str, Callable[[int], bool]] = {
        "finite": lambda a: not F32.is_nan(a) and not F32.is_infinite(a),
        "infinite": F32.is_infinite,
        "number": lambda a: not F32.is_nan(a),
        "notanumber": F32.is_nan,
        "normal": lambda a: not (F32.is_nan(a) or F32.is_infinite(a) or F32.is_subnormal(a)),
        "subnormal": F32.is_subnormal,
    }
    for mode, function in classes.items():
        fill = {"MODE": mode, "TYPE": "f32", "TYPE_SIZE": "4"}
        yield Variant("testp", f"testp_{mode}_f32", fill, ("f32",), "u32", exactly(lambda a, f=function: int(f(a))))


BOOLEAN: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}


def _comparisons() -> Iterator[Variant]:
    seconds = [("", False), *product(BOOLEAN, (True, False))]
    for comparison, type, (op, second) in product(INTEGER_COMPARISONS, ("u16", "s16"), seconds):
        if type == "s16" and comparison in ("lo", "ls", "hi", "hs"):
            continue

        def integers(a: int, b: int, type: str = type, c: str = comparison, op: str = op, p: bool = second) -> int:
            result = host.compared(c, integer(a, type), integer(b, type))
            return 0xFFFF_FFFF if (BOOLEAN[op](result, p) if op else result) else 0

        fill = {"STYPE": type, "DTYPE": "u32", "STYPE_SIZE": "2", "DTYPE_SIZE": "4", "CMP": comparison}
        fill |= {"BOOL_OP": f".{op}" if op else "", "OP_SUFFIX": f", {int(second)}" if op else ""}
        name = "set" + _suffix(comparison, op, "u32", type, str(second).lower() if op else "")
        yield Variant("set", name, fill, (type, type), "u32", exactly(integers))
    for comparison, ftz, op in product(FLOAT_COMPARISONS, BOTH, BOOLEAN):

        def floats(a: int, b: int, p: int, ftz: bool = ftz, c: str = comparison, op: str = op) -> int:
            result = host.compared(c, as_float(flushed(a, ftz)), as_float(flushed(b, ftz)))
            return ONE if BOOLEAN[op](result, bool(p)) else 0

        fill = {"TYPE": "f32", "TYPE_SIZE": "4", "CMP": comparison, "BOOL_OP": op, "FTZ": ".ftz" if ftz else ""}
        name = "set" + _suffix(comparison, op, "ftz" if ftz else "", "f32_f32")
        yield Variant("set_bool", name, fill, ("f32", "f32", "byte"), "f32", exactly(floats))


def _video() -> Iterator[Variant]:
    types = ("u32", "s32")
    for mode, add, sat, target, source in product(("clamp", "wrap"), BOTH, BOTH, types, types):

        def vshr(
            a: int, b: int, c: int, m: str = mode, add: bool = add, sat: bool = sat, d: str = target, s: str = source
        ) -> int:
            value = integer(a, s) >> (min(b, 32) if m == "clamp" else b & 31)
            value = host.clamp(value, d) if sat else value
            return (value + (c if add else 0)) % (1 << 32)

        fill = {"DTYPE": target, "ATYPE": source, "SAT": ".sat" if sat else "", "MODE": f".{mode}"}
        fill |= {"OP2": ".add" if add else "", "OP2_ARGS": ", c" if add else ""}
        name = f"vshr_{target}_{source}_u32" + _suffix("sat" if sat else "", mode, "add" if add else "")
        yield Variant("vshr", name, fill, (source, "u32", target), target, exactly(vshr))


def variants() -> list[Variant]:
    """Every variant of every family, those that must not compile among them."""
    families = (
        _signs, _sums, _floats, _carries, _fields, _shifts, _products, _conversions, _packed_conversions, _quotients,
        _functions, _choices, _comparisons, _video,
    )  # fmt: skip
    return [variant for family in families for variant in family()]
