"""Names of a function body, and operand texts → IR operands.

A body's braces nest, and each level may declare registers, variables and labels of its own (Triton's inline asm does).
The IR has one flat set of names a function, so a name declared in inner braces keeps its spelling when that is free and
becomes `name$1`, `name$2`, … when it is not (`$` is legal in PTX names). Labels of a level are entered before its
statements are read, because they may be used before they stand; declarations where they stand.

A name that no level declares is a special register when it is one, WARP_SZ is the literal 32, `%anything` else is an
undeclared register (`InvalidInput`), and any other word is the name of a variable, parameter, label or function.
"""

from __future__ import annotations

import re
import struct

from ptx import ir
from ptx.constants import evaluate
from ptx.errors import InvalidInput
from ptx.read import constant
from ptx.syntax import integer

_XYZW = ("%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid")
SPECIAL_REGISTERS = frozenset(
    [f"{r}{c}" for r in _XYZW for c in ("", ".x", ".y", ".z", ".w")]
    + [f"%pm{i}{s}" for i in range(8) for s in ("", "_64")]
    + [f"%envreg{i}" for i in range(32)]
    + [f"%lanemask_{c}" for c in ("eq", "le", "lt", "ge", "gt")]
    + [
        "%laneid",
        "%warpid",
        "%nwarpid",
        "%smid",
        "%nsmid",
        "%gridid",
        "%is_explicit_cluster",
        "%cluster_ctarank",
        "%cluster_nctarank",
        "%clock",
        "%clock_hi",
        "%clock64",
        "%globaltimer",
        "%globaltimer_lo",
        "%globaltimer_hi",
        "%total_smem_size",
        "%aggr_smem_size",
        "%dynamic_smem_size",
        "%current_graph_exec",
        "%reserved_smem_offset_begin",
        "%reserved_smem_offset_end",
        "%reserved_smem_offset_cap",
        "%reserved_smem_offset_0",
        "%reserved_smem_offset_1",
    ]
)
"""PTX ISA chapter 'Special Registers'."""

_COMPONENTS = ("x", "y", "z", "w")
_COLOURS = dict(zip("rgba", _COMPONENTS, strict=True))
"""The other names of a vector's elements."""
_NAMED = re.compile(r"([A-Za-z_$%][\w$]*(?:\.[a-z]\w*)?)\s*(?:\+\s*(.+))?\Z", re.DOTALL)
_PLAIN = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?\Z")
_FLOAT_BITS = re.compile(r"0(?:[fF][0-9a-fA-F]{8}|[dD][0-9a-fA-F]{16})\Z")
_BITS_INSIDE = re.compile(r"\b0[fFdD][0-9a-fA-F]{8}")
_NEGATED = re.compile(r"!\s*[A-Za-z_$%]")
_NAME_BEHIND = re.compile(r"-\s*([A-Za-z_$%][\w$]*(?:\.\w+)?)\Z")
_SELECTOR = re.compile(r"(b[0-7]{1,4}|h[0-3]{1,2})\Z")
"""Parts of a register that operands of video instructions may be; which of them, the instruction says."""
_TENSOR = re.compile(r"([^,]+?)\s*,\s*(\{[^}]*\})\s*(?:,\s*(\{[^}]*\}))?\Z", re.DOTALL)


class Names:
    """Registers, symbols and labels that one function has used so far; shared by its scopes."""

    def __init__(self) -> None:
        self.used: dict[str, tuple[tuple[int, int], str]] = {}  # register -> (declaration order, type)
        self.taken: set[str] = set()
        self.declarations = 0

    def registers(self) -> dict[str, str]:
        """Every register used, name → type, in declaration order."""
        return {name: type for name, (_, type) in sorted(self.used.items(), key=lambda item: item[1][0])}


