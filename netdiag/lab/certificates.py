"""A throw-away certificate authority and the chains it issues: made in milliseconds, valid for days, good for nothing outside a lab."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
VALID_DAYS = 7
# Private arm reserved for documentation (RFC 9371 section 2.2): no implementation acts on it, so its octets are pure ballast.
_BALLAST = ObjectIdentifier("1.3.6.1.4.1.32473.1")
_ENTRY_BYTES = 5
"""Octets that TLS 1.3 adds to each certificate of the message (RFC 8446 section 4.4.2)."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A server's certificate with its issuers (leaf first, root left out) and its private key, both as PEM."""

    chain: bytes
    key: bytes = field(repr=False)
    chain_bytes: int = 0
    """Octets of DER in the chain, which is what the server sends."""


class Authority:
    """A root certificate and its key, which never leaves memory."""

    def __init__(self, name: str = "netdiag lab root, trust only in tests") -> None:
        """A new root on P-256: key generation takes well under a millisecond."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _common_name(name)
        self.certificate = _build(self._name, self._name, self._key.public_key(), self._key, path_length=2)

    @property
    def pem(self) -> bytes:
        """The root certificate, for a client's trust store."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, names: Sequence[str] = LOOPBACK_NAMES, *, chain_bytes: int = 0) -> Leaf:
        """A leaf for DNS names and IP addresses.

        With ``chain_bytes`` the chain gets two intermediates and ballast, so that the certificates the server sends come to that many
        octets (never below what the chain needs): large flights cost round trips (RFC 6928 section 1).
        """
        key = ec.generate_private_key(ec.SECP256R1())
        issuer_name, issuer_key, intermediates = self._name, self._key, list[x509.Certificate]()
        if chain_bytes:
            issuer_name, issuer_key, intermediates = self._intermediates()
        alternative = x509.SubjectAlternativeName([_general_name(n) for n in names])
        leaf = _build(_common_name(names[0]), issuer_name, key.public_key(), issuer_key, alternative=alternative)
        missing = chain_bytes - sum(_der_bytes(c) for c in (leaf, *intermediates))
        if missing > 0:
            leaf = _build(
                _common_name(names[0]),
                issuer_name,
                key.public_key(),
                issuer_key,
                alternative=alternative,
                ballast_bytes=missing,
            )
        chain = [leaf, *intermediates]
        pem = b"".join(c.public_bytes(serialization.Encoding.PEM) for c in chain)
        return Leaf(pem, _key_pem(key), sum(_der_bytes(c) for c in chain))

    def _intermediates(self) -> tuple[x509.Name, ec.EllipticCurvePrivateKey, list[x509.Certificate]]:
        chain: list[x509.Certificate] = []
        name, key = self._name, self._key
        for path_length in (1, 0):
            next_name = _common_name(f"netdiag lab intermediate {2 - path_length}")
            next_key = ec.generate_private_key(ec.SECP256R1())
            chain.insert(0, _build(next_name, name, next_key.public_key(), key, path_length=path_length))
            name, key = next_name, next_key
        return name, key, chain


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


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _build(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    path_length: int | None = None,
    alternative: x509.SubjectAlternativeName | None = None,
    ballast_bytes: int = 0,
) -> x509.Certificate:
    """Sign a certificate: an authority when ``path_length`` is given, a server's leaf otherwise."""
    now = datetime.datetime.now(datetime.UTC)
    is_authority = path_length is not None
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=path_length), critical=True)
        .add_extension(_usage(is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if alternative is not None:
        builder = builder.add_extension(alternative, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    if ballast_bytes:
        builder = builder.add_extension(x509.UnrecognizedExtension(_BALLAST, os.urandom(ballast_bytes)), critical=False)
    return builder.sign(signer, hashes.SHA256())


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
