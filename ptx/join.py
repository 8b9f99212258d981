"""Several PTX texts as one: what a linker does with the parts of a program, before anything is parsed for good.

    join([kernels, library]) -> text

A compiler leaves functions and variables to other texts (`.extern`): `nvcc -rdc=true`, numba-cuda with a library of
CUDA C++ (`numba.cuda.compile_all`). The result is the texts one after the other under one header (the newest version,
the first target), so a launch of it can be replayed like any other. On the way

* a name without linkage (not `.visible`, `.weak`, `.common` or `.extern`) that another text has, too, gets a new one;
* declarations of what another text defines are dropped, of several `.weak` or `.common` definitions the first stays;
* files of later texts are renumbered, their debug sections dropped.

Raises InvalidInput for texts of different targets and for names that two texts define.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ptx.errors import InvalidInput
from ptx.read import strip

_HEADER = re.compile(r"^[ \t]*\.(version|target|address_size)\b([^\n]*)", re.MULTILINE)
_VERSION = re.compile(r"\s*(\d+)\.(\d+)\s*\Z")
_FILE = re.compile(r"^([ \t]*\.file\s+)(\d+)", re.MULTILINE)
_LOC = re.compile(r"(\.loc\s+|inlined_at\s+)(\d+)")
_STATEMENT = re.compile(
    r"(?P<words>(?:\.(?:extern|visible|weak|common)\s+)*)"
    r"\.(?P<kind>entry|func|global|const|shared)\b(?P<rest>[^{;=]*)(?P<end>[{;=])"
)
_NAME = re.compile(r"([A-Za-z_$%][\w$]*)\s*(?:\[[^\]]*\]\s*)*\Z")
_BRACE = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]')
_WORD = re.compile(r"[A-Za-z_$%][\w$]*")


def join(texts: Sequence[str]) -> str:
    """One text of several; a single one stays as it is."""
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InvalidInput("PTX comes as a str, or as a list of them", help="for bytes, decode them")
    if len(texts) == 1:
        return texts[0]
    parts = [_Part(text) for text in texts]
    targets = sorted({p.target or "no target" for p in parts})
    if len(targets) != 1:
        raise InvalidInput(f"texts for {', '.join(targets) or 'no target'}", help="compile all for one target")
    holders = Counter(name for p in parts for name in {s.name for s in p.statements})
    kept = {id(s) for s in _kept([s for p in parts for s in p.statements if not s.local])}
    out, files = [], 0
    for number, part in enumerate(parts):
        text = part.only(kept)
        private = {s.name for s in part.statements if s.local and holders[s.name] > 1}
        out.append(_renamed(text, private, f"$joined{number}", files))
        files += part.files
    major, minor = max(p.version for p in parts)
    return f".version {major}.{minor}\n.target {targets[0]}\n.address_size 64\n" + "\n".join(out)


def _kept(statements: Sequence[_Statement]) -> Iterator[_Statement]:
    """Of the statements about each name with linkage the one that stays."""
    about: dict[str, list[_Statement]] = {}
    for s in statements:
        about.setdefault(s.name, []).append(s)
    for name, found in about.items():
        strong = [s for s in found if not s.declares and not s.yields]
        if len(strong) > 1:
            raise InvalidInput(f"`{name}` is defined in two texts", help="leave one of the texts out")
        yield (strong or [s for s in found if not s.declares] or found)[0]


def _renamed(text: str, private: set[str], suffix: str, files: int) -> str:
    """A part with new names for what is its own, and file numbers from `files` on."""
    if private:
        text = _WORD.sub(lambda m: m[0] + suffix if m[0] in private else m[0], text)
    if files:
        text = _FILE.sub(lambda m: f"{m[1]}{int(m[2]) + files}", text)
        text = _LOC.sub(lambda m: f"{m[1]}{int(m[2]) + files}", text)
    return text


class _Statement:
    """A function or variable at module level, at `start` to `end` of the text. `declares`: it is defined elsewhere;
    `yields`: to a definition elsewhere; `local`: no other text can mean it."""

    def __init__(self, match: re.Match[str], end: int) -> None:
        self.start, self.end = match.start(), end
        kind, rest = match["kind"], match["rest"]
        if kind in ("entry", "func"):
            found = _WORD.search(re.sub(r"\([^()]*\)|\.\w+", " ", rest))
            self.name = found[0] if found else ""
        else:
            found = _NAME.search(rest.rstrip())
            self.name = found[1] if found else ""
        words = match["words"]
        self.declares = "extern" in words or (kind == "func" and match["end"] == ";")
        self.local = not words.strip() and not self.declares and kind != "entry"
        self.yields = "weak" in words or "common" in words


class _Part:
    """One text, without comments and header."""

    def __init__(self, text: str) -> None:
        text = strip(text)
        self.version, self.target = (1, 0), ""
        for m in _HEADER.finditer(text):
            if m[1] == "version":
                version = _VERSION.match(m[2])
                if version is None:
                    raise InvalidInput(f"`.version{m[2]}`: a version is two numbers with a point between them")
                self.version = int(version[1]), int(version[2])
            elif m[1] == "target":
                self.target = m[2].partition(",")[0].strip()  # without `debug` and the like
        self.text = _HEADER.sub("", text)
        self.statements = list(self._statements())
        self.files = max((int(m[2]) for m in _FILE.finditer(text)), default=0)

    def _statements(self) -> Iterator[_Statement]:
        at = 0
        while m := _STATEMENT.search(self.text, at):
            at = m.end()
            if m["end"] == "{":
                at = self._behind_braces(m.end() - 1)
            elif m["end"] == "=":
                at = self.text.find(";", at) + 1
                if not at:
                    raise InvalidInput("a text ends inside an initial value")
            yield _Statement(m, at)

    def _behind_braces(self, at: int) -> int:
        depth = 0
        for m in _BRACE.finditer(self.text, at):
            depth += (m[0] == "{") - (m[0] == "}")
            if depth == 0:
                return m.end()
        raise InvalidInput("a text ends inside a function")

    def only(self, kept: set[int]) -> str:
        """The text with those of its statements that are kept, by identity, or local; the rest leaves its lines."""
        out, at = [], 0
        for s in self.statements:
            if not s.local and id(s) not in kept:
                out += [self.text[at : s.start], "\n" * self.text.count("\n", s.start, s.end)]
                at = s.end
        return "".join((*out, self.text[at:]))
