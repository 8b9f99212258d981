"""Published peak figures of the cards, and what they say about a launch: a roofline, as an estimate.

Source: NVIDIA's data sheets of the cards (T4, A100 80 GB SXM, A10, L40S, H200 SXM, HGX B200, HGX B300, RTX PRO 6000
Blackwell Workstation), rates without sparsity at boost clock; for the RTX card the 'RTX PRO Blackwell Architecture'
white paper. A rate that no data sheet gives is absent, and a launch that needs it has no estimate.

What this is *not*: a prediction of time. Bytes are those that the requests of all warps ask for, as if no cache held
anything, and every unit is taken to run at its peak with nothing in its way. It says which of the two limits is lower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ptx.accounting.metrics import FLOAT_TYPES, TENSOR_TYPES
from ptx.device import device

T, G = 1e12, 1e9
NOTE = "estimates from published peak figures: no caches, no latencies, every unit at its peak"


@dataclass(frozen=True, slots=True)
class Peaks:
    """`bandwidth`: bytes a second of device memory. `rates`: operations a second by kind (`fp32`, `tensor_fp16`)."""

    bandwidth: float
    rates: Mapping[str, float]


def _rates(vector: str, tensor: str) -> dict[str, float]:
    """From `fp32 19.5` in units of 10**12 a second."""
    out = {}
    for prefix, text in (("", vector), ("tensor_", tensor)):
        words = text.split()
        out.update({prefix + name: float(rate) * T for name, rate in zip(words[::2], words[1::2], strict=True)})
    return out


PEAKS = {
    "sm_75": Peaks(320 * G, _rates("fp32 8.1 fp16 16.2", "fp16 65 int8 130")),
    "sm_80": Peaks(
        2039 * G,
        _rates("fp64 9.7 fp32 19.5 fp16 78 bf16 39", "fp64 19.5 tf32 156 fp16 312 bf16 312 int8 624"),
    ),
    "sm_86": Peaks(600 * G, _rates("fp32 31.2 fp16 31.2 bf16 31.2", "tf32 62.5 fp16 125 bf16 125 int8 250")),
    "sm_89": Peaks(
        864 * G, _rates("fp32 91.6 fp16 91.6 bf16 91.6", "tf32 183 fp16 362 bf16 362 fp8 733 int8 733")
    ),
    "sm_90": Peaks(
        4800 * G,
        _rates("fp64 34 fp32 67 fp16 134 bf16 134", "fp64 67 tf32 494.7 fp16 989.5 bf16 989.5 fp8 1979 int8 1979"),
    ),
    "sm_100": Peaks(
        8000 * G,
        _rates("fp64 37 fp32 75", "fp64 37 tf32 1100 fp16 2250 bf16 2250 fp8 4500 int8 4500"),
    ),
    "sm_103": Peaks(8000 * G, _rates("fp64 1.2 fp32 75", "fp64 1.2 tf32 1100 fp16 2250 bf16 2250 fp8 4500 int8 153")),
    "sm_120": Peaks(
        1792 * G, _rates("fp32 126 fp16 126 bf16 126", "tf32 251.9 fp16 503.8 bf16 503.8 fp8 1007.6 int8 1007.6")
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Roofline:
    """A launch under the limits of a card. `intensity`: operations a byte; `ceiling`: operations a second of this mix
    of kinds with data at hand; `ridge`: the intensity from which memory no longer limits; `attainable`: operations a
    second at this intensity. `memory`, `compute`: seconds that each would take at its peak."""

    target: str
    card: str
    bandwidth: float
    operations: int
    bytes: int
    ceiling: float
    memory: float
    compute: float

    @property
    def intensity(self) -> float:
        return self.operations / self.bytes

    @property
    def ridge(self) -> float:
        return self.ceiling / self.bandwidth

    @property
    def attainable(self) -> float:
        return min(self.ceiling, self.intensity * self.bandwidth)

    @property
    def bound(self) -> str:
        return "memory" if self.memory >= self.compute else "compute"


def roofline(target: str, totals: Mapping[str, int | float]) -> Roofline | str:
    """The roofline of a launch with these totals on a target's card, or why there is none."""
    chip = target.rstrip("af")
    peaks = PEAKS.get(chip)
    if peaks is None:
        return f"no published peak figures are recorded for {target}"
    work = {t: int(totals[f"ptx__flops_{t}"]) for t in FLOAT_TYPES}
    work |= {f"tensor_{t}": int(totals[f"ptx__tensor_ops_{t}"]) for t in TENSOR_TYPES}
    work = {kind: n for kind, n in work.items() if n}
    moved = int(totals["ptx__bytes_global_sectors"])
    if not work or not moved:
        return "the launch has no floating-point or tensor operations" if not work else "it moves no global memory"
    if missing := [kind for kind in work if kind not in peaks.rates]:
        return f"no published rate for {', '.join(missing)}"
    seconds = sum(n / peaks.rates[kind] for kind, n in work.items())
    total = sum(work.values())
    return Roofline(
        target, device(target).card, peaks.bandwidth, total, moved, total / seconds, moved / peaks.bandwidth, seconds
    )
