"""The rules that a finding can break: id, and what it means. Shared by all reports, so an id says the same everywhere.

An engine finding's kind that is not listed here becomes 'gpuemu/<kind>' with a general description.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """`id` as in SARIF; `title` a short sentence; `help` what to look for."""

    id: str
    title: str
    help: str


_VALUE_HELP = (
    "The kernel's PTX was executed and compared, element by element, with the op's FP64 reference. The bound follows "
    "from the arithmetic of the hardware, so this is not rounding. Look at the masks, the accumulation and the scaling "
    "that lead to the store at this line; `gpuemu reproduce` executes the case again."
)

WRONG_VALUE = Rule("gpuemu/wrong-value", "A result lies outside its error bound", _VALUE_HELP)

_RULES: dict[str, Rule] = {
    "wrong-value": WRONG_VALUE,
    "non-finite": Rule(
        "gpuemu/wrong-value-class",
        "A result is NaN or infinite where the reference is not, or the reverse",
        _VALUE_HELP,
    ),
    "unwritten": Rule(
        "gpuemu/unwritten",
        "Part of an output is never written",
        "Outputs are filled with 0xFF bytes before the launch and this element still holds them. Look at the store's "
        "mask and at the grid.",
    ),
    "modified-input": Rule(
        "gpuemu/modified-input",
        "An input is written to",
        "The bytes of an input differ after the launch. Look at the pointers that the store at this line uses.",
    ),
    "wrote-between-rows": Rule(
        "gpuemu/wrote-between-rows",
        "A store writes beyond the end of a row",
        "The output was a view with gaps between its rows, and a gap was written. Look at the mask of the store.",
    ),
}


def rule_of(kind: str) -> Rule:
    """The rule of a problem's kind."""
    if kind in _RULES:
        return _RULES[kind]
    words = kind.replace("_", "-").replace(" ", "-").lower()
    return Rule(
        f"gpuemu/{words}",
        f"The emulator found: {kind}",
        "The emulator saw this while it executed the kernel; the message says what, where and on which array.",
    )
