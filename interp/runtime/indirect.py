"""Calling runtime functions by address, where linking them in would cost every caller their compile time.

Native code of a symbol contains everything that it calls. What few kernels need (bulk copies, `wgmma` arithmetic) is
reached from the scheduler and from waits through addresses in the context instead, which a launch fills in when its
kernel uses them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def call_by_address(typingctx: Any, function: Any, first: Any, second: Any) -> Any:
    """Call the native function at an address: (int64, int64) -> int64."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        i64 = ir.IntType(64)
        kind = ir.FunctionType(i64, [i64, i64])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64), codegen


STEP_SIGNATURE = "int64(int64, int64)"
"""(context, entry of a queue) -> 0."""
