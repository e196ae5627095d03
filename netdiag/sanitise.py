"""Text that comes from traffic, made harmless for a terminal, a picture, HTML and a log.

A Server header must not drive the analyst's terminal: no control character (C0, DEL, C1), no bidirectional override, no zero-width or
other invisible format character and no lone surrogate passes. Each becomes a visible ``\\xNN`` or ``\\u{NNNN}``, so that nothing is hidden.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Default-ignorable letters and marks (fillers, variation selectors): invisible although their category is a letter's or a mark's.
_INVISIBLE_OTHERS = frozenset(
    {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0}
    | set(range(0xFE00, 0xFE10))
    | set(range(0xE0100, 0xE01F0))
)
_PLAIN = re.compile(r"[ -~]*\Z")
# Combining marks stack without end ("zalgo") and climb over the neighbouring lines; two are enough for every written language.
_MOST_MARKS = 2


def one_line(text: str, *, most: int | None = None) -> str:
    """``text`` with every invisible or control character spelt out; cut to ``most`` characters with an ellipsis."""
    if most is not None and len(text) > 4 * most:
        text = text[: 4 * most]  # a 64 kB label is not worth escaping whole
    if not _PLAIN.match(text):
        text = "".join(_visible_pieces(text))
    return text if most is None or len(text) <= most else text[: most - 1] + "…"


def _visible_pieces(text: str) -> list[str]:
    pieces, marks = [], 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if category in _INVISIBLE_CATEGORIES or marks > _MOST_MARKS or ord(character) in _INVISIBLE_OTHERS:
            pieces.append(_spelt_out(character))
        else:
            pieces.append(character)
    return pieces


def _spelt_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:04x}}}"
