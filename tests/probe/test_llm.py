"""Calls of models' APIs: where they go, what they carry, where the key stands, what they may cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from netdiag.errors import UsageError
from netdiag.probe import llm
from netdiag.probe.llm import LlmCall, TokenBudget
from netdiag.probe.plan import ProbeConfig, parse_arm

URL = "https://api.example.com"
CANARY = "sk-canary-77e1"


def call(api: str = "openai", **fields: Any) -> LlmCall:
    return LlmCall(**({"api": api, "model": "m", "prompt": "Why?"} | fields))


@pytest.mark.parametrize(
    ("api", "url", "wanted"),
    [
        ("openai", "https://h", "https://h/v1/chat/completions"),
        ("openai", "https://h/v1/", "https://h/v1/chat/completions"),
        ("openai", "https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("openai", "https://h/api/v3", "https://h/api/v3/chat/completions"),
        ("openai", "https://h/proxy?team=a", "https://h/proxy/v1/chat/completions?team=a"),
        (
            "openai",
            "https://h/openai/deployments/d/chat/completions?api-version=1",
            "https://h/openai/deployments/d/chat/completions?api-version=1",
        ),
        ("openai-responses", "https://h/v1", "https://h/v1/responses"),
        ("anthropic", "https://h", "https://h/v1/messages"),
        ("anthropic", "https://h/anthropic", "https://h/anthropic/v1/messages"),
        ("raw", "https://h/generate", "https://h/generate"),
    ],
)
def test_where_it_goes(api: str, url: str, wanted: str) -> None:
    assert llm.endpoint(url, api) == wanted


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("api", "limit"), [("openai", "max_tokens"), ("openai-responses", "max_output_tokens"), ("anthropic", "max_tokens")]
)
def test_what_it_carries(api: str, limit: str, stream: bool) -> None:
    document = json.loads(llm.body(call(api, max_tokens=9), URL, stream=stream))
    assert (document["model"], document[limit], document["stream"]) == ("m", 9, stream)
    assert "Why?" in json.dumps(document.get("messages", document.get("input")))
    assert ("stream_options" in document) == (api == "openai" and stream)


def test_openai_s_own_host_takes_its_newer_name_of_the_limit() -> None:
    document = json.loads(llm.body(call(), "https://api.openai.com/v1/chat/completions", stream=True))
    assert document["max_completion_tokens"] == llm.DEFAULT_MAX_TOKENS
    assert "max_tokens" not in document


def test_members_are_added_and_the_text_stays_as_it_is() -> None:
    document = json.loads(llm.body(call(prompt="größer?\n", members='{"temperature": 0}'), URL, stream=True))
    assert document["temperature"] == 0
    assert document["messages"][0]["content"] == "größer?\n"


def test_raw_is_the_user_s_own_body() -> None:
    mine = call("raw", model=None, max_tokens=None, prompt='{"inputs": "x"}')
    assert json.loads(llm.body(mine, URL, stream=False)) == {"inputs": "x", "stream": False}
    assert llm.body(call("raw", prompt="no json"), URL, stream=True) == b"no json"
    assert not llm.can_choose(call("raw", prompt="no json"))


@pytest.mark.parametrize(
    ("api", "url", "field"),
    [
        ("openai", URL, ("authorization", f"Bearer {CANARY}")),
        ("openai", "https://x.openai.azure.com/openai/v1", ("api-key", CANARY)),
        ("anthropic", URL, ("x-api-key", CANARY)),
    ],
)
def test_where_the_key_stands(api: str, url: str, field: tuple[str, str]) -> None:
    assert field in llm.headers(call(api, key=CANARY), url, stream=True)
    assert CANARY not in str(llm.headers(call(api), url, stream=True))


def test_no_key_and_no_prompt_in_a_representation() -> None:
    config = ProbeConfig(urls=(URL,), llm=call(key=CANARY, prompt="private"))
    assert CANARY not in repr(config)
    assert "private" not in repr(config)


def test_the_user_s_own_field_replaces_the_api_s() -> None:
    config = ProbeConfig(urls=(URL,), llm=call(key=CANARY), headers=(("Authorization", "Bearer other"),))
    (arm, *_) = config.arm_list()
    assert [value for name, value in config.headers_for(arm) if name.lower() == "authorization"] == ["Bearer other"]


def test_arms_choose_between_stream_and_whole() -> None:
    config = ProbeConfig(urls=(URL,), llm=call(stream=False), arms=("h2+stream", "h2+whole", "h2"))
    bodies = {arm.name: json.loads(config.body_for(arm) or b"") for arm in config.arm_list()}
    assert {name: body["stream"] for name, body in bodies.items()} == {
        "h2+stream": True,
        "h2+whole": False,
        "h2": False,
    }
    assert {arm.url for arm in config.arm_list()} == {URL + "/v1/chat/completions"}
    assert config.effective_method == "POST"
    assert parse_arm("h1+whole", URL).delivery == "whole"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"llm": None, "arms": ("h1+stream",)}, "needs a call of a model's API"),
        ({"llm": call(model=None)}, "needs a model"),
        ({"llm": call(max_tokens=0)}, "at least 1"),
        ({"llm": call(members="[1]")}, "JSON object"),
        ({"llm": call("gopher")}, "none of openai"),
        ({"llm": call(key=CANARY), "urls": ("http://api.example.com",)}, "in clear text"),
        ({"llm": call(key=CANARY + "\n")}, "line break"),
        ({"llm": call(), "body": b"x"}, "makes the body itself"),
        ({"llm": call("raw", prompt="text"), "arms": ("h1+whole",)}, "needs a body that is a JSON object"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        ProbeConfig(**({"urls": (URL,)} | options))
    assert said in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_key_may_go_in_clear_text_to_this_host() -> None:
    assert ProbeConfig(urls=("http://127.0.0.1:8000",), llm=call(key=CANARY)).llm is not None


def test_the_budget_is_the_limit_times_the_requests() -> None:
    assert llm.token_budget(call(prompt="x" * 41, max_tokens=50), 10) == TokenBudget(
        requests=10, output_tokens=500, input_tokens_about=110
    )
    assert llm.token_budget(call("raw", max_tokens=None), 3).output_tokens is None
