"""``--llm`` and its companions: from words on the command line to a call of a model's API. The key comes from the environment alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netdiag.cli.probe_options import ProbeOptions

if TYPE_CHECKING:
    from netdiag.probe.llm import LlmCall
    from netdiag.probe.plan import ProbeConfig

LAB_MODEL = "lab"


def llm_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--llm`` and its companions to a command."""
    for option in (
        click.option("--key-env"),
        click.option("--no-stream", is_flag=True),
        click.option("--max-tokens", type=int),
        click.option("--model"),
        click.option("--prompt"),
        click.option("--llm", type=click.Choice(("openai", "openai-responses", "anthropic", "raw"))),
    ):
        function = option(function)
    return function


def llm_call(options: ProbeOptions, environment: Mapping[str, str] = os.environ) -> LlmCall | None:
    """The call that the options describe; None without ``--llm``. Raises ``UsageError`` for options that need it or contradict it."""
    from netdiag.errors import UsageError
    from netdiag.probe import llm

    if options.llm is None:
        _refuse_companions(options)
        return None
    if options.llm == "raw" and options.prompt is None:
        raise UsageError("--llm raw: the whole body comes from --prompt TEXT or --prompt @FILE")
    plain = options.llm == "raw"
    return llm.LlmCall(
        api=options.llm,
        prompt=llm.DEFAULT_PROMPT if options.prompt is None else prompt_text(options.prompt),
        model=options.model or (LAB_MODEL if options.lab and not plain else None),
        max_tokens=llm.DEFAULT_MAX_TOKENS if options.max_tokens is None and not plain else options.max_tokens,
        stream=not options.no_stream,
        members="".join(options.data) or "{}",
        key=_key(options, environment),
    )


def _refuse_companions(options: ProbeOptions) -> None:
    from netdiag.errors import UsageError

    given = {
        "--prompt": options.prompt,
        "--model": options.model,
        "--max-tokens": options.max_tokens,
        "--no-stream": options.no_stream or None,
        "--key-env": options.key_env,
    }
    name = next((name for name, value in given.items() if value is not None), None)
    if name is not None:
        raise UsageError(f"{name} needs --llm")


def prompt_text(text: str) -> str:
    """The prompt itself, or the content of the file after ``@`` (``@-``: standard input). Raises ``UsageError``."""
    from netdiag.errors import UsageError

    if not text.startswith("@"):
        return text
    try:
        octets = sys.stdin.buffer.read() if text == "@-" else Path(text[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"--prompt {text}: {error.strerror}") from error
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"--prompt {text}: not UTF-8 at octet {error.start}") from error


def _key(options: ProbeOptions, environment: Mapping[str, str]) -> str | None:
    """A variable that was named must be there; the usual one may be missing. The lab gets no real key unasked."""
    from netdiag.errors import UsageError
    from netdiag.probe.llm import KEY_VARIABLES

    if options.key_env is not None:
        if not environment.get(options.key_env):
            raise UsageError("the environment variable of --key-env is not set")  # its name may be a key by mistake
        return environment[options.key_env].strip()
    usual = None if options.lab else KEY_VARIABLES.get(options.llm or "")
    return (environment.get(usual, "").strip() or None) if usual else None


def announce(config: ProbeConfig, *, times: int = 1) -> None:
    """What ``times`` runs of the plan may cost, before the first begins, on standard error."""
    from netdiag.cli.console import note
    from netdiag.probe.llm import token_budget

    if config.llm is None:
        return
    budget = token_budget(config.llm, times * config.request_count())
    output = (
        "output tokens without a limit" if budget.output_tokens is None else f"{budget.output_tokens:,} output tokens"
    )
    on_top = [
        *(["retries"] if config.policy != "none" else []),
        *([f"up to {config.most_broken_rounds} rounds broken by a 429 or 503"] if config.repeats_broken_rounds else []),
    ]
    more = f"; on top come {' and '.join(on_top)}" if on_top else ""
    key = "" if config.llm.key is not None else "; no API key is sent"
    note(
        f"token budget: {budget.requests:,} requests, at most {output}, about {budget.input_tokens_about:,} input tokens"
        f"{more}{key}"
    )
