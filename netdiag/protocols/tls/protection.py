"""Record protection taken off: one object per direction and epoch. What fails to authenticate is ``None``, never an exception.

``cryptography`` is imported here and nowhere else in the decoder.
"""

from __future__ import annotations

import hashlib
import hmac
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers import algorithms as _current
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

from netdiag.protocols.tls.key_schedule import WriteKeys, traffic_key
from netdiag.protocols.tls.names import SSL3, TLS11, TLS13, draft_of
from netdiag.protocols.tls.suites import Bulk, Suite

_GCM_TAG_BYTES = 16
_OLD_HOME = "cryptography.hazmat.decrepit.ciphers.algorithms"
"""Where cryptography 43 and later keep what nobody should use any more."""


class Protection(Protocol):
    """What a direction's records are opened with until its keys change."""

    @property
    def stands_alone(self) -> bool:
        """Whether one record can be tried with several record numbers."""
        ...

    def open(self, sequence: int, content_type: int, version: int, fragment: bytes) -> tuple[int, bytes] | None:
        """(inner content type, content) of the record with this sequence number, or None if it does not authenticate."""
        ...

    def skip(self, length: int, fragment: bytes = b"") -> None:
        """A record of this length went by unread (``fragment`` where it was captured); ciphers that chain over records need to know."""
        ...


class Aead13:
    """TLS 1.3 (RFC 8446 section 5.2)."""

    __slots__ = ("_decrypt", "_empty_aad", "_iv")

    stands_alone = True

    def __init__(self, secret: bytes, suite: Suite, bulk: Bulk, version: int) -> None:
        """``secret`` is a traffic secret."""
        key, iv = traffic_key(secret, bulk.key_bytes, suite.prf_hash, prefix=label_prefix(version))
        self._iv = int.from_bytes(iv, "big")
        self._decrypt = _aead(bulk, key)
        self._empty_aad = _has_empty_aad(version)

    def open(self, sequence: int, content_type: int, version: int, fragment: bytes) -> tuple[int, bytes] | None:
        """See ``Protection.open``."""
        header = content_type << 32 | version << 16 | len(fragment) & 0xFFFF
        aad = b"" if self._empty_aad else header.to_bytes(5, "big")
        try:
            inner = self._decrypt((self._iv ^ sequence).to_bytes(12, "big"), fragment, aad)
        except (InvalidTag, ValueError):
            return None
        if inner and not inner[-1]:
            inner = inner.rstrip(b"\0")
        # RFC 8446 section 5.4: content, one octet of type, padding of zeros. Only zeros: no type at all.
        return (inner[-1], inner[:-1]) if inner else (0, b"")

    def skip(self, length: int, fragment: bytes = b"") -> None:
        """Records stand alone."""


@lru_cache(maxsize=16)
def _has_empty_aad(version: int) -> bool:
    """Before draft 25 the record's header was not authenticated."""
    return (draft_of(version) or 99) < 25


@lru_cache(maxsize=16)
def label_prefix(version: int) -> bytes:
    """The labels of HKDF began otherwise before draft 20."""
    return b"TLS 1.3, " if (draft_of(version) or 99) < 20 else b"tls13 "


def _aead(bulk: Bulk, key: bytes) -> Callable[[bytes, bytes, bytes], bytes]:
    if bulk.algorithm == "SM4":
        return _gcm(_algorithm("SM4", key))
    if bulk.mode == "gcm":
        return AESGCM(key).decrypt
    if bulk.mode == "ccm":
        return AESCCM(key, tag_length=bulk.tag_bytes).decrypt
    return ChaCha20Poly1305(key).decrypt


def _gcm(algorithm: Any) -> Callable[[bytes, bytes, bytes], bytes]:
    """GCM over a block cipher for which the library has no AEAD object (RFC 8998)."""

    def decrypt(nonce: bytes, sealed: bytes, aad: bytes) -> bytes:
        opener = Cipher(algorithm, modes.GCM(nonce)).decryptor()
        opener.authenticate_additional_data(aad)
        return opener.update(sealed[:-_GCM_TAG_BYTES]) + opener.finalize_with_tag(sealed[-_GCM_TAG_BYTES:])

    Cipher(algorithm, modes.GCM(bytes(12))).decryptor()  # unsupported: say so now
    return decrypt


