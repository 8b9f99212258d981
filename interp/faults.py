"""From the state in which a launch stopped to findings: what happened, to which array, at which source line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from interp.addresses import Named, string_at, tell
from interp.engine.compiled import Recipe
from interp.memory import Allocation
from interp.result import Finding
from interp.runtime import layout as L
from interp.runtime.copy_reasons import COORDINATE, MAP, UNMODELLED
from interp.runtime.layout import CTX, WARP, WARP_WORDS
from interp.runtime.tensor_reasons import MEMORY, OPERATION
from ptx import ir

_KINDS = {
    L.FAULT_OUT_OF_BOUNDS: "out-of-bounds",
    L.FAULT_MISALIGNED: "misaligned",
    L.FAULT_READ_ONLY: "read-only",
    L.FAULT_QUEUE_FULL: "queue-full",
    L.FAULT_TRAP: "trap",
    L.FAULT_BAD_MEMBER_MASK: "bad-member-mask",
    L.FAULT_UNMODELLED: "unmodelled",
    L.FAULT_BAD_MBARRIER: "bad-mbarrier",
    L.FAULT_BAD_TENSOR_MAP: "bad-tensor-map",
    L.FAULT_EXITED_CTA: "exited-cta",
    L.FAULT_BAD_CLUSTER_BARRIER: "bad-cluster-barrier",
    L.FAULT_ASSERT: "assertion",
    L.FAULT_BAD_COORDINATE: "bad-coordinate",
    L.FAULT_BAD_BARRIER: "bad-barrier",
    L.FAULT_TENSOR_MEMORY: "bad-tensor-memory",
    L.FAULT_TENSOR_OPERATION: "bad-tensor-operation",
}


class Scene:
    """A stopped launch: the context words of the CTA that stopped it, and what the addresses mean."""

    def __init__(
        self,
        words: np.ndarray[Any, np.dtype[np.int64]],
        sites: Sequence[ir.Inst],
        recipe: Recipe,
        allocations: Sequence[Allocation],
        arrays: Sequence[Named],
    ) -> None:
        """`words`: the whole slot as 64-bit words, the context first. `arrays`: (name, array, device address)."""
        self.words, self.sites, self.recipe, self.allocations, self.arrays = words, sites, recipe, allocations, arrays

    def get(self, field: str, offset: int = 0) -> int:
        return int(self.words[CTX[field] + offset])

    @property
    def cta(self) -> tuple[int, int, int]:
        return self.get("CTAID"), self.get("CTAID", 1), self.get("CTAID", 2)

    def thread(self, warp: int, lane: int) -> tuple[int, int, int]:
        """threadIdx of a lane."""
        t, nx, ny = warp * 32 + lane, self.get("NTID"), self.get("NTID", 1)
        return t % nx, t // nx % ny, t // (nx * ny)

    # ---------------------------------------------------------------- faults
    def fault(self) -> Finding:
        """The finding of a recorded fault."""
        code, site = self.get("FAULT"), self.get("FAULT_SITE")
        kind = _KINDS.get(code, "fault")
        inst = self.sites[site]
        evidence: dict[str, Any] = {"instruction": inst.opcode, "ptx_line": inst.loc.ptx_line, "cta": list(self.cta)}
        name: str | None = None
        index: tuple[int, ...] | None = None
        reason = self.get("FAULT_BYTES")
        message = {
            "trap": inst.made or "the kernel executed 'trap'",
            "queue-full": "too many asynchronous operations are outstanding (modelled: "
            f"{L.ASYNC_ENTRIES} cp.async and {L.WGMMA_ENTRIES} wgmma a warp, {L.BULK_ENTRIES} bulk copies a CTA)",
            "unmodelled": f"'{inst.opcode}' uses a form of tensor map or matrix descriptor that is not modelled"
            + (f": {UNMODELLED[reason]}" if reason in UNMODELLED else ""),
            "bad-mbarrier": f"'{inst.opcode}' on what is not an initialised mbarrier, "
            "or with a count that it cannot take",
            "bad-tensor-map": f"'{inst.opcode}' with a tensor map that hardware refuses: {MAP.get(reason, '')}",
            "bad-cluster-barrier": f"a thread executes '{inst.opcode}' again without barrier.cluster.wait between",
            "bad-member-mask": f"a lane executes '{inst.opcode}' whose member mask does not name it",
        }.get(kind, "")
        if kind != "trap":
            warp, lane = self.get("FAULT_WARP"), self.get("FAULT_LANE")
            evidence.update(warp=warp, lane=lane, thread=list(self.thread(warp, lane)))
        if kind in ("bad-tensor-memory", "bad-tensor-operation"):
            reasons = MEMORY if kind == "bad-tensor-memory" else OPERATION
            message = f"'{inst.opcode}': {reasons[reason]}"
        if kind in ("unmodelled", "bad-mbarrier", "bad-tensor-map", "bad-tensor-memory", "bad-tensor-operation"):
            evidence.update(address=hex(self.get("FAULT_ADDRESS")))
        if kind == "bad-coordinate":
            value = self.get("FAULT_ADDRESS")
            evidence.update(coordinate=value)
            message = f"'{inst.opcode}' with coordinate {value}: {COORDINATE[reason]}"
        if kind == "bad-barrier":
            message = f"there is no barrier {self.get('FAULT_ADDRESS')}, only 0 to 15"
        if kind == "assertion":
            said = string_at(self.get("FAULT_ADDRESS"), self.arrays)
            message = f"device assertion failed: {said}"
        if kind in ("out-of-bounds", "misaligned", "read-only", "exited-cta"):
            address, size = self.get("FAULT_ADDRESS"), self.get("FAULT_BYTES")
            evidence.update(address=hex(address), bytes=size)
            name, index, told = tell(
                inst, address, self.arrays, self.get("SHARED_SIZE"), self.get("LOCAL_SIZE"),
                self.get("CLUSTER_CTARANK"), self.get("CLUSTER_NCTARANK"),
            )  # fmt: skip
            message = f"{_verb(inst)} of {size} bytes at {told}"
            if kind == "exited-cta":
                message += ", which has exited"
        return _finding(kind, message, inst, evidence, name, index)

    # ---------------------------------------------------------------- lack of progress
    def deadlock(self, cluster: Sequence[Scene] = ()) -> Finding:
        """Every warp waits: which, where, for what. `cluster`: the scenes of all CTAs of a cluster, by rank."""
        if len(cluster) > 1:
            return self._cluster_deadlock(cluster)
        waits, first = self._waiting()
        text = "; ".join(f"{w}" for w in waits) or "no warp can run"
        stuck_inside = all("other lanes" in w for w in waits)
        polls = any("mbarrier" in w for w in waits)
        kind = "warp-deadlock" if stuck_inside else "mbarrier-deadlock" if polls else "barrier-deadlock"
        evidence = {"cta": list(self.cta), "waiting": waits}
        return _finding(kind, f"no warp of CTA {self.cta} can continue: {text}", first, evidence, None, None)

    def _cluster_deadlock(self, cluster: Sequence[Scene]) -> Finding:
        """Every warp of every CTA of a cluster waits, or has ended."""
        told, texts = [], []
        first: ir.Inst | None = None
        for scene in cluster:
            waits, inst = scene._waiting()
            first = first or inst
            texts += waits
            said = "; ".join(waits) or ("no warp can run" if scene.get("LIVE") else "has exited")
            told.append(f"CTA {scene.cta} (rank {scene.get('CLUSTER_CTARANK')}): {said}")
        number = tuple(self.get("CLUSTERID", axis) for axis in range(3))
        evidence = {"cta": list(self.cta), "cluster": list(number), "waiting": told}
        kind = "mbarrier-deadlock" if any("mbarrier" in t for t in texts) else "barrier-deadlock"
        if texts and all("other lanes" in t for t in texts):
            kind = "warp-deadlock"
        message = f"no warp of cluster {number} can continue: {'; '.join(told)}"
        return _finding(kind, message, first, evidence, None, None)

    def no_progress(self, fuel: int) -> Finding:
        """The launch used up its fuel: so many back edges and no CTA has ended."""
        waits, first = self._waiting()
        running = self._running()
        evidence = {"cta": list(self.cta), "waiting": waits, "running": [r[1] for r in running], "back_edges": fuel}
        inst = running[0][0] if running else first
        states = "; ".join([*(r[1] for r in running), *waits]) or "still running"
        message = f"no end after {fuel} taken back edges (a larger `fuel` waits longer): {states}"
        return _finding("no-progress", message, inst, evidence, None, None)

    def _frames(self) -> int:
        """Index of the first warp frame among the words."""
        return (self.get("WARPS") - int(self.words.__array_interface__["data"][0])) // 8

    def _warps(self) -> list[tuple[int, np.ndarray[Any, np.dtype[np.uint32]]]]:
        base = self._frames()
        stride, regions = self.get("WARP_STRIDE") // 8, self.get("NREGIONS")
        out = []
        for w in range(self.get("NWARPS")):
            frame = self.words[base + w * stride :]
            arrays = frame[WARP_WORDS:].view(np.uint32)[: 3 * regions].reshape(3, regions)
            out.append((int(frame[WARP["STATUS"]]), arrays))
        return out

    def _waiting(self) -> tuple[list[str], ir.Inst | None]:
        texts, first = [], None
        awaited = dict(self.recipe.waits)
        for w, (status, arrays) in enumerate(self._warps()):
            if status == L.STATUS_POLL:
                inst, text = self._polled(w)
                texts.append(text)
                first = first or inst
            if status not in (L.STATUS_BARRIER, L.STATUS_STUCK):
                continue
            for r in np.flatnonzero(arrays[1]):
                lanes, barrier = int(arrays[1, r]), int(arrays[2, r].astype(np.int32))
                inst = self.sites[awaited[int(r)]]
                place = _place(inst)
                what = f"at barrier {barrier}" if barrier >= 0 else "for other lanes of its member mask"
                if barrier == L.CLUSTER_BARRIER:
                    missing = lanes & ~self._arrived(w)
                    what = "at the cluster barrier" + (", where it has not arrived" if missing else "")
                texts.append(f"warp {w} ({lanes.bit_count()} lanes) waits {what}, {place}")
                first = first or inst
        return texts, first

    def _arrived(self, warp: int) -> int:
        """Lanes that have arrived at the cluster barrier."""
        return int(self.words[self._frames() + warp * (self.get("WARP_STRIDE") // 8) + WARP["CLUSTER_ARRIVED"]])

    def _polled(self, warp: int) -> tuple[ir.Inst, str]:
        """What a warp polls in vain, and the state of it."""
        frame = self.words[self._frames() + warp * (self.get("WARP_STRIDE") // 8) :]
        address, parity = int(frame[WARP["WAIT_ADDRESS"]]), int(frame[WARP["WAIT_PARITY"]])
        inst = self.sites[int(frame[WARP["WAIT_SITE"]])]
        offset = (address & (1 << L.RANK_SHIFT) - 1) - L.SHARED_BASE
        shared = (self.get("SHARED") - int(self.words.__array_interface__["data"][0])) // 8
        word = int(self.words[shared + offset // 8]) & (1 << 64) - 1
        pending, expected = word & 0xFFFFF, word >> 20 & 0xFFFFF
        left = (word >> 40 & 0x1FFFFF ^ 0x100000) - 0x100000
        state = f"{expected - pending} of {expected} arrivals, {left} bytes still expected"
        what = f"phase parity {parity} of the mbarrier at byte {offset} of shared memory ({state})"
        return inst, f"warp {warp} waits for {what}, {_place(inst)}"

    def _running(self) -> list[tuple[ir.Inst, str]]:
        out = []
        for w, (status, arrays) in enumerate(self._warps()):
            for r in np.flatnonzero(arrays[0]):
                if status == L.STATUS_DONE or not self.recipe.regions[r]:
                    continue
                inst = self.sites[self.recipe.regions[r][0]]
                out.append((inst, f"warp {w} runs at {_place(inst)}"))
        return out


def _finding(
    kind: str,
    message: str,
    inst: ir.Inst | None,
    evidence: dict[str, Any],
    array: str | None,
    index: tuple[int, ...] | None,
) -> Finding:
    user = inst.loc.user if inst is not None else None
    return Finding(kind, message, user.file if user else None, user.line if user else None, array, index, evidence)


def _place(inst: ir.Inst) -> str:
    user = inst.loc.user
    at = f"{user.file}:{user.line}" if user else f"PTX line {inst.loc.ptx_line}"
    return f"'{inst.opcode}' at {at}"


def _verb(inst: ir.Inst) -> str:
    return {"st": "write", "red": "update", "atom": "update", "stmatrix": "write"}.get(inst.op, "read")
