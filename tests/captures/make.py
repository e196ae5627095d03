"""Makes the captures of ``captures/`` anew: ``python -m tests.captures.make [NAME …]``. Needs dumpcap and the right to capture on loopback.

The real ones are the lab server and httpx over loopback, recorded by dumpcap and rewritten with the session secrets inside; the built ones come
from scenarios. ``NAME.truth.json`` is what the server (or the builder) knows. Afterwards: ``pytest tests/captures --regenerate``.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx

from netdiag.capture.source import open_capture
from netdiag.capture.writer import PcapngWriter
from netdiag.lab import Behaviour, LabConfig, LabServer
from netdiag.lab.builder.output import record
from netdiag.lab.live import Target, on_testbed
from netdiag.lab.scenario import bundled, parse
from netdiag.wire.tables import Interface

FOLDER = Path(__file__).parents[2] / "captures"
CHAT = "/v1/chat/completions"
BUILT = {
    "built-dns-h1": "clean-h1",
    "built-h2-loss": "loss-in-stream",
    "built-tls-retry": "tls-retry",
    "built-continue": "continue",
}
"""Captures that come from scenarios: name and scenario."""

_CHAT_OVER_PATH = """
[server]
tickets = 2
[answer]
wait_ms = 40
events = 10
gap_ms = 30
stream = true
[[connection]]
[[connection.request]]
path = "/v1/chat/completions"
"""
PATH: dict[str, tuple[str, str]] = {
    "path-loss-in-stream": (
        "h2",
        """
[path]
rtt_ms = 80
down = { drops = [{ what = "data", nth = 9 }] }
"""
        + _CHAT_OVER_PATH,
    ),
    "path-syn-lost": (
        "h1",
        """
[path]
rtt_ms = 40
up = { drops = [{ what = "syn", nth = 1 }] }
[answer]
wait_ms = 20
[[connection]]
[[connection.request]]
method = "GET"
path = "/v1/models"
""",
    ),
    "path-slow-link": (
        "h1",
        """
