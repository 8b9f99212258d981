"""PTX front end: text → checked IR → facts about it. Runs nothing and knows no instruction's meaning.

    parse(text) -> ir.Module                parse.py     grammar, scopes, source lines, basic blocks
    decode(text) -> ir.Module               decode.py    the same, remembered on disk
    verify(module, isa) -> [Diagnostic]     verify.py    checks against an instruction table; `require` raises them
    print_module(module) -> str             printer.py   parse(print_module(m)) is m but for source positions
    control_flow(kernel) -> Cfg             analysis/    and liveness, uniformity

Inside: grammar.lark and read.py (text → syntax records of syntax.py), scope.py (names and operands), variables.py
(declarations), source_map.py (`.loc`), ir.py (the result), types.py, isa.py (what an instruction table is), errors.py.
"""

from ptx.analysis.cfg import Cfg, control_flow
from ptx.analysis.liveness import Liveness, liveness
from ptx.analysis.uniformity import Uniformity, uniformity
from ptx.decode import decode
from ptx.parse import parse
from ptx.printer import print_module
from ptx.verify import require, verify

__all__ = [
    "Cfg",
    "Liveness",
    "Uniformity",
    "control_flow",
    "decode",
    "liveness",
    "parse",
    "print_module",
    "require",
    "uniformity",
    "verify",
]
