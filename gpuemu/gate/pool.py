"""Worker processes for a sweep: each runs one case at a time, and none can harm another.

Started by spawn, never fork (numba and LLVM hold locks and threads). The parent gives each worker one case and waits;
a case that exceeds the time limit is killed with its worker, a worker that dies takes only its case with it, and both
become 'unchecked' results; a fresh worker replaces it. Cases that share a compiled kernel (same op, sizes, dtype,
target, option) go to the same worker one after the other, so each kernel is compiled once.

The first case runs alone: it compiles the engine's runtime into the disk cache where that is empty, once and not once
a worker. Ctrl-C reaches the parent only: a worker finishes its case, whose replay is then whole, and is ended where
that takes long.

Results arrive in completion order; the caller sorts by index. Nothing in a case depends on which worker ran it. Time
starts to count for a case when its worker is ready, so a slow start is not a slow case.

A worker's standard output is joined to standard error, so that a print in a user's launcher cannot break a report. The
numerical libraries of a worker get one thread each: parallelism is by case.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from gpuemu.gate.cases import Case
from gpuemu.gate.results import CaseResult

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

START_SECONDS = 300.0
"""How long a worker may take to start, on a busy machine, before its first case counts as timed out."""
LEAVE_SECONDS = 3.0
"""How long workers may take to finish the case in hand when the sweep ends early."""
_READY = "ready"

Work = Callable[[Case], CaseResult]


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    case: Case | None = None
    started: float = 0.0
    ready: bool = False
    group: deque[Case] | None = None

    def limit(self, timeout: float) -> float:
        """Seconds from `started` after which the worker is ended."""
        return timeout if self.ready else timeout + START_SECONDS


def run_cases(
    cases: Sequence[Case], *, make_work: Callable[..., Work], arguments: tuple[Any, ...], parallel: int, timeout: float
) -> Iterator[CaseResult]:
    """Run the cases on `parallel` worker processes (0 = in this process, without isolation or time limit).

    `make_work(*arguments)` is called once in each worker (both must pickle) and returns the function that runs a case.
    `timeout`: seconds for one case.
    """
    if parallel == 0:
        work = make_work(*arguments)
        yield from map(work, cases)
        return
    waiting = deque(_grouped(cases))
    workers: list[_Worker] = []
    try:
        for _ in range(min(parallel, len(waiting))):
            workers.append(_start(make_work, arguments))
        if workers:
            _feed(workers[0], waiting)
        while busy := [w for w in workers if w.case is not None]:
            soonest = min(w.started + w.limit(timeout) for w in busy) - time.monotonic()
            ready = set(wait([w.pipe for w in busy], timeout=max(soonest, 0.01)))
            for worker in busy:
                result = _collect(worker, worker.pipe in ready, timeout)
                if result is None:
                    continue
                worker.case = None
                yield result
                for idle in workers:
                    if idle.case is None and idle is not worker:
                        _feed(idle, waiting)
                if not worker.process.is_alive() and (worker.group or waiting):
                    group = worker.group
                    worker.pipe.close()
                    fresh = _start(make_work, arguments)
                    worker.process, worker.pipe, worker.ready, worker.group = fresh.process, fresh.pipe, False, group
                _feed(worker, waiting)
    finally:
        for worker in workers:
            worker.pipe.close()
        last = time.monotonic() + LEAVE_SECONDS
        for worker in workers:
            worker.process.join(timeout=max(last - time.monotonic(), 0.0))
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()


def _grouped(cases: Sequence[Case]) -> list[deque[Case]]:
    groups: dict[str, deque[Case]] = {}
    for case in cases:
        key = f"{case.file}|{case.op}|{case.dims}|{case.dtype}|{case.target}|{case.option}"
        groups.setdefault(key, deque()).append(case)
    return list(groups.values())


def _feed(worker: _Worker, waiting: deque[deque[Case]]) -> None:
    if not worker.group:
        worker.group = waiting.popleft() if waiting else None
    if worker.group:
        worker.case = worker.group.popleft()
        worker.started = time.monotonic()
        # A worker that has died just now is seen by _collect.
        try:
            worker.pipe.send(worker.case)
        except (BrokenPipeError, OSError):
            return


def _collect(worker: _Worker, ready: bool, timeout: float) -> CaseResult | None:
    """The result of the worker's case if there is one by now, also when it died or ran out of time."""
    assert worker.case is not None
    seconds = time.monotonic() - worker.started
    if ready:
        try:
            result = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(timeout=5)
            code = worker.process.exitcode
            how = signal.Signals(-code).name if code is not None and code < 0 else f"exit status {code}"
            return CaseResult(
                case=worker.case, verdict="unchecked", reason=f"crash: the worker process died ({how})", seconds=seconds
            )
        if result == _READY:
            worker.ready, worker.started = True, time.monotonic()
            return None
        assert isinstance(result, CaseResult)
        return result
    if seconds < worker.limit(timeout):
        return None
    worker.process.kill()
    worker.process.join()
    return CaseResult(
        case=worker.case, verdict="unchecked", reason=f"timeout: not finished after {timeout:g} s", seconds=seconds
    )


def _start(make_work: Callable[..., Work], arguments: tuple[Any, ...]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    saved = {k: os.environ.get(k) for k in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    # Ctrl-C is the parent's business, from the first instruction of a child on: it inherits this.
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        process = context.Process(target=_worker_main, args=(theirs, make_work, arguments), daemon=True)
        process.start()
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        for key, value in saved.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
    theirs.close()
    return _Worker(process, ours)


def _worker_main(pipe: Connection, make_work: Callable[..., Work], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the parent's handler is not inherited; a host's may be
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        work = make_work(*arguments)
    except Exception as error:
        reason = f"crash: a worker could not start: {type(error).__name__}: {error}"

        def work(case: Case) -> CaseResult:
            return CaseResult(case=case, verdict="unchecked", reason=reason)

    pipe.send(_READY)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(work(case))
        except OSError:  # the parent has gone, or wants no more
            return
