"""Handlers: one native function a form, written by `interp.kits.python`, compiled by numba when a kernel first needs
it.

    void handler(ctx, warp, site, mask, ops)          all int64; ops: address of the instruction's operand table

A handler depends on the form and on the kinds of its operands (`Shape`), not on the registers, so kernels share it.
Its source is a real file in the cache directory, because numba's disk cache wants one; the file's name is the digest
of its text, and it is written once and never changed. What runs is the text made here, never what the file says.

The directory is named by a digest of what a handler can call (`interp.kits.words`, the raw accesses, numba and LLVM):
all else that it depends on is in its text, so handlers survive changes elsewhere in the engine.

Operands are adapted as in the compiled engine (PTX 'Operand Size Exceeding Instruction-Type Size'): a source wider
than the type is cut; a result narrower than its register is extended by sign for signed types, else by zeros.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import llvmlite
import numba

from interp.kit import Kit
from interp.kits import words as word_module
from interp.kits.python import PythonKit, Word
from interp.kits.words import WORDS
from interp.measure import measure
from interp.runtime import raw as raw_module
from interp.runtime.layout import RANK_SHIFT
from interp.runtime.native import numba_settings
from ptx.cache import directory
from ptx.record import Form
from ptx.types import is_signed

SIGNATURE = "void(int64, int64, int64, int64, int64)"
_HEADER = "# Written by interp.kits.python; the names are those of interp.kits.words.\n"


@dataclass(frozen=True, slots=True)
class Source:
    """A source operand as a handler sees it. `kind`: "row" (a register or constant of `have` bits, `want` are read),
    "not" (a negated predicate), "special" (`name`), "address" (a base row and an offset row of `have` bits). `ranked`:
    the rank of the CTA in its cluster belongs into it (the address of a shared variable)."""

    kind: str
    have: int = 0
    want: int = 0
    name: str = ""
    ranked: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A destination register of `have` bits that gets a word of the PTX type `type`; `have` 0: the word is dropped."""

    have: int
    type: str


Nested = Source | tuple["Nested", ...]
"""Sources as the meaning takes them: vectors and tensor addresses are tuples."""


@dataclass(frozen=True, eq=False)
class Handler:
    """A compiled handler: its address, and the runtime functions whose addresses follow the rows in an operand
    table."""

    address: int
    symbols: tuple[str, ...]
    owner: Any


_BY_SHAPE: dict[Any, Handler] = {}
_BY_TEXT: dict[str, Any] = {}


def handler(
    form: Form,
    sources: tuple[Nested, ...],
    targets: tuple[Target, ...],
    device: int,
    measured: tuple[str, ...] = (),
) -> Handler:
    """The handler of a form for operands of these kinds; `device`: whose arithmetic is meant. `measured`: names of the
    sources, for a program whose accesses are measured."""
    key = (form.op, tuple(sorted(form.mods.items(), key=lambda m: m[0])), sources, targets, device, measured)
    found = _BY_SHAPE.get(key)
    if found is None:
        text, kit = write(form, sources, targets, device, measured)
        compiled = _BY_TEXT.get(text)
        if compiled is None:
            compiled = _BY_TEXT[text] = _compile(text, kit.constants)
        found = _BY_SHAPE[key] = Handler(int(compiled.address), tuple(kit.symbols), compiled)
    return found


def write(
    form: Form,
    sources: tuple[Nested, ...],
    targets: tuple[Target, ...],
    device: int,
    measured: tuple[str, ...] = (),
) -> tuple[str, PythonKit]:
    """The source of a handler, and the kit with the constants and runtime functions that it names."""
    kit = PythonKit(device)
    meaning = form.op.meaning(kit, **form.mods)
    words = [_source(kit, source) for source in sources]
    if measured:
        measure(cast(Kit, kit), form, dict(zip(measured, words, strict=True)))
    outcome = meaning(*words)
    results = outcome if isinstance(outcome, tuple) else (outcome,)
    kept = [_fit(kit, word, target) for word, target in zip(results, targets, strict=False) if target.have]
    kit.results(kept)
    return kit.text(), kit


def _source(kit: PythonKit, source: Nested) -> Any:
    if isinstance(source, tuple):
        return tuple(_source(kit, s) for s in source)
    if source.kind == "special":
        word = kit.special(source.name)
        return (kit.trunc if word.n >= source.want else kit.zext)(word.n, source.want)(word)
    word = kit.source(source.have)
    if source.kind == "not":
        return kit.emit(1, "not_1", word)
    if source.kind == "address":
        address = kit.emit(source.have, f"add{source.have}", word, kit.source(source.have))
        return _ranked(kit, kit.zext(source.have, 64)(address), source.ranked)
    return _ranked(kit, kit.trunc(source.have, source.want)(word), source.ranked)


def _ranked(kit: PythonKit, word: Word, ranked: bool) -> Word:
    if not ranked or word.n < 32:
        return word
    rank = kit.emit(32, "shl32", kit.special("%cluster_ctarank"), kit.const(32, RANK_SHIFT))
    return kit.emit(word.n, f"add{word.n}", word, kit.zext(32, word.n)(rank))


def _fit(kit: PythonKit, word: Word, target: Target) -> Word:
    return (
        (kit.sext if is_signed(target.type) else kit.zext)(word.n, target.have)(word) if word.n < target.have else word
    )


# ------------------------------------------------------------------------------------------------ compilation
@lru_cache(maxsize=1)
def _digest() -> str:
    h = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for module in (word_module, raw_module):
        h.update(Path(str(module.__file__)).read_bytes())
    return h.hexdigest()[:24]


@lru_cache(maxsize=4)
def _home(root: Path | None) -> tuple[Path, str | None]:
    """Where sources go, and numba's cache directory (None: handlers are not kept)."""
    if root is not None:
        home = root / "handlers" / _digest()
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            return home, str(home / "native")
        except OSError:
            pass
    return Path(tempfile.mkdtemp(prefix="gpuemu-handlers-")), None


def _compile(text: str, constants: dict[str, Any]) -> Any:
    home, native = _home(directory())
    name = "h" + hashlib.sha256(text.encode()).hexdigest()[:32]
    path = home / f"{name}.py"
    _write_once(path, _HEADER + text)
    module = ModuleType(f"gpuemu_handlers.{name}")
    module.__file__ = str(path)
    module.__dict__.update(WORDS)
    module.__dict__.update(constants)
    sys.modules[module.__name__] = module  # numba's disk cache looks the module up by name
    exec(compile(_HEADER + text, str(path), "exec"), module.__dict__)
    with numba_settings(native):
        return numba.cfunc(SIGNATURE, cache=native is not None)(module.__dict__["handler"])


def _write_once(path: Path, text: str) -> None:
    """numba dates its cache entries by the file's time, so an existing file stays as it is."""
    if path.exists():
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    with open(handle, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(temporary, path)


def compiled_count() -> int:
    """Handlers compiled or loaded by this process."""
    return len(_BY_TEXT)
