"""Small real capture files, made by the packet factory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from netdiag.cli.main import cli
from tests.support.packets import TcpTalk, pcap, tcp_conversation

GET = b"GET /v1/models HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer canary-1234\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"


def conversation(*answers: bytes, port: int = 443) -> bytes:
    """A capture of one connection in clear: a request and an answer for each of ``answers``."""
    turns = [part for answer in answers for part in ((0, GET), (1, answer))]
    return pcap(tcp_conversation(turns, talk=TcpTalk(server=("10.0.0.2", port))))


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Two requests, both answered."""
    path = tmp_path / "good.pcap"
    path.write_bytes(conversation(OK, OK))
    return path


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    """One request answered with 429."""
    path = tmp_path / "refused.pcap"
    path.write_bytes(conversation(TOO_MANY))
    return path


@pytest.fixture
def cut(tmp_path: Path, good: Path) -> Path:
    """The first half of a file."""
    path = tmp_path / "cut.pcap"
    path.write_bytes(good.read_bytes()[:-25])
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command in this process, without anything of the caller's terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)

    def invoke(*arguments: str | Path, input: bytes | None = None) -> Result:
        return CliRunner().invoke(cli, [str(a) for a in arguments], input=input, prog_name="netdiag")

    return invoke
