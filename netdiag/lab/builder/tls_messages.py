"""Handshake messages of TLS 1.2 and 1.3 as octets, and the few facts that the other side needs from them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET, END_OF_EARLY_DATA = 1, 2, 4, 5
ENCRYPTED_EXTENSIONS, CERTIFICATE = 8, 11
SERVER_KEY_EXCHANGE, SERVER_HELLO_DONE, CERTIFICATE_VERIFY, CLIENT_KEY_EXCHANGE, FINISHED = 12, 14, 15, 16, 20
MESSAGE_HASH = 254
HELLO_RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The SHA-256 of "HelloRetryRequest" (RFC 8446 section 4.1.3)."""
GROUPS = {"x25519": 29, "secp256r1": 23, "secp384r1": 24}
ED25519 = 0x0807
_SIGNATURES = (0x0403, ED25519, 0x0503, 0x0804, 0x0805)
_SNI, _GROUPS, _POINTS, _SIGNATURE_ALGORITHMS, _ALPN, _PADDING, _EMS, _TICKET = 0, 10, 11, 13, 16, 21, 23, 35
_EARLY_DATA = 42
_PSK, _VERSIONS, _PSK_MODES, _KEY_SHARE = 41, 43, 45, 51
_RENEGOTIATION = 0xFF01

PrivateShare = x25519.X25519PrivateKey | ec.EllipticCurvePrivateKey
_CURVES = {"secp256r1": ec.SECP256R1, "secp384r1": ec.SECP384R1}


def message(kind: int, body: bytes) -> bytes:
    """A handshake message with its header."""
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def _vector(data: bytes, length_bytes: int) -> bytes:
    return len(data).to_bytes(length_bytes, "big") + data


def _extension(kind: int, body: bytes) -> bytes:
    return struct.pack("!H", kind) + _vector(body, 2)


# --- key shares ----------------------------------------------------------------------------------------------------


def private_share(group: str, octets: bytes) -> PrivateShare:
    """A key for key exchange, from seeded octets."""
    if group == "x25519":
        return x25519.X25519PrivateKey.from_private_bytes(octets[:32])
    return ec.derive_private_key(int.from_bytes(octets[:31], "big") + 1, _CURVES[group]())


def public_octets(share: PrivateShare) -> bytes:
    """The share as it goes on the wire."""
    if isinstance(share, x25519.X25519PrivateKey):
        return share.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return share.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def shared_secret(share: PrivateShare, group: str, peer: bytes) -> bytes:
    """ECDHE."""
    if isinstance(share, x25519.X25519PrivateKey):
        return share.exchange(x25519.X25519PublicKey.from_public_bytes(peer))
    return share.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[group](), peer))


