"""The shape of the source tree: imports go one way, packages depend on what they may, files say what they are.

    gpuemu -> interp -> ptx

Read with `ast`, so lazy imports inside functions and relative ones count, too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {"ptx": {"ptx"}, "interp": {"interp", "ptx"}, "gpuemu": {"gpuemu", "interp", "ptx"}}
THIRD_PARTY = {
    "ptx": {"lark", "msgspec"},
    "interp": {"llvmlite", "msgspec", "numba", "numpy"},
    "gpuemu": {"attr", "click", "jinja2", "markupsafe", "ml_dtypes", "msgspec", "numpy", "rich", "sarif_om"},
}
# attr: the classes of sarif_om are made with it.
LAZILY = {"ptx": {"triton"}, "interp": {"pandas"}, "gpuemu": {"torch", "triton"}}
"""What a module may import inside functions only: it is large, or absent on some platforms."""
MOST_LINES = 450
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}


@dataclass(frozen=True)
class Import:
    """One import: the top package, whether it runs when the module is imported, and where it stands."""

    package: str
    at_top: bool
    line: int


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path, tree: ast.Module) -> Iterator[Import]:
    """Imports of a file, relative ones resolved. Those under `if TYPE_CHECKING:` do not run, but count for layers."""
    parents = path.relative_to(ROOT).parent.parts

    def walk(node: ast.AST, at_top: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            checking = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            now = at_top and not inside and not checking
            if isinstance(child, ast.Import):
                for name in child.names:
                    yield Import(name.name.partition(".")[0], now, child.lineno)
            elif isinstance(child, ast.ImportFrom):
                base = parents[: len(parents) - child.level + 1] if child.level else ()
                assert not child.level or base, f"{path}: a relative import leaves the tree"
                yield Import(base[0] if child.level else str(child.module).partition(".")[0], now, child.lineno)
            else:
                yield from walk(child, now)

    return walk(tree, True)


def parsed(package: str) -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in modules(package)]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{i.line} imports {i.package}"
        for path, tree in parsed(package)
        for i in imports(path, tree)
        if i.package in {*MAY_IMPORT, "tests", "benchmarks", "examples"} - MAY_IMPORT[package]
    ]
    assert wrong == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_third_party_packages(package: str) -> None:
    known = {*sys.stdlib_module_names, *MAY_IMPORT, *THIRD_PARTY[package]}
    wrong = [
        f"{path.relative_to(ROOT)}:{i.line} imports {i.package}{' at the top' if i.package in LAZILY[package] else ''}"
        for path, tree in parsed(package)
        for i in imports(path, tree)
        if i.package not in known and (i.at_top or i.package not in LAZILY[package])
    ]
    assert wrong == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_files(package: str) -> None:
    wrong = []
    for path, tree in parsed(package):
        name, lines = path.relative_to(ROOT), len(path.read_text().splitlines())
        if lines > MOST_LINES:
            wrong.append(f"{name} has {lines} lines, more than {MOST_LINES}")
        if not ast.get_docstring(tree):
            wrong.append(f"{name} has no docstring")
        if not (path.parent / "__init__.py").exists():
            wrong.append(f"{name} lies in a folder without __init__.py, which is not packaged")
        if {path.stem, *path.relative_to(ROOT).parent.parts} & VAGUE:
            wrong.append(f"{name} has a name that says nothing")
    assert wrong == []


def test_the_reader_of_imports_sees_every_kind(tmp_path: Path) -> None:
    text = "import a.b\nfrom ..interp import c\nif TYPE_CHECKING:\n    import d\ndef f():\n    from e.x import y\n"
    found = list(imports(ROOT / "gpuemu" / "gate" / "file.py", ast.parse(text)))
    assert [(i.package, i.at_top) for i in found] == [("a", True), ("gpuemu", True), ("d", False), ("e", False)]
