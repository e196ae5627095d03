"""Handshake messages: taken out of records (RFC 8446 section 5.1) and read. Hostile lengths end a message, never the analysis."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from struct import Struct
from typing import Generic, TypeVar

from netdiag.protocols.tls import extensions as ext
from netdiag.protocols.tls.names import TLS12, TLS13, ExtensionType, draft_of, is_grease

LARGEST_MESSAGE = 256 * 1024
"""Octets of one handshake message that netdiag is willing to collect (certificate chains of real servers stay below 64 KiB)."""

HELLO_RETRY_RANDOM = sha256(b"HelloRetryRequest").digest()
"""RFC 8446 section 4.1.3: a ServerHello with this random is a HelloRetryRequest."""

_U16 = Struct(">H").unpack_from


Mark = TypeVar("Mark")


class Assembler(Generic[Mark]):
    """Turns the contents of handshake records into messages; a message may span records and a record may hold several."""

    __slots__ = ("_needed", "_pending", "damage", "started")

    def __init__(self) -> None:
        self._pending = bytearray()
        self._needed = 4
        """Octets that must be pending before there is anything to do."""
        self.damage: str | None = None
        """Why no further message will come; None while all is well."""
        self.started: Mark | None = None
        """The mark given with the fragment in which the message being returned began."""

    @property
    def partial(self) -> bool:
        """Whether a message has begun and is not complete."""
        return bool(self._pending)

    def feed(self, fragment: bytes, mark: Mark | None = None) -> Iterator[tuple[int, bytes]]:
        """Messages that this fragment completes, as (type, body)."""
        if self.damage:
            return
        data = fragment
        if self._pending:
            self._pending += fragment
            if len(self._pending) < self._needed:
                return
            data = bytes(self._pending)
            self._pending.clear()
        else:
            self.started = mark
        yield from self._messages(data, mark)

    def _messages(self, data: bytes, mark: Mark | None) -> Iterator[tuple[int, bytes]]:
        at, end = 0, len(data)
        self._needed = 4
        while at + 4 <= end:
            length = int.from_bytes(data[at + 1 : at + 4], "big")
            if length > LARGEST_MESSAGE:
                self.damage = f"handshake message of type {data[at]} claims {length} octets"
                return
            start, stop = at + 4, at + 4 + length
            if stop > end:
                self._needed = 4 + length
                break
            yield data[at], data[start:stop]
            self.started = mark
            at = stop
        self._pending += data[at:]

    def reset(self) -> None:
        """Forget a message that can no longer be completed because octets are missing."""
        self._pending.clear()
        self._needed = 4
        self.damage = None


def message_header(kind: int, body: bytes) -> bytes:
    """The four octets before a message's body, as they enter the transcript hash."""
    return bytes((kind,)) + len(body).to_bytes(3, "big")


class ClientHello:
    """RFC 8446 section 4.1.2. Extensions are decoded when asked for."""

    __slots__ = ("compressions", "damage", "extensions", "legacy_version", "random", "session_id", "suites")

    def __init__(self, legacy_version: int, random: bytes) -> None:
        self.legacy_version = legacy_version
        self.random = random
        self.session_id = b""
        self.suites: bytes = b""
        """Cipher suites as on the wire, two octets each."""
        self.compressions: bytes = b""
        self.extensions: dict[int, bytes] = {}
        self.damage: str | None = None
        """What is wrong with it; what comes before that point has been read."""

    @property
    def suite_numbers(self) -> tuple[int, ...]:
        """Cipher suites offered, in order, GREASE included."""
        return tuple(_U16(self.suites, at)[0] for at in range(0, len(self.suites) - 1, 2))

    @property
    def server_name(self) -> str | None:
        """SNI; None where not sent."""
        data = self.extensions.get(ExtensionType.SERVER_NAME)
        return ext.server_name(data) if data else None

    @property
    def alpn(self) -> tuple[str, ...]:
        """Protocols offered, in order."""
        data = self.extensions.get(ExtensionType.ALPN)
        return ext.protocol_names(data) if data else ()

    @property
    def versions(self) -> tuple[int, ...]:
        """Numbers of supported_versions without GREASE; empty where the extension is absent (then ``legacy_version`` is the highest)."""
        data = self.extensions.get(ExtensionType.SUPPORTED_VERSIONS)
        return tuple(n for n in ext.numbers(data, prefix=1) if not is_grease(n)) if data else ()

    @property
    def groups(self) -> tuple[int, ...]:
        """supported_groups, in order, without GREASE."""
        data = self.extensions.get(ExtensionType.SUPPORTED_GROUPS)
        return tuple(n for n in ext.numbers(data, prefix=2) if not is_grease(n)) if data else ()

    @property
    def key_shares(self) -> tuple[int, ...]:
        """Groups for which a key share was sent along, without GREASE."""
        data = self.extensions.get(ExtensionType.KEY_SHARE) or self.extensions.get(ExtensionType.KEY_SHARE_DRAFT)
        return tuple(n for n in ext.key_share_groups(data) if not is_grease(n)) if data else ()

    @property
    def offers_psk(self) -> bool:
        """Whether it tries to resume by TLS 1.3 rules (or has an external PSK)."""
        return ExtensionType.PRE_SHARED_KEY in self.extensions

    @property
    def offers_early_data(self) -> bool:
        """Whether 0-RTT data follows."""
        return ExtensionType.EARLY_DATA in self.extensions

    @property
    def ticket(self) -> bytes:
        """The RFC 5077 ticket it tries to resume with; empty where it has none."""
        return self.extensions.get(ExtensionType.SESSION_TICKET, b"")

    @property
    def offers_settings(self) -> bool:
        """Whether it offers application settings (draft-vvv-tls-alps), for which the client sends a message of its own before Finished."""
        return (
            ExtensionType.APPLICATION_SETTINGS in self.extensions
            or ExtensionType.APPLICATION_SETTINGS_OLD in self.extensions
        )

    @property
    def offers_ech(self) -> bool:
        """Whether an encrypted hello is inside (real or GREASE)."""
        return (
            ExtensionType.ENCRYPTED_CLIENT_HELLO in self.extensions
            or ExtensionType.ENCRYPTED_SERVER_NAME in self.extensions
        )


