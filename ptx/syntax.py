"""The records of PTX's syntax: what a text says, before anything is looked up or checked.

`ptx.read` makes them, `ptx.parse` turns them into IR. Texts are lark tokens (strings that know their line) where the
line is needed, plain strings otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ptx.errors import InvalidInput

Text = Any  # a lark Token: a str that has .line and .column


class Instruction(NamedTuple):
    """`guard` is the text `@!%p` or None; `operands` are texts, each one of grammar.lark's OPERAND. 1-based line."""

    line: int
    guard: str | None
    opcode: str
    operands: list[str]


class Label(NamedTuple):
    name: Text  # with its colon


class LocDirective(NamedTuple):
    text: Text


class Targets(NamedTuple):
    """`.branchtargets` or `.calltargets`; the label before it is its name."""

    word: Text
    names: list[Text]


class PrototypeDirective(NamedTuple):
    """`.callprototype`; the label before it is its name."""

    word: Text
    results: list[ParamItem]
    params: list[ParamItem]


class Body(NamedTuple):
    statements: list[Any]


class Scope(NamedTuple):
    """Braces inside a body."""

    statements: list[Any]


class RangeItem(NamedTuple):
    """`%r<106>`"""

    text: Text


class Dims(NamedTuple):
    """Array bounds, None for `[]`."""

    bounds: list[int | None]


class VariableItem(NamedTuple):
    name: Text
    dims: Dims | None
    init: Any


class Declaration(NamedTuple):
    """`words` are the directives and integers before the first name: `.global`, `.align`, `4`, `.b32`."""

    words: list[Text]
    items: list[RangeItem | VariableItem]


class ParamItem(NamedTuple):
    words: list[Text]
    name: Text
    dims: Dims | None


class Attribute(NamedTuple):
    word: Text
    values: list[int]


class Results(NamedTuple):
    items: list[ParamItem]


class Params(NamedTuple):
    items: list[ParamItem]


class Function(NamedTuple):
    """`body` is None for a declaration without one."""

    linkage: list[Text]
    word: Text
    name: Text
    results: list[ParamItem]
    params: list[ParamItem]
    attributes: list[Attribute]
    body: list[Any] | None


class Header(NamedTuple):
    """`.version`, `.target` or `.address_size` with its words."""

    name: str
    values: list[Text]


class AliasDirective(NamedTuple):
    """`.alias name, function;`"""

    name: Text
    function: Text


class FileDirective(NamedTuple):
    number: int
    path: str


class Expr(NamedTuple):
    """A constant expression: operator and its operands (texts at the leaves)."""

    op: str
    args: tuple[Any, ...]


def integer(text: str) -> int:
    """The value of a PTX integer literal: decimal, 0x…, 0b…, 0… (octal), with an optional U. Raises
    InvalidInput for what is none, or has more than 64 bits."""
    s = text.strip().rstrip("Uu")
    try:
        value = int(s, 8 if s[:1] == "0" and s[1:2].isdigit() else 0)
    except ValueError:  # 08, or thousands of digits
        raise InvalidInput(f"`{text}` is not a literal") from None
    if value >> 64:
        raise InvalidInput(f"`{text}` does not fit in 64 bits")
    return value
