"""A throw-away certificate authority and the chains it issues: made in milliseconds, valid for days, good for nothing outside a lab."""

from __future__ import annotations

import datetime
import ipaddress
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
VALID_DAYS = 7
# Private arm reserved for documentation (RFC 9371 section 2.2): no implementation acts on it, so its octets are pure ballast.
_BALLAST = ObjectIdentifier("1.3.6.1.4.1.32473.1")
_ENTRY_BYTES = 5
"""Octets that TLS 1.3 adds to each certificate of the message (RFC 8446 section 4.4.2)."""


PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class Leaf:
    """A server's certificate with its issuers (leaf first, root left out) and its private key, both as PEM."""

    chain: bytes
    key: bytes = field(repr=False)
    chain_bytes: int = 0
    """Octets of DER in the chain, which is what the server sends."""
    certificates: tuple[bytes, ...] = ()
    """The chain as DER."""
    private_key: PrivateKey | None = field(default=None, repr=False)


class Source(Protocol):
    """Where keys, numbers and dates come from."""

    def key(self) -> PrivateKey:
        """A new private key."""

    def octets(self, count: int) -> bytes:
        """So many octets."""

    def now(self) -> datetime.datetime:
        """The present for the validity."""


class SystemSource:
    """Real randomness, P-256 (which every client accepts), the system's date."""

    def key(self) -> PrivateKey:
        """Takes well under a millisecond."""
        return ec.generate_private_key(ec.SECP256R1())

    def octets(self, count: int) -> bytes:
        """From the operating system."""
        return os.urandom(count)

    def now(self) -> datetime.datetime:
        """The system's clock."""
        return datetime.datetime.now(datetime.UTC)


class SeededSource:
    """The same octets for the same seed: Ed25519, whose signatures have one size and no randomness. Never for a certificate that anyone trusts."""

    def __init__(self, rng: random.Random, now: datetime.datetime) -> None:
        """``now`` dates the certificates."""
        self._rng, self._now = rng, now

    def key(self) -> PrivateKey:
        """From the seed."""
        return ed25519.Ed25519PrivateKey.from_private_bytes(self._rng.randbytes(32))

    def octets(self, count: int) -> bytes:
        """From the seed."""
        return self._rng.randbytes(count)

    def now(self) -> datetime.datetime:
        """As given."""
        return self._now


class Authority:
    """A root certificate and its key, which never leaves memory."""

    def __init__(self, name: str = "netdiag lab root, trust only in tests", *, source: Source | None = None) -> None:
        """A new root."""
        self._source = source or SystemSource()
        self._key = self._source.key()
        self._name = _common_name(name)
        self.certificate = self._build(self._name, self._name, self._key, self._key, path_length=2)

    @property
    def pem(self) -> bytes:
        """The root certificate, for a client's trust store."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, names: Sequence[str] = LOOPBACK_NAMES, *, chain_bytes: int = 0) -> Leaf:
        """A leaf for DNS names and IP addresses.

        With ``chain_bytes`` the chain gets two intermediates and ballast, so that the certificates the server sends come to that many
        octets (never below what the chain needs): large flights cost round trips (RFC 6928 section 1).
        """
        key = self._source.key()
        issuer_name, issuer_key, intermediates = self._name, self._key, list[x509.Certificate]()
        if chain_bytes:
            issuer_name, issuer_key, intermediates = self._intermediates()
        alternative = x509.SubjectAlternativeName([_general_name(n) for n in names])
        leaf = self._build(_common_name(names[0]), issuer_name, key, issuer_key, alternative=alternative)
        missing = chain_bytes - sum(_der_bytes(c) for c in (leaf, *intermediates))
        if missing > 0:
            leaf = self._build(
                _common_name(names[0]),
                issuer_name,
                key,
                issuer_key,
                alternative=alternative,
                ballast_bytes=missing,
            )
        chain = [leaf, *intermediates]
        pem = b"".join(c.public_bytes(serialization.Encoding.PEM) for c in chain)
        der = tuple(c.public_bytes(serialization.Encoding.DER) for c in chain)
        return Leaf(pem, _key_pem(key), sum(_der_bytes(c) for c in chain), der, key)

    def _intermediates(self) -> tuple[x509.Name, PrivateKey, list[x509.Certificate]]:
        chain: list[x509.Certificate] = []
        name, key = self._name, self._key
        for path_length in (1, 0):
            next_name = _common_name(f"netdiag lab intermediate {2 - path_length}")
            next_key = self._source.key()
            chain.insert(0, self._build(next_name, name, next_key, key, path_length=path_length))
            name, key = next_name, next_key
        return name, key, chain

    def _build(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        key: PrivateKey,
        signer: PrivateKey,
        *,
        path_length: int | None = None,
        alternative: x509.SubjectAlternativeName | None = None,
        ballast_bytes: int = 0,
    ) -> x509.Certificate:
        """Sign a certificate: an authority when ``path_length`` is given, a server's leaf otherwise."""
        now, public = self._source.now(), key.public_key()
        is_authority = path_length is not None
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(int.from_bytes(self._source.octets(16), "big") >> 1 | 1 << 126)
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=path_length), critical=True)
            .add_extension(_usage(is_authority), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        )
        if alternative is not None:
            builder = builder.add_extension(alternative, critical=False)
            builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        if ballast_bytes:
            ballast = x509.UnrecognizedExtension(_BALLAST, self._source.octets(ballast_bytes))
            builder = builder.add_extension(ballast, critical=False)
        return builder.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())


def write_private(path: Path, data: bytes) -> Path:
    """Write a file that only its owner can read (0600 from its first octet on); an existing file is an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return path


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _der_bytes(certificate: x509.Certificate) -> int:
    return len(certificate.public_bytes(serialization.Encoding.DER)) + _ENTRY_BYTES


def _key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _usage(is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
