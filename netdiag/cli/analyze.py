"""``netdiag analyze``: options, one call of the library for each file, one renderer, exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from netdiag.cli.console import common_options
from netdiag.cli.help import ALWAYS, RARE, Grouped, Section
from netdiag.collection import seldom

if TYPE_CHECKING:
    from netdiag.cli.inputs import FilterWords, Input
    from netdiag.errors import NetdiagError, NotACapture
    from netdiag.records.analysis import Analysis

MOST_FULL_REPORTS = 3
"""With more files than this, only the table is printed: nobody reads forty reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """What the user chose."""

    files: tuple[str, ...]
    keylog: str | None
    json: bool
    jsonl: bool
    outputs: tuple[str, ...]
    force: bool
    embed_keys: bool
    filters: tuple[str, ...]
    connection: tuple[int, ...]
    exchange: int | None
    top: int | None
    strict: bool
    jobs: int | None
    picture: str | None
    slo: str | None

    @property
    def asks_for_all(self) -> bool:
        """Whether more is wanted than what a summary shows."""
        return bool(self.outputs or self.filters or self.connection or self.slo or self.top == 0)


@dataclass(frozen=True, slots=True)
class Result:
    """One file's analysis, or why there is none."""

    input: Input
    analysis: Analysis | None
    error: NetdiagError | None = None


SECTIONS: tuple[Section, ...] = (
    (
        "What to read",
        (
            ("--keylog FILE", "TLS session keys (SSLKEYLOGFILE format); those inside a pcapng are found alone."),
            ("--filter KEY=VALUE", "host=, port=, sni= (* and ? allowed), time=FROM..TO; repeatable."),
            ("--connection N", "Only this connection; repeatable."),
            (
                "--jobs N",
                "Threads that share a large capture's analysis (default: one per processor, 4 at most).",
                RARE,
            ),
        ),
    ),
    (
        "What to show",
        (
            ("--exchange N", "Only this request, phase by phase; -o then draws its packets."),
            ("--top N", "The N slowest requests phase by phase; 0 for all."),
            ("--json, --jsonl", "Print the JSON document (a list for several files); one line per request."),
            ("-o, --output NAME", "Also write .png, .svg, .pdf, .json; .pcapng with comments; repeatable."),
            ("--embed-keys", "Put the session keys into the .pcapng: as secret as the traffic.", RARE),
            ("--picture WHICH", "waterfall, lanes (--exchange), arrival, distributions, budget."),
            ("--force", "Replace existing files.", RARE),
            ("--slo GOALS", "total=5000,p99.ttft=900,error=1% (ms): exit 4 when one is broken."),
            ("--strict", "Exit 2 when the result is partial: cut file, drops, incomplete requests."),
            ("--help-all", "Also --jobs, --embed-keys, --force."),
            ALWAYS,
        ),
    ),
)


