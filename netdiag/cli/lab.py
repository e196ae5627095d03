"""``netdiag lab``: faults with known truth. Thin: the lab builds and serves, the analysis judges, one table puts both side by side."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netdiag.cli.console import common_options
from netdiag.cli.lab_live import TIERS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from netdiag.lab.config import LabConfig
    from netdiag.lab.server import LabServer

TIER_WORDS = (
    "netdiag lab run NAME --tier …: T0 writes the packets without a network, T1 probes a real server on loopback, T2 has both in network"
    " namespaces with the scenario's path between them."
)
_FOLDER = click.Path(file_okay=False, path_type=Path)


def _scenarios(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For the shell: names that begin like this, and files where none does."""
    from click.shell_completion import CompletionItem

    from netdiag.lab.scenario import bundled_names

    names = [CompletionItem(name) for name in bundled_names() if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


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
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.export.terminal.page import STRONG, Page
    from netdiag.lab.behaviour import Behaviour
    from netdiag.lab.config import LabConfig

    page = Page(width_of(), ascii_only=ascii_only())
    for title, settings in (("of each answer", Behaviour()), ("of the server", LabConfig())):
        page.line((title, STRONG))
        told = _field_texts(type(settings))
        for field in dataclasses.fields(settings):
            if field.name != "behaviour":
                kind = str(field.type).replace(" | None", "")
                text = " ".join(told.get(field.name, "").replace("``", "").split())
                page.hanging(2, f"{field.name:21} ", f"{kind}, {getattr(settings, field.name)}.", text)
        page.blank()
    show(page.lines)


def _field_texts(cls: type) -> dict[str, str]:
    """What the source says under each field of a class."""
    import ast
    import inspect

    (definition,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, after in itertools.pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            found[field.target.id] = str(ast.literal_eval(after.value))
    return found


@lab.command("list")
@common_options
def list_() -> None:
    """List the scenarios, and where each can be run."""
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.export.terminal.page import MUTED, STRONG, Page
    from netdiag.lab.scenario import bundled, bundled_names

    page = Page(width_of(), ascii_only=ascii_only())
    widths = max(map(len, bundled_names())), len(" ".join(TIERS))
    page.line((f"{'scenario':{widths[0]}}  {'tiers':{widths[1]}}  what happens", STRONG))
    for scenario in map(bundled, bundled_names()):
        page.hanging(0, f"{scenario.name:{widths[0]}}  {' '.join(scenario.tiers):{widths[1]}}  ", scenario.title)
    page.blank()
    page.wrapped(0, (TIER_WORDS, MUTED))
    show(page.lines)


@lab.command()
@click.argument("scenario", shell_complete=_scenarios)
@common_options
def show(scenario: str) -> None:
    """Print a scenario (TOML), to begin your own with."""
    from netdiag.lab.scenario import bundled_text

    click.echo(bundled_text(scenario), nl=False)


@lab.command()
@click.argument("scenario", shell_complete=_scenarios)
@click.option("--tier", type=click.Choice(TIERS), default="T0", show_default=True, help="T1: loopback. T2: namespaces.")
@click.option("-n", "--trials", default=3, show_default=True, type=click.IntRange(min=1), help="Calls on T1 and T2.")
@click.option("-o", "--output", type=_FOLDER, metavar="FOLDER", help="T0: keep NAME.pcapng and NAME.truth.json here.")
@click.option("--without-keys", is_flag=True, help="T0: analyse as if the keys were not there.")
@common_options
def run(scenario: str, tier: str, trials: int, output: Path | None, without_keys: bool) -> None:
    """Run a scenario; print truth beside what netdiag says.

    SCENARIO is a name from the list, or a TOML file. On T0 its packets are written without a network; on T1 a real server answers a real
    probe on loopback; on T2 both are in network namespaces with the scenario's path and name server between them.

    \b
    netdiag lab run loss-fast
    netdiag lab run slow-dns --tier T2
    netdiag lab run my-fault.toml -o captures/
    """
    from netdiag.cli.lab_run import run_built, run_live
    from netdiag.errors import UsageError
    from netdiag.lab.scenario import load

    plan = load(scenario)
    if tier == "T0":
        run_built(plan, output=output, without_keys=without_keys)
    elif output is not None or without_keys:
        raise UsageError(f"--output and --without-keys are for T0, not {tier}")
    else:
        run_live(plan, tier, trials=trials)


@lab.command()
@click.option("--tier", "tiers", type=click.Choice(TIERS), multiple=True, help="T0 unless given; repeatable.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(min=0), help="The first seed.")
@click.option(
    "--seeds",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many; every one but the first varies all numbers.",
)
@click.option("--scenario", "names", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option("--doses", is_flag=True, help="Also sweep each cause from nothing to four times its size.")
@click.option("-n", "--trials", default=3, show_default=True, type=click.IntRange(min=1), help="Calls on T1 and T2.")
@common_options
def score(tiers: tuple[str, ...], seed: int, seeds: int, names: tuple[str, ...], doses: bool, trials: int) -> int:
    """Measure the analysis against the truth.

    Errors per phase, and where injected time landed.

    A tier that cannot be run here is left out, with the reason.

    \b
    netdiag lab score --seeds 20
    netdiag lab score --tier T1 --tier T2 --doses
    netdiag lab score --scenario loss-tail --doses
    """
    from netdiag.cli.lab_score import measure

    return measure(tiers or ("T0",), names, seeds=range(seed, seed + seeds), doses=doses, trials=trials)
