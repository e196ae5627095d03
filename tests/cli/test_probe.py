from __future__ import annotations

import json
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result

import netdiag
from netdiag.capture.privileges import ability
from netdiag.cli.probe import plan
from netdiag.cli.probe import probe as probe_command
from netdiag.cli.probe_options import ProbeOptions
from netdiag.errors import UsageError
from netdiag.export.schema import schema
from netdiag.lab import Behaviour, LabConfig, LabServer

Run = Callable[..., Result]
CANARY = "canary-5e1f"


def options_of(*arguments: str) -> ProbeOptions:
    context = probe_command.make_context("probe", list(arguments))
    return ProbeOptions(**context.params)


def planned(*arguments: str) -> Any:
    return plan(options_of(*arguments))


URL = "https://example.com/x"


def test_curl_s_names_mean_what_they_mean_in_curl() -> None:
    config = planned(URL, "-X", "PUT", "-H", "Accept: text/plain", "-d", "a=1", "-d", "b=2", "-k", "--cacert", "ca.pem")
    assert config.urls == (URL,)
    assert config.effective_method == "PUT"
    assert config.body == b"a=1&b=2"
    assert ("Accept", "text/plain") in config.headers
    assert ("content-type", "application/x-www-form-urlencoded") in config.headers
    assert (config.insecure, config.cacert) == (True, "ca.pem")


def test_a_body_alone_is_a_post_and_its_own_content_type_stays() -> None:
    config = planned(URL, "-d", "{}", "-H", "Content-Type: application/json")
    assert config.effective_method == "POST"
    assert config.headers == (("Content-Type", "application/json"),)


def test_files_for_body_and_fields(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b'{"a":\n1}\r\n')
    (tmp_path / "fields").write_text("Authorization: Bearer x\n\nAccept: */*\n")
    config = planned(URL, "-d", f"@{tmp_path / 'body'}", "-H", f"@{tmp_path / 'fields'}")
    assert config.body == b'{"a":1}'
    assert config.headers[:2] == (("Authorization", "Bearer x"), ("Accept", "*/*"))


@pytest.mark.parametrize(
    ("arguments", "arms"),
    [
        ((), ("h1", "h2")),
        (("--http1.1",), ("h1",)),
        (("--http2",), ("h2",)),
        (("--http1.1", "--http2"), ("h1", "h2")),
        (("--arm", "h2+warm", "--arm", "h2"), ("h2+warm", "h2")),
    ],
)
def test_arms(arguments: tuple[str, ...], arms: tuple[str, ...]) -> None:
    assert planned(URL, *arguments).arms == arms


def test_the_other_options_reach_the_plan() -> None:
    config = planned(
        URL, "-n", "7", "--warm", "--resolve", "example.com:443:192.0.2.1", "-m", "5", "--connect-timeout", "2", "--idle", "500ms",
        "--seed", "3", "--capture", "none", "--capture-interface", "eth0", "-x", "http://proxy:3128", "-L", "-A", "mine",
    )  # fmt: skip
    assert (config.trials, config.warm, config.resolve) == (7, True, ("example.com:443:192.0.2.1",))
    assert (config.timeout_s, config.connect_timeout_s, config.idle_s, config.seed) == (5, 2, 0.5, 3)
    assert (config.capture, config.interface, config.proxy) == ("none", "eth0", "http://proxy:3128")
    assert (config.follow_redirects, config.user_agent) == (True, "mine")


def test_what_cannot_be_is_said_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match="requests are more than"):
        planned(URL, "-n", "100000")


@pytest.fixture
def server() -> Any:
    with LabServer(LabConfig(behaviour=Behaviour(wait_ms=20))) as running:
        yield running


def at(server: LabServer, path: str = "/v1/models") -> tuple[str, ...]:
    return (server.url + path, "--cacert", server.ca_file, "--capture", "none")


