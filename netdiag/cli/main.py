"""The command ``netdiag``: a table of subcommands, and the one place where errors become a sentence and an exit code.

A subcommand's module is imported when it is run, so that ``netdiag --help`` costs click and nothing else.

Exit codes: 0 ok, 1 at least one request failed, 2 partial result (with --strict), 4 threshold broken, 64 usage, 65 bad input file,
69 needed program or privilege missing, 70 a bug of ours, 73 cannot write, 75 network failure, 130 and 143 signals, 141 broken pipe.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import click

from netdiag.cli.streams import fill_closed_streams
from netdiag.errors import NetdiagError
from netdiag.version import __version__

EXIT_USAGE = 64
EXIT_BUG = 70
EXIT_CANNOT_WRITE = 73
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

COMMANDS: dict[str, tuple[str, str]] = {
    "probe": ("netdiag.cli.probe:probe", "Make requests over HTTP/1.1 and HTTP/2 while capturing; split every one."),
    "watch": ("netdiag.cli.watch:watch", "Repeat a small trial at an interval or a rate."),
    "analyze": ("netdiag.cli.analyze:analyze", "Split every request of capture files into its phases."),
    "run": ("netdiag.cli.run:run", "Run any program under a capture and split its requests."),
    "capture": ("netdiag.cli.capture:capture", "Record packets to a file, or a ring of files, until told to stop."),
    "compare": ("netdiag.cli.compare:compare", "Which is faster, by how much, how sure: arms, runs, captures."),
    "connections": ("netdiag.cli.connections:connections", "List the connections of a capture file."),
    "packets": ("netdiag.cli.packets:packets", "Show the frames behind one request, and a Wireshark filter for them."),
    "lab": ("netdiag.cli.lab:lab", "Faults with known truth: a server to probe, scenarios to learn from."),
    "verify": ("netdiag.cli.verify:verify", "Compare netdiag with tshark on a capture file, field by field."),
    "schema": ("netdiag.cli.schema:schema", "Print the JSON Schema of what --json prints."),
    "doctor": ("netdiag.cli.doctor:doctor", "Say what is installed, and whether packets may be captured here."),
    "completion": ("netdiag.cli.completion:completion", "Print the completion script for a shell."),
}
"""Name: where the command is, and its line in the list."""


class LazyGroup(click.Group):
    """Knows its subcommands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, without an import."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None for a name that is none."""
        if cmd_name not in COMMANDS:
            return None
        module_name, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module_name), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of the help page, without an import."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, with a suggestion for a name that is nearly one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise _with_suggestion(error, args[0], ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """As click, but what click would answer with a blank line or its own exit code is left to ``_run``."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Ended(EXIT_INTERRUPTED) from error
        except BrokenPipeError as error:
            raise Ended(EXIT_BROKEN_PIPE) from error

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run, and leave with the exit code that fits what happened."""
        sys.exit(_run(self, sys.argv[1:] if args is None else list(args), prog_name or "netdiag", extra))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 ok, 1 a request failed, 2 partial (--strict), 4 threshold broken, 64 usage, 65 input,"
    " 69 missing program or right, 70 our bug, 73 output, 75 network, 130/143 signals.",
)
@click.version_option(__version__, message="netdiag %(version)s")
def cli() -> None:
    """Where did every millisecond of a slow HTTPS call go, and whose fault is it?

    \b
    netdiag probe https://example.com/
    netdiag analyze slow.pcapng --keylog keys.txt -o timeline.png
    netdiag doctor
    """


def main() -> None:
    """Entry point of the installed command."""
    # A killed process must still run the code that ends captures and removes key logs.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        fill_closed_streams()
    except NetdiagError as error:
        sys.exit(_complain(str(error), error.exit_code))
    cli.main()


class Ended(BaseException):
    """The run was ended from outside: by a signal, or because nobody reads any more."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def _terminated(number: int, frame: Any) -> None:
    raise Ended(128 + number)


def _run(group: click.Group, arguments: list[str], prog_name: str, extra: dict[str, Any]) -> int:
    debug = "--debug" in arguments
    try:
        outcome = click.Group.main(group, arguments, prog_name, standalone_mode=False, **_allowed(extra))
        sys.stdout.flush()
    except NetdiagError as error:
        if debug:
            raise
        return _complain(str(error), error.exit_code)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        return _complain_usage(error)
    except Ended as end:
        return _hush() if end.exit_code == EXIT_BROKEN_PIPE else end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _hush()
    except OSError as error:
        if debug:
            raise
        return _complain(f"{error.filename or 'output'}: {error.strerror or error}", EXIT_CANNOT_WRITE)
    except Exception as error:
        if debug:
            raise
        return _complain(_bug_report(error), EXIT_BUG)
    return outcome if isinstance(outcome, int) else 0


def _allowed(extra: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in extra.items() if name != "standalone_mode"}


def _complain(message: str, exit_code: int) -> int:
    from netdiag.cli.console import complain

    complain(f"netdiag: {message}".splitlines())
    return exit_code


def _complain_usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    context = getattr(error, "ctx", None)
    hint = f"\nTry '{context.command_path} --help'." if context is not None else ""
    return _complain(error.format_message() + hint, EXIT_USAGE)


def _bug_report(error: Exception) -> str:
    place = ""
    if error.__traceback__ is not None:
        last = error.__traceback__
        while last.tb_next is not None:
            last = last.tb_next
        place = f" in {os.path.basename(last.tb_frame.f_code.co_filename)}:{last.tb_lineno}"
    return (
        f"this is a bug of netdiag: {type(error).__name__}: {error}{place}\n"
        "Run again with --debug for the traceback, and please report it."
    )


def _hush() -> int:
    """The reader of our output went away: say nothing, also not at interpreter exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
    return EXIT_BROKEN_PIPE


def _with_suggestion(error: click.UsageError, given: str, ctx: click.Context) -> click.UsageError:
    import difflib

    near = difflib.get_close_matches(given, COMMANDS, n=1, cutoff=0.75)
    hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(COMMANDS)}."
    return click.UsageError(f"No such command {given!r}.{hint}", ctx)
