"""QUIC's handshakes: the keys of Initial packets are public, so the name that was asked for can be read."""

from __future__ import annotations

from collections.abc import Iterable

from tests.captures.kinds.kind import Kind, of_frames
from tests.support.packets import EPOCH_NS, Timed, udp_frame
from tests.support.quic_bytes import ID, V1, V2, client_hello, crypto, initial, long_packet, server_hello

CLIENT, SERVER = ("192.0.2.10", 50000), ("192.0.2.1", 443)
MS = 1_000_000
ONE_RTT = b"\x40" + b"s" * 200
GIVEN = bytes.fromhex("00112233445566778899")


def datagrams(*said: tuple[float, int, bytes]) -> Iterable[Timed]:
    """(milliseconds, side, octets)."""
    for at_ms, side, octets in said:
        source, destination = (SERVER, CLIENT) if side else (CLIENT, SERVER)
        yield EPOCH_NS + int(at_ms * MS), udp_frame(octets, source=source, destination=destination)


def handshake(version: int) -> Iterable[Timed]:
    """One round trip, then a request and an answer that nobody can read."""
    return datagrams(
        (0, 0, initial(crypto(0, client_hello()), version=version).ljust(1200, b"\0")),
        (
            20,
            1,
            initial(crypto(0, server_hello()), version=version, side=1) + long_packet("handshake", version=version),
        ),
        (20.1, 0, long_packet("handshake", version=version)),
        (20.2, 0, ONE_RTT),
        (45, 1, ONE_RTT),
    )


def large_hello() -> Iterable[Timed]:
    """A ClientHello with post-quantum key shares, over two datagrams that overtake each other."""
    hello = client_hello(padding=1500)
    pieces = initial(crypto(0, hello[:1000])), initial(crypto(1000, hello[1000:]), number=1)
    return datagrams((0, 0, pieces[1]), (0.1, 0, pieces[0]), (20, 1, initial(crypto(0, server_hello()), side=1)))


def retried() -> Iterable[Timed]:
    """The server wants the client's address proved first."""
    return datagrams(
        (0, 0, initial(crypto(0, client_hello()))),
        (20, 1, long_packet("retry")),
        (20.1, 0, initial(crypto(0, client_hello()), number=1, destination=GIVEN)),
        (40, 1, initial(crypto(0, server_hello()), side=1, asked=GIVEN)),
    )


def negotiated() -> Iterable[Timed]:
    """The server does not speak version 2."""
    negotiation = b"\x80\0\0\0\0\4\1\2\3\4\x08" + ID + V1.to_bytes(4, "big")
    return datagrams(
        (0, 0, initial(crypto(0, client_hello()), version=V2)),
        (20, 1, negotiation),
        (20.1, 0, initial(crypto(0, client_hello()), destination=GIVEN)),
        (40, 1, initial(crypto(0, server_hello()), side=1, asked=GIVEN)),
    )


KINDS: tuple[Kind, ...] = (
    of_frames("quic-1", "a handshake of version 1", lambda: handshake(V1)),
    of_frames("quic-2", "a handshake of version 2", lambda: handshake(V2)),
    of_frames("quic-large-hello", "a ClientHello over two datagrams, out of order", large_hello),
    of_frames("quic-retry", "Retry", retried),
    of_frames("quic-version-negotiation", "Version Negotiation", negotiated),
)
