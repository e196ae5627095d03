"""One request in every encapsulation: link layers, tunnels, options, extension headers and fragments."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Mapping

from netdiag.capture.writer import PcapngWriter
from netdiag.wire.tables import Interface
from tests.captures.kinds.formats import GET, OK
from tests.captures.kinds.kind import Kind, in_clear, of_frames
from tests.support.encapsulations import AROUND_IPV4, AROUND_IPV6, Wrap
from tests.support.packets import EPOCH_NS, Timed, ethernet, ipv4, ipv6

_TUNNELS = ("ip in ip", "4in6", "6in4", "gre", "pptp", "etherip", "vxlan", "geneve", "gtp", "l2tp", "teredo", "nsh")
_ETHERNET_BYTES = 14
_FOUR, _SIX = ("192.0.2.1", "198.51.100.2"), ("2001:db8::a", "2001:db8::b")


def packets(addresses: tuple[str, str], number: int) -> list[Timed]:
    """The request's IP packets; the ``number``-th second and client port are its own."""
    ends = (addresses[0], 40000 + number), (addresses[1], 80)
    frames = in_clear((0, GET), (1, OK), ends=ends, at_ns=EPOCH_NS + number * 10**9)
    return [(at, frame[_ETHERNET_BYTES:]) for at, frame in frames]


def each_on_its_interface(around: Mapping[str, tuple[int, tuple[str, str], Wrap]]) -> bytes:
    """A file with an interface for each encapsulation, named after it."""
    interfaces = [
        Interface(link_type=t, snap_bytes=0, ticks_per_second=10**9, name=n) for n, (t, _, _) in around.items()
    ]
    out = io.BytesIO()
    with PcapngWriter(out, interfaces=interfaces, application="netdiag lab") as writer:
        for number, (_, addresses, wrap) in enumerate(around.values()):
            for at, packet in packets(addresses, number):
                writer.packet(wrap(packet), at, interface=number)
    return out.getvalue()


def _all() -> dict[str, tuple[int, tuple[str, str], Wrap]]:
    found = {name: (link_type, _FOUR, wrap) for name, (link_type, wrap) in AROUND_IPV4.items()}
    return found | {name: (link_type, _SIX, wrap) for name, (link_type, wrap) in AROUND_IPV6.items()}


def _is_tunnel(name: str) -> bool:
    return name.split(",")[0].split("-gpe")[0] in _TUNNELS


def link_types() -> bytes:
    """All that stand directly around IP."""
    return each_on_its_interface({name: one for name, one in _all().items() if not _is_tunnel(name)})


def tunnels() -> bytes:
    """IP inside IP, in whichever way."""
    return each_on_its_interface({name: one for name, one in _all().items() if _is_tunnel(name)})


def fragments() -> Iterable[Timed]:
    """The answer's segment in IP fragments of 64 octets: over IPv4 in order, over IPv6 the other way round."""
    for number, (addresses, pieces) in enumerate(((_FOUR, _in_pieces_4), (_SIX, _in_pieces_6))):
        for at, packet in packets(addresses, number):
            parts = pieces(packet) if OK in packet else [packet]
            yield from ((at + i * 1_000, ethernet(part)) for i, part in enumerate(parts))


_PIECE = 64


def _in_pieces_4(packet: bytes) -> list[bytes]:
    body = packet[20:]
    return [
        ipv4(
            body[start : start + _PIECE],
            source=_FOUR[1],
            destination=_FOUR[0],
            identification=9,
            fragment=(0x2000 if start + _PIECE < len(body) else 0) | start // 8,
        )
        for start in range(0, len(body), _PIECE)
    ]


def _in_pieces_6(packet: bytes) -> list[bytes]:
    body = packet[40:]
    pieces = []
    for start in range(0, len(body), _PIECE):
        head = struct.pack(">BBHI", 6, 0, start | (start + _PIECE < len(body)), 9)
        part = head + body[start : start + _PIECE]
        pieces.append(ipv6(part, source=_SIX[1], destination=_SIX[0], next_header=44))
    return pieces[::-1]


KINDS = (
    Kind("link-types.pcapng", "a request in each link layer, an interface for each", link_types),
    Kind("tunnels.pcapng", "a request in each tunnel, an interface for each", tunnels),
    of_frames("ip-fragments", "an answer in IP fragments, over IPv4 and (backwards) over IPv6", fragments),
)
