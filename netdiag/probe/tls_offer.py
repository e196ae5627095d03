"""What an arm offers in its TLS handshakes: protocols, and sessions to resume."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from netdiag.probe.tls import ALPN, TlsEngine


class SessionCache:
    """The last TLS session of each host, for arms that resume (RFC 8446 section 2.2)."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, int], ssl.SSLSession] = {}

    def get(self, host: str, port: int) -> ssl.SSLSession | None:
        """The session to offer; None the first time."""
        return self._sessions.get((host, port))

    def keep(self, host: str, port: int, session: ssl.SSLSession | None) -> None:
        """Remember a session that has a ticket."""
        if session is not None and session.has_ticket:
            self._sessions[host, port] = session


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOffer:
    """The same for every connection of an arm."""

    protocol: str | None
    """The one ALPN name offered to targets; None: what the context offers."""
    sessions: SessionCache | None = None
    """None: every handshake is a full one."""
    timeout_s: float | None = None
    """Longest handshake; None: as long as httpcore allows for connecting."""
    proxy_context: ssl.SSLContext | None = None
    """TLS towards an HTTPS proxy is told apart by its context: HTTP/1.1 is offered there, and no key leads to content."""

    def engine(self, context: ssl.SSLContext, host: str, port: int) -> TlsEngine:
        """For one handshake with a target or, by its context, with the proxy."""
        to_proxy = context is self.proxy_context
        session = None if self.sessions is None or to_proxy else self.sessions.get(host, port)
        wanted = "h1" if to_proxy else self.protocol
        return TlsEngine(context, host, protocol=None if wanted is None else ALPN[wanted], session=session)

    def keep(self, host: str, port: int, engine: TlsEngine) -> None:
        """The session of a connection that closes, for a later one."""
        if self.sessions is not None:
            self.sessions.keep(host, port, engine.object.session)
