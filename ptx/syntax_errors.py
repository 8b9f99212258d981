"""A parser's complaint → a sentence: which line, what stands there, what could have stood there, in words."""

from __future__ import annotations

import re
from typing import Any

from ptx.errors import InvalidInput, Where

_WORDS = {
    "SEMICOLON": "`;`",
    "COMMA": "`,`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "EQUAL": "`=`",
    "OPERAND": "an operand (register, literal, symbol, [address] or {vector})",
    "OPCODE": "an instruction",
    "LABEL": "a label",
    "GUARD": "a guard (@%p)",
    "WORD": "a directive (.reg, .shared, …)",
    "NAME": "a name",
    "RANGE": "a register range (%r<8>)",
    "INT": "an integer",
    "FLOAT": "a floating-point literal",
    "VERSION": "a version number such as 8.8",
    "STRING": "a string in double quotes",
    "ENTRY": "`.entry` or `.func`",
    "INT_LIST": "a list of values in braces",
    "$END": "the end of the text",
}
# Terminals that may follow nearly anywhere: naming them tells nobody anything.
_QUIET = {"FILE", "LOC", "TARGETS", "QMARK", "CALLPROTOTYPE", "PRAGMA", "__ANON_0", "__ANON_1"}
_OPERATORS = {"OROR", "ANDAND", "BAR", "CARET", "AMP", "EQUALITY", "RELATION", "SHIFT", "PRODUCT", "UNARY", "SIGN"}


def _expectation(names: set[str]) -> str:
    if {"OPCODE", "LABEL"} <= names:
        return "an instruction, a label, a directive or `}`"
    if {"ENTRY", "VERSION_", "FILE"} & names and "WORD" in names:
        return "`.entry`, `.func`, a variable declaration or another module directive"
    words = sorted(_WORDS[n] for n in names if n in _WORDS and n not in _QUIET)
    if names & _OPERATORS:
        words.append("an operator")
    if not words:
        words = sorted(n.lower().replace("_", " ") for n in names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def syntax_error(text: str, stripped: str, error: Any) -> InvalidInput:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    lines = text.splitlines()
    notes: tuple[str, ...] = ()
    help = None
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        line, column, found = error.token.line, error.token.column, f"`{_shorten(_word(stripped, error.token))}`"
        names = set(error.accepts or error.expected)
    elif isinstance(error, UnexpectedCharacters):
        line, column = error.line, error.column
        found = f"`{_shorten(stripped[error.pos_in_stream :].split(None, 1)[0])}`"
        names = set(error.allowed or ())
    else:
        body = stripped.rstrip()
        line, column, found = body.count("\n") + 1, 0, "the end of the text"
        names = set(getattr(error, "accepts", None) or getattr(error, "expected", None) or ())
    if names <= {"COMMA", "SEMICOLON", "OPERAND"} and names:
        if not names.isdisjoint({"COMMA", "SEMICOLON"}):
            help = "every PTX instruction ends with `;` and separates its operands with `,`"
        before = _last_code_line(lines, line)
        if before is not None and not stripped.splitlines()[line - 1][: max(column - 1, 0)].strip():
            notes = (f"the instruction began on line {before + 1}: {lines[before].strip()}",)
    if found[1:2] in ("[", "{", "("):
        notes += (f"`{found[1]}` opens an operand here, and it is not closed before the `;`, or holds what it cannot",)
    if (open_line := _unclosed_brace(stripped)) is not None:
        notes += (f"the `{{` on line {open_line} is never closed",)
    where = Where(
        ptx_line=line, column=column or None, ptx_text=lines[line - 1].strip() if line <= len(lines) else None
    )
    return InvalidInput(
        f"PTX syntax: expected {_expectation(names)}, found {found}", where=where, notes=notes, help=help
    )


def _word(stripped: str, token: Any) -> str:
    """A token's text, to the end of the word that it begins: a lexer cuts `0f3F80` after the 0."""
    rest = re.match(r"[\w.$%]*", stripped[token.start_pos + len(token) :]) if token[-1:].isalnum() else None
    return str(token) + (rest[0] if rest else "")


def _unclosed_brace(stripped: str) -> int | None:
    """1-based line of the outermost brace that stays open to the end of the text."""
    still_open: list[int] = []
    for m in re.finditer(r"[{}]|\n", stripped):
        if m[0] == "{":
            still_open.append(m.start())
        elif m[0] == "}" and still_open:
            still_open.pop()
    return stripped.count("\n", 0, still_open[0]) + 1 if still_open else None


def _last_code_line(lines: list[str], line: int) -> int | None:
    """Index of the last line above `line` (1-based) that holds code."""
    for i in range(min(line - 2, len(lines) - 1), -1, -1):
        if lines[i].split("//")[0].strip():
            return i
    return None


def _shorten(text: str) -> str:
    text = " ".join(text.split()) if text.isprintable() or "\n" in text else ascii(text)[1:-1]
    return text if len(text) <= 40 else text[:37] + "..."
