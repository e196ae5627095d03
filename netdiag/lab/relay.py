"""A TCP relay that delays, collects, cuts and falls silent, without any privilege: the hop between client and server.

It ends one TCP connection and opens another, so what it does is what a proxy or a load balancer does, not what a lossy link does. With
``tls`` it also ends TLS: the edge in front of an origin that speaks clear text.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TextIO

from netdiag.errors import UsageError
from netdiag.lab.certificates import Authority
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.config import LabConfig
from netdiag.lab.conversation import HandshakeFailed
from netdiag.lab.link import Connection, Link, PeerGone, Received
from netdiag.lab.listening import Sockets
from netdiag.lab.service import Service
from netdiag.lab.tls_server import TlsServer, handshake
from netdiag.lab.truth import TruthLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What happens to the octets of one direction."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    """Uniform, from the seed, added to the delay; the order is kept."""
    collect_bytes: int | None = None
    """Let octets go only when so many have come (or at the end)."""
    collect_ms: float | None = None
    """Let octets go only so long after the first of them."""
    rate_kbit: float | None = None
    cut_after_bytes: int | None = None
    """End both connections when so many octets have passed."""
    cut_by: str = "reset"
    """``reset`` (RST) or ``fin``."""
    silent_after_bytes: int | None = None
    """Pass nothing more from there on; the connections stay open."""
    silent_ms: float | None = None
    """The silence ends after this long; None: never."""

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if self.cut_by not in ("reset", "fin"):
            raise UsageError(f"relay: cut_by must be reset or fin, not {self.cut_by!r}")
        if self.rate_kbit is not None and self.rate_kbit <= 0:
            raise UsageError("relay: rate_kbit must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayConfig:
    """Where it stands and what it does. ``up`` is towards the target."""

    target: tuple[str, int]
    host: str = "localhost"
    port: int = 0
    up: Flow = field(default_factory=Flow)
    down: Flow = field(default_factory=Flow)
    connect_ms: float = 0.0
    """Before the connection to the target is opened."""
    idle_ms: float | None = None
    """Cut (FIN) when nothing has passed in either direction for this long."""
    tls: LabConfig | None = None
    """End TLS here, with these settings; the target gets clear text."""
    seed: int = 0


Row = Callable[..., None]
"""Adds a row of the truth: kind, at, facts."""


class Cut(Exception):
    """The relay ends the connection on purpose."""

    def __init__(self, fault: str, by: str) -> None:
        super().__init__(fault)
        self.fault, self.by = fault, by


class LabRelay(Service):
    """The hop in a thread of its own. ``ca_file`` is there when it ends TLS."""

    def __init__(self, config: RelayConfig, *, log_stream: TextIO | None = None) -> None:
        """Nothing is opened before ``start``."""
        super().__init__(Sockets(host=config.host, port=config.port), log_stream=log_stream)
        self.config = config
        self.scheme = "https" if config.tls is not None else "http"
        self._tls: TlsServer | None = None

    @property
    def ca_file(self) -> str:
        """The root certificate to trust."""
        return str(self.folder / "ca.pem")

    def prepare(self) -> None:
        """A certificate of its own, where it ends TLS."""
        if self.config.tls is not None:
            authority = Authority("netdiag lab edge root, trust only in tests")
            (self.folder / "ca.pem").write_bytes(authority.pem)
            self._tls = TlsServer(self.config.tls, authority.issue(self.config.tls.names), self.folder)

    async def serve(self, sock: socket.socket, number: int) -> None:
        """Both connections of one client."""
        client = Link(sock)
        try:
            if self._tls is not None and self.config.tls is not None:
                await handshake(client, self._tls, self.config.tls, self.log, number)
        except (HandshakeFailed, PeerGone) as failed:
            self.log.add("tls-failed", number, at=time.time_ns(), reason=str(failed))
            client.reset()
            return
        await until(Stamp.now().after(ns(self.config.connect_ms)))
        await join(client, self.config, self.log, number)


async def join(client: Connection, config: RelayConfig, log: TruthLog, number: int) -> None:
    """Open the connection to the target and pass octets until one side ends."""
    try:
        server = await _open(config.target)
    except OSError as error:
        at = client.reset()
        log.add("fault", number, at=at, fault="target-unreachable", reason=str(error))
        return
    await pass_octets(client, server, config, log, number)


async def _open(target: tuple[str, int]) -> Link:
    loop = asyncio.get_running_loop()
    last: OSError = OSError("no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(*target, type=socket.SOCK_STREAM):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:  # this host lacks the family
            last = error
            continue
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
            return Link(sock)
        except OSError as error:
            sock.close()
            last = error
    raise last


async def pass_octets(client: Connection, server: Connection, config: RelayConfig, log: TruthLog, number: int) -> None:
    """Both directions, each with its own faults, until both have ended or the relay cuts."""
    activity = _Activity()
    row = partial(_row, log, number)
    pumps = [
        asyncio.ensure_future(_Pump(client, server, config.up, f"{config.seed}/{number}/up", activity, row).run("up")),
        asyncio.ensure_future(
            _Pump(server, client, config.down, f"{config.seed}/{number}/down", activity, row).run("down")
        ),
    ]
    watcher = asyncio.ensure_future(_watch_idle(config, activity))
    try:
        await _first_failure([*pumps, watcher], pumps)
        _end_both(client, server, "fin")
        log.add("close", number, at=time.time_ns(), reason="ended")
    except Cut as cut:
        log.add("fault", number, at=_end_both(client, server, cut.by), fault=cut.fault)
    except PeerGone:
        log.add("close", number, at=_end_both(client, server, "reset"), reason="peer-reset")
    except asyncio.CancelledError:
        _end_both(client, server, "reset")
        raise
    finally:
        for task in (*pumps, watcher):
            task.cancel()
        await asyncio.gather(*pumps, watcher, return_exceptions=True)
    await asyncio.gather(client.linger(), server.linger())


async def _first_failure(tasks: Sequence[asyncio.Future[None]], needed: Sequence[asyncio.Future[None]]) -> None:
    """Wait for all that are needed; raise what any of the tasks raises."""
    pending = set(tasks)
    while not all(task.done() for task in needed):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


def _end_both(client: Connection, server: Connection, by: str) -> int:
    at = time.time_ns()
    for side in (client, server):
        if by == "reset":
            side.reset()
        else:
            side.end()
    return at


def _row(log: TruthLog, number: int, kind: str, at: int, **facts: object) -> None:
    log.add(kind, number, at=at, request=None, **facts)


@dataclass(slots=True)
class _Activity:
    """When something last passed."""

    at: Stamp = field(default_factory=Stamp.now)


async def _watch_idle(config: RelayConfig, activity: _Activity) -> None:
    if config.idle_ms is None:
        await asyncio.Event().wait()
        return
    while True:
        deadline = activity.at.after(ns(config.idle_ms))
        await until(deadline)
        if activity.at.after(ns(config.idle_ms)).monotonic_ns <= deadline.monotonic_ns:
            raise Cut("idle", "fin")


class _Pump:
    """One direction: reads at once, writes when due."""

    def __init__(
        self, source: Connection, target: Connection, flow: Flow, seed: str, activity: _Activity, row: Row
    ) -> None:
        self._source, self._target, self._flow, self._activity = source, target, flow, activity
        self._random = random.Random(seed)
        self._row = row
        self._queue: asyncio.Queue[tuple[Stamp, bytes] | None] = asyncio.Queue()
        self._passed_bytes = 0
        self._busy_until = 0
        self._last_due = 0
        self._silenced = False
        self._opened = Stamp.now()

    async def run(self, name: str) -> None:
        """Until the source ends and all its octets are through; the end is passed on (half-close)."""
        reading = asyncio.ensure_future(self._read())
        try:
            await self._write(name)
            self._target.end()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self) -> None:
        held, since = bytearray(), Stamp.now()
        while True:
            received = await self._next(held, since)
            if received is None:
                break
            if isinstance(received, Received):
                since = since if held else self._counted_from(received)
                held += received.data
            limit = self._flow.collect_bytes
            timed_out = not isinstance(received, Received)
            waits = self._flow.collect_ms is not None or limit is not None
            if held and (not waits or timed_out or (limit is not None and len(held) >= limit)):
                self._queue.put_nowait((self._due(Stamp.now() if waits else since, len(held)), bytes(held)))
                held.clear()
        if held:
            self._queue.put_nowait((self._due(Stamp.now(), len(held)), bytes(held)))
        self._queue.put_nowait(None)

    async def _next(self, held: bytearray, since: Stamp) -> Received | str | None:
        """Octets, None at the end, or ``"time"`` when what is held must go."""
        if not held or self._flow.collect_ms is None:
            return await self._receive()
        left_ns = since.after(ns(self._flow.collect_ms)).monotonic_ns - Stamp.now().monotonic_ns
        try:
            async with asyncio.timeout(max(0, left_ns) / 1e9):
                return await self._receive()
        except TimeoutError:
            return "time"

    async def _receive(self) -> Received | None:
        try:
            return await self._source.receive()
        except PeerGone as gone:
            raise Cut("peer-reset", "reset") from gone

    def _counted_from(self, received: Received) -> Stamp:
        """The delay counts from arrival, but the way to the target begins when the connection to it is open."""
        arrived = Stamp.at_wall(received.at)
        return max(arrived, self._opened, key=lambda stamp: stamp.monotonic_ns)

    def _due(self, at: Stamp, size: int) -> Stamp:
        flow = self._flow
        delay_ns = ns(flow.delay_ms) + round(self._random.random() * ns(flow.jitter_ms))
        due_ns = at.monotonic_ns + delay_ns
        if flow.rate_kbit is not None:
            self._busy_until = max(self._busy_until, due_ns) + round(size * 8e6 / flow.rate_kbit)
            due_ns = self._busy_until
        self._last_due = max(self._last_due, due_ns)
        return at.after(self._last_due - at.monotonic_ns)

    async def _write(self, name: str) -> None:
        while (item := await self._queue.get()) is not None:
            due, data = item
            await until(due)
            await self._pass(name, due, data)

    async def _pass(self, name: str, due: Stamp, data: bytes) -> None:
        flow = self._flow
        for limit, act in ((flow.silent_after_bytes, self._fall_silent), (flow.cut_after_bytes, self._cut)):
            room = None if limit is None else limit - self._passed_bytes
            if room is not None and 0 <= room < len(data):
                await self._forward(name, due, data[:room])
                await act(name)
                data = data[room:]
        await self._forward(name, due, data)

    async def _forward(self, name: str, due: Stamp, data: bytes) -> None:
        if not data:
            return
        sent = await self._target.send(data)
        self._passed_bytes += len(data)
        self._activity.at = Stamp.now()
        self._row("passed", sent.at, direction=name, size_bytes=len(data), due_at=due.wall_ns)

    async def _cut(self, name: str) -> None:
        raise Cut(f"cut-{name}", self._flow.cut_by)

    async def _fall_silent(self, name: str) -> None:
        if self._silenced:
            return
        self._silenced = True
        self._row("fault", time.time_ns(), fault=f"silent-{name}")
        if self._flow.silent_ms is None:
            await asyncio.Event().wait()
        else:
            await until(Stamp.now().after(ns(self._flow.silent_ms)))
