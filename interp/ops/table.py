"""The instruction table that the chapters of `interp/ops/` fill. Import `interp.ops` for the filled table.

Here, too, stands what a modifier needs wherever it is written: state spaces, scopes and cache operators came to many
instructions at once. What one instruction needs beyond that stands in its record.
"""

from __future__ import annotations

from ptx.isa import Isa
from ptx.targets import at

_PRIORITIES = ("evict_last", "evict_normal", "evict_first", "evict_unchanged")
_SCOPED = [f".{order}{scope}" for order in ("relaxed", "acquire", "release") for scope in (".cta", ".gpu", ".sys", "")]

EVERYWHERE = {
    ",".join((*_SCOPED, ".acq_rel")): at((6, 0), 70),
    "order.weak": at((6, 0)),
    "scope.cta,scope.gpu,scope.sys": at((5, 0), 60),
    "scope.cluster,.relaxed.cluster,.acquire.cluster,.release.cluster": at((7, 8), 90),
    ".shared::cta": at((7, 8), 30),
    ".shared::cluster": at((7, 8), 90),
    ".param::entry,.param::func": at((8, 3)),
    ",".join(f".L1::{p}" for p in (*_PRIORITIES, "no_allocate")): at((7, 4), 70),
    ".L2::cache_hint,.L2::256B": at((7, 4), 80),
    ".L2::64B,.L2::128B": at((7, 4), 75),
    ".bf16,.bf16x2": at((7, 0), 80),
}

BLACKWELL = ("100f", "110f")
"""Targets of tcgen05; sm_12x has none of it."""
CONVERTING = (*BLACKWELL, "120f")
"""Targets of the small floating-point formats."""

isa = Isa(version=(9, 4), needs=EVERYWHERE)
