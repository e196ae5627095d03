"""``netdiag schema``."""

from __future__ import annotations

import json

import click

from netdiag.cli.console import common_options


@click.command()
@common_options
def schema() -> None:
    """Print the JSON Schema (draft 2020-12) of the document that --json prints."""
    from netdiag.export.schema import schema as document_schema

    click.echo(json.dumps(document_schema(), indent=2))
