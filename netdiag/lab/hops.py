"""Tier T3: nginx, caddy and nghttpd as real hops, in front of the lab server or serving by themselves.

Configuration, certificate and log are in a folder that goes with the hop; the program ends with it, by its process id. All of it is on
loopback.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from netdiag.errors import NetdiagError, ToolMissing, UsageError
from netdiag.lab.certificates import Authority, write_private

PROGRAMS = ("nginx", "caddy", "nghttpd")
_START_SECONDS = 10.0
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HopConfig:
    """What a hop does. Knobs that a program has not are a UsageError."""

    program: str = "nginx"
    origin: str | None = None
    """``http://localhost:PORT`` behind it (clear text); None: it serves ``files``."""
    buffering: bool = False
    """nginx: collect the answer before it is passed on (``proxy_buffering``)."""
    max_requests: int | None = None
    """nginx: end a connection with the so-manieth answer, with GOAWAY on HTTP/2 (``keepalive_requests``)."""
    idle_ms: float | None = None
    """nginx, caddy: close a connection that has been idle so long (nginx knows whole seconds)."""
    files: tuple[tuple[str, bytes], ...] = (("index.html", b"hop\n"),)

    def __post_init__(self) -> None:
        if self.program not in PROGRAMS:
            raise UsageError(f"hop: program {self.program!r} is none of {', '.join(PROGRAMS)}")
        if self.program != "nginx" and (self.buffering or self.max_requests is not None):
            raise UsageError(f"hop: buffering and max_requests are nginx's, not {self.program}'s")
        if self.program == "nghttpd" and (self.origin is not None or self.idle_ms is not None):
            raise UsageError("hop: nghttpd serves files only, and knows no idle limit")


class Hop:
    """A context manager: the program runs while it is entered. Raises ToolMissing on entering where it is not installed."""

    def __init__(self, config: HopConfig) -> None:
        self._config = config
        self._exit = contextlib.ExitStack()
        self.port = 0
        self.ca_file = ""

    @property
    def url(self) -> str:
        """``https://localhost:PORT`` without a path."""
        return f"https://localhost:{self.port}"

    def __enter__(self) -> Self:
        program = shutil.which(self._config.program)
        if program is None:
            raise ToolMissing(f"{self._config.program} is not installed", advice="it is needed for tier T3 only")
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="netdiag-hop-")))
            self.ca_file = str(_certificate(folder))
            _site(folder, self._config.files)
            self.port = _free_port()
            self._start(stack, folder, _command(program, self._config, folder, self.port))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._exit.close()

    def _start(self, stack: contextlib.ExitStack, folder: Path, command: list[str]) -> None:
        log = stack.enter_context((folder / "log").open("wb"))
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **home}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        stack.callback(_end, process)
        _until_it_listens(process, self.port, folder / "log")


def _certificate(folder: Path) -> Path:
    authority = Authority()
    leaf = authority.issue(("localhost", "127.0.0.1"))
    (folder / "chain.pem").write_bytes(leaf.chain)
    write_private(folder / "key.pem", leaf.key)
    (folder / "ca.pem").write_bytes(authority.pem)
    return folder / "ca.pem"


def _site(folder: Path, files: tuple[tuple[str, bytes], ...]) -> None:
    site = folder / "site"
    site.mkdir()
    for name, content in files:
        (site / name).write_bytes(content)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


# --- configurations ------------------------------------------------------------------------------------------------


def _command(program: str, config: HopConfig, folder: Path, port: int) -> list[str]:
    if config.program == "nginx":
        (folder / "nginx.conf").write_text(_nginx(config, folder, port))
        return [program, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    if config.program == "caddy":
        (folder / "caddy.json").write_text(json.dumps(_caddy(config, folder, port)))
        return [program, "run", "--config", str(folder / "caddy.json")]
    keys = [str(folder / "key.pem"), str(folder / "chain.pem")]
    return [program, "-d", str(folder / "site"), "-a", "127.0.0.1", str(port), *keys]


def _nginx(config: HopConfig, folder: Path, port: int) -> str:
    temporary = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    lines = [f"{name}_temp_path {folder}/{name};" for name in temporary]
    if config.max_requests is not None:
        lines.append(f"keepalive_requests {config.max_requests};")
    if config.idle_ms is not None:
        lines.append(f"keepalive_timeout {max(1, round(config.idle_ms / 1e3))}s;")
    return "\n".join(
        [
            f"daemon off; master_process off; error_log stderr crit; pid {folder}/nginx.pid;",
            "events {}",
            "http { access_log off;",
            *lines,
            f"server {{ listen 127.0.0.1:{port} ssl http2; server_name localhost;",
            f"ssl_certificate {folder}/chain.pem; ssl_certificate_key {folder}/key.pem;",
            f"location / {{ {_nginx_location(config, folder)} }} }} }}",
        ]
    )


def _nginx_location(config: HopConfig, folder: Path) -> str:
    if config.origin is None:
        return f"root {folder}/site;"
    buffering = "on" if config.buffering else "off"
    return f'proxy_pass {config.origin}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering {buffering};'


def _caddy(config: HopConfig, folder: Path, port: int) -> dict[str, object]:
    if config.origin is None:
        handler: dict[str, object] = {"handler": "file_server", "root": str(folder / "site")}
    else:
        dial = config.origin.partition("://")[2]
        handler = {"handler": "reverse_proxy", "upstreams": [{"dial": dial}], "flush_interval": -1}
    server: dict[str, object] = {
        "listen": [f"127.0.0.1:{port}"],
        "automatic_https": {"disable": True},
        "tls_connection_policies": [{}],
        "routes": [{"handle": [handler]}],
    }
    if config.idle_ms is not None:
        server["idle_timeout"] = round(config.idle_ms * 1e6)
    pair = {"certificate": str(folder / "chain.pem"), "key": str(folder / "key.pem")}
    return {
        "admin": {"disabled": True},
        "logging": {"logs": {"default": {"level": "ERROR"}}},
        "apps": {"http": {"servers": {"hop": server}}, "tls": {"certificates": {"load_files": [pair]}}},
    }


# --- the process ---------------------------------------------------------------------------------------------------


def _until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return
        time.sleep(0.02)
    lines = log.read_text(errors="replace").strip().splitlines()
    raise NetdiagError(f"the hop did not start: {lines[-1] if lines else 'no reason given'}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