def test_a_probe_is_a_report_and_files(run: Run, server: LabServer, tmp_path: Path) -> None:
    picture, document = tmp_path / "t.png", tmp_path / "t.json"
    result = run("probe", *at(server), "-n", "2", "-o", picture, "-o", document)
    assert result.exit_code == 0, result.output
    assert "HTTP/1.1" in result.stdout
    assert "HTTP/2" in result.stdout
    assert "evidence L1" in result.stdout or "evidence L0" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(json.loads(document.read_text())["exchanges"]) == 6
    assert f"{picture} written" in result.stderr


def test_json_is_one_document_and_nothing_else(run: Run, server: LabServer) -> None:
    result = run("probe", *at(server), "-n", "1", "--json")
    document = json.loads(result.stdout)
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert document["source"]["kind"] == "probe"
    assert {e["arm"] for e in document["exchanges"]} == {"h1", "h2"}
    assert all(e["clocks"] for e in document["exchanges"])
    assert result.stderr == ""


def test_arms_are_compared(run: Run, server: LabServer) -> None:
    document = json.loads(run("probe", *at(server), "-n", "3", "--json").stdout)
    total = next(c for c in document["comparisons"] if c["quantity"] == "total")
    assert (total["arm_a"], total["arm_b"], total["pairs"]) == ("h1", "h2", 3)


def test_where_nothing_succeeds_the_outcomes_are_still_told(run: Run, server: LabServer) -> None:
    result = run("probe", *at(server, "/v1/models?status=500"), "-n", "2", "--http1.1")
    assert result.exit_code == 1
    assert "HTTP/1.1: 0 ok, 3 HTTP error (500)" in result.stdout
    assert "HTTP/1.1: 2 of 2 failed" in result.stdout


def test_an_untrusted_certificate_says_what_to_do(run: Run, server: LabServer) -> None:
    result = run("probe", server.url, "--capture", "none", "-n", "1", "--http2")
    assert result.exit_code == 1
    assert "--cacert FILE names whom to trust" in result.stderr
    assert "of 1 failed" not in result.stdout


def test_a_certificate_for_another_name_is_not_called_untrusted(run: Run, server: LabServer) -> None:
    port = server.url.rpartition(":")[2]
    options = (
        "--resolve",
        f"example.test:{port}:127.0.0.1",
        "--cacert",
        server.ca_file,
        "--capture",
        "none",
        "-n",
        "1",
    )
    result = run("probe", f"https://example.test:{port}/", *options, "--http1.1")
    assert result.exit_code == 1
    assert "for another name than the URL's" in result.stderr
    assert "--cacert" not in result.stderr


def test_few_calls_that_all_succeed_need_no_rates(run: Run, server: LabServer) -> None:
    assert "requests/s" not in run("probe", *at(server), "-n", "2").stdout
    assert "requests/s" in run("probe", *at(server), "-n", "2", "--arm", "h1+k2").stdout


def test_throughput_policy_and_worst_case_are_printed(run: Run, server: LabServer) -> None:
    said = " ".join(
        run("probe", *at(server), "-n", "10", "--http1.1", "--policy", "article", "-m", "30s").stdout.split()
    )
    assert "requests/s" in said
    assert "0 of 10 failed (95 %: at most 30.8 %)" in said
    assert said.count("first round, not counted: #0") == 1
    assert "policy article: at most 4 attempts a call, 2 min 07 s in the worst case" in said


def test_a_failed_request_is_1(run: Run, server: LabServer) -> None:
    assert run("probe", *at(server, "/v1/models?status=503"), "-n", "1").exit_code == 1


def test_no_secret_of_the_request_appears_anywhere(run: Run, server: LabServer, tmp_path: Path) -> None:
    fields = ("-H", f"Authorization: Bearer {CANARY}", "-H", f"X-Api-Key: {CANARY}", "-H", f"Cookie: a={CANARY}")
    target = at(server, f"/v1/models?api_key={CANARY}")
    for extra in ((), ("--json",), ("-o", tmp_path / "x.svg", "-o", tmp_path / "x.json")):
        assert CANARY not in run("probe", *target, *fields, "-n", "1", "-d", CANARY, *extra).output
    assert CANARY not in (tmp_path / "x.svg").read_text() + (tmp_path / "x.json").read_text()


