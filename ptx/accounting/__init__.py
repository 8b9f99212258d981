"""Static accounting: what a kernel costs in registers and instructions on a target, with nothing executed.

    account(text, target, isa) -> Account          # account.py: one flat table of numbers, or Unavailable with a reason

Four sources, each in a file of its own and none of them estimated where a tool can say it:

    virtual.py     the PTX itself: registers, liveness, instructions by class        (no tool)
    assemble.py    runs ptxas, cuobjdump and nvdisasm once a (text, target) and keeps what they printed
    resources.py   reads the registers, spills, stack, shared, constants, barriers that those tools print
    sass.py        classes of machine instructions, a table
    occupancy.py   CTAs and warps on a multiprocessor, from ptx/device.py's limits

`alignment.py` compares two PTX texts instruction by instruction. `metrics.py` is the table of names: every number that
leaves this package is in it.
"""