class Aead12:
    """AEAD suites of TLS 1.2: AES-GCM (RFC 5288), AES-CCM (RFC 6655) with an explicit nonce, ChaCha20 (RFC 7905) without."""

    __slots__ = ("_decrypt", "_explicit", "_iv", "_salt", "_tag_bytes")

    stands_alone = True

    def __init__(self, keys: WriteKeys, bulk: Bulk) -> None:
        self._decrypt = _aead(bulk, keys.key)
        self._explicit = bulk.mode != "chacha"
        self._salt = keys.iv
        self._iv = int.from_bytes(keys.iv, "big")
        self._tag_bytes = bulk.tag_bytes

    def open(self, sequence: int, content_type: int, version: int, fragment: bytes) -> tuple[int, bytes] | None:
        """See ``Protection.open``."""
        if self._explicit:
            nonce, sealed = self._salt + fragment[:8], fragment[8:]
        else:
            nonce, sealed = (self._iv ^ sequence).to_bytes(12, "big"), fragment
        length = len(sealed) - self._tag_bytes
        if length < 0:
            return None
        aad = (sequence << 40 | content_type << 32 | version << 16 | length).to_bytes(13, "big")
        try:
            return content_type, self._decrypt(nonce, sealed, aad)
        except (InvalidTag, ValueError):
            return None

    def skip(self, length: int, fragment: bytes = b"") -> None:
        """Records stand alone."""


class Mac:
    """The MAC of CBC, stream and NULL suites: HMAC (RFC 5246 section 6.2.3.1), or SSL 3.0's construction (RFC 6101 section 5.2.3.1)."""

    __slots__ = ("_hash", "_key", "_ssl3", "size")

    def __init__(self, key: bytes, hash_name: str, *, ssl3: bool, truncated: bool) -> None:
        self._key, self._hash, self._ssl3 = key, hash_name, ssl3
        self.size = 10 if truncated else hashlib.new(hash_name, usedforsecurity=False).digest_size
        """Octets on the wire (RFC 6066 section 7 shortens it)."""

    def matches(self, mac: bytes, sequence: int, content_type: int, version: int, content: bytes) -> bool:
        """Whether ``mac`` is right for this content in this place."""
        if self._ssl3:
            return mac == self._ssl3_mac(sequence, content_type, content)
        head = sequence << 40 | content_type << 32 | version << 16 | len(content)
        return mac == hmac.digest(self._key, head.to_bytes(13, "big") + content, self._hash)[: self.size]

    def _ssl3_mac(self, sequence: int, content_type: int, content: bytes) -> bytes:
        pad = 48 if self._hash == "md5" else 40
        head = (sequence << 24 | content_type << 16 | len(content)).to_bytes(11, "big")
        inner = hashlib.new(self._hash, self._key + b"\x36" * pad + head + content, usedforsecurity=False).digest()
        return hashlib.new(self._hash, self._key + b"\x5c" * pad + inner, usedforsecurity=False).digest()


class Cbc:
    """Block ciphers. SSL 3.0 and TLS 1.0 chain the IV from record to record; later versions send it (RFC 4346 section 6.2.3.2)."""

    __slots__ = ("_algorithm", "_block", "_encrypt_then_mac", "_explicit", "_iv", "_mac", "_ssl3")

    stands_alone = True

    def __init__(self, keys: WriteKeys, bulk: Bulk, mac: Mac, *, version: int, encrypt_then_mac: bool) -> None:
        self._algorithm = _algorithm(bulk.algorithm, keys.key)
        Cipher(self._algorithm, modes.CBC(bytes(bulk.block_bytes))).decryptor()  # unsupported: say so now
        self._block = bulk.block_bytes
        self._mac = mac
        self._explicit = version >= TLS11
        self._iv = keys.iv
        self._encrypt_then_mac = encrypt_then_mac
        self._ssl3 = version == SSL3

    def open(self, sequence: int, content_type: int, version: int, fragment: bytes) -> tuple[int, bytes] | None:
        """See ``Protection.open``."""
        sealed = fragment
        if self._encrypt_then_mac:  # RFC 7366 section 3: the MAC covers IV and ciphertext
            sealed, mac = fragment[: -self._mac.size], fragment[-self._mac.size :]
            if not self._mac.matches(mac, sequence, content_type, version, sealed):
                return None
        iv, body = (sealed[: self._block], sealed[self._block :]) if self._explicit else (self._iv, sealed)
        if not body or len(body) % self._block or len(iv) != self._block:
            return None
        plain = Cipher(self._algorithm, modes.CBC(iv)).decryptor().update(body)
        content = self._unpadded(plain)
        if content is not None and not self._encrypt_then_mac:
            content = self._checked(content, sequence, content_type, version)
        if content is None:
            return None
        self._iv = body[-self._block :]
        return content_type, content

    def _unpadded(self, plain: bytes) -> bytes | None:
        """RFC 5246 section 6.2.3.2. SSL 3.0 fills the padding with anything."""
        padding = plain[-1] + 1
        if padding > len(plain) or (not self._ssl3 and plain[-padding:] != plain[-1:] * padding):
            return None
        return plain[: len(plain) - padding]

    def _checked(self, content: bytes, sequence: int, content_type: int, version: int) -> bytes | None:
        end = len(content) - self._mac.size
        if end < 0 or not self._mac.matches(content[end:], sequence, content_type, version, content[:end]):
            return None
        return content[:end]

    def skip(self, length: int, fragment: bytes = b"") -> None:
        """The last block of a record is the next one's IV; where it was not captured the next record cannot be read, the one after it can."""
        self._iv = fragment[-self._block :] if len(fragment) == length else b""


