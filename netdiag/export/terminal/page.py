"""Lines that are never wider than the terminal, in Unicode or in plain ASCII."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

MUTED = "dim"
STRONG = "bold"
BAD = "bold red"
GOOD = "green"

Piece = str | tuple[str, str]
"""Text, or text with a style."""

_ASCII = str.maketrans(
    {
        "–": "-",
        "−": "-",
        "→": "->",
        "≤": "<=",
        "≠": "!=",
        "≥": ">=",
        "±": "+-",
        "✗": "x",
        "·": "|",
        "…": "...",
        "×": "x",
        "µ": "u",
        "█": "#",
        "▉": "#",
        "▊": "#",
        "▋": "#",
        "▌": "#",
        "▐": "#",
        "▍": "|",
        "▎": "|",
        "▏": "|",
        "░": ":",
        "▒": ":",
        "▓": "=",
        "╌": ".",
        "▁": ".",
        "▂": ".",
        "▃": "-",
        "▄": "-",
        "▅": "=",
        "▆": "=",
        "▇": "#",
    }
)


def to_ascii(text: str) -> str:
    """The nearest plain ASCII; what has none becomes ``?``."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def can_show(encoding: str | None) -> bool:
    """Whether a stream's encoding has every glyph that the report uses."""
    try:
        "".join(chr(code) for code in _ASCII).encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


class Page:
    """Collects lines, each cut to ``width`` cells."""

    def __init__(self, width: int, *, ascii_only: bool = False) -> None:
        self.width = max(20, width)
        self.ascii_only = ascii_only
        self.lines: list[Text] = []

    def line(self, *pieces: Piece) -> None:
        """Add one line."""
        line = self.text(pieces)
        line.truncate(self.width, overflow="crop" if self.ascii_only else "ellipsis")
        line.rstrip()
        self.lines.append(line)

    def spread(self, left: Sequence[Piece], right: Sequence[Piece], *, fold: bool = False) -> None:
        """Add one line with ``right`` at the right edge. Where both do not fit, ``left`` is cut, or with ``fold`` the line becomes two."""
        left_text, right_text = self.text(left), self.text(right)
        room = self.width - right_text.cell_len - 2
        if room < left_text.cell_len and (fold or room < self.width // 3):
            self.line(*left)
            self.line(*right)
            return
        left_text.truncate(room, overflow="crop" if self.ascii_only else "ellipsis", pad=True)
        self.lines.append(Text.assemble(left_text, "  ", right_text))

    def wrapped(self, indent: int, *pieces: Piece) -> None:
        """Add a paragraph, broken between words, every line indented."""
        words: list[Piece] = []
        for piece in pieces:
            body, style = (piece, "") if isinstance(piece, str) else piece
            words += [(word, style) for word in body.split()]
        current: list[Piece] = []
        used = 0
        for word in words:
            size = cell_len(self.glyphs(word[0]))
            if current and indent + used + 1 + size > self.width:
                self.line(" " * indent, *current)
                current, used = [], 0
            current += [" ", word] if current else [word]
            used += size + (1 if used else 0)
        if current:
            self.line(" " * indent, *current)

    def hanging(self, indent: int, name: str, *pieces: Piece) -> None:
        """A paragraph beside its name: the first line begins with ``name``, the others stand under its text."""
        before = len(self.lines)
        self.wrapped(indent + cell_len(name), *pieces)
        if len(self.lines) > before:
            first = self.lines[before]
            self.lines[before] = Text.assemble(self.text([" " * indent + name]), first[indent + cell_len(name) :])

    def blank(self) -> None:
        """Add an empty line, never two in a row and never at the top."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def text(self, pieces: Sequence[Piece]) -> Text:
        """The pieces as one styled text with this page's glyphs."""
        line = Text(no_wrap=True, end="")
        for piece in pieces:
            body, style = (piece, "") if isinstance(piece, str) else piece
            line.append(self.glyphs(body), style)
        return line

    def glyphs(self, text: str) -> str:
        """``text`` in the glyphs that this page may use."""
        return to_ascii(text) if self.ascii_only else text


def column(text: str, width: int, *, right: bool = False) -> str:
    """``text`` padded to ``width`` cells (wide characters count twice), never cut."""
    padding = " " * max(0, width - cell_len(text))
    return padding + text if right else text + padding
