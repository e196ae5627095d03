"""A real OpenSSL client and server that talk in memory, every record they send, and the secrets they log.

The conversation is then given to the passive decoder, which must find the same plaintext. Times are made up: each hand-over of octets from one
peer to the other takes ``ONE_WAY_NS``; each record is its own packet.
"""

from __future__ import annotations

import base64
import datetime
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.x509.oid import NameOID
from OpenSSL import SSL, crypto

from netdiag.wire.record_view import TlsRecordView

ONE_WAY_NS = 1_000_000
BEGIN = 1_700_000_000_000_000_000

NO_ENCRYPT_THEN_MAC = 1 << 19
NO_EXTENDED_MASTER_SECRET = 1 << 0
NO_TICKET = SSL.OP_NO_TICKET
ALLOW_CLIENT_RENEGOTIATION = 1 << 8
"""OpenSSL's SSL_OP_ values that pyOpenSSL has no name for."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A self-signed certificate with its key."""

    key: crypto.PKey
    certificate: crypto.X509


@lru_cache(maxsize=8)
def credential(kind: str) -> Credential:
    """``rsa``, ``ecdsa`` or ``dsa``, for the name ``lab.example``."""
    key: Any = {
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
        "dsa": lambda: dsa.generate_private_key(1024),
    }[kind]()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab.example")])
    now = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=36_500))
        .sign(key, hashes.SHA256())
    )
    return Credential(crypto.PKey.from_cryptography_key(key), crypto.X509.from_cryptography(certificate))


def ffdhe2048() -> int:
    """The prime of RFC 7919 appendix A.1: 2^2048 - 2^1984 + {[2^1918 * e] + 560316} * 2^64 - 1."""
    scale = 1 << 2100
    term = e = scale
    for k in range(1, 400):
        term //= k
        e += term
    return (1 << 2048) - (1 << 1984) + ((e >> (2100 - 1918)) + 560316) * (1 << 64) - 1


@lru_cache(maxsize=1)
def _dh_parameters() -> bytes:
    """PKCS #3: SEQUENCE of prime and generator."""
    prime = b"\0" + ffdhe2048().to_bytes(256, "big")
    body = b"\x02\x82" + len(prime).to_bytes(2, "big") + prime + b"\x02\x01\x02"
    der = b"\x30\x82" + len(body).to_bytes(2, "big") + body
    return b"-----BEGIN DH PARAMETERS-----\n" + base64.encodebytes(der) + b"-----END DH PARAMETERS-----\n"


@dataclass(kw_only=True)
class Settings:
    """How one pair of peers is set up."""

    version: int = SSL.TLS1_3_VERSION
    ciphers: str = "ALL:COMPLEMENTOFALL"
    """OpenSSL cipher list for TLS 1.2 and before."""
    suites: str | None = None
    """TLS 1.3 suites, colon-separated; None for OpenSSL's default."""
    key: str = "rsa"
    client_key: str | None = None
    """The client has a certificate of this kind and the server asks for it."""
    sni: str | None = "lab.example"
    alpn: tuple[bytes, ...] = ()
    server_group: str | None = None
    """The only group the server takes."""
    options: int = 0
    client_options: int = 0


class Sender:
    """The octets one peer sent, cut into records as they came."""

    def __init__(self, first_packet: int) -> None:
        self.records: list[TlsRecordView] = []
        self._pending = b""
        self._offset = 0
        self._packet = first_packet

    def sent(self, octets: bytes, at: int) -> None:
        """Takes octets and turns complete records into views."""
        self._pending += octets
        while len(self._pending) >= 5:
            end = 5 + int.from_bytes(self._pending[3:5], "big")
            if len(self._pending) < end:
                return
            self.records.append(record_view(self._pending[:end], self._offset, at, self._packet))
            self._pending = self._pending[end:]
            self._offset += end
            self._packet += 2


def record_view(octets: bytes, offset: int, at: int, packet: int | None) -> TlsRecordView:
    """A whole record (header and content) sent at ``at``, delivered one way later."""
    content = octets[5:]
    return TlsRecordView(
        content_type=octets[0],
        version=int.from_bytes(octets[1:3], "big"),
        length=len(content),
        stream_offset=offset,
        first_seen_at=at,
        last_seen_at=at,
        deliverable_at=at,
        first_packet=packet,
        last_packet=packet,
        missing_bytes=0,
        read=lambda: content,
    )


@dataclass
class Said:
    """Plaintext of one side as the peers themselves saw it."""

    client: bytes = b""
    server: bytes = b""


