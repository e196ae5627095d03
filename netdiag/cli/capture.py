"""``netdiag capture``."""

from __future__ import annotations

import sys
import threading
import time

import click

from netdiag.cli.console import common_options
from netdiag.cli.durations import SECONDS

EXIT_RECORDER_TROUBLE = 69
_REGULAR_ENDS = frozenset({"stop", "seconds", "megabytes"})


@click.command(epilog="Exit codes: 0 ok, 64 usage, 69 no right to capture, or the recorder failed, 73 output.")
@click.option(
    "-o", "--output", type=click.Path(), required=True, metavar="NAME.pcapng", help="The file; a ring numbers it."
)
@click.option("--host", "hosts", multiple=True, metavar="ADDRESS", help="Only this address (with --port); repeatable.")
@click.option(
    "--port",
    "ports",
    type=click.IntRange(1, 65_535),
    multiple=True,
    metavar="N",
    help="Only this port and DNS; repeatable.",
)
@click.option("--seconds", type=SECONDS, metavar="S", help="Stop after this long; otherwise ^C.")
@click.option("--megabytes", type=float, metavar="M", help="Stop at this size.")
@click.option("--ring", "ring_files", type=int, metavar="N", help="Keep only the last N files …")
@click.option("--ring-megabytes", type=float, default=64.0, metavar="M", help="… of this size each [64].")
@click.option(
    "--capture",
    "backend",
    type=click.Choice(("auto", "dumpcap", "scapy", "pyshark")),
    default="auto",
    help="What captures.",
)
@click.option("--interface", metavar="NAME", help="The ways to the Internet and loopback otherwise.")
@common_options
def capture(
    output: str,
    hosts: tuple[str, ...],
    ports: tuple[int, ...],
    seconds: float | None,
    megabytes: float | None,
    ring_files: int | None,
    ring_megabytes: float,
    backend: str,
    interface: str | None,
) -> int:
    """Record packets until ^C or a limit; the files are complete whatever ends it.

    \b
    netdiag capture -o slow.pcapng --seconds 30
    netdiag capture -o watch.pcapng --ring 10
    netdiag capture -o api.pcapng --host 203.0.113.7 --port 443
    """
    from netdiag.capture.record import RecordConfig, record

    config = RecordConfig(
        path=output,
        backend=backend,
        interface=interface,
        hosts=hosts,
        ports=ports,
        seconds=seconds,
        megabytes=megabytes,
        ring_files=ring_files,
        ring_megabytes=ring_megabytes,
    )
    line = _Line()
    done = record(config, stop=threading.Event(), progress=line)
    line.clear()
    click.echo("\n".join(done.paths))
    _summary(sum(one.counts.received or 0 for one in done.captured), done.dropped, done.ended_by)
    return 0 if done.ended_by in _REGULAR_ENDS else EXIT_RECORDER_TROUBLE


class _Line:
    """How long and how much so far: one line that rewrites itself, on a terminal only."""

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty()
        self._next_s = 0.0

    def __call__(self, seconds: float, size_bytes: int) -> None:
        if self._wanted and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + 0.5
            click.echo(f"\r{seconds:6.0f} s  {size_bytes / 1e6:8.1f} MB  (^C stops)", err=True, nl=False)

    def clear(self) -> None:
        """Take the line away."""
        if self._wanted:
            click.echo("\r" + " " * 40 + "\r", err=True, nl=False)


def _summary(received: int, dropped: int | None, ended_by: str) -> None:
    from netdiag.cli.console import note

    drops = "drops unknown" if dropped is None else f"{dropped:,} dropped"
    why = "" if ended_by in _REGULAR_ENDS else f"; ended by the recorder: {ended_by}"
    note(f"{received:,} packets, {drops}{why}")
