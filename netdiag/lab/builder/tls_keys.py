"""Key schedules of TLS 1.3 (RFC 8446 section 7) and 1.2 (RFC 5246 section 5, RFC 7627), and record protection."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

APPLICATION_DATA, HANDSHAKE, ALERT, CHANGE_CIPHER_SPEC = 23, 22, 21, 20
LARGEST_CONTENT = 1 << 14


@dataclass(frozen=True, slots=True)
class Suite:
    """A cipher suite of either version."""

    code: int
    name: str
    hash_name: str
    key_bytes: int
    chacha: bool = False

    @property
    def hash_bytes(self) -> int:
        """Length of the hash's output."""
        return hashlib.new(self.hash_name).digest_size

    def digest(self, data: bytes) -> bytes:
        """The suite's hash."""
        return hashlib.new(self.hash_name, data).digest()

    def mac(self, key: bytes, data: bytes) -> bytes:
        """HMAC with the suite's hash."""
        return hmac.new(key, data, self.hash_name).digest()

    @property
    def nonce_is_explicit(self) -> bool:
        """TLS 1.2 AES-GCM sends 8 octets of nonce in each record (RFC 5288 section 3), ChaCha20 none (RFC 7905)."""
        return not self.chacha


SUITES = {
    "1.3": {
        "TLS_AES_128_GCM_SHA256": Suite(0x1301, "TLS_AES_128_GCM_SHA256", "sha256", 16),
        "TLS_AES_256_GCM_SHA384": Suite(0x1302, "TLS_AES_256_GCM_SHA384", "sha384", 32),
        "TLS_CHACHA20_POLY1305_SHA256": Suite(0x1303, "TLS_CHACHA20_POLY1305_SHA256", "sha256", 32, chacha=True),
    },
    "1.2": {
        "ECDHE-ECDSA-AES128-GCM-SHA256": Suite(0xC02B, "ECDHE-ECDSA-AES128-GCM-SHA256", "sha256", 16),
        "ECDHE-ECDSA-AES256-GCM-SHA384": Suite(0xC02C, "ECDHE-ECDSA-AES256-GCM-SHA384", "sha384", 32),
        "ECDHE-ECDSA-CHACHA20-POLY1305": Suite(0xCCA9, "ECDHE-ECDSA-CHACHA20-POLY1305", "sha256", 32, chacha=True),
    },
}


def expand_label(suite: Suite, secret: bytes, label: str, context: bytes, size: int) -> bytes:
    """HKDF-Expand-Label (RFC 8446 section 7.1)."""
    name = b"tls13 " + label.encode()
    info = struct.pack("!HB", size, len(name)) + name + bytes([len(context)]) + context
    out = block = b""
    counter = 1
    while len(out) < size:
        block = suite.mac(secret, block + info + bytes([counter]))
        out += block
        counter += 1
    return out[:size]


class KeySchedule13:
    """The secrets of one TLS 1.3 handshake as they come about."""

    def __init__(self, suite: Suite, psk: bytes | None = None) -> None:
        """The early secret, with or without a pre-shared key."""
        self.suite = suite
        zeros = bytes(suite.hash_bytes)
        self.early = suite.mac(zeros, psk or zeros)
        self._secret = self.early

    def derive(self, secret: bytes, label: str, transcript_hash: bytes) -> bytes:
        """Derive-Secret."""
        return expand_label(self.suite, secret, label, transcript_hash, self.suite.hash_bytes)

    def _advance(self, input_secret: bytes) -> bytes:
        salt = self.derive(self._secret, "derived", self.suite.digest(b""))
        self._secret = self.suite.mac(salt, input_secret)
        return self._secret

    def handshake(self, shared: bytes, transcript: bytes) -> tuple[bytes, bytes]:
        """Client's and server's handshake traffic secrets, after ServerHello."""
        secret, digest = self._advance(shared), self.suite.digest(transcript)
        return self.derive(secret, "c hs traffic", digest), self.derive(secret, "s hs traffic", digest)

    def application(self, transcript: bytes) -> tuple[bytes, bytes, bytes]:
        """Client's and server's application traffic secrets and the exporter secret, after the server's Finished."""
        secret, digest = self._advance(bytes(self.suite.hash_bytes)), self.suite.digest(transcript)
        names = ("c ap traffic", "s ap traffic", "exp master")
        client, server, exporter = (self.derive(secret, name, digest) for name in names)
        return client, server, exporter

    def resumption(self, transcript: bytes, nonce: bytes) -> bytes:
        """The pre-shared key that a ticket with this nonce stands for, after the client's Finished."""
        master = self.derive(self._secret, "res master", self.suite.digest(transcript))
        return expand_label(self.suite, master, "resumption", nonce, self.suite.hash_bytes)

    def finished(self, traffic_secret: bytes, transcript: bytes) -> bytes:
        """verify_data of a Finished message (also of a PSK binder)."""
        key = expand_label(self.suite, traffic_secret, "finished", b"", self.suite.hash_bytes)
        return self.suite.mac(key, self.suite.digest(transcript))


