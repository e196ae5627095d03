"""The lab's HTTPS server: an LLM-like API on HTTP/1.1 and HTTP/2 that does exactly what it is told and logs when it did it.

with LabServer(LabConfig(behaviour=Behaviour(wait_ms=100))) as server:
    httpx.get(server.url + "/v1/models", verify=server.ca_file)
    print(server.log.exchanges())
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import shutil
import socket
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from netdiag.errors import NetdiagError, UsageError
from netdiag.lab.answers import Application
from netdiag.lab.certificates import Authority
from netdiag.lab.clock import precise_event_loop
from netdiag.lab.config import LabConfig
from netdiag.lab.conversation import serve_connection
from netdiag.lab.link import Link, stamp_arrivals
from netdiag.lab.tls_server import TlsServer, handshake
from netdiag.lab.truth import TruthLog

_STOP_SECONDS = 5.0


class AddressInUse(NetdiagError):
    """The port is taken, or the address is not one of this machine."""

    exit_code = 69
    code = "address-in-use"


class LabServer:
    """A server in a thread of its own with its own event loop."""

    def __init__(self, config: LabConfig | None = None, *, log_stream: TextIO | None = None) -> None:
        """Nothing is opened before ``start``. ``log_stream`` gets the truth as JSON lines while it is made."""
        self.config = config or LabConfig()
        self.log = TruthLog(log_stream)
        self._folder: Path | None = None
        self._listeners: list[socket.socket] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._application = Application(self.config.behaviour, self.config.seed)
        self._connections = 0
        self._stop_event: asyncio.Event

    # --- what a client needs ---------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port, also when any was asked for."""
        return int(self._listeners[0].getsockname()[1])

    @property
    def url(self) -> str:
        """``https://localhost:PORT`` without a path."""
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        return f"{'https' if self.config.tls else 'http'}://{host}:{self.port}"

    @property
    def ca_file(self) -> str:
        """The root certificate to trust, as a PEM file that lives as long as the server."""
        assert self._folder is not None, "the server has not been started"
        return str(self._folder / "ca.pem")

    # --- life ------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Bind and serve; returns when connections are accepted. Raises AddressInUse or UsageError."""
        self._folder = Path(tempfile.mkdtemp(prefix="netdiag-lab-"))
        try:
            tls = self._make_tls(self._folder)
            self._listeners = listen(self.config)
            loop_ready = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(tls, loop_ready), name="netdiag-lab", daemon=True)
            self._thread.start()
            loop_ready.wait(_STOP_SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Close everything and remove the folder; a second call does nothing."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop_event.set)
            self._thread.join(_STOP_SECONDS)
        self._thread = None
        for listener in self._listeners:
            listener.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def _make_tls(self, folder: Path) -> TlsServer | None:
        if not self.config.tls:
            return None
        authority = Authority()
        (folder / "ca.pem").write_bytes(authority.pem)
        return TlsServer(self.config, authority.issue(self.config.names, chain_bytes=self.config.chain_bytes), folder)

    def _run(self, tls: TlsServer | None, ready: threading.Event) -> None:
        loop = precise_event_loop()
        self._loop, self._stop_event = loop, asyncio.Event()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._serve(tls, ready))
        finally:
            self._loop = None
            asyncio.set_event_loop(None)
            loop.close()

    async def _serve(self, tls: TlsServer | None, ready: threading.Event) -> None:
        accepting = [asyncio.ensure_future(self._accept(listener, tls)) for listener in self._listeners]
        ready.set()
        await self._stop_event.wait()
        everything = asyncio.all_tasks() - {asyncio.current_task()}
        for task in (*accepting, *everything):
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)

    # --- connections -----------------------------------------------------------------------------------------------

    async def _accept(self, listener: socket.socket, tls: TlsServer | None) -> None:
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()
        while True:
            sock, peer = await loop.sock_accept(listener)
            number, self._connections = self._connections, self._connections + 1
            self.log.add(
                "accept", number, at=time.time_ns(), client=_address(peer), server=_address(sock.getsockname())
            )
            task = asyncio.ensure_future(self._connection(sock, number, tls))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _connection(self, sock: socket.socket, number: int, tls: TlsServer | None) -> None:
        config = self.config
        link = Link(sock, nodelay=config.nodelay, record_bytes=config.record_bytes)
        secure = None if tls is None else partial(handshake, link, tls, config, self.log, number)
        await serve_connection(link, number, config, self._application, self.log, secure)


def listen(config: LabConfig) -> list[socket.socket]:
    """Listening sockets, all on one port. Raises AddressInUse with the address in the sentence."""
    addresses = _addresses(config.host)
    last: OSError | None = None
    for _ in range(20):
        opened: list[socket.socket] = []
        try:
            for family, address in addresses:
                port = opened[0].getsockname()[1] if opened else config.port
                with contextlib.suppress(_NoSuchFamily):
                    opened.append(_listener(family, address, port, config, optional=bool(opened)))
            return opened
        except OSError as error:
            last = error
            for sock in opened:
                sock.close()
            if config.port or error.errno != errno.EADDRINUSE:
                break
    assert last is not None
    reason = "is in use" if last.errno == errno.EADDRINUSE else f"cannot be used: {last.strerror}"
    raise AddressInUse(f"{config.host} port {config.port} {reason}", advice="choose another with --port")


class _NoSuchFamily(Exception):
    """IPv6 is not there; IPv4 does."""


def _addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    if host == "localhost":
        return [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    try:
        found = [
            answer
            for part in host.split(",")
            for answer in socket.getaddrinfo(part, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        ]
    except OSError as error:
        raise UsageError(f"{host!r} is no address to listen on: {error}") from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _listener(
    family: socket.AddressFamily, address: str, port: int, config: LabConfig, *, optional: bool
) -> socket.socket:
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        if optional:
            raise _NoSuchFamily from None
        raise
    try:
        _prepare(sock, family, config)
        sock.bind((address, port))
        sock.listen(config.backlog)
    except OSError as error:
        sock.close()
        if optional and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            raise _NoSuchFamily from None
        raise
    return sock


def _prepare(sock: socket.socket, family: socket.AddressFamily, config: LabConfig) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if config.receive_buffer_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.receive_buffer_bytes)
    if config.send_buffer_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.send_buffer_bytes)
    stamp_arrivals(sock)


def _address(name: tuple[str, int] | tuple[str, int, int, int]) -> str:
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
