"""Any program under a capture: its requests with keys, its connections and nobody else's, and nothing of it left."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from netdiag.api import run_command
from netdiag.errors import ToolMissing, UsageError
from netdiag.lab import Behaviour, LabServer
from netdiag.probe.sockets import connections_of, descendants
from netdiag.records.endpoint import Endpoint
from netdiag.records.source import EvidenceLevel
from tests.support.lab import StartLab
from tests.support.probing import children, foreign_threads

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("timing")]

_WITH_SSL = """
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2])
for _ in range(2):
    print(urllib.request.urlopen(sys.argv[1], context=context).status)
"""
_WITH_HTTPX = """
import httpx, ssl, sys
with httpx.Client(http2=True, verify=ssl.create_default_context(cafile=sys.argv[2])) as client:
    for _ in range(2):
        print(client.get(sys.argv[1]).status_code)
"""


_NOISE = "import sys,time,urllib.request\nfor _ in range(40): urllib.request.urlopen(sys.argv[1]); time.sleep(.05)"


def python(code: str, server: LabServer) -> list[str]:
    """A program in Python that asks the server."""
    return [sys.executable, "-c", code, server.url + "/v1/models", server.ca_file]


@pytest.mark.parametrize(("code", "protocol", "connections"), [(_WITH_SSL, "http/1.1", 2), (_WITH_HTTPX, "h2", 1)])
def test_a_python_program(
    start_lab: StartLab,
    fast_backend: str,
    code: str,
    protocol: str,
    connections: int,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server = start_lab(Behaviour(wait_ms=30))
    run = run_command(python(code, server), capture=fast_backend)
    assert run.exit_code == 0
    assert capfd.readouterr().out == "200\n200\n"
    assert run.analysis.source.evidence_level is EvidenceLevel.L3
    assert [e.protocol for e in run.analysis.exchanges] == [protocol] * 2
    assert len(run.analysis.connections) == connections
    waits = [p.duration_ns for e in run.analysis.exchanges for p in e.phases if p.name == "wait"]
    assert all(29_000_000 < wait < 250_000_000 for wait in waits)


_WITH_HTTP_CLIENT = """
import http.client, os, ssl, stat, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
connection = http.client.HTTPSConnection(url.hostname, url.port, context=ssl.create_default_context(cafile=sys.argv[2]))
for _ in range(2):
    connection.request("GET", url.path)
    answer = connection.getresponse()
    answer.read()
    print(answer.status)
assert stat.S_IMODE(os.stat(os.environ["SSLKEYLOGFILE"]).st_mode) == 0o600
"""
_WITH_REQUESTS = """
import requests, sys
with requests.Session() as session:
    for _ in range(2):
        print(session.get(sys.argv[1], verify=sys.argv[2]).status_code)
"""
_WITH_OPENAI = """
import ssl, sys
import openai
from openai import DefaultHttpxClient
url = sys.argv[1].removesuffix("/models")
http = DefaultHttpxClient(verify=ssl.create_default_context(cafile=sys.argv[2]))
with openai.OpenAI(api_key="sk-canary0123456789abcdef", base_url=url, http_client=http, max_retries=0) as client:
    stream = client.chat.completions.create(model="lab", messages=[{"role": "user", "content": "hi"}], stream=True)
    print("".join(part.choices[0].delta.content or "" for part in stream if part.choices))
