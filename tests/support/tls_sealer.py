"""Seals TLS records the way a peer would, written apart from the decoder: for what OpenSSL's Python bindings cannot be made to send."""

from __future__ import annotations

import hashlib
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand


class _Sm4Gcm:
    """RFC 8998, in the shape of the library's AEAD ciphers."""

    def __init__(self, key: bytes) -> None:
        self._algorithm = algorithms.SM4(key)

    def encrypt(self, nonce: bytes, data: bytes, aad: bytes) -> bytes:
        sealer = Cipher(self._algorithm, modes.GCM(nonce)).encryptor()
        sealer.authenticate_additional_data(aad)
        return sealer.update(data) + sealer.finalize() + sealer.tag


_AEADS: dict[str, tuple[Any, int, type[hashes.HashAlgorithm]]] = {
    "TLS_AES_128_GCM_SHA256": (AESGCM, 16, hashes.SHA256),
    "TLS_AES_256_GCM_SHA384": (AESGCM, 32, hashes.SHA384),
    "TLS_CHACHA20_POLY1305_SHA256": (ChaCha20Poly1305, 32, hashes.SHA256),
    "TLS_AES_128_CCM_SHA256": (AESCCM, 16, hashes.SHA256),
    "TLS_SM4_GCM_SM3": (_Sm4Gcm, 16, hashes.SM3),
}


class Sealer13:
    """One direction of TLS 1.3 under one traffic secret (RFC 8446 section 5.2)."""

    def __init__(self, secret: bytes, suite: str, *, sequence: int = 0) -> None:
        self.secret, self.suite, self.sequence = secret, suite, sequence
        cipher, key_bytes, self._hash = _AEADS[suite]
        self._cipher = cipher(self._expand(b"key", key_bytes))
        self._iv = self._expand(b"iv", 12)

    def _expand(self, label: bytes, length: int) -> bytes:
        name = b"tls13 " + label
        info = length.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0"
        return HKDFExpand(self._hash(), length, info).derive(self.secret)

    def seal(self, content: bytes, kind: int = 23, *, padding: int = 0) -> bytes:
        """A record with header."""
        inner = content + bytes([kind]) + bytes(padding)
        header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
        counter = self.sequence.to_bytes(12, "big")
        nonce = bytes(a ^ b for a, b in zip(self._iv, counter, strict=True))
        self.sequence += 1
        return header + self._cipher.encrypt(nonce, inner, header)

    def updated(self) -> Sealer13:
        """The sealer after a KeyUpdate."""
        return Sealer13(self._expand(b"traffic upd", len(self.secret)), self.suite)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


class Ssl3:
    """The record protection of SSL 3.0 (RFC 6101 section 5.2.3), both directions. ``cipher``: ``rc4`` with MD5, ``3des`` or ``aes`` with SHA-1."""

    def __init__(self, master: bytes, client_random: bytes, server_random: bytes, cipher: str) -> None:
        self._hash, mac_bytes, key_bytes, self._block = {
            "rc4": (_md5, 16, 16, 0),
            "3des": (_sha1, 20, 24, 8),
            "aes": (_sha1, 20, 16, 16),
        }[cipher]
        material = b"".join(
            _md5(master + _sha1(bytes([64 + i]) * i + master + server_random + client_random)) for i in range(1, 12)
        )
        sizes = [mac_bytes, mac_bytes, key_bytes, key_bytes, self._block, self._block]
        parts = []
        for size in sizes:
            parts.append(material[:size])
            material = material[size:]
        self._mac_keys = parts[0], parts[1]
        self._sequences = [0, 0]
        self._encryptors = [self._encryptor(cipher, parts[2 + side], parts[4 + side]) for side in (0, 1)]

    @staticmethod
    def _encryptor(cipher: str, key: bytes, iv: bytes) -> Any:
        from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4, TripleDES

        if cipher == "rc4":
            return Cipher(ARC4(key), None).encryptor()
        # SSL 3.0 chains the IV over records, so one CBC stream goes on for ever.
        return Cipher(algorithms.AES(key) if cipher == "aes" else TripleDES(key), modes.CBC(iv)).encryptor()

    def seal(self, side: int, kind: int, content: bytes) -> bytes:
        """A record of client (0) or server (1)."""
        pad = 48 if self._hash is _md5 else 40
        head = self._sequences[side].to_bytes(8, "big") + bytes([kind]) + len(content).to_bytes(2, "big")
        self._sequences[side] += 1
        key = self._mac_keys[side]
        mac = self._hash(key + b"\x5c" * pad + self._hash(key + b"\x36" * pad + head + content))
        plain = content + mac
        if self._block:
            padding = -(len(plain) + 1) % self._block
            plain += b"\xaa" * padding + bytes([padding])
        sealed = self._encryptors[side].update(plain)
        return bytes([kind, 3, 0]) + len(sealed).to_bytes(2, "big") + sealed
