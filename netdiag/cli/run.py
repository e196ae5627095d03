"""``netdiag run``: the program's own output stays its own; the report is on standard error, as that of ``time`` is."""

from __future__ import annotations

import sys

import click

from netdiag.cli.console import common_options
from netdiag.cli.durations import SECONDS

_SIGNAL_BASE = 128


@click.command(
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog="Exit codes: the program's own when it is not 0; then 0 ok, 1 a request failed, 69 no right to capture.",
)
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND [ARGUMENT]...", type=click.Path())
@click.option("--timeout", type=SECONDS, metavar="SECONDS", help="End the program after this long.")
@click.option(
    "--capture", type=click.Choice(("auto", "dumpcap", "scapy", "pyshark")), default="auto", help="What captures."
)
@click.option("--capture-interface", metavar="NAME", help="The ways to the Internet and loopback otherwise.")
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(),
    multiple=True,
    metavar="NAME",
    help="Also write .png .svg .pdf .json .pcapng; repeatable.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--embed-keys", is_flag=True, help="Put the session keys into the .pcapng. Secret!")
@click.option("--keep-keys", type=click.Path(), metavar="FILE", help="Keep the session keys in this file (0600).")
@click.option("--top", type=click.IntRange(min=0), metavar="N", help="The N slowest in full; 0 for all.")
@common_options
def run(
    command: tuple[str, ...],
    timeout: float | None,
    capture: str,
    capture_interface: str | None,
    outputs: tuple[str, ...],
    force: bool,
    embed_keys: bool,
    keep_keys: str | None,
    top: int | None,
) -> int:
    """Run a program under a capture; its requests are split as a probe's are.

    The keys of programs that honour SSLKEYLOGFILE (curl, Python, Node and others) are used and then removed.

    \b
    netdiag run -- curl https://example.com/
    netdiag run -o app.png -- python app.py
    """
    from netdiag import api
    from netdiag.cli import outputs as result_files
    from netdiag.cli import results
    from netdiag.probe.command import CommandConfig

    result_files.check(outputs, results.ENDINGS, force=force)
    plan = CommandConfig(
        command=command,
        capture=capture,
        interface=capture_interface,
        save_capture=results.capture_path(outputs, force=force),
        embed_keys=embed_keys,
        keep_keys=keep_keys,
        timeout_s=timeout,
    )
    done = api.run_command(plan)
    results.print_report(done.analysis, top=top, stream=sys.stderr)
    results.write_files(done.analysis, outputs)
    results.say_what_was_written(outputs, embed_keys=embed_keys, keep_keys=keep_keys)
    if done.exit_code:
        return done.exit_code if done.exit_code > 0 else _SIGNAL_BASE - done.exit_code
    return int(any(exchange.failed for exchange in done.analysis.exchanges))
