"""The ServerHello and the HelloRetryRequest."""

from __future__ import annotations

from netdiag.protocols.tls.server_hello import HELLO_RETRY_RANDOM, draft_hello_retry_request, server_hello
from tests.support.hello_bytes import RANDOM, extension, server_octets, vector


def test_server_hello_and_hello_retry_request() -> None:
    body = server_octets(
        extension(43, b"\x03\x04"), extension(51, b"\x11\xec" + vector(bytes(32))), extension(41, b"\0\0")
    )
    hello = server_hello(body)
    assert hello is not None
    assert (hello.version, hello.suite, hello.group, hello.selected_psk, hello.retry) == (
        0x0304,
        0x1301,
        0x11EC,
        True,
        False,
    )
    retry = server_hello(server_octets(extension(51, b"\0\x17"), random=HELLO_RETRY_RANDOM))
    assert retry is not None
    assert (retry.retry, retry.group) == (True, 0x17)
    assert HELLO_RETRY_RANDOM.hex().startswith("cf21ad74e59a6111be1d8c021e65b891")


def test_draft_hellos_had_neither_session_id_nor_compression() -> None:
    body = b"\x7f\x13" + RANDOM + b"\x13\x02" + vector(extension(40, b"\0\x1d" + vector(bytes(32))))
    hello = server_hello(body)
    assert hello is not None
    assert (hello.version, hello.suite, hello.group, hello.damage) == (0x7F13, 0x1302, 0x1D, None)
    retry = draft_hello_retry_request(b"\x7f\x13\x13\x01" + vector(extension(40, b"\0\x17")))
    assert retry is not None
    assert (retry.retry, retry.suite, retry.group) == (True, 0x1301, 0x17)
    before19 = draft_hello_retry_request(b"\x7f\x12" + vector(extension(40, b"\0\x17")))
    assert before19 is not None
    assert (before19.suite, before19.group) == (None, 0x17)
