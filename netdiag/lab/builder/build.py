"""From a scenario to what an observer would have captured. A newcomer starts here.

``build`` runs the hosts in virtual time; ``Built`` then holds the frames at the capture point, the session secrets, what the server and the
client noted, and writes the capture and the truth beside it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import ipaddress
import random
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ed25519

from netdiag.lab.builder.dns_client import Resolution, StubResolver, name_server
from netdiag.lab.builder.http1_client import Http1Client
from netdiag.lab.builder.http2_client import Http2Client
from netdiag.lab.builder.marks import ExchangeMarks
from netdiag.lab.builder.network import Host, Network, Sighting
from netdiag.lab.builder.tcp import Endpoint, Place, TcpError
from netdiag.lab.builder.tls_client import ClientHandshake
from netdiag.lab.builder.tls_server import ServerHandshake
from netdiag.lab.builder.tls_session import KeyLog, ServerIdentity, Session
from netdiag.lab.builder.tls_stream import Stream, Ticket
from netdiag.lab.builder.virtual_time import VirtualLoop, now_ns, run_virtual
from netdiag.lab.certificates import Authority, SeededSource
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.conversation import serve_connection
from netdiag.lab.host_settings import ResolverSettings, TcpSettings, TlsClientSettings
from netdiag.lab.link import PeerGone
from netdiag.lab.path import Path
from netdiag.lab.scenario import ConnectionPlan, Scenario
from netdiag.lab.truth import TruthLog
from netdiag.lab.work import Backend

EPOCH_NS = 1_790_000_000_000_000_000
"""When every scenario begins: 2026-09-21 14:13:20 UTC."""
_LONGEST_DRAIN_S = 120
"""After the last request the hosts go on until nothing is on its way any more, but no longer than this."""


@dataclass(slots=True)
class ConnectionRun:
    """What became of one planned connection."""

    number: int
    plan: ConnectionPlan
    attempts: list[Endpoint] = field(default_factory=list)
    """TCP connections tried, in order."""
    winner: Endpoint | None = None
    server_end: Endpoint | None = None
    session: Session | None = None
    """The client's view of the TLS session; None in clear text or when none came about."""
    server_session: Session | None = None
    resolutions: list[Resolution] = field(default_factory=list)
    outcome: str = "ok"
    """``ok``, ``refused``, ``timeout:connect``, ``tls_fail`` or ``dns_fail``: how the set-up ended."""


@dataclass(slots=True)
class Built:
    """Everything that happened in a scenario."""

    scenario: Scenario
    sightings: list[Sighting]
    keylog: KeyLog
    log: TruthLog
    """The server's own rows, as the real server writes them."""
    marks: list[ExchangeMarks]
    runs: list[ConnectionRun]


def build(scenario: Scenario) -> Built:
    """Run a scenario. The same scenario gives the same octets and times. Raises UsageError for what its server cannot do."""
    return run_virtual(lambda: _run(scenario), epoch_ns=EPOCH_NS)


async def _run(scenario: Scenario) -> Built:
    return await _Run(scenario).run()


