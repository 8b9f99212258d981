"""Which records come nearest to an opcode that none has, and in what they differ: for messages to people.

A record's head is a row of places, each with its alternatives; the opcode's modifiers are put into the first place that
takes them. What is left over on either side is the difference: modifiers that the record has no place for, and places
that stay empty.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptx.record import Op

SHOWN = 2
"""Records that are named when several are equally near."""


def difference(record: Op, opcode: str) -> tuple[list[str], list[str]]:
    """(modifiers of the opcode that the record has no place for, alternatives of its places that stay empty)."""
    left = opcode.split(".")[1:]
    empty: list[str] = []
    for place in sorted(record.places, key=lambda place: place.optional):  # what must be there first
        found = next((a for a in sorted(place.alternatives, key=_length, reverse=True) if _has(left, a)), None)
        if found is not None:
            for word in found:
                left.remove(word)
        elif not place.optional:
            named = ["." + ".".join(a) for a in place.alternatives]
            empty.append(" or ".join(named) if len(named) < 4 else f"one of {' '.join(named)}")
    return ["." + word for word in left], empty


def _length(alternative: Sequence[str]) -> int:
    return len(".".join(alternative))


def _has(words: Sequence[str], alternative: Sequence[str]) -> bool:
    return all(words.count(word) >= alternative.count(word) for word in alternative)


def _reason(record: Op, opcode: str) -> str | None:
    """Why a record refuses an opcode that has its shape; None where it has not."""
    mods = record.modifiers(opcode[len(record.name) :])
    return record.constraint(**mods) if mods is not None and record.constraint is not None else None


def nearest(records: Iterable[Op], opcode: str) -> tuple[str, ...]:
    """A sentence for each of the records of one instruction that come nearest to an opcode."""
    reasons: list[str] = []
    ranked: list[tuple[int, str]] = []
    for record in records:
        head = record.syntax.partition(" ")[0]
        reason = _reason(record, opcode)
        if reason is not None:
            reasons.append(f"{head}: {reason}")
            continue
        foreign, empty = difference(record, opcode)
        words = [f"it has no {' '.join(foreign)}"] if foreign else []
        words += [f"it needs {' and '.join(empty)}"] if empty else []
        ranked.append((len(foreign) + len(empty) or 1, f"{head}: {', '.join(words) or 'its modifiers in this order'}"))
    best = min((score for score, _ in ranked), default=0)
    chosen = reasons or [text for score, text in ranked if score == best]
    return tuple(f"nearest form: {text}" for text in list(dict.fromkeys(chosen))[:SHOWN])


def nearest_name(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """A sentence about the instruction whose name is most like one that nobody has; nothing where none is like it."""
    return tuple(f"nearest instruction: {n}" for n in difflib.get_close_matches(name, sorted(known), 1, 0.7))
