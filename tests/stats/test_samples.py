"""Samples from an analysis and from its JSON document are the same; predictions count round trips; labels are checked on the wire."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from netdiag.export.json import dumps
from netdiag.records.analysis import Analysis
from netdiag.stats.distribution import statistics
from netdiag.stats.labels import mislabelled
from netdiag.stats.prediction import predict
from netdiag.stats.samples import Sample, samples_of, samples_of_document
from tests.support.fabricated import analysis, connection, exchange, ns


def probe(arm: str = "h1", **fields: object) -> Analysis:
    rows = [
        replace(exchange("tcp 18.3 | tls 20 | send 0.1 | wait 60 | transfer 1", id=i), arm=arm, trial=i, **fields)
        for i in range(4)
    ]
    whole = analysis(exchanges=rows, connections=(connection(),))
    return replace(whole, statistics=statistics(rows))


def test_the_document_tells_the_same_as_the_records():
    whole = probe()
    from_records, from_document = samples_of(whole), samples_of_document(json.loads(dumps(whole)))
    assert len(from_records) == 3  # round 0 does not count
    for a, b in zip(from_records, from_document, strict=True):
        assert (a.arm, a.trial, a.rtt_ns, a.round_trips) == (b.arm, b.trial, b.rtt_ns, b.round_trips)
        assert {k: v for k, v in a.durations_ns.items() if k != "first_byte"} == dict(b.durations_ns)


@pytest.mark.parametrize("document", [{}, {"statistics": [], "connections": [], "exchanges": [{}]}])
def test_what_is_no_document_is_refused(document):
    with pytest.raises(KeyError):
        samples_of_document(document)


def sample(rtt_ms: float, trips: int | None, *quantities: str, dns_ms: float | None = None) -> Sample:
    durations = dict.fromkeys((*quantities, "total"), 1) | ({} if dns_ms is None else {"dns": ns(dns_ms)})
    return Sample(arm="a", trial=1, durations_ns=durations, rtt_ns=ns(rtt_ms), round_trips=trips)


def test_a_warm_call_saves_two_round_trips_and_the_lookup():
    cold, warm = [sample(40, 3, "tcp", "tls", "wait", dns_ms=12)] * 3, [sample(40, 1, "wait")] * 3
    prediction = predict("total", cold, warm)
    assert prediction is not None
    assert prediction.difference_ns == ns(40) - ns(132)
    assert "3 × 40.0 ms" in prediction.by


def test_tls_1_2_costs_one_round_trip_more():
    prediction = predict("tls", [sample(40, 3, "tls")], [sample(40, 4, "tls")])
    assert prediction is not None
    assert prediction.difference_ns == ns(40)


def test_a_farther_region_adds_its_distance_to_the_wait():
    prediction = predict("wait", [sample(20, 3, "wait")], [sample(90, 3, "wait")])
    assert prediction is not None
    assert prediction.difference_ns == ns(70)


def test_nothing_is_predicted_without_round_trips():
    assert predict("transfer", [sample(20, 3, "transfer")], [sample(20, 3, "transfer")]) is None
    assert predict("total", [sample(20, None)], [sample(20, 3)]) is None


@pytest.mark.parametrize(
    ("arm", "fields", "reason"),
    [
        ("h2", {"protocol": "http/1.1"}, "h2 trial spoke http/1.1"),
        ("h1+warm", {"reused": False}, "warm trial on a new connection"),
        ("api.example.com h1+cold", {"reused": True}, "trial for a new connection on a reused one"),
        ("h1+ipv6", {}, "ipv6 trial over ipv4"),
        ("h1+tls1.2", {}, "tls1.2 trial spoke TLSv1.3"),
        ("h1+warm", {"reused": True}, None),
        ("h1", {}, None),
    ],
)
def test_a_trial_that_is_not_what_its_arm_says_is_named(arm, fields, reason):
    assert mislabelled(replace(exchange("wait 1"), arm=arm, **fields), connection()) == reason


def test_such_a_trial_is_excluded_with_its_reason():
    rows = [replace(exchange("wait 1", id=i), arm="h1+warm", trial=i + 1, reused=i > 0) for i in range(3)]
    (row,) = statistics(rows, (connection(),))
    assert (row.n, [(e.exchange_id, e.reason) for e in row.excluded]) == (2, [(0, "warm trial on a new connection")])
