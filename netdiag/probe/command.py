"""Any program under a capture: run it, log its session keys if its TLS library listens to SSLKEYLOGFILE, and know its connections."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from netdiag.capture.choose import start_first, wide_capture
from netdiag.capture.keep import keep, keep_keylog
from netdiag.capture.live import Captured, capture_ends
from netdiag.errors import ToolMissing, UsageError
from netdiag.probe import sockets
from netdiag.probe.plan import CAPTURE_BACKENDS

_LINGER_S = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConfig:
    """What to run and how to watch it. ``UsageError`` for what cannot be."""

    command: tuple[str, ...]
    capture: str = "auto"
    """A backend's name; there is nothing to report without packets, so ``none`` is refused."""
    interface: str | None = None
    """None: the ways to the Internet, and loopback."""
    save_capture: str | None = None
    embed_keys: bool = False
    keep_keys: str | None = None
    timeout_s: float | None = None
    """End the program after this long; None waits for it."""

    def __post_init__(self) -> None:
        if not self.command:
            raise UsageError("no command to run")
        if self.capture not in CAPTURE_BACKENDS or self.capture == "none":
            raise UsageError(f"capture backend {self.capture!r} cannot record a command")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a run brought home. The capture file exists as long as the ``observed`` block lasts."""

    captured: Captured
    saved: str | None
    keylog: bytes
    """What the program's TLS library logged; empty when it does not honour SSLKEYLOGFILE."""
    exit_code: int
    """Of the program; negative: the signal that ended it."""
    connections: frozenset[sockets.Pair]
    """(client, server) of the program's TCP connections that were seen while it ran."""
    started_at: int
    ended_at: int


@contextmanager
def observed(config: CommandConfig) -> Iterator[Observation]:
    """Run the command under a capture.

    Raises ``ToolMissing`` when the program cannot be started, ``Unavailable`` when nothing may capture here, ``OutputError`` when
    something that was to be kept cannot be.
    """
    program = shutil.which(config.command[0])
    if program is None:
        raise ToolMissing(f"there is no program {config.command[0]!r}")
    folder = tempfile.mkdtemp(prefix="netdiag-")
    try:
        keylog_path = _private_file(Path(folder) / "keys")
        path = os.path.join(folder, "run.pcapng")
        capture = start_first(
            config.capture, lambda backend: wide_capture(name=backend, path=path, interface=config.interface)
        )
        with capture_ends(capture):
            started_at = time.time_ns()
            exit_code, pairs = _run(program, config, keylog_path)
            ended_at = time.time_ns()
            captured = capture.finish(linger_s=_LINGER_S)
        keylog = keylog_path.read_bytes()
        _keep(config, captured.path, keylog)
        yield Observation(
            captured=captured,
            saved=config.save_capture,
            keylog=keylog,
            exit_code=exit_code,
            connections=pairs,
            started_at=started_at,
            ended_at=ended_at,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(program: str, config: CommandConfig, keylog: Path) -> tuple[int, frozenset[sockets.Pair]]:
    """The exit code, and the connections seen."""
    try:
        process = subprocess.Popen([program, *config.command[1:]], env=_environment(keylog))
    except OSError as error:
        raise ToolMissing(f"{program} cannot be started: {error.strerror}") from error
    watch = sockets.SocketWatch(process.pid) if sockets.available() else None
    with watch or nullcontext():
        try:
            code = _wait(process, config.timeout_s)
        finally:
            _end(process)
    return code, frozenset() if watch is None else watch.pairs()


def _wait(process: subprocess.Popen[bytes], timeout_s: float | None) -> int:
    """A ^C goes to the program too (it is in our process group): it decides, we wait for it once more."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        pass
    try:
        return process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def _environment(keylog: Path) -> dict[str, str]:
    """curl, Python and its libraries, Firefox and Chromium read SSLKEYLOGFILE. Node has an option of its own; whether the command starts one
    (``npm``, a shell script) cannot be seen from here, and nobody else minds the variable.
    """
    options = f"{os.environ.get('NODE_OPTIONS', '')} --tls-keylog={keylog}".strip()
    return {**os.environ, "SSLKEYLOGFILE": str(keylog), "NODE_OPTIONS": options}


def _private_file(path: Path) -> Path:
    """Made before anyone writes to it: Python would make it readable for all."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return path


def _keep(config: CommandConfig, path: str, keylog: bytes) -> None:
    if config.save_capture is not None:
        keep(path, config.save_capture, keylog if config.embed_keys else b"")
    if config.keep_keys is not None:
        keep_keylog(keylog, config.keep_keys)
