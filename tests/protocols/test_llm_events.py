"""What each API's events carry. The texts are what the providers' documentation shows, shortened."""

from __future__ import annotations

import json

import pytest

from netdiag.protocols.llm_events import EventClassifier
from netdiag.records.stream import EventKind as K


def classify(events: list[tuple[str, str]]) -> tuple[list[K], str | None, int | None]:
    classifier = EventClassifier()
    kinds = [classifier.classify(type_, data.encode()) for type_, data in events]
    return kinds, classifier.api, classifier.tokens


def chat(**delta: object) -> tuple[str, str]:
    return "", json.dumps(
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    )


def test_openai_chat() -> None:
    kinds, api, tokens = classify(
        [
            chat(role="assistant", content=""),
            chat(reasoning_content="hm"),
            chat(content="Hel"),
            chat(refusal="no"),
            chat(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}]),
            chat(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]),
            ("", json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})),
            ("", json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 12}})),
            ("", "[DONE]"),
        ]
    )
    assert kinds == [K.ROLE, K.REASONING, K.TEXT, K.REFUSAL, K.TOOL, K.TOOL, K.OTHER, K.USAGE, K.DONE]
    assert (api, tokens) == ("openai-chat", 12)


def test_openai_chat_with_usage_in_every_chunk_and_an_error() -> None:
    kinds, api, tokens = classify(
        [
            ("", json.dumps({"choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": 1}})),
            ("", json.dumps({"choices": [{"delta": {"content": "b"}}], "usage": {"completion_tokens": 2}})),
            ("", json.dumps({"error": {"message": "overloaded", "type": "server_error"}})),
        ]
    )
    assert kinds == [K.TEXT, K.TEXT, K.ERROR]
    assert (api, tokens) == ("openai-chat", 2)


def test_openai_completions_of_old() -> None:
    assert classify([("", '{"object":"text_completion","choices":[{"text":"Hi","index":0}]}')])[0] == [K.TEXT]


def test_openai_responses() -> None:
    events = [
        {"type": "response.created", "response": {"usage": None}},
        {"type": "response.output_item.added", "item": {"type": "message", "role": "assistant"}},
        {"type": "response.reasoning_summary_text.delta", "delta": "thinking"},
        {"type": "response.output_text.delta", "delta": "Hi"},
        {"type": "response.output_text.delta", "delta": ""},
        {"type": "response.function_call_arguments.delta", "delta": "{"},
        {"type": "response.refusal.delta", "delta": "I"},
        {"type": "response.output_text.done", "text": "Hi"},
        {"type": "response.completed", "response": {"usage": {"output_tokens": 37}}},
    ]
    kinds, api, tokens = classify([(str(e["type"]), json.dumps(e)) for e in events])
    assert kinds == [K.OTHER, K.ROLE, K.REASONING, K.TEXT, K.OTHER, K.TOOL, K.REFUSAL, K.OTHER, K.DONE]
    assert (api, tokens) == ("openai-responses", 37)


def test_anthropic_messages() -> None:
    events = [
        {"type": "message_start", "message": {"role": "assistant", "usage": {"input_tokens": 25, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Let"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "Eq"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}},
        {"type": "message_stop"},
    ]
    kinds, api, tokens = classify([(str(e["type"]), json.dumps(e)) for e in events])
    assert kinds == [K.ROLE, K.OTHER, K.PING, K.REASONING, K.OTHER, K.TEXT, K.OTHER, K.TOOL, K.OTHER, K.USAGE, K.DONE]
    assert (api, tokens) == ("anthropic", 15)
    assert classify([("error", '{"type":"error","error":{"type":"overloaded_error"}}')])[0] == [K.ERROR]


def test_ollama_and_gemini() -> None:
    kinds, api, tokens = classify(
        [
            ("", '{"message":{"content":"Hi"},"done":false}'),
            ("", '{"message":{"content":""},"done":true,"eval_count":26}'),
        ]
    )
    assert (kinds, api, tokens) == ([K.TEXT, K.DONE], "ollama", 26)
    kinds, api, tokens = classify(
        [
            ("", '{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}'),
            ("", '{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"usageMetadata":{"candidatesTokenCount":4}}'),
        ]
    )
    assert (kinds, api, tokens) == ([K.REASONING, K.TEXT], "gemini", 4)


@pytest.mark.parametrize(
    ("type_", "data", "kind"),
    [
        ("ping", "", K.PING),
        ("", "not json", K.OTHER),
        ("error", "not json", K.ERROR),
        ("", "[" * 100_000, K.OTHER),
        ("", "9" * 10_000, K.OTHER),
        ("", '{"choices": 5}', K.OTHER),
        ("", '{"choices": [5, null, {"delta": 7}]}', K.OTHER),
        ("", '{"candidates": {"a": 1}}', K.OTHER),
        ("", '{"type": {"a": 1}, "message": []}', K.OTHER),
        ("", '{"usage": {"completion_tokens": true}}', K.USAGE),
        ("", "null", K.OTHER),
    ],
)
def test_what_is_no_known_event_is_other_and_never_raises(type_: str, data: str, kind: K) -> None:
    kinds, _, tokens = classify([(type_, data)])
    assert kinds == [kind]
    assert tokens is None


def test_events_are_never_counted_as_tokens() -> None:
    assert classify([chat(content="a"), chat(content="b"), ("", "[DONE]")])[2] is None
