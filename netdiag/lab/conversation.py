"""One accepted connection of the lab server from accept to close, whatever carries it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.config import LabConfig
from netdiag.lab.http1_server import Http1Conversation
from netdiag.lab.http2_server import Http2Conversation
from netdiag.lab.link import Connection, PeerGone, Received
from netdiag.lab.truth import TruthLog
from netdiag.lab.work import Backend

H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
Handshake = Callable[[], Awaitable[str | None]]
"""Does the TLS handshake and returns the protocol chosen by ALPN. Raises HandshakeFailed or PeerGone."""


class HandshakeFailed(Exception):
    """No session came about; the reason is in the text."""


async def serve_connection(
    link: Connection, number: int, config: LabConfig, backend: Backend, log: TruthLog, handshake: Handshake | None
) -> None:
    """Serve until either side ends; ``number`` numbers the truth rows; without ``handshake`` it is clear text."""
    try:
        reason = await _talk(link, number, config, backend, log, handshake)
    except HandshakeFailed as failed:
        reason = "tls-failed"
        log.add("tls-failed", number, at=Stamp.now().wall_ns, reason=str(failed))
    except PeerGone:
        reason = "client-reset"
    except asyncio.CancelledError:
        link.reset()
        raise
    at = link.end(notify=reason != "broken-off")
    log.add("close", number, at=at, reason=reason)
    await link.linger()


async def _talk(
    link: Connection, number: int, config: LabConfig, backend: Backend, log: TruthLog, handshake: Handshake | None
) -> str:
    """Everything before the end; returns why it ends."""
    if number < config.refuse_first:
        link.reset()
        return "refused"
    if config.accept_ms:
        await until(Stamp.now().after(ns(config.accept_ms)))
    first: Received | None = None
    if handshake is not None:
        protocol = await handshake() or "http/1.1"
    else:
        protocol, first = await _told_by_preface(link, config)
    kind = Http2Conversation if protocol == "h2" else Http1Conversation
    return await kind(link, backend, config, log, number).serve(first)


async def _told_by_preface(link: Connection, config: LabConfig) -> tuple[str, Received | None]:
    """Clear text: HTTP/2 begins with its preface (RFC 9113 section 3.4), anything else is HTTP/1."""
    data, at = b"", 0
    while len(data) < len(H2_PREFACE) and H2_PREFACE.startswith(data):
        received = await link.receive()
        if received is None:
            break
        data, at = data + received.data, at or received.at
    protocol = "h2" if data.startswith(H2_PREFACE) and "h2" in config.protocols else "http/1.1"
    return protocol, Received(data, at) if data else None
