"""Texts that say legal and illegal things in unusual ways: layouts, constant expressions, declarations, directives,
calls, headers. They stand in `layouts.jsonl`, one a line, with what ptxas 13.4 says of each (`taken`): a whole `text`,
or the parts of a module with one entry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
REGISTERS = (
    ".reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .u32 %u<9>; .reg .b64 %rd<40>; .reg .f32 %f<9>; "
    ".reg .f64 %fd<9>; .reg .pred %p<9>;\n.shared .align 16 .b8 sh[64]; .local .align 8 .b8 loc[64];\n"
)


@dataclass(frozen=True, slots=True)
class Layout:
    name: str
    text: str
    taken: bool


def layouts() -> list[Layout]:
    lines = Path(__file__).with_name("layouts.jsonl").read_text().splitlines()
    return [_layout(**json.loads(line)) for line in lines]


def _layout(name: str, taken: bool, text: str | None = None, body: str = "", outside: str = "", parameters: str = "",
            directives: str = "") -> Layout:  # fmt: skip
    if text is None:
        entry = f".visible .entry k({parameters})\n{directives} {{\n{REGISTERS}{body}\nret;\n}}\n"
        text = f"{HEADER}{outside}\n{entry}"
    return Layout(name, text, taken)
