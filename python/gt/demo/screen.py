"""The output of the demo: to a terminal of any width, a pipe or a file."""

import os
import shutil
import textwrap
from typing import TextIO

from gt.demo.curve import ASCII, UNICODE


class Screen:
    """A text stream, with a progress bar and bold headings if it is a terminal.

    Only ASCII is written unless the stream's encoding is UTF-8. `NO_COLOR` makes headings plain.

    Args:
        stream: the stream to write to.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream
        is_unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
        self.characters = UNICODE if is_unicode else ASCII
        self._full, self._empty = ("━", "╌") if is_unicode else ("#", ".")
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._is_bold = self._is_terminal and not os.environ.get("NO_COLOR")
        columns = shutil.get_terminal_size().columns if self._is_terminal else 80
        self.width = max(min(columns, 80), 20)

    def say(self, text: str = "", indent: int = 3) -> None:
        """Write a paragraph, wrapped to the width."""
        space = " " * indent
        self.write(
            textwrap.fill(
                text,
                self.width,
                initial_indent=space,
                subsequent_indent=space,
                break_on_hyphens=False,
            )
        )

    def heading(self, text: str) -> None:
        """Write a heading after an empty line."""
        self.write()
        for line in textwrap.wrap(text, self.width, subsequent_indent="   "):
            self.write(f"\x1b[1m{line}\x1b[0m" if self._is_bold else line)

    def table(self, rows: list[tuple[str, str]], indent: int = 3) -> None:
        """Write commands beside their descriptions, or below them if the width is too small."""
        space = " " * indent
        left = max(len(command) for command, _ in rows)
        if indent + left + 2 + max(len(text) for _, text in rows) <= self.width:
            for command, text in rows:
                self.write(f"{space}{command:<{left}}  {text}")
            return
        for command, text in rows:
            self.say(f"{text}:", indent)
            # Not wrapped, so that it can be copied.
            self.write(f"{space}  {command}")

    def write(self, line: str = "") -> None:
        """Write a line as it is."""
        print(line, file=self._stream, flush=True)

    def bar(self, done: int, total: int, note: str) -> None:
        """Draw the progress bar over the current line; only in a terminal."""
        if not self._is_terminal:
            return
        before, after = "   ", f" {done:>{len(str(total))}}/{total} {note}"
        # The last columns stay free, for the `^C` that a terminal writes.
        columns = self.width - 4
        room = columns - len(before) - len(after)
        full = max(room, 0) * done // total
        bar = self._full * full + self._empty * (room - full)
        self._draw(f"{before}{bar}{after}", columns)

    def clear_bar(self) -> None:
        """Clear the line of the progress bar."""
        if self._is_terminal:
            # Some terminals start a new line when the last column is written.
            self._draw("", self.width - 1)
            print(end="\r", file=self._stream, flush=True)

    def _draw(self, line: str, columns: int) -> None:
        print(f"\r{line[:columns]:<{columns}}", end="", file=self._stream, flush=True)
