"""One kernel, everything about it: static numbers, a measured launch and a roofline for each target.

A Triton kernel is lowered, executed and measured anew for each target, since the code differs; arrays are fresh each
time, with the same bytes. A PTX file is executed once, as the code that it is, and assembled for each target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpuemu.accounting.peaks import Roofline, roofline
from gpuemu.commands.run import Launch, parse_sizes
from gpuemu.replay.portable import portable_path, portable_ptx
from interp.launch import Result
from interp.metrics import InstructionMetrics, Metrics
from interp.ops import ISA
from interp.result import Finding
from ptx.accounting.account import Absent, Account, account, entry_of
from ptx.decode import decode
from ptx.errors import GpuemuError, InternalError, Unsupported

TARGETS = ("sm_80", "sm_89", "sm_90")
"""For a Triton kernel, when none is asked for."""


@dataclass(frozen=True)
class OnTarget:
    """`roofline`: or why there is none. `reason`: why the target has no measurement; then the rest is None or empty."""

    target: str
    metrics: Metrics | None
    static: Account | Absent | None
    roofline: Roofline | str
    findings: tuple[Finding, ...] = ()
    exactness: tuple[str, ...] = ()
    ptx: str = ""
    reason: str | None = None


@dataclass(frozen=True)
class Line:
    """A source line with what was measured in it; `number` is a PTX line where the code has no source lines."""

    file: str | None
    number: int
    text: str
    values: dict[str, int | float]
    live: int


@dataclass(frozen=True)
class Profile:
    """`name`: the kernel; `words`: how it was launched. `lines`: of the first target that was measured."""

    name: str
    words: str
    targets: tuple[OnTarget, ...]
    lines: tuple[Line, ...]

    @property
    def first(self) -> OnTarget | None:
        """The target whose code is shown line by line."""
        return next((t for t in self.targets if t.metrics is not None), None)

    def exit_code(self, asked: bool) -> int:
        """1 for findings, 3 where something is missing that was asked for or everything is, else 0."""
        if any(on.findings for on in self.targets):
            return 1
        missing = [on for on in self.targets if on.metrics is None or not isinstance(on.static, Account)]
        return 3 if missing and (asked or len(missing) == len(self.targets)) else 0

    @property
    def pressure(self) -> tuple[InstructionMetrics, ...]:
        """Its instructions in text order, for the registers that live at each."""
        return self.first.metrics.instructions if self.first is not None and self.first.metrics is not None else ()


def profile(launch: Launch, targets: Sequence[str], root: Path) -> Profile:
    """Measure a launch on targets (empty: the usual ones, or what the PTX is for).

    What one target cannot do is that target's reason; raises what stands in the way of all of them."""
    found = _ptx_file(launch, targets, root) if launch.is_ptx else _triton(launch, targets or TARGETS, root)
    words = " ".join([*launch.words, f"grid={launch.grid}", *([f"block={launch.block}"] if launch.block else [])])
    words += f" fmad={launch.fmad}" if launch.fmad is not None else ""
    whole = Profile(launch.kernel, words, tuple(found), ())
    return replace(whole, lines=_lines(whole.first, root))


def _triton(launch: Launch, targets: Sequence[str], root: Path) -> list[OnTarget]:
    out = []
    errors: list[GpuemuError] = []
    for target in targets:
        try:
            result, _ = launch.execute(target, metrics=True)
        except InternalError:
            raise
        except GpuemuError as error:
            errors.append(error)
            out.append(OnTarget(target, None, None, "not measured", reason=_said(error)))
            continue
        about = result.metadata or {}
        out.append(
            _measured(
                target, result, root, str(about.get("name", "")) or None, int(about.get("shared", 0)),
                bool(about.get("enable_fp_fusion", True)) and launch.fmad != "off", None,
            )
        )  # fmt: skip
    if len(errors) == len(targets):
        raise errors[0]
    return out


def _ptx_file(launch: Launch, targets: Sequence[str], root: Path) -> list[OnTarget]:
    result, _ = launch.execute(None, metrics=True)
    own = decode(result.ptx).target
    threads = 1
    for n in parse_sizes("block", launch.block or "1"):
        threads *= n
    name = launch.kernel.partition("::")[2] or None
    return [
        _measured(target, result, root, name, launch.shared or 0, launch.fmad != "off", threads)
        for target in (targets or (own,))
    ]


def _measured(
    target: str, result: Result, root: Path, name: str | None, shared: int, fmad: bool, threads: int | None
) -> OnTarget:
    text = portable_ptx(result.ptx, root)
    entry = entry_of(decode(text), name)
    static: Account | Absent
    try:
        static = account(text, target, ISA, kernel=entry.name, threads=threads, shared=shared, fmad=fmad)
    except Unsupported as error:
        static = Absent(entry.name, target, _said(error))
    metrics = result.metrics
    roof = roofline(target, metrics.totals) if metrics is not None else "nothing ran"
    return OnTarget(target, metrics, static, roof, result.findings, result.exactness, result.ptx)


def _said(error: GpuemuError) -> str:
    first = error.diagnostic
    cause = f": {first.notes[-1].splitlines()[0]}" if first.notes and first.notes[-1] else ""
    return first.what + cause


def _lines(first: OnTarget | None, root: Path) -> tuple[Line, ...]:
    """The source around what was measured; the PTX itself where it names no source."""
    if first is None or first.metrics is None:
        return ()
    metrics = first.metrics
    live: dict[tuple[str | None, int | None], int] = {}
    for one in metrics.instructions:
        key = one.file, one.line
        live[key] = max(live.get(key, 0), one.live)
    named = {key: values for key, values in metrics.lines.items() if key[0] is not None and key[1] is not None}
    if not named:
        texts = first.ptx.splitlines()
        by_ptx = {i.ptx_line: i for i in metrics.instructions}
        return tuple(
            Line(None, n, texts[n - 1].strip(), dict(i.values), i.live) for n, i in sorted(by_ptx.items())
        )  # fmt: skip
    out = []
    for file in dict.fromkeys(str(f) for f, _ in named):
        source = _source(file)
        numbers = sorted(int(n) for f, n in named if f == file and n is not None)
        shown = range(numbers[0], numbers[-1] + 1) if source else numbers
        for n in shown:
            text = source[n - 1] if n <= len(source) else ""
            out.append(
                Line(portable_path(file, root), n, text, dict(named.get((file, n), {})), live.get((file, n), 0))
            )
    return tuple(out)


def _source(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
