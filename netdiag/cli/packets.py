"""``netdiag packets``."""

from __future__ import annotations

import click

from netdiag.cli.console import common_options


@click.command()
@click.argument("file")
@click.option("--exchange", type=int, required=True, metavar="N", help="The request, as numbered by analyze.")
@click.option("--keylog", type=click.Path(dir_okay=False), help="TLS session keys.")
@common_options
def packets(file: str, exchange: int, keylog: str | None) -> None:
    """Show the frames behind one request, and ready Wireshark display filters for them.

    \b
    netdiag packets slow.pcapng --exchange 3
    """
    from netdiag import api
    from netdiag.cli.console import ascii_only, console, show
    from netdiag.cli.reading import read
    from netdiag.errors import UsageError
    from netdiag.export.terminal.connections import packets_table
    from netdiag.records.labels import exchange_of

    analysis = read(file, keylog)
    chosen = exchange_of(analysis, exchange)
    if chosen is None:
        raise UsageError(f"there is no request {exchange}: there are {len(analysis.exchanges)}, numbered from 0")
    lanes = api.lanes(file, exchange, keylog=keylog)
    show(packets_table(analysis, chosen, lanes, width=console().width, ascii_only=ascii_only()))
