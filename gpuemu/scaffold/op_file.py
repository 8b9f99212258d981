"""From the facts of a kernel to the text of an op file, with `fill_in(...)` where the facts do not say enough.

What is guessed, and from what:

    shape       as many axes as the argument has strides of its own (`stride_am`, `stride_ak`; one: a row stride, so two
                axes); else, where the kernel has one size, that; axes are the sizes in order
    grid        rows, for a kernel that takes a whole row as one tile; ceil(size / tile) for one that multiplies its
                program number by a tile
    tiles       the next power of two for a row as one tile, else 128 (one axis) or 32 (several)

A guess is marked as one; a shape, a reference and an error model that cannot be known are placeholders, which `ci`
refuses.
"""

from __future__ import annotations

import re
import textwrap

from gpuemu.scaffold.kernel_facts import KernelFacts

_CANDIDATES = {1: (1, 7, 127, 128, 129, 509, 1000, 1024), 2: (1, 3, 16), 3: (1, 31, 32, 33, 67)}
_BOUNDS = 'bounds.elementwise(2), .total(...), .softmax("x"), .dot("a", "b"), ... (README)'


def op_text(facts: KernelFacts, module: str) -> str:
    """The op file for a kernel that is importable as `from module import name`."""
    plan = _Plan(facts)
    inputs = [p for p in facts.pointers if p in facts.loaded]
    outputs = [p for p in facts.pointers if p in facts.stored]
    both = [p for p in inputs if p in outputs]
    given = {p: f"{p}_before" if p in both else p for p in inputs}
    parameters = [*given.values(), *outputs, *plan.needed_dims()]
    lines = [
        f'"""The op of `{facts.name}`, begun by `gpuemu init`: fill in what is marked, then `gpuemu ci` this file."""',
        "",
        "import numpy as np",
        *(["import triton"] if "triton." in plan.grid + "".join(plan.constants.values()) else []),
        "",
        "import gpuemu",
        "from gpuemu import Input, Output, bounds, fill_in",
        f"from {module} import {facts.name}",
        "",
        "",
        "@gpuemu.op(",
        "    # Sizes to try: 1, a tile less one, a tile, a tile and one, primes.",
        f"    dims={{{', '.join(f'{d!r}: {c}' for d, c in plan.dims.items())}}},".replace("'", '"'),
        "    # Input(..., largest=1e4): the kernel need not take more, since a square or a sum would overflow.",
        "    inputs={",
        *(f'        "{given[p]}": Input({plan.shape(p)}),{plan.comment(p)}' for p in inputs),
        "    },",
        "    outputs={",
        *(f'        "{p}": Output({plan.shape(p)}),{plan.comment(p)}' for p in outputs),
        "    },",
        *_field("reference", f"a function of {', '.join(given.values()) or 'the dims'} (float64 numpy arrays) that "
                f"returns {', '.join(outputs)}"),
        *_field("bound", f"an error model: {_BOUNDS}"),
        ")",
        f"def {op_name(facts.name)}(run, {', '.join(parameters)}):",
        *(f"    {p}[...] = {given[p]}  # the kernel reads and writes it" for p in both),
        *(f"    {line}" for line in plan.launch()),
        "",
    ]
    return "\n".join(lines)


def op_name(kernel: str) -> str:
    """A name for the op's function that is not the kernel's, which the file imports."""
    return kernel.removesuffix("_kernel") if kernel.endswith("_kernel") else f"{kernel}_op"


def _field(name: str, what: str) -> list[str]:
    """The lines of one field that is still to be filled in."""
    parts = textwrap.wrap(what, 100, drop_whitespace=False)
    if len(parts) == 1:
        return [f"    {name}=fill_in({_quoted(what)}),"]
    return [f"    {name}=fill_in(", *(f"        {_quoted(part)}" for part in parts), "    ),"]


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'


