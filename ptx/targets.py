"""What a text may be written for: PTX versions, targets, and what an instruction needs of both.

A target is `sm_90` (code that later architectures run, too), `sm_90a` (code for that architecture alone) or `sm_100f`
(code for its family: later architectures of the same ten, as `sm_103`). A suffix allows more instructions. Which PTX
version brought which target: the manual's table 'PTX Release History' and '.target', each line tried on ptxas 12.9
and 13.4.

`Need` is what instruction records state: the first PTX version, and either the first architecture or the architectures
that alone have it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptx.errors import Diagnostic, InvalidInput, Unsupported

VERSIONS = tuple(
    (major, minor)
    for major, last in ((1, 5), (2, 3), (3, 2), (4, 3), (5, 1), (6, 5), (7, 8), (8, 8), (9, 5))
    for minor in range(last + 1)
)
"""Every PTX version that a compiler was seen to write. The manual that was read is that of 9.4 (`interp.ops.table`);
numba-cuda writes 9.5 and uses nothing new of it."""

_FIRST: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("sm_10", "sm_11"), (1, 0)), **dict.fromkeys(("sm_12", "sm_13"), (1, 2)), "sm_20": (2, 0),
    "sm_30": (3, 0), "sm_32": (4, 0), "sm_35": (3, 1), "sm_37": (4, 1), "sm_50": (4, 0), "sm_52": (4, 1),
    "sm_53": (4, 2), **dict.fromkeys(("sm_60", "sm_61", "sm_62"), (5, 0)), "sm_70": (5, 1), "sm_72": (6, 1),
    "sm_75": (6, 3), "sm_80": (7, 0), "sm_86": (7, 1), "sm_87": (7, 4), "sm_88": (9, 0), "sm_89": (7, 8),
    "sm_90": (7, 8), "sm_90a": (8, 0), "sm_100": (8, 6), "sm_100a": (8, 6), "sm_100f": (8, 8), "sm_101": (8, 6),
    "sm_101a": (8, 6), "sm_101f": (8, 8), "sm_103": (8, 8), "sm_103a": (8, 8), "sm_103f": (8, 8), "sm_107": (9, 4),
    "sm_107a": (9, 4), "sm_107f": (9, 4), "sm_110": (9, 0), "sm_110a": (9, 0), "sm_110f": (9, 0), "sm_120": (8, 7),
    "sm_120a": (8, 7), "sm_120f": (8, 8), "sm_121": (8, 8), "sm_121a": (8, 8), "sm_121f": (8, 8),
}  # fmt: skip
"""The first PTX version of each target."""

TARGET_OPTIONS = frozenset({"texmode_unified", "texmode_independent", "debug"})
"""What may follow the name. `map_f64_to_f32` is for architectures before sm_13 alone."""

_NAME = re.compile(r"sm_(\d+)([af]?)\Z")


def number(target: str) -> int | None:
    """90 for `sm_90a`; None for what is no target's name."""
    m = _NAME.match(target)
    return int(m[1]) if m else None


def runs_on(target: str, arch: int) -> bool:
    """Whether code for a target runs on a device of an architecture (90): the same or a later one, that very one for
    `sm_90a`, one of the family for `sm_100f`. Raises InvalidInput for what is no target's name."""
    m = _NAME.match(target)
    if m is None:
        raise InvalidInput(f"target `{target}` is not of the form sm_NN")
    first = int(m[1])
    if m[2] == "a":
        return arch == first
    return arch >= first and (m[2] == "" or arch in _FAMILIES.get(first, ()))


def name_problem(version: tuple[int, int], target: str) -> Diagnostic | None:
    """Why no text can have this version and target, or None."""
    said = f"{version[0]}.{version[1]}"
    if version not in VERSIONS:
        if version > VERSIONS[-1]:
            newest = f"{VERSIONS[-1][0]}.{VERSIONS[-1][1]}"
            help = f"the newest that is known here is {newest}; compile with an older toolkit"
            return Diagnostic(Unsupported.kind, f"PTX {said}", help=help)
        return Diagnostic(InvalidInput.kind, f"there is no PTX {said}")
    if number(target) is None:
        return Diagnostic(InvalidInput.kind, f"target `{target}` is not of the form sm_NN")
    first = _FIRST.get(target)
    if first is None:
        return Diagnostic(InvalidInput.kind, f"there is no target `{target}`", help="known: " + ", ".join(_FIRST))
    if version < first:
        came = f"{first[0]}.{first[1]}"
        return Diagnostic(InvalidInput.kind, f"target `{target}` came with PTX {came}, the text says {said}")
    return None


@dataclass(frozen=True, slots=True)
class Need:
    """`version`: first PTX version; `sm`: first architecture; `only`: the targets that alone have it, where those are
    not all from `sm` on: "90a" is that target, "100f" is `sm_100f`, `sm_100a` and later members of the family."""

    version: tuple[int, int] = (1, 0)
    sm: int = 10
    only: tuple[str, ...] = ()

    def problem(self, version: tuple[int, int], target: str) -> str | None:
        """What a text of this version and target lacks, in words, or None."""
        if version < self.version:
            return f"PTX {self.version[0]}.{self.version[1]}, the text says {version[0]}.{version[1]}"
        if self.only:
            if not any(_has(target, one) for one in self.only):
                return f"{' or '.join('sm_' + one for one in self.only)}, the text says {target}"
        elif (number(target) or 0) < self.sm:
            return f"sm_{self.sm}, the text says {target}"
        return None


def at(version: tuple[int, int], sm: int = 10, *only: str) -> Need:
    """`Need` by position: `at((8, 0), 90, "90a")`."""
    return Need(version, sm, only)


def _has(target: str, one: str) -> bool:
    """Whether code for a target may use what `one` names."""
    if one[-1] == "a":
        return target == "sm_" + one
    m = _NAME.match(target)
    if m is None or m[2] == "":
        return False
    have, first = int(m[1]), int(one[:-1])
    return have >= first and have in _FAMILIES.get(first, ())


_FAMILIES = {
    100: (100, 103, 107), 103: (103, 107), 107: (107,), 101: (101, 110), 110: (110,), 120: (120, 121), 121: (121,),
}  # fmt: skip
"""Architectures that run code of a family, by its first; sm_101 is what sm_110 was called before PTX 9.0."""


def applying(needs: Mapping[str, Need], mods: Mapping[str, Any], operands: Collection[str]) -> Iterator[Need]:
    """What a form with these modifiers (as meanings get them) and operands needs, of a record's `needs`.

    A key is words with spaces between them, all of which must hold; alternatives of a word stand with commas. A word
    is `.value` (some modifier has it), `modifier.value`, or the name of an operand that is there."""
    for key, need in needs.items():
        if all(any(_holds(w, mods, operands) for w in word.split(",")) for word in key.split()):
            yield need


def _holds(word: str, mods: Mapping[str, Any], operands: Collection[str]) -> bool:
    name, dot, value = word.partition(".")
    if not dot:
        return name in operands
    if name:
        return bool(mods.get(name) == value)
    return value in mods.values() or mods.get(value.replace("::", "_")) is True
