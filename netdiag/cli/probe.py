"""``netdiag probe``: options with curl's names, one plan, one call of the library, one report, exit code."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netdiag.cli.console import common_options
from netdiag.cli.durations import SECONDS
from netdiag.cli.help import ALWAYS, RARE, Grouped, Section
from netdiag.cli.llm_call import announce, llm_call, llm_options
from netdiag.cli.probe_options import ProbeOptions

if TYPE_CHECKING:
    from netdiag.probe.plan import ProbeConfig
    from netdiag.records.analysis import Analysis

LAB_PATH = "/v1/chat/completions"
LAB_BODY = b'{"model": "lab", "stream": true, "messages": [{"role": "user", "content": "hello"}]}'

SECTIONS: tuple[Section, ...] = (
    (
        "What to ask (names as curl's)",
        (
            ("-X, --request METHOD", "GET, or POST with -d."),
            ("-H, --header 'NAME: VALUE'", "A header field, or @FILE of them; repeatable."),
            ("-d, --data DATA", "The body, or @FILE; several are joined by &."),
            ("-A, --user-agent TEXT", "Instead of netdiag's own.", RARE),
            ("-L, --location", "Follow redirects, one row a hop.", RARE),
            ("-k, --insecure", "Do not verify the certificate; results say so."),
            ("--cacert FILE", "Trust only these certificates (PEM)."),
            ("--resolve HOST:PORT:ADDR", "Connect to this address; repeatable."),
            ("-x, --proxy URL", "HTTP proxy; the environment's is not used."),
            ("--allow-link-local", "Permit link-local and metadata addresses.", RARE),
            ("--lab", "The built-in server on loopback, no URL."),
            ("--llm API, --model NAME", "openai, openai-responses, anthropic, raw."),
        ),
    ),
    (
        "A call of a model's API",
        (
            ("--prompt TEXT|@FILE", "What to ask; all of the body with raw.", RARE),
            ("--max-tokens N", "Longest answer [64].", RARE),
            ("--no-stream", "Whole answers (arms: h2+stream, h2+whole).", RARE),
            ("--key-env NAME", "Variable with the key [$OPENAI_API_KEY …].", RARE),
        ),
    ),
    (
        "How often, in which ways",
        (
            ("-n, --trials N", "Calls per arm [4], and one not counted."),
            ("--http1.1, --http2", "Only this protocol; otherwise both."),
            ("--warm", "Reuse one connection per arm."),
            ("--arm WORDS", "h2+warm, h1+tls1.2, h2+k8+separate, h1+idle6s."),
            ("-m, --timeout, --max-time TIME", "For one attempt, such as 500ms [30s]."),
            ("--concurrency N", "Calls at once.", RARE),
            ("--idle TIME", "Pause between calls [250ms or 5 round trips].", RARE),
            ("--policy NAME", "Retries like openai, anthropic, article [none].", RARE),
            ("--seed N", "Of the arms' random order.", RARE),
        ),
    ),
    (
        "Time limits, such as 6s or 500ms",
        (
            ("--connect-timeout TIME", "Name and TCP [10s].", RARE),
            ("--tls-timeout TIME", "TLS handshake [10s].", RARE),
            ("--first-timeout TIME", "Until the first event of a stream.", RARE),
            ("--gap-timeout TIME", "Silence between events.", RARE),
        ),
    ),
    (
        "Capture and results",
        (
            ("--capture WHICH", "auto, dumpcap, scapy, pyshark, none."),
            ("--capture-interface NAME", "By the route to the target otherwise.", RARE),
            ("-o, --output NAME", ".png .svg .pdf .json .pcapng; repeatable."),
            ("--picture WHICH", "waterfall, arrival (streams), distributions, ecdf,"),
            ("", "differences, budget."),
            ("--embed-keys", "Session keys into the .pcapng. Secret!", RARE),
            ("--keep-keys FILE", "Session keys into a file. Secret!", RARE),
            ("--json", "Print the JSON document."),
            ("--top N", "The N slowest in full.", RARE),
            ("--slo GOALS", "total=5000,p99.ttft=900,error=1% (ms): exit 4."),
            ("--force, --strict", "Replace files; exit 2 for a partial result.", RARE),
            ("--help-all", "Also pauses, time limits, prompts, keys, retries."),
            ALWAYS,
        ),
    ),
)


@click.command(
    cls=Grouped,
    sections=SECTIONS,
    epilog="Exit codes: 0 ok, 1 a request failed, 2 partial, 4 a goal is broken, 64 usage,"
    " 69 no right to capture, 73 output, 75 network.",
)
@click.argument("urls", nargs=-1, metavar="URL...")
@click.option("--lab", is_flag=True)
@click.option("-n", "--trials", default=4)
@click.option("--http1.1", "http1", is_flag=True)
@click.option("--http2", "http2", is_flag=True)
@click.option("--warm", is_flag=True)
@click.option("--arm", "arms", multiple=True)
@click.option("-X", "--request")
@click.option("-H", "--header", "headers", multiple=True)
@click.option("-d", "--data", multiple=True)
@click.option("-k", "--insecure", is_flag=True)
@click.option("--cacert", type=click.Path())
@click.option("--resolve", multiple=True)
@click.option("-x", "--proxy")
@click.option("-L", "--location", is_flag=True)
@click.option("-A", "--user-agent")
@click.option("-m", "--timeout", "--max-time", type=SECONDS, default=30.0)
@click.option("--connect-timeout", type=SECONDS, default=10.0)
@click.option("--tls-timeout", type=SECONDS, default=10.0)
@click.option("--first-timeout", type=SECONDS)
@click.option("--gap-timeout", type=SECONDS)
@click.option("--idle", type=SECONDS)
@click.option("--concurrency", default=1)
@click.option("--seed", type=int)
@click.option("--policy", default="none")
@click.option("--capture", type=click.Choice(("auto", "dumpcap", "scapy", "pyshark", "none")), default="auto")
@click.option("--capture-interface")
@click.option("--allow-link-local", is_flag=True)
@click.option("--embed-keys", is_flag=True)
@click.option("--keep-keys", type=click.Path())
@click.option("--json", is_flag=True)
@click.option("-o", "--output", "outputs", type=click.Path(), multiple=True)
@click.option("--force", is_flag=True)
@click.option("--top", type=click.IntRange(min=0))
@click.option(
    "--picture", type=click.Choice(("waterfall", "distributions", "differences", "ecdf", "budget", "arrival"))
)
@click.option("--slo")
@click.option("--strict", is_flag=True)
@llm_options
@common_options
def probe(**options: object) -> int:
    """Make requests over HTTP/1.1 and HTTP/2 while capturing, and split every one into its phases.

    \b
    netdiag probe https://example.com/ -o timeline.png
    netdiag probe https://api.example.com/v1/models -n 20 --warm -H @fields.txt
    netdiag probe --lab
    """
    return run(ProbeOptions(**options))  # type: ignore[arg-type]


def run(options: ProbeOptions) -> int:
    """Do what the options say; the exit code."""
    from netdiag.cli import exit_codes, outputs, results
    from netdiag.errors import UsageError

    outputs.check(options.outputs, results.ENDINGS, force=options.force)
    results.check_goals(options.slo)
    if bool(options.urls) == options.lab:
        raise UsageError("give a URL, or --lab" if not options.lab else "--lab has its own URL; give one or the other")
    stop = threading.Event()
    with target(options) as changes:
        config = plan(options, **changes)
        announce(config)
        analysis = _measure(config, options, stop)
    _render(analysis, options)
    _way_out(analysis)
    goals = results.print_goals(analysis, options.slo, stream=sys.stderr if options.json else sys.stdout)
    interrupted = exit_codes.INTERRUPTED if stop.is_set() else exit_codes.OK
    return exit_codes.worst([goals, interrupted, exit_codes.of_result(analysis, None, strict=options.strict)])


@contextlib.contextmanager
def target(options: ProbeOptions) -> Iterator[dict[str, Any]]:
    """What ``--lab`` changes in the plan: a server of our own for as long as the probe lasts."""
    if not options.lab:
        yield {}
        return
    from netdiag.lab import Behaviour, LabConfig, LabServer

    behaviour = Behaviour(wait_ms=60, events=12, gap_ms=15, first_event_ms=75)
    with LabServer(LabConfig(behaviour=behaviour, tls_ms=8)) as server:
        changes: dict[str, Any] = {"urls": (server.url + LAB_PATH,), "cacert": options.cacert or server.ca_file}
        if options.llm not in (None, "raw"):
            changes["urls"] = (server.url,)
        elif not options.data and options.llm is None:
            changes |= {"body": LAB_BODY, "headers": (*_headers(options), ("content-type", "application/json"))}
        yield changes


def plan(options: ProbeOptions, **changes: Any) -> ProbeConfig:
    """The plan of a probe. Raises ``UsageError`` for what cannot be."""
    from netdiag.cli.results import capture_path
    from netdiag.probe.plan import ProbeConfig

    llm = llm_call(options)
    body = _body(options) if llm is None else None
    fields: dict[str, Any] = {
        "urls": options.urls,
        "arms": _arms(options),
        "trials": options.trials,
        "warm": options.warm,
        "method": options.request,
        "headers": _headers(options, form=body is not None),
        "body": body,
        "llm": llm,
        "insecure": options.insecure,
        "cacert": options.cacert,
        "resolve": options.resolve,
        "timeout_s": options.timeout,
        "connect_timeout_s": options.connect_timeout,
        "tls_timeout_s": options.tls_timeout,
        "first_event_timeout_s": options.first_timeout,
        "read_timeout_s": options.gap_timeout,
        "capture": options.capture,
        "interface": options.capture_interface,
        "save_capture": capture_path(options.outputs, force=options.force),
        "embed_keys": options.embed_keys,
        "keep_keys": options.keep_keys,
        "seed": options.seed,
        "idle_s": options.idle,
        "concurrency": options.concurrency,
        "proxy": options.proxy,
        "follow_redirects": options.location,
        "policy": options.policy,
        "allow_link_local": options.allow_link_local,
    }
    if options.user_agent is not None:
        fields["user_agent"] = options.user_agent
    return ProbeConfig(**(fields | changes))


def _arms(options: ProbeOptions) -> tuple[str, ...]:
    chosen = tuple(name for name, wanted in (("h1", options.http1), ("h2", options.http2)) if wanted)
    return options.arms or chosen or ("h1", "h2")


def _headers(options: ProbeOptions, *, form: bool = False) -> tuple[tuple[str, str], ...]:
    """Fields as curl takes them: ``Name: value``, ``@FILE`` with one a line, and a form's content type for a body that names none."""
    from netdiag.errors import UsageError

    fields = []
    for line in (line for text in options.headers for line in _lines(text)):
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageError("-H: write 'Name: value', or @FILE")  # the text itself may be a secret
        fields.append((name.strip(), value.strip()))
    if form and not any(name.lower() == "content-type" for name, _ in fields):
        fields.append(("content-type", "application/x-www-form-urlencoded"))
    return tuple(fields)


