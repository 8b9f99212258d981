"""`gpuemu report` for programs: every number of every target as JSON. `format` rises when a field changes meaning."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from gpuemu.accounting.peaks import NOTE, Roofline
from gpuemu.accounting.profile import OnTarget, Profile
from ptx.accounting.account import Account

FORMAT = 1


def kernel_json(profile: Profile) -> bytes:
    """UTF-8 JSON with a final newline."""
    report = {
        "format": FORMAT,
        "kernel": profile.name,
        "launch": profile.words,
        "targets": {on.target: _target(on) for on in profile.targets},
    }
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def _target(on: OnTarget) -> dict[str, Any]:
    roof = on.roofline
    return {
        "not_measured": on.reason,
        "findings": [{"kind": f.kind, "message": f.message, "file": f.file, "line": f.line} for f in on.findings],
        "notes": on.exactness,
        "static": on.static.metrics if isinstance(on.static, Account) else None,
        "static_missing": None if on.static is None or isinstance(on.static, Account) else on.static.reason,
        "dynamic": on.metrics.to_dict() if on.metrics is not None else None,
        "roofline": {
            **dataclasses.asdict(roof), "intensity": roof.intensity, "ridge": roof.ridge,
            "attainable": roof.attainable, "bound": roof.bound, "note": NOTE,
        }
        if isinstance(roof, Roofline)
        else {"none": roof},
    }  # fmt: skip
