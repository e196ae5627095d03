"""Help that fits a page: options in groups, related ones on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

Section = tuple[str, Sequence[tuple[str, str]]]
"""A heading, and its lines: options as they are written, and what they do."""

ALWAYS: tuple[str, str] = ("--color, --debug, -h", "Colour: auto, always, never; traceback.")


class Grouped(click.Command):
    """A command whose help is written by hand; a test sees to it that no option is forgotten."""

    def __init__(self, *arguments: Any, sections: Sequence[Section] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, lines in self.sections:
            with formatter.section(heading):
                formatter.write_dl(list(lines), col_max=34)