def client_hello(body: bytes) -> ClientHello | None:
    """Reads the body of a ClientHello; None if not even version and random are there."""
    end = len(body)
    if end < 35:
        return None
    hello = ClientHello(_U16(body)[0], body[2:34])
    session_end = 35 + body[34]
    hello.session_id = body[35:session_end]
    if session_end + 2 > end:
        hello.damage = "ends in the session id"
        return hello
    suites_end = session_end + 2 + _U16(body, session_end)[0]
    hello.suites = body[session_end + 2 : suites_end]
    if suites_end >= end:
        hello.damage = "ends in the cipher suites"
        return hello
    at = suites_end + 1 + body[suites_end]
    hello.compressions = body[suites_end + 1 : at]
    if at < end:
        hello.extensions, hello.damage = _extension_block(body, at)
    elif at > end:
        hello.damage = "ends in the compression methods"
    return hello


def _extension_block(body: bytes, at: int) -> tuple[dict[int, bytes], str | None]:
    """A two-octet length and the extensions after it, up to the end of the message."""
    end = len(body)
    if at + 2 > end:
        return {}, "ends in the length of the extensions"
    stop = at + 2 + _U16(body, at)[0]
    if stop == end:
        return ext.read_block(body, at + 2, end)
    found, damage = ext.read_block(body, at + 2, min(stop, end))
    return found, damage or f"extensions claim {stop - at - 2} octets, {end - at - 2} are there"


def ssl2_client_hello(message: bytes) -> ClientHello | None:
    """A ClientHello in SSL 2.0 framing (RFC 5246 appendix E.2), from its message type octet on; None if it is none."""
    if len(message) < 9 or message[0] != 1:
        return None
    version, suites, session, challenge = (_U16(message, at)[0] for at in (1, 3, 5, 7))
    if suites % 3 or not suites or 9 + suites + session + challenge > len(message):
        return None
    specs = message[9 : 9 + suites]
    at = 9 + suites
    # The challenge is the client random, right-aligned in 32 octets.
    hello = ClientHello(version, message[at + session : at + session + challenge].rjust(32, b"\0")[-32:])
    hello.session_id = message[at : at + session]
    hello.suites = b"".join(specs[i + 1 : i + 3] for i in range(0, suites, 3) if specs[i] == 0)
    return hello


class ServerHello:
    """RFC 8446 section 4.1.3, and the HelloRetryRequest of section 4.1.4."""

    __slots__ = ("compression", "damage", "extensions", "legacy_version", "random", "retry", "session_id", "suite")

    def __init__(self, legacy_version: int, random: bytes) -> None:
        self.legacy_version = legacy_version
        self.random = random
        self.session_id = b""
        self.suite: int | None = None
        self.compression = 0
        self.extensions: dict[int, bytes] = {}
        self.retry = random == HELLO_RETRY_RANDOM
        """Whether it is a HelloRetryRequest."""
        self.damage: str | None = None

    @property
    def version(self) -> int:
        """The version chosen: supported_versions where present, else the field of old."""
        chosen = ext.first_number(self.extensions.get(ExtensionType.SUPPORTED_VERSIONS))
        return self.legacy_version if chosen is None else chosen

    @property
    def group(self) -> int | None:
        """Group of the server's key share (the one asked for, in a HelloRetryRequest); None without key share."""
        data = self.extensions.get(ExtensionType.KEY_SHARE) or self.extensions.get(ExtensionType.KEY_SHARE_DRAFT)
        return ext.first_number(data)

    @property
    def selected_psk(self) -> bool:
        """Whether it took a PSK the client offered."""
        return ExtensionType.PRE_SHARED_KEY in self.extensions

    @property
    def alpn(self) -> str | None:
        """The protocol chosen; TLS 1.3 says it in EncryptedExtensions instead."""
        return chosen_protocol(self.extensions)