@click.command(
    cls=Grouped,
    sections=SECTIONS,
    epilog="Exit codes: 0 ok, 1 a request failed, 2 partial, 4 a goal is broken, 64 usage, 65 input, 73 output.",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--keylog", type=click.Path(dir_okay=False))
@click.option("--json", is_flag=True)
@click.option("--jsonl", is_flag=True)
@click.option("-o", "--output", "outputs", type=click.Path(), multiple=True)
@click.option("--force", is_flag=True)
@click.option("--embed-keys", is_flag=True)
@click.option("--filter", "filters", multiple=True)
@click.option("--connection", type=int, multiple=True)
@click.option("--exchange", type=int)
@click.option("--top", type=click.IntRange(min=0))
@click.option("--picture", type=click.Choice(("waterfall", "lanes", "arrival", "distributions", "budget")))
@click.option("--slo")
@click.option("--strict", is_flag=True)
@click.option("--jobs", type=click.IntRange(min=1))
@common_options
def analyze(**options: object) -> int:
    """Split every request of capture files into its phases.

    FILE is a capture (pcap, pcapng, snoop; .gz, .zst, .lz4), a folder of them, or - for standard input.

    \b
    netdiag analyze slow.pcapng --keylog keys.txt
    netdiag analyze slow.pcapng --exchange 3 -o request3.png
    netdiag analyze captures/ --filter host=api.example.com --jsonl
    """
    return run(AnalyzeOptions(**options))  # type: ignore[arg-type]


@seldom()  # loading is when most objects are made
def run(options: AnalyzeOptions) -> int:
    """Do what the options say; the exit code."""
    from netdiag.cli import exit_codes, outputs
    from netdiag.cli.inputs import inputs, parse_filters
    from netdiag.cli.results import ENDINGS, check_goals
    from netdiag.errors import UsageError

    if options.json and options.jsonl:
        raise UsageError("--json and --jsonl exclude each other")
    outputs.check(options.outputs, ENDINGS, force=options.force)
    check_goals(options.slo)
    files = list(inputs(options.files))
    if not files:
        raise UsageError(f"no file in {', '.join(options.files)}")
    if options.outputs and len(files) > 1:
        raise UsageError("-o writes the result of one file; give one")
    words = parse_filters(options.filters, options.connection)
    options, unreadable = without_unreadable_keylog(options)
    with ExitStack() as stack:
        if any(outputs.needs_packets(path, options.exchange, options.picture) for path in options.outputs):
            files = [_kept(files[0], options, stack)]
        results = _results(files, options, words)
        codes = [_code(result, options) for result in _render(results, options, len(files))]
    return exit_codes.worst([*codes, unreadable])


def _kept(file: Input, options: AnalyzeOptions, stack: ExitStack) -> Input:
    """The file, which can be read again as long as the stack lasts."""
    from dataclasses import replace

    from netdiag.cli.reading import readable_again

    path = stack.enter_context(readable_again(file.path, quiet=options.json or options.jsonl))
    return replace(file, kept=path)


def without_unreadable_keylog(options: AnalyzeOptions) -> tuple[AnalyzeOptions, int]:
    """Packets without their keys still tell most: say what is wrong with the key log, go on, and exit with its code."""
    from dataclasses import replace

    from netdiag import api
    from netdiag.cli.console import note
    from netdiag.errors import KeyLogError

    try:
        if options.keylog is not None:
            api.check_keylog(options.keylog)
    except KeyLogError as error:
        note(f"netdiag: {error}; going on without keys")
        return replace(options, keylog=None), KeyLogError.exit_code
    return options, 0


def _results(files: list[Input], options: AnalyzeOptions, words: FilterWords) -> Iterator[Result]:
    from netdiag.cli.console import debugging
    from netdiag.errors import NetdiagError, NotACapture

    others: list[NotACapture] = []
    for file in files:
        try:
            yield Result(file, _analyse(file, options, words))
        except NotACapture as error:
            if file.from_folder:
                others.append(error)
            else:
                yield _failed(file, error, len(files))
        except NetdiagError as error:
            yield _failed(file, error, len(files))
        except Exception as error:
            if len(files) == 1 or debugging():
                raise
            yield Result(
                file, None, NetdiagError(f"a bug of netdiag: {type(error).__name__}: {error} (--debug tells more)")
            )
    yield from _passed_over(others, options, len(files))


def _passed_over(others: list[NotACapture], options: AnalyzeOptions, count: int) -> Iterator[Result]:
    """Say which files of a folder are no captures; when none of them is one, that is the folder's error."""
    from netdiag.cli.console import note
    from netdiag.cli.inputs import Input
    from netdiag.errors import READS, NotACapture

    if not others:
        return
    names = ", ".join(Path(error.path or "").name for error in others[:3])
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    if len(others) < count:
        note(f"passed over, no captures: {names}{more}")
        return
    error = NotACapture(f"no capture in it, only {names}{more}", path=", ".join(options.files), advice=READS)
    yield _failed(Input(str(error.path)), error, count)


def _failed(file: Input, error: NetdiagError, count: int) -> Result:
    """With one file its error is the command's; with several the others still count."""
    if count == 1:
        raise error
    return Result(file, None, error)


def _analyse(file: Input, options: AnalyzeOptions, words: FilterWords) -> Analysis:
    from dataclasses import replace

    from netdiag.analysis.selection import select
    from netdiag.cli.console import note
    from netdiag.cli.reading import read
    from netdiag.collection import keep_for_good
    from netdiag.stats.distribution import statistics

    quiet = options.json or options.jsonl
    in_full = quiet or options.asks_for_all
    whole = read(
        file.kept or file.path, options.keylog, quiet=quiet, jobs=options.jobs, name=file.path, in_full=in_full
    )
    if len(options.files) == 1 and not file.from_folder:
        keep_for_good()
    chosen = words.filter(whole.source.first_at)
    if not chosen:
        return whole
    part = select(whole, chosen)
    if not part.connections:
        note(f"{file.path}: none of its {len(whole.connections):,} connections passes the filter")
    return replace(part, statistics=statistics(part.exchanges))


def _render(results: Iterator[Result], options: AnalyzeOptions, count: int) -> Iterator[Result]:
    """Print each result and write what ``-o`` asks for; several end with a table."""
    if options.json:
        shown = _documents(results, count)
    elif options.jsonl:
        shown = _lines(results)
    else:
        shown = _reports(results, options, count)
    for result in shown:
        if result.analysis is not None:
            _write_outputs(result.analysis, result.input.kept or result.input.path, options)
        yield result


def _code(result: Result, options: AnalyzeOptions) -> int:
    """The exit code of one file; its goals are answered on the way."""
    from netdiag.cli import exit_codes
    from netdiag.cli.results import print_goals

    goals = 0
    if result.analysis is not None:
        stream = sys.stderr if options.json or options.jsonl else sys.stdout
        goals = print_goals(result.analysis, options.slo, stream=stream)
    return max(goals, exit_codes.of_result(result.analysis, result.error, strict=options.strict))


def _documents(results: Iterator[Result], count: int) -> Iterator[Result]:
    from netdiag.export import json

    done: list[Result] = []

    def analyses() -> Iterator[Analysis]:
        for result in results:
            done.append(result)
            _complain(result)
            if result.analysis is not None:
                yield result.analysis

    if count == 1:
        for analysis in analyses():
            json.write(analysis, sys.stdout)
    else:
        json.write_list(analyses(), sys.stdout)
    yield from done


def _lines(results: Iterator[Result]) -> Iterator[Result]:
    from netdiag.export import json

    for result in results:
        _complain(result)
        for exchange in result.analysis.exchanges if result.analysis else ():
            sys.stdout.write(json.exchange_line(result.analysis, exchange))  # type: ignore[arg-type]
            sys.stdout.flush()
        yield result


def _reports(results: Iterator[Result], options: AnalyzeOptions, count: int) -> Iterator[Result]:
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.export.terminal.files import file_row, files_table
    from netdiag.export.terminal.tables import Row
    from netdiag.export.text import Selection, report

    rows: list[Row] = []
    width = width_of()
    selection = Selection(top=options.top, exchange_id=options.exchange)
    for result in results:
        if result.analysis is not None:
            _check_exchange(result.analysis, options)
            if count <= MOST_FULL_REPORTS or options.exchange is not None:
                show(report(result.analysis, width=width, ascii_only=ascii_only(), selection=selection))
                show(()) if count == 1 else click.echo()
        rows.append(file_row(result.input.path, result.analysis, result.error))
        yield result
    if count > 1:
        show(files_table(rows, width=width, ascii_only=ascii_only()))


def _check_exchange(analysis: Analysis, options: AnalyzeOptions) -> None:
    from netdiag.errors import UsageError
    from netdiag.records.labels import exchange_of

    if options.exchange is not None and exchange_of(analysis, options.exchange) is None:
        raise UsageError(
            f"there is no request {options.exchange}: there are {len(analysis.exchanges)}, numbered from 0"
        )


def _write_outputs(analysis: Analysis, source: str, options: AnalyzeOptions) -> None:
    from netdiag.cli import outputs

    for path in outputs.pictures_last(options.outputs):
        wanted = outputs.Wanted(
            path=path,
            ending=outputs.ending_of(path),
            drawing=options.picture,
            exchange_id=options.exchange,
            source=source,
            keylog=options.keylog,
            embed_keys=options.embed_keys,
            is_part=bool(options.filters or options.connection),
        )
        outputs.write(analysis, wanted)


def _complain(result: Result) -> None:
    from netdiag.cli.console import note

    if result.error is not None:
        note(f"netdiag: {result.error}")
