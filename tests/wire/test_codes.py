"""What packets that are not decoded are called."""

from __future__ import annotations

import pytest

from netdiag.wire import codes
from netdiag.wire.codes import Inner, link_type_name, name_of


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (codes.LINK_TYPE | 195, "link type IEEE802_15_4_WITHFCS"),
        (codes.LINK_TYPE | 9999, "link type 9999"),
        (codes.LINK_TYPE | codes.UNASSIGNED_LINK_TYPE | 7, "link type snoop data link 7"),
        (codes.ETHERTYPE | 0x0806, "arp"),
        (codes.ETHERTYPE | 0x1234, "ethertype 0x1234"),
        (codes.IP_PROTOCOL | 132, "sctp"),
        (codes.IP_PROTOCOL | 253, "ip protocol 253"),
        (codes.PPP | 0xC021, "lcp"),
        (codes.PPP | 0x0057, "ppp protocol 0x0057"),
        (codes.LLC | 0x42, "spanning tree"),
        (codes.LLC | 0x08, "llc 0x08"),
        (codes.NLPID | 0x83, "nlpid 0x83"),
        (int(Inner.WLAN_ENCRYPTED), "802.11 encrypted"),
        (int(Inner.TEREDO), "teredo"),
    ],
)
def test_name_of(code: int, name: str) -> None:
    assert name_of(code) == name


def test_every_inner_code_has_a_name() -> None:
    assert all(name_of(int(code)) for code in Inner)


def test_spaces_do_not_overlap() -> None:
    spaces = (codes.LINK_TYPE, codes.ETHERTYPE, codes.IP_PROTOCOL, codes.PPP, codes.LLC, codes.NLPID, codes.INNER)
    assert len({space & codes.SPACES for space in spaces}) == len(spaces)


def test_raw_ip_has_one_name_under_all_its_numbers() -> None:
    assert {link_type_name(value) for value in (12, 14, 101)} == {"RAW"}
