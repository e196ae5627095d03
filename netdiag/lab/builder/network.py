"""Hosts, the path between them, and the point where an observer watches: every frame's departure, fate and sighting."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from netdiag.lab.builder.segment import Datagram, Segment, parse
from netdiag.lab.builder.tcp import Endpoint, Place
from netdiag.lab.builder.virtual_time import VirtualLoop, now_ns
from netdiag.lab.clock import ns
from netdiag.lab.host_settings import TcpSettings
from netdiag.lab.path import DirectionModel, Path
from netdiag.wire.tcp_flags import ACK, RST, SYN

_FIRST_PORT = 50_000


@dataclass(slots=True)
class Sighting:
    """One frame at the capture point, or one that never came there (``at`` is None)."""

    at: int | None
    sent_at: int
    frame: bytes
    from_client: bool
    kind: str
    """Why it was sent: ``new``, ``fast``, ``rto``, ``tlp``, ``ack``, ``delayed-ack``, ``window-update``, ``keep-alive``, ``window-probe``,
    ``reset``, ``datagram``, ``forged``."""
    fate: str
    """What the path did with it: ``pass``, ``hold``, ``duplicate``, ``drop:`` and the reason."""
    serial: int = 0


@dataclass(slots=True)
class Host:
    """A machine with addresses; TCP connections and UDP ports live on it."""

    network: Network
    settings: TcpSettings
    is_client: bool
    addresses: tuple[bytes, ...]
    refuses: bool = False
    """Answers every SYN with RST."""
    listener: Callable[[Endpoint], None] | None = None
    """Called with each connection that a peer has opened."""
    datagram_receiver: Callable[[Datagram], None] | None = None
    _endpoints: dict[tuple[Place, Place], Endpoint] = field(default_factory=dict)
    _next_port: int = _FIRST_PORT
    _busy_until: int = 0

    def open(self, local_address: bytes, remote: Place, port: int | None = None) -> Endpoint:
        """A new endpoint for an active open."""
        local = Place(local_address, port or self.take_port())
        return self._add(local, remote, is_client=True)

    def take_port(self) -> int:
        """The next ephemeral port."""
        self._next_port += 1
        return self._next_port - 1

    def _add(self, local: Place, remote: Place, *, is_client: bool) -> Endpoint:
        isn = self.network.random.getrandbits(32)
        endpoint = Endpoint(local, remote, self.settings, self, isn, is_client)
        self._endpoints[local, remote] = endpoint
        return endpoint

    def transmit(self, item: Segment | Datagram, kind: str) -> None:
        """Serialise onto the wire."""
        frame = item.frame()
        at = max(now_ns(), self._busy_until)
        self._busy_until = at + round(len(frame) * 8_000 / self.settings.nic_mbit)
        self.network.carry(frame, at, kind, self)

    def arrive(self, item: Segment | Datagram) -> None:
        """Something for this host has come in."""
        if isinstance(item, Datagram):
            if self.datagram_receiver is not None:
                self.network.loop.at(now_ns() + ns(self.settings.host_us / 1e3), self.datagram_receiver, item)
            return
        key = (Place(item.destination, item.destination_port), Place(item.source, item.source_port))
        endpoint = self._endpoints.get(key)
        if endpoint is not None and not (item.flags & SYN and endpoint.state == "ended"):
            endpoint.arrive(item)
        elif item.flags & SYN and not item.flags & ACK and not self.refuses and self.listener is not None:
            endpoint = self._add(*key, is_client=False)
            endpoint.on_established = self.listener
            endpoint.accept(item)
        elif not item.flags & RST:
            self._refuse(item)

    def _refuse(self, item: Segment) -> None:
        """RFC 9293 section 3.10.7.1: what fits no connection is reset."""
        size = len(item.payload) + bool(item.flags & SYN)
        reset = Segment(
            source=item.destination,
            destination=item.source,
            source_port=item.destination_port,
            destination_port=item.source_port,
            seq=item.ack if item.flags & ACK else 0,
            ack=(item.seq + size) & 0xFFFFFFFF,
            flags=RST | ACK,
            window=0,
            ttl=self.settings.ttl,
        )
        self.transmit(reset, "reset")


class Network:
    """One client host in the middle of a star: each other host has a path of its own to it."""

    def __init__(self, loop: VirtualLoop, seed: int, *, vantage: str) -> None:
        """``vantage``: where the observer stands, ``client``, ``server`` or ``middle``."""
        self.random = random.Random(seed)
        self.sightings: list[Sighting] = []
        self.loop = loop
        self._vantage = vantage
        self._hosts: dict[bytes, Host] = {}
        self._paths: dict[bytes, tuple[DirectionModel, DirectionModel]] = {}
        self._lost_path = (DirectionModel(Path().up, 0), DirectionModel(Path().down, 0))

    def add(self, host: Host, path: Path | None) -> Host:
        """Attach a host; every host but the client has a path."""
        for address in host.addresses:
            self._hosts[address] = host
        if path is not None:
            models = (DirectionModel(path.up, path.seed), DirectionModel(path.down, path.seed + 1))
            self._paths.update((address, models) for address in host.addresses)
        return host

    def carry(self, frame: bytes, at: int, kind: str, sender: Host) -> None:
        """Decide a frame's fate and note when the observer sees it."""
        item = parse(frame)
        assert item is not None
        up = sender.is_client
        far = item.destination if up else item.source
        target = self._hosts.get(item.destination)
        model = self._paths.get(far, self._lost_path)[0 if up else 1]
        decision = model.decide(at, frame)
        if target is None or not decision.releases:
            fate = decision.action if target is not None else "drop:nobody"
            self._see(at if self._sees_departure(up) else None, at, frame, up, kind, fate)
            return
        if self._sees_departure(up):
            self._see(at, at, frame, up, kind, decision.action)
        for release in decision.releases:
            if not self._sees_departure(up):
                seen_at = release.at if self._vantage != "middle" else (at + release.at) // 2
                self._see(seen_at, at, release.frame, up, kind, decision.action)
            self.loop.at(release.at, self._deliver, target, release.frame)

    def _sees_departure(self, up: bool) -> bool:
        return self._vantage == ("client" if up else "server")

    def _see(self, seen_at: int | None, sent_at: int, frame: bytes, up: bool, kind: str, fate: str) -> None:
        serial = len(self.sightings)
        self.sightings.append(Sighting(seen_at, sent_at, frame, up, kind, fate, serial))

    def _deliver(self, target: Host, frame: bytes) -> None:
        item = parse(frame)
        if item is not None:
            target.arrive(item)
