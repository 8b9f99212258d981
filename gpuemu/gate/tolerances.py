"""Calibrated tolerances: how much of each derived error model correct kernels really use, kept in a file for review.

A derived bound is a worst case; correct kernels use a part of it. `gpuemu calibrate` measures that part (the largest
share of the bound over all elements of all cases, the final rounding aside) on half of a set of correct kernels, the
controls, and keeps for each family of models

    factor = min(1, max(FLOOR, MARGIN * share))

A sweep with the file multiplies each bound by its family's factor: tighter, never looser than what was derived. The
other half of the controls is for evaluation only: the file says how many of its cases the factors would flag. Which
half an op is in follows from a hash of the seed and its name. An author's own model is never calibrated, and a family
with fewer than LEAST_OPS controls in the first half keeps its derived bound: what one kernel uses of it says too little
of another (measured: a held-out kernel beyond the factor of a family that had one control).

The file is TOML, sorted, with no times or paths, and written whole or not at all.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpuemu.files import unreadable, write_atomically
from gpuemu.gate.bits import seed_of
from gpuemu.gate.judge import MARGIN as BORDERLINE
from gpuemu.gate.results import CaseResult, SweepResult
from ptx.errors import InvalidInput

FORMAT = 1
MARGIN = 2.0
FLOOR = 0.0625
LEAST_OPS = 2


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One family of error models: its factor, the largest share used, by which ops, in how many cases."""

    factor: float
    share: float
    ops: tuple[str, ...]
    cases: int


class HeldOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The evaluation: `share` is the largest of a calibrated bound, `flagged` the cases beyond it, by op."""

    ops: tuple[str, ...]
    cases: int
    share: float
    flagged: dict[str, int]


class Tolerances(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A calibration file."""

    format: int
    seed: int
    margin: float
    floor: float
    targets: tuple[str, ...]
    held_out: HeldOut
    family: dict[str, Family]

    @property
    def factors(self) -> dict[str, float]:
        """Factor by family."""
        return {name: f.factor for name, f in self.family.items()}


def calibrates(op: str, seed: int) -> bool:
    """Whether an op belongs to the half that is calibrated on."""
    return seed_of("calibrate", seed, op) & 1 == 0


def share_of(result: CaseResult) -> float:
    """The largest share of its bound that a case used."""
    return max((c.share for c in result.comparisons), default=0.0)


def calibrate(sweep: SweepResult, targets: Sequence[str]) -> Tolerances:
    """The factors that a sweep of controls gives, and what they say of the held-out half.

    Raises InvalidInput where a control has findings, is not checked, or where a half is empty.
    """
    if wrong := [c for c in sweep.cases if c.verdict in ("finding", "unchecked")]:
        names = list(dict.fromkeys(f"{c.case.op}: {c.verdict}" for c in wrong))
        raise InvalidInput(
            "only correct kernels can be calibrated on", notes=tuple(names), help="leave these out, or fix them"
        )
    if sweep.broken:
        raise InvalidInput(f"{sweep.broken[0].file} could not be loaded: {sweep.broken[0].reason}")
    first = [c for c in sweep.cases if calibrates(c.case.op, sweep.seed)]
    second = [c for c in sweep.cases if not calibrates(c.case.op, sweep.seed)]
    if not first or not second:
        raise InvalidInput("too few controls: one half is empty", help="give more ops, or another --seed")
    families: dict[str, Family] = {}
    for name in sorted({c.family for c in first if c.family is not None}):
        own = [c for c in first if c.family == name]
        if len({c.case.op for c in own}) < LEAST_OPS:
            continue
        share = max(share_of(c) for c in own)
        families[name] = Family(
            factor=_shortened(min(1.0, max(FLOOR, MARGIN * share))), share=_shortened(share),
            ops=tuple(sorted({c.case.op for c in own})), cases=len(own),
        )  # fmt: skip
    factors = {n: f.factor for n, f in families.items()}
    used = [(c, share_of(c) / factors.get(c.family or "", 1.0)) for c in second]
    flagged: dict[str, int] = {}
    for case, share in used:
        if share > 1 + BORDERLINE:
            flagged[case.case.op] = flagged.get(case.case.op, 0) + 1
    held = HeldOut(
        ops=tuple(sorted({c.case.op for c in second})), cases=len(second),
        share=_shortened(max(share for _, share in used)), flagged=dict(sorted(flagged.items())),
    )  # fmt: skip
    return Tolerances(
        format=FORMAT, seed=sweep.seed, margin=MARGIN, floor=FLOOR, targets=tuple(targets), held_out=held,
        family=families,
    )  # fmt: skip


