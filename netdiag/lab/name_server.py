"""A DNS server whose every fault is known: delay per type, silence, NXDOMAIN, truncation, two answers.

``python -m netdiag.lab.name_server ZONE.json LOG ADDRESS``: prints ``ready``, answers on UDP and TCP port 53 until SIGTERM, and appends a JSON
line per query (when it arrived, when each answer was sent).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import json
import signal
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, TextIO

from netdiag.errors import UsageError

_TYPES = {"A": 1, "CNAME": 5, "AAAA": 28}
_NAMES = {number: name for name, number in _TYPES.items()}
_RCODES = {"NOERROR": 0, "SERVFAIL": 2, "NXDOMAIN": 3, "REFUSED": 5}
_QR_AA_RA, _TC = 0x8480, 0x0200
_IN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """How the server treats one name. Keys of the mappings are query types (``A``, ``AAAA``)."""

    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    delay_ms: Mapping[str, float] = field(default_factory=dict)
    silent: Mapping[str, int] = field(default_factory=dict)
    """How many queries of a type get no answer; −1 for all."""
    rcode: str = "NOERROR"
    ttl_s: int = 60
    cname: str | None = None
    truncate: bool = False
    """Over UDP: an empty answer with the TC bit, so that the client asks again over TCP (RFC 7766)."""
    forged_first: str | None = None
    """An address that a first, forged answer carries before the true one."""

    def __post_init__(self) -> None:
        if self.rcode not in _RCODES:
            raise UsageError(f"name server: unknown rcode {self.rcode!r}; there are {', '.join(_RCODES)}")
        for mapping in (self.addresses, self.delay_ms, self.silent):
            for kind in mapping:
                if kind not in _TYPES:
                    raise UsageError(f"name server: unknown query type {kind!r}")

    @classmethod
    def from_mapping(cls, name: str, values: Mapping[str, Any]) -> Name:
        """From TOML or JSON; raises ``UsageError`` on an unknown key."""
        known = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise UsageError(f"name server: {name}: unknown key {unknown[0]!r}; there are {', '.join(sorted(known))}")
        chosen = dict(values)
        chosen["addresses"] = {kind: tuple(a) for kind, a in values.get("addresses", {}).items()}
        return cls(**chosen)


@dataclass(frozen=True, slots=True)
class Query:
    """The first question of a query; ``name`` is lower case without the final dot."""

    id: int
    name: str
    type: int
    question: bytes
    """As on the wire, to be echoed."""

    @classmethod
    def parse(cls, message: bytes) -> Query | None:
        """None for what is no query with one plain question."""
        if len(message) < 17 or message[2] & 0x80:
            return None
        labels, place = [], 12
        while place < len(message) and message[place]:
            if message[place] > 63:
                return None
            labels.append(message[place + 1 : place + 1 + message[place]].decode("ascii", "replace").lower())
            place += 1 + message[place]
        if place + 5 > len(message):
            return None
        (kind,) = struct.unpack_from("!H", message, place + 1)
        return cls(int.from_bytes(message[:2], "big"), ".".join(labels), kind, message[12 : place + 5])


class Zone:
    """Decides the answers. Pure but for the count of queries that were passed over in silence."""

    def __init__(self, names: Mapping[str, Name]) -> None:
        self._names = {name.rstrip(".").lower(): how for name, how in names.items()}
        self._silent = {(name, kind): n for name, how in self._names.items() for kind, n in how.silent.items()}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Mapping[str, Any]]) -> Zone:
        """``{name: {addresses: {A: […]}, …}}``."""
        return cls({name: Name.from_mapping(name, how) for name, how in values.items()})

    def answers(self, query: Query, *, over_tcp: bool) -> tuple[float, list[bytes]]:
        """Milliseconds to wait, and the messages to send then (none for silence, two with a forged one)."""
        how = self._names.get(query.name)
        if how is None:
            return 0.0, [_message(query, Name(rcode="NXDOMAIN"), ())]
        kind = _NAMES.get(query.type, "")
        left = self._silent.get((query.name, kind), 0)
        if left:
            self._silent[query.name, kind] = left - 1
            return 0.0, []
        if how.truncate and not over_tcp:
            return how.delay_ms.get(kind, 0.0), [_message(query, how, (), flags=_TC)]
        messages = [_message(query, how, how.addresses.get(kind, ()))]
        if how.forged_first and kind == "A":
            messages.insert(0, _message(query, how, (how.forged_first,)))
        return how.delay_ms.get(kind, 0.0), messages


def _message(query: Query, how: Name, addresses: tuple[str, ...], *, flags: int = 0) -> bytes:
    owner, records = b"\xc0\x0c", []
    if how.cname and addresses:
        target = _encode(how.cname)
        records.append(_record(owner, _TYPES["CNAME"], how.ttl_s, target))
        owner = target
    records += [_record(owner, query.type, how.ttl_s, ipaddress.ip_address(a).packed) for a in addresses]
    head = struct.pack("!HHHHHH", query.id, _QR_AA_RA | flags | _RCODES[how.rcode], 1, len(records), 0, 0)
    return head + query.question + b"".join(records)


def _record(owner: bytes, kind: int, ttl_s: int, data: bytes) -> bytes:
    return owner + struct.pack("!HHIH", kind, _IN, ttl_s, len(data)) + data


def _encode(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode("ascii") for label in name.rstrip(".").split(".")) + b"\0"


async def _sleep_until(deadline_ns: int) -> None:
    """asyncio's timers are about 1 ms coarse: sleep until just before, then spin."""
    await asyncio.sleep(max(0.0, (deadline_ns - time.monotonic_ns()) / 1e9 - 0.0015))
    while time.monotonic_ns() < deadline_ns:
        pass


