"""Help that fits a page: options in groups, related ones on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

Section = tuple[str, Sequence[tuple[str, ...]]]
"""A heading, and its lines: options as they are written, what they do, and ``RARE`` for those that only ``--help-all`` shows."""

ALWAYS: tuple[str, str] = ("--color, --debug, -h", "Colour: auto, always, never; traceback.")
RARE = "rare"
_ALL = "netdiag.help-all"


class Grouped(click.Command):
    """A command whose help is written by hand; a test sees to it that no option is forgotten. One with rare options gets ``--help-all``."""

    def __init__(self, *arguments: Any, sections: Sequence[Section] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections
        if any(RARE in line for _, lines in sections for line in lines):
            self.params.append(
                click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all)
            )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The sections; rare lines only with ``--help-all``."""
        for heading, lines in self.sections:
            shown = [(line[0], line[1]) for line in lines if RARE not in line or ctx.meta.get(_ALL)]
            if shown:
                with formatter.section(heading):
                    formatter.write_dl(shown, col_max=34)


def _show_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()
