"""Functions of the device's runtime, which no PTX text defines: `vprintf` and `__assertfail`.

`ptx.flatten` makes a call of one an instruction whose operands are the arguments. CUDA C++ Programming Guide,
'Formatted Output', 'Assertion'; Triton's `device_print` and `device_assert` call them.
"""

from __future__ import annotations

from typing import Any

from interp.kit import Kit
from interp.ops.table import isa
from ptx.isa import Cost, Effect, Varies

_CALL = "control-flow-instructions-call"


@isa.op("call.vprintf d, format, arguments", internal=True, types={"d": "b32", "format": "b64", "arguments": "b64"},
        effect=Effect.ASYNC, varies=Varies.ALWAYS, cost=Cost.CONTROL, ref=_CALL)
def vprintf(k: Kit) -> Any:
    """print the arguments by a format of C"""
    return k.warp("system_vprintf", (32,))


@isa.op("call.assertfail message, file, line, function, bytes", internal=True, effect=Effect.ASYNC, cost=Cost.CONTROL,
        ref=_CALL, types={"message": "b64", "file": "b64", "line": "b32", "function": "b64", "bytes": "b64"}, writes=())
def assertfail(k: Kit) -> Any:
    """end the launch: an assertion has failed"""
    fail = k.warp("system_assertfail", ())

    def run(*words: Any) -> None:
        fail(*words)

    return run