class NameServer(asyncio.DatagramProtocol):
    """UDP and TCP over one zone."""

    def __init__(self, zone: Zone, log: TextIO) -> None:
        self._zone = zone
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.DatagramProtocol``."""
        self._transport: Any = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """A query over UDP, answered when its delay is over."""
        at = time.monotonic_ns()
        task = asyncio.ensure_future(
            self._reply(data, at, lambda message: self._transport.sendto(message, addr), over_tcp=False)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def serve_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """DNS over TCP: two octets of length before each message (RFC 1035 section 4.2.2)."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = int.from_bytes(await reader.readexactly(2), "big")
                data = await reader.readexactly(size)
                await self._reply(
                    data, time.monotonic_ns(), lambda m: writer.write(len(m).to_bytes(2, "big") + m), over_tcp=True
                )
        writer.close()

    async def _reply(self, data: bytes, at: int, send: Callable[[bytes], object], *, over_tcp: bool) -> None:
        query = Query.parse(data)
        if query is None:
            return
        delay_ms, messages = self._zone.answers(query, over_tcp=over_tcp)
        if messages:
            await _sleep_until(at + round(delay_ms * 1e6))
        for message in messages:
            send(message)
        now, offset = time.monotonic_ns(), time.time_ns() - time.monotonic_ns()
        row = {
            "name": query.name,
            "type": _NAMES.get(query.type, str(query.type)),
            "tcp": over_tcp,
            "query_at": at + offset,
        }
        row |= {"answers": len(messages), "answered_at": now + offset if messages else None}
        self._log.write(json.dumps(row) + "\n")
        self._log.flush()


async def _serve(zone: Zone, log: TextIO, address: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = NameServer(zone, log)
    transport, _ = await loop.create_datagram_endpoint(lambda: server, local_addr=(address, port))
    listener = await asyncio.start_server(server.serve_stream, address, port)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await stopped.wait()
    transport.close()
    listener.close()


def main(arguments: list[str]) -> None:
    """The name server's process."""
    zone_file, log_file, address = arguments[:3]
    port = int(arguments[3]) if len(arguments) > 3 else 53
    zone = Zone.from_mapping(json.loads(FilePath(zone_file).read_text()))
    with open(log_file, "a", encoding="utf-8") as log:
        asyncio.run(_serve(zone, log, address, port))


if __name__ == "__main__":
    main(sys.argv[1:])
