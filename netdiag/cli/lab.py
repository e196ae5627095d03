"""``netdiag lab``: faults with known truth. Thin: the lab builds and serves, the analysis judges, one table puts both side by side."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netdiag.cli.console import common_options

if TYPE_CHECKING:
    from netdiag.export.terminal.page import Page
    from netdiag.export.terminal.truth import TrueRow
    from netdiag.lab.config import LabConfig
    from netdiag.lab.score import Response, Run, Score
    from netdiag.lab.server import LabServer

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group()
def lab() -> None:
    """Faults with known truth: a server to probe, and scenarios to learn from.

    \b
    netdiag lab serve --set wait_ms=200
    netdiag lab list
    netdiag lab run loss-fast
    """


@lab.command()
@click.option("--host", default="localhost", show_default=True, help="Loopback name or address.")
@click.option("--port", default=0, help="Any free one otherwise.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KNOB=VALUE",
    help="wait_ms=200, gap_ms=30, tls_maximum=1.2 …; repeatable.",
)
@click.option("--clear-text", is_flag=True, help="No TLS: HTTP/1.1, and HTTP/2 by prior knowledge.")
@click.option(
    "--keylog", type=click.Path(dir_okay=False), help="Write the session keys of all connections here (0600)."
)
@click.option("--log", type=click.File("w"), help="Write what the server really did, as JSON lines.")
@common_options
def serve(host: str, port: int, settings: tuple[str, ...], clear_text: bool, keylog: str | None, log: Any) -> int:
    """Serve an LLM-like API over HTTP/1.1 and HTTP/2 until interrupted.

    Any knob may also come with a request: /v1/chat/completions?wait_ms=200&stream=true.

    \b
    netdiag lab serve --port 8443 --set wait_ms=200
    netdiag lab serve --set first_event_ms=300 --set gap_ms=40 --log truth.jsonl
    """
    from netdiag.lab.foreground import serve as serve_until_ended

    config = server_config(host=host, port=port, settings=settings, clear_text=clear_text, keylog=keylog)
    return serve_until_ended(config, announce=_announce, log_stream=log)


def server_config(
    *, host: str, port: int, settings: tuple[str, ...], clear_text: bool = False, keylog: str | None = None
) -> LabConfig:
    """The server's configuration; a knob is one of the server's or one of the answer's. Raises ``UsageError``."""
    from netdiag.lab.behaviour import Behaviour, from_text, is_knob
    from netdiag.lab.config import LabConfig

    answer = Behaviour()
    changes: dict[str, Any] = {"host": host, "port": port, "tls": not clear_text, "keylog": keylog}
    for setting in settings:
        if is_knob(setting.partition("=")[0]):
            answer = from_text(answer, setting, where="--set")
        else:
            changes |= _server_knob(setting)
    return dataclasses.replace(LabConfig(), behaviour=answer, **changes)


def _server_knob(setting: str) -> dict[str, Any]:
    from netdiag.errors import UsageError
    from netdiag.lab.config import LabConfig

    name, equals, value = setting.partition("=")
    known = {f.name: f.type for f in dataclasses.fields(LabConfig) if f.name not in ("behaviour", "protocols", "names")}
    if not equals or name not in known:
        raise UsageError(f"--set {setting}: there is no such knob", advice="The knobs: netdiag lab knobs")
    return {name: _converted(name, value, str(known[name]))}


def _converted(name: str, value: str, kind: str) -> Any:
    from netdiag.errors import UsageError

    try:
        if "bool" in kind:
            return {"true": True, "false": False, "1": True, "0": False}[value.lower()]
        return int(value) if "int" in kind else float(value) if "float" in kind else value
    except (ValueError, KeyError):
        raise UsageError(f"--set {name}={value}: that is no {kind.removesuffix(' | None')}") from None


def _announce(server: LabServer) -> None:
    from netdiag.cli.console import note

    path = "/v1/chat/completions"
    trust = f" --cacert {server.ca_file}" if server.config.tls else ""
    click.echo(server.url)
    sys.stdout.flush()
    note(f"serving; try: netdiag probe {server.url}{path}{trust}")


@lab.command()
@common_options
def knobs() -> None:
    """List what --set, a query or a header can change."""
    from netdiag.cli.console import ascii_only, console, show
    from netdiag.export.terminal.page import STRONG, Page
    from netdiag.export.terminal.tables import Column, Row, table
    from netdiag.lab.behaviour import Behaviour
    from netdiag.lab.config import LabConfig

    page = Page(console().width, ascii_only=ascii_only())
    for title, settings in (("of each answer", Behaviour()), ("of the server", LabConfig())):
        page.line((title, STRONG))
        rows = [
            Row((f.name, str(getattr(settings, f.name)), str(f.type).replace(" | None", "")))
            for f in dataclasses.fields(settings)
            if f.name != "behaviour"
        ]
        table(page, (Column("knob"), Column("default", flexible=True), Column("kind")), rows)
        page.blank()
    show(page.lines)


@lab.command("list")
@common_options
def list_() -> None:
    """List the scenarios that come with netdiag."""
    from netdiag.cli.console import ascii_only, console, show
    from netdiag.export.terminal.page import Page
    from netdiag.export.terminal.tables import Column, Row, table
    from netdiag.lab.scenario import bundled, bundled_names

    page = Page(console().width, ascii_only=ascii_only())
    rows = [Row((name, bundled(name).title)) for name in bundled_names()]
    table(page, (Column("scenario"), Column("what happens", flexible=True)), rows)
    show(page.lines)


