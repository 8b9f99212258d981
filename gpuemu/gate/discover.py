"""Finds ops: files under the given paths that use an `op` decorator are imported and their declarations collected.

Which files declare ops is read from their syntax tree, so that nothing else in a repository is executed. Each file is
imported under a module name made from its path (two files of the same name do not meet), from its real path, because
Triton reads a kernel's source from its file. Names of files and ops mean nothing to the tool.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from gpuemu.gate.declare import Op, collecting
from gpuemu.gate.placeholder import Unfilled, refuse_unfilled
from gpuemu.gate.results import BrokenFile
from ptx.errors import GpuemuError, InvalidInput

_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The Python files under `paths` that decorate a function with `op(...)`, sorted, absolute.

    A file given by name is always taken. Raises InvalidInput for a path that does not exist or is no UTF-8.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_file():
            if path.suffix != ".py":
                raise InvalidInput(f"{path} is not a Python file", help="ops are in .py files; gpuemu run takes PTX")
            found[path.resolve()] = None
        elif path.is_dir():
            for file in sorted(path.rglob("*.py")):
                inner = file.relative_to(path).parts
                if not any(p in _SKIPPED or p.startswith(".") for p in inner) and _declares_op(file):
                    found[file.resolve()] = None
        else:
            what = "neither a file nor a folder" if path.exists() else "no such file or folder"
            raise InvalidInput(f"{what}: {path}")
    for file in found:
        try:
            str(file).encode()
        except UnicodeEncodeError:
            name = str(file).encode("utf-8", "backslashreplace").decode()
            raise InvalidInput(f"the name of {name} is not UTF-8", help="reports and replays are: rename it") from None
    return list(found)


def _declares_op(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
        if "op(" not in text or "gpuemu" not in text:
            return False
        tree = ast.parse(text)
    except (OSError, UnicodeDecodeError):
        return False
    except SyntaxError:
        return True  # reported as a broken file when it is loaded
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
                if name == "op":
                    return True
    return False


def load_file(file: Path) -> list[Op]:
    """Import one file and return the ops that it declares. Whatever the import raises, this raises.

    Unfilled for a file with places still to be filled in.
    """
    refuse_unfilled(file)
    with collecting() as ops:
        load_module(file)
    return [op for op in ops if Path(op.file).resolve() == file.resolve()]


def load_module(file: Path) -> ModuleType:
    """Import a file under a module name of its own. Whatever the import raises, this raises."""
    name = f"gpuemu_ops_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))  # a file may import its neighbours
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_ops(files: Sequence[Path], only: Sequence[str] = ()) -> tuple[list[Op], list[BrokenFile]]:
    """All ops of the files, and the files that could not be loaded.

    `only`: names to keep. Raises InvalidInput for a wrong declaration, two ops of one name, or a name in `only` that no
    file declares.
    """
    ops: dict[str, Op] = {}
    broken: list[BrokenFile] = []
    for file in files:
        try:
            loaded = load_file(file)
        except Unfilled as error:
            where = "; ".join(error.diagnostic.notes)
            broken.append(BrokenFile(file=str(file), reason=f"{error.diagnostic.what} ({where})"))
            continue
        except GpuemuError:
            raise
        except Exception as error:
            frames = [] if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)
            own = [f for f in frames if not f.filename.startswith("<frozen")]
            place = f" ({portable(own[-1].filename, file)}:{own[-1].lineno})" if own else ""
            broken.append(BrokenFile(file=str(file), reason=f"{type(error).__name__}: {error}{place}"))
            continue
        for op in loaded:
            if (other := ops.get(op.name)) is not None:
                raise InvalidInput(
                    f"two ops are named '{op.name}'",
                    notes=(f"{other.file}:{other.line}", f"{op.file}:{op.line}"),
                    help="give one of them name=...: the name is part of each case's seed",
                )
            ops[op.name] = op
    if missing := [n for n in only if n not in ops]:
        known = ", ".join(ops) or "none"
        unread = tuple(f"not loaded: {b.file}: {b.reason}" for b in broken)
        raise InvalidInput(f"unknown op '{missing[0]}'", notes=unread, help=f"ops found: {known}")
    return [op for op in ops.values() if not only or op.name in only], broken


def portable(place: str, file: Path) -> str:
    """The file of a traceback as it is shown: its name alone where it is the op file itself."""
    return file.name if Path(place) == file else place
