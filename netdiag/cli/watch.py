"""``netdiag watch``: a small trial again and again, one line each, a table at the end."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from netdiag.cli.console import common_options
from netdiag.cli.durations import SECONDS
from netdiag.cli.help import ALWAYS, Grouped, Section
from netdiag.cli.interrupt import ENDING
from netdiag.cli.llm_call import announce, llm_options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from netdiag.probe.plan import ProbeConfig
    from netdiag.probe.watch import Measure, Tick, WatchPlan
    from netdiag.records.analysis import Analysis
    from netdiag.records.exchange import Exchange

SECTIONS: tuple[Section, ...] = (
    (
        "How often",
        (
            ("--every TIME", "30s, 2min: one trial after the other [10s]."),
            ("--rate N", "Trials per second, ended or not (open loop)."),
            ("-n, --count N", "Stop after so many; else ^C, or 1,000 requests."),
        ),
    ),
    (
        "What to ask (as probe)",
        (
            ("-X, -H, -d, -A, -k, -m", "Method, header, body, agent, no check, limit."),
            ("--cacert FILE, --resolve …", "As probe."),
            ("--http1.1, --http2, --arm WORDS", "HTTP/1.1 alone otherwise; repeatable."),
            ("--capture WHICH", "none [by the kernel's stamps], or as probe."),
            ("--llm API, --model NAME", "A model's API: openai, anthropic, …"),
            ("--prompt, --max-tokens N", "As probe; the answer's length [64]."),
            ("--no-stream, --key-env NAME", "As probe."),
            ("--lab", "The built-in server on loopback, no URL."),
        ),
    ),
    (
        "Results",
        (
            ("--jsonl FILE", "One line per call, flushed; - is standard output."),
            ("--slo GOALS", "total=5000,p99.ttft=900,error=1%: exit 4."),
            ALWAYS,
        ),
    ),
)


@click.command(
    cls=Grouped,
    sections=SECTIONS,
    epilog="Exit codes: 0 ok, 1 a request failed, 4 a goal is broken, 64 usage, 73 output, 75 network.",
)
@click.argument("urls", nargs=-1, metavar="URL")
@click.option("--every", type=SECONDS)
@click.option("--rate", type=float)
@click.option("-n", "--count", type=int)
@click.option("--lab", is_flag=True)
@click.option("--http1.1", "http1", is_flag=True)
@click.option("--http2", "http2", is_flag=True)
@click.option("--arm", "arms", multiple=True)
@click.option("-X", "--request")
@click.option("-H", "--header", "headers", multiple=True)
@click.option("-d", "--data", multiple=True)
@click.option("-A", "--user-agent")
@click.option("-k", "--insecure", is_flag=True)
@click.option("--cacert", type=click.Path())
@click.option("--resolve", multiple=True)
@click.option("-m", "--timeout", "--max-time", type=SECONDS, default=30.0)
@click.option("--capture", type=click.Choice(("auto", "dumpcap", "scapy", "pyshark", "none")), default="none")
@llm_options
@click.option("--jsonl", type=click.Path())
@click.option("--slo")
@common_options
def watch(
    every: float | None, rate: float | None, count: int | None, jsonl: str | None, slo: str | None, **options: Any
) -> int:
    """Repeat a small trial at an interval or a rate, one line each; ^C ends it with a summary.

    \b
    netdiag watch https://example.com/ --every 30 --jsonl watch.jsonl
    netdiag watch https://example.com/ --rate 2 -n 120 --slo p95.total=800
    netdiag watch https://api.example.com --llm openai --model NAME --every 2min

    A server that answers 429 or 503 is left alone for as long as it asks.
    """
    from netdiag.cli import probe as probe_command
    from netdiag.cli import results
    from netdiag.cli.probe_options import ProbeOptions
    from netdiag.errors import UsageError
    from netdiag.probe.watch import WatchPlan

    results.check_goals(slo)
    options["arms"] = options["arms"] or (() if options["http1"] or options["http2"] else ("h1",))
    chosen = ProbeOptions(**(_UNASKED | options))
    if bool(chosen.urls) == chosen.lab:
        raise UsageError("give one URL, or --lab")
    with probe_command.target(chosen) as target:
        config = probe_command.plan(chosen, **target)
        interval = 10.0 if every is None and rate is None else every
        plan = WatchPlan(config=config, every_s=interval, per_second=rate, count=count)
        announce(config, times=plan.most_ticks if count is None else count)
        with _lines(jsonl) as file:
            made = _run(plan, file)
    return _conclude(made, slo, quiet=jsonl == "-")


_UNASKED: dict[str, Any] = {
    "trials": 1, "warm": False, "proxy": None, "location": False, "connect_timeout": 10.0, "idle": None, "concurrency": 1, "seed": None,
    "policy": "none", "capture_interface": None, "allow_link_local": False, "embed_keys": False, "keep_keys": None, "json": False,
    "outputs": (), "force": False, "top": None, "picture": None, "slo": None, "strict": False,
}  # fmt: skip
"""A watch asks for little; the rest of a probe's options is as if not given."""


