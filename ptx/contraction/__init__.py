"""Contraction: which bare multiplications and additions the assembler fuses, and the IR with them fused.

PTX leaves it to the assembler whether a `mul` and an `add` without a rounding become one fused operation (PTX ISA,
'Floating Point Instructions: mul, add'). ptxas is selective, so its choice is read from its code and not guessed:

plan.py    what is fused, as data and as one line of text, and applied to a module
read.py    the choice for a target, from the assembler's code
"""