def _lines(text: str) -> list[str]:
    if not text.startswith("@"):
        return [text]
    return [line for line in _read(text[1:]).decode("utf-8", "replace").splitlines() if line.strip()]


def _body(options: ProbeOptions) -> bytes | None:
    """As curl's ``-d``: parts joined by ``&``; line ends of a file are left out."""
    if not options.data:
        return None
    parts = [
        _read(part[1:]).translate(None, b"\r\n") if part.startswith("@") else part.encode() for part in options.data
    ]
    return b"&".join(parts)


def _read(path: str) -> bytes:
    from netdiag.errors import UsageError

    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"@{path}: {error.strerror}") from error


def _measure(config: ProbeConfig, options: ProbeOptions, stop: threading.Event) -> Analysis:
    from netdiag import api
    from netdiag.cli.interrupt import interruptible
    from netdiag.cli.progress import progress
    from netdiag.errors import ProbeError

    with progress("probing", unit="requests", quiet=options.json) as report, interruptible(stop):
        analysis = api.probe(config, progress=report, stop=stop)
    if not analysis.exchanges and stop.is_set():
        raise KeyboardInterrupt
    if not analysis.exchanges:
        reasons = "; ".join(f"{arm.arm}: {arm.reason}" for arm in analysis.source.unsupported)
        raise ProbeError(f"no request could be made ({reasons or 'stopped before the first one'})")
    return analysis