@contextmanager
def _lines(path: str | None) -> Iterator[TextIO | None]:
    from netdiag.errors import OutputError

    if path is None or path == "-":
        yield sys.stdout if path else None
        return
    try:
        with open(path, "x", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror}", path=path) from error


def _run(plan: WatchPlan, file: TextIO | None) -> list[Tick]:
    """The ticks in which a call was made. On a terminal the table stands below the lines and keeps growing."""
    from netdiag import api
    from netdiag.cli.console import console
    from netdiag.cli.interrupt import interruptible
    from netdiag.probe.watch import watch as ticks

    for needed in ("netdiag.probe.measure", "netdiag.analysis.join", "netdiag.stats.arms"):
        importlib.import_module(needed)  # the first call shall not pay for it
    stop = threading.Event()
    made: list[Tick] = []
    out = console()
    under_way = _UnderWay(api.probe)

    def say() -> None:
        if under_way.count:
            _say(ENDING if plan.every_s is not None else "ending after the requests in flight", file, out)

    with _live_table(out, enabled=file is not sys.stdout) as refresh, interruptible(stop, say):
        try:
            for tick in ticks(plan, under_way, stop):
                if tick.analysis is not None:
                    made.append(tick)  # first, or a ^C while it is shown would lose it
                _show(tick, file, out)
                if tick.analysis is not None:
                    refresh(made)
        except KeyboardInterrupt:
            if not made:
                raise
    if not made and stop.is_set():
        raise KeyboardInterrupt
    return made


