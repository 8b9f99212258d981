"""PTX front end: text → checked IR → facts about it. Runs nothing and knows no instruction's meaning.

parse(text) -> ir.Module            ptx/parse.py      grammar, scopes, source lines, basic blocks
control_flow(kernel) -> Cfg         ptx/analysis/     control flow, liveness, uniformity
"""

from ptx.analysis.cfg import Cfg, control_flow
from ptx.analysis.liveness import Liveness, liveness
from ptx.analysis.uniformity import Uniformity, uniformity
from ptx.decode import decode
from ptx.parse import parse
from ptx.printer import print_module

__all__ = [
    "Cfg",
    "Liveness",
    "Uniformity",
    "control_flow",
    "decode",
    "liveness",
    "parse",
    "print_module",
    "uniformity",
]
