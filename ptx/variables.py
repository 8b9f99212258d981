"""Declarations → variables, parameters and registers: types, alignment, sizes, initialisers (PTX ISA 5 and 4.5).

An initialiser becomes bytes, little-endian; where it is the address of something, the bytes are zero and a relocation
(byte offset, symbol, addend) says what to put there. `generic(x)` and plain `x` mean the same address for `.global`
variables and functions; for other state spaces they differ, and a plain one is Unsupported here.
Constant expressions: `ptx.constants`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ptx import ir, types
from ptx.constants import Address, evaluate
from ptx.errors import InvalidInput, Unsupported
from ptx.syntax import Declaration, Expr, ParamItem, RangeItem, VariableItem, integer
from ptx.types import float_bits

_REGISTERS = re.compile(r"pred|b8|[bus](16|32|64)|[us]8|b128|f16|f16x2|f32|f64")
"""Types that registers and variables may have; the others are types of instructions only."""
_SPACES = {".reg", ".global", ".shared", ".const", ".local", ".param"}
_LINKAGE = {".extern", ".visible", ".weak", ".common"}
_VECTORS = {".v2": 2, ".v4": 4}
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
    vector, is_pointer, attributes = 0, False, ""
    linkage: set[str] = set()
    rest = iter(words)
    for token in rest:
        word = str(token)
        if word in _LINKAGE:
            linkage.add(word)
        elif word in _SPACES and space is None:
            space = word
        elif is_pointer and word in (".global", ".const", ".shared", ".local"):
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
            attributes = word
            if re.sub(r"\s", "", word) != ".attribute(.managed)":
                raise Unsupported(f"variable attribute `{word}`")
        elif word in (".texref", ".samplerref", ".surfref", ".tex"):
            raise Unsupported(f"texture, sampler and surface references (`{word}`)")
        else:
            raise InvalidInput(f"`{word}` has no place in a declaration")
    if type is not None and not _REGISTERS.fullmatch(type):
        raise InvalidInput(f"nothing is declared with type .{type}, which is a type of instructions")
    if type is not None and str(words[-1]) != f".{type}" and not is_pointer:
        raise InvalidInput(f"`{words[-1]}` stands behind the type, which comes last")
    if type == "pred" and space != ".reg":
        raise InvalidInput("predicates are registers, not variables")
    if len(linkage) > 1:
        raise InvalidInput(f"{' and '.join(sorted(linkage))} exclude each other")
    if ".common" in linkage and space != ".global":
        raise InvalidInput(".common is for .global variables")
    if attributes and space not in (".global", ".param"):
        raise InvalidInput(f"{attributes} is for .global variables")
    if space is None or type is None:
        raise InvalidInput(f"a declaration needs a {'state space' if space is None else 'type'}: `{' '.join(words)}`")
    size = 0 if type == "pred" else types.width(type) // 8
    natural = size * (vector or 1)
    if natural > 16:
        raise InvalidInput(f"a vector of {natural} bytes; 16 are the most")
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
    bounds = list(item.dims.bounds) if item.dims else []
    if None in bounds[1:]:
        raise InvalidInput(f"`{item.name}`: an array bound is missing")
    unit = words.size // (words.vector or 1)
    shape = [*bounds, words.vector] if words.vector else bounds
    if shape and shape[0] is None and item.init is not None:
        shape[0] = len(item.init)
    count = 1
    for n in shape:
        count *= n or 0
    if count * unit >> 63:
        raise InvalidInput(f"`{item.name}` has {count * unit} bytes")
    external = ".extern" in words.linkage
    if count == 0 and not external:
        raise InvalidInput(f"`{item.name}` has no size, and only `.extern` variables may have none")
    if external and item.init is not None:
        raise InvalidInput(f"`{item.name}` is external, so its initial value stands elsewhere")
    if item.init is not None and words.type in ("f16", "f16x2"):
        raise InvalidInput(f"`{item.name}`: a variable of type .{words.type} takes no initial value")
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
    if type in ("f32", "f64"):
        raise InvalidInput(f"`{name}`: an integer for type .{type}: write a decimal point, or its 0f… bits")
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
            raise InvalidInput(f"`{name}`: a list where one value belongs")
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
        if word.mask is not None and type != "u8":
            raise InvalidInput(f"`{name}`: parts of addresses need the type .u8")
        if word.mask is None and unit not in (4, 8):
            raise InvalidInput(f"`{name}`: the address of `{word.symbol}` does not fit in {unit} bytes")
        if word.mask is None:
            found.append((at, word.symbol, word.addend))
        else:
            found.append((at, word.symbol, ~word.mask))
        return
    if type in ("f32", "f64"):
        if isinstance(word, int):
            raise InvalidInput(f"`{name}`: an integer for type .{type}: write a decimal point, or its 0f… bits")
        word = _float_bits(value, word, type)
    elif isinstance(word, float):
        raise InvalidInput(f"`{name}`: a floating-point value for type .{type}")
    data[at : at + unit] = (word & ((1 << 8 * unit) - 1)).to_bytes(unit, "little")


def _float_bits(value: Any, word: int | float, type: str) -> int:
    """Bits of a floating initialiser; 0f…/0d… literals are bits already."""
    if isinstance(value, Expr) and value.op == "number" and str(value.args[0])[:2].lower() == f"0{'fd'[type == 'f64']}":
        return int(str(value.args[0])[2:], 16)
    return float_bits(word, type)


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


# ------------------------------------------------------------------------------------------------ parameters
def parameters(items: Iterable[ParamItem]) -> tuple[ir.Param, ...]:
    """A parameter list with byte offsets, each at its alignment; `.reg` parameters of functions have none. Raises
    InvalidInput for what is no parameter."""
    made, offset = [], 0
    for item in items:
        words = read_words(item.words)
        if words.space not in (".reg", ".param"):
            raise InvalidInput(f"parameter `{item.name}` is in {words.space}, not in .param")
        if words.vector and words.space == ".param":
            raise InvalidInput(f"parameter `{item.name}` is a vector; parameters are scalars and arrays")
        if words.space == ".reg":
            made.append(ir.Param(str(item.name), words.type, words.size, words.align, 0, register=True))
            continue
        count = 1
        if item.dims is not None:
            if len(item.dims.bounds) > 1:
                raise InvalidInput(f"parameter `{item.name}` has more than one dimension")
            count = item.dims.bounds[0] or 0
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
