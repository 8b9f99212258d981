"""A second process that compiles runtime functions into the cache on disk, for the first minute with an empty cache.

numba compiles two to four functions a second and holds the GIL; with an empty cache that is most of the time to a first
result. Work is shared through a pipe of fixed-size records from which *both* processes take: the helper whenever it is
free, this process when it needs a function and finds others still waiting. So neither idles while the other has a
queue, whichever is slower. The helper names each function that it has finished on its standard output.

Nothing here is needed for a right result: without a second core, on a system without such pipes, in a worker process
(the other cores have workers of their own), or when the helper dies, functions are compiled where they are needed.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_RECORD = 128
_WORKER = f"""
import importlib, os, select
from interp.runtime.native import address
while True:
    select.select([0], [], [])
    try:
        record = os.read(0, {_RECORD})
    except BlockingIOError:
        continue
    if not record:
        break
    module, name = record.decode().split()
    importlib.import_module(module)
    address(name)
    print(name, flush=True)
"""


class _Helper:
    """The other process and the queue. Raises OSError when it cannot be started."""

    def __init__(self) -> None:
        self.queue, self._feed = os.pipe()
        os.set_blocking(self.queue, False)  # for both processes: it belongs to the pipe's end, which they share
        self.offered: set[str] = set()
        self._settled: set[str] = set()
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER], env={**os.environ, "PYTHONPATH": path}, stdin=self.queue,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        atexit.register(self.stop)

    def offer(self, name: str, module: str) -> None:
        """Queue one function."""
        self.offered.add(name)
        os.write(self._feed, f"{module} {name}".ljust(_RECORD).encode())

    def take(self) -> str | None:
        """The next function that nobody has begun; it is this process's business from here on."""
        try:
            record = os.read(self.queue, _RECORD)
        except BlockingIOError:
            return None
        name = record.decode().split()[1]
        self._settled.add(name)
        return name

    def wait_for(self, name: str) -> None:
        """Return when the helper has finished a function, or has ended."""
        assert self._process.stdout is not None
        while name not in self._settled:
            line = self._process.stdout.readline()
            if not line:
                return
            self._settled.add(line.strip())

    def stop(self) -> None:
        """Leave the helper nothing to do: it ends after the function that it is compiling."""
        while self.take() is not None:
            pass
        os.close(self._feed)


_helper: _Helper | None = None


def offer(modules: Mapping[str, str]) -> None:
    """Queue functions (name → the module that declares it) for whichever process gets to them first."""
    global _helper
    if os.name != "posix" or multiprocessing.parent_process() is not None or _cores() < 2:
        return
    try:
        _helper = _helper or _Helper()
    except OSError:
        return
    for name, module in modules.items():
        if name not in _helper.offered:
            _helper.offer(name, module)


def take_until(name: str) -> Iterator[str]:
    """Functions to compile here, before `name` is needed here: nothing, unless it was offered. Ends when nothing is
    queued and the helper is not busy with `name`."""
    if _helper is None or name not in _helper.offered:
        return
    while (other := _helper.take()) is not None:
        yield other
        if other == name:
            return
    _helper.wait_for(name)


def _cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
