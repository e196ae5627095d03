"""Hello parsers: what is there is read, hostile lengths end a message and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.tls.client_hello import client_hello, ssl2_client_hello
from netdiag.protocols.tls.handshake import certificates, encrypted_extensions, key_exchange_group
from netdiag.protocols.tls.server_hello import draft_hello_retry_request, server_hello
from tests.support.hello_bytes import vector


def test_server_key_exchange_groups() -> None:
    assert key_exchange_group(b"\x03\x00\x1drest", "ECDHE_RSA") == 0x1D
    assert key_exchange_group(b"\x01explicit", "ECDHE_RSA") is None
    assert key_exchange_group(vector(b"hint") + b"\x03\x00\x17", "ECDHE_PSK") == 0x17
    assert key_exchange_group(vector(b"\x7f" + bytes(127)), "DHE_RSA") == "dh-1023"
    assert key_exchange_group(vector(b"\x7f" + bytes(127))[:50], "DHE_RSA") is None
    assert key_exchange_group(b"", "RSA") is None


def test_certificates_of_both_kinds() -> None:
    chain = [b"leaf", b"issuer"]
    old = vector(b"".join(vector(c, 3) for c in chain), 3)
    new = vector(b"", 1) + vector(b"".join(vector(c, 3) + vector(b"ext") for c in chain), 3)
    assert certificates(old, version=0x0303) == chain
    assert certificates(new, version=0x0304) == chain
    assert certificates(old[:-1], version=0x0303) == chain[:1]
    assert certificates(b"", version=0x0304) == []


@given(st.binary(max_size=300), st.sampled_from([0x0303, 0x0304, 0x7F13]))
def test_any_octets_in_every_other_parser(data: bytes, version: int) -> None:
    for read in (client_hello, server_hello, draft_hello_retry_request, ssl2_client_hello):
        hello = read(version.to_bytes(2, "big") + data)
        assert hello is None or len(hello.random) == 32
    assert all(isinstance(one, bytes) for one in certificates(data, version=version))
    assert isinstance(encrypted_extensions(data), dict)
    for exchange in ("ECDHE_RSA", "DHE_RSA", "ECDHE_PSK", "RSA", ""):
        group = key_exchange_group(data, exchange)
        assert group is None or isinstance(group, int | str)
