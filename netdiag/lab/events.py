"""The octets of streamed answers in the shapes of the OpenAI chat, OpenAI Responses and Anthropic messages APIs, and of plain SSE."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KINDS = ("role", "text", "reasoning", "tool", "refusal", "usage", "ping", "comment", "blank", "error", "done", "other")
_WORDS = ("every", "octet", "has", "a", "place", "and", "a", "time", "so", "each", "millisecond", "has", "an", "owner")
_MODEL = "lab-1"
_CREATED = 1_700_000_000
"""Constant, so that the same scenario gives the same octets."""


@dataclass(slots=True)
class EventShape:
    """Makes one answer's events in order. ``api`` is the name that analyses use for it."""

    api: str
    tokens: int = 0
    _counter: int = 0
    _maker: Callable[[EventShape, str], bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Choose the shape by name; unknown names are plain SSE."""
        self._maker = _SHAPES.get(self.api, _plain)

    def make(self, kind: str, *, pad_to_bytes: int | None = None) -> bytes:
        """The next event of a kind, its terminating blank line included."""
        if kind == "comment":
            return b": keep-alive\n\n"
        if kind == "blank":
            return b"\n"
        data = self._maker(self, kind)
        if kind in ("text", "reasoning"):
            self.tokens += 1
        if pad_to_bytes is not None and len(data) < pad_to_bytes:
            data = b":" + b"." * (pad_to_bytes - len(data) - 2) + b"\n" + data if pad_to_bytes - len(data) > 1 else data
        return data

    def word(self) -> str:
        """The next word of the answer."""
        word = _WORDS[self._counter % len(_WORDS)]
        self._counter += 1
        return word + " "


def _sse(document: Any, name: str | None = None) -> bytes:
    text = document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()


def _openai_chat(shape: EventShape, kind: str) -> bytes:
    if kind == "done":
        return _sse("[DONE]")
    if kind == "ping":
        return b": ping\n\n"
    if kind == "error":
        return _sse({"error": {"message": "The server is overloaded", "type": "server_error", "code": "overloaded"}})
    base: dict[str, Any] = {
        "id": "chatcmpl-lab",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": _MODEL,
    }
    if kind == "usage":
        usage = {"prompt_tokens": 12, "completion_tokens": shape.tokens, "total_tokens": 12 + shape.tokens}
        return _sse(base | {"choices": [], "usage": usage})
    deltas: dict[str, Any] = {
        "role": lambda: {"role": "assistant", "content": ""},
        "text": lambda: {"content": shape.word()},
        "reasoning": lambda: {"reasoning_content": shape.word()},
        "refusal": lambda: {"refusal": shape.word()},
        "tool": lambda: {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
    }
    delta = deltas.get(kind, dict)()
    return _sse(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _anthropic(shape: EventShape, kind: str) -> bytes:
    def event(name: str, **facts: Any) -> bytes:
        return _sse({"type": name} | facts, name)

    match kind:
        case "role":
            usage: dict[str, Any] = {"input_tokens": 12, "output_tokens": 1}
            message: dict[str, Any] = {
                "id": "msg_lab",
                "type": "message",
                "role": "assistant",
                "content": [],
                "model": _MODEL,
            }
            return event("message_start", message=message | {"usage": usage})
        case "text":
            return event("content_block_delta", index=0, delta={"type": "text_delta", "text": shape.word()})
        case "reasoning":
            return event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": shape.word()})
        case "tool":
            return event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": '{"a":'})
        case "usage":
            return event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": shape.tokens})
        case "ping":
            return event("ping")
        case "error":
            return event("error", error={"type": "overloaded_error", "message": "Overloaded"})
        case "done":
            return event("message_stop")
    return event("content_block_start", index=0, content_block={"type": "text", "text": ""})


def _responses(shape: EventShape, kind: str) -> bytes:
    def event(name: str, **facts: Any) -> bytes:
        return _sse({"type": name} | facts, name)

    response: dict[str, Any] = {"id": "resp_lab", "object": "response", "created_at": _CREATED, "model": _MODEL}
    match kind:
        case "role":
            return event("response.created", response=response | {"status": "in_progress"})
        case "text":
            return event("response.output_text.delta", item_id="msg_lab", output_index=0, delta=shape.word())
        case "reasoning":
            return event("response.reasoning_summary_text.delta", item_id="rs_lab", output_index=0, delta=shape.word())
        case "refusal":
            return event("response.refusal.delta", item_id="msg_lab", output_index=0, delta=shape.word())
        case "tool":
            return event("response.function_call_arguments.delta", item_id="fc_lab", output_index=0, delta='{"a":')
        case "ping":
            return b": ping\n\n"
        case "error":
            return event("error", code="server_error", message="The server is overloaded")
        case "done":
            usage = {"input_tokens": 12, "output_tokens": shape.tokens, "total_tokens": 12 + shape.tokens}
            return event("response.completed", response=response | {"status": "completed", "usage": usage})
    return event("response.in_progress", response=response | {"status": "in_progress"})


def _plain(shape: EventShape, kind: str) -> bytes:
    if kind == "ping":
        return b": ping\n\n"
    if kind == "done":
        return _sse("[DONE]")
    return _sse({"kind": kind, "text": shape.word()})


def _ndjson(shape: EventShape, kind: str) -> bytes:
    """The line shape of Ollama's /api/chat."""
    message = {"role": "assistant", "content": shape.word() if kind == "text" else ""}
    line: dict[str, Any] = {"model": _MODEL, "message": message, "done": kind == "done"}
    if kind == "done":
        line |= {"eval_count": shape.tokens, "prompt_eval_count": 12}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _grpc(shape: EventShape, kind: str) -> bytes:
    """A protobuf message with one string field, without the gRPC prefix."""
    text = shape.word().encode()
    return b"\x0a" + bytes([len(text)]) + text


_SHAPES: dict[str, Callable[[EventShape, str], bytes]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "ndjson": _ndjson,
    "sse": _plain,
    "grpc": _grpc,
}


def whole_answer(api: str, tokens: int) -> bytes:
    """The same answer without streaming, as one JSON document."""
    usage: dict[str, Any]
    head: dict[str, Any]
    text = "".join(EventShape("sse", _counter=i).word() for i in range(tokens)).strip()
    if api == "anthropic":
        usage = {"input_tokens": 12, "output_tokens": tokens}
        content = [{"type": "text", "text": text}]
        head = {"id": "msg_lab", "type": "message", "role": "assistant", "model": _MODEL, "stop_reason": "end_turn"}
        return json.dumps(head | {"content": content, "usage": usage}).encode()
    if api == "openai-responses":
        usage = {"input_tokens": 12, "output_tokens": tokens, "total_tokens": 12 + tokens}
        output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
        head = {"id": "resp_lab", "object": "response", "created_at": _CREATED, "model": _MODEL, "status": "completed"}
        return json.dumps(head | {"output": output, "usage": usage}).encode()
    usage = {"prompt_tokens": 12, "completion_tokens": tokens, "total_tokens": 12 + tokens}
    choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    base = {"id": "chatcmpl-lab", "object": "chat.completion", "created": _CREATED, "model": _MODEL}
    return json.dumps(base | {"choices": choices, "usage": usage}).encode()


MODELS = json.dumps(
    {"object": "list", "data": [{"id": _MODEL, "object": "model", "created": _CREATED, "owned_by": "netdiag"}]}
).encode()
