"""docs/schemas.md lists the library; its table is made from the schemas themselves (`GPUEMU_BLESS=1` writes it)."""

import inspect
import os
from pathlib import Path

from schema_list import declared

from gpuemu import schemas
from gpuemu.bounds import Model

PAGE = Path(__file__).parents[2] / "docs" / "schemas.md"
MARK = "<!-- made by tests/gate/test_docs.py -->\n"


def rows() -> str:
    lines = ["| schema | what it states | error model | exact mode |", "|---|---|---|---|"]
    for name in schemas.__all__:
        if name in ("Schema", "gradient"):
            continue
        words = " ".join((inspect.getdoc(getattr(schemas, name)) or "").split())
        op = declared(name, {})
        assert isinstance(op.bound, Model)
        cells = (f"`{name}`", words, op.bound.says, "yes" if op.linear is not None else "")
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines) + "\n"


def test_the_page_lists_every_schema():
    text = PAGE.read_text()
    before, mark, _ = text.partition(MARK)
    assert mark
    wanted = before + mark + "\n" + rows()
    if os.environ.get("GPUEMU_BLESS"):
        PAGE.write_text(wanted)
    assert wanted == PAGE.read_text(), "GPUEMU_BLESS=1 writes it"
