"""``netdiag probe --llm``: the lab speaks every API; the key is nowhere to be found afterwards."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import netdiag
from netdiag.capture.privileges import ability
from netdiag.cli.llm_call import llm_call
from netdiag.cli.probe import plan
from netdiag.cli.probe import probe as probe_command
from netdiag.cli.probe_options import ProbeOptions
from netdiag.errors import UsageError
from netdiag.export.json import dumps
from netdiag.lab import Behaviour, LabConfig, LabServer
from netdiag.lab.answers import Answer, Application, LabRequest

Run = Callable[..., Result]
CANARY = "sk-canary-3b9d"
PROMPT = "private-prompt-8812"


def options_of(*arguments: str) -> ProbeOptions:
    return ProbeOptions(**probe_command.make_context("probe", list(arguments)).params)


def test_the_key_comes_from_the_api_s_usual_variable() -> None:
    environment = {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "MINE": " m\n"}
    for arguments, key in (
        (("--llm", "openai"), "o"),
        (("--llm", "openai-responses"), "o"),
        (("--llm", "anthropic"), "a"),
        (("--llm", "raw", "--prompt", "{}"), None),
        (("--llm", "openai", "--key-env", "MINE"), "m"),
        (("--llm", "openai", "--lab"), None),
    ):
        made = llm_call(options_of(*arguments), environment)
        assert made is not None
        assert made.key == key


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "x"), "--model needs --llm"),
        (("--no-stream",), "--no-stream needs --llm"),
        (("--llm", "raw"), "--llm raw"),
        (("--llm", "openai", "--prompt", "@/nowhere"), "No such file"),
        (("--llm", "openai", "--key-env", CANARY), "is not set"),
    ],
)
def test_what_does_not_go_together(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        llm_call(options_of("https://h", *arguments), {})
    assert said in str(caught.value)
    assert CANARY not in str(caught.value)


def test_prompt_and_members(tmp_path: Path) -> None:
    (tmp_path / "prompt").write_text("long\ntext\n")
    config = plan(
        options_of(
            "https://h", "--llm", "openai", "--model", "m", "--prompt", f"@{tmp_path / 'prompt'}", "-d", '{"seed": 1}'
        )
    )
    document = json.loads(config.body_for(config.arm_list()[0]) or b"")
    assert document["messages"][0]["content"] == "long\ntext\n"
    assert document["seed"] == 1


@pytest.mark.parametrize(
    ("api", "spoken"), [("openai", "openai-chat"), ("openai-responses", "openai-responses"), ("anthropic", "anthropic")]
)
def test_the_lab_speaks_every_api_streamed_and_whole(run: Run, api: str, spoken: str) -> None:
    arms = ("--arm", "h2+stream", "--arm", "h1+whole")
    result = run("probe", "--lab", "--llm", api, *arms, "-n", "1", "--capture", "none", "--max-tokens", "30", "--json")
    assert result.exit_code == 0, result.output
    assert "token budget: 2 requests, at most 60 output tokens" in result.stderr
    by_arm = {e["arm"]: e for e in json.loads(result.stdout)["exchanges"]}
    streamed, whole = by_arm["h2+stream"], by_arm["h1+whole"]
    assert streamed["stream"]["api"] == spoken
    assert streamed["stream"]["tokens"] == streamed["stream"]["token_events"] == 12
    assert whole["stream"] is None or not whole["stream"]["events"]
    assert {e["status"] for e in by_arm.values()} == {200}


def test_no_stream_asks_for_whole_answers(run: Run) -> None:
    result = run(
        "probe", "--lab", "--llm", "openai", "--no-stream", "--http2", "-n", "1", "--capture", "none", "--json"
    )
    (exchange,) = json.loads(result.stdout)["exchanges"]
    assert exchange["stream"] is None or not exchange["stream"]["events"]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_the_key_is_in_no_artefact(run: Run, api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    seen: list[str] = []
    sent: set[str | None] = set()
    answer = Application.answer

    def noting(application: Application, request: LabRequest) -> Answer:
        sent.add(request.header("authorization") or request.header("x-api-key"))
        return answer(application, request)

    monkeypatch.setattr(Application, "answer", noting)
    with LabServer(LabConfig(behaviour=Behaviour(wait_ms=5, events=3, gap_ms=2))) as server:
        common = (
            server.url,
            "--cacert",
            server.ca_file,
            "--llm",
            api,
            "--model",
            "m",
            "--key-env",
            "MY_KEY",
            "-n",
            "2",
        )
        files = [tmp_path / name for name in ("a.svg", "a.png", "a.pdf", "a.json", *(["a.pcapng"] if CAPTURE else []))]
        written = [word for path in files for word in ("-o", path)]
        for extra in ((), ("--json",), ("--debug", "--slo", "total=1"), written):
            capture = () if extra is written else ("--capture", "none")
            result = run("probe", *common, "--prompt", PROMPT, *capture, *extra)
            assert result.exit_code in (0, 4), result.output
            seen.append(result.output + result.stderr)
        failed = run(
            "probe", server.url.replace("https://localhost", "https://127.0.0.1"), *common[1:], "--capture", "none"
        )
        seen.append(failed.output + failed.stderr)
        received = str(server.log.exchanges()) + str(server.log)
    assert sent == {CANARY if api == "anthropic" else f"Bearer {CANARY}"}, "the key did arrive where it belongs"
    kept = [path.read_bytes() for path in files]
    for secret in (CANARY, PROMPT):
        assert not [text for text in seen if secret in text]
        assert not [octets for octets in kept if secret.encode() in octets]
        assert secret not in received
    if CAPTURE:
        assert stat.S_IMODE(files[-1].stat().st_mode) == 0o600
        assert CANARY not in dumps(netdiag.analyze(files[-1]))


CAPTURE = ability().allowed


@pytest.mark.parametrize("picture", ["arrival", "budget", "differences", "ecdf"])
def test_every_picture_of_a_probe(run: Run, tmp_path: Path, picture: str) -> None:
    target = tmp_path / "x.svg"
    common = ("probe", "--lab", "--llm", "openai", "--capture", "none", "-n", "2", "-o", target, "--picture", picture)
    assert run(*common).exit_code == 0
    assert "<svg" in target.read_text()


def test_a_picture_that_cannot_be_drawn_says_why(run: Run, tmp_path: Path) -> None:
    one = (
        "probe",
        "--lab",
        "--capture",
        "none",
        "-n",
        "1",
        "--http2",
        "-o",
        tmp_path / "x.svg",
        "--picture",
        "differences",
    )
    result = run(*one)
    assert result.exit_code == 64
    assert "no paired comparison" in result.stderr