class _Run:
    """The hosts of one scenario while they run."""

    def __init__(self, scenario: Scenario) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._scenario = scenario
        self._loop = loop
        self._rng = random.Random(f"{scenario.seed}/hosts")
        self._network = Network(loop, scenario.seed, vantage=scenario.capture.at)
        self._keylog, self._log = KeyLog(), TruthLog()
        self._backend = Backend.of(scenario.server)
        self._marks: list[ExchangeMarks] = []
        self._runs = [ConnectionRun(i, plan) for i, plan in enumerate(scenario.connections)]
        self._ended = [asyncio.Event() for _ in self._runs]
        self._tickets: list[Ticket] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._identity = self._make_identity()
        self._client = self._make_hosts()
        self._resolver = self._make_resolver()

    async def run(self) -> Built:
        """All connections, then a while for what is still on its way."""
        await asyncio.gather(*(self._connection(run) for run in self._runs))
        await self._drain()
        sightings = sorted(self._network.sightings, key=lambda s: (s.at if s.at is not None else s.sent_at, s.serial))
        return Built(self._scenario, sightings, self._keylog, self._log, self._marks, self._runs)

    async def _drain(self) -> None:
        """Let the last acknowledgements and retransmissions come; three quiet seconds in any case, as a FIN may be answered late."""
        for _ in range(_LONGEST_DRAIN_S // 3):
            await asyncio.sleep(3.0)
            ends = [end for run in self._runs for end in (*run.attempts, run.server_end) if end is not None]
            if all(end.state != "established" or end.sender.idle for end in ends):
                return

    # --- hosts -----------------------------------------------------------------------------------------------------

    def _make_identity(self) -> ServerIdentity:
        scenario = self._scenario
        now = datetime.datetime.fromtimestamp(EPOCH_NS // 1_000_000_000, datetime.UTC)
        source = SeededSource(random.Random(f"{scenario.seed}/certificates"), now)
        leaf = Authority(source=source).issue(scenario.server.names, chain_bytes=scenario.server.chain_bytes)
        assert isinstance(leaf.private_key, ed25519.Ed25519PrivateKey)
        return ServerIdentity(leaf.certificates, leaf.private_key)

    def _make_hosts(self) -> Host:
        scenario, network = self._scenario, self._network
        hosts = scenario.hosts
        client_addresses = [hosts.client]
        for other in (hosts.server, *hosts.silent, *hosts.refusing, *self._zone_addresses()):
            if all((":" in other) != (":" in mine) for mine in client_addresses):
                client_addresses.append("2001:db8::10" if ":" in other else "192.0.2.10")
        client = Host(network, scenario.client_tcp, is_client=True, addresses=tuple(map(_packed, client_addresses)))
        network.add(client, None)
        dead = {*hosts.silent, *hosts.refusing}
        living = dict.fromkeys((hosts.server, *(a for a in self._zone_addresses() if a not in dead)))
        server = Host(
            network, scenario.server_tcp, is_client=False, addresses=tuple(map(_packed, living)), listener=self._accept
        )
        network.add(server, scenario.path)
        if hosts.refusing:
            refusing = Host(
                network,
                scenario.server_tcp,
                is_client=False,
                addresses=tuple(map(_packed, hosts.refusing)),
                refuses=True,
            )
            network.add(refusing, scenario.path)
        return client

    def _zone_addresses(self) -> list[str]:
        return [a for name in self._scenario.zone.values() for kind in name.addresses.values() for a in kind]

    def _make_resolver(self) -> StubResolver | None:
        scenario = self._scenario
        if scenario.resolver is None:
            return None
        address = _packed(scenario.hosts.resolver)
        host = Host(self._network, TcpSettings(), is_client=False, addresses=(address,))
        self._network.add(host, _resolver_path(scenario.resolver, scenario.seed))
        name_server(host, scenario.zone, self._loop)
        return StubResolver(self._client, address, scenario.resolver)

    # --- the server ------------------------------------------------------------------------------------------------

    def _accept(self, endpoint: Endpoint) -> None:
        run = next(r for r in self._runs if any(_same(e, endpoint) for e in r.attempts))
        run.server_end = endpoint
        self._log.add("accept", run.number, at=now_ns(), client=_text(endpoint.remote), server=_text(endpoint.local))
        task = asyncio.ensure_future(self._serve(run, endpoint))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, run: ConnectionRun, endpoint: Endpoint) -> None:
        scenario = self._scenario
        stream = Stream(endpoint, record_bytes=scenario.server.record_bytes)
        if scenario.server.send_buffer_bytes:
            stream.buffer_bytes = scenario.server.send_buffer_bytes

        async def handshake() -> str | None:
            rng = random.Random(f"{scenario.seed}/server/{run.number}")
            server = ServerHandshake(stream, scenario.server, scenario.server_tls, self._identity, rng)
            session = run.server_session = await server.run(_offered(scenario, run.plan))
            self._log.add(
                "tls-done", run.number, at=now_ns(), version=f"TLSv{session.version}", resumed=session.resumed
            )
            return session.alpn

        secure = handshake if scenario.server.tls else None
        await serve_connection(stream, run.number, scenario.server, self._backend, self._log, secure)

    # --- the client ------------------------------------------------------------------------------------------------

    async def _connection(self, run: ConnectionRun) -> None:
        plan = run.plan
        if plan.after is not None:
            await self._ended[plan.after].wait()
        await until(Stamp.now().after(ns(plan.opens_at_ms)))
        patience = None if plan.timeout_ms is None else plan.timeout_ms / 1e3
        try:
            async with asyncio.timeout(patience):
                await self._talk(run)
        except TimeoutError:
            self._abandon(run)
        finally:
            self._ended[run.number].set()

    def _abandon(self, run: ConnectionRun) -> None:
        """The client's patience is over: whatever is unfinished has timed out."""
        if run.winner is not None and run.winner.state == "established":
            run.winner.abort()
        mine = [m for m in self._marks if m.connection == run.number]
        for marks in mine:
            if marks.outcome == "incomplete":
                marks.outcome, marks.ended_at = "timeout:total", now_ns()
        if not mine:
            self._failed(run, "timeout:total")

    async def _talk(self, run: ConnectionRun) -> None:
        addresses = await self._addresses(run)
        if not addresses:
            return self._failed(run, "dns_fail")
        try:
            endpoint = await self._connect(run, addresses)
        except TcpError as error:
            return self._failed(run, "refused" if error.reason == "refused" else "timeout:connect")
        run.winner = endpoint
        stream = Stream(endpoint)
        protocol = run.plan.protocol
        if self._scenario.server.tls:
            try:
                protocol = await self._secure(run, stream) or "http/1.1"
            except PeerGone:
                outcome = "reset" if endpoint.failure == "reset" else "tls_fail"
                stream.end(notify=False)
                return self._failed(run, outcome)
        client = (Http2Client if protocol == "h2" else Http1Client)(
            stream, run.plan, run.number, self._authority(), self._marks.append
        )
        await client.run()
        if run.plan.stays_ms and endpoint.state == "established":
            await until(Stamp.now().after(ns(run.plan.stays_ms)))
        self._tickets += stream.take_tickets()
        stream.end()
        return None

    def _failed(self, run: ConnectionRun, outcome: str) -> None:
        """The set-up failed: so did its first request."""
        run.outcome = outcome
        request = run.plan.requests[0]
        marks = ExchangeMarks(connection=run.number, request=0, method=request.method, path=request.path)
        marks.outcome, marks.ended_at = outcome, now_ns()
        self._marks.append(marks)

    async def _addresses(self, run: ConnectionRun) -> list[str]:
        if run.plan.addresses:
            return list(run.plan.addresses)
        if self._resolver is None or not run.plan.resolve:
            return [self._scenario.hosts.server]
        before = len(self._resolver.resolutions)
        addresses = await self._resolver.resolve(self._scenario.hosts.name)
        run.resolutions = self._resolver.resolutions[before:]
        return addresses

    async def _connect(self, run: ConnectionRun, addresses: list[str]) -> Endpoint:
        """One address after another, or a race (RFC 8305). Raises the last TcpError."""
        racing: dict[asyncio.Task[Endpoint], None] = {}
        left, last = list(addresses), TcpError("timeout")
        delay_ms = run.plan.race_ms
        while left or racing:
            if left:
                racing[asyncio.ensure_future(self._attempt(run, left.pop(0)))] = None
            pause = delay_ms / 1e3 if delay_ms is not None and left else None
            done, _ = await asyncio.wait(racing, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del racing[task]
                error = task.exception()
                if error is None:
                    self._give_up(run, task.result(), list(racing))
                    return task.result()
                assert isinstance(error, TcpError)
                last = error
        raise last

    async def _attempt(self, run: ConnectionRun, address: str) -> Endpoint:
        packed = _packed(address)
        mine = next(a for a in self._client.addresses if len(a) == len(packed))
        endpoint = self._client.open(mine, Place(packed, self._scenario.hosts.port), run.plan.port)
        run.attempts.append(endpoint)
        patience = run.plan.connect_timeout_ms
        try:
            async with asyncio.timeout(None if patience is None else patience / 1e3):
                await endpoint.connect()
        except TimeoutError:
            endpoint.abort()
            raise TcpError("timeout") from None
        return endpoint

    def _give_up(self, run: ConnectionRun, winner: Endpoint, racing: list[asyncio.Task[Endpoint]]) -> None:
        for task in racing:
            task.cancel()
        for endpoint in run.attempts:
            if endpoint is not winner and endpoint.state != "ended":
                endpoint.abort()

    async def _secure(self, run: ConnectionRun, stream: Stream) -> str | None:
        rng = random.Random(f"{self._scenario.seed}/client/{run.number}")
        ticket = self._tickets.pop() if self._tickets else None
        handshake = ClientHandshake(stream, _offered(self._scenario, run.plan), self._keylog, rng, ticket)

        async def finish() -> None:
            run.session = await handshake.run()

        if not handshake.sends_early:
            await finish()
            return stream.alpn
        rest = asyncio.ensure_future(finish())
        self._serving.add(rest)
        await handshake.early_ready.wait()
        stream.before_reading = lambda: asyncio.shield(rest)
        return stream.alpn

    def _authority(self) -> str:
        hosts = self._scenario.hosts
        return hosts.name if hosts.port in (80, 443) else f"{hosts.name}:{hosts.port}"


def _offered(scenario: Scenario, plan: ConnectionPlan) -> TlsClientSettings:
    """A connection meant for HTTP/1.1 does not offer h2."""
    alpn = ("h2", "http/1.1") if plan.protocol == "h2" else ("http/1.1",)
    return dataclasses.replace(scenario.client_tls, alpn=alpn, server_name=scenario.hosts.name)


def _resolver_path(settings: ResolverSettings, seed: int) -> Path:
    drops = [{"what": "udp", "nth": n} for n in settings.drop_queries]
    return Path.from_mapping({"rtt_ms": settings.rtt_ms, "seed": seed, "up": {"drops": drops}})


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def _text(place: Place) -> str:
    address = str(ipaddress.ip_address(place.address))
    return f"[{address}]:{place.port}" if ":" in address else f"{address}:{place.port}"


def _same(client_end: Endpoint, server_end: Endpoint) -> bool:
    return client_end.local == server_end.remote and client_end.remote == server_end.local
