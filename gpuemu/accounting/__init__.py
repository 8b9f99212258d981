"""Registers and instructions before and after a change: `gpuemu diff`.

    side.py       what OLD and NEW may be, and their PTX for each target
    lowering.py   a Triton kernel to PTX, in a process of its own
    measure.py    a side's accounts (ptx/accounting), and the JSON that keeps them as a baseline
    compare.py    two sides: differences a target, and which of them are the same on all targets
    gates.py      limits that a change must keep
    profile.py    one kernel: static numbers and a measured launch for each target (`gpuemu report`)
    peaks.py      published peak figures of the cards, rooflines

The numbers come from `ptx.accounting` and `interp.metrics`; how they are shown is in `gpuemu/reports/diff_*.py` and
`kernel_*.py`.
"""
