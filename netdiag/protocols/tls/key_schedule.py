"""From logged secrets to record keys: SSL 3.0 (RFC 6101), TLS 1.0-1.2 (RFC 2246, RFC 5246), TLS 1.3 (RFC 8446 section 7)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache

from netdiag.protocols.tls.names import SSL3, TLS12
from netdiag.protocols.tls.suites import Suite


def expand_label(secret: bytes, label: bytes, length: int, hash_name: str, *, prefix: bytes = b"tls13 ") -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446 section 7.1)."""
    info = _info(prefix + label, length)
    block = output = hmac.digest(secret, info + b"\1", hash_name)  # mostly that is enough
    counter = 2
    while len(output) < length:
        block = hmac.digest(secret, block + info + bytes((counter,)), hash_name)
        output += block
        counter += 1
    return output[:length]


def traffic_key(secret: bytes, key_bytes: int, hash_name: str, *, prefix: bytes = b"tls13 ") -> tuple[bytes, bytes]:
    """Key and IV under a traffic secret (RFC 8446 section 7.3)."""
    # No cipher has a longer key than the hash is: one block of HKDF-Expand each.
    key = hmac.digest(secret, _first_block(prefix, b"key", key_bytes), hash_name)[:key_bytes]
    return key, hmac.digest(secret, _first_block(prefix, b"iv", _IV_BYTES), hash_name)[:_IV_BYTES]


_IV_BYTES = 12


@lru_cache(maxsize=64)
def _first_block(prefix: bytes, label: bytes, length: int) -> bytes:
    return _info(prefix + label, length) + b"\1"


@lru_cache(maxsize=64)
def _info(label: bytes, length: int) -> bytes:
    """HkdfLabel with an empty context."""
    return length.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0"


def next_secret(secret: bytes, hash_name: str, *, prefix: bytes = b"tls13 ") -> bytes:
    """The traffic secret after a KeyUpdate (RFC 8446 section 7.2)."""
    return expand_label(secret, b"traffic upd", len(secret), hash_name, prefix=prefix)


def prf(version: int, hash_name: str, secret: bytes, label: bytes, seed: bytes, length: int) -> bytes:
    """The PRF of TLS 1.2 (RFC 5246 section 5); of TLS 1.0 and 1.1 (RFC 2246 section 5), where MD5 and SHA-1 each take half of the secret."""
    if version >= TLS12:
        return _p_hash(hash_name, secret, label + seed, length)
    half = (len(secret) + 1) // 2
    md5 = _p_hash("md5", secret[:half], label + seed, length)
    sha1 = _p_hash("sha1", secret[len(secret) - half :], label + seed, length)
    return bytes(a ^ b for a, b in zip(md5, sha1, strict=True))


def _p_hash(hash_name: str, secret: bytes, seed: bytes, length: int) -> bytes:
    output = b""
    a = seed
    while len(output) < length:
        a = hmac.digest(secret, a, hash_name)
        output += hmac.digest(secret, a + seed, hash_name)
    return output[:length]


def ssl3_expand(secret: bytes, seed: bytes, length: int) -> bytes:
    """RFC 6101 section 6.2.2: MD5(secret + SHA('A' + secret + seed)) + MD5(secret + SHA('BB' + …)) …"""
    output = b""
    for i in range(1, 27):
        if len(output) >= length:
            break
        salt = bytes((0x40 + i,)) * i
        output += _md5(secret + _sha1(salt + secret + seed))
    return output[:length]


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def master_secret(
    premaster: bytes,
    *,
    version: int,
    hash_name: str,
    client_random: bytes,
    server_random: bytes,
    transcript: bytes | None,
) -> bytes:
    """Master secret of a pre-master secret. ``transcript`` is the handshake up to the ClientKeyExchange where the extended master secret was
    negotiated (RFC 7627 section 4), else None.
    """
    if version == SSL3:
        return ssl3_expand(premaster, client_random + server_random, 48)
    if transcript is None:
        return prf(version, hash_name, premaster, b"master secret", client_random + server_random, 48)
    session_hash = _session_hash(version, hash_name, transcript)
    return prf(version, hash_name, premaster, b"extended master secret", session_hash, 48)


def _session_hash(version: int, hash_name: str, transcript: bytes) -> bytes:
    """RFC 7627 section 3."""
    if version >= TLS12:
        return hashlib.new(hash_name, transcript).digest()
    return _md5(transcript) + _sha1(transcript)


@dataclass(frozen=True, slots=True)
class WriteKeys:
    """Keys of one direction of TLS 1.2 and before."""

    mac_key: bytes
    key: bytes
    iv: bytes


def key_block(
    master: bytes, suite: Suite, *, version: int, client_random: bytes, server_random: bytes
) -> tuple[WriteKeys, WriteKeys]:
    """Client's and server's write keys (RFC 5246 section 6.3; RFC 6101 section 6.2.2 for SSL 3.0)."""
    bulk = suite.bulk
    assert bulk is not None
    mac_bytes = hashlib.new(suite.mac_hash, usedforsecurity=False).digest_size if suite.mac_hash else 0
    key_bytes = bulk.export_bytes or bulk.key_bytes
    iv_bytes = {"gcm": 4, "ccm": 4, "chacha": 12}.get(bulk.mode, 0 if bulk.export_bytes else bulk.block_bytes)
    seed = server_random + client_random
    length = 2 * (mac_bytes + key_bytes + iv_bytes)
    block = _expand_keys(version, suite, master, seed, length)
    parts = []
    at = 0
    for size in (mac_bytes, key_bytes, iv_bytes):
        parts.append((block[at : at + size], block[at + size : at + 2 * size]))
        at += 2 * size
    client, server = (WriteKeys(*(part[side] for part in parts)) for side in (0, 1))
    if bulk.export_bytes:
        return _exported(client, server, suite, version, client_random, server_random)
    return client, server


def _expand_keys(version: int, suite: Suite, master: bytes, seed: bytes, length: int) -> bytes:
    if version == SSL3:
        return ssl3_expand(master, seed, length)
    return prf(version, suite.prf_hash, master, b"key expansion", seed, length)


def _exported(
    client: WriteKeys, server: WriteKeys, suite: Suite, version: int, client_random: bytes, server_random: bytes
) -> tuple[WriteKeys, WriteKeys]:
    """Final keys and IVs of export ciphers (RFC 2246 section 6.3.1, RFC 6101 section 6.2.2.1)."""
    bulk = suite.bulk
    assert bulk is not None
    seed = client_random + server_random
    if version == SSL3:
        keys = (_md5(client.key + seed), _md5(server.key + server_random + client_random))
        ivs = _md5(seed)[: bulk.block_bytes], _md5(server_random + client_random)[: bulk.block_bytes]
    else:
        keys = (
            prf(version, suite.prf_hash, client.key, b"client write key", seed, bulk.key_bytes),
            prf(version, suite.prf_hash, server.key, b"server write key", seed, bulk.key_bytes),
        )
        block = prf(version, suite.prf_hash, b"", b"IV block", seed, 2 * bulk.block_bytes)
        ivs = block[: bulk.block_bytes], block[bulk.block_bytes :]
    return (
        WriteKeys(client.mac_key, keys[0][: bulk.key_bytes], ivs[0]),
        WriteKeys(server.mac_key, keys[1][: bulk.key_bytes], ivs[1]),
    )
