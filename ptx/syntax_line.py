"""Syntax lines of instruction records: from the manual's notation to a pattern of modifiers and a list of operands.

The notation is described in `ptx.isa`. Nothing here knows an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from ptx.errors import InternalError

_FREE = frozenset({"rn", "rz", "rm", "rp", "ftz", "sat", "satfinite", "relu"})
"""Modifiers that may stand in any order among themselves."""

_QUALIFIERS = frozenset({
    "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "cta", "cluster", "gpu", "sys",
    "global", "shared", "shared::cta", "shared::cluster", "local", "const",
})  # fmt: skip
"""Of memory operations: order, scope, state space. libcu++ writes `atom.add.release.gpu.u32`, the manual
`atom.release.gpu.add.u32`; the assembler takes them wherever they stand."""

_FIRST = {
    **dict.fromkeys(("ld", "st", "atom", "red", "fence"), _QUALIFIERS),
    **dict.fromkeys(("vote", "shfl"), frozenset({"sync"})),
    **dict.fromkeys(("ldmatrix", "stmatrix"), frozenset({"sync", "aligned", "m8n8", "m16n16", "m8n16", "m16n8"})),
}
"""Modifiers that the manual has first, and others write elsewhere: CUB has `vote.ballot.sync.b32`, CUTLASS
`ldmatrix.sync.aligned.x4.m8n8.shared.b16`."""

_MOD = re.compile(r"\{\.([A-Za-z0-9_:]+(?:,\.[A-Za-z0-9_:]+)*)\}|\.([A-Za-z0-9_:]+)")


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand of a syntax line. `form`: "reg", "pair", "mem", "vec" or "imm"."""

    names: tuple[str, ...]
    form: str
    optional: bool

    @property
    def name(self) -> str:
        return self.names[0]


def compile_mods(text: str, choices: Mapping[str, tuple[str, ...]]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Pattern of the modifiers of a syntax line, with a group a named one, and the names of optional literals."""
    out, flags, at = [], [], 0
    for m in _MOD.finditer(text):
        if m.start() != at:
            raise InternalError(f"bad syntax line near '{text[at:]}'")
        at = m.end()
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
    return re.compile("".join(out)), tuple(flags)


def _alternatives(choices: Iterable[str]) -> str:
    """A pattern of literal alternatives, the longest first."""
    return "|".join(re.escape(c) for c in sorted(choices, key=len, reverse=True))


_OPERAND = re.compile(r"(\{,\s*)?(\[\w+\]|\{\w+\}|#\w+|\w+\|\w+|\w+)(\s*\})?\s*,?\s*")


def compile_operands(text: str) -> tuple[OperandSpec, ...]:
    """The operands of a syntax line."""
    out, at = [], 0
    while at < len(text):
        m = _OPERAND.match(text, at)
        if m is None:
            raise InternalError(f"bad operand list near '{text[at:]}'")
        at = m.end()
        word, optional = m[2], m[1] is not None
        if word.startswith("["):
            out.append(OperandSpec((word[1:-1],), "mem", optional))
        elif word.startswith("{"):
            out.append(OperandSpec((word[1:-1],), "vec", optional))
        elif word.startswith("#"):
            out.append(OperandSpec((word[1:],), "imm", optional))
        elif "|" in word:
            out.append(OperandSpec(tuple(word.split("|")), "pair", optional))
        else:
            out.append(OperandSpec((word,), "reg", optional))
    return tuple(out)


def reorderings(opcode: str) -> Iterator[str]:
    """The opcode with its roundings and the like in other orders, and with qualifiers first."""
    name, *mods = opcode.split(".")
    first = _FIRST.get(name)
    if first is not None:
        moved = sorted(mods, key=lambda m: m not in first)
        if moved != mods:
            yield ".".join((name, *moved))
    free = [i for i, m in enumerate(mods) if m in _FREE]
    for order in permutations(free):
        moved = list(mods)
        for i, j in zip(free, order, strict=True):
            moved[i] = mods[j]
        if moved != mods:
            yield ".".join((name, *moved))
