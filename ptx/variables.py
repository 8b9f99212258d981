"""Declarations → variables, parameters and registers: types, alignment, sizes, initialisers (PTX ISA 5 and 4.5).

An initialiser becomes bytes, little-endian; where it is the address of something, the bytes are zero and a relocation
(byte offset, symbol, addend) says what to put there. `generic(x)` and plain `x` mean the same address for `.global`
variables and functions; for other state spaces they differ, and a plain one is Unsupported here.
Constant expressions are evaluated in 64-bit integers (or doubles), as the manual says.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ptx import ir, types
from ptx.errors import InvalidInput, Unsupported
from ptx.syntax import Declaration, Expr, ParamItem, RangeItem, VariableItem, integer

_SPACES = {".reg", ".global", ".shared", ".const", ".local", ".param"}
_LINKAGE = {".extern", ".visible", ".weak", ".common"}
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
_U64 = (1 << 64) - 1


class Words(NamedTuple):
    """What the directives before a declared name say. `align` in bytes, natural unless given; `vector` 0 = scalar."""

    space: str
    type: str
    size: int
    align: int
    vector: int
    linkage: frozenset[str]
    pointer_space: str | None
    pointer_align: int | None
    is_pointer: bool


def read_words(words: Sequence[Any]) -> Words:
    """The leading words of a declaration. InvalidInput or Unsupported for a word that is not understood."""
    space = type = pointer_space = None
    align = pointer_align = None
    vector, is_pointer = 0, False
    linkage: set[str] = set()
    rest = iter(words)
    for token in rest:
        word = str(token)
        if word in _LINKAGE:
            linkage.add(word)
        elif word in _SPACES and space is None:
            space = word
        elif is_pointer and word in (".global", ".const", ".shared", ".local", ".generic"):
            pointer_space = word
        elif word == ".ptr":
            is_pointer = True
        elif word == ".align":
            n = integer(next(rest, "0"))
            if n <= 0 or n & (n - 1):
                raise InvalidInput(f".align takes a power of two, not {n}")
            if is_pointer:
                pointer_align = n
            else:
                align = n
        elif word in _VECTORS:
            vector = _VECTORS[word]
        elif types.is_type(word) and type is None:
            type = word[1:]
        elif word.startswith(".attribute"):
            if re.sub(r"\s", "", word) != ".attribute(.managed)":
                raise Unsupported(f"variable attribute `{word}`")
        elif word in (".texref", ".samplerref", ".surfref", ".tex"):
            raise Unsupported(f"texture, sampler and surface references (`{word}`)")
        elif word == ".alias":
            raise Unsupported("`.alias` (a second name for a function)")
        else:
            raise InvalidInput(f"`{word}` has no place in a declaration")
    if space is None or type is None:
        raise InvalidInput(f"a declaration needs a {'state space' if space is None else 'type'}: `{' '.join(words)}`")
    size = 0 if type == "pred" else types.width(type) // 8
    natural = size * (vector or 1)
    return Words(
        space,
        type,
        natural,
        align or natural or 1,
        vector,
        frozenset(linkage),
        pointer_space or (".generic" if is_pointer else None),
        pointer_align,
        is_pointer,
    )


# ------------------------------------------------------------------------------------------------ variables
def variables(declaration: Declaration) -> list[ir.Variable]:
    """A declaration that is not of registers, one Variable a name."""
    words = read_words(declaration.words)
    made = []
    for item in declaration.items:
        if isinstance(item, RangeItem):
            m = re.match(r"([\w$%]+)\s*<\s*(\d+)", item.text)
            assert m is not None
            made += [_variable(words, VariableItem(f"{m[1]}{i}", None, None)) for i in range(int(m[2]))]
        else:
            made.append(_variable(words, item))
    return made


def _variable(words: Words, item: VariableItem) -> ir.Variable:
    bounds = [None if b is None else _integer(b) for b in item.dims.bounds] if item.dims else []
    if any(b is not None and b < 0 for b in bounds) or None in bounds[1:]:
        raise InvalidInput(f"`{item.name}`: an array bound is missing or negative")
    unit = words.size // (words.vector or 1)
    shape = [*bounds, words.vector] if words.vector else bounds
    if shape and shape[0] is None and item.init is not None:
        shape[0] = len(item.init)
    count = 1
    for n in shape:
        count *= n or 0
    init: bytes | None = None
    relocations: tuple[tuple[int, str, int], ...] = ()
    if item.init is not None:
        if words.space not in (".global", ".const"):
            raise InvalidInput(f"`{item.name}`: only .global and .const variables take an initialiser")
        data = bytearray(count * unit)
        found: list[tuple[int, str, int]] = []
        if isinstance(item.init, list) and item.init and isinstance(item.init[0], int) and len(shape) == 1:
            _fill_integers(data, item.init, unit, words.type, item.name)
        else:
            _fill(data, 0, [n or 0 for n in shape], item.init, unit, words.type, item.name, found)
        init, relocations = bytes(data), tuple(_join_masks(found, item.name))
    return ir.Variable(
        str(item.name),
        words.space,
        words.type,
        words.align,
        count * unit,
        init,
        ".extern" in words.linkage,
        relocations,
    )


def _fill_integers(data: bytearray, values: list[int], unit: int, type: str, name: str) -> None:
    """The common case: a flat array of plain integers."""
    if len(values) * unit > len(data):
        raise InvalidInput(f"`{name}`: {len(values)} initial values for an array of {len(data) // unit}")
    if types.is_float(type) and type in ("f32", "f64"):
        data[: len(values) * unit] = struct.pack(f"<{len(values)}{'f' if unit == 4 else 'd'}", *values)
        return
    mask = (1 << 8 * unit) - 1
    data[: len(values) * unit] = b"".join((v & mask).to_bytes(unit, "little") for v in values)


def _fill(
    data: bytearray,
    at: int,
    shape: list[int],
    value: Any,
    unit: int,
    type: str,
    name: str,
    found: list[tuple[int, str, int]],
) -> None:
    if not shape:
        if isinstance(value, list):
            if len(value) != 1:
                raise InvalidInput(f"`{name}`: a list where one value belongs")
            value = value[0]
        _store(data, at, value, unit, type, name, found)
        return
    if not isinstance(value, list):
        raise InvalidInput(f"`{name}`: an array takes its initial values in braces")
    if len(value) > shape[0]:
        raise InvalidInput(f"`{name}`: {len(value)} initial values for an array of {shape[0]}")
    step = unit
    for n in shape[1:]:
        step *= n
    for i, v in enumerate(value):
        _fill(data, at + i * step, shape[1:], v, unit, type, name, found)


def _store(
    data: bytearray, at: int, value: Any, unit: int, type: str, name: str, found: list[tuple[int, str, int]]
) -> None:
    word = value if isinstance(value, int) else evaluate(value)
    if isinstance(word, Address):
        if word.mask is None and unit not in (4, 8):
            raise InvalidInput(f"`{name}`: the address of `{word.symbol}` does not fit in {unit} bytes")
        if word.mask is None:
            found.append((at, word.symbol, word.addend))
        else:
            found.append((at, word.symbol, ~word.mask))
        return
    if type in ("f32", "f64"):
        word = _float_bits(value, word, type)
    elif isinstance(word, float):
        raise InvalidInput(f"`{name}`: a floating-point value for type .{type}")
    data[at : at + unit] = (word & ((1 << 8 * unit) - 1)).to_bytes(unit, "little")


def _float_bits(value: Any, word: int | float, type: str) -> int:
    """Bits of a floating initialiser; 0f…/0d… literals are bits already."""
    if isinstance(value, Expr) and value.op == "number" and str(value.args[0])[:2].lower() == f"0{'fd'[type == 'f64']}":
        return int(str(value.args[0])[2:], 16)
    return int.from_bytes(struct.pack("<f" if type == "f32" else "<d", word), "little")


def _join_masks(found: Iterable[tuple[int, str, int]], name: str) -> list[tuple[int, str, int]]:
    """`0xFF(x), 0xFF00(x), …`: an address written byte by byte is one relocation; parts of one are Unsupported."""
    whole, parts = [], {}
    for at, symbol, addend in found:
        if addend < 0 and ~addend & _U64 and ~addend in _BYTE_MASKS:
            parts[at] = (symbol, _BYTE_MASKS.index(~addend))
        else:
            whole.append((at, symbol, addend))
    for at, (symbol, byte) in sorted(parts.items()):
        if byte == 0:
            if any(parts.get(at + i) != (symbol, i) for i in range(8)):
                raise Unsupported(f"`{name}`: part of the address of `{symbol}` as an initial value")
            whole.append((at, symbol, 0))
    return sorted(whole)


_BYTE_MASKS = [0xFF << 8 * i for i in range(8)]


# ------------------------------------------------------------------------------------------------ constant expressions
class Address(NamedTuple):
    """The value of an expression that names a variable or function."""

    symbol: str
    addend: int
    generic: bool
    mask: int | None = None


def _integer(expression: Any) -> int:
    value = evaluate(expression)
    if not isinstance(value, int):
        raise InvalidInput("an array bound is an integer")
    return value


def evaluate(e: Expr) -> int | float | Address:
    """A constant expression's value: an integer, a double, or an address plus a constant."""
    match e.op:
        case "number":
            return _number(str(e.args[0]))
        case "symbol":
            return Address(str(e.args[0]), 0, False)
        case "generic":
            if e.args[0] != "generic":
                raise InvalidInput(f"`{e.args[0]}(…)` in an initialiser; only generic(…) is known")
            inner = evaluate(e.args[1])
            if not isinstance(inner, Address):
                raise InvalidInput("generic(…) takes the name of a variable")
            return inner._replace(generic=True)
        case "mask":
            inner = evaluate(e.args[1])
            if not isinstance(inner, Address):
                raise InvalidInput(f"{e.args[0]}(…) takes the name of a variable")
            return inner._replace(mask=integer(str(e.args[0])))
        case "cast":
            return _cast(str(e.args[0]), evaluate(e.args[1]))
        case "?":
            return evaluate(e.args[1] if evaluate(e.args[0]) else e.args[2])
    args = [evaluate(a) for a in e.args]
    if isinstance(args[0], Address) or (len(args) == 2 and isinstance(args[1], Address)):
        return _address_sum(e.op, args)
    return _unary(e.op, args[0]) if len(args) == 1 else _binary(e.op, args[0], args[1])  # type: ignore[arg-type]