class _UnderWay:
    """A measure that knows how many of its trials run."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._lock = threading.Lock()
        self.count = 0

    def __call__(self, config: ProbeConfig) -> Analysis:
        self._add(1)
        try:
            return self._measure(config)
        finally:
            self._add(-1)

    def _add(self, number: int) -> None:
        with self._lock:
            self.count += number


@contextmanager
def _live_table(out: Console, *, enabled: bool) -> Iterator[Callable[[list[Tick]], None]]:
    """All that is printed meanwhile must go through ``out``, or it would run into the table."""
    if not (enabled and out.is_terminal):
        yield lambda _made: None
        return
    from rich.live import Live
    from rich.text import Text

    from netdiag.cli.console import ascii_only

    plain = ascii_only()  # asked before Live puts something of its own in the place of standard output
    with Live(console=out, auto_refresh=False, transient=True) as live:

        def refresh(made: list[Tick]) -> None:
            lines = _summary_lines(made, out, plain=plain)
            live.update(Text("\n").join(lines[: max(3, out.height - 2)]), refresh=True)

        yield refresh


def _summary_lines(made: list[Tick], out: Console, *, plain: bool) -> list[Text]:
    from netdiag.cli.lateness import median_lag_ns, without_percentiles
    from netdiag.export.terminal.page import BAD, Page
    from netdiag.export.terminal.summary import summary
    from netdiag.units import format_duration

    page = Page(out.width, ascii_only=plain)
    page.blank()
    whole, late_ns = _together(made), median_lag_ns(made)
    if whole is not None:
        summary(page, without_percentiles(whole) if late_ns else whole)
    if late_ns:
        page.wrapped(
            0,
            (f"half of the calls began {format_duration(late_ns)} later than scheduled, or more:", BAD),
            "the times above count from when they began, and no percentile is claimed; goals count from the schedule",
        )
    return page.lines


def _say(text: str, file: TextIO | None, out: Console) -> None:
    """Above the table where there is one, else on standard error."""
    from netdiag.cli.console import note

    if out.is_terminal and file is not sys.stdout:
        out.print(text, soft_wrap=True, markup=False, highlight=False)
    else:
        note(text)


def _show(tick: Tick, file: TextIO | None, out: Console) -> None:
    if tick.analysis is None:
        _say(f"{_clock(tick.scheduled_at)}  #{tick.number}  {tick.skipped}", file, out)
        return
    for exchange in tick.analysis.exchanges:
        if file is not sys.stdout:
            fits: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis"} if out.is_terminal else {"soft_wrap": True}
            out.print(_line(tick, exchange), markup=False, highlight=False, **fits)
        if file is not None:
            file.write(_json_line(tick, exchange))
            file.flush()


def _line(tick: Tick, exchange: Exchange) -> str:
    from netdiag.records.labels import result_label
    from netdiag.sanitise import one_line
    from netdiag.stats.durations import durations_ns
    from netdiag.units import format_duration, format_ms

    phases = "  ".join(f"{p.name} {format_ms(p.duration_ns)}" for p in exchange.phases if p.duration_ns >= 50_000)
    first = durations_ns(exchange).get("first_token")  # from the beginning of the call, as in the table
    token = f"  1st token {format_ms(first)}" if first is not None else ""
    token += _stall(exchange)
    lag = f"  started {format_duration(tick.lag_ns)} late" if tick.lag_ns > 10_000_000 else ""
    head = f"{_clock(tick.scheduled_at)}  #{tick.number:<4d} {one_line(exchange.arm or '', most=16):4s} {one_line(result_label(exchange), most=40)}"
    return f"{head}  total {format_ms(exchange.total_ns)} ms{lag}{token}  {phases}"


def _stall(exchange: Exchange) -> str:
    """The longest standstill of a stream, and whose it was."""
    from netdiag.records.stall_words import cause_word
    from netdiag.units import format_ms

    stalls = exchange.stream.stalls if exchange.stream else ()
    if not stalls:
        return ""
    worst = max(stalls, key=lambda stall: stall.excess_ns)
    more = f" (of {len(stalls)})" if len(stalls) > 1 else ""
    return f"  stall {format_ms(worst.excess_ns)} {cause_word(worst)}{more}"


def _json_line(tick: Tick, exchange: Exchange) -> str:
    import json

    from netdiag.export.json import exchange_line

    assert tick.analysis is not None
    row = json.loads(exchange_line(tick.analysis, exchange))
    return json.dumps({**row, "tick": tick.number, "scheduled_at": tick.scheduled_at, "lag_ns": tick.lag_ns}) + "\n"


def _clock(at: int) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(at // 1_000_000_000).strftime("%H:%M:%S")


def _together(made: list[Tick]) -> Analysis | None:
    """All calls as one analysis; None when there was none."""
    from dataclasses import replace

    from netdiag.stats.distribution import statistics

    found = [tick.analysis for tick in made if tick.analysis is not None]
    rows = [(place, exchange) for place, analysis in enumerate(found) for exchange in analysis.exchanges]
    if not rows:
        return None
    calls = {key: number for number, key in enumerate(dict.fromkeys((place, row.call_id) for place, row in rows))}
    numbered = tuple(
        replace(row, id=i, connection_id=None, call_id=calls[place, row.call_id]) for i, (place, row) in enumerate(rows)
    )
    return replace(
        found[-1], exchanges=numbered, connections=(), calls=(), statistics=statistics(numbered), comparisons=()
    )


def _conclude(made: list[Tick], slo: str | None, *, quiet: bool) -> int:
    from netdiag.cli import exit_codes, results
    from netdiag.cli.console import ascii_only, console, show
    from netdiag.cli.lateness import as_scheduled
    from netdiag.errors import ProbeError

    whole, scheduled = _together(made), _together(as_scheduled(made))
    if whole is None or scheduled is None:
        raise ProbeError("no request was made")
    if not quiet:
        show(_summary_lines(made, console(), plain=ascii_only()))
    goals = results.print_goals(scheduled, slo, stream=sys.stderr if quiet else sys.stdout)
    return exit_codes.worst([goals, exit_codes.of_result(whole, None, strict=False)])
