"""The variants of `ptx_tests`: for each instruction family what its template's placeholders become, and the judge.

A template reads one word a thread from each input, executes one instruction, and writes one word. The table here says
which types and modes the suite expands it over, and which word must come out; the families with approximate forms
stand in `ptx_approximate.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from tests.outside import host_functions as host
from tests.outside.host_functions import F16, F32, FORMATS, ONE, SIGN, as_float, flushed, integer
from tests.outside.ptx_approximate import functions, quotients
from tests.outside.ptx_variant import BOTH, ROUNDINGS, Variant, exactly, one_float, size, suffix

INTEGER_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
FLOAT_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def _signs() -> Iterator[Variant]:
    for ftz in BOTH:
        fill, tail = {"FTZ": ".ftz" if ftz else ""}, "_ftz" if ftz else ""
        yield one_float("abs", f"abs{tail}", fill, exactly(lambda a, ftz=ftz: flushed(a & ~SIGN, ftz), F32))
        yield one_float("neg", f"neg{tail}", fill, exactly(lambda a, ftz=ftz: flushed(a ^ SIGN, ftz), F32))


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
            name = op + suffix(rounding, "ftz" if ftz else "", "sat" if sat else "", "f32")
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
        tail = suffix("cc" if cc else "", type)
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
        yield Variant("prmt", f"prmt{suffix(mode)}", {"MODE": f".{mode}" if mode else ""}, ("u32",) * 3, "u32", agrees)


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

        modifiers = suffix(rounding, "ftz" if ftz else "", "sat" if sat else "")
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


def _choices() -> Iterator[Variant]:
    for ftz, nan, largest in product(BOTH, BOTH, BOTH):
        name = "max" if largest else "min"
        op = f"{name}{'.ftz' if ftz else ''}{'.NaN' if nan else ''}.f16"

        def chosen(a: int, b: int, largest: bool = largest, nan: bool = nan, ftz: bool = ftz) -> int:
            return host.least_or_largest(a, b, largest, nan, ftz)

        fill = {"TYPE_SIZE": "2", "TYPE": "f16", "BTYPE": "b16", "OP": op}
        name += suffix("ftz" if ftz else "", "nan" if nan else "")
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
        name = "set" + suffix(comparison, op, "u32", type, str(second).lower() if op else "")
        yield Variant("set", name, fill, (type, type), "u32", exactly(integers))
    for comparison, ftz, op in product(FLOAT_COMPARISONS, BOTH, BOOLEAN):

        def floats(a: int, b: int, p: int, ftz: bool = ftz, c: str = comparison, op: str = op) -> int:
            result = host.compared(c, as_float(flushed(a, ftz)), as_float(flushed(b, ftz)))
            return ONE if BOOLEAN[op](result, bool(p)) else 0

        fill = {"TYPE": "f32", "TYPE_SIZE": "4", "CMP": comparison, "BOOL_OP": op, "FTZ": ".ftz" if ftz else ""}
        name = "set" + suffix(comparison, op, "ftz" if ftz else "", "f32_f32")
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
        name = f"vshr_{target}_{source}_u32" + suffix("sat" if sat else "", mode, "add" if add else "")
        yield Variant("vshr", name, fill, (source, "u32", target), target, exactly(vshr))


def variants() -> list[Variant]:
    """Every variant of every family, those that must not compile among them."""
    families = (
        _signs, _sums, _floats, _carries, _fields, _shifts, _products, _conversions, _packed_conversions, quotients,
        functions, _choices, _comparisons, _video,
    )  # fmt: skip
    return [variant for family in families for variant in family()]
