"""All benchmarks, one after the other: `make bench`."""

from __future__ import annotations

from benchmarks import compile_time, first_result, matrix_product, versus_interpreter

for module in (versus_interpreter, compile_time, first_result, matrix_product):
    module.report()
    print()
