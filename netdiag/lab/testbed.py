"""Tier 2: client and server in namespaces, the link between them, a name server, and any program run on the client's side.

with Testbed(path=Path.from_mapping({"rtt_ms": 40})) as bed:
    done = bed.run([sys.executable, "-m", "netdiag", "probe", bed.url + "/v1/models", "--cacert", bed.server.ca_file])
print(bed.link_rows, bed.server.log.exchanges())
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Self

from netdiag.errors import NetdiagError
from netdiag.lab.config import LabConfig
from netdiag.lab.emulator import LinkRow, read_log
from netdiag.lab.namespaces import SERVER_IPV4, SERVER_IPV6, Topology, topology
from netdiag.lab.path import Path
from netdiag.lab.server import LabServer

HOST = "llm.lab"
"""The name under which the server is reached; the certificate is made out to it."""
PORT = 443
_READY_SECONDS = 10.0
_SYSCTLS = ("tcp_congestion_control", "tcp_slow_start_after_idle", "tcp_syn_linear_timeouts", "tcp_notsent_lowat")

_DEFAULT_ZONE: Mapping[str, Mapping[str, Any]] = {HOST: {"addresses": {"A": [SERVER_IPV4]}}}


class Testbed:
    """A context manager; everything it makes ends with it, also when this process is killed."""

    def __init__(
        self,
        *,
        path: Path | None = None,
        server: LabConfig | None = None,
        zone: Mapping[str, Mapping[str, Any]] | None = None,
        sysctl: Mapping[str, str] | None = None,
    ) -> None:
        """``zone`` as ``name_server.Zone.from_mapping``; ``sysctl`` are keys under net.ipv4, set on both sides (their values in force
        are recorded with the truth). Raises ``PrivilegeMissing`` on entering where namespaces cannot be made."""
        self._path = path or Path()
        self._zone = dict(zone if zone is not None else _DEFAULT_ZONE)
        self._sysctl = dict(sysctl or {})
        config = server or LabConfig()
        names = (*config.names, HOST, SERVER_IPV4, SERVER_IPV6)
        port = config.port or PORT
        self._config = dataclasses.replace(config, host=f"{SERVER_IPV4},{SERVER_IPV6}", port=port, names=names)
        self._exit = contextlib.ExitStack()
        self.server: LabServer
        self.link_rows: list[LinkRow] = []
        """What the link did with each frame; filled when the testbed ends."""
        self.dns_rows: list[dict[str, Any]] = []
        """The name server's log; filled when the testbed ends."""
        self.kernel: dict[str, str] = {}
        """The kernel's settings that shape the traffic, as they were in force on the client's side."""

    @property
    def url(self) -> str:
        """``https://llm.lab`` (with the port where it is not 443)."""
        scheme = "https" if self._config.tls else "http"
        return f"{scheme}://{HOST}" + (
            "" if self._config.port == PORT and self._config.tls else f":{self._config.port}"
        )

    @property
    def topology(self) -> Topology:
        """The namespaces."""
        return self._topology

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._folder = FilePath(stack.enter_context(tempfile.TemporaryDirectory(prefix="netdiag-testbed-")))
            self._topology = stack.enter_context(topology())
            self._set_sysctls()
            self._start_link(stack)
            self._start_name_server(stack)
            self.server = self._topology.server.call(LabServer(self._config).start)
            stack.callback(self.server.stop)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program on the client's side; its resolver is the testbed's name server. ``options`` go to ``Popen``."""
        return self._topology.client.start(command, resolver=str(self._folder / "resolv.conf"), **options)

    def run(self, command: Sequence[str], *, timeout_s: float = 60.0) -> subprocess.CompletedProcess[bytes]:
        """Run a program on the client's side to its end, its output kept. Raises ``subprocess.TimeoutExpired``."""
        process = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(list(command), process.returncode, output, errors)

    def _set_sysctls(self) -> None:
        root = FilePath("/proc/sys/net/ipv4")
        for side in (self._topology.client, self._topology.server):
            for key, value in self._sysctl.items():
                side.call(lambda key=key, value=value: (root / key).write_text(value))  # type: ignore[misc]
        keys = [key for key in (*_SYSCTLS, *self._sysctl) if (root / key).exists()]
        self.kernel = self._topology.client.call(lambda: {key: (root / key).read_text().strip() for key in keys})

    def _start_link(self, stack: contextlib.ExitStack) -> None:
        config, log = self._folder / "path.json", self._folder / "link.log"
        config.write_text(json.dumps(self._path.to_mapping()))
        stack.callback(lambda: self.link_rows.extend(read_log(log)) if log.exists() else None)
        module = [sys.executable, "-m", "netdiag.lab.emulator", str(config), str(log), "c", "s"]
        _ready(stack, self._topology.link.start(module, stdout=subprocess.PIPE, stderr=subprocess.PIPE), "link")

    def _start_name_server(self, stack: contextlib.ExitStack) -> None:
        zone, log = self._folder / "zone.json", self._folder / "dns.log"
        zone.write_text(json.dumps(self._zone, default=list))
        (self._folder / "resolv.conf").write_text(f"nameserver {SERVER_IPV4}\n")
        stack.callback(lambda: self.dns_rows.extend(_json_lines(log)))
        module = [sys.executable, "-m", "netdiag.lab.name_server", str(zone), str(log), SERVER_IPV4]
        _ready(
            stack, self._topology.server.start(module, stdout=subprocess.PIPE, stderr=subprocess.PIPE), "name server"
        )

    def resolver_options(self, text: str) -> None:
        """Further lines of the client's resolv.conf (``search corp.lab``, ``options timeout:1 attempts:2``) for programs started from now."""
        file = self._folder / "resolv.conf"
        file.write_text(file.read_text() + text.rstrip("\n") + "\n")


def _ready(stack: contextlib.ExitStack, process: subprocess.Popen[bytes], what: str) -> None:
    stack.callback(_end, process)
    assert process.stdout is not None
    assert process.stderr is not None
    if process.stdout.readline() != b"ready\n":
        process.wait(_READY_SECONDS)
        reason = process.stderr.read().decode(errors="replace").strip().splitlines()
        raise NetdiagError(f"the lab's {what} did not start: {reason[-1] if reason else 'no reason given'}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_READY_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _json_lines(file: FilePath) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
