"""``netdiag packets``."""

from __future__ import annotations

import click

from netdiag.cli.console import common_options


@click.command(epilog="Exit codes: 0 ok, 64 usage, 65 input.")
@click.argument("file", type=click.Path())
@click.option("--exchange", type=int, required=True, metavar="N", help="The request, as numbered by analyze.")
@click.option("--keylog", type=click.Path(dir_okay=False), help="TLS session keys.")
@common_options
def packets(file: str, exchange: int, keylog: str | None) -> None:
    """Show the frames behind one request, and ready Wireshark display filters for them.

    \b
    netdiag packets slow.pcapng --exchange 3
    """
    from netdiag import api
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.cli.reading import read, readable_again
    from netdiag.export.terminal.connections import packets_table

    with readable_again(file) as path:
        analysis = read(path, keylog, name=file)
        lanes = api.lanes(path, exchange, analysis=analysis)
    show(packets_table(analysis, lanes.exchange, lanes, width=width_of(), ascii_only=ascii_only()))
