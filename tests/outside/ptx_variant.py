"""A variant of `ptx_tests`: one expansion of a template, and who judges its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.outside import host_functions as host

Agrees = Callable[..., bool]
"""(word that came out, *words that went in)"""
BOTH = (False, True)
ROUNDINGS = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True)
class Variant:
    """One expansion of a template. `inputs`: types in the order in which the template takes the addresses; `flag` is
    a word that is 0 or 1, `byte` a byte that is 0 or 1. `agrees`: None where the text must not compile."""

    template: str
    name: str
    fill: dict[str, str]
    inputs: tuple[str, ...]
    result: str
    agrees: Agrees | None

    def body(self, text: str) -> str:
        for placeholder, by in self.fill.items():
            text = text.replace(f"<{placeholder}>", by)
        return text


def size(type: str) -> str:
    """Bytes of a type, as text."""
    return str(int(type[1:]) // 8)


def exactly(expected: Callable[..., int], format: host.Format | None = None) -> Agrees:
    """The judge of results that have one right word; with a format any NaN will do for a NaN."""
    if format:
        return lambda out, *words: format.same(expected(*words), out)
    return lambda out, *words: expected(*words) == out


def one_float(template: str, name: str, fill: dict[str, str], agrees: Agrees) -> Variant:
    return Variant(template, name, fill, ("f32",), "f32", agrees)


def suffix(*parts: str) -> str:
    """The parts that are not empty, each behind an underscore: the suite's names of variants."""
    return "".join(f"_{p}" for p in parts if p)
