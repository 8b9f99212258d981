"""A Triton kernel of a file to PTX for several targets, in a process of its own.

Two sides of a comparison may import neighbours of the same name (the file of a revision and the file as it is), and a
process imports a module name once: the second side would silently get the first side's neighbour. So each side is
lowered in a fresh process. It gets a `Request` as JSON on standard input and answers with a `Reply` on standard output.
It finds this package where this process found it, then the side's own root, and never looks into the current folder,
where the neighbours of the other side may lie.

Without a grid only lowering happens: arguments give shapes, types and alignment, nothing is executed. With one
(`gpuemu diff --dynamic`) the kernel is launched and measured, too.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ptx.errors import Diagnostic, GpuemuError, InternalError, InvalidInput, LaunchFailure, Unsupported, Where

if TYPE_CHECKING:
    from gpuemu.commands.run import Launch

_SECONDS = 900


class Request(msgspec.Struct, frozen=True):
    """`file`, `kernel`, a call's words as `gpuemu run` takes them. `root`: what paths in the PTX are relative to.
    `grid`: as `gpuemu run` takes it, to measure a launch."""

    file: str
    kernel: str
    words: tuple[str, ...]
    targets: tuple[str, ...]
    root: str
    seed: int = 0
    num_warps: int = 4
    num_stages: int = 3
    grid: str | None = None


class Lowering(msgspec.Struct, frozen=True):
    """A kernel's PTX for a target; `reason` says why there is none. `shared`: dynamic shared memory in bytes.
    `dynamic`: metrics of the launch; `not_run` says why there are none."""

    ptx: str = ""
    entry: str = ""
    threads: int = 0
    shared: int = 0
    fmad: bool = True
    reason: str | None = None
    dynamic: dict[str, int | float] = {}
    not_run: str | None = None


class Reply(msgspec.Struct, frozen=True):
    """What became of a request, target by target; `error` where nothing could be tried. `line`: of the `def`."""

    lowerings: dict[str, Lowering]
    line: int | None = None
    notes: tuple[str, ...] = ()
    error: tuple[str, tuple[Diagnostic, ...]] | None = None


def lower_elsewhere(request: Request) -> Reply:
    """Answer a request in a new process. Raises the error that stood in the way of all targets."""
    home = str(Path(__file__).resolve().parents[2])
    search = [home, request.root, *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gpuemu.accounting.lowering"], input=msgspec.json.encode(request),
            capture_output=True, timeout=_SECONDS, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Unsupported(f"lowering {request.kernel} took more than {_SECONDS} s") from None
    try:
        reply = msgspec.json.decode(done.stdout, type=Reply)
    except msgspec.DecodeError:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-8:]
        raise Unsupported(
            f"the process that lowers {request.kernel} ended with code {done.returncode} and no answer",
            where=Where(file=request.file), notes=tuple(said), help="does importing the file end the process?",
        ) from None  # fmt: skip
    if reply.error is not None:
        kind, diagnostics = reply.error
        kinds: dict[str, type[GpuemuError]] = {e.kind: e for e in (InvalidInput, Unsupported, InternalError)}
        raise kinds.get(kind, InvalidInput)(diagnostics)
    return reply


def answer(request: Request) -> Reply:
    """Lower for each target; what fails for one target is that target's reason."""
    from gpuemu.argspec import parse_words
    from gpuemu.commands.run import load_kernel
    from gpuemu.replay.portable import portable_path, portable_ptx
    from gpuemu.triton_run import bind_call
    from ptx.lower.triton import lower_call

    root = Path(request.root)
    try:
        kernel = load_kernel(f"{request.file}::{request.kernel}")
        arguments = {w.name: w.value for w in parse_words(list(request.words), request.seed)}
    except GpuemuError as error:
        return Reply({}, error=(error.kind, error.diagnostics))
    options = {"num_warps": request.num_warps, "num_stages": request.num_stages, "num_ctas": 1}
    out: dict[str, Lowering] = {}
    notes: tuple[str, ...] = ()
    line = None
    for target in request.targets:
        try:
            fusion = arguments.get("enable_fp_fusion")
            keywords = {n: v for n, v in arguments.items() if n != "enable_fp_fusion"}
            bound, notes = bind_call(kernel, (), keywords, options, fusion, target)
            line = bound.kernel.def_file_line_number
            lowered = lower_call(bound)
        except GpuemuError as error:
            first = error.diagnostic
            place = first.where
            where = f" ({portable_path(place.file, root)}:{place.line})" if place and place.file else ""
            # The innermost cause says most; what the compiler was doing is in front of it.
            cause = f": {first.notes[-1].splitlines()[0]}" if first.notes and first.notes[-1] else ""
            out[target] = Lowering(reason=f"{first.what}{where}{cause}")
            continue
        out[target] = Lowering(
            ptx=portable_ptx(lowered.ptx, root),
            entry=lowered.entry,
            threads=lowered.threads,
            shared=int(lowered.metadata["shared"]),
            fmad=bool(lowered.metadata["enable_fp_fusion"]),
        )
        if request.grid is not None:
            out[target] = msgspec.structs.replace(out[target], **_measured(request, target))
    return Reply(out, line, notes)


def _measured(request: Request, target: str) -> dict[str, Any]:
    """`dynamic` or `not_run` of a launch."""
    from gpuemu.commands.run import Launch

    launch = Launch(
        f"{request.file}::{request.kernel}", request.words, str(request.grid), num_warps=request.num_warps,
        num_stages=request.num_stages, seed=request.seed,
    )  # fmt: skip
    return measure_launch(launch, target)


def measure_launch(launch: Launch, target: str | None) -> dict[str, Any]:
    """`{"dynamic": metrics}` of a launch, or `{"not_run": why}`; a launch with a finding counts as not run."""
    try:
        result, _ = launch.execute(target, metrics=True)
    except (LaunchFailure, Unsupported) as error:
        return {"not_run": f"not executed: {error.diagnostic.what}"}
    if result.findings:
        return {"not_run": f"the launch has a finding: {result.findings[0].kind}: {result.findings[0].message}"}
    return {"dynamic": result.metrics.totals} if result.metrics is not None else {"not_run": "the grid is empty"}


def main() -> None:
    """Read a request, write the reply; whatever the kernel's file prints goes to standard error."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    with contextlib.redirect_stdout(sys.stderr):
        reply = answer(request)
    sys.stdout.buffer.write(msgspec.json.encode(reply))


if __name__ == "__main__":
    main()