class Scope:
    """One level of braces: what it declares, and a memo of the operands read in it."""

    def __init__(self, names: Names, parent: Scope | None = None) -> None:
        self._names = names
        self._parent = parent
        self._registers: dict[str, tuple[str, str, int]] = {}  # name -> (unique name, type, declaration order)
        self._ranges: dict[str, tuple[int, str, int]] = {}  # prefix -> (count, type, declaration order)
        self._symbols: dict[str, str] = {}  # variable or label -> unique name
        self._vectors: dict[str, int] = {}  # vector register -> number of elements
        self._memo: dict[str, ir.Operand] = {}

    # -------------------------------------------------------------------------------------------- declaring
    def declare_register(self, name: str, type: str, vector: int = 0) -> None:
        """`.reg .type name;` (`vector` elements, reached as `name.x` …). InvalidInput when it is declared already."""
        if name in self._registers or name in self._vectors or name in self._symbols or self._in_range(name):
            raise InvalidInput(f"`{name}` is declared twice in one scope")
        self._memo.clear()
        self._names.declarations += 1
        if vector:
            self._vectors[name] = vector
            for c in _COMPONENTS[:vector]:
                self._registers[f"{name}.{c}"] = (self._unique(f"{name}_{c}"), type, self._names.declarations)
        else:
            self._registers[name] = (self._unique(name), type, self._names.declarations)

    def declare_range(self, prefix: str, count: int, type: str) -> None:
        """`.reg .type prefix<count>;`"""
        if prefix in self._ranges:
            raise InvalidInput(f"register range `{prefix}<{self._ranges[prefix][0]}>` is declared twice in one scope")
        self._memo.clear()
        self._names.declarations += 1
        self._ranges[prefix] = (count, type, self._names.declarations)
        if any(self._in_range(name) for name in (*self._registers, *self._symbols) if name.startswith(prefix)):
            raise InvalidInput(f"register range `{prefix}<{count}>` has a name that is declared in this scope")

    def declare_symbol(self, name: str, what: str) -> str:
        """A label or variable; returns its unique name."""
        if name in self._symbols or name in self._registers or self._in_range(name):
            raise InvalidInput(f"{what} `{name}` is declared twice in one scope")
        self._memo.clear()
        self._symbols[name] = unique = self._unique(name)
        return unique

    def declare_outside(self, name: str, function: str) -> str:
        """A `.global` or `.const` variable of a body: its name in the module, which begins with the function's."""
        if name in self._symbols:
            raise InvalidInput(f"variable `{name}` is declared twice in one scope")
        self._symbols[name] = unique = self._unique(f"{function}${name}")
        return unique

    def _unique(self, name: str) -> str:
        unique, n = name, 0
        while unique in self._names.taken or (self._parent is not None and self._parent._has(unique)):
            n += 1
            unique = f"{name}${n}"
        self._names.taken.add(unique)
        return unique

    def _has(self, name: str) -> bool:
        scope: Scope | None = self
        while scope is not None:
            if name in scope._registers or name in scope._symbols or scope._in_range(name):
                return True
            scope = scope._parent
        return False

    def _in_range(self, name: str) -> tuple[int, str, int] | None:
        """(number, type, declaration order) of `name` in a range declared here."""
        if self._ranges and name[-1:].isdigit():
            # `%x12` may be number 12 of `%x` or number 2 of `%x1`; the shortest prefix that fits wins.
            start = len(name.rstrip("0123456789"))
            for i in range(start, len(name)):
                found = self._ranges.get(name[:i])
                if found and (name[i] != "0" or i == len(name) - 1) and int(name[i:]) < found[0]:
                    return int(name[i:]), found[1], found[2]
        return None

    # -------------------------------------------------------------------------------------------- looking up
    def register(self, name: str) -> ir.Reg | None:
        """The register called `name` here, or None."""
        scope: Scope | None = self
        while scope is not None:
            if (found := scope._registers.get(name)) is not None:
                unique, type, order = found
                self._names.used.setdefault(unique, ((order, 0), type))
                return ir.Reg(unique, type)
            if (ranged := scope._in_range(name)) is not None:
                number, type, order = ranged
                unique = name
                if scope._parent is not None:  # an inner range: names one by one, like single declarations
                    unique = scope._unique(name)
                    scope._registers[name] = (unique, type, order)
                self._names.used.setdefault(unique, ((order, number), type))
                return ir.Reg(unique, type)
            scope = scope._parent
        return None

    def symbol(self, name: str) -> str:
        """The unique name of a label or variable seen from here; names declared outside stay as they are."""
        scope: Scope | None = self
        while scope is not None:
            if (unique := scope._symbols.get(name)) is not None:
                return unique
            scope = scope._parent
        return name

    def vector(self, name: str) -> ir.Vec | None:
        scope: Scope | None = self
        while scope is not None:
            if (n := scope._vectors.get(name)) is not None:
                return ir.Vec(tuple(scope.register(f"{name}.{c}") or ir.Sink() for c in _COMPONENTS[:n]))
            scope = scope._parent
        return None

    # -------------------------------------------------------------------------------------------- operands
    def operand(self, text: str) -> ir.Operand:
        """An operand's text (one of grammar.lark's OPERAND) as IR. InvalidInput, Unsupported."""
        found = self._memo.get(text)
        if found is None:
            found = self._memo[text] = self._decode(text)
        return found

    def call_operand(self, text: str) -> ir.Operand:
        """An operand of `call`, whose results and arguments stand in parentheses. InvalidInput, Unsupported."""
        return self._items(text) if text[0] == "(" else self.operand(text)

    def _decode(self, text: str) -> ir.Operand:
        first = text[0]
        if first == "{":
            return self._items(text)
        if first == "[":
            return self._address(text[1:-1].strip())
        if first == "-" and (m := _NAME_BEHIND.match(text)) and m[1] != "WARP_SZ":
            part = self.operand(m[1])
            if isinstance(part, ir.Reg):
                return ir.Part(part, "", negated=True)
            if isinstance(part, ir.Part):
                return ir.Part(part.reg, part.selector, negated=True)
            raise InvalidInput(f"`-` negates a register, and `{m[1]}` is none")
        if first in "0123456789-+~.(" or text.startswith("WARP_SZ") or (first == "!" and not _NEGATED.match(text)):
            return literal(text)
        if first == "!":
            register = self.operand(text[1:].strip())
            if not isinstance(register, ir.Reg):
                raise InvalidInput(f"`!` negates a predicate register, and `{text[1:].strip()}` is none")
            return ir.Not(register)
        if "|" in text:
            a, b = (self.operand(t.strip()) for t in text.split("|"))
            if not isinstance(a, ir.Reg | ir.Sink) or not isinstance(b, ir.Reg | ir.Sink):
                raise InvalidInput(f"`{text}`: a destination pair is made of two registers")
            return ir.Pair(a, b)
        return self._named(text)

    def _named(self, text: str) -> ir.Operand:
        if text == "_":
            return ir.Sink()
        m = _NAMED.match(text)
        if m is None:
            raise InvalidInput(f"`{text}` is not an operand")
        name, offset = m.groups()
        if offset is not None:
            if self.register(name) is not None:
                raise InvalidInput(f"`{text}`: an offset belongs to a symbol, or to a register inside [ ]")
            return ir.Sym(self.symbol(name), _offset(offset))
        if (register := self.register(name)) is not None:
            return register
        if name in SPECIAL_REGISTERS:
            return ir.Special(name)
        if (vector := self.vector(name)) is not None:
            return vector
        if "." in name:
            base, _, component = name.partition(".")
            if (whole := self.register(base)) is not None:
                if _SELECTOR.match(component):
                    return ir.Part(whole, component)
                raise InvalidInput(f"`{name}`: `.{component}` selects no bytes or halves of a register")
            if component in _COLOURS and self.vector(base) is not None:
                return self._named(f"{base}.{_COLOURS[component]}")
            raise InvalidInput(f"`{name}` is neither a special register nor an element of a vector register")
        if name[0] == "%":
            raise InvalidInput(
                f"register `{name}` is not declared", help="declare it with .reg in this scope or in one around it"
            )
        return ir.Sym(self.symbol(name))

    def _items(self, text: str) -> ir.Vec:
        inside = text[1:-1].strip()
        items: list[ir.Reg | ir.Imm | ir.Sink | ir.Special | ir.Sym] = []
        for part in (p.strip() for p in inside.split(",")) if inside else ():
            item = self.operand(part) if part else None
            if isinstance(item, ir.Vec):
                items += item.items
                continue
            if not isinstance(item, ir.Reg | ir.Imm | ir.Sink | ir.Special | ir.Sym):
                raise InvalidInput(f"`{part}` cannot be an element of `{' '.join(text.split())}`")
            items.append(item)
        return ir.Vec(tuple(items))

    def _address(self, inside: str) -> ir.Mem | ir.TensorMem:
        if m := _TENSOR.match(inside):
            base = self.operand(m[1].strip())
            if not isinstance(base, ir.Reg | ir.Sym):
                raise InvalidInput(f"`[{inside}]`: a tensor address starts with a register or a symbol")
            return ir.TensorMem(base, self._items(m[2]), self._items(m[3]) if m[3] else None)
        if inside[:1] in "0123456789-+~(" and inside:
            base = literal(inside)
            if base.kind == "int":
                return ir.Mem(base)
        elif m := _NAMED.match(inside):
            name, offset = m.groups()
            base = self.operand(name)
            if isinstance(base, ir.Reg | ir.Sym):
                return ir.Mem(base, 0 if offset is None else _offset(offset))
        raise InvalidInput(
            f"`[{inside}]` is not an address",
            help="an address is [register], [register+offset], [symbol+offset], [integer] or [map, {coordinates}]",
        )


