"""One TLS session on one connection."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EarlyData(StrEnum):
    """What became of 0-RTT data (RFC 8446 section 2.3). ``None`` where it was not offered."""

    OFFERED = "offered"
    """The ClientHello has the extension; the capture does not show the server's choice."""
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A TLS alert that could be read (in clear, or decrypted)."""

    sender: str
    """``client`` or ``server``."""
    level: int
    description: int
    name: str
    """The name in the IANA registry, or ``alert N``."""
    at: int
    packet: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSession:
    """What the hellos and the records say; ``None`` where the hello that would tell was not captured."""

    version: str | None
    """``TLSv1.3``, ``TLSv1.2``, ``TLSv1.1``, ``TLSv1.0``, ``TLSv1.3 draft 19``, ``SSLv3`` as negotiated; None before a ServerHello."""
    cipher_suite: str | None
    """IANA name, ``0x1234`` where unknown to netdiag."""
    group: str | None
    """Named group of the key exchange (RFC 8446 key_share, or ServerKeyExchange); None for RSA key transport."""
    sni: str | None
    alpn_offered: tuple[str, ...] = ()
    alpn: str | None = None
    """The protocol chosen; in TLS 1.3 this is encrypted and None without keys."""
    versions_offered: tuple[str, ...] = ()
    ech: str | None = None
    """``offered`` or ``grease`` cannot be told apart from outside: ``offered`` when the extension is present, None when not."""
    client_hello_at: int | None = None
    """When the first octet of the first ClientHello was sent."""
    client_hello_packet: int | None = None
    """Packet that completes the first ClientHello."""
    server_hello_at: int | None = None
    """When the (final, not HelloRetryRequest) ServerHello was deliverable."""
    server_hello_packet: int | None = None
    finished_at: int | None = None
    """When the handshake ended for the client; None if it did not."""
    finished_method: str | None = None
    """``exact`` or ``grammar``."""
    hello_retry_request: bool = False
    hello_retry_ns: int | None = None
    """From the first ClientHello to the HelloRetryRequest deliverable; the second ClientHello follows."""
    server_flight_ns: int | None = None
    """From the (last) ClientHello to the server's Finished deliverable: the path, and the server's work. None where the client's Finished
    comes first (TLS 1.2 in full), or either was not captured."""
    client_finish_ns: int | None = None
    """From then to the client's Finished sent: the client checks certificates and derives keys."""
    false_start: bool = False
    """Up to TLS 1.2: the client sent data before it had the server's Finished (RFC 7918)."""
    resumed: bool | None = None
    """None when it cannot be known from what was captured."""
    early_data: EarlyData | None = None
    certificate_bytes: int | None = None
    """Octets of the server's Certificate message; None where encrypted and no keys."""
    server_flight_bytes: int | None = None
    """Octets of the server's first flight after the ServerHello: visible without keys."""
    round_trips: int | None = None
    client_certificate: bool | None = None
    alerts: tuple[Alert, ...] = ()
    decrypted: bool = False
    missing_secret: str | None = None
    """Label of the secret that would have been needed (``CLIENT_TRAFFIC_SECRET_0`` …); None when nothing is missing."""
    client_random: str | None = None
    """Hex; the name under which a key log holds this session's secrets. Not a secret itself."""
