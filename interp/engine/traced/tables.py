"""The columns of a traced program's tables, all of 64-bit words, and how a region may end.

A *row word* is the offset of a register's row in the warp frame, or the absolute address of a row plus one; -1 is none.
"""

from __future__ import annotations

INST = {name: i for i, name in enumerate(("HANDLER", "OPS", "GUARD", "NEGATED", "COUNTER", "SITE"))}
REGION = {
    name: i
    for i, name in enumerate(
        (
            "FIRST",
            "COUNT",
            "KIND",
            "TAKEN",
            "NEXT",
            "BACK",
            "POLLS",
            "GUARD",
            "NEGATED",
            "WAITS",
            "MEMBERS",
            "ALIKE",
            "SITE",
            "NUMBER",
            "THREADS",
            "COUNTER",
        )
    )
}
"""TAKEN: region reached by the branch, or the only one; NEXT: the other. BACK, POLLS: bits 0 and 1, whether these two
are back edges and polling edges. ALIKE: all lanes have one member mask. MEMBERS, NUMBER, THREADS: row words. Row
words and COUNTER: -1 for none."""
PROGRAM = {
    name: i
    for i, name in enumerate(
        ("REGIONS", "NREGIONS", "INSTS", "COUNTS", "GUARDED_AT", "DIVERGES", "FAIR", "MEASURED")
    )
}

GO, EXIT, BARRIER, TRAP, SPLIT, SPLIT_EXIT, SPLIT_TRAP = range(7)
"""How a region ends. SPLIT*: its guard decides for each lane."""
