"""The instruction table that the chapters of `interp/ops/` fill. Import `interp.ops` for the filled table."""

from __future__ import annotations

from ptx.isa import Isa

isa = Isa(version=(9, 4))