# --- hellos --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHello:
    """What this client says, and what the server reads of it."""

    random: bytes
    session_id: bytes
    suites: Sequence[int]
    versions: Sequence[int]
    """0x0304, 0x0303."""
    server_name: str | None
    groups: Sequence[str]
    share_group: str
    share: bytes
    alpn: Sequence[str]
    ticket: bytes | None = None
    """For TLS 1.2 (RFC 5077); None: not supported, empty: none yet."""
    psk_identity: bytes | None = None
    psk_age: int = 0
    binder_bytes: int = 32
    early_data: bool = False
    pad_to: int | None = None
    """Size of the whole message by the padding extension (RFC 7685)."""

    def encode(self) -> bytes:
        """With a zero binder where there is a pre-shared key; see ``with_binder``."""
        extensions = self._extensions()
        psk = self._psk_extension()
        bare = len(self._body(extensions + psk)) + 4
        if self.pad_to is not None and self.pad_to >= bare + 4:
            extensions += _extension(_PADDING, bytes(self.pad_to - bare - 4))
        return message(CLIENT_HELLO, self._body(extensions + psk))

    def _body(self, extensions: bytes) -> bytes:
        suites = b"".join(struct.pack("!H", s) for s in self.suites)
        head = b"\x03\x03" + self.random + _vector(self.session_id, 1) + _vector(suites, 2) + b"\x01\x00"
        return head + _vector(extensions, 2)

    def _extensions(self) -> bytes:
        out = b""
        if self.server_name:
            out += _extension(_SNI, _vector(b"\0" + _vector(self.server_name.encode(), 2), 2))
        out += _extension(_EMS, b"") + _extension(_RENEGOTIATION, b"\0")
        out += _extension(_GROUPS, _vector(b"".join(struct.pack("!H", GROUPS[g]) for g in self.groups), 2))
        out += _extension(_POINTS, b"\x01\x00")
        if self.ticket is not None:
            out += _extension(_TICKET, self.ticket)
        if self.alpn:
            out += _extension(_ALPN, _vector(b"".join(_vector(p.encode(), 1) for p in self.alpn), 2))
        out += _extension(_SIGNATURE_ALGORITHMS, _vector(b"".join(struct.pack("!H", s) for s in _SIGNATURES), 2))
        if 0x0304 in self.versions:
            share = struct.pack("!H", GROUPS[self.share_group]) + _vector(self.share, 2)
            out += _extension(_KEY_SHARE, _vector(share, 2)) + _extension(_PSK_MODES, b"\x01\x01")
            out += _extension(_VERSIONS, _vector(b"".join(struct.pack("!H", v) for v in self.versions), 1))
        return out + (_extension(_EARLY_DATA, b"") if self.early_data else b"")

    def _psk_extension(self) -> bytes:
        if self.psk_identity is None:
            return b""
        identity = _vector(self.psk_identity, 2) + struct.pack("!I", self.psk_age)
        return _extension(_PSK, _vector(identity, 2) + _vector(_vector(bytes(self.binder_bytes), 1), 2))

    def truncated(self, encoded: bytes) -> bytes:
        """What the binder signs: everything before the binders (RFC 8446 section 4.2.11.2)."""
        return encoded[: -(self.binder_bytes + 3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHello:
    """Either version; a HelloRetryRequest when ``retry``."""

    random: bytes
    session_id: bytes
    suite: int
    is_tls13: bool
    group: str | None = None
    share: bytes = b""
    retry: bool = False
    psk_selected: bool = False
    alpn: str | None = None
    """TLS 1.2 says it here, TLS 1.3 in EncryptedExtensions."""
    ticket_follows: bool = False

    def encode(self) -> bytes:
        """The message."""
        random = HELLO_RETRY_RANDOM if self.retry else self.random
        head = b"\x03\x03" + random + _vector(self.session_id, 1) + struct.pack("!HB", self.suite, 0)
        return message(SERVER_HELLO, head + _vector(self._extensions(), 2))

    def _extensions(self) -> bytes:
        if not self.is_tls13:
            out = _extension(_RENEGOTIATION, b"\0") + _extension(_EMS, b"") + _extension(_POINTS, b"\x01\x00")
            out += _extension(_TICKET, b"") if self.ticket_follows else b""
            return out + (alpn_extension(self.alpn) if self.alpn else b"")
        out = _extension(_VERSIONS, b"\x03\x04")
        group = struct.pack("!H", GROUPS[self.group]) if self.group else b""
        if group:
            out += _extension(_KEY_SHARE, group if self.retry else group + _vector(self.share, 2))
        return out + (_extension(_PSK, b"\0\0") if self.psk_selected else b"")


def alpn_extension(protocol: str) -> bytes:
    """The server's choice."""
    return _extension(_ALPN, _vector(_vector(protocol.encode(), 1), 2))


def encrypted_extensions(alpn: str | None, *, early_data: bool = False) -> bytes:
    """TLS 1.3; ``early_data``: it is taken."""
    extensions = (alpn_extension(alpn) if alpn else b"") + (_extension(_EARLY_DATA, b"") if early_data else b"")
    return message(ENCRYPTED_EXTENSIONS, _vector(extensions, 2))


def certificate(chain: Sequence[bytes], *, is_tls13: bool) -> bytes:
    """The chain; TLS 1.3 adds a context and extensions to each entry."""
    entries = b"".join(_vector(c, 3) + (b"\0\0" if is_tls13 else b"") for c in chain)
    return message(CERTIFICATE, (b"\0" if is_tls13 else b"") + _vector(entries, 3))


def certificate_verify(signature: bytes) -> bytes:
    """TLS 1.3, Ed25519."""
    return message(CERTIFICATE_VERIFY, struct.pack("!H", ED25519) + _vector(signature, 2))


def verify_content(transcript_hash: bytes) -> bytes:
    """What a TLS 1.3 server signs (RFC 8446 section 4.4.3)."""
    return b" " * 64 + b"TLS 1.3, server CertificateVerify\0" + transcript_hash


def ecdhe_parameters(group: str, share: bytes) -> bytes:
    """ServerECDHParams (RFC 8422 section 5.4)."""
    return b"\x03" + struct.pack("!H", GROUPS[group]) + _vector(share, 1)


def server_key_exchange(parameters: bytes, signature: bytes) -> bytes:
    """TLS 1.2, Ed25519."""
    return message(SERVER_KEY_EXCHANGE, parameters + struct.pack("!H", ED25519) + _vector(signature, 2))


def client_key_exchange(share: bytes) -> bytes:
    """TLS 1.2, ECDHE."""
    return message(CLIENT_KEY_EXCHANGE, _vector(share, 1))


def new_session_ticket(
    ticket: bytes, *, is_tls13: bool, age_add: int = 0, nonce: bytes = b"", early_bytes: int = 0
) -> bytes:
    """Valid for two hours; ``early_bytes``: how much 0-RTT data it allows."""
    lifetime = struct.pack("!I", 7200)
    if not is_tls13:
        return message(NEW_SESSION_TICKET, lifetime + _vector(ticket, 2))
    early = _extension(_EARLY_DATA, struct.pack("!I", early_bytes)) if early_bytes else b""
    body = lifetime + struct.pack("!I", age_add) + _vector(nonce, 1) + _vector(ticket, 2) + _vector(early, 2)
    return message(NEW_SESSION_TICKET, body)


# --- reading -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HelloFacts:
    """Extensions and fixed fields of a hello; enough for two sides that know each other."""

    random: bytes
    session_id: bytes
    suite: int
    extensions: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_retry(self) -> bool:
        """A HelloRetryRequest."""
        return self.random == HELLO_RETRY_RANDOM

    @property
    def is_tls13(self) -> bool:
        """Of a ServerHello."""
        return self.extensions.get(_VERSIONS) == b"\x03\x04"

    @property
    def psk_selected(self) -> bool:
        """The server resumed."""
        return _PSK in self.extensions

    @property
    def key_share(self) -> bytes:
        """Of a ServerHello: the share; of a HelloRetryRequest: empty."""
        return self.extensions.get(_KEY_SHARE, b"\0\0\0\0")[4:]

    @property
    def group(self) -> str:
        """The group of the key share, or the one that a HelloRetryRequest asks for."""
        code = int.from_bytes(self.extensions[_KEY_SHARE][:2], "big")
        return next(name for name, value in GROUPS.items() if value == code)

    @property
    def alpn(self) -> str | None:
        """The server's choice in TLS 1.2."""
        return chosen_alpn(self.extensions.get(_ALPN))

    @property
    def ticket_follows(self) -> bool:
        """TLS 1.2: a NewSessionTicket will come."""
        return _TICKET in self.extensions


def read_server_hello(body: bytes) -> HelloFacts:
    """A ServerHello without its header."""
    size = body[34]
    place = 35 + size
    (suite,) = struct.unpack_from("!H", body, place)
    return HelloFacts(body[2:34], body[35:place], suite, _read_extensions(body[place + 5 :]))


def read_encrypted_extensions(body: bytes) -> str | None:
    """The chosen ALPN protocol."""
    return chosen_alpn(_read_extensions(body[2:]).get(_ALPN))


def chosen_alpn(body: bytes | None) -> str | None:
    """Of an ALPN extension with one name."""
    return body[3:].decode() if body else None


def read_ticket(body: bytes, *, is_tls13: bool) -> tuple[bytes, bytes, int]:
    """Ticket, nonce and age_add."""
    if not is_tls13:
        return body[6:], b"", 0
    nonce_end = 9 + body[8]
    (size,) = struct.unpack_from("!H", body, nonce_end)
    (age_add,) = struct.unpack_from("!I", body, 4)
    return body[nonce_end + 2 : nonce_end + 2 + size], body[9:nonce_end], age_add


def _read_extensions(data: bytes) -> dict[int, bytes]:
    found, place = {}, 0
    while place < len(data):
        kind, size = struct.unpack_from("!HH", data, place)
        found[kind] = data[place + 4 : place + 4 + size]
        place += 4 + size
    return found