@lab.command()
@click.argument("scenario")
@common_options
def show(scenario: str) -> None:
    """Print a scenario as it is written (TOML): a beginning for one of your own."""
    from netdiag.lab.scenario import bundled_text

    click.echo(bundled_text(scenario), nl=False)


@lab.command()
@click.argument("scenario")
@click.option("-o", "--output", type=_FOLDER, metavar="FOLDER", help="Keep NAME.pcapng and NAME.truth.json here.")
@click.option("--without-keys", is_flag=True, help="Analyse as if the keys were not there.")
@common_options
def run(scenario: str, output: Path | None, without_keys: bool) -> None:
    """Build a scenario's packets, analyse them, and print truth beside what netdiag says.

    SCENARIO is a name from the list, or a TOML file.

    \b
    netdiag lab run loss-fast
    netdiag lab run my-fault.toml -o captures/
    """
    from netdiag import api
    from netdiag.cli.console import ascii_only, console, note
    from netdiag.cli.console import show as show_lines
    from netdiag.cli.results import print_report
    from netdiag.export.terminal.truth import truth_table
    from netdiag.lab.builder.output import write
    from netdiag.lab.scenario import load
    from netdiag.lab.score import run as run_scenario

    plan = load(scenario)
    if without_keys:
        plan = dataclasses.replace(plan, capture=dataclasses.replace(plan.capture, secrets="none"))
    done = run_scenario(plan, api.analyze)
    print_report(done.analysis)
    click.echo()
    show_lines(truth_table(plan.title, _truth_rows(done), width=console().width, ascii_only=ascii_only()))
    if output is not None:
        note("written: " + ", ".join(str(path) for path in write(plan, output)))


def _truth_rows(done: Run) -> Iterator[TrueRow]:
    from netdiag.export.terminal.truth import TrueRow
    from netdiag.lab.compare import errors

    truth = done.recorded.truth
    for e in errors(truth, done.analysis):
        exchange = truth.exchanges[e.exchange]
        yield TrueRow(
            request=f"{e.exchange}  {exchange.method} {exchange.path}",
            phase=e.phase,
            true_ns=e.true_ns,
            found_ns=e.found_ns,
            method=e.method or "",
        )


@lab.command()
@click.option(
    "--seeds",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Every seed but the first varies all numbers.",
)
@click.option("--scenario", "names", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option("--doses", is_flag=True, help="Also sweep each cause from nothing to four times its size.")
@common_options
def score(seeds: int, names: tuple[str, ...], doses: bool) -> int:
    """Measure the analysis against the truth of all scenarios: errors per phase, and where injected time landed.

    \b
    netdiag lab score --seeds 20
    netdiag lab score --scenario loss-tail --doses
    """
    from netdiag import api
    from netdiag.cli.console import ascii_only, console
    from netdiag.cli.console import show as show_lines
    from netdiag.export.terminal.page import Page
    from netdiag.lab.scenario import bundled, bundled_names
    from netdiag.lab.score import DEFECTIVE, causes, respond
    from netdiag.lab.score import score as measure

    chosen = [bundled(name) for name in names or [n for n in bundled_names() if n not in DEFECTIVE]]
    page = Page(console().width, ascii_only=ascii_only())
    result = measure(chosen, api.analyze, seeds=range(1, seeds + 1))
    _score_table(page, result)
    if doses:
        page.blank()
        _dose_table(page, [respond(scenario, api.analyze) for scenario in causes(chosen)])
    show_lines(page.lines)
    return int(bool(result.wrong_sums))


def _score_table(page: Page, result: Score) -> None:
    from netdiag.export.terminal.page import STRONG
    from netdiag.export.terminal.tables import Column, Row, table
    from netdiag.units import format_ms

    titles = ("n", "median", "p95", "max", "missing", "extra", "bounds hold")
    page.line((f"{result.runs} runs; absolute errors in ms", STRONG))
    rows = []
    for s in result.by_phase():
        sizes = (format_ms(size, digits=4) for size in (s.median_ns, s.p95_ns, s.max_ns))
        held = f"{s.within_bounds} of {s.bounded}" if s.bounded else ""
        rows.append(Row((s.phase, str(s.n), *sizes, str(s.missing), str(s.extra), held)))
    table(page, (Column("phase"), *(Column(title, right=True) for title in titles)), rows)
    page.blank()
    worst = result.outliers()
    page.line(
        f"{len(worst)} of {len(result.errors)} off by more than 0.1 ms; {len(result.wrong_sums)} sums that are not the total"
    )
    for e in worst[:10]:
        error = (
            "missing"
            if e.found_ns is None
            else "extra"
            if e.true_ns is None
            else f"{format_ms(e.error_ns, digits=3)} ms"
        )
        page.line(f"  {e.scenario} seed {e.seed}, exchange {e.exchange}, {e.phase}: {error}")


def _dose_table(page: Page, responses: Sequence[Response]) -> None:
    from netdiag.export.terminal.tables import Column, Row, table
    from netdiag.units import format_ms

    columns = (
        Column("scenario", flexible=True),
        Column("cause", flexible=True),
        Column("phase"),
        Column("in the right phase", right=True),
        Column("strays ms", right=True),
        Column("monotone"),
    )
    rows = []
    for r in responses:
        share = "–" if r.share_in_right_phase is None else f"{100 * r.share_in_right_phase:.2f} %"
        cells = (
            r.scenario,
            r.cause,
            r.cause_phase,
            share,
            format_ms(r.strays_ns, digits=3),
            "yes" if r.is_monotone else "no",
        )
        rows.append(Row(cells, bad=not r.is_monotone))
    table(page, columns, rows)