_CURRENT = ("AES", "SM4")


def _algorithm(name: str, key: bytes) -> Any:
    """The library's algorithm of that name. Raises ``UnsupportedAlgorithm`` where it has none."""
    if name == "DES":  # three times the same key is single DES
        name, key = "TripleDES", key * 3
    try:
        home: Any = _current if name in _CURRENT else import_module(_OLD_HOME)
    except ImportError:
        home = _current
    algorithm = getattr(home, name, None)
    if algorithm is None:
        raise UnsupportedAlgorithm(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return algorithm(key)


_RC4_STEP = 1 << 16


class Rc4:
    """RC4: one keystream over all records of the epoch, so a record can be tried only once and only in its turn."""

    __slots__ = ("_cipher", "_mac", "_used")

    stands_alone = False

    def __init__(self, keys: WriteKeys, mac: Mac) -> None:
        self._cipher = Cipher(_algorithm("ARC4", keys.key), None).decryptor()
        self._mac = mac
        self._used = 0
        """Octets of keystream that a record which did not authenticate has used up."""

    def open(self, sequence: int, content_type: int, version: int, fragment: bytes) -> tuple[int, bytes] | None:
        """See ``Protection.open``."""
        plain = self._cipher.update(fragment)
        end = len(plain) - self._mac.size
        if end < 0 or not self._mac.matches(plain[end:], sequence, content_type, version, plain[:end]):
            self._used = len(fragment)
            return None
        return content_type, plain[:end]

    def skip(self, length: int, fragment: bytes = b"") -> None:
        """The keystream goes on over octets that nobody saw."""
        for left in range(length - self._used, 0, -_RC4_STEP):
            self._cipher.update(bytes(min(_RC4_STEP, left)))
        self._used = 0


class Null:
    """NULL ciphers: content in clear before a MAC. Without keys the MAC goes unchecked."""

    __slots__ = ("_mac", "_size")

    stands_alone = True

    def __init__(self, mac: Mac | None, size: int) -> None:
        self._mac, self._size = mac, size

    def open(self, sequence: int, content_type: int, version: int, fragment: bytes) -> tuple[int, bytes] | None:
        """See ``Protection.open``."""
        end = len(fragment) - self._size
        if end < 0:
            return None
        if self._mac and not self._mac.matches(fragment[end:], sequence, content_type, version, fragment[:end]):
            return None
        return content_type, fragment[:end]

    def skip(self, length: int, fragment: bytes = b"") -> None:
        """Records stand alone."""


def protection13(secret: bytes, suite: Suite, version: int) -> Protection | None:
    """Protection under a TLS 1.3 traffic secret; None where netdiag or the library lacks the cipher or the hash."""
    if suite.bulk is None or not suite.bulk.aead:
        return None
    try:
        return Aead13(secret, suite, suite.bulk, version)
    except (UnsupportedAlgorithm, ValueError):
        return None


@lru_cache(maxsize=64)
def opens13(suite: Suite) -> bool:
    """Whether records of TLS 1.3 under this suite can be opened at all."""
    return protection13(bytes(32), suite, TLS13) is not None


def protection12(
    keys: WriteKeys, suite: Suite, *, version: int, encrypt_then_mac: bool = False, truncated_hmac: bool = False
) -> Protection | None:
    """Protection of one direction in SSL 3.0 to TLS 1.2; None where netdiag or the library lacks the cipher."""
    bulk = suite.bulk
    if bulk is None:
        return None
    try:
        if bulk.aead:
            return Aead12(keys, bulk)
        mac = Mac(keys.mac_key, suite.hash_name, ssl3=version == SSL3, truncated=truncated_hmac)
        if bulk.mode == "cbc":
            return Cbc(keys, bulk, mac, version=version, encrypt_then_mac=encrypt_then_mac)
        return Rc4(keys, mac) if bulk.mode == "rc4" else Null(mac, mac.size)
    except UnsupportedAlgorithm:
        return None


def null_without_keys(suite: Suite, *, truncated_hmac: bool) -> Protection:
    """What a NULL suite's records can be read with when there is no key to check their MAC."""
    mac_bytes = hashlib.new(suite.hash_name, usedforsecurity=False).digest_size
    return Null(None, 10 if truncated_hmac else mac_bytes)
