"""Every quantity of one exchange by name."""

from __future__ import annotations

from netdiag.stats.durations import durations_ns
from tests.support.analyses import streamed
from tests.support.fabricated import exchange, ns


def test_phases_and_what_they_leave() -> None:
    found = durations_ns(exchange("dns 10 | tcp 20 | tls 30 | - 5 | send 1 | wait 40 | transfer 7"))
    assert found == {
        "dns": ns(10),
        "tcp": ns(20),
        "tls": ns(30),
        "send": ns(1),
        "wait": ns(40),
        "transfer": ns(7),
        "total": ns(113),
        "unattributed": ns(5),
        "first_byte": ns(106),
    }


def test_a_phase_that_comes_twice_is_summed() -> None:
    """100 (Continue) lies between."""
    assert durations_ns(exchange("send 1 | wait 10 | send 2 | wait 20 | transfer 1"))["wait"] == ns(30)


def test_an_exchange_without_an_answer_has_no_first_byte() -> None:
    assert "first_byte" not in durations_ns(exchange("send 1 | wait 40"))


def test_first_times_of_a_stream_count_from_the_beginning_of_the_exchange() -> None:
    one = streamed().exchanges[0]
    assert one.stream is not None
    assert one.stream.first_event_ns is not None
    sent = next(phase for phase in one.phases if phase.name == "send").started_at
    assert durations_ns(one)["first_event"] == sent - one.started_at + one.stream.first_event_ns
