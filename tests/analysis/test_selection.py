from __future__ import annotations

from dataclasses import replace

import pytest

from netdiag.analysis.selection import Filter, select
from netdiag.records.analysis import Analysis
from netdiag.records.anomaly import Anomaly
from netdiag.records.endpoint import Endpoint
from tests.support.fabricated import T0, analysis, connection, exchange, ns, resolution, session


@pytest.fixture
def two_hosts() -> Analysis:
    """Two connections to two servers, one request on each, a second apart."""
    other = replace(connection(1), server=Endpoint("198.51.100.9", 8443), tls=session(sni="b.example.com"))
    other = replace(other, first_at=T0 + ns(1000), last_at=T0 + ns(1300))
    return analysis(
        exchange("tcp 18.3 | tls 38.2 | send 0.2 | wait 100 | transfer 1", authority="a.example.com"),
        exchange(
            "tcp 18.3 | tls 38.2 | send 0.2 | wait 100 | transfer 1",
            at_ms=1000,
            connection_id=1,
            authority="b.example.com",
        ),
        connections=(replace(connection(0), tls=session(sni="a.example.com")), other),
        resolutions=(resolution(name="a.example.com"), resolution(name="b.example.com", connection_id=1)),
        anomalies=(Anomaly(protocol="tcp", reason="x", connection_id=0), Anomaly(protocol="file", reason="y")),
    )


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        (Filter(), [0, 1]),
        (Filter(hosts=("b.example.com",)), [1]),
        (Filter(hosts=("B.EXAMPLE.*",)), [1]),
        (Filter(hosts=("198.51.100.9",)), [1]),
        (Filter(hosts=("a.example.com", "b.example.com")), [0, 1]),
        (Filter(ports=(443,)), [0]),
        (Filter(ports=(51532,)), [0]),
        (Filter(server_names=("*.example.com",)), [0, 1]),
        (Filter(connections=(1,)), [1]),
        (Filter(from_at=T0 + ns(900)), [1]),
        (Filter(until_at=T0 + ns(500)), [0]),
        (Filter(from_at=T0 + ns(50), until_at=T0 + ns(60)), [0]),
        (Filter(from_at=T0 + ns(400), until_at=T0 + ns(900)), []),
        (Filter(hosts=("a.example.com",), ports=(8443,)), []),
    ],
)
def test_what_stays(two_hosts: Analysis, chosen: Filter, ids: list[int]) -> None:
    part = select(two_hosts, chosen)
    assert [e.id for e in part.exchanges] == ids
    assert [c.id for c in part.connections] == ids


def test_what_belongs_to_it_stays_with_it(two_hosts: Analysis) -> None:
    part = select(two_hosts, Filter(connections=(1,)))
    assert [r.name for r in part.resolutions] == ["b.example.com"]
    assert [a.protocol for a in part.anomalies] == ["file"]


def test_statistics_of_the_whole_are_not_those_of_a_part(two_hosts: Analysis) -> None:
    part = select(two_hosts, Filter(ports=(443,)))
    assert part.statistics == ()
    assert part.comparisons == ()


def test_a_coalesced_host_is_found_by_its_requests() -> None:
    shared = analysis(
        exchange("send 1 | wait 1", authority="a.example.com"),
        exchange("send 1 | wait 1", at_ms=5, authority="img.example.com", stream_id=3),
        connections=(replace(connection(0), tls=session(sni="a.example.com")),),
    )
    assert [e.id for e in select(shared, Filter(hosts=("img.example.com",))).exchanges] == [1]


def test_a_request_without_a_connection_is_found_by_its_host() -> None:
    failed = analysis(exchange("dns 8", connection_id=None, authority="gone.example.com"))
    assert len(select(failed, Filter(hosts=("gone.example.com",))).exchanges) == 1
    assert len(select(failed, Filter(hosts=("other.example.com",))).exchanges) == 0
    assert len(select(failed, Filter(ports=(443,))).exchanges) == 0


def test_no_filter_is_no_copy(two_hosts: Analysis) -> None:
    assert select(two_hosts, Filter()) is two_hosts