def server_hello(body: bytes) -> ServerHello | None:
    """Reads the body of a ServerHello, drafts of TLS 1.3 included; None if not even version and random are there."""
    end = len(body)
    if end < 34:
        return None
    hello = ServerHello(_U16(body)[0], body[2:34])
    if (draft_of(hello.legacy_version) or 99) < 22:
        return _draft_server_hello(hello, body, 34)
    at = 35 + body[34] if end > 34 else end + 1
    hello.session_id = body[35:at]
    if at + 3 > end:
        hello.damage = "ends before the cipher suite"
        return hello
    hello.suite = _U16(body, at)[0]
    hello.compression = body[at + 2]
    if at + 3 < end:
        hello.extensions, hello.damage = _extension_block(body, at + 3)
    return hello


def _draft_server_hello(hello: ServerHello, body: bytes, at: int) -> ServerHello:
    """Up to draft 21 neither session id nor compression method were sent."""
    if at + 2 > len(body):
        hello.damage = "ends before the cipher suite"
        return hello
    hello.suite = _U16(body, at)[0]
    if at + 2 < len(body):
        hello.extensions, hello.damage = _extension_block(body, at + 2)
    return hello


def draft_hello_retry_request(body: bytes) -> ServerHello | None:
    """The HelloRetryRequest message of its own that drafts before 22 had (with a cipher suite since draft 19)."""
    if len(body) < 4:
        return None
    hello = ServerHello(_U16(body)[0], HELLO_RETRY_RANDOM)
    if (draft_of(hello.legacy_version) or 0) >= 19:
        return _draft_server_hello(hello, body, 2)
    hello.extensions, hello.damage = _extension_block(body, 2)
    return hello


def chosen_protocol(extensions: dict[int, bytes]) -> str | None:
    """The one protocol of a server's ALPN extension (RFC 7301 section 3.1); None where absent."""
    data = extensions.get(ExtensionType.ALPN)
    names = ext.protocol_names(data) if data else ()
    return names[0] if names else None


def encrypted_extensions(body: bytes) -> dict[int, bytes]:
    """RFC 8446 section 4.3.1: the extensions as far as they can be read."""
    return _extension_block(body, 0)[0]


def certificates(body: bytes, *, version: int) -> list[bytes]:
    """DER certificates of a Certificate message, leaf first (RFC 8446 section 4.4.2, RFC 5246 section 7.4.2); as far as they can be read."""
    tls13 = version == TLS13 or draft_of(version) is not None
    at = 1 + body[0] if tls13 and body else 0
    at += 3
    found = []
    while at + 3 <= len(body):
        start = at + 3
        at = start + int.from_bytes(body[start - 3 : start], "big")
        if at > len(body):
            break
        found.append(body[start:at])
        if tls13:
            if at + 2 > len(body):
                break
            at += 2 + _U16(body, at)[0]
    return found


def key_exchange_group(body: bytes, exchange: str) -> int | str | None:
    """Group of a ServerKeyExchange: a named curve's number (RFC 8422 section 5.4), ``ffdhe2048`` or ``dh-1024`` for finite fields, else None.

    ``exchange`` is the key exchange of the cipher suite, such as ``ECDHE_RSA``.
    """
    at = 0
    if "PSK" in exchange:
        at = 2 + (ext.first_number(body) or 0)
    if exchange.startswith("ECDH"):
        return ext.first_number(body[at + 1 :]) if body[at : at + 1] == b"\x03" else None
    if exchange.startswith("DH"):
        length = ext.first_number(body[at:])
        prime = body[at + 2 : at + 2 + length] if length else b""
        return _finite_field(prime) if prime and len(prime) == length else None
    return None


_FFDHE_START = bytes.fromhex("ffffffffffffffffadf85458a2bb4a9a")
"""All groups of RFC 7919 begin so; the length tells which it is."""


def _finite_field(prime: bytes) -> str:
    bits = int.from_bytes(prime, "big").bit_length()
    return f"ffdhe{bits}" if prime.startswith(_FFDHE_START) else f"dh-{bits}"


def offered_versions(hello: ClientHello) -> tuple[int, ...]:
    """supported_versions, or the highest version that a hello without it announces."""
    return hello.versions or (min(hello.legacy_version, TLS12),)