[path]
rtt_ms = 30
down = { rate_mbit = 1.0 }
[[connection]]
[[connection.request]]
method = "GET"
path = "/bytes/40000"
""",
    ),
}
"""Captures over the emulated path (real kernels in namespaces): arm and scenario."""

Conversation = Callable[[httpx.AsyncClient], Awaitable[Any]]


async def once(client: httpx.AsyncClient) -> None:
    await client.get("/v1/models")


async def streamed(client: httpx.AsyncClient) -> None:
    await client.post(CHAT, json={"stream": True, "messages": [{"role": "user", "content": "Where did the time go?"}]})


async def reused(client: httpx.AsyncClient) -> None:
    await client.get("/v1/models")
    await asyncio.sleep(0.15)
    await client.get("/bytes/20000")
    await asyncio.sleep(0.3)
    await client.post("/echo", content=b"a" * 3000)


async def several(client: httpx.AsyncClient) -> None:
    await client.get("/v1/models")
    await asyncio.gather(
        client.post(CHAT + "?events=5&gap_ms=15", json={"stream": True}),
        client.get("/delay/60"),
        client.get("/bytes/15000"),
        client.get("/status/404"),
    )


REAL: dict[str, tuple[bool, LabConfig, Conversation]] = {
    "h1": (False, LabConfig(behaviour=Behaviour(wait_ms=50)), once),
    "h2": (True, LabConfig(behaviour=Behaviour(wait_ms=50)), once),
    "h1-stream": (False, LabConfig(behaviour=Behaviour(wait_ms=40, events=6, gap_ms=20)), streamed),
    "h2-stream": (True, LabConfig(behaviour=Behaviour(wait_ms=40, events=6, gap_ms=20)), streamed),
    "h1-reused": (False, LabConfig(behaviour=Behaviour(wait_ms=20)), reused),
    "h2-several-streams": (True, LabConfig(behaviour=Behaviour(wait_ms=20)), several),
    "tls12-h1": (False, LabConfig(tls_maximum="1.2", behaviour=Behaviour(wait_ms=30)), once),
    "clear-text-h2": (True, LabConfig(tls=False, behaviour=Behaviour(wait_ms=30)), once),
}
"""Captures of real conversations: HTTP/2 or not, the server, what the client does."""


def make_real(name: str) -> None:
    """Record one conversation on loopback."""
    http2, config, conversation = REAL[name]
    with tempfile.TemporaryDirectory() as folder, LabServer(config) as server:
        raw, keylog = Path(folder) / "raw.pcapng", Path(folder) / "keys.txt"
        keylog.touch(0o600)
        command = ["dumpcap", "-q", "-i", "lo", "-f", f"tcp port {server.port}", "-w", str(raw)]
        recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            _until_listening(recorder, raw)
            asyncio.run(_converse(server, conversation, http2=http2, keylog=keylog))
            server.log.settle()
            time.sleep(0.5)  # measured: dumpcap needs 0.3 s to have everything
        finally:
            recorder.terminate()
            recorder.wait()
        _with_secrets(raw, FOLDER / f"{name}.pcapng", keylog.read_bytes())
        truth = {"exchanges": [asdict(e) for e in server.log.exchanges()]}
    _write_json(FOLDER / f"{name}.truth.json", truth)


def _until_listening(recorder: subprocess.Popen[str], raw: Path) -> None:
    assert recorder.stderr is not None
    while not (line := recorder.stderr.readline()).startswith("File:"):
        if not line:
            sys.exit("dumpcap did not start: has this user the right to capture?")
    while not raw.exists() or not raw.stat().st_size:
        time.sleep(0.01)


async def _converse(server: LabServer, conversation: Conversation, *, http2: bool, keylog: Path) -> None:
    context = ssl.create_default_context(cafile=server.ca_file) if server.config.tls else ssl.create_default_context()
    context.keylog_filename = str(keylog)
    url = server.url.replace("localhost", "127.0.0.1")
    async with httpx.AsyncClient(
        base_url=url, verify=context, http1=not http2, http2=http2, trust_env=False, headers={"user-agent": "httpx"}
    ) as client:
        await conversation(client)


def _with_secrets(raw: Path, target: Path, keylog: bytes) -> None:
    with open_capture(raw) as capture, open(target, "wb") as file:
        interface = Interface(link_type=1, snap_bytes=0, ticks_per_second=1_000_000_000, name="lo")
        with PcapngWriter(file, interfaces=[interface], application="netdiag lab, loopback") as writer:
            writer.secrets(keylog)
            for window in capture.windows():
                rows = window.packets
                for at, offset, size in zip(rows.captured_at, rows.data_offset, rows.captured_bytes, strict=True):
                    writer.packet(bytes(window.buffer[offset : offset + size]), int(at))


def make_path(name: str) -> None:
    """One probe in namespaces, its own capture with the keys of its sessions."""
    arm, text = PATH[name]
    target = FOLDER / f"{name}.pcapng"

    def client(on: Target) -> None:
        assert on.run is not None
        command = [sys.executable, "-m", "netdiag", "probe", on.url, "-X", on.method, "--cacert", on.ca_file]
        command += ["-n", "1", "--arm", arm, "-o", str(target), "--embed-keys", "--force"]
        on.run(command)

    scenario = parse(text, name=name)
    _, truths = on_testbed(scenario, client)
    document = {
        "exchanges": [asdict(t.served) for t in truths],
        "rtt_ms": scenario.path.up.delay_ms + scenario.path.down.delay_ms,
    }
    _write_json(FOLDER / f"{name}.truth.json", document)


def make_built(name: str) -> None:
    """Write one scenario's capture."""
    recorded = record(bundled(BUILT[name]))
    (FOLDER / f"{name}.pcapng").write_bytes(recorded.capture)
    _write_json(FOLDER / f"{name}.truth.json", recorded.truth.to_dict())


def _write_json(file: Path, document: Any) -> None:
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main(names: list[str]) -> None:
    """All of them, or those named."""
    makers = dict.fromkeys(REAL, make_real) | dict.fromkeys(PATH, make_path) | dict.fromkeys(BUILT, make_built)
    for name in names or makers:
        makers[name](name)


if __name__ == "__main__":
    main(sys.argv[1:])
