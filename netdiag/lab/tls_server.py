"""The server's side of TLS: contexts from the configuration, and the handshake flight by flight."""

from __future__ import annotations

import os
import ssl
import time
from pathlib import Path

from netdiag.errors import UsageError
from netdiag.lab.certificates import Leaf, write_private
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.config import LabConfig
from netdiag.lab.conversation import HandshakeFailed
from netdiag.lab.link import Link, PeerGone
from netdiag.lab.truth import TruthLog

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_OPEN_FAULTS = ("close", "reset", "silence")


class TlsServer:
    """Makes server contexts; all share one certificate."""

    def __init__(self, config: LabConfig, leaf: Leaf, folder: Path) -> None:
        """Writes chain and key into ``folder`` (the ssl module loads files only). Raises UsageError for a setting that cannot be."""
        self._config = config
        self._chain = folder / "chain.pem"
        self._key = folder / "key.pem"
        self._chain.write_bytes(leaf.chain)
        write_private(self._key, leaf.key)
        check(config)
        self._shared = self._context()

    def context(self) -> ssl.SSLContext:
        """The context of the next connection: always the same, or, so that nothing can be resumed, a new one with its own keys and cache."""
        config = self._config
        return self._context() if config.refuse_tickets or not config.tickets else self._shared

    def _context(self) -> ssl.SSLContext:
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _VERSIONS[config.tls_minimum]
        context.maximum_version = _VERSIONS[config.tls_maximum]
        context.load_cert_chain(self._chain, self._key)
        context.set_alpn_protocols(list(config.protocols))
        context.num_tickets = config.tickets
        if not config.tickets:
            context.options |= ssl.OP_NO_TICKET
        try:
            if config.groups:
                context.set_ecdh_curve(config.groups)
            if config.ciphers:
                context.set_ciphers(config.ciphers)
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(
                f"TLS: groups {config.groups!r} or ciphers {config.ciphers!r} cannot be: {error}"
            ) from None
        if config.keylog:
            _private_keylog(Path(config.keylog))
            context.keylog_filename = config.keylog
        return context


def check(config: LabConfig) -> None:
    """Raises UsageError for what no TLS server can do."""
    for name in (config.tls_minimum, config.tls_maximum):
        if name not in _VERSIONS:
            raise UsageError(f"TLS version {name!r} is none of {', '.join(_VERSIONS)}")
    if config.tls_minimum > config.tls_maximum:
        raise UsageError(f"tls_minimum {config.tls_minimum} is above tls_maximum {config.tls_maximum}")
    if config.fail_handshake is not None and config.fail_handshake not in _OPEN_FAULTS:
        raise UsageError(f"fail_handshake must be one of {', '.join(_OPEN_FAULTS)}, not {config.fail_handshake!r}")


def _private_keylog(path: Path) -> None:
    """ssl would create the file readable for all."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))


async def handshake(link: Link, tls: TlsServer, config: LabConfig, log: TruthLog, connection: int) -> str | None:
    """Do the handshake and return the protocol chosen by ALPN. Raises HandshakeFailed or PeerGone."""
    session = link.start_tls(tls.context())
    delay_ns, done, first = ns(config.tls_ms), False, True
    while not done:
        received = await link.receive_raw()
        if received is None:
            raise HandshakeFailed("client closed during the handshake")
        if first:
            log.add("client-hello", connection, at=received.at, size_bytes=len(received.data))
            await _misbehave(link, config)
        flight, done = await _step(link, received.data)
        if flight and delay_ns:
            await until(Stamp.at_wall(received.at).after(delay_ns))
            delay_ns = 0
        if flight:
            sent = await link.send_raw(flight)
            if not done:
                log.add("server-flight", connection, at=sent.at, sent_at=sent.done_at, size_bytes=len(flight))
        first = False
    log.add(
        "tls-done",
        connection,
        at=time.time_ns(),
        version=session.version(),
        cipher=(session.cipher() or ("",))[0],
        alpn=session.selected_alpn_protocol(),
        resumed=session.session_reused,
    )
    return session.selected_alpn_protocol()


async def _step(link: Link, data: bytes) -> tuple[bytes, bool]:
    try:
        return link.handshake_step(data)
    except ssl.SSLError as error:
        await link.send_raw(getattr(error, "alert", b""))
        raise HandshakeFailed(str(error.reason or error)) from None


async def _misbehave(link: Link, config: LabConfig) -> None:
    match config.fail_handshake:
        case "close":
            link.end(notify=False)
            raise HandshakeFailed("closed on purpose")
        case "reset":
            link.reset()
            raise HandshakeFailed("reset on purpose")
        case "silence":
            while await link.receive_raw() is not None:
                pass
            raise PeerGone("client gave up")
