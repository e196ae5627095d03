"""Key derivation against published vectors."""

from __future__ import annotations

import hashlib

from netdiag.protocols.tls.key_schedule import expand_label, master_secret, next_secret, prf, ssl3_expand
from netdiag.protocols.tls.names import SSL3, TLS10, TLS12

SERVER_HANDSHAKE = bytes.fromhex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")
CLIENT_HANDSHAKE = bytes.fromhex("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21")
SERVER_APPLICATION = bytes.fromhex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643")


def test_traffic_keys_of_rfc_8448_section_3() -> None:
    derived = [
        (expand_label(secret, b"key", 16, "sha256").hex(), expand_label(secret, b"iv", 12, "sha256").hex())
        for secret in (SERVER_HANDSHAKE, CLIENT_HANDSHAKE, SERVER_APPLICATION)
    ]
    assert derived == [
        ("3fce516009c21727d0f2e4e86ee403bc", "5d313eb2671276ee13000b30"),
        ("dbfaa693d1762c5b666af5d950258d01", "5bd3c71b836e0b76bb73265f"),
        ("9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984"),
    ]


def test_finished_key_of_rfc_8448_section_3() -> None:
    assert expand_label(SERVER_HANDSHAKE, b"finished", 32, "sha256").hex() == (
        "008d3b66f816ea559f96b537e885c31fc068bf492c652f01f288a1d8cdc19fc8"
    )


def test_key_update_is_one_more_expansion() -> None:
    assert next_secret(SERVER_APPLICATION, "sha256") == expand_label(SERVER_APPLICATION, b"traffic upd", 32, "sha256")


def test_tls12_prf_with_sha256() -> None:
    """The vector that the TLS working group's list published for P_SHA256."""
    secret = bytes.fromhex("9bbe436ba940f017b17652849a71db35")
    seed = bytes.fromhex("a0ba9f936cda311827a6f796ffd5198c")
    assert prf(TLS12, "sha256", secret, b"test label", seed, 100).hex() == (
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17"
        "abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66"
    )


def test_tls10_prf_splits_the_secret() -> None:
    """An odd secret shares its middle octet between MD5 and SHA-1 (RFC 2246 section 5)."""
    odd = prf(TLS10, "sha256", b"abc", b"l", b"s", 40)
    assert len(odd) == 40
    assert odd != prf(TLS10, "sha256", b"abcc", b"l", b"s", 40)
    # RFC 2246: PRF = P_MD5(S1) XOR P_SHA-1(S2); with S1 and S2 both of "bc" halves shared, checked by hand for the first octets.
    import hmac

    a_md5 = hmac.digest(b"ab", b"ls", "md5")
    a_sha = hmac.digest(b"bc", b"ls", "sha1")
    first = hmac.digest(b"ab", a_md5 + b"ls", "md5")[:16]
    second = hmac.digest(b"bc", a_sha + b"ls", "sha1")[:16]
    assert odd[:16] == bytes(x ^ y for x, y in zip(first, second, strict=True))


def test_ssl3_expansion() -> None:
    secret, seed = bytes(48), bytes(64)
    inner = hashlib.sha1(b"A" + secret + seed, usedforsecurity=False).digest()
    first = hashlib.md5(secret + inner, usedforsecurity=False).digest()
    assert ssl3_expand(secret, seed, 16) == first
    assert len(ssl3_expand(secret, seed, 104)) == 104


def test_extended_master_secret_depends_on_the_transcript() -> None:
    def master(transcript: bytes | None, version: int = TLS12) -> bytes:
        return master_secret(
            bytes(48),
            version=version,
            hash_name="sha256",
            client_random=bytes(32),
            server_random=bytes(32),
            transcript=transcript,
        )

    assert len({master(None), master(b"a"), master(b"b"), master(b"a", TLS10), master(None, SSL3)}) == 5
    assert all(len(master(t)) == 48 for t in (None, b"a"))
