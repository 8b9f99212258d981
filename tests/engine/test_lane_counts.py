"""Counts lane by lane, and that their sums are the counters'."""

from __future__ import annotations

import numpy as np

from interp.lane_counts import LaneCounts
from tests.engine.assembly import STORE, entry

BODY = """
    setp.lt.u32 %p1, %r0, 5;
    @%p1 add.u32 %r3, %r0, 1;
    @!%p1 bra SKIP;
    mul.lo.u32 %r3, %r3, %r0;
SKIP:
    setp.eq.u32 %p2, %r0, 37;
    @%p2 exit;
"""


def test_every_lane_by_itself() -> None:
    counts = LaneCounts()
    out = np.zeros(64, np.uint32)
    result = entry(BODY + STORE).launch(grid=2, block=64, args=[out], engine="traced", hooks=counts)
    assert result.findings == () and result.counters is not None
    table = {i.opcode + str(i.loc.ptx_line): row for i, row in zip(counts.instructions, counts.table(), strict=True)}
    sums = {c.opcode + str(c.ptx_line): c.active_lanes for c in result.counters.instructions}
    assert {name: int(row.sum()) for name, row in table.items()} == {n: sums[n] for n in table}
    row = next(r for n, r in table.items() if n.startswith("mul.lo.u32"))
    assert row.tolist() == [2] * 5 + [0] * 27  # lanes 0 to 4 of the first warp of two CTAs
    row = next(r for n, r in table.items() if n.startswith("exit"))
    assert row.tolist() == [2 if lane == 5 else 0 for lane in range(32)]  # thread 37
    assert result.counters.executed == result.counters.totals["all"].active_lanes
