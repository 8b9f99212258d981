"""`gpuemu report` as one HTML page."""

from __future__ import annotations

from typing import Any

from gpuemu.accounting.peaks import NOTE, Roofline
from gpuemu.accounting.profile import Profile
from gpuemu.reports.heat import COLUMNS, cells, heat, rate, short, totals
from gpuemu.reports.page import render, safe
from gpuemu.reports.pictures import pressure_svg, roofline_svg
from ptx.accounting.account import Absent


def kernel_html(profile: Profile) -> str:
    """The whole page; the same profile gives the same bytes."""
    findings, notes = [], []
    for on in profile.targets:
        for f in on.findings:
            findings.append(f"{on.target}: {f'{f.file}:{f.line}: ' if f.file else ''}{f.kind}: {f.message}")
        if on.reason is not None:
            findings.append(f"{on.target} was not measured: {on.reason}")
        if isinstance(on.static, Absent):
            findings.append(f"{on.target} has no static numbers: {on.static.reason}")
        notes += [f"{on.target}: {note}" for note in on.exactness]
    measured = [on for on in profile.targets if on.metrics is not None]
    columns = [totals(on) for on in measured]
    first = profile.first
    live = [i.live for i in profile.pressure]
    peak = first.metrics.peak if first is not None and first.metrics is not None else None
    return render(
        "kernel.html",
        name=profile.name,
        words=profile.words,
        findings=findings,
        notes=notes,
        note=NOTE.capitalize(),
        roofs=[_roof(on.target, on.roofline) for on in measured],
        targets=[on.target for on in measured],
        totals=[
            {"name": name, "cells": [short(c[name]) if name in c else "none" for c in columns]}
            for name in dict.fromkeys(n for column in columns for n in column)
        ],
        columns=list(COLUMNS),
        lines=_lines(profile),
        first=first.target if first is not None else "",
        peak="Nothing was executed" if peak is None else f"At most {peak.units}, at PTX line {peak.ptx_line}",
        pressure=safe(pressure_svg(live, [bool(i.values) for i in profile.pressure])),
        ptx=_ptx(profile),
    )


def _roof(target: str, roof: Roofline | str) -> dict[str, Any]:
    if not isinstance(roof, Roofline):
        return {"target": target, "card": "", "picture": "", "text": f"No estimate: {roof}."}
    text = (
        f"{roof.bound}-bound: {roof.intensity:.3g} operations a byte, ridge at {roof.ridge:.3g}. At most "
        f"{rate(roof.attainable)}op/s of {rate(roof.ceiling)}op/s; memory {rate(roof.bandwidth)}B/s."
    )
    return {"target": target, "card": roof.card, "picture": safe(roofline_svg(roof)), "text": text}


def _lines(profile: Profile) -> list[dict[str, Any]]:
    out, shown = [], None
    for line, shares in zip(profile.lines, heat(profile.lines), strict=True):
        numbers = cells(line) if line.values else {}
        out.append({
            "file": line.file if line.file != shown else None,
            "number": line.number,
            "text": line.text,
            "live": line.live if line.values else "",
            "cells": [
                {"text": short(numbers[c]) if numbers.get(c) else "", "heat": _shade(shares.get(c, 0))}
                for c in COLUMNS
            ],
        })  # fmt: skip
        shown = line.file
    return out


def _ptx(profile: Profile) -> list[dict[str, Any]]:
    if profile.first is None:
        return []
    texts = profile.first.ptx.splitlines()
    name = "smsp__inst_executed"
    all_ = sum(i.values.get(name, 0) for i in profile.pressure) or 1
    return [
        {
            "number": i.ptx_line,
            "executed": short(i.values.get(name, 0)),
            "heat": _shade(i.values.get(name, 0) / all_),
            "lanes": short(i.values.get("smsp__thread_inst_executed_pred_on", 0)),
            "live": i.live,
            "source": i.line or "",
            "text": texts[i.ptx_line - 1].strip() if i.ptx_line <= len(texts) else i.opcode,
        }
        for i in profile.pressure
    ]


def _shade(share: float) -> str:
    """Opacity of a cell: the square root of the share, so that small ones show, too."""
    return f"{0.85 * share**0.5:.2f}" if share > 0 else ""