class _Plan:
    """The guesses for one kernel."""

    def __init__(self, facts: KernelFacts) -> None:
        self._facts = facts
        self._strides = {p: self._strides_of(p) for p in facts.pointers}
        rank = max([len(s) if len(s) > 1 else 2 for s in self._strides.values() if s] or [1])
        names = [s.upper().removesuffix("_SIZE") for s in facts.sizes]
        if len(names) < min(rank, 2):
            names = [n for n in ("M", "N") if n not in names][: 2 - len(names)] + names
        self._size_dims = dict(zip(facts.sizes, names[len(names) - len(facts.sizes) :], strict=True))
        few = min(len(names), 3)
        self.dims = dict.fromkeys(names, _CANDIDATES[few]) or {"N": _CANDIDATES[1]}
        if few == 2:
            self.dims[names[-1]] = (1, 2, 31, 127, 128, 129, 257, 1000)
        self._row = bool(facts.axes == 1 and not facts.tiled and len(self.dims) == 2)
        self.grid = self._grid()
        self.constants = {c: self._constant(c) for c in facts.constants if c not in facts.defaults}

    def _strides_of(self, pointer: str) -> list[str]:
        short = re.sub(r"_?(ptr|pointer|p)$", "", pointer.lower()) or pointer.lower()
        found = []
        for stride in self._facts.strides:
            rest = re.sub(r"_?strides?_?", " ", stride.lower()).split()
            if any(r == short or (r.startswith(short) and len(r) == len(short) + 1) for r in rest) or (
                rest and rest[0].split("_")[0] == short
            ):
                found.append(stride)
        return found

    def _shape(self, pointer: str) -> str | None:
        own, names = self._strides[pointer], list(self.dims)
        if len(self.dims) == 1 and not self._facts.strides:
            return names[0]
        if len(own) == 1 and len(names) == 2:
            return " ".join(names)
        if len(own) == 2 and len(names) == 2:
            return " ".join(names)
        if len(own) == 2 and len(names) == 3:
            letters = [s.lower()[-1].upper() for s in own]
            if all(letter in names for letter in letters):
                return " ".join(letters)
        return None

    def shape(self, pointer: str) -> str:
        """The text of an argument's shape."""
        shape = self._shape(pointer)
        if shape is None:
            return f"fill_in(\"shape of {pointer} by dims, for example '{' '.join(self.dims)}'\")"
        padded = len(self._strides[pointer]) >= 1 and " " in shape
        return f'"{shape}"' + (", padded=True" if padded else "")

    def comment(self, pointer: str) -> str:
        """Whether a shape is a guess."""
        return "  # guessed" if self._shape(pointer) else ""

    def needed_dims(self) -> list[str]:
        """Dims that the launcher takes."""
        text = self.grid + " ".join(self._argument(p) for p in self._facts.parameters) + str(self.constants)
        return [d for d in self.dims if re.search(rf"\b{d}\b", re.sub(r'"[^"]*"', "", text))]

    def _grid(self) -> str:
        names = list(self.dims)
        if self._row:
            return f"({names[0]},)"
        tiles = self._facts.tiled
        if self._facts.axes == 1 and len(names) == 1 and 0 in tiles:
            return f"(triton.cdiv({names[0]}, {tiles[0]}),)"
        if self._facts.axes == 2 and len(names) in (2, 3) and set(tiles) == {0, 1}:
            return f"(triton.cdiv({names[0]}, {tiles[0]}), triton.cdiv({names[1]}, {tiles[1]}))"
        return f'fill_in("the grid: {max(self._facts.axes, 1)} sizes")'

    def _constant(self, name: str) -> str:
        if self._row and name in self._facts.spans and not self._facts.loops:
            return f"max(triton.next_power_of_2({list(self.dims)[-1]}), 2)"
        if name in self._facts.spans or name in self._facts.tiled.values():
            return "128" if len(self._facts.spans | set(self._facts.tiled.values())) == 1 else "32"
        return f'fill_in("value of {name}")'

    def _argument(self, name: str) -> str:
        """What the launcher passes for a parameter."""
        if name in self._facts.pointers:
            return name
        if name in self._size_dims:
            return self._size_dims[name]
        if name in self._facts.strides:
            for pointer, own in self._strides.items():
                if name in own:
                    axis = own.index(name)
                    return f"{pointer}.strides[{axis}] // {pointer}.itemsize"
        if re.search(r"eps", name):
            return "1e-5"
        return f'fill_in("value of {name}")'

    def launch(self) -> list[str]:
        """The body of the launcher."""
        facts = self._facts
        lines = [f"{c} = {v}" for c, v in self.constants.items()]
        passed = [p for p in facts.parameters if p not in facts.constants and p not in facts.defaults]
        arguments = [f"{p}={self._argument(p)}" if " " in self._argument(p) else self._argument(p) for p in passed]
        named = any("=" in a for a in arguments)
        if named:
            arguments = [f"{p}={self._argument(p)}" for p in passed]
        arguments += [f"{c}={c}" for c in self.constants]
        lines.append(f"grid = {self.grid}")
        line = f"run({facts.name}, grid, {', '.join(arguments)})"
        if len(line) <= 110:
            return [*lines, line]
        return [*lines, "run(", f"    {facts.name},", "    grid,", *(f"    {a}," for a in arguments), ")"]