def _number(text: str) -> int | float:
    prefix = text[:2].lower()
    if prefix == "0f" or prefix == "0d":
        bits = bytes.fromhex(text[2:])
        return float(struct.unpack(">f" if prefix == "0f" else ">d", bits)[0])
    if "." in text or (prefix != "0x" and "e" in text.lower()):
        return float(text)
    return integer(text)


def _cast(word: str, value: Any) -> int | float:
    if isinstance(value, Address) or word not in (".s64", ".u64"):
        raise InvalidInput(f"cast ({word}) in a constant expression")
    n = int(value) & _U64
    return n - (1 << 64) if word == ".s64" and n >> 63 else n


def _address_sum(op: str, args: list[Any]) -> Address:
    if op == "+" and len(args) == 2:
        a, n = args if isinstance(args[0], Address) else args[::-1]
        if isinstance(n, int):
            return a._replace(addend=a.addend + n)  # type: ignore[no-any-return]
    if op == "-" and len(args) == 2 and isinstance(args[1], int):
        return args[0]._replace(addend=args[0].addend - args[1])  # type: ignore[no-any-return]
    raise InvalidInput(f"operator `{op}` on the address of a variable")


def _unary(op: str, a: int | float) -> int | float:
    if op == "-":
        return -a
    if op == "+":
        return a
    if op == "!":
        return int(not a)
    return ~int(a)


