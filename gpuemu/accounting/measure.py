"""A side, measured: accounts by target with the PTX they are about, and the file that keeps them as a baseline.

A baseline is JSON: the accounts, the texts (each once, since a PTX file is the same for all targets), and what measured
them. It holds no absolute path and no time, so the same side gives the same bytes. `format` rises when a field changes
its meaning; another format is refused, never guessed at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from gpuemu.accounting.lowering import Lowering
from gpuemu.accounting.side import Options, Prepared, Spec, prepare
from gpuemu.files import unreadable, write_atomically
from interp.ops import ISA
from ptx.accounting.account import Absent, Account, account, entry_of
from ptx.accounting.metrics import DYNAMIC
from ptx.decode import decode
from ptx.errors import InvalidInput

FORMAT = 1


class Measured(msgspec.Struct, frozen=True):
    """One side. `accounts`, `texts` by target (no text where lowering failed); `file`, `line`: of the kernel."""

    name: str
    kernel: str
    file: str
    line: int | None
    accounts: dict[str, Account | Absent]
    texts: dict[str, str]
    notes: tuple[str, ...] = ()


class _Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file. `ptx`: digest -> text; `of`: target -> digest."""

    format: int
    name: str
    kernel: str
    file: str
    line: int | None
    accounts: dict[str, Account | Absent]
    ptx: dict[str, str]
    of: dict[str, str]
    notes: tuple[str, ...] = ()


def measure_sides(
    sides: Sequence[tuple[Spec, Options]], targets: Sequence[str], root: Path
) -> tuple[Measured, ...]:  # fmt: skip
    """Measure one or two sides; their kernels are lowered at the same time, each in its own process."""
    with ThreadPoolExecutor(len(sides)) as pool:
        waiting = [
            None if spec.kind == "json" else pool.submit(prepare, spec, targets, options, root)
            for spec, options in sides
        ]
        ready = [None if one is None else one.result() for one in waiting]
    return tuple(_measure(spec, targets, prepared) for (spec, _), prepared in zip(sides, ready, strict=True))


def measure(spec: Spec, targets: Sequence[str], options: Options, root: Path) -> Measured:
    """Measure a side on targets. A target without numbers is Absent with the reason.

    Raises InvalidInput for a side that is wrong whatever the target, Unsupported without the tools."""
    return measure_sides([(spec, options)], targets, root)[0]


def _measure(spec: Spec, targets: Sequence[str], prepared: Prepared | None) -> Measured:
    if prepared is None:
        return read_baseline(Path(spec.file), targets)
    accounts: dict[str, Account | Absent] = {}
    texts: dict[str, str] = {}
    kernel = spec.name or ""
    line = prepared.line
    for target in targets:
        lowering = prepared.lowerings[target]
        if lowering.reason is not None:
            accounts[target] = Absent(kernel, target, lowering.reason)
            continue
        texts[target] = lowering.ptx
        entry = entry_of(decode(lowering.ptx), lowering.entry or None)
        kernel = entry.name
        if line is None and entry.loc is not None:
            line = entry.loc.ptx_line
        static = account(
            lowering.ptx, target, ISA, kernel=entry.name, threads=lowering.threads or None, shared=lowering.shared,
            fmad=lowering.fmad,
        )  # fmt: skip
        accounts[target] = _with_launch(static, lowering)
    return Measured(spec.text, kernel, prepared.file, line, accounts, texts, prepared.notes)


def _with_launch(static: Account | Absent, lowering: Lowering) -> Account | Absent:
    """An account with the metrics of a launch, if there was one, or why they are missing."""
    if isinstance(static, Absent):
        return static
    missing = {**static.missing}
    if lowering.not_run is not None:
        missing |= {m.name: lowering.not_run for m in DYNAMIC}
    return msgspec.structs.replace(static, metrics={**static.metrics, **lowering.dynamic}, missing=missing)


def write_baseline(file: Path, side: Measured) -> None:
    """Keep a side. Raises InvalidInput when the place cannot be written."""
    digests = {target: hashlib.sha256(text.encode()).hexdigest()[:16] for target, text in side.texts.items()}
    kept = _Baseline(
        FORMAT, side.name, side.kernel, side.file, side.line, side.accounts,
        {digests[target]: text for target, text in side.texts.items()}, digests, side.notes,
    )  # fmt: skip
    write_atomically(file, msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")


def read_baseline(file: Path, targets: Sequence[str] = ()) -> Measured:
    """The side that a file keeps, for some targets (default: its own). Raises InvalidInput."""
    try:
        data = file.read_bytes()
        form = msgspec.json.decode(data).get("format")
        if form != FORMAT:
            raise InvalidInput(f"{file} is a baseline of format {form}, not {FORMAT}", help="make it anew with --save")
        kept = msgspec.json.decode(data, type=_Baseline)
        texts = {target: kept.ptx[digest] for target, digest in kept.of.items()}
    except OSError as error:
        raise unreadable(file, error) from error
    except (msgspec.MsgspecError, AttributeError, KeyError) as error:
        raise InvalidInput(
            f"{file} is not a baseline: {error}", help="gpuemu diff SIDE --save FILE makes one"
        ) from error
    accounts = {t: kept.accounts.get(t) or _not_in(kept, t) for t in (targets or kept.accounts)}
    return Measured(kept.name, kept.kernel, kept.file, kept.line, accounts, texts, kept.notes)


def _not_in(kept: _Baseline, target: str) -> Absent:
    return Absent(kept.kernel, target, f"the baseline has {', '.join(kept.accounts)} only")