def test_an_arm_that_the_server_does_not_speak_is_named_and_the_other_runs(run: Run) -> None:
    with LabServer(LabConfig(protocols=("http/1.1",))) as server:
        result = run("probe", *at(server), "-n", "1")
        assert result.exit_code == 0, result.output
        assert "HTTP/2 not measured" in result.stdout
        alone = run("probe", *at(server), "-n", "1", "--http2")
    assert alone.exit_code == 75
    assert "no request could be made" in alone.stderr


def test_insecure_is_loud(run: Run, server: LabServer) -> None:
    result = run("probe", server.url + "/v1/models", "-k", "-n", "1", "--capture", "none")
    assert result.exit_code == 0
    assert "certificate verification OFF" in result.stdout


def test_a_certificate_that_is_not_trusted_is_a_failed_request(run: Run, server: LabServer) -> None:
    result = run("probe", server.url + "/v1/models", "-n", "1", "--capture", "none")
    assert result.exit_code == 1
    assert "✗" in result.stdout
    assert "certificate" in result.stdout


def test_the_lab_needs_no_url(run: Run) -> None:
    result = run("probe", "--lab", "-n", "1", "--capture", "none")
    assert result.exit_code == 0, result.output
    assert "POST /v1/chat/completions" in result.stdout
    assert "first token" in result.stdout


needs_capture = pytest.mark.skipif(not ability().allowed, reason=f"no capture here: {ability().note}")


@pytest.mark.live
@needs_capture
def test_the_capture_is_kept_with_keys_only_when_asked(run: Run, server: LabServer, tmp_path: Path) -> None:
    bare, open_ = tmp_path / "bare.pcapng", tmp_path / "open.pcapng"
    target = (server.url + "/v1/models", "--cacert", server.ca_file, "-n", "1")
    first = run("probe", *target, "-o", bare)
    assert first.exit_code == 0, first.output
    assert "evidence L3" in first.stdout
    assert "keys not embedded" in first.stderr
    second = run("probe", *target, "-o", open_, "--embed-keys", "--keep-keys", tmp_path / "keys")
    assert "KEYS INSIDE" in second.stderr
    assert netdiag.analyze(bare).source.evidence_level == "L2"
    assert netdiag.analyze(open_).source.evidence_level == "L3"
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o600
    assert b"CLIENT_TRAFFIC_SECRET_0" in (tmp_path / "keys").read_bytes()
    assert run("probe", *target, "-o", bare).exit_code == 73
    assert run("probe", *target, "-o", bare, "--force").exit_code == 0


@pytest.mark.live
@pytest.mark.peers
@needs_capture
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_any_program_under_a_capture(server: LabServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "netdiag", "run", "-o", str(tmp_path / "x.json"), "--"]
    curl = ["curl", "-s", "--fail", "--cacert", server.ca_file]
    done = subprocess.run(
        [*command, *curl, server.url + "/v1/models"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["object"] == "list"
    assert "GET /v1/models" in done.stderr
    document = json.loads((tmp_path / "x.json").read_text())
    assert [e["status"] for e in document["exchanges"]] == [200]
    failing = subprocess.run(
        [*command[:4], *command[6:], *curl, server.url + "/status/404"], capture_output=True, check=False, timeout=60
    )
    assert failing.returncode == 22, "curl's own code"


def test_the_interrupt_key_ends_a_run_with_what_was_made(server: LabServer) -> None:
    url, *trust = at(server, "/v1/models?wait_ms=100")
    command = [sys.executable, "-m", "netdiag", "probe", url, *trust, "-n", "400", "--http2", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        ends_s = time.monotonic() + 20
        while len(server.log.of("headers")) < 4 and time.monotonic() < ends_s:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert running.returncode == 130, err
    document = json.loads(out)
    assert 3 <= len(document["exchanges"]) < 100
    assert {e["status"] for e in document["exchanges"]} == {200}
    assert "ended early: stopped after" in document["source"]["note"]
    assert "ending after the request in flight" in err
