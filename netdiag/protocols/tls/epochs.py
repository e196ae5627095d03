"""The keys under which one direction's records follow each other: one ``Epoch`` from a key change to the next."""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import TYPE_CHECKING

from netdiag.protocols.tls.key_schedule import next_secret
from netdiag.protocols.tls.suites import Suite

if TYPE_CHECKING:
    from netdiag.protocols.tls.protection import Protection

_LARGEST_CONTENT = (1 << 14) + 1024
"""RFC 5246 section 6.2.2: a record's content is at most 2^14 octets after decompression."""


class EpochKind(IntEnum):
    """What an epoch's records carry."""

    EARLY = 0
    """0-RTT data under client_early_traffic_secret."""
    HANDSHAKE = 1
    """TLS 1.3 handshake messages."""
    APPLICATION = 2
    """TLS 1.3 after Finished: application data and post-handshake messages."""
    CONNECTION = 3
    """TLS 1.2 and before: all that follows a ChangeCipherSpec."""


class Epoch:
    """Keys of one direction, made when they are first needed. ``protection`` is None where the secret (``label``) or the cipher is missing."""

    __slots__ = ("_inflate", "_made", "_protection", "_secret", "_suite", "_version", "kind", "label", "proven")

    def __init__(
        self, kind: EpochKind, label: str, *, secret: bytes | None = None, suite: Suite | None = None, version: int = 0
    ) -> None:
        """``secret``: a traffic secret of TLS 1.3; epochs of earlier versions are given their protection by ``ready``."""
        self.kind, self.label = kind, label
        self._secret, self._suite, self._version = secret, suite, version
        self._made = secret is None or suite is None
        self._protection: Protection | None = None
        self._inflate: zlib._Decompress | None = None
        self.proven = False
        """Whether a record was opened with it."""

    def ready(self, protection: Protection | None, suite: Suite, version: int, *, deflated: bool) -> Epoch:
        """This epoch with a protection made elsewhere (TLS 1.2 and before)."""
        self._made, self._protection = True, protection
        self._suite, self._version = suite, version
        self._inflate = zlib.decompressobj() if deflated else None
        return self

    @property
    def has_secret(self) -> bool:
        """Whether the key log has what this epoch needs."""
        return self._secret is not None or self._protection is not None

    @property
    def deflates(self) -> bool:
        """Whether content is compressed, over all records."""
        return self._inflate is not None

    @property
    def protection(self) -> Protection | None:
        """What opens the records; None when they cannot be opened."""
        if not self._made:
            from netdiag.protocols.tls.protection import protection13

            assert self._secret is not None
            assert self._suite is not None
            self._made = True
            self._protection = protection13(self._secret, self._suite, self._version)
        return self._protection

    def updated(self) -> Epoch:
        """The epoch after a KeyUpdate (RFC 8446 section 7.2)."""
        from netdiag.protocols.tls.protection import label_prefix

        assert self._suite is not None
        secret = self._secret and next_secret(self._secret, self._suite.prf_hash, prefix=label_prefix(self._version))
        return Epoch(self.kind, self.label, secret=secret, suite=self._suite, version=self._version)

    def inflated(self, content: bytes) -> bytes | None:
        """Content after record decompression (RFC 3749, DEFLATE over all records of the epoch); None if it is damaged or too large."""
        if self._inflate is None:
            return content
        try:
            plain = self._inflate.decompress(content, _LARGEST_CONTENT)
        except zlib.error:
            return None
        return None if self._inflate.unconsumed_tail else plain

    def content_bytes(self, length: int) -> int | None:
        """Octets of content in a record of this length, padding left out of account; None where the cipher's padding hides them."""
        bulk = self._suite.bulk if self._suite else None
        if bulk is None or bulk.mode == "cbc" or self._inflate:
            return None
        if self.kind is not EpochKind.CONNECTION:
            overhead = bulk.tag_bytes + 1
        elif bulk.aead:
            overhead = bulk.tag_bytes + (0 if bulk.mode == "chacha" else 8)
        else:
            overhead = {"md5": 16, "sha1": 20, "sha256": 32, "sha384": 48}[self._suite.hash_name if self._suite else ""]
        return max(0, length - overhead)
