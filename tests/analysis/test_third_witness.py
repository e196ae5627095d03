"""What the server says of its times beside what was measured."""

from __future__ import annotations

from netdiag.analysis.third_witness import server_report
from netdiag.records.server_report import ServerTime
from tests.support.fabricated import ns
from tests.support.turns import whole


def test_no_report_is_none() -> None:
    assert server_report(whole(0, sent=10, response_headers=(("content-type", "text/plain"),))) is None


def test_times_of_head_and_content_stand_together() -> None:
    turn = whole(0, sent=10, wait=100, response_headers=(("openai-processing-ms", "80"), ("x-request-id", "r1")))
    turn.reported_times = (ServerTime("queue", ns(20), "usage.queue_time"),)
    report = server_report(turn)
    assert report is not None
    assert [(t.name, t.ns, t.source) for t in report.times] == [
        ("processing", ns(80), "openai-processing-ms"),
        ("queue", ns(20), "usage.queue_time"),
    ]
    assert (report.request_id, report.conflicts) == ("r1", ())


def test_a_claim_longer_than_the_wire_saw_is_contradicted() -> None:
    report = server_report(whole(0, sent=10, wait=100, response_headers=(("openai-processing-ms", "5000"),)))
    assert report is not None
    assert report.conflicts == (
        "openai-processing-ms claims 5.00 s, but from the request to the response head only 100.0 ms passed",
    )
    assert report.times[0].ns == ns(5000)


def test_a_claim_is_given_the_millisecond_that_it_was_rounded_to() -> None:
    turn = whole(0, sent=10, wait=100, response_headers=(("openai-processing-ms", "101"),))
    report = server_report(turn)
    assert report is not None
    assert report.conflicts == ()
