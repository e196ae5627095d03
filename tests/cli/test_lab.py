from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from netdiag.cli.lab import server_config
from netdiag.errors import UsageError
from netdiag.lab.namespaces import why_not

Run = Callable[..., Result]


def test_scenarios_are_listed_and_shown(run: Run) -> None:
    shown = run("lab", "list").stdout
    assert re.search(r"\nloss-fast +T0 T2 +One segment of a 200 kB answer", shown)
    assert "T2 has both in network" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_an_unknown_scenario_is_answered_with_the_nearest(run: Run) -> None:
    result = run("lab", "run", "los-fast")
    assert result.exit_code == 64
    assert (
        result.stderr
        == "netdiag: there is no scenario 'los-fast'\nDid you mean loss-fast? All of them: netdiag lab list\n"
    )
    assert "All of them: netdiag lab list" in run("lab", "show", "xyz").stderr
    assert "[[connection]]" in run("lab", "show", "clean-h1").stdout
    assert run("lab", "show", "no-such").exit_code == 64


def test_a_scenario_is_analysed_beside_its_truth(run: Run) -> None:
    result = run("lab", "run", "clean-h1")
    assert result.exit_code == 0, result.output
    assert "/v1/chat/completions" in result.stdout
    lines = [line for line in result.stdout.splitlines() if "exact" in line and "+0.000" in line]
    assert len(lines) >= 5
    assert "7 of 7 within 0.1 ms" in result.stdout


def test_without_keys_the_grammar_does_it(run: Run) -> None:
    shown = run("lab", "run", "clean-h1", "--without-keys").stdout
    assert "evidence L2" in shown
    assert "grammar" in shown