def _binary(op: str, a: int | float, b: int | float) -> int | float:
    if op in ("/", "%") and not isinstance(a, float) and not isinstance(b, float):
        if b == 0:
            raise InvalidInput("division by zero in a constant expression")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # truncates, as C does
        return quotient if op == "/" else a - b * quotient
    if op in ("<<", ">>", "&", "|", "^") or op == "%":
        a, b = int(a), int(b)
    results: dict[str, Any] = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "%": lambda: a % b,
        "<<": lambda: (int(a) << (int(b) & 63)) & _U64,
        ">>": lambda: int(a) >> (int(b) & 63),
        "&": lambda: int(a) & int(b),
        "|": lambda: int(a) | int(b),
        "^": lambda: int(a) ^ int(b),
        "<": lambda: int(a < b),
        ">": lambda: int(a > b),
        "<=": lambda: int(a <= b),
        ">=": lambda: int(a >= b),
        "==": lambda: int(a == b),
        "!=": lambda: int(a != b),
        "&&": lambda: int(bool(a) and bool(b)),
        "||": lambda: int(bool(a) or bool(b)),
    }
    value: int | float = results[op]()
    return value


# ------------------------------------------------------------------------------------------------ parameters
def parameters(items: Iterable[ParamItem]) -> tuple[ir.Param, ...]:
    """A parameter list with byte offsets, each at its alignment; `.reg` parameters of functions have none."""
    made, offset = [], 0
    for item in items:
        words = read_words(item.words)
        if words.space == ".reg":
            made.append(ir.Param(str(item.name), words.type, words.size, words.align, 0, register=True))
            continue
        count = 1
        if item.dims is not None:
            for b in item.dims.bounds:
                count *= 0 if b is None else _integer(b)
        offset = -(-offset // words.align) * words.align
        made.append(
            ir.Param(
                str(item.name),
                words.type,
                words.size * count,
                words.align,
                offset,
                item.dims is not None,
                words.pointer_space,
                words.pointer_align if words.pointer_align or not words.is_pointer else 4,
            )
        )
        offset += words.size * count
    return tuple(made)
