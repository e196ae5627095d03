"""Client TLS for the probe: contexts that verify, a key log that nobody else can read, and records through memory BIOs.

``ssl.MemoryBIO`` keeps the socket ours, so that every record's write and read is stamped; the plaintext of HTTP passes here as well.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import ssl
import tempfile
import threading
from pathlib import Path
from typing import Protocol

from netdiag.errors import UsageError
from netdiag.probe.failures import ConnectionBroken, ProtocolNotOffered, TlsFailed
from netdiag.probe.limits import Deadline
from netdiag.protocols.tls.suites import suite_of

ALPN = {"h1": "http/1.1", "h2": "h2"}
_VERSIONS = {"tls1.2": ssl.TLSVersion.TLSv1_2, "tls1.3": ssl.TLSVersion.TLSv1_3}
_NO_APPLICATION_PROTOCOL = "NO_APPLICATION_PROTOCOL"


class KeyLog:
    """The session keys of our own connections (NSS key log format), for the analysis of the capture.

    The file is created 0600 in a private folder. On systems that allow it, it loses its name as soon as OpenSSL has opened it, so that no
    way for this process to end can leave it behind.
    """

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="netdiag-")  # mkdtemp makes it 0700
        self._files: list[int] = []

    @property
    def folder(self) -> Path:
        """Where the files are while they have a name."""
        return Path(self._folder)

    def attach(self, context: ssl.SSLContext) -> None:
        """Log the keys of all sessions of this context."""
        path = self.folder / f"keys-{len(self._files)}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        self._files.append(descriptor)
        context.keylog_filename = str(path)
        with contextlib.suppress(PermissionError):  # Windows: not while it is open
            path.unlink()

    def read(self) -> bytes:
        """All lines so far."""
        return b"".join(_read_all(descriptor) for descriptor in self._files)

    def close(self) -> None:
        """Forget the keys."""
        for descriptor in self._files:
            os.close(descriptor)
        self._files.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read()


def client_context(
    *, cacert: str | None = None, insecure: bool = False, version: str | None = None, keylog: KeyLog | None = None
) -> ssl.SSLContext:
    """A context that verifies certificates and names (unless ``insecure``) against ``cacert`` or the system's trust anchors.

    Raises ``UsageError`` when ``cacert`` cannot be read. ``SSLKEYLOGFILE`` is not honoured: the probe keeps its keys to itself.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _VERSIONS.get(version or "", ssl.TLSVersion.TLSv1_2)
    if version is not None:
        context.maximum_version = _VERSIONS[version]
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, cacert)
    if keylog is not None:
        keylog.attach(context)
    return context


def _trust(context: ssl.SSLContext, cacert: str | None) -> None:
    if cacert is not None:
        try:
            context.load_verify_locations(cafile=cacert)
        except OSError as error:  # ssl.SSLError is one
            raise UsageError(f"no certificates can be read: {error.strerror or error}", path=cacert) from error
        return
    context.load_default_certs()
    if not _system_has_anchors():
        import certifi

        context.load_verify_locations(certifi.where())


def _system_has_anchors() -> bool:
    """Minimal containers have none; OpenSSL reads a folder of anchors only when it needs one, so its own count does not tell."""
    paths = ssl.get_default_verify_paths()
    if os.name == "nt" or paths.cafile:
        return True
    return bool(paths.capath) and os.path.isdir(paths.capath) and any(os.scandir(paths.capath))


class Layer(Protocol):
    """What carries a TLS session: the socket, or another TLS session (HTTPS proxy)."""

    def write(self, data: bytes, limit: Deadline) -> int:
        """Send all; the instant of the first system call."""

    def read(self, limit: Deadline) -> bytes:
        """Some octets; empty at the end."""

    def read_ready(self) -> bytes | None:
        """Some octets without waiting; None when there are none now."""


