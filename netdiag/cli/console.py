"""The one way to the terminal: colour, width and encoding are decided here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPED_WIDTH = 80
COLOURS = ("auto", "always", "never")

Function = TypeVar("Function", bound=Callable[..., Any])


def common_options(function: Function) -> Function:
    """``--color`` and ``--debug``, which every command has; they reach nobody but this module and ``main``."""
    colour = click.option(
        "--color",
        "--colour",
        type=click.Choice(COLOURS),
        default="auto",
        expose_value=False,
        callback=_remember_colour,
        help="Colour: auto is on for terminals; NO_COLOR and FORCE_COLOR are obeyed.",
    )
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, callback=_remember_debug, help="Show the traceback of an error."
    )
    return colour(debug(function))


def _remember_colour(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    ctx.meta["netdiag.colour"] = value
    return value


def _remember_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    ctx.meta["netdiag.debug"] = value
    return value


def debugging() -> bool:
    """Whether ``--debug`` was given."""
    context = click.get_current_context(silent=True)
    return bool(context is not None and context.meta.get("netdiag.debug"))


def wants_colour(
    stream: TextIO, choice: str = "auto", environment: os._Environ[str] | dict[str, str] = os.environ
) -> bool:
    """``--color`` wins over ``NO_COLOR`` (non-empty), which wins over ``FORCE_COLOR``, which wins over "is it a terminal"."""
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"


def width_of(stream: TextIO | None = None) -> int:
    """Columns: ``COLUMNS`` if set, else the terminal's, else 80."""
    stream = sys.stdout if stream is None else stream
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or PIPED_WIDTH if stream.isatty() else PIPED_WIDTH
    except (OSError, ValueError):
        return PIPED_WIDTH


def console(stream: TextIO | None = None) -> Console:
    """A rich console that adds nothing of its own: no highlighting, no markup, no emoji codes, no wrapping surprises."""
    from rich.console import Console

    file = sys.stdout if stream is None else stream
    colour = _in_colour(file)
    return Console(
        file=file,
        width=width_of(file),
        force_terminal=colour,
        color_system="auto" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _in_colour(stream: TextIO) -> bool:
    context = click.get_current_context(silent=True)
    return wants_colour(stream, context.meta.get("netdiag.colour", "auto") if context is not None else "auto")


def ascii_only(stream: TextIO | None = None) -> bool:
    """Whether the stream's encoding lacks the glyphs of the report."""
    from netdiag.export.terminal.page import can_show

    return not can_show((sys.stdout if stream is None else stream).encoding)


def show(lines: Iterable[Text], stream: TextIO | None = None) -> None:
    """Print finished lines, to standard output unless ``stream`` says otherwise. Without colour a line is its text: rich's console, which
    takes long to load, has nothing to do."""
    file = sys.stdout if stream is None else stream
    if not _in_colour(file):
        file.writelines(f"{line.plain}\n" for line in lines)
        file.flush()
        return
    out = console(file)
    for line in lines:
        out.print(line, soft_wrap=True)


def note(text: str) -> None:
    """One paragraph for the person, on standard error."""
    complain([text])


def complain(paragraphs: Iterable[str]) -> None:
    """Say something on standard error, harmless to print; a terminal gets lines that end between words."""
    from netdiag.sanitise import one_line

    lines = [one_line(paragraph, most=1000) for paragraph in paragraphs]
    if sys.stderr.isatty():
        import textwrap

        width = width_of(sys.stderr)
        lines = [part for line in lines for part in textwrap.wrap(line, width, break_on_hyphens=False)]
    click.echo("\n".join(lines), err=True)