def prf(suite: Suite, secret: bytes, label: str, seed: bytes, size: int) -> bytes:
    """The TLS 1.2 pseudorandom function with the suite's hash (RFC 5246 section 5)."""
    seed = label.encode() + seed
    out, a = b"", seed
    while len(out) < size:
        a = suite.mac(secret, a)
        out += suite.mac(secret, a + seed)
    return out[:size]


@dataclass(slots=True)
class Protection:
    """Seals (or opens) the records of one direction in one epoch."""

    suite: Suite
    key: bytes
    iv: bytes
    is_tls13: bool
    pad_to: int | None = None
    """TLS 1.3: pad the content of application data up to this size (RFC 8446 section 5.4)."""
    sequence: int = 0
    _aead: AESGCM | ChaCha20Poly1305 = field(init=False)

    def __post_init__(self) -> None:
        """The cipher."""
        self._aead = ChaCha20Poly1305(self.key) if self.suite.chacha else AESGCM(self.key)

    @staticmethod
    def tls13(suite: Suite, secret: bytes, *, pad_to: int | None = None) -> Protection:
        """From a traffic secret."""
        key = expand_label(suite, secret, "key", b"", suite.key_bytes)
        return Protection(suite, key, expand_label(suite, secret, "iv", b"", 12), True, pad_to)

    def seal(self, kind: int, content: bytes) -> bytes:
        """One record on the wire."""
        sealed = self._seal13(kind, content) if self.is_tls13 else self._seal12(kind, content)
        self.sequence += 1
        return sealed

    def _seal13(self, kind: int, content: bytes) -> bytes:
        inner = content + bytes([kind])
        if self.pad_to is not None and kind == APPLICATION_DATA:
            inner += bytes(max(0, self.pad_to - len(content)))
        head = struct.pack("!BHH", APPLICATION_DATA, 0x0303, len(inner) + 16)
        return head + self._aead.encrypt(self._nonce(), inner, head)

    def _seal12(self, kind: int, content: bytes) -> bytes:
        explicit = struct.pack("!Q", self.sequence) if self.suite.nonce_is_explicit else b""
        nonce = self.iv + explicit if explicit else self._nonce()
        extra = struct.pack("!QBHH", self.sequence, kind, 0x0303, len(content))
        sealed = explicit + self._aead.encrypt(nonce, content, extra)
        return struct.pack("!BHH", kind, 0x0303, len(sealed)) + sealed

    def open(self, kind: int, fragment: bytes) -> tuple[int, bytes]:
        """Content type and content of a record. Raises cryptography's InvalidTag."""
        if self.is_tls13:
            head = struct.pack("!BHH", kind, 0x0303, len(fragment))
            inner = self._aead.decrypt(self._nonce(), fragment, head).rstrip(b"\0")
            kind, content = inner[-1], inner[:-1]
        else:
            explicit, sealed = (fragment[:8], fragment[8:]) if self.suite.nonce_is_explicit else (b"", fragment)
            nonce = self.iv + explicit if explicit else self._nonce()
            extra = struct.pack("!QBHH", self.sequence, kind, 0x0303, len(sealed) - 16)
            content = self._aead.decrypt(nonce, sealed, extra)
        self.sequence += 1
        return kind, content

    def _nonce(self) -> bytes:
        return (int.from_bytes(self.iv, "big") ^ self.sequence).to_bytes(12, "big")


def plain_record(kind: int, content: bytes, version: int = 0x0303) -> bytes:
    """Unprotected records of any amount of handshake content."""
    parts = [content[i : i + LARGEST_CONTENT] for i in range(0, len(content), LARGEST_CONTENT)] or [b""]
    return b"".join(struct.pack("!BHH", kind, version, len(p)) + p for p in parts)
