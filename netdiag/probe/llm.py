"""A call of a model's API, from what the user says of it to path, header fields and body. Pure: nothing is read, nothing is sent.

The key is the one secret here. It enters as a value that somebody else read from an environment variable, and leaves only as a header field.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

APIS = ("openai", "openai-responses", "anthropic", "raw")
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "openai-responses": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Where each API's own libraries look for the key."""
DEFAULT_PROMPT = "Count from one to one hundred in words."
DEFAULT_MAX_TOKENS = 64
ANTHROPIC_VERSION = "2023-06-01"

_RESOURCES = {"openai": "/chat/completions", "openai-responses": "/responses", "anthropic": "/messages"}
_OCTETS_PER_TOKEN = 4
"""Of English prose, by the providers' own rule of thumb."""
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCall:
    """What to ask which API. Fields that the API does not have are ignored."""

    api: str
    """One of ``APIS``. ``raw``: the prompt is the whole body; in a JSON object ``stream`` (and what else is given) is set."""
    prompt: str = field(default=DEFAULT_PROMPT, repr=False)
    model: str | None = None
    """None only for ``raw``."""
    max_tokens: int | None = DEFAULT_MAX_TOKENS
    """Most output tokens of one answer; None only for ``raw``."""
    stream: bool = True
    """For arms that name neither ``stream`` nor ``whole``."""
    members: str = field(default="{}", repr=False)
    """A JSON object whose members are added to the body: ``{"temperature": 0}``."""
    key: str | None = field(default=None, repr=False)
    """The API key; None sends none (a local server may ask for none)."""


def endpoint(url: str, api: str) -> str:
    """The URL to post to: ``url`` itself where it names the resource (or for ``raw``), else the resource below it.

    ``https://host`` and ``https://host/v1`` become ``https://host/v1/chat/completions``.
    """
    resource = _RESOURCES.get(api)
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if resource is None or path.endswith(resource):
        return url
    versioned = path if path.rpartition("/")[2].startswith("v") else path + "/v1"
    return urlunsplit(parts._replace(path=versioned + resource))


def headers(call: LlmCall, url: str, *, stream: bool) -> Headers:
    """Content type, what is accepted, and the key in the field where the API wants it."""
    accepted = "text/event-stream" if stream else "application/json"
    version: Headers = (("anthropic-version", ANTHROPIC_VERSION),) if call.api == "anthropic" else ()
    return (("content-type", "application/json"), ("accept", accepted), *version, *_credential(call, url))


def _credential(call: LlmCall, url: str) -> Headers:
    if call.key is None:
        return ()
    if call.api == "anthropic":
        return (("x-api-key", call.key),)
    if _host(urlsplit(url)).endswith(".azure.com"):
        return (("api-key", call.key),)
    return (("authorization", f"Bearer {call.key}"),)


def body(call: LlmCall, url: str, *, stream: bool) -> bytes:
    """The request's content; the same octets for the same call, so that arms differ in nothing else."""
    if call.api == "raw":
        return _raw(call, stream)
    document = _BODIES[call.api](call, url, stream) | json.loads(call.members)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _chat(call: LlmCall, url: str, stream: bool) -> dict[str, Any]:
    # OpenAI's own newer models refuse max_tokens, most compatible servers know nothing else.
    host = _host(urlsplit(url))
    limit = "max_completion_tokens" if host == "api.openai.com" or host.endswith(".openai.azure.com") else "max_tokens"
    document = {"model": call.model, "messages": [_user(call)], limit: call.max_tokens, "stream": stream}
    return document | ({"stream_options": {"include_usage": True}} if stream else {})


def _responses(call: LlmCall, url: str, stream: bool) -> dict[str, Any]:
    document = {"model": call.model, "input": call.prompt, "max_output_tokens": call.max_tokens}
    return document | {"store": False, "stream": stream}


def _messages(call: LlmCall, url: str, stream: bool) -> dict[str, Any]:
    return {"model": call.model, "max_tokens": call.max_tokens, "messages": [_user(call)], "stream": stream}


_BODIES: dict[str, Callable[[LlmCall, str, bool], dict[str, Any]]] = {
    "openai": _chat,
    "openai-responses": _responses,
    "anthropic": _messages,
}


def _user(call: LlmCall) -> dict[str, str]:
    return {"role": "user", "content": call.prompt}


def _raw(call: LlmCall, stream: bool) -> bytes:
    document = json_object(call.prompt)
    if document is None:
        return call.prompt.encode()
    chosen = {"model": call.model, "max_tokens": call.max_tokens}
    document |= {name: value for name, value in chosen.items() if value is not None}
    return json.dumps(document | json.loads(call.members) | {"stream": stream}, ensure_ascii=False).encode()


def json_object(text: str) -> dict[str, Any] | None:
    """The members of a JSON object; None for any other text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def problems(call: LlmCall, urls: tuple[str, ...]) -> list[str]:
    """What makes this call impossible, or the key unsafe."""
    found = []
    if call.api not in APIS:
        return [f"--llm {call.api!r} is none of {', '.join(APIS)}"]
    if call.api != "raw" and not call.model:
        found.append(f"--llm {call.api} needs a model (--model NAME)")
    if call.max_tokens is not None and call.max_tokens < 1:
        found.append("--max-tokens must be at least 1")
    if json_object(call.members) is None:
        found.append("members of the body (-d with --llm) must be a JSON object")
    if call.key is not None and any(c in call.key for c in "\r\n\0"):
        found.append("the API key holds a line break")
    if call.key is not None and any(_in_clear(urlsplit(url)) for url in urls):
        found.append("an API key would cross the network in clear text: use https://")
    return found


def _in_clear(parts: SplitResult) -> bool:
    host = _host(parts)
    return parts.scheme == "http" and not (host == "localhost" or host == "::1" or host.startswith("127."))


def _host(parts: SplitResult) -> str:
    return (parts.hostname or "").lower()


def can_choose(call: LlmCall) -> bool:
    """Whether ``stream`` and ``whole`` make a difference to the body."""
    return call.api != "raw" or json_object(call.prompt) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """What a run may cost at most, retries left out."""

    requests: int
    output_tokens: int | None
    """Bound by the limit sent with each request; None where none is."""
    input_tokens_about: int
    """An estimate from the prompt's length."""


def token_budget(call: LlmCall, requests: int) -> TokenBudget:
    """Of ``requests`` such calls."""
    each = -(-len(call.prompt.encode()) // _OCTETS_PER_TOKEN)
    limit = None if call.max_tokens is None else requests * call.max_tokens
    return TokenBudget(requests=requests, output_tokens=limit, input_tokens_about=requests * each)
