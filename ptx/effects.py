"""What instruction records say about an instruction besides its result: issue class, side effect, dependence on the
lane."""

from __future__ import annotations

from enum import Enum


class Cost(Enum):
    """Issue class of an instruction; names follow Nsight Compute's pipes where the meaning is the same."""

    INT = "alu"
    FP32 = "fma"
    FP64 = "fp64"
    FP16 = "fp16"
    SFU = "xu"
    CONVERT = "cvt"
    MOVE = "move"
    LOAD_STORE = "lsu"
    ATOMIC = "atomic"
    TENSOR = "tensor"
    CONTROL = "control"
    SYNC = "sync"
    ASYNC = "async"


class Effect(Enum):
    """What an instruction does besides writing its destination registers."""

    NONE = "none"
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    WARP = "exchanges values between lanes"
    BARRIER = "waits for other warps"
    BRANCH = "transfers control"
    EXIT = "ends the thread"
    ASYNC = "starts or awaits an asynchronous operation"
    FENCE = "orders memory"
    CALL = "transfers control by plain branches that stand behind it (ptx.flatten)"


class Varies(Enum):
    """How a result depends on the lane, for the uniformity analysis."""

    WITH_INPUTS = 0
    ALWAYS = 1
    NEVER = 2
