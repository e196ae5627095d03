"""``netdiag completion``."""

from __future__ import annotations

import click

from netdiag.cli.console import common_options

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@common_options
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    eval "$(netdiag completion bash)"        in ~/.bashrc
    eval "$(netdiag completion zsh)"         in ~/.zshrc
    netdiag completion fish | source         in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from netdiag.errors import UsageError

    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"this version of click has no completion for {shell}")
    click.echo(found(ctx.find_root().command, {}, "netdiag", "_NETDIAG_COMPLETE").source())
