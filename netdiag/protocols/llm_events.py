"""What one event of a model's streamed answer carries, told from its JSON; the text itself is never kept.

Each API is recognised by what only it sends. Tokens are what the server reports in its own usage, never a count of events.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from netdiag.protocols.server_reports import read_body_times
from netdiag.records.server_report import ServerTime
from netdiag.records.stream import EventKind

Json = dict[str, Any]

OPENAI_CHAT = "openai-chat"
OPENAI_RESPONSES = "openai-responses"
ANTHROPIC = "anthropic"
GEMINI = "gemini"
OLLAMA = "ollama"

# OpenAI Responses: the ``type`` says it all (platform.openai.com, "Streaming events").
_RESPONSES_TYPES: dict[str, EventKind] = {
    "response.output_text.delta": EventKind.TEXT,
    "response.audio.transcript.delta": EventKind.TEXT,
    "response.reasoning_text.delta": EventKind.REASONING,
    "response.reasoning_summary_text.delta": EventKind.REASONING,
    "response.reasoning.delta": EventKind.REASONING,
    "response.function_call_arguments.delta": EventKind.TOOL,
    "response.custom_tool_call_input.delta": EventKind.TOOL,
    "response.mcp_call_arguments.delta": EventKind.TOOL,
    "response.mcp_call.arguments.delta": EventKind.TOOL,
    "response.code_interpreter_call_code.delta": EventKind.TOOL,
    "response.code_interpreter_call.code.delta": EventKind.TOOL,
    "response.refusal.delta": EventKind.REFUSAL,
    "response.completed": EventKind.DONE,
    "response.incomplete": EventKind.DONE,
    "response.failed": EventKind.ERROR,
    "response.keepalive": EventKind.PING,
    "keepalive": EventKind.PING,
}

# Anthropic Messages (docs.anthropic.com, "Streaming messages").
_ANTHROPIC_TYPES: dict[str, EventKind] = {
    "message_start": EventKind.ROLE,
    "content_block_start": EventKind.OTHER,
    "content_block_stop": EventKind.OTHER,
    "message_delta": EventKind.USAGE,
    "message_stop": EventKind.DONE,
    "ping": EventKind.PING,
    "error": EventKind.ERROR,
}
# Kind of a content_block_delta and the member that holds its text.
_ANTHROPIC_DELTAS: dict[str, tuple[EventKind, str]] = {
    "text_delta": (EventKind.TEXT, "text"),
    "thinking_delta": (EventKind.REASONING, "thinking"),
    "input_json_delta": (EventKind.TOOL, "partial_json"),
}

# Members of an OpenAI chat delta that hold text, in the order of precedence.
_CHAT_CHANNELS: tuple[tuple[str, EventKind], ...] = (
    ("content", EventKind.TEXT),
    ("reasoning_content", EventKind.REASONING),
    ("reasoning", EventKind.REASONING),
    ("refusal", EventKind.REFUSAL),
)


_decode = json.JSONDecoder().decode


def _parsed(data: bytes) -> Any:
    """The JSON value; None for what is none. (Octets that begin as an object does in UTF-8 need no detection of their encoding.)"""
    try:
        if data[:1] == b"{" and data[1:2] != b"\0":
            return _decode(data.decode("utf-8", "surrogatepass"))
        return json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None


class EventClassifier:
    """One stream. ``api`` becomes known with the first event that only one API sends."""

    __slots__ = ("api", "times", "tokens")

    def __init__(self) -> None:
        self.api: str | None = None
        self.tokens: int | None = None
        """Output tokens by the latest usage report; None while there was none."""
        self.times: tuple[ServerTime, ...] = ()
        """Durations of the latest usage report that has any."""

    def classify(self, type_: str, data: bytes | None) -> EventKind:
        """The kind of one event of the ``event`` type ``type_`` ("" for none)."""
        if data is None:
            return EventKind.OTHER
        if data.strip() == b"[DONE]":
            return EventKind.DONE
        if type_ == "ping":
            return self._named_ping(data)
        value = _parsed(data)
        if not isinstance(value, dict):
            return _KINDS_BY_NAME.get(type_, EventKind.OTHER)
        return self._classify_json(type_, value)

    def read_whole(self, data: bytes) -> None:
        """An answer that was not streamed: only its usage and its times are looked at."""
        value = _parsed(data)
        if isinstance(value, dict):
            self._usage_only(value)
            self._count(value, "eval_count")
            self._count(_object(value, "usageMetadata"), "candidatesTokenCount")
            self._time(value, "body")

    def read_bedrock_metadata(self, value: Json) -> None:
        """The last event of Bedrock's ConverseStream: ``usage`` and ``metrics``."""
        self._count(_object(value, "usage"), "outputTokens")
        self._time(_object(value, "metrics"), "metrics")

    def _named_ping(self, data: bytes) -> EventKind:
        if self.api is None and b'"ping"' in data:
            self.api = ANTHROPIC
        return EventKind.PING

    def _classify_json(self, type_: str, value: Json) -> EventKind:
        declared = value.get("type")
        if "amazon-bedrock-invocationMetrics" in value:
            metrics = _object(value, "amazon-bedrock-invocationMetrics")
            self._time(metrics, "amazon-bedrock-invocationMetrics")
            self._count(metrics, "outputTokenCount")
        if isinstance(declared, str):
            kind = self._by_declared_type(declared, value)
            if kind is not None:
                return kind
        for member, api, read in _BY_MEMBER:
            if member in value:
                self.api = self.api or api
                return read(self, value)
        if value.get("error") is not None or type_ == "error":
            return EventKind.ERROR
        return self._usage_only(value) or _KINDS_BY_NAME.get(type_, EventKind.OTHER)

    def _by_declared_type(self, declared: str, value: Json) -> EventKind | None:
        if declared.startswith("response."):
            self.api = self.api or OPENAI_RESPONSES
            return self._responses(declared, value)
        if declared == "content_block_delta":
            self.api = self.api or ANTHROPIC
            return _anthropic_delta(_object(value, "delta"))
        kind = _ANTHROPIC_TYPES.get(declared)
        if kind is None:
            return _RESPONSES_TYPES.get(declared)
        if declared != "error":  # OpenAI Responses has one of the same name
            self.api = self.api or ANTHROPIC
        self._count(_object(_object(value, "message"), "usage"), "output_tokens")
        self._count(_object(value, "usage"), "output_tokens")
        return kind

    def _responses(self, declared: str, value: Json) -> EventKind:
        self._count(_object(_object(value, "response"), "usage"), "output_tokens")
        if declared == "response.output_item.added" and _object(value, "item").get("type") == "message":
            return EventKind.ROLE
        kind = _RESPONSES_TYPES.get(declared, EventKind.OTHER)
        if declared.endswith(".delta") and not value.get("delta"):
            return EventKind.OTHER
        return kind

    def _chat(self, value: Json) -> EventKind:
        if value.get("usage"):
            usage = _object(value, "usage")
            self._count(usage, "completion_tokens")
            self._time(usage, "usage")
        if "x_groq" in value and (usage := _object(_object(value, "x_groq"), "usage")):
            self._time(usage, "x_groq.usage")
        if "timings" in value:  # llama.cpp
            self._time(_object(value, "timings"), "timings")
        if value.get("error") is not None:
            return EventKind.ERROR
        choices = value["choices"]
        if not isinstance(choices, list) or not choices:
            return EventKind.USAGE if value.get("usage") else EventKind.OTHER
        kinds = [_chat_choice(choice) for choice in choices[:64] if isinstance(choice, dict)]
        return next((k for k in kinds if k is not EventKind.OTHER), EventKind.OTHER)

    def _gemini(self, value: Json) -> EventKind:
        self._count(_object(value, "usageMetadata"), "candidatesTokenCount")
        kinds: list[EventKind] = []
        for candidate in _objects(value.get("candidates")):
            kinds += [_gemini_part(part) for part in _objects(_object(candidate, "content").get("parts"))]
        found = next((k for k in kinds if k is not EventKind.OTHER), None)
        return found or (EventKind.USAGE if "usageMetadata" in value else EventKind.OTHER)

    def _ollama(self, value: Json) -> EventKind:
        self._count(value, "eval_count")
        if value.get("done") is True:
            self._time(value, "body")
        message = _object(value, "message")
        if message.get("tool_calls"):
            return EventKind.TOOL
        if message.get("content") or value.get("response"):
            return EventKind.TEXT
        if message.get("thinking") or value.get("thinking"):
            return EventKind.REASONING
        return EventKind.DONE if value.get("done") is True else EventKind.OTHER

    def _tgi(self, value: Json) -> EventKind:
        self._count(_object(value, "details"), "generated_tokens")
        return EventKind.TEXT if _object(value, "token").get("text") else EventKind.OTHER

    def _usage_only(self, value: Json) -> EventKind | None:
        usage = _object(value, "usage")
        if not usage:
            return None
        self._count(usage, "completion_tokens")
        self._count(usage, "output_tokens")
        self._time(usage, "usage")
        return EventKind.USAGE

    def _time(self, members: Json, where: str) -> None:
        self.times = read_body_times(members, where) or self.times

    def _count(self, usage: Json, member: str) -> None:
        count = usage.get(member)
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1 << 40:
            self.tokens = count


