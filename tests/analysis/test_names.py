"""Which datagrams are taken for DNS."""

from __future__ import annotations

import io

import pytest

from netdiag import api
from netdiag.records.analysis import Analysis
from tests.support.dns_bytes import a, answer, message, pointer
from tests.support.packets import pcap, timed, udp_frame


def analysed(*frames: bytes) -> Analysis:
    return api.analyze(io.BytesIO(pcap(timed(frames))))


def asked_and_answered(port: int, ask: bytes, reply: bytes) -> Analysis:
    client, resolver = ("10.0.0.1", 40000), ("10.0.0.53", port)
    return analysed(
        udp_frame(ask, source=client, destination=resolver), udp_frame(reply, source=resolver, destination=client)
    )


ASK = message("www.example.com")
REPLY = answer("www.example.com", a(pointer(12), "192.0.2.7"))


@pytest.mark.parametrize("port", [53, 443, 1053, 8053])
def test_a_resolver_at_any_port_is_heard(port: int) -> None:
    (found,) = asked_and_answered(port, ASK, REPLY).resolutions
    assert (found.name, found.query_packet, found.response_packet) == ("www.example.com", 1, 2)
    assert found.addresses == ("192.0.2.7",)
    assert found.resolver.port == port


@pytest.mark.parametrize("port", [137, 5353, 5355])
def test_the_same_header_in_other_protocols_is_no_resolution(port: int) -> None:
    assert asked_and_answered(port, ASK, REPLY).resolutions == []


@pytest.mark.parametrize(
    "octets",
    [
        ASK[:16],  # no whole question
        ASK[:2] + b"\x28\0" + ASK[4:],  # an update
        ASK[:4] + b"\0\2" + ASK[6:],  # two questions
        ASK[:6] + b"\0\1" + ASK[8:],  # a query with an answer
        ASK[:-2] + b"\0\3",  # of another class
        ASK[:-4] + b"\xfe\x12\0\1",  # of a type that nobody knows
        ASK[:12] + b"\x80" + ASK[13:],  # no name
        REPLY[:-2],  # an answer cut short
        b"\xc0" + bytes(3) + b"\0\1" + bytes(40),
    ],
)
def test_what_may_be_something_else_is_left_alone_at_other_ports(octets: bytes) -> None:
    assert analysed(udp_frame(octets, destination=("10.0.0.2", 4433))).resolutions == []