def _way_out(analysis: Analysis) -> None:
    """What to do about failures that an option would have prevented."""
    from netdiag.cli.console import note
    from netdiag.records.exchange import Outcome

    details = [e.outcome_detail or "" for e in analysis.exchanges if e.outcome is Outcome.TLS_FAIL]
    reasons = [detail for detail in details if "certificate verify failed" in detail]
    for told, way_out in _CERTIFICATE_WAYS_OUT:
        if any(told in reason.lower() for reason in reasons):
            note(way_out)
            return


_CERTIFICATE_WAYS_OUT = (
    (
        "mismatch",
        "the server's certificate is for another name than the URL's (--resolve keeps the name and sets the address); -k does not look",
    ),
    ("expired", "the server's certificate has expired, which only its owner can mend; -k does not look"),
    ("not yet valid", "the server's certificate is not valid yet: is the clock right here? -k does not look"),
    ("", "the server's certificate is not trusted here: --cacert FILE names whom to trust, -k does not look"),
)
"""What the reason of a failed verification says, and what to do; the first that fits."""


def _render(analysis: Analysis, options: ProbeOptions) -> None:
    from netdiag.cli import results

    if options.json:
        from netdiag.export import json

        json.write(analysis, sys.stdout)
    else:
        results.print_report(analysis, top=options.top)
    results.write_files(analysis, options.outputs, drawing=options.picture)
    if not options.json:
        results.say_what_was_written(options.outputs, embed_keys=options.embed_keys, keep_keys=options.keep_keys)
