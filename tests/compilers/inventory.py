"""What of a compiler's output is accepted: texts and entries, and what refuses the others, by class.

    python -m tests.compilers.inventory FOLDER...       every *.ptx below the folders

An entry is accepted when the reader, the verifier, the flattening of calls and the planner take it, which is all that
a launch asks before it makes native code.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from interp.engine.plan import make_plan
from interp.launch import Module
from interp.ops import ISA
from ptx.errors import GpuemuError


@dataclass
class Inventory:
    """`texts`, `entries`: counted; `refused`: class of refusal → names of entries (or texts) that it stops."""

    texts: int = 0
    texts_whole: int = 0
    entries: int = 0
    accepted: int = 0
    refused: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, text: str) -> None:
        """Judge every entry of one text."""
        self.texts += 1
        try:
            module = Module.from_ptx(text)
        except GpuemuError as error:
            self.entries += len(set(re.findall(r"\.entry\s+([\w$]+)", text)))
            self._refuse(error, name)
            return
        good = True
        for entry in module.values():
            self.entries += 1
            try:
                make_plan(entry.code, ISA)
                self.accepted += 1
            except GpuemuError as error:
                good = False
                self._refuse(error, f"{name}:{entry.kernel.name}")
        self.texts_whole += good

    def _refuse(self, error: GpuemuError, name: str) -> None:
        classes = {f"{d.kind}: {class_of(d.what)}" for d in error.diagnostics}
        for each in classes:
            self.refused[each].append(name)

    def render(self, names: int = 2) -> str:
        """A few lines, the most frequent class first."""
        lines = [f"texts {self.texts_whole} of {self.texts} whole, entries {self.accepted} of {self.entries} accepted"]
        for what, where in sorted(self.refused.items(), key=lambda item: -len(item[1])):
            lines.append(f"{len(where):6d}  {what}")
            lines += [f"            {name}" for name in where[:names]]
        return "\n".join(lines)


def class_of(what: str) -> str:
    """A message without what differs from case to case: names of symbols and registers, numbers in the text."""
    what = re.sub(r"`[\w$%.:]*[A-Z_$%][\w$%.:]*`", "`…`", what.splitlines()[0])
    return re.sub(r"%\w+", "%…", what)


def inventory(texts: Iterable[tuple[str, str]]) -> Inventory:
    """The inventory of named texts."""
    found = Inventory()
    for name, text in texts:
        found.add(name, text)
    return found


def main(folders: list[str]) -> None:
    targets: Counter[str] = Counter()
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.ptx"))
    found = Inventory()
    for path in files:
        text = path.read_text()
        if not text.strip():
            continue
        target = re.search(r"^\.target\s+(\w+)", text, re.MULTILINE)
        targets[target[1] if target else "?"] += 1
        found.add(path.stem, text)
    print(", ".join(f"{name} {count}" for name, count in sorted(targets.items())))
    print(found.render())


if __name__ == "__main__":
    main(sys.argv[1:])
