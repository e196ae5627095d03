"""Everything one connection said in HTTP: its turns in order, what was wrong, and what it became afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from netdiag.protocols.turn import Turn
from netdiag.records.anomaly import Anomaly
from netdiag.wire.chunk import Chunk, Moment

CLIENT = 0
SERVER = 1


@dataclass(slots=True, kw_only=True)
class Tunnel:
    """What a connection (or a stream of it) carries after CONNECT, 101 or a SOCKS handshake. ``client`` and ``server`` can be iterated once."""

    kind: str
    """``connect``, ``websocket``, ``h2c``, ``socks4``, ``socks5`` or ``other``; of an extended CONNECT (RFC 8441) its ``:protocol``."""
    turn: Turn
    """The turn that opened it."""
    client: Iterable[Chunk]
    server: Iterable[Chunk]
    target: str | None = None
    """``host:port`` behind the tunnel; None where none was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsMoment:
    """One SETTINGS frame without ACK (RFC 9113 section 6.5)."""

    sender: int
    """0: client, 1: server."""
    values: dict[int, int]
    """Identifier to value, as sent; unknown identifiers are kept."""
    moment: Moment
    """Its last octet."""
    acknowledged: Moment | None = None
    """The peer's ACK; None when none was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goaway:
    """One GOAWAY frame (RFC 9113 section 6.8)."""

    sender: int
    last_stream_id: int
    error_code: int
    moment: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStall:
    """A sender had used up a flow-control window and went on only after it was opened again (RFC 9113 section 5.2)."""

    sender: int
    """Whose DATA was stopped: 0 an upload, 1 a download."""
    stream_id: int
    """0: the connection's window."""
    since: Moment
    """Last octet of the DATA frame that left at most ``window_bytes``."""
    window_bytes: int
    """What was left of the window."""
    until: Moment | None
    """The WINDOW_UPDATE (or SETTINGS) that opened it; None while it stayed closed."""
    resumed: Moment | None
    """First octet of the next DATA frame under this window; None when none came."""


@dataclass(slots=True, kw_only=True)
class Http2Facts:
    """What findings about one HTTP/2 connection are made from."""

    preface: Moment | None = None
    """First octet of the client's connection preface; None when it was not captured."""
    settings: list[SettingsMoment] = field(default_factory=list)
    goaways: list[Goaway] = field(default_factory=list)
    stalls: list[WindowStall] = field(default_factory=list)
    frames: dict[tuple[int, int], int] = field(default_factory=dict)
    """Frames by (sender, type)."""
    max_open_streams: int = 0
    """Most streams of the client that were open at once."""

    def first_settings(self, sender: int) -> SettingsMoment | None:
        """The first SETTINGS of one side: the server's ends httpcore's one-stream start."""
        return next((s for s in self.settings if s.sender == sender), None)

    def concurrency_limit(self, at: int) -> int | None:
        """SETTINGS_MAX_CONCURRENT_STREAMS that the server had announced by the instant ``at`` (ns); None for no limit known."""
        limit = None
        for settings in self.settings:
            if settings.sender == SERVER and settings.moment.deliverable_at <= at:
                limit = settings.values.get(3, limit)
        return limit


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The outcome of a decoder. ``turns`` are in the order of their requests (of their responses where no request was captured)."""

    protocol: str
    """``http/1.0``, ``http/1.1`` or ``h2``."""
    turns: Sequence[Turn] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    tunnels: Sequence[Tunnel] = ()
    """What became of it: one at most in HTTP/1, any number of streams in HTTP/2."""
    h2: Http2Facts | None = None