class Pair:
    """Client and server of one connection."""

    def __init__(self, settings: Settings | None = None, *, resumes: Pair | None = None) -> None:
        """``resumes``: an earlier pair whose session this one takes up (it must still be open, or have been closed in order)."""
        self.settings = settings or (resumes.settings if resumes else Settings())
        self._log: list[bytes] = resumes._log if resumes else []
        self._logged = len(self._log)
        self.server_context = resumes.server_context if resumes else self._server_context()
        self.client_context = resumes.client_context if resumes else self._client_context()
        self.client = SSL.Connection(self.client_context, None)
        self.server = SSL.Connection(self.server_context, None)
        if self.settings.sni:
            self.client.set_tlsext_host_name(self.settings.sni.encode())
        if resumes is not None:
            self.client.set_session(resumes.session)
        self.client.set_connect_state()
        self.server.set_accept_state()
        self.now = BEGIN
        self.from_client, self.from_server = Sender(1), Sender(2)
        self.said = Said()
        self.session: Any = None

    def _context(self, options: int) -> Any:
        settings = self.settings
        context = SSL.Context(SSL.TLS_METHOD)
        context.set_min_proto_version(settings.version)
        context.set_max_proto_version(settings.version)
        context.set_cipher_list(f"{settings.ciphers}:@SECLEVEL=0".encode())
        if settings.suites:
            context.set_tls13_ciphersuites(settings.suites.encode())
        context.set_options(options)
        return context

    def _server_context(self) -> Any:
        settings = self.settings
        context = self._context(settings.options)
        own = credential(settings.key)
        context.use_certificate(own.certificate)
        context.use_privatekey(own.key)
        context.set_session_id(b"lab")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "dh.pem"
            path.write_bytes(_dh_parameters())
            context.load_tmp_dh(str(path))
        if settings.server_group:
            context.set_tmp_ecdh(ec_curve(settings.server_group))
        if settings.client_key:
            context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, lambda *_: True)
        if settings.alpn:
            context.set_alpn_select_callback(lambda _, offered: settings.alpn[-1])
        return context

    def _client_context(self) -> Any:
        settings = self.settings
        context = self._context(settings.client_options or settings.options)
        if settings.client_key:
            own = credential(settings.client_key)
            context.use_certificate(own.certificate)
            context.use_privatekey(own.key)
        if settings.alpn:
            context.set_alpn_protos(list(settings.alpn))
        log = self._log
        context.set_keylog_callback(lambda _, line: log.append(line))
        return context

    # -- conversation ----------------------------------------------------------------------------------------------------------------

    def handshake(self) -> Pair:
        """Runs it to its end; raises the first error of either side after what was sent has been taken down."""
        failure = None
        for _ in range(20):
            done = 0
            for peer in (self.client, self.server):
                try:
                    peer.do_handshake()
                    done += 1
                except SSL.WantReadError:
                    pass
                except SSL.Error as error:
                    failure = failure or error
                self.carry()
            if done == 2 or failure:
                break
        self.settle()
        if failure:
            raise failure
        return self

    def carry(self) -> None:
        """Takes what each peer has to send to the other one."""
        for peer, other, sender in (
            (self.client, self.server, self.from_client),
            (self.server, self.client, self.from_server),
        ):
            try:
                octets = peer.bio_read(1 << 20)
            except SSL.WantReadError:
                continue
            sender.sent(octets, self.now)
            self.now += ONE_WAY_NS
            other.bio_write(octets)

    def settle(self) -> None:
        """Lets both sides read what is there, so that tickets and answers move."""
        for _ in range(4):
            for peer in (self.client, self.server):
                self._read(peer)
            self.carry()

    def _read(self, peer: Any) -> None:
        while True:
            try:
                data = peer.recv(1 << 16)
            except (SSL.WantReadError, SSL.ZeroReturnError, SSL.Error):
                return
            if peer is self.server:
                self.said.client += data
            else:
                self.said.server += data

    def send(self, side: str, data: bytes) -> None:
        """One side writes, the other reads."""
        (self.client if side == "client" else self.server).send(data)
        self.carry()
        self.settle()

    def close(self) -> None:
        """close_notify by the client, then by the server."""
        self.session = self.client.get_session()
        for peer in (self.client, self.server):
            peer.shutdown()
            self.carry()
        self.settle()

    def renegotiate(self) -> None:
        """The server asks for a new handshake (TLS 1.2 and before) and it is carried out."""
        self.server.renegotiate()
        for _ in range(10):
            for peer in (self.server, self.client):
                with suppress(SSL.WantReadError):
                    peer.do_handshake()
                self.carry()
            self.settle()

    @property
    def keylog_text(self) -> bytes:
        """What the client logged."""
        return b"\n".join(self._log[self._logged :]) + b"\n"


def ec_curve(name: str) -> Any:
    """An elliptic curve as ``set_tmp_ecdh`` wants it."""
    return {"secp256r1": ec.SECP256R1(), "secp384r1": ec.SECP384R1(), "secp521r1": ec.SECP521R1()}[name]


@dataclass
class Conversation:
    """A finished exchange with everything the decoder may be asked about."""

    client: list[TlsRecordView]
    server: list[TlsRecordView]
    keylog: bytes
    said: Said
    negotiated: str = ""


REQUEST, RESPONSE = b"GET / HTTP/1.1\r\nHost: lab.example\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def converse(settings: Settings | None = None, *, pair: Pair | None = None, bulk_bytes: int = 40_000) -> Conversation:
    """Handshake, a request, its answer, something larger than a record, and the close."""
    pair = (pair or Pair(settings)).handshake()
    pair.send("client", REQUEST)
    pair.send("server", RESPONSE)
    pair.send("server", bytes(range(256)) * (bulk_bytes // 256))
    negotiated = pair.client.get_cipher_name() or ""
    pair.close()
    return Conversation(pair.from_client.records, pair.from_server.records, pair.keylog_text, pair.said, negotiated)
