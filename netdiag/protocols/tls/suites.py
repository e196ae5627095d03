"""What a cipher suite's name says about its key exchange, its record protection and its hash."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from netdiag.protocols.tls.suite_names import suite_name


@dataclass(frozen=True, slots=True)
class Bulk:
    """Record protection of a suite. Sizes in octets."""

    mode: str
    """``gcm``, ``ccm``, ``chacha``, ``cbc``, ``rc4``, ``null``."""
    algorithm: str
    """Name of the cipher for the library: ``AES``, ``Camellia``, ``TripleDES`` …"""
    key_bytes: int
    block_bytes: int = 0
    """Block size of a CBC cipher, which is the size of its IV."""
    tag_bytes: int = 16
    """Authentication tag of an AEAD."""
    export_bytes: int = 0
    """Octets of real key material of an export cipher (RFC 2246 section 6.3.1); 0 for all others."""

    @property
    def aead(self) -> bool:
        """Whether the cipher authenticates what it encrypts, so that there is no MAC of its own."""
        return self.mode in ("gcm", "ccm", "chacha")


_BULKS = {
    "AES_128_GCM": Bulk("gcm", "AES", 16),
    "AES_256_GCM": Bulk("gcm", "AES", 32),
    "SM4_GCM": Bulk("gcm", "SM4", 16),
    "AES_128_CCM": Bulk("ccm", "AES", 16),
    "AES_256_CCM": Bulk("ccm", "AES", 32),
    "AES_128_CCM_8": Bulk("ccm", "AES", 16, tag_bytes=8),
    "AES_256_CCM_8": Bulk("ccm", "AES", 32, tag_bytes=8),
    "CHACHA20_POLY1305": Bulk("chacha", "ChaCha20", 32),
    "AES_128_CBC": Bulk("cbc", "AES", 16, 16),
    "AES_256_CBC": Bulk("cbc", "AES", 32, 16),
    "CAMELLIA_128_CBC": Bulk("cbc", "Camellia", 16, 16),
    "CAMELLIA_256_CBC": Bulk("cbc", "Camellia", 32, 16),
    "SEED_CBC": Bulk("cbc", "SEED", 16, 16),
    "IDEA_CBC": Bulk("cbc", "IDEA", 16, 8),
    "3DES_EDE_CBC": Bulk("cbc", "TripleDES", 24, 8),
    "DES_CBC": Bulk("cbc", "DES", 8, 8),
    "DES40_CBC": Bulk("cbc", "DES", 8, 8, export_bytes=5),
    "DES_CBC_40": Bulk("cbc", "DES", 8, 8, export_bytes=5),
    "RC2_CBC_40": Bulk("cbc", "RC2", 16, 8, export_bytes=5),
    "RC4_128": Bulk("rc4", "ARC4", 16),
    "RC4_40": Bulk("rc4", "ARC4", 16, export_bytes=5),
    "NULL": Bulk("null", "", 0),
}

_HASHES = {
    "SHA384": "sha384",
    "SHA256": "sha256",
    "SHA": "sha1",
    "MD5": "md5",
    "SM3": "sm3",
}


@dataclass(frozen=True, slots=True)
class Suite:
    """A cipher suite taken apart."""

    number: int
    name: str
    exchange: str
    """``RSA``, ``DHE_RSA``, ``ECDHE_ECDSA``, ``PSK`` …; empty for TLS 1.3 suites and unknown ones."""
    cipher: str
    """As in the name: ``AES_128_GCM``."""
    bulk: Bulk | None
    """None when netdiag cannot decrypt it (ARIA, Camellia-GCM, SM4-CCM, GOST, unknown numbers)."""
    hash_name: str
    """hashlib's name of the hash in the suite's name: the MAC's for CBC and stream ciphers, the PRF's (HKDF's) for AEAD."""

    @property
    def mac_hash(self) -> str | None:
        """Hash of the record MAC; None for AEAD suites, which have none."""
        return None if self.bulk is None or self.bulk.aead else self.hash_name

    @property
    def prf_hash(self) -> str:
        """Hash of the TLS 1.2 PRF (RFC 5246 section 5: at least SHA-256) or of TLS 1.3's HKDF."""
        return self.hash_name if self.hash_name in ("sha384", "sm3") else "sha256"


@lru_cache(maxsize=512)
def suite_of(number: int) -> Suite:
    """The suite behind a number; one that nobody knows has no bulk cipher."""
    name = suite_name(number)
    exchange, found, rest = name.removeprefix("TLS_").partition("_WITH_")
    if not found:
        exchange, rest = "", name.removeprefix("TLS_")
    cipher, hash_name = _split_hash(rest)
    bulk = _BULKS.get(cipher)
    return Suite(number, name, exchange, cipher, bulk, hash_name)


def _split_hash(rest: str) -> tuple[str, str]:
    """``AES_128_GCM_SHA256`` -> cipher and hash; the CCM suites of RFC 6655 name no hash and use SHA-256."""
    cipher, _, last = rest.rpartition("_")
    if last in _HASHES:
        return cipher, _HASHES[last]
    return rest, "sha256"
