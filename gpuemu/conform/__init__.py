"""Does the emulator give the bits of a GPU? Instruction by instruction, and kernel by kernel.

    forms, words  ->  bundle  ->  on_gpu (any machine with a GPU)  ->  answers  ->  compare  ->  table

forms.py      every form of every lane instruction, and PTX that executes many of them
words.py      operand words
matrices.py   matrix instructions of a warp, and their operand words
bundle.py     a folder of assembled code and inputs for a machine with a GPU; nothing of this project is needed there
on_gpu.py     runs such a folder: numpy and a CUDA driver are enough
answers.py    what a GPU returned, with its name, driver and date; `answers/` has those that come with the project
launches.py   whole kernels: the launches of op files, recorded, for a bundle and for the comparison
compare.py    the emulator against answers
explained.py  differences that are known, and why
evidence.py   what is known of each instruction record: the support table, docs/support.md
"""
