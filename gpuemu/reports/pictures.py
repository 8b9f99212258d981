"""SVG pictures for the HTML reports: a roofline on logarithmic axes, registers along a program."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuemu.accounting.peaks import Roofline
from gpuemu.reports.heat import rate

_W, _H, _LEFT, _BOTTOM = 360, 220, 52, 34
_LOW, _HIGH = -2.0, 4.0
"""Decades of operations a byte."""


def roofline_svg(roof: Roofline) -> str:
    """The roof of a card for this mix of operations, and the kernel under it."""
    top = math.ceil(math.log10(roof.ceiling)) + 0.3
    low = top - 6

    def x(intensity: float) -> float:
        at = (math.log10(intensity) - _LOW) / (_HIGH - _LOW)
        return round(_LEFT + min(max(at, 0.0), 1.0) * (_W - _LEFT - 12), 1)

    def y(speed: float) -> float:
        at = (math.log10(speed) - low) / (top - low)
        return round(_H - _BOTTOM - min(max(at, 0.0), 1.0) * (_H - _BOTTOM - 12), 1)

    start = max(10**_LOW, 10**low / roof.bandwidth)
    roof_line = [(start, start * roof.bandwidth), (roof.ridge, roof.ceiling), (10**_HIGH, roof.ceiling)]
    points = " ".join(f"{x(a)},{y(b)}" for a, b in roof_line)
    px, py = x(roof.intensity), y(roof.attainable)
    out = [f'<svg viewBox="0 0 {_W} {_H}" role="img" aria-label="roofline of {roof.target}">']
    for decade in range(int(_LOW), int(_HIGH) + 1):
        at = x(10.0**decade)
        out.append(f'<line class="grid" x1="{at}" x2="{at}" y1="12" y2="{_H - _BOTTOM}"/>')
        out.append(f'<text x="{at}" y="{_H - _BOTTOM + 13}" text-anchor="middle">{10.0**decade:g}</text>')
    for decade in range(math.ceil(low), math.floor(top) + 1, 2):
        at = y(10.0**decade)
        out.append(f'<line class="grid" x1="{_LEFT}" x2="{_W - 12}" y1="{at}" y2="{at}"/>')
        out.append(f'<text x="{_LEFT - 5}" y="{at + 3}" text-anchor="end">{rate(10.0**decade)}</text>')
    out += [
        f'<polyline class="roof" points="{points}"/>',
        f'<line class="drop" x1="{px}" x2="{px}" y1="{py}" y2="{_H - _BOTTOM}"/>',
        f'<circle class="kernel" cx="{px}" cy="{py}" r="5"/>',
        f'<text x="{(_LEFT + _W) / 2}" y="{_H - 5}" text-anchor="middle">operations a byte</text>',
        "</svg>",
    ]
    return "".join(out)


def pressure_svg(live: Sequence[int], executed: Sequence[bool], width: int = 960, height: int = 150) -> str:
    """Registers that live at each instruction in text order; paler where nothing was executed."""
    if not live:
        return ""
    most, left = max(max(live), 1), 36
    each = (width - left) / len(live)
    bars = []
    for i, (n, ran) in enumerate(zip(live, executed, strict=True)):
        tall = round((height - 24) * n / most, 1)
        at = round(left + i * each, 2)
        name = "bar" if ran else "bar idle"
        bars.append(
            f'<rect class="{name}" x="{at}" y="{round(height - 14 - tall, 1)}" width="{each:.2f}" height="{tall}"/>'
        )
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="register pressure">'
        f'<text x="{left - 4}" y="18" text-anchor="end">{most}</text>'
        f'<text x="{left - 4}" y="{height - 14}" text-anchor="end">0</text>'
        f'<text x="{(left + width) / 2}" y="{height - 2}" text-anchor="middle">{len(live)} instructions</text>'
        f"{''.join(bars)}</svg>"
    )
