"""Syntax lines of instruction records: from the manual's notation to a pattern of modifiers and a list of operands.

The notation is described in `ptx.isa`. Nothing here knows an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ptx.errors import InternalError

_MOD = re.compile(r"\{\.([A-Za-z0-9_:]+(?:,\.[A-Za-z0-9_:]+)*)\}|\.([A-Za-z0-9_:]+)")


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand of a syntax line. `form`: "reg", "pair", "mem", "vec" or "imm"; `when`: the optional modifier that an
    optional operand comes with, if it stands there exactly then."""

    names: tuple[str, ...]
    form: str
    optional: bool
    when: str | None = None

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Place:
    """A place for a modifier in a syntax line: its alternatives, each as words without dots; whether it may be left
    out."""

    alternatives: tuple[tuple[str, ...], ...]
    optional: bool


def compile_mods(
    text: str, choices: Mapping[str, tuple[str, ...]]
) -> tuple[re.Pattern[str], tuple[str, ...], tuple[Place, ...]]:
    """Pattern of the modifiers of a syntax line, with a group a named one, the names of optional literals, and the
    places in their order."""
    out, flags, places, at = [], [], [], 0
    for m in _MOD.finditer(text):
        if m.start() != at:
            raise InternalError(f"bad syntax line near '{text[at:]}'")
        at = m.end()
        for word in (m[1] or m[2]).replace(",.", ",").split(","):
            found = choices.get(word.replace("::", "_"), ("." + word,))
            places.append(Place(tuple(tuple(c[1:].split(".")) for c in found), m[1] is not None))
        if m[1] and "," in m[1]:  # optional alternatives in any order
            keys = m[1].replace(",.", ",").split(",")
            body = "|".join(f"(?P<{k}>(?:{_alternatives(choices[k])})(?=\\.|$))" for k in keys)
            out.append(f"(?:{body}){{0,{len(keys)}}}")
            continue
        optional, name = (True, m[1]) if m[1] else (False, m[2])
        key = name.replace("::", "_")
        if key in choices:
            body = _alternatives(choices[key])
            # an alternative must end at a dot or at the end: '.L1' must not match inside '.L1::evict_last'
            out.append(f"(?P<{key}>(?:{body})(?=\\.|$))" + ("?" if optional else ""))
        elif optional:
            flags.append(key)
            out.append(f"(?P<{key}>\\.{re.escape(name)}(?=\\.|$))?")
        else:
            out.append(f"\\.{re.escape(name)}(?=\\.|$)")
    if at != len(text):
        raise InternalError(f"bad syntax line near '{text[at:]}'")
    return re.compile("".join(out)), tuple(flags), tuple(places)


def _alternatives(choices: Iterable[str]) -> str:
    """A pattern of literal alternatives, the longest first."""
    return "|".join(re.escape(c) for c in sorted(choices, key=len, reverse=True))


_OPERAND = re.compile(r"(\{,\s*)?(\[\w+\]|\{\w+\}|#\w+|\w+\|\w+|\w+)(?: if (\w+))?(\s*\})?\s*,?\s*")


def compile_operands(text: str) -> tuple[OperandSpec, ...]:
    """The operands of a syntax line."""
    out, at = [], 0
    while at < len(text):
        m = _OPERAND.match(text, at)
        if m is None:
            raise InternalError(f"bad operand list near '{text[at:]}'")
        at = m.end()
        word, optional, when = m[2], m[1] is not None, m[3]
        form = {"[": "mem", "{": "vec", "#": "imm"}.get(word[0], "pair" if "|" in word else "reg")
        out.append(OperandSpec(tuple(word.strip("[]{}#").split("|")), form, optional, when))
    return tuple(out)


_KEPT = (
    re.compile(r"pred|[busf]\d+(x\d+)?|bf16(x2)?|tf32|u?e\d+m\d+(x\d+)?|s2f6x2"),
    re.compile(r"(global|const|local|param|shared)(::\w+)?"),
    re.compile(r"row|col"),
)
"""Types, state spaces and layouts: of each, the first one written is the first one meant."""

_NAMES = frozenset(
    (
        *("lo", "hi", "wide", "to", "full", "l", "r", "a", "b", "c", "d", "async", "bulk", "tensor", "load", "store"),
        *("mma", "arrive", "arrive_drop", "expect_tx", "complete_tx", "init", "inval", "test_wait", "try_wait"),
        *("pending_count", "noComplete", "parity", "red", "mma_async", "proxy", "pack", "reduce", "prefetch"),
        *("cp_fenceproxy", "alloc", "dealloc", "ld", "st", "cp", "commit", "commit_group", "wait_group", "wait_all"),
        *("rs", "replace", "mbarrier", "warp", "fractional", "sp", "sp::ordered_metadata"),
    )
)
"""Words that are part of an instruction's name and stay where they are: `mul.wide`, `mbarrier.arrive`."""
_NAMES_OF = {"barrier": {"cluster", "cta"}, "bar": {"cta"}, "setmaxnreg": {"inc", "dec"}}
_COMPARISONS = frozenset({"lo", "hi"})
"""Such words of single instructions; and words that are ordinary modifiers of `set` and `setp`."""


def in_order(name: str, words: Sequence[str], places: Sequence[Place]) -> Iterator[tuple[str, ...]]:
    """The modifiers of an opcode called `name` in the order of a syntax line. ptxas takes them in any order, except
    that those of `_NAMES` stand where they belong, and those of each of `_KEPT` keep their order."""
    fixed = (_NAMES | _NAMES_OF.get(name, set())) - (_COMPARISONS if name in ("set", "setp") else set())
    for found in _arranged(list(words), places, 0):
        if all(w == found[i] for i, w in enumerate(words) if w in fixed) and _sequence(found) == _sequence(words):
            yield tuple(found)


def _sequence(words: Sequence[str]) -> list[list[str]]:
    return [[w for w in words if kept.fullmatch(w)] for kept in _KEPT]


def _arranged(rest: list[str], places: Sequence[Place], at: int) -> Iterator[list[str]]:
    if at == len(places):
        if not rest:
            yield []
        return
    for alternative in sorted(places[at].alternatives, key=lambda a: min(map(rest.index, a)) if {*a} <= {*rest} else 0):
        left = list(rest)
        try:
            for word in alternative:
                left.remove(word)
        except ValueError:
            continue
        for more in _arranged(left, places, at + 1):
            yield [*alternative, *more]
    if places[at].optional:
        yield from _arranged(rest, places, at + 1)
