"""Changes of one place in the source of a Triton kernel, each a mistake that people make.

    comparison    < and <=, > and >=, == and !=           operator      + and -, * to +, / to *
    accumulation  += to =, a dot without its accumulator  factor        a * b to a: a scale, a stride, a rescaling
    mask          taken away, with its `other`            other         0 to 1, anything else to 0
    constant      off by 1 % or by 1                      bound         one less to go through in a `range`
    dtype         tl.float32 to tl.float16                width         .to(tl.int64) taken away
    call          max to min, sum to max, exp to exp2 ... guard         tl.where(c, a, b) to a
    condition     an `if` turned round                    barrier       tl.debug_barrier() taken away
    strides       one size or stride in place of the next

Only functions decorated with `jit` are touched. A change replaces the text of one node and nothing else, so that every
other line keeps its number: reports name lines of the user's own file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
_CALLS = {
    "max": "min", "min": "max", "sum": "max", "exp": "exp2", "exp2": "exp", "log": "log2", "log2": "log",
    "maximum": "minimum", "minimum": "maximum", "sqrt": "exp", "rsqrt": "sqrt", "argmax": "argmin", "cdiv": "minimum",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where it is, what it was and is, and the whole text of the file with it."""

    kind: str
    function: str
    line: int
    before: str
    after: str
    text: str

    def words(self) -> str:
        """The change in one line."""
        return f"{self.before}  ->  {self.after}"


def kernels_of(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions of a module that are decorated with `jit`."""
    return [
        n for n in tree.body
        if isinstance(n, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in n.decorator_list)
    ]  # fmt: skip


def mutants(text: str, functions: frozenset[str] | None = None) -> list[Mutant]:
    """Every mutant of a file's kernels, in the order of the source; each changed text once.

    `functions`: only in these (None = all). Raises SyntaxError for a text that does not parse.
    """
    found: dict[str, Mutant] = {}
    tree = ast.parse(text)
    for kernel in kernels_of(tree):
        if functions is not None and kernel.name not in functions:
            continue
        skipped = _annotations(kernel)
        for statement in kernel.body:
            for node in ast.walk(statement):
                if node in skipped or not isinstance(node, (ast.expr, ast.stmt)):
                    continue
                for kind, after in changes(node, kernel):
                    made = replaced(text, node, after)
                    if made != text:
                        before = _one_line(ast.get_source_segment(text, node) or "")
                        found.setdefault(made, Mutant(kind, kernel.name, node.lineno, before, _one_line(after), made))
    return list(found.values())


def changes(node: ast.AST, kernel: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """(kind, new source text) of every change of one node."""
    if isinstance(node, ast.BinOp):
        yield from _of_operator(node, kernel)
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield "accumulation", f"{ast.unparse(node.target)} = {ast.unparse(node.value)}"
        elif isinstance(node.op, ast.Mult):
            yield "factor", f"{ast.unparse(node.target)} = {ast.unparse(node.target)}"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        yield "comparison", _unparsed(node, ops=[_COMPARISONS[type(node.ops[0])]()])
    elif isinstance(node, ast.Constant) and type(node.value) is float:
        yield "constant", repr(node.value + 1.0 if node.value == 0 else node.value * 1.01)
    elif isinstance(node, ast.Attribute) and node.attr == "float32":
        yield "dtype", f"{ast.unparse(node.value)}.float16"
    elif isinstance(node, ast.If):
        return  # its test is changed as an expression of its own where it is one
    elif isinstance(node, ast.Expr) and ast.unparse(node).endswith("debug_barrier()"):
        yield "barrier", "pass"
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_operator(node: ast.BinOp, kernel: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    if type(node.op) in _OPERATORS:
        yield "operator", f"({_unparsed(node, op=_OPERATORS[type(node.op)]())})"
    if isinstance(node.op, ast.Mult):
        yield "factor", ast.unparse(node.left)
    if isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name):
        names = _strides(kernel)
        if node.right.id in names and len(names) > 1:
            other = names[(names.index(node.right.id) + 1) % len(names)]
            yield "strides", f"({ast.unparse(node.left)} * {other})"


def _of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if isinstance(node.func, ast.Attribute) and name in _CALLS:
        changed = ast.Attribute(node.func.value, _CALLS[name], ast.Load())
        yield "call", _unparsed(node, func=changed)
    if any(k.arg == "mask" for k in node.keywords):
        yield "mask", _unparsed(node, keywords=[k for k in node.keywords if k.arg not in ("mask", "other")])
    for keyword in node.keywords:
        if keyword.arg == "other":
            zero = isinstance(keyword.value, ast.Constant) and keyword.value.value in (0, 0.0)
            value: int | float = 1.0 if zero else 0.0
            if zero and isinstance(keyword.value, ast.Constant) and type(keyword.value.value) is int:
                value = 1
            other = ast.keyword("other", ast.Constant(value))
            yield "other", _unparsed(node, keywords=[other if k.arg == "other" else k for k in node.keywords])
    if name == "dot" and len(node.args) == 3:
        yield "accumulation", _unparsed(node, args=node.args[:2])
    if name == "where" and len(node.args) == 3:
        yield "guard", ast.unparse(node.args[1])
    if name == "to" and isinstance(node.func, ast.Attribute) and ast.unparse(node).endswith(".to(tl.int64)"):
        yield "width", ast.unparse(node.func.value)
    if name == "range" and node.args:
        at = 0 if len(node.args) == 1 else 1
        shorter = ast.BinOp(node.args[at], ast.Sub(), ast.Constant(1))
        yield "bound", _unparsed(node, args=[shorter if i == at else a for i, a in enumerate(node.args)])


def _strides(kernel: ast.FunctionDef) -> list[str]:
    """Parameters of a kernel that multiply something in it and are not compile-time constants."""
    plain = [a.arg for a in kernel.args.args if a.annotation is None]
    used = {
        n.right.id for n in ast.walk(kernel)
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and isinstance(n.right, ast.Name)
    }  # fmt: skip
    return [p for p in plain if p in used]


def _annotations(kernel: ast.FunctionDef) -> set[ast.AST]:
    """Nodes that are not executed: a docstring."""
    first = kernel.body[0]
    skipped = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return set(ast.walk(first)) if skipped else set()


def _unparsed(node: ast.AST, **fields: object) -> str:
    twin = type(node)(**{**{f: getattr(node, f) for f in node._fields}, **fields})
    return ast.unparse(ast.fix_missing_locations(twin))


def _line_starts(text: str) -> list[int]:
    """The offset in bytes at which each line starts."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def replaced(text: str, node: ast.AST, after: str) -> str:
    """The text with the source of one node changed; no other line gets another number."""
    starts = _line_starts(text)
    data = text.encode()
    first = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
    last = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
    lines = data[first:last].count(b"\n")
    if lines:  # the lines below keep their numbers
        assigned, equals, value = after.partition(" = ") if isinstance(node, ast.AugAssign) else ("", "", after)
        after = f"{assigned}{equals}({value}" + "\n" * lines + ")"
    return (data[:first] + after.encode() + data[last:]).decode()


def _one_line(text: str) -> str:
    return " ".join(text.split())