def test_a_scenario_of_one_s_own_is_kept(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(run("lab", "show", "clean-h1").stdout)
    result = run("lab", "run", own, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "mine.pcapng").stat().st_size > 1000
    truth = json.loads((tmp_path / "out" / "mine.truth.json").read_text())
    assert truth["exchanges"][0]["total_ns"] > 0


def test_a_key_that_is_none_is_64(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text("titel = 'x'\n")
    result = run("lab", "run", own)
    assert result.exit_code == 64
    assert "titel" in result.stderr


def test_knobs_of_server_and_answer() -> None:
    config = server_config(
        host="localhost", port=0, settings=("wait_ms=200", "tls_maximum=1.2", "nodelay=false", "tickets=0")
    )
    assert (config.behaviour.wait_ms, config.tls_maximum, config.nodelay, config.tickets) == (200, "1.2", False, 0)


@pytest.mark.parametrize("setting", ["frobnicate=1", "wait_ms=soon", "tickets=many", "nodelay=perhaps", "wait_ms"])
def test_a_knob_that_cannot_be_is_a_usage_error(setting: str) -> None:
    with pytest.raises(UsageError):
        server_config(host="localhost", port=0, settings=(setting,))


def test_knobs_are_listed(run: Run) -> None:
    shown = run("lab", "knobs").stdout
    assert "wait_ms               float, 0.0. Until the final response head is written." in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "wait_ms" in shown
    assert "settings_ms" in shown


def test_serve_answers_until_it_is_interrupted(tmp_path: Path) -> None:
    log = tmp_path / "truth.jsonl"
    command = [
        sys.executable,
        "-m",
        "netdiag",
        "lab",
        "serve",
        "--set",
        "wait_ms=30",
        "--clear-text",
        "--log",
        str(log),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/v1/models", timeout=20) as answer:
            assert answer.status == 200
            assert b"data" in answer.read()
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "netdiag probe" in errors
    assert any(json.loads(line) for line in log.read_text().splitlines())


def test_serve_says_how_to_trust_it() -> None:
    command = [sys.executable, "-m", "netdiag", "lab", "serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        url = process.stdout.readline().strip()
        trust = process.stderr.readline().rpartition("--cacert ")[2].strip()
        context = ssl.create_default_context(cafile=trust)
        with urllib.request.urlopen(f"{url}/v1/models", timeout=20, context=context) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 143


def test_the_score_of_one_scenario(run: Run) -> None:
    result = run("lab", "score", "--scenario", "clean-h1", "--seeds", "2", "--doses")
    assert result.exit_code == 0, result.output
    assert "2 runs" in result.stdout
    assert "0 sums that are not the total" in result.stdout


def test_a_scenario_on_loopback_beside_its_truth(run: Run) -> None:
    result = run("lab", "run", "clean-h1", "--tier", "T1", "-n", "1")
    assert result.exit_code == 0, result.output
    assert "within 1 ms" in result.stdout
    assert "transfer" in result.stdout
    assert "1 call" in result.stderr


def test_a_tier_that_the_scenario_does_not_have_is_64(run: Run) -> None:
    result = run("lab", "run", "padded-records", "--tier", "T2")
    assert result.exit_code == 64
    assert result.stderr.startswith("netdiag: padded-records cannot be run on T2: its tiers are T0")


def test_options_of_t0_are_not_for_a_real_server(run: Run, tmp_path: Path) -> None:
    assert run("lab", "run", "clean-h1", "--tier", "T1", "-o", tmp_path).exit_code == 64
    assert run("lab", "run", "clean-h1", "--tier", "T1", "--without-keys").exit_code == 64


def test_the_score_on_loopback(run: Run) -> None:
    result = run("lab", "score", "--tier", "T1", "--scenario", "stream-stall", "-n", "1", "--seed", "5")
    assert result.exit_code == 0, result.output
    assert "T1, a server on loopback: 1 runs" in result.stdout
    assert "0 sums that are not the total" in result.stdout


@pytest.mark.netns
def test_the_score_through_the_path(run: Run) -> None:
    reason = why_not()
    result = run("lab", "score", "--tier", "T2", "--scenario", "slow-dns", "-n", "1")
    if reason is not None:
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == f"netdiag: T2 is left out: {reason}\n"
        pytest.skip(f"no network namespaces here: {reason}")
    assert result.exit_code == 0, result.output
    assert "T2, namespaces with an emulated path: 1 runs" in result.stdout
    row = next(line for line in result.stdout.splitlines() if line.startswith("dns"))
    assert float(row.split()[2]) < 1.5


def test_a_tier_without_permission_is_said_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netdiag.lab.namespaces.why_not", lambda: "no right to make network namespaces")
    left_out = run("lab", "score", "--tier", "T2")
    assert left_out.exit_code == 0
    assert "T2 is left out: no right to make network namespaces" in left_out.stderr
    refused = run("lab", "run", "slow-dns", "--tier", "T2")
    assert refused.exit_code == 69
    assert refused.stderr.startswith("netdiag: T2 cannot be run here: no right to make network namespaces")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[path]\nrtt = 4\n", "path: unknown key 'rtt'"),
        ("[path]\nrtt_ms = 'soon'\n", "rtt_ms"),
        ("[path]\nup = { loss = 1.5 }\n", "loss is a probability between 0 and 1"),
        ("[path]\nup = { loss = 'often' }\n", "loss"),
        ("[path]\nup = { drops = [{ what = 'everything' }] }\n", "unknown kind 'everything'"),
        ("[answer]\nwait_ms = -1\n", "wait_ms cannot be -1"),
        ("[answer]\nwait_ms = nan\n", "wait_ms cannot be nan"),
        ("[server]\ntls_maximum = '1.4'\n", "'1.4'"),
        ("[hosts]\nport = 70000\n", "port 70000"),
        ("[hosts]\nserver = 'here'\n", "'here' is no IP address"),
        ("ip_version = 5\n", "ip_version must be 4 or 6"),
        ("tiers = ['T9']\n", "'T9'"),
        ("[[connection]]\nprotocol = 'h3'\n", "protocol must be h2 or http/1.1"),
        ("[dns.names.'a.b']\naddresses = { MX = ['192.0.2.1'] }\n", "MX"),
        ("title = \n", "no TOML"),
    ],
)
def test_a_scenario_that_cannot_be_is_one_sentence_and_64(run: Run, tmp_path: Path, text: str, words: str) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(text)
    result = run("lab", "run", own)
    assert result.exit_code == 64, result.output
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) <= 3


def test_a_scenario_that_is_not_there(run: Run, tmp_path: Path) -> None:
    result = run("lab", "run", tmp_path / "none.toml")
    assert result.exit_code == 64
    assert "cannot read the scenario: No such file or directory" in result.stderr


def test_a_port_in_use_is_69(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("lab", "serve", "--host", "127.0.0.1", "--port", port)
    assert result.exit_code == 69
    assert result.stderr.startswith(f"netdiag: 127.0.0.1 port {port} is in use")


def test_what_is_no_port_is_64(run: Run) -> None:
    result = run("lab", "serve", "--port", "70000")
    assert result.exit_code == 64
    assert "70000 is no port" in result.stderr
