"""``netdiag verify``."""

from __future__ import annotations

import click

from netdiag.cli.console import common_options


@click.command()
@click.argument("file", type=click.Path())
@click.option("--keylog", type=click.Path(dir_okay=False), help="TLS session keys, given to both witnesses.")
@click.option("--all", "show_all", is_flag=True, help="Also list differences of a known kind.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@common_options
@click.pass_context
def verify(context: click.Context, file: str, keylog: str | None, show_all: bool, as_json: bool) -> None:
    """Compare what netdiag says of a capture with what tshark says, field by field.

    \b
    netdiag verify slow.pcapng --keylog keys.txt

    Exit codes: 0 they agree or differ for known reasons, 1 they differ otherwise, 69 no tshark.
    """
    import json

    from netdiag import api
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.cli.reading import readable_again
    from netdiag.export.terminal.verification import verification_lines, verification_mapping

    with readable_again(file, quiet=as_json) as path:
        result = api.verify(path, keylog=keylog)
    if as_json:
        click.echo(json.dumps(verification_mapping(result), indent=2))
    else:
        show(verification_lines(result, width=width_of(), ascii_only=ascii_only(), show_all=show_all))
    context.exit(1 if result.unexplained else 0)
