"""The recording stream for threads: httpcore reads and writes a connection through it, in clear or over TLS."""

from __future__ import annotations

import ssl
from typing import Any

import httpcore

from netdiag.probe.limits import deadline
from netdiag.probe.stream_notes import LINGER_S, StreamNotes, limit_of
from netdiag.probe.tls import Layer, TlsLayer
from netdiag.probe.tls_offer import TlsOffer


class RecordingStream(httpcore.NetworkStream):
    """A connection in clear, or one TLS session on it (which may lead through another, to an HTTPS proxy)."""

    def __init__(
        self, notes: StreamNotes, offer: TlsOffer, *, host: str, port: int, tls: TlsLayer | None = None
    ) -> None:
        self.notes = notes
        self._offer = offer
        self._socket = notes.socket
        self._host, self._port = host, port
        self._tls = tls

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some octets, which may be more than asked for: httpcore does not mind, and nothing waits in a buffer of ours."""
        with self.notes.failures():
            data = self._top().read(limit_of(timeout))
        return self.notes.came(data)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it."""
        with self.notes.failures():
            at = self._top().write(buffer, limit_of(timeout)) if buffer else self.notes.clock.now()
        self.notes.wrote(at)

    def close(self) -> None:
        """Close in order: close_notify, FIN, a short wait for the server's; keeps TCP_INFO and the session for a later resumption."""
        if self.notes.log.closed_at is not None:
            return
        if self._tls is not None:
            self._offer.keep(self._host, self._port, self._tls.engine)
            self._tls.say_goodbye(deadline(LINGER_S, None))
        self.notes.log.closed_at = self._socket.close(linger_s=self.notes.linger_s)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Handshake with the target, or with an HTTPS proxy. Closes the connection when it fails."""
        name = server_hostname or self._host
        layer = TlsLayer(self._top(), self._offer.engine(ssl_context, name, self._port))
        limit = limit_of(_least(timeout, self._offer.timeout_s))
        try:
            with self.notes.handshake(layer.engine, name):
                layer.handshake(limit)
        except Exception:
            self.close()
            raise
        return RecordingStream(self.notes.over_tls(), self._offer, host=name, port=self._port, tls=layer)

    def get_extra_info(self, info: str) -> Any:
        """httpcore's names, and ``connection_log``."""
        if info == "is_readable":
            return self._is_readable()
        return self.notes.extra_info(info, None if self._tls is None else self._tls.engine)

    def _top(self) -> Layer:
        return self._socket if self._tls is None else self._tls

    def _is_readable(self) -> bool:
        """Asked about idle connections only: True means that the server has closed, or speaks out of turn."""
        try:
            return self._socket.is_readable() if self._tls is None else self._tls.is_readable()
        except Exception:  # broken is as good as closed
            return True


def _least(first: float | None, second: float | None) -> float | None:
    known = [t for t in (first, second) if t is not None]
    return min(known) if known else None
