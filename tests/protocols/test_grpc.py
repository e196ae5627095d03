"""Length-prefixed messages however they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.grpc import MessageSplitter, is_grpc, status_of


def message(size: int, flags: int = 0) -> bytes:
    return bytes((flags,)) + size.to_bytes(4, "big") + b"m" * size


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(1, 20))
def test_messages_split_anywhere(sizes: list[int], step: int) -> None:
    octets = b"".join(map(message, sizes))
    splitter = MessageSplitter()
    found = [n for i in range(0, len(octets), step) for n in splitter.feed(octets[i : i + step])]
    assert found == [5 + s for s in sizes]


def test_grpc_web_trailers_are_in_the_body() -> None:
    text = b"grpc-status: 7\r\ngrpc-message: denied\r\n"
    splitter = MessageSplitter()
    octets = message(3) + b"\x80" + len(text).to_bytes(4, "big") + text
    assert [n for i in range(len(octets)) for n in splitter.feed(octets[i : i + 1])] == [8]
    assert status_of(splitter.trailers) == 7


def test_a_message_of_four_gigabytes_is_waited_for_without_memory() -> None:
    splitter = MessageSplitter()
    assert splitter.feed(b"\0\xff\xff\xff\xff" + b"x" * 100_000) == []


def test_status_comes_from_the_first_section_that_has_it() -> None:
    assert status_of((("a", "b"),), (("grpc-status", "0"),)) == 0
    assert status_of((("grpc-status", "x"),), (("grpc-status", "0"),)) is None
    assert status_of(()) is None
    assert is_grpc("application/grpc+proto; x=y")
    assert is_grpc("application/grpc-web+proto")
    assert not is_grpc("application/grpc-web-text")
    assert not is_grpc(None)
