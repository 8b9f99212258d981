"""HTML pages: templates of `templates/`, filled by jinja2. A page is one file without anything from elsewhere."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any


@cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )


def render(template: str, **values: Any) -> str:
    """A page. Everything that is put in is escaped, but for what `safe` marked."""
    return str(_environment().get_template(template).render(**values))


def safe(markup: str) -> Any:
    """Markup of our own (pictures), which is not escaped."""
    import markupsafe

    return markupsafe.Markup(markup)
