"""PTX text → its syntax, with lark: what is written, nothing of what it means.

`read(text)` returns the file's items as small records (`ptx.syntax`) in text order; `ptx.parse` turns them into IR.
Comments and `.section` debug data are cut first and leave their newlines behind, so every line number is that of the
text given.

Cost: LALR with a contextual lexer, records made while parsing, an instruction is one token (see grammar.lark).

Raises `InvalidInput` for text that is not PTX, with the line, its text and what could have stood there in words.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from ptx.errors import InvalidInput, Where
from ptx.syntax import (
    AliasDirective,
    Attribute,
    Body,
    Declaration,
    Dims,
    Expr,
    FileDirective,
    Function,
    Header,
    Instruction,
    Label,
    LocDirective,
    ParamItem,
    Params,
    PrototypeDirective,
    RangeItem,
    Results,
    Scope,
    Targets,
    VariableItem,
    integer,
)
from ptx.syntax_errors import syntax_error


def _split_words(children: list[Any]) -> tuple[list[Any], list[Any]]:
    """Leading WORD and INT tokens, and the rest."""
    n = 0
    while n < len(children) and getattr(children[n], "type", "") in ("WORD", "INT"):
        n += 1
    return children[:n], children[n:]


# The parts of grammar.lark's LINE, which has checked them already.
_LINE = re.compile(r"(@\s*!?\s*[\w$%]+)?\s*(\w+(?:(?:\.|::)\w+|\s+\.[a-z]\w*)*)\s*(.*?)\s*;\Z", re.DOTALL)
_COMMA = re.compile(r"\s*,\s*")
_NESTED = frozenset("{[(")
_PART = re.compile(r"\s*((?:[^,\[{(]|\[[^\]]*\]|\{[^}]*\}|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))+)")


def _first(kind: type, children: list[Any]) -> Any:
    return next((c for c in children if isinstance(c, kind)), None)


def _integer(text: str, token: Any) -> int:
    """A literal that a token is, or is part of; an error names the token's line."""
    try:
        return integer(text)
    except InvalidInput as error:
        raise InvalidInput(error.diagnostic.what, where=Where(ptx_line=token.line)) from None


def _statements(children: list[Any]) -> list[Any]:
    """A body's statements, the bare tokens among them turned into records."""
    made: list[Any] = []
    for c in children:
        kind = getattr(c, "type", None)
        if kind is None:
            if c is not None:
                made.append(c)
        elif kind == "LINE":
            guard, opcode, operands = _LINE.match(c).groups()  # type: ignore[union-attr]
            line = c.line if guard is None else c.line + c[: c.index(opcode)].count("\n")
            if not opcode.isprintable() or " " in opcode:
                opcode = "".join(opcode.split())
            if not operands:
                made.append(Instruction(line, guard, opcode, []))
            elif _NESTED.isdisjoint(operands):
                made.append(Instruction(line, guard, opcode, _COMMA.split(operands)))
            else:
                made.append(Instruction(line, guard, opcode, [o.rstrip() for o in _PART.findall(operands)]))
        elif kind == "LOC":
            made.append(LocDirective(c))
        else:
            made.append(Label(c))
    return made


