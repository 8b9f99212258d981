"""Cross-entropy of logits and labels, and its gradient.

`x` [M, V], `label` [M] int32 -> `loss` [M], `lse` [M], float32. A label equal to `ignore` gives loss 0 and no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuemu.bounds import Bound, Exact, Model, Running, formula
from gpuemu.bounds import cross_entropy as cross_entropy_model
from gpuemu.gate.declare import Input, Output
from gpuemu.gate.dtypes import F64
from gpuemu.schemas.rows import lse64
from gpuemu.schemas.schema import BLOCK, Schema, Views

IGNORE = -100


def _labels(ignore: bool) -> dict[str, Input]:
    drawn = Input("M", dtype="int32", high="V")
    if not ignore:
        return {"label": drawn}
    skipped = Input("M", dtype="int32", kind="flags")

    def masked(drawn: Any, skipped: Any) -> Any:
        return np.where(skipped == 1, IGNORE, drawn)

    return {"drawn": drawn, "skipped": skipped, "label": Input("M", dtype="int32", derived=masked)}


def cross_entropy(
    *, tile: int = BLOCK, ignore: bool = False, with_lse: bool = True, views: Views = ("padded",)
) -> Schema:
    """loss = lse - x[label]. Model: bounds.cross_entropy, for a one-pass kernel with tiles of `tile` or better.
    `ignore`: labels of -100 occur. `with_lse`: the log-sum-exp is an output too."""
    plain = cross_entropy_model("x", "safe", loss="loss", lse="lse", tile=tile)

    def reference(x: F64, label: Any) -> dict[str, F64]:
        lse = lse64(x)
        kept = label != IGNORE
        loss = np.where(kept, lse - x[np.arange(len(x)), np.where(kept, label, 0)], 0.0)
        return {"loss": loss, "lse": lse} if with_lse else {"loss": loss}

    def evaluate(exact: Exact) -> Bound:
        label = exact.inputs["label"]
        kept = label != IGNORE
        given = {"x": exact.inputs["x"], "safe": np.where(kept, label, 0)}
        bounds = dict(plain(Exact(given, {}, exact.dims, exact.dtype, exact.device)))  # type: ignore[arg-type]
        bounds["loss"] = np.where(kept, bounds["loss"], 0.0)
        return bounds

    outputs = {"loss": Output("M", dtype="float32")}
    if with_lse:
        outputs["lse"] = Output("M", dtype="float32")
    return {
        "dims": {"M": (1, 5, 16), "V": (1, 2, tile - 1, tile, tile + 1, 2 * tile + 1, 4 * tile, 1000)},
        "inputs": {"x": Input("M V", nonfinite=("-inf",), views=tuple(views)), **_labels(ignore)},
        "outputs": outputs,
        "reference": reference,
        "bound": Model(evaluate, plain.says, family="cross_entropy"),
    }


def cross_entropy_backward(*, tile: int = BLOCK, ignore: bool = True, inplace: bool = False) -> Schema:
    """dx = (exp(x - lse) - onehot(label)) * dloss, from the saved `lse` [M] and the upstream `dloss` [M], float32.
    `inplace`: written over x, as fused kernels do. Rows of an ignored label get 0."""

    def reference(x: F64, label: Any, lse: F64, dloss: F64) -> F64:
        kept = label != IGNORE
        p = np.exp(x - lse[:, None])
        p[np.arange(len(x)), np.where(kept, label, 0)] -= 1.0
        out: F64 = np.where(kept[:, None], p * dloss[:, None], 0.0)
        return out

    def running(x: Running, label: Any, lse: Running, dloss: Running) -> Running:
        kept = label != IGNORE
        z = x - lse[:, None]
        p = z.looser(x, lse[:, None], count=3.0).exp()
        hot = np.zeros(x.value.shape)
        hot[np.arange(len(hot)), np.where(kept, label, 0)] = 1.0
        rest = Running(p.value - hot, p.error + 2.0**-24 * (np.abs(p.value - hot) + p.error))
        return (rest * dloss[:, None]).where(np.broadcast_to(kept[:, None], hot.shape))

    return {
        "dims": {"M": (1, 5, 16), "V": (1, 2, tile - 1, tile, tile + 1, 2 * tile + 1, 4 * tile, 1000)},
        "inputs": {
            "x": Input("M V", largest=2.0**7),
            **_labels(ignore),
            "lse": Input("M", dtype="float32", derived=lambda x: lse64(x)),
            "dloss": Input("M", dtype="float32", kind="gradient", largest=2.0**8, views=("scalar",)),
        },
        "outputs": {"dx": Output(inplace="x") if inplace else Output("M V")},
        "reference": reference,
        "bound": formula(running, "cross-entropy gradient in binary32"),
    }
