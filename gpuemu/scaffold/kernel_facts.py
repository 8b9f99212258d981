"""What a Triton kernel's source says about its arguments: read from the syntax tree, nothing is imported or run.

    pointers    parameters that reach the address of a load, store or atomic, through additions and assignments
    sizes       parameters that something is compared with (`offset < n`)
    strides     parameters named so
    constants   parameters annotated `tl.constexpr`
    scalars     all others

Facts, not guesses: what follows from them for shapes and grids is `op_file`'s business.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from gpuemu.files import unreadable
from ptx.errors import InvalidInput

_LOADS = {"load"}
_STORES = {"store"}
_BOTH = {f"atomic_{op}" for op in ("add", "max", "min", "and", "or", "xor", "xchg", "cas")}
_MAKES = {"make_block_ptr", "make_tensor_descriptor", "advance"}


@dataclass(slots=True)
class KernelFacts:
    """A kernel: its parameters in order, and which of them are what. `defaults`: parameters with a default value.

    `axes`: how many program axes it uses. `loops`: whether it has a loop. `tiled`: constants by which an axis' program
    number is multiplied ({axis: constant}). `spans`: constants that are the length of a `tl.arange`.
    """

    name: str
    parameters: tuple[str, ...]
    constants: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    loaded: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    sizes: list[str] = field(default_factory=list)
    strides: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    axes: int = 0
    loops: bool = False
    tiled: dict[int, str] = field(default_factory=dict)
    spans: set[str] = field(default_factory=set)

    @property
    def pointers(self) -> list[str]:
        """Pointer parameters, in order."""
        return [p for p in self.parameters if p in self.loaded | self.stored]


def read_kernel(file: Path, name: str) -> KernelFacts:
    """The facts of the kernel `name` of `file`. Raises InvalidInput when there is none, or no such file."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), file.name)
    except OSError as error:
        raise unreadable(file, error) from None
    except (UnicodeDecodeError, SyntaxError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read as Python: {error}") from error
    kernels = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _is_kernel(n)}
    if name not in kernels:
        known = ", ".join(kernels) or "none"
        raise InvalidInput(f"{file} has no @triton.jit function '{name}'", help=f"kernels in it: {known}")
    return facts_of(kernels[name])


def _is_kernel(node: ast.FunctionDef) -> bool:
    names = [_last_name(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
    return "jit" in names


def _last_name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def facts_of(kernel: ast.FunctionDef) -> KernelFacts:
    """The facts of a kernel's definition."""
    arguments = [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]
    names = tuple(a.arg for a in arguments)
    constants = tuple(a.arg for a in arguments if a.annotation is not None and _last_name(a.annotation) == "constexpr")
    with_default = {a.arg for a in arguments[len(arguments) - len(kernel.args.defaults) :]}
    with_default |= {
        a.arg for a, d in zip(kernel.args.kwonlyargs, kernel.args.kw_defaults, strict=True) if d is not None
    }
    found = KernelFacts(kernel.name, names, constants, tuple(n for n in names if n in with_default))
    bases = _bases(kernel, {n for n in names if n not in constants})
    programs = _programs(kernel)
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call):
            _note_call(node, found, bases)
        elif isinstance(node, ast.Compare):
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and part.id in names and part.id not in (*constants, *found.sizes):
                    found.sizes.append(part.id)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            axis = next((programs[n] for side in (node.left, node.right) if (n := ast.dump(side)) in programs), None)
            constant = next((_last_name(s) for s in (node.left, node.right) if _last_name(s) in constants), None)
            if axis is not None and constant is not None:
                found.tiled.setdefault(axis, constant)
        found.loops |= isinstance(node, ast.For | ast.While)
    pointers = set(found.pointers)
    found.strides = [n for n in names if "stride" in n.lower() and n not in pointers and n not in constants]
    found.sizes = [n for n in names if n in found.sizes and n not in pointers and n not in found.strides]
    known = pointers | set(found.strides) | set(found.sizes) | set(constants)
    found.scalars = [n for n in names if n not in known]
    return found


def _bases(kernel: ast.FunctionDef, parameters: set[str]) -> dict[str, str]:
    """For each local name that is an address: the parameter that it starts from."""
    bases = {p: p for p in parameters}
    for _ in range(3):  # chains of assignments, also around loops
        for node in ast.walk(kernel):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                target, value = node.targets[0].id, node.value
            else:
                continue
            base = _base_of(value, bases)
            if base is not None and target not in parameters:
                bases.setdefault(target, base)
    return bases


def _base_of(node: ast.expr, bases: dict[str, str]) -> str | None:
    """The parameter that an address starts from: the leftmost name of a sum, or of what makes a block pointer."""
    if isinstance(node, ast.Name):
        return bases.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return _base_of(node.left, bases) or _base_of(node.right, bases)
    if isinstance(node, ast.Call) and _last_name(node.func) in _MAKES:
        first = [k.value for k in node.keywords if k.arg == "base"] or node.args[:1]
        return _base_of(first[0], bases) if first else None
    if isinstance(node, ast.Call) and _last_name(node.func) in ("to", "cast", "multiple_of", "max_contiguous"):
        inner = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
        return _base_of(inner if inner is not None else node.args[0], bases) if inner or node.args else None
    return None


def _programs(kernel: ast.FunctionDef) -> dict[str, int]:
    """Expressions that are a program number (as dumped trees) -> axis."""
    found = {}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and _last_name(node.func) == "program_id":
            found[ast.dump(node)] = _axis(node)
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to":
                value = value.func.value
            if ast.dump(value) in found:
                found[ast.dump(ast.Name(node.targets[0].id, ast.Load()))] = found[ast.dump(value)]
    return found


def _axis(node: ast.Call) -> int:
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "axis")]
    value = given[0].value if given and isinstance(given[0], ast.Constant) else 0
    return value if isinstance(value, int) else 0


def _note_call(node: ast.Call, found: KernelFacts, bases: dict[str, str]) -> None:
    name = _last_name(node.func)
    if name == "program_id":
        found.axes = max(found.axes, _axis(node) + 1)
    if name == "arange":
        found.spans |= {n for a in node.args if (n := _last_name(a)) in found.constants and n is not None}
    if name not in _LOADS | _STORES | _BOTH:
        return
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    # tl.load(address) and tl.store(address, ...), or a descriptor's own method: d.load([...])
    method = owner is not None and isinstance(owner, ast.Name) and owner.id in bases
    address = owner if method else node.args[0] if node.args else None
    base = _base_of(address, bases) if address is not None else None
    if base is None:
        return
    if name in _LOADS | _BOTH:
        found.loaded.add(base)
    if name in _STORES | _BOTH:
        found.stored.add(base)
