"""What the lab server is: its sockets, its TLS, its HTTP connections, and the behaviour of requests that ask for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from netdiag.lab.behaviour import Behaviour
from netdiag.lab.certificates import LOOPBACK_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class LabConfig:
    """Everything has a default that makes a fast, faultless server on loopback. Times in milliseconds, as in ``Behaviour``."""

    # --- where
    host: str = "localhost"
    """An address, or a name all of whose loopback addresses are bound (``localhost``: 127.0.0.1 and, where there is one, ::1);
    several are joined by commas."""
    port: int = 0
    """0: any free port."""
    backlog: int = 256

    # --- what
    tls: bool = True
    """False: clear text; HTTP/1.1, and HTTP/2 by prior knowledge (RFC 9113 section 3.3)."""
    protocols: Sequence[str] = ("h2", "http/1.1")
    """Offered by ALPN in order of preference; on clear text, what is accepted."""
    names: Sequence[str] = LOOPBACK_NAMES
    """Names and addresses in the certificate."""
    seed: int = 0
    behaviour: Behaviour = field(default_factory=Behaviour)

    # --- TCP
    accept_ms: float = 0.0
    """A new connection lies in the server's hands this long before anything is read from it."""
    nodelay: bool = True
    """False: Nagle's algorithm stays on."""
    receive_buffer_bytes: int | None = None
    """SO_RCVBUF: a small one closes the window on an upload."""
    send_buffer_bytes: int | None = None
    refuse_first: int = 0
    """The first so many connections are reset as soon as they are accepted."""

    # --- TLS
    tls_minimum: str = "1.2"
    tls_maximum: str = "1.3"
    tls_ms: float = 0.0
    """Before the first flight of the server, the ClientHello being read."""
    groups: str | None = None
    """The one group for key exchange (``secp384r1``): a client that guessed another meets a HelloRetryRequest."""
    ciphers: str | None = None
    """OpenSSL names for TLS 1.2."""
    tickets: int = 2
    """NewSessionTickets after a TLS 1.3 handshake; 0: no resumption in either version."""
    refuse_tickets: bool = False
    """Tickets are given but never accepted: each connection has keys of its own."""
    chain_bytes: int = 0
    """Ballast in the certificate chain, up to this size."""
    record_bytes: int | None = None
    """Largest TLS record content written."""
    fail_handshake: str | None = None
    """``close``: FIN after the ClientHello; ``reset``: RST; ``silence``: nothing at all."""
    keylog: str | None = None
    """Write the session secrets of all connections to this file (made 0600)."""

    # --- HTTP connections
    idle_ms: float | None = None
    """Close a connection that has been idle this long."""
    max_requests: int | None = None
    """HTTP/1: ``Connection: close`` on that response; HTTP/2: GOAWAY after it."""
    read_ms_per_mib: float = 0.0
    """A slow reader: pause this long for each MiB of request body."""

    # --- the machine behind
    capacity: int | None = None
    """Requests worked on at once; others queue."""
    prefill_ms_per_kib: float = 0.0
    """Reading the prompt: for each KiB of request body, before the schedule begins."""
    cold_start_ms: float = 0.0
    """What the first request, and the first after ``cold_after_ms`` of idleness, pays."""
    cold_after_ms: float = 1000.0
    backends: Sequence[float] = ()
    """Extra milliseconds of each backend; a connection stays with the one that the seed gives it."""
    tcp_info: bool = False
    """Note the sender's TCP state with each event: what the client cannot see."""

    # --- HTTP/2
    settings_ms: float = 0.0
    """Withhold the server's SETTINGS."""
    max_streams: int = 100
    """SETTINGS_MAX_CONCURRENT_STREAMS."""
    initial_window_bytes: int | None = None
    """SETTINGS_INITIAL_WINDOW_SIZE for request bodies."""
    shrink_window_to: int | None = None
    """Announce this initial window after the first request (RFC 9113 section 6.9.2: windows may become negative)."""
    window_update_ms: float = 0.0
    """Hold back each WINDOW_UPDATE this long."""
    header_table_bytes: int | None = None
    """SETTINGS_HEADER_TABLE_SIZE; 0 switches dynamic compression off."""
    goaway_after: int | None = None
    """GOAWAY with the response of this number."""
