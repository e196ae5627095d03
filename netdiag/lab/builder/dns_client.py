"""The modelled stub resolver: queries as glibc sends them (all types at once, one port, retries after a timeout, search list)."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from netdiag.lab.builder.network import Host
from netdiag.lab.builder.segment import Datagram
from netdiag.lab.builder.virtual_time import VirtualLoop, now_ns
from netdiag.lab.clock import ns
from netdiag.lab.host_settings import ResolverSettings
from netdiag.lab.name_server import Name, Query, Zone

_TYPES = {"A": 1, "AAAA": 28}
_PORT = 53
_RECURSION_DESIRED = 0x0100


@dataclass(slots=True, kw_only=True)
class Resolution:
    """One question with its outcome, by the client's own clock."""

    name: str
    type: str
    port: int
    id: int
    answered_at: int | None = None
    attempts: int = 1
    rcode: int | None = None
    addresses: list[str] = field(default_factory=list)


def name_server(host: Host, zone: Mapping[str, Name], loop: VirtualLoop) -> None:
    """Let a host answer queries as the lab's name server does."""
    decisions = Zone(dict(zone))

    def receive(datagram: Datagram) -> None:
        query = Query.parse(datagram.payload)
        if query is None:
            return
        delay_ms, messages = decisions.answers(query, over_tcp=False)
        for message in messages:
            answer = Datagram(
                source=datagram.destination,
                destination=datagram.source,
                source_port=_PORT,
                destination_port=datagram.source_port,
                payload=message,
            )
            loop.at(now_ns() + ns(delay_ms), host.transmit, answer, "datagram")

    host.datagram_receiver = receive


class StubResolver:
    """The client's side."""

    def __init__(self, host: Host, resolver: bytes, settings: ResolverSettings) -> None:
        """``host``: the client; ``resolver``: the server's packed address."""
        self._host, self._resolver, self._settings = host, resolver, settings
        self._waiting: dict[tuple[int, int, str], asyncio.Future[bytes]] = {}
        self.resolutions: list[Resolution] = []
        host.datagram_receiver = self._receive

    async def resolve(self, name: str) -> list[str]:
        """Addresses, IPv6 first as getaddrinfo sorts them; empty when there are none. Tries the search list before the name."""
        for candidate in (*(f"{name}.{suffix}" for suffix in self._settings.search), name):
            addresses = await self._lookup(candidate)
            if addresses:
                return sorted(addresses, key=lambda a: ":" not in a)
        return []

    async def _lookup(self, name: str) -> list[str]:
        port = self._host.take_port()
        questions = [self._new(name, kind, port) for kind in self._settings.types]
        for attempt in range(self._settings.attempts):
            pending = [q for q in questions if q.answered_at is None]
            for question in pending:
                question.attempts = attempt + 1
                self._send(question)
            if await self._all_answered(pending):
                break
        return [address for question in questions for address in question.addresses]

    def _new(self, name: str, kind: str, port: int) -> Resolution:
        identifier = self._host.network.random.getrandbits(16)
        question = Resolution(name=name, type=kind, port=port, id=identifier)
        self.resolutions.append(question)
        return question

    def _send(self, question: Resolution) -> None:
        labels = b"".join(bytes([len(part)]) + part.encode() for part in question.name.split("."))
        head = struct.pack("!HHHHHH", question.id, _RECURSION_DESIRED, 1, 0, 0, 0)
        payload = head + labels + b"\0" + struct.pack("!HH", _TYPES[question.type], 1)
        self._host.transmit(
            Datagram(
                source=next(a for a in self._host.addresses if len(a) == len(self._resolver)),
                destination=self._resolver,
                source_port=question.port,
                destination_port=_PORT,
                payload=payload,
            ),
            "datagram",
        )

    async def _all_answered(self, questions: list[Resolution]) -> bool:
        futures = [
            self._waiting.setdefault(self._key(q), asyncio.get_running_loop().create_future()) for q in questions
        ]
        _, pending = await asyncio.wait(futures, timeout=self._settings.timeout_ms / 1e3)
        return not pending

    @staticmethod
    def _key(question: Resolution) -> tuple[int, int, str]:
        return question.port, question.id, question.type

    def _receive(self, datagram: Datagram) -> None:
        for question in self.resolutions:
            same = question.port == datagram.destination_port and question.id == int.from_bytes(
                datagram.payload[:2], "big"
            )
            if same and question.answered_at is None:
                question.answered_at = now_ns()
                question.rcode = datagram.payload[3] & 15
                question.addresses = answer_addresses(datagram.payload, _TYPES[question.type])
                future = self._waiting.get(self._key(question))
                if future is not None and not future.done():
                    future.set_result(b"")


def answer_addresses(message: bytes, wanted: int) -> list[str]:
    """Addresses of one type (1 or 28) in the answer section, as the lab's name server writes it."""
    (count,) = struct.unpack_from("!H", message, 6)
    query = Query.parse(message[:2] + b"\0\0" + message[4:])
    place, out = 12 + (len(query.question) if query else 0), []
    for _ in range(count):
        place = _after_name(message, place)
        kind, _, _, size = struct.unpack_from("!HHIH", message, place)
        place += 10 + size
        if kind == wanted:
            out.append(str(ipaddress.ip_address(message[place - size : place])))
    return out


def _after_name(message: bytes, place: int) -> int:
    while message[place]:
        if message[place] >= 0xC0:
            return place + 2
        place += 1 + message[place]
    return place + 1
