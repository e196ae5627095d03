"""Settings of the modelled hosts and of the observer, as a scenario's ``[tcp]``, ``[tls]``, ``[dns]`` and ``[capture]`` tables give them.

Times are milliseconds (``*_ms``) or microseconds (``*_us``), written by people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netdiag.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSettings:
    """One host's TCP."""

    mss: int = 1460
    initial_window_segments: int = 10
    """RFC 6928."""
    window_bytes: int = 1 << 20
    """Receive buffer: the window is what of it is free."""
    window_scale: int | None = 7
    """None: not offered, so windows end at 65,535."""
    sack: bool = True
    nagle: bool = False
    delayed_ack_ms: float = 40.0
    """0: every segment is acknowledged at once."""
    quick_acks: int = 16
    """The first so many segments of a connection are acknowledged at once (Linux's quick-ACK mode)."""
    tail_loss_probe: bool = True
    slow_start_after_idle: bool = True
    syn_retries: int = 6
    data_retries: int = 8
    """Timeouts in a row before the connection is given up (Linux: tcp_retries2, there 15)."""
    keep_alive_ms: float | None = None
    """Probe a connection that has been idle this long."""
    host_us: float = 15.0
    """Between a segment's arrival and the application having its octets."""
    nic_mbit: float = 1000.0
    """Serialisation at the host: consecutive frames cannot leave at one instant."""
    ttl: int = 64

    def __post_init__(self) -> None:
        """Raises UsageError for what no TCP could do."""
        if not 64 <= self.mss <= 65_495:
            raise UsageError(f"tcp: mss {self.mss} is not between 64 and 65495")
        if self.window_bytes < 1 or self.initial_window_segments < 1:
            raise UsageError("tcp: window_bytes and initial_window_segments must be at least 1")
        if self.window_scale is not None and self.window_scale > 14:
            raise UsageError(f"tcp: window_scale {self.window_scale} is above 14 (RFC 7323)")
        if self.nic_mbit <= 0:
            raise UsageError("tcp: nic_mbit must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsClientSettings:
    """What the modelled client offers and how long its own work takes."""

    versions: Sequence[str] = ("1.3", "1.2")
    groups: Sequence[str] = ("x25519", "secp256r1", "secp384r1")
    """The key share is of the first."""
    alpn: Sequence[str] = ("h2", "http/1.1")
    server_name: str | None = "api.example.test"
    hello_bytes: int | None = None
    """Padded up to this size: from about 1400 on it takes two segments, as with post-quantum key shares."""
    cpu_ms: float = 1.0
    """Certificate checks and key derivation: server's last handshake octet read to own Finished written."""
    resume: bool = True
    """Offer a ticket where there is one."""
    false_start: bool = False
    """TLS 1.2: send application data right after the own Finished (RFC 7918)."""
    pad_to: int | None = None
    """TLS 1.3: pad records of application data to this many octets."""
    early_data: bool = False
    """TLS 1.3: with a ticket, send the first request as 0-RTT data (RFC 8446 section 2.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsServerSettings:
    """What of TLS the real server leaves to its library and the modelled one decides."""

    suite: str | None = None
    """Name of the cipher suite; None: the first of the version."""
    coalesce: bool = False
    """The encrypted flight in as few records as possible (as BoringSSL and Go do) instead of one a message (OpenSSL)."""
    tickets_with_flight: bool = False
    """NewSessionTickets right after the server's Finished, before the client's has come (as BoringSSL and Go do)."""
    pad_to: int | None = None
    early_data: bool = False
    """Take 0-RTT data. A client's early data that is not taken is lost on this server, as nothing is sent twice here: set both or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverSettings:
    """The client's stub resolver, after glibc's, and the way to its server."""

    rtt_ms: float = 10.0
    types: Sequence[str] = ("A", "AAAA")
    """Asked at the same time; the answer is complete when all have come."""
    timeout_ms: float = 5000.0
    attempts: int = 2
    search: Sequence[str] = ()
    """Suffixes that are tried before the name itself."""
    drop_queries: Sequence[int] = ()
    """Ordinals (from 1) of queries that are lost on their way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """Where the observer stands and what is wrong with the capture."""

    at: str = "client"
    """``client``, ``server`` or ``middle``."""
    snap_bytes: int | None = None
    """Octets kept of each frame."""
    vlan: int | None = None
    """An 802.1Q tag with this identifier."""
    link: str = "ethernet"
    """``ethernet``, ``raw`` or ``cooked`` (Linux SLL)."""
    drop: Sequence[int] = ()
    """Frame numbers (before dropping, from 1) that the capture lost; the file's drop counter says how many."""
    duplicate: Sequence[int] = ()
    """Frame numbers that were captured twice, 10 µs apart."""
    skip: int = 0
    """The capture began after so many frames."""
    until_ms: float | None = None
    """It ended this long after the first frame."""
    only: str | None = None
    """``client`` or ``server``: only what that side sent (a one-armed tap)."""
    merge_us: float | None = None
    """Segmentation offload: full segments of one direction that follow each other within this time are one frame of up to 64 KB."""
    clock_offset_ms: float = 0.0
    clock_behind: bool = False
    """The offset is subtracted instead of added."""
    drift_ppm: float = 0.0
    step_at_ms: float | None = None
    """The capture's clock jumps back by ``step_ms`` this long after the first frame."""
    step_ms: float = 0.0
    secrets: str = "all"
    """``all``, ``none``, ``other`` (of another session) or ``client`` (only the client's traffic secrets)."""
    comments: bool = True
    """A comment on the frames in which each exchange begins and ends."""

    def __post_init__(self) -> None:
        """Raises UsageError."""
        choices = {
            "at": (self.at, ("client", "server", "middle")),
            "link": (self.link, ("ethernet", "raw", "cooked")),
            "only": (self.only, ("client", "server", None)),
            "secrets": (self.secrets, ("all", "none", "other", "client")),
        }
        for name, (value, allowed) in choices.items():
            if value not in allowed:
                known = ", ".join(str(a) for a in allowed if a is not None)
                raise UsageError(f"capture: {name} must be one of {known}, not {value!r}")
        if self.vlan is not None and not 0 < self.vlan < 4095:
            raise UsageError(f"capture: vlan {self.vlan} is not between 1 and 4094")
        if self.snap_bytes is not None and self.snap_bytes < 14:
            raise UsageError("capture: snap_bytes must be at least 14")