def _offset(text: str) -> int:
    """The number behind `symbol+` or `register+`."""
    value = literal(text)
    if value.kind != "int":
        raise InvalidInput(f"`+{text}`: an offset is an integer")
    return value.value


def literal(text: str) -> ir.Imm:
    """A constant operand: an integer (exact, may be negative), 0f…/0d… bits, a decimal fraction (f64 bits), or an
    expression of these (`ptx.constants`)."""
    if _PLAIN.match(text):
        n = integer(text.removeprefix("-"))
        if text[0] == "-":
            n = -n if n <= 1 << 63 else (1 << 64) - n
        return ir.Imm(n)
    inner = text
    while inner[0] == "(" and inner[-1] == ")" and _FLOAT_BITS.match(inner[1:-1].strip("() \t")):
        inner = inner[1:-1].strip()
    if _FLOAT_BITS.match(inner):
        return ir.Imm(int(inner[2:], 16), "f32" if inner[1] in "fF" else "f64")
    if _BITS_INSIDE.search(text):
        raise InvalidInput(f"`{text}`: 0f… and 0d… stand alone, not in expressions")
    value = evaluate(constant(text))
    if isinstance(value, float):
        return ir.Imm(struct.unpack("<Q", struct.pack("<d", value))[0], "f64")
    if not isinstance(value, int):
        raise InvalidInput(f"`{text}` is not a literal")
    return ir.Imm(int(value))
