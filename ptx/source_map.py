"""`.loc` and `.file` → where each instruction comes from in the user's source.

The compilers write one `.loc` for each change of position, and for inlined code the chain of call sites as well, one
link a directive: `.loc 2 196 12, function_name F, inlined_at 2 216 16` says that 2:196:12 was inlined at 2:216:16;
where that position was itself inlined is said by the most recent directive *for that position*,
`.loc 2 216 16, function_name F, inlined_at 1 10 13`. `SourceMap.enter` keeps those links and resolves the chain:
innermost frame first, the kernel's own line last.

`.file` lines may come after the code (Triton), so they are given first. Line 0 means 'no position': its call sites are
used when it has some, else the last known position stays. An unknown file index is shown as `<file 3>`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptx.ir import Frame

Position = tuple[int, int, int]  # file index, line, column


class SourceMap:
    """The current source position while the text is walked from top to bottom."""

    def __init__(self, files: Mapping[int, str]) -> None:
        self._files = files
        self._inlined_at: dict[Position, Position | None] = {}
        self._parsed: dict[str, tuple[Position, Position | None]] = {}
        self._frame: dict[Position, Frame] = {}
        self.frames: tuple[Frame, ...] = ()

    def start_function(self) -> None:
        """Forget the position of the function before."""
        self._inlined_at.clear()
        self.frames = ()

    def enter(self, text: str) -> None:
        """Take one `.loc` directive; `frames` is then what it says."""
        known = self._parsed.get(text)
        if known is None:
            known = self._parsed[text] = _parse(text)
        position, at = known
        self._inlined_at[position] = at
        if position[1] == 0:
            if at is None:
                return
            position = at
        self.frames = self._chain(position)

    def _chain(self, position: Position) -> tuple[Frame, ...]:
        chain = [self._frame_of(position)]
        seen = {position}
        at = self._inlined_at.get(position)
        while at is not None and at not in seen:  # a ring would be recursion through one line: show it once
            seen.add(at)
            if at[1]:
                chain.append(self._frame_of(at))
            at = self._inlined_at.get(at)
        return tuple(chain)

    def _frame_of(self, position: Position) -> Frame:
        frame = self._frame.get(position)
        if frame is None:
            index, line, column = position
            frame = self._frame[position] = Frame(self._files.get(index, f"<file {index}>"), line, column)
        return frame


def _parse(text: str) -> tuple[Position, Position | None]:
    head, _, tail = text.partition("inlined_at")
    f, line, column = head.split(",")[0].split()[1:4]
    position = int(f), int(line), int(column)
    if not tail:
        return position, None
    f, line, column = tail.split()
    return position, (int(f), int(line), int(column))