_KINDS_BY_NAME: dict[str, EventKind] = {"error": EventKind.ERROR, "ping": EventKind.PING, "done": EventKind.DONE}

_BY_MEMBER: tuple[tuple[str, str | None, Callable[[EventClassifier, Json], EventKind]], ...] = (
    ("choices", OPENAI_CHAT, EventClassifier._chat),
    ("candidates", GEMINI, EventClassifier._gemini),
    ("done", OLLAMA, EventClassifier._ollama),
    ("token", None, EventClassifier._tgi),
)


def _chat_choice(choice: Json) -> EventKind:
    delta = _object(choice, "delta")
    for member, kind in _CHAT_CHANNELS:
        if delta.get(member):
            return kind
    for call in (*_objects(delta.get("tool_calls")), {"function": delta.get("function_call")}):
        function = _object(call, "function")
        if function.get("arguments") or function.get("name"):
            return EventKind.TOOL
    if choice.get("text"):  # the older completions API
        return EventKind.TEXT
    return EventKind.ROLE if delta.get("role") and not choice.get("finish_reason") else EventKind.OTHER


def _anthropic_delta(delta: Json) -> EventKind:
    kind, member = _ANTHROPIC_DELTAS.get(str(delta.get("type")), (EventKind.OTHER, ""))
    return kind if delta.get(member) else EventKind.OTHER


def _gemini_part(part: Json) -> EventKind:
    if part.get("functionCall"):
        return EventKind.TOOL
    if not part.get("text"):
        return EventKind.OTHER
    return EventKind.REASONING if part.get("thought") is True else EventKind.TEXT


def _object(value: Json, member: str) -> Json:
    found = value.get(member)
    return found if isinstance(found, dict) else {}


def _objects(value: Any) -> list[Json]:
    return [v for v in value[:64] if isinstance(v, dict)] if isinstance(value, list) else []
