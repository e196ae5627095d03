"""The network's own word that a server cannot be reached."""

from __future__ import annotations

import struct

import pytest

from netdiag.analysis.only_by_icmp import OnlyByIcmp
from netdiag.analysis.unreachable import ends_an_attempt, reason, unreachable
from netdiag.wire.connections import group
from netdiag.wire.decode import decode
from netdiag.wire.icmp import IcmpError
from tests.support.conversation import Conversation
from tests.support.packets import SYN, Timed, ethernet, ipv4, ipv6, window_of


def about(frame: bytes, kind: int, code: int, *, version: int = 4) -> bytes:
    """An ICMP error that quotes the packet in an Ethernet frame."""
    message = struct.pack(">BBHI", kind, code, 0, 0) + frame[14:]
    if version == 6:
        return ethernet(ipv6(message, source="2001:db8::fe", destination="2001:db8::1", next_header=58))
    return ethernet(ipv4(message, source="10.0.0.254", destination="10.0.0.1", protocol=1))


def error(kind: int, code: int, *, version: int = 4) -> IcmpError:
    ends = {"client": ("2001:db8::1", 40000), "server": ("2001:db8::2", 443)} if version == 6 else {}
    talk = Conversation(**ends)  # type: ignore[arg-type]
    talk.packet(0, flags=SYN)
    (found,) = decode(window_of([(talk.at_ns, about(talk.frames[0][1], kind, code, version=version))])).icmp
    return found


@pytest.mark.parametrize(
    ("version", "kind", "code", "words", "ends"),
    [
        (4, 3, 1, "host unreachable", True),
        (4, 3, 13, "communication administratively prohibited", True),
        (4, 11, 0, "ICMP type 11 code 0", True),
        (4, 3, 4, "ICMP type 3 code 4", False),  # fragmentation needed: a smaller packet gets there
        (6, 1, 0, "no route to destination", True),
        (6, 2, 0, "ICMPv6 type 2 code 0", False),  # packet too big
    ],
)
def test_what_an_error_says_and_whether_it_ends_an_attempt(
    version: int, kind: int, code: int, words: str, ends: bool
) -> None:
    one = error(kind, code, version=version)
    assert (reason(one), ends_an_attempt(one)) == (words, ends)


def test_an_error_belongs_to_the_connection_that_had_begun() -> None:
    first = Conversation()
    first.packet(0, flags=SYN)
    again = Conversation(isns=(900_000, 1), at_ns=first.at_ns + 10**9)
    again.packet(0, flags=SYN)
    frames: list[Timed] = [*first.frames, (first.at_ns + 1, about(first.frames[0][1], 3, 1)), *again.frames]
    window = window_of(frames)
    decoded = decode(window)
    found = unreachable(group(decoded.packets, window.buffer), decoded.icmp)
    assert {connection: one.packet for connection, one in found.items()} == {0: 2}


def test_no_errors_no_connections() -> None:
    window = window_of(Conversation().opens().frames)
    grouped = group(decode(window).packets, window.buffer)
    assert unreachable(grouped, []) == {}


def test_a_connection_of_which_only_errors_tell() -> None:
    """Of its own packets none was captured: the capture was taken behind a filter, or on another interface."""
    seen, unseen = Conversation(), Conversation(client=("10.0.0.1", 41000))
    seen.packet(0, flags=SYN)
    unseen.packet(0, flags=SYN)
    quotes = [(seen.at_ns + i, about(talk.frames[0][1], 3, 1)) for i, talk in enumerate((seen, unseen, unseen), 1)]
    window = window_of([*seen.frames, *quotes])
    decoded = decode(window)
    only = OnlyByIcmp(decoded.icmp)
    only.saw(group(decoded.packets, window.buffer))
    (connection,) = only.connections(window.buffer, first_id=7)
    assert connection.id == 7
    assert (str(connection.client), str(connection.server)) == ("10.0.0.1:41000", "10.0.0.2:443")
    assert (connection.close_reason, connection.first_packet, connection.last_packet) == ("unreachable", 3, 4)
    assert connection.sides.client.packets == 0
