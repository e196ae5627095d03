"""What traffic may contain to drive an analyst's terminal, browser, spreadsheet or file system."""

from __future__ import annotations

import re

_C0 = [f"a{chr(code)}b" for code in range(0x20)]
_C1 = [f"a{chr(code)}b" for code in range(0x7F, 0xA0)]
_ESCAPES = [
    "\x1b[2J\x1b[H",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil.example/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1bP$q\x1b\\",
    "\x9b2J",
    "\x9d0;title\x9c",
    "\x1b[6n",
    "\x1bc",
    "\x1b(0",
    "\r\noverwritten",
    "\b\b\b\bhidden",
    "\x0e\x0f",
]
_UNICODE = [
    *(f"a{chr(code)}b" for code in (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070))),
    *(
        f"a{chr(code)}b"
        for code in (0x61C, 0x115F, 0x3164, 0xAD, 0x180E, 0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB, 0xFE0F, 0x2028, 0x2029)
    ),
    *(f"a{chr(code)}b" for code in (0xD800, 0xDFFF, 0xDC80, 0xE0001, 0xE007F, 0xE000, 0xFFFF, 0x10FFFF)),
    "z" + "\u0300" * 500,
    "\u202egnp.exe",
]
_MARKUP = [
    "a$$b",
    "$\\frac{1}{0}$",
    "$x",
    "\\$",
    "a_b^c{",
    "[/x]",
    "[bold]x",
    "[red]x[/red]",
    "[link=http://evil.example/]x[/link]",
    ":smile:",
    "</script>",
    "<script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "]]>",
    "-->",
    "<!--",
    "&lt;&#x1b;&amp",
    "'\"`",
    "{{7*7}}",
    "%s%n%x",
    "javascript:alert(1)",
]
_FORMULAS = ['=HYPERLINK("http://evil.example/","x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0"]
_PATHS = ["../../x", "..\\..\\x", "/etc/passwd", "CON", "nul", "a\0b", "~root", "-rf", ".", "..", "", " ", "a" * 300]
_LONG = ["A" * 65_536, "\u4e2d" * 5_000, "\u0634" * 2_000]

PAYLOADS: tuple[str, ...] = tuple(_C0 + _C1 + _ESCAPES + _UNICODE + _MARKUP + _FORMULAS + _PATHS + _LONG)

FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
"""No sink may let one of these through raw (line ends of the sink's own excepted)."""