class TlsEngine:
    """One client session without any I/O: octets in, octets out. OpenSSL's objects are not thread-safe, so a lock surrounds each use."""

    READ_BYTES = 1 << 16

    def __init__(
        self,
        context: ssl.SSLContext,
        server_hostname: str,
        *,
        protocol: str | None,
        session: ssl.SSLSession | None = None,
    ) -> None:
        """``protocol`` is the only ALPN name offered; None leaves the context's as they are."""
        self.protocol = protocol
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        if protocol is not None:
            context.set_alpn_protocols([protocol])
        self.object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname, session=session)
        self._lock = threading.Lock()
        self._read_ahead = b""
        self.at_end = False
        """close_notify, or the end of the stream, has come."""

    def shake(self) -> bool:
        """One turn of the handshake; True when it is complete. Raises ``ssl.SSLError``. There may be ``output`` either way."""
        try:
            with self._lock:
                self.object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def encrypt(self, data: bytes) -> bytes:
        """Records to send, those of the session itself included."""
        view = memoryview(data)
        with self._lock:
            while view:
                view = view[self.object.write(view) :]
        return self.output()

    def output(self) -> bytes:
        """What the session itself wants sent."""
        return self._outgoing.read()

    def decrypt(self) -> bytes | None:
        """Plaintext; b"" at the end; None when more octets are needed. Raises ``ConnectionBroken``."""
        if self._read_ahead:
            data, self._read_ahead = self._read_ahead, b""
            return data
        if self.at_end:
            return b""
        try:
            with self._lock:
                data = self.object.read(self.READ_BYTES)
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            data = b""
        except ssl.SSLError as error:
            raise ConnectionBroken(_ssl_reason(error)) from error
        self.at_end = not data
        return data

    def feed(self, raw: bytes) -> None:
        """Octets from the wire; empty at the end of the stream."""
        with self._lock:
            if raw:
                self._incoming.write(raw)
            else:
                self._incoming.write_eof()

    def put_back(self, data: bytes) -> None:
        """Plaintext that was only looked at."""
        self._read_ahead = data + self._read_ahead

    def say_goodbye(self) -> bytes:
        """close_notify (RFC 8446 section 6.1), where the session is in a state to send it."""
        with contextlib.suppress(ssl.SSLError, ValueError), self._lock:
            self.object.unwrap()
        return self.output()


class TlsLayer:
    """A session over a layer below. Writers and readers may be different threads; no lock is held while waiting to read."""

    def __init__(self, below: Layer, engine: TlsEngine) -> None:
        self._below = below
        self.engine = engine
        self._write_lock = threading.Lock()

    def handshake(self, limit: Deadline) -> None:
        """Raises ``TlsFailed``, or ``ProtocolNotOffered`` when the server turns the ALPN name down."""
        try:
            while not self.engine.shake():
                self._flush(limit)
                self.engine.feed(self._below.read(limit))
            self._flush(limit)
        except ssl.SSLError as error:
            with contextlib.suppress(
                Exception
            ):  # the alert: so that the server's log, and the capture, show why we gave up
                self._flush(limit)
            raise handshake_failure(error) from error

    def write(self, data: bytes, limit: Deadline) -> int:
        """Encrypt and send all; the instant of the first system call."""
        with self._write_lock:
            return self._below.write(self.engine.encrypt(data), limit)

    def read(self, limit: Deadline) -> bytes:
        """One record's plaintext, or what was read ahead; empty after close_notify or the end of the stream."""
        while (data := self.engine.decrypt()) is None:
            self.engine.feed(self._below.read(limit))
        return data

    def read_ready(self) -> bytes | None:
        """As ``read``, without waiting."""
        while (data := self.engine.decrypt()) is None:
            if (raw := self._below.read_ready()) is None:
                return None
            self.engine.feed(raw)
        return data

    def is_readable(self) -> bool:
        """Whether plaintext or the end of the stream is there. Session tickets alone are neither; they are consumed."""
        data = self.read_ready()
        if data:
            self.engine.put_back(data)
        return data is not None

    def say_goodbye(self, limit: Deadline) -> None:
        """Send close_notify, without waiting for the peer's."""
        with contextlib.suppress(Exception):
            self._below.write(self.engine.say_goodbye(), limit)

    def _flush(self, limit: Deadline) -> None:
        with self._write_lock:
            if data := self.engine.output():
                self._below.write(data, limit)


def suite_name(context: ssl.SSLContext, openssl_name: str) -> str:
    """The IANA name of a cipher suite that OpenSSL has named its own way (``ECDHE-RSA-AES128-GCM-SHA256``)."""
    numbers = {str(cipher["name"]): int(cipher["id"]) & 0xFFFF for cipher in context.get_ciphers()}
    return suite_of(numbers[openssl_name]).name if openssl_name in numbers else openssl_name


def handshake_failure(error: ssl.SSLError) -> TlsFailed:
    """What an error of the handshake means."""
    reason = _ssl_reason(error)
    if _NO_APPLICATION_PROTOCOL in (error.reason or ""):
        return ProtocolNotOffered("the server knows none of the protocols offered (alert no_application_protocol)")
    if isinstance(error, ssl.SSLEOFError):
        return TlsFailed("the server closed the connection during the handshake")
    return TlsFailed(reason)


def _ssl_reason(error: ssl.SSLError) -> str:
    """``certificate verify failed: self-signed certificate``, ``tlsv1 alert internal error``."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
