"""``netdiag connections``."""

from __future__ import annotations

import click

from netdiag.cli.console import common_options
from netdiag.collection import seldom


@click.command(epilog="Exit codes: 0 ok, 64 usage, 65 input.")
@click.argument("file", type=click.Path())
@click.option("--keylog", type=click.Path(dir_okay=False), help="TLS session keys, to name the protocol inside.")
@click.option(
    "--filter", "filters", multiple=True, metavar="KEY=VALUE", help="host=, port=, sni=, time=FROM..TO; repeatable."
)
@common_options
@seldom()  # loading is when most objects are made
def connections(file: str, keylog: str | None, filters: tuple[str, ...]) -> None:
    """List the connections of a capture file: who, what, how much, how far away, how it ended.

    \b
    netdiag connections slow.pcapng
    netdiag connections slow.pcapng --filter port=443
    """
    from netdiag.analysis.selection import select
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.cli.inputs import parse_filters
    from netdiag.cli.reading import read
    from netdiag.export.terminal.connections import connections_table

    words = parse_filters(filters)
    analysis = read(file, keylog, in_full=True)
    chosen = select(analysis, words.filter(analysis.source.first_at))
    show(connections_table(chosen, width=width_of(), ascii_only=ascii_only()))
