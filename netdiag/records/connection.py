"""One TCP or QUIC connection."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from netdiag.records.endpoint import Endpoint
from netdiag.records.tcp_info import TcpInfo
from netdiag.records.tls import TlsSession


class Vantage(StrEnum):
    """Where the capture was taken, told by where the round trip is spent."""

    CLIENT = "client"
    SERVER = "server"
    MIDDLE = "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side sent."""

    packets: int
    payload_bytes: int
    """Octets of TCP payload, retransmissions counted again, lengths taken from IP even where the snap length cut them."""
    mss_bytes: int | None = None
    window_scale: int | None = None
    sack: bool | None = None
    retransmitted_segments: int = 0
    fast_retransmissions: int = 0
    timeout_retransmissions: int = 0
    tail_loss_probes: int = 0
    spurious_retransmissions: int = 0
    out_of_order_segments: int = 0
    duplicate_acks: int = 0
    keep_alives: int = 0
    captured_twice: int = 0
    """Further copies of packets in the capture (mirror ports, two interfaces, or a path that doubles packets); they are in no other count
    but ``packets`` and octets."""
    zero_windows: int = 0
    zero_window_ns: int = 0
    """How long this side announced a window of 0 (its receive buffer was full)."""
    window_full_ns: int = 0
    """How long this side had filled its peer's window."""
    missing_bytes: int = 0
    """Octets that the peer acknowledged but the capture never saw: a capture gap, not loss."""
    unseen_packets: int | None = None
    """Packets that this side numbered (IPv4 identification) but the capture never saw, so lost before the capture point or by the
    capture; None where its packets carry no running count."""
    loss_ns: int = 0
    """Time in which octets had arrived but lost ones before them had not: over holes, from seen to deliverable of the first octet
    after the hole; holes open at the same time are counted once."""
    unseen_loss_ns: int = 0
    """Silences at whose end lost data came back looking like new, told by the packet count alone: the loss cost at most this."""
    loss_beyond_ns: int = 0
    """Octets that were lost beyond the capture point: from their first transmission to the last that was needed; what overlaps is counted
    once. The other side got them as much later."""
    reordering_ns: int = 0
    """The same for holes that were filled sooner than a retransmission could."""
    first_payload_at: int | None = None
    first_payload_packet: int | None = None
    last_payload_at: int | None = None
    last_payload_packet: int | None = None
    fin_at: int | None = None
    fin_packet: int | None = None
    rst_at: int | None = None
    rst_packet: int | None = None
    hop_limit: int | None = None
    """TTL or hop limit of its first packet here."""
    rst_hop_limit: int | None = None
    """Of its (first) RST: another value than ``hop_limit`` says that somebody else may have sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both directions."""

    client: Side
    server: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One connection: one incarnation of a 4-tuple."""

    id: int
    transport: str
    """``tcp`` or ``quic``."""
    client: Endpoint
    server: Endpoint
    client_known_by: str
    """``syn``, ``syn-ack``, ``client-hello``, ``server-hello``, ``http-request``, ``http-response``, ``port`` (the lower port is taken
    for the server's), ``first-packet``, or ``recording`` (without packets: the probe was the client)."""
    first_at: int
    last_at: int
    first_packet: int | None
    last_packet: int | None
    syn_at: int | None = None
    syn_packet: int | None = None
    syn_ack_at: int | None = None
    syn_ack_packet: int | None = None
    ack_at: int | None = None
    ack_packet: int | None = None
    syn_retries: int = 0
    handshake_rtt_ns: int | None = None
    """Time from the (last, answered) SYN to the SYN-ACK as the capture point saw it."""
    min_rtt_ns: int | None = None
    """Least round trip: ``client_rtt_ns + server_rtt_ns``, or the one that is known."""
    client_rtt_ns: int | None = None
    """Capture point → client → capture point: smallest time from server data (or SYN-ACK) to its acknowledgement, retransmitted ranges
    excluded (Karn)."""
    server_rtt_ns: int | None = None
    """Capture point → server → capture point, likewise; at the client this is the whole round trip."""
    vantage: Vantage | None = None
    complete: bool = False
    """Both the handshake and the close were captured, without missing octets."""
    closed_by: str | None = None
    """``client`` or ``server``: who sent the first FIN or RST; None while open."""
    close_reason: str | None = None
    """``fin``, ``reset``, ``refused``, ``idle`` (expired in the capture), ``syn-timeout``, ``unreachable`` (the capture has none of its
    packets but an ICMP error about them, which ``first_packet`` is); None while open."""
    closed_at: int | None = None
    sides: Sides
    tls: TlsSession | None = None
    http_version: str | None = None
    """``http/1.1``, ``http/1.0``, ``h2``, ``grpc`` is still ``h2``; None when unknown."""
    application: str | None = None
    """What the octets are when it is not TLS or HTTP: ``ssh``, ``smtp``, ``websocket`` …; ``dns-over-tls`` (by port 853, ALPN ``dot`` or what
    the keys show) and ``dns-over-https`` (by media type); None when unknown."""
    proxied: str | None = None
    """``connect`` or ``socks5``/``socks4`` when the connection goes through a proxy first."""
    origin: Endpoint | None = None
    """Whom the client speaks for: a load balancer's PROXY header says it; None without one."""
    kernel: TcpInfo | None = None
    """What the client's own kernel says of it (``TCP_INFO``), in a probe; None for a capture file, or where the kernel has none."""