def _shortened(value: float) -> float:
    """Four significant digits, rounded up: what a person reviews."""
    rounded = float(f"{value:.4g}")
    return rounded if rounded >= value else float(f"{value * 1.0001:.4g}")


def write_tolerances(path: Path, tolerances: Tolerances) -> None:
    """Write the file, whole or not at all. Raises InvalidInput when the place cannot be written."""
    write_atomically(path, toml_text(tolerances).encode())


def read_tolerances(path: Path) -> Tolerances:
    """Read and check a file. Raises InvalidInput for one that does not parse or loosens a bound."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        found = msgspec.convert(table, Tolerances)
    except OSError as error:
        raise unreadable(path, error) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InvalidInput(f"{path} is not a calibration file: {error}") from error
    if found.format != FORMAT:
        raise InvalidInput(f"{path} has format {found.format}, this version reads {FORMAT}")
    for name, family in found.family.items():
        if not 0 < family.factor <= 1:
            raise InvalidInput(f"{path}: factor {family.factor} of '{name}' is not in (0, 1]: no bound is loosened")
    return found


def toml_text(tolerances: Tolerances) -> str:
    """The file's text, the same for the same calibration."""
    held = tolerances.held_out
    lines = [
        "# Written by `gpuemu calibrate`: how much of each derived error bound correct kernels use. A sweep with this",
        "# file multiplies the bounds of each family by its factor = min(1, max(floor, margin * share)).",
        f"format = {tolerances.format}",
        f"seed = {tolerances.seed}",
        f"margin = {tolerances.margin!r}",
        f"floor = {tolerances.floor!r}",
        f"targets = {_list(tolerances.targets)}",
        "",
        "[held_out]",
        "# Controls that took no part in it; `share`: of the calibrated bounds, `flagged`: cases beyond them.",
        f"ops = {_list(held.ops)}",
        f"cases = {held.cases}",
        f"share = {held.share!r}",
        f"flagged = {{ {', '.join(f'{_quoted(k)} = {v}' for k, v in held.flagged.items())} }}".replace("{  }", "{}"),
    ]
    for name, family in sorted(tolerances.family.items()):
        lines += [
            "", f"[family.{_quoted(name)}]", f"factor = {family.factor!r}", f"share = {family.share!r}",
            f"ops = {_list(family.ops)}", f"cases = {family.cases}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _list(names: Sequence[str]) -> str:
    if len(names) <= 4:
        return f"[{', '.join(_quoted(n) for n in names)}]"
    return "[\n" + "".join(f"    {_quoted(n)},\n" for n in names) + "]"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def table(tolerances: Tolerances) -> str:
    """The calibration in words for a terminal."""
    rows = [("family", "factor", "share used", "controls", "cases")]
    rows += [
        (n, f"{f.factor:.4g}", f"{f.share:.4g}", str(len(f.ops)), str(f.cases)) for n, f in tolerances.family.items()
    ]
    widths = [max(len(r[i]) for r in rows) for i in range(5)]
    lines = [
        "  ".join(c.ljust(w) if not i else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True)))
        for r in rows
    ]
    held = tolerances.held_out
    total = sum(held.flagged.values())
    lines += [
        "",
        f"held out: {len(held.ops)} controls, {held.cases} cases, at most {held.share:.3g} of the calibrated bounds, "
        f"{total} flagged{': ' + ', '.join(f'{k} {v}' for k, v in held.flagged.items()) if total else ''}",
    ]
    return "\n".join(lines) + "\n"