"""
_WITH_NODE = """
const https = require("https"), fs = require("fs");
const ca = fs.readFileSync(process.argv[3]);
const get = () => new Promise((done, failed) => https.get(process.argv[2], {ca}, answer => {
  answer.resume(); answer.on("end", () => { console.log(answer.statusCode); done(); });
}).on("error", failed));
get().then(get);
"""


def test_http_client_and_the_key_log_is_private_while_it_runs(
    start_lab: StartLab, fast_backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run = run_command(python(_WITH_HTTP_CLIENT, start_lab(Behaviour(wait_ms=30))), capture=fast_backend)
    assert run.exit_code == 0
    assert capfd.readouterr().out == "200\n200\n"
    assert [(e.status, e.reused) for e in run.analysis.exchanges] == [(200, False), (200, True)]


def test_requests(start_lab: StartLab) -> None:
    pytest.importorskip("requests", reason="requests is not installed")
    run = run_command(python(_WITH_REQUESTS, start_lab(Behaviour(wait_ms=30))))
    assert run.exit_code == 0
    assert run.analysis.source.evidence_level is EvidenceLevel.L3
    assert [(e.status, e.reused) for e in run.analysis.exchanges] == [(200, False), (200, True)]


def test_the_openai_library(start_lab: StartLab) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    run = run_command(python(_WITH_OPENAI, start_lab(Behaviour(wait_ms=30, events=5, gap_ms=20))))
    assert run.exit_code == 0
    (exchange,) = run.analysis.exchanges
    assert (exchange.method, exchange.path, exchange.status) == ("POST", "/v1/chat/completions", 200)
    assert exchange.stream is not None
    assert exchange.stream.token_events == 5
    assert "sk-canary" not in repr(run.analysis)


@pytest.mark.peers
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("through_a_shell", [False, True])
def test_node(start_lab: StartLab, fast_backend: str, tmp_path: Path, through_a_shell: bool) -> None:
    """Its key log is an option, which a program started by the command hears of, too."""
    server, program = start_lab(Behaviour(wait_ms=30)), tmp_path / "app.js"
    program.write_text(_WITH_NODE, encoding="ascii")
    command = ["node", str(program), server.url + "/v1/models", server.ca_file]
    run = run_command(["sh", "-c", " ".join(command) + "; true"] if through_a_shell else command, capture=fast_backend)
    assert run.exit_code == 0
    assert run.analysis.source.evidence_level is EvidenceLevel.L3
    assert [(e.method, e.status) for e in run.analysis.exchanges] == [("GET", 200)] * 2


def test_without_keys_the_grammar_still_splits(start_lab: StartLab, fast_backend: str) -> None:
    """The same program, told not to log: its requests are found by the sizes of records. The second one is judged: on a busy machine the
    server's tickets may come after the first request.
    """
    code = "import os; os.environ.pop('SSLKEYLOGFILE')\n" + _WITH_HTTP_CLIENT.rpartition("assert ")[0]
    run = run_command(python(code, start_lab(Behaviour(wait_ms=60))), capture=fast_backend)
    assert run.analysis.source.evidence_level is EvidenceLevel.L2
    assert [e.reused for e in run.analysis.exchanges] == [False, True]
    (wait,) = [p.duration_ns for p in run.analysis.exchanges[1].phases if p.name == "wait"]
    assert 55_000_000 < wait < 250_000_000


@pytest.mark.peers
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(start_lab: StartLab, fast_backend: str) -> None:
    server = start_lab(Behaviour(wait_ms=30))
    url = server.url + "/v1/models"
    run = run_command(["curl", "-s", "-o", os.devnull, "--cacert", server.ca_file, url], capture=fast_backend)
    assert run.exit_code == 0
    assert [(e.protocol, e.status) for e in run.analysis.exchanges] == [("h2", 200)]


def test_other_programs_are_left_out(start_lab: StartLab, fast_backend: str) -> None:
    server, other = start_lab(Behaviour(wait_ms=80)), start_lab(tls=False)
    noise = subprocess.Popen([sys.executable, "-c", _NOISE, other.url + "/v1/models"])
    try:
        run = run_command(python(_WITH_SSL, server), capture=fast_backend)
    finally:
        noise.kill()
        noise.wait()
    assert {c.server.port for c in run.analysis.connections} == {server.port}
    assert len(run.analysis.exchanges) == 2


def test_the_exit_code_and_a_time_limit(fast_backend: str) -> None:
    assert run_command([sys.executable, "-c", "raise SystemExit(7)"], capture=fast_backend).exit_code == 7
    began_s = time.monotonic()
    run = run_command([sys.executable, "-c", "import time; time.sleep(60)"], capture=fast_backend, timeout_s=0.5)
    assert run.exit_code == -15
    assert time.monotonic() - began_s < 10


def test_what_is_kept_is_private(start_lab: StartLab, fast_backend: str, tmp_path: Path) -> None:
    capture, keys = tmp_path / "run.pcapng", tmp_path / "keys.log"
    run_command(python(_WITH_SSL, start_lab()), capture=fast_backend, save_capture=str(capture), keep_keys=str(keys))
    assert {stat.S_IMODE(path.stat().st_mode) for path in (capture, keys)} == {0o600}
    assert b"CLIENT_TRAFFIC_SECRET_0" in keys.read_bytes()
    assert b"CLIENT_TRAFFIC_SECRET_0" not in capture.read_bytes()


def test_nothing_is_left(
    start_lab: StartLab, fast_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, processes = python(_WITH_SSL, start_lab()), children()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests make folders of their own at the same time
    run_command(program, capture=fast_backend)
    assert children() == processes
    assert foreign_threads() == []
    assert glob.glob(str(tmp_path / "netdiag-*")) == []


def test_what_cannot_be_run() -> None:
    with pytest.raises(ToolMissing, match="no-such-program"):
        run_command(["no-such-program"])
    with pytest.raises(UsageError):
        run_command([])
    with pytest.raises(UsageError):
        run_command(["true"], capture="none")


def test_sockets_of_a_process_and_its_children() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        mine = Endpoint(*client.getsockname()), Endpoint(*client.getpeername())
        assert mine in connections_of(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10)"])
    try:
        assert set(descendants(os.getpid())) >= {os.getpid(), child.pid}
    finally:
        child.kill()
        child.wait()