class _Callbacks:
    """What a reduced rule becomes; one method a rule of grammar.lark, called with the rule's children."""

    def start(self, c: list[Any]) -> list[Any]:
        return [i for i in c if i is not None]

    def constant(self, c: list[Any]) -> Expr:
        return c[0]  # type: ignore[no-any-return]

    def version(self, c: list[Any]) -> Header:
        return Header(".version", c)

    def target(self, c: list[Any]) -> Header:
        return Header(".target", c)

    def address_size(self, c: list[Any]) -> Header:
        return Header(".address_size", c)

    def file(self, c: list[Any]) -> FileDirective:
        index, path = re.match(r'\.file\s+(\w+)\s+"((?:[^"\\]|\\.)*)"', c[0]).groups()  # type: ignore[union-attr]
        return FileDirective(_integer(index, c[0]), re.sub(r"\\(.)", r"\1", path))

    def pragma(self, c: list[Any]) -> None:
        """`.pragma` strings are hints to the assembler's optimiser; none changes a result."""

    # -------------------------------------------------------------------------------------------- functions
    def function(self, c: list[Any]) -> Function:
        linkage, (word, *rest) = _split_words(c)
        results, params, body = _first(Results, rest), _first(Params, rest), _first(Body, rest)
        return Function(
            linkage,
            word,
            next(t for t in rest if getattr(t, "type", "") == "NAME"),
            results.items if results else [],
            params.items if params else [],
            [a for a in rest if isinstance(a, Attribute)],
            body.statements if body else None,
        )

    def results(self, c: list[Any]) -> Results:
        return Results(c)

    def params(self, c: list[Any]) -> Params:
        return Params(c)

    def param(self, c: list[Any]) -> ParamItem:
        words, rest = _split_words(c)
        return ParamItem(words, rest[0], _first(Dims, rest))

    def attribute(self, c: list[Any]) -> Attribute | None:
        return Attribute(c[0], [_integer(v, v) for v in c[1:]]) if c[0] is not None else None

    def body(self, c: list[Any]) -> Body:
        return Body(_statements(c))

    # -------------------------------------------------------------------------------------------- statements
    def scope(self, c: list[Any]) -> Scope:
        return Scope(_statements(c))

    def instruction(self, c: list[Any]) -> Instruction:
        guard = c.pop(0) if c[0].type == "GUARD" else None
        return Instruction(c[0].line, guard, "".join(str(c[0]).split()), [str(o) for o in c[1:]])

    def targets(self, c: list[Any]) -> Targets:
        return Targets(c[0], c[1:])

    def prototype(self, c: list[Any]) -> PrototypeDirective:
        results, params = _first(Results, c), _first(Params, c)
        return PrototypeDirective(c[0], results.items if results else [], params.items if params else [])

    # -------------------------------------------------------------------------------------------- declarations
    def declaration(self, c: list[Any]) -> Declaration:
        return Declaration(*_split_words(c))

    def range(self, c: list[Any]) -> RangeItem:
        return RangeItem(c[0])

    def variable(self, c: list[Any]) -> VariableItem:
        dims = c[1] if len(c) > 1 and isinstance(c[1], Dims) else None
        rest = c[2:] if dims else c[1:]
        return VariableItem(c[0], dims, rest[0] if rest else None)

    def dims(self, c: list[Any]) -> Dims:
        return Dims(c)

    def dim(self, c: list[Any]) -> int | None:
        return _integer(c[0], c[0]) if c else None

    def alias(self, c: list[Any]) -> AliasDirective:
        return AliasDirective(*c)

    def int_list(self, c: list[Any]) -> list[int]:
        return [_integer(v, c[0]) for v in c[0].strip("{}").split(",")]

    def braces(self, c: list[Any]) -> list[Any]:
        return c

    def choose(self, c: list[Any]) -> Expr:
        return Expr("?", tuple(c))

    def binary(self, c: list[Any]) -> Expr:
        return Expr(str(c[1]), (c[0], c[2]))

    def unary(self, c: list[Any]) -> Expr:
        return Expr(str(c[0]), (c[1],))

    def cast(self, c: list[Any]) -> Expr:
        return Expr("cast", tuple(c))

    def number(self, c: list[Any]) -> Expr:
        return Expr("number", tuple(c))

    def symbol(self, c: list[Any]) -> Expr:
        return Expr("symbol", tuple(c))

    def generic(self, c: list[Any]) -> Expr:
        return Expr("generic", tuple(c))

    def mask(self, c: list[Any]) -> Expr:
        return Expr("mask", tuple(c))


@cache
def _parser() -> Any:
    from lark import Lark

    return Lark(
        Path(__file__).with_name("grammar.lark").read_text(),
        parser="lalr",
        start=["start", "constant"],
        lexer="contextual",
        maybe_placeholders=False,
        transformer=_Callbacks(),
    )


_COMMENT = re.compile(r"//[^\n]*")
_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*')
_SLASHES_AFTER_QUOTE = re.compile(r'"[^"\n]*//')
_BLOCK_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*"|//[^\n]*)|(/\*.*?\*/)', re.DOTALL)
_INLINE_ASM = re.compile(r"^[ \t]*// begin inline asm\n.*?^[ \t]*// end inline asm$", re.MULTILINE | re.DOTALL)
_INNER_LOC = re.compile(r"^[ \t]*\.loc[ \t][^\n]*$", re.MULTILINE)
"""LLVM marks the lines of an inline asm block too, from the second line on with a position that belongs to what
follows the block; the position in force at its beginning is the right one for all of it."""
_SECTION = re.compile(r"^[ \t]*\.section\s+[\w.]+\s*\{(?:[^{}/]+|//[^\n]*|/)*\}", re.MULTILINE)


def _blank(match: re.Match[str]) -> str:
    """Spaces for what was matched, keeping its newlines."""
    return "".join("\n" if ch == "\n" else " " for ch in match[0])


def strip(text: str) -> str:
    """`text` without comments and debug sections, each line where it was."""
    if "// begin inline asm" in text:
        text = _INLINE_ASM.sub(lambda m: _INNER_LOC.sub("", m[0]), text)
    if ".section" in text:
        text = _SECTION.sub(lambda m: "\n" * m[0].count("\n"), text)
    if "/*" in text:
        text = _BLOCK_COMMENT.sub(lambda m: m[1] or _blank(m), text)
    if _SLASHES_AFTER_QUOTE.search(text):  # perhaps a path with two slashes: look at every string
        return _STRING_OR_COMMENT.sub(r"\1", text)
    return _COMMENT.sub("", text)


def read(text: str) -> list[Any]:
    """The items of a PTX file: Header, FileDirective, Function, Declaration records in text order.

    Raises InvalidInput where the text does not follow the grammar."""
    from lark.exceptions import UnexpectedInput

    stripped = strip(text)
    try:
        items: list[Any] = _parser().parse(stripped, start="start")
    except UnexpectedInput as error:
        raise syntax_error(text, stripped, error) from None
    return items


def constant(text: str) -> Expr:
    """A constant expression that stands as an operand. Raises InvalidInput when it is none."""
    from lark.exceptions import UnexpectedInput

    try:
        made: Expr = _parser().parse(text, start="constant")
    except UnexpectedInput:
        raise InvalidInput(f"`{text}` is not a constant expression") from None
    return made
