"""`fill_in(what)`: stands in an op file where only its author knows what belongs there.

`gpuemu init` writes it. A file that still has one is refused before it is imported, with all places and what each
wants, so that a half-finished op file is never mistaken for a checked one.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from ptx.errors import InvalidInput, Where

NAME = "fill_in"


def fill_in(what: str) -> Any:
    """Raises InvalidInput: `what` is still missing."""
    raise InvalidInput(f"still to be filled in: {what}", help="replace the call of fill_in by it")


class Unfilled(InvalidInput):
    """An op file that its author has not finished: a sweep reports it as not checked and goes on with the others."""


def refuse_unfilled(file: Path) -> None:
    """Raises Unfilled if the file still calls `fill_in`. A file that does not parse is left to its import."""
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text) if f"{NAME}(" in text else None
    except (OSError, UnicodeDecodeError, SyntaxError):
        return
    places = [] if tree is None else sorted(_calls(tree))
    if places:
        raise Unfilled(
            f"{file.name} still has {len(places)} place{'s' if len(places) > 1 else ''} to fill in",
            where=Where(str(file), places[0][0]),
            notes=tuple(f"line {line}: {what}" for line, what in places),
            help="replace each call of fill_in by what it asks for",
        )


def _calls(tree: ast.Module) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if name == NAME:
                words = [a.value for a in node.args if isinstance(a, ast.Constant)]
                found.append((node.lineno, str(words[0]) if words else "?"))
    return found
