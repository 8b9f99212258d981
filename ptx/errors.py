"""Errors as data: one record says what went wrong, where, and what to do next.

Every error that a user can meet is an exception that carries a `Diagnostic`. Nothing here prints: the text form is
`Diagnostic.render()`, used by the command line and by `str(exception)` alike, so a message looks the same everywhere.

The tree (exit codes are the command line's):

    GpuemuError
    ├── InvalidInput     the PTX, argument, configuration or replay is wrong          exit 2
    ├── Unsupported      valid, but not modelled here: never executed, never green    exit 3
    ├── LaunchFailure    the launch cannot run: limits, memory, arguments             exit 2
    └── InternalError    a defect of gpuemu itself                                    exit 3
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the user's world. Any part may be unknown (None)."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    ptx_line: int | None = None
    ptx_text: str | None = None

    def render(self) -> str:
        parts = []
        if self.file is not None:
            parts.append(f"{self.file}:{self.line}" if self.line is not None else self.file)
        if self.ptx_line is not None:
            text = f"PTX line {self.ptx_line}"
            parts.append(f"{text}: {self.ptx_text}" if self.ptx_text else text)
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What went wrong (`what`), where, why (`notes`), and what to do next (`help`)."""

    kind: str
    what: str
    where: Where | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None

    def render(self) -> str:
        lines = [f"{self.kind}: {self.what}"]
        if self.where is not None and (text := self.where.render()):
            lines.append(f"  --> {text}")
        lines += [f"  note: {n}" for n in self.notes]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class GpuemuError(Exception):
    """Base of all errors that gpuemu raises on purpose."""

    diagnostics: tuple[Diagnostic, ...]
    kind = "error"

    def __init__(
        self,
        what: str | tuple[Diagnostic, ...],
        *,
        where: Where | None = None,
        notes: tuple[str, ...] = (),
        help: str | None = None,
    ) -> None:
        if isinstance(what, str):
            self.diagnostics = (Diagnostic(self.kind, what, where, tuple(notes), help),)
        else:
            self.diagnostics = tuple(what)
        super().__init__(self.render())

    @property
    def diagnostic(self) -> Diagnostic:
        """The first (usually only) diagnostic."""
        return self.diagnostics[0]

    def render(self) -> str:
        return "\n".join(d.render() for d in self.diagnostics)

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[type, tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


class InvalidInput(GpuemuError):
    """Input from outside is wrong: PTX text, arguments, configuration, replay."""

    kind = "invalid input"


class Unsupported(GpuemuError):
    """Valid input that this version does not model. Refused before launch, never skipped."""

    kind = "unsupported"


class LaunchFailure(GpuemuError):
    """A launch that real hardware would refuse, or that this machine cannot hold."""

    kind = "launch failure"


class InternalError(GpuemuError):
    """A defect of gpuemu itself."""

    kind = "gpuemu bug"
