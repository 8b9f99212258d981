"""The gate, measured: a corpus of correct ops and planted bugs, every way to test them, and what each way says.

`corpus` (controls, patches) -> `measure` (one execution of each case, judged under every tolerance and oracle; in the
workers of `gate.pool`) -> `judgements` (the tolerances) -> `strategies` (which cases a way of testing has) -> `tables`.
`gpuemu study` drives it. Names of ops mean nothing here either: what is a bug is said by the corpus alone.
"""
