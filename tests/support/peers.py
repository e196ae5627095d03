"""Real HTTPS servers on loopback, started by a test and ended with it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netdiag.lab.certificates import Authority

BODY_BYTES = 50_000


@dataclass(frozen=True)
class Peer:
    """A running server."""

    name: str
    url: str
    ca_file: str


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def certificate(folder: Path) -> None:
    """ca.pem, chain.pem, key.pem for localhost."""
    authority = Authority()
    leaf = authority.issue(("localhost", "127.0.0.1"))
    (folder / "ca.pem").write_bytes(authority.pem)
    (folder / "chain.pem").write_bytes(leaf.chain)
    (folder / "key.pem").write_bytes(leaf.key)
    (folder / "key.pem").chmod(0o600)


def _site(folder: Path) -> Path:
    site = folder / "site"
    site.mkdir()
    (site / "index.html").write_bytes(b"x" * BODY_BYTES)
    return site


NGINX = """
daemon off; master_process off; error_log stderr crit; pid {folder}/nginx.pid;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port} ssl http2; server_name localhost; root {site};
    ssl_certificate {folder}/chain.pem; ssl_certificate_key {folder}/key.pem;
    {more}
  }}
}}
"""
CADDY = """
{{ "admin": {{"disabled": true}}, "logging": {{"logs": {{"default": {{"level": "ERROR"}}}}}}, "apps": {{
  "http": {{ "servers": {{ "s": {{ "listen": ["127.0.0.1:{port}"], "automatic_https": {{"disable": true}},
    "tls_connection_policies": [{{}}], "routes": [{{"handle": [{{"handler": "file_server", "root": "{site}"}}]}}] }} }} }},
  "tls": {{ "certificates": {{ "load_files": [{{"certificate": "{folder}/chain.pem", "key": "{folder}/key.pem"}}] }} }} }} }}
"""


def _command(name: str, folder: Path, port: int, more: str) -> list[str]:
    site = _site(folder)
    places = {"folder": folder, "site": site, "port": port, "more": more}
    if name == "nginx":
        (folder / "nginx.conf").write_text(NGINX.format(**places))
        return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    if name == "caddy":
        (folder / "caddy.json").write_text(CADDY.format(**places))
        return ["caddy", "run", "--config", str(folder / "caddy.json")]
    return [
        "nghttpd",
        "-d",
        str(site),
        "-a",
        "127.0.0.1",
        str(port),
        str(folder / "key.pem"),
        str(folder / "chain.pem"),
    ]


@contextlib.contextmanager
def running_peer(name: str, folder: Path, *, more: str = "") -> Iterator[Peer]:
    """nginx, caddy or nghttpd serving one file of ``BODY_BYTES``; skips the test when it is not installed.

    ``more``: further lines of nginx' server block.
    """
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    certificate(folder)
    port = free_port()
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        _command(name, folder, port, more),
        stdout=log,
        stderr=log,
        env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
        },
    )
    try:
        _wait_until_it_listens(process, port, folder / "log")
        yield Peer(name, f"https://localhost:{port}", str(folder / "ca.pem"))
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(200):
        if process.poll() is not None:
            pytest.fail(f"the server ended: {log.read_text(errors='replace')[-500:]}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    pytest.fail(f"the server does not listen: {log.read_text(errors='replace')[-500:]}")
