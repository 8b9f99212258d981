"""`gpuemu report` for the terminal, with rich: rooflines, totals, the source as a heat map, register pressure."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpuemu.accounting.peaks import NOTE, Roofline
from gpuemu.accounting.profile import OnTarget, Profile
from gpuemu.reports.heat import COLUMNS, HEATED, cells, heat, rate, short, totals
from ptx.accounting.account import Absent

_WIDTH = 160
_SOURCE = 64
_PLOT = 56
_BARS = " ▁▂▃▄▅▆▇█"
_HEAT = ("", "on grey15", "on dark_red", "on red3", "bold on red1")


def kernel_text(profile: Profile, colour: bool = False, width: int | None = None) -> str:
    """The whole page. `width`: columns of a terminal that it must fit into."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=min(_WIDTH, width or _WIDTH), force_terminal=colour, no_color=not colour, highlight=False,
        markup=False, emoji=False,
    )  # fmt: skip
    console.print(f"{profile.name}  {profile.words}")
    for on in profile.targets:
        for finding in on.findings:
            place = f"{finding.file}:{finding.line}: " if finding.file else ""
            console.print(f"FINDING {on.target}: {place}{finding.kind}: {finding.message}")
        for note in on.exactness:
            console.print(f"note: {on.target}: {note}")
        if on.reason is not None:
            console.print(f"UNCHECKED {on.target}: {on.reason}")
        if isinstance(on.static, Absent):
            console.print(f"UNCHECKED {on.target}: no static numbers: {on.static.reason}")
    measured = [on for on in profile.targets if on.metrics is not None]
    console.print(f"\nRoofline ({NOTE})")
    console.print("\n".join(line for on in measured for line in roofline_lines(on)))
    if measured:
        console.print()
        console.print(_totals(measured))
    first = profile.first
    if first is not None:
        console.print(f"\nLine by line on {first.target}; heat: share of the launch in {' and '.join(HEATED)}")
        console.print(_source(profile))
        console.print(f"\nRegisters that live at each instruction, {first.target} (32-bit units, program order)")
        console.print("\n".join(pressure_lines(profile)))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def roofline_lines(on: OnTarget) -> list[str]:
    """A scale of intensity with the ridge and the kernel on it, and what follows."""
    roof = on.roofline
    if not isinstance(roof, Roofline):
        return [f"  {on.target:8} none: {roof}"]
    scale = ["─"] * _PLOT
    scale[_at(roof.ridge)] = "│"
    scale[_at(roof.intensity)] = "●"
    return [
        f"  {on.target:8} {roof.card:14} 0.01 {''.join(scale)} 10000 operations/byte",
        f"  {'':23} {roof.bound}-bound: ● {roof.intensity:.3g} operations/byte, │ ridge at {roof.ridge:.3g}; at most "
        f"{rate(roof.attainable)}op/s of {rate(roof.ceiling)}op/s, memory {rate(roof.bandwidth)}B/s",
    ]


def _at(intensity: float) -> int:
    place = (math.log10(max(intensity, 1e-9)) + 2) / 6 * (_PLOT - 1)
    return min(max(round(place), 0), _PLOT - 1)


def _totals(measured: Sequence[OnTarget]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    columns = [totals(on) for on in measured]
    for on in measured:
        table.add_column(on.target, justify="right")
    for name in dict.fromkeys(n for column in columns for n in column):
        table.add_row(name, *(short(c[name]) if name in c else "none" for c in columns))
    return table


def _source(profile: Profile) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("heat", no_wrap=True)
    for title in (*COLUMNS, "live"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("source", no_wrap=True)
    shown = None
    for line, shares in zip(profile.lines, heat(profile.lines), strict=True):
        if line.file != shown:
            shown = line.file
            table.add_row("", "", *[""] * (len(COLUMNS) + 1), Text(str(shown), style="bold"))
        numbers = cells(line) if line.values else {}
        style = _HEAT[min(math.ceil(4 * max(shares.values(), default=0)), 4)]
        table.add_row(
            str(line.number), "".join(_bar(shares[name]) for name in HEATED),
            *(short(numbers[title]) if numbers.get(title) else "" for title in COLUMNS),
            str(line.live) if line.values else "", Text(_cut(line.text), style=style),
        )  # fmt: skip
    return table


def _cut(text: str) -> str:
    """As much of a line as leaves the numbers their place."""
    return text if len(text) <= _SOURCE else text[: _SOURCE - 1] + "…"


def _bar(share: float) -> str:
    return _BARS[min(math.ceil(share * 8), 8)]


def pressure_lines(profile: Profile) -> list[str]:
    """One character for each few instructions, and where most registers live."""
    live = [i.live if i.values else 0 for i in profile.pressure]
    most = max(live, default=0)
    if not most:
        return ["  nothing was executed"]
    step = max(1, math.ceil(len(live) / (_WIDTH - 4)))
    groups = [max(live[i : i + step]) for i in range(0, len(live), step)]
    metrics = profile.first.metrics if profile.first is not None else None
    peak = metrics.peak if metrics is not None else None
    where = f"PTX line {peak.ptx_line}" if peak is not None else ""
    if peak is not None and peak.file is not None:
        where += f", source line {peak.line}"
    return ["  " + "".join(_BARS[math.ceil(8 * n / most)] for n in groups), f"  at most {most}, at {where}"]
