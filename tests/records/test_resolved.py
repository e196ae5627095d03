"""Names that came to nothing."""

from __future__ import annotations

import pytest

from netdiag.records.dns import NameResolution
from netdiag.records.resolved import unresolved
from tests.support.fabricated import resolution


def asked(name: str, rcode: str | None = "NXDOMAIN", *addresses: str, type_: str = "A") -> NameResolution:
    return resolution(name=name, type=type_, rcode=rcode, addresses=addresses)


FOUND = asked("api.example.com", "NOERROR", "192.0.2.1")


@pytest.mark.parametrize(
    ("resolutions", "expected"),
    [
        ([], []),
        ([FOUND], []),
        ([asked("api.exmaple.com")], [("api.exmaple.com", "NXDOMAIN")]),
        ([asked("api.example.com", None)], [("api.example.com", "no answer")]),
        ([asked("v6.example.com", "NOERROR", type_="AAAA")], [("v6.example.com", "no address")]),
        ([asked("api.example.com", "NOERROR", type_="AAAA"), FOUND], []),
        ([asked("api.example.com.svc.cluster.local"), FOUND], []),
        ([asked("db.svc.cluster.local"), asked("db")], [("db", "NXDOMAIN")]),
        ([asked("api.example.com", None), asked("api.example.com", "SERVFAIL")], [("api.example.com", "SERVFAIL")]),
        ([asked("1.2.0.192.in-addr.arpa", type_="PTR"), asked("", "REFUSED")], []),
    ],
)
def test_unresolved(resolutions: list[NameResolution], expected: list[tuple[str, str]]) -> None:
    assert unresolved(resolutions) == expected
