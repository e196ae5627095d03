"""What one HTTP/2 connection had agreed on, and when."""

from __future__ import annotations

from netdiag.protocols.conversation import CLIENT, SERVER, Http2Facts, SettingsMoment
from netdiag.wire.chunk import Moment

MAX_CONCURRENT_STREAMS = 3


def settings(sender: int, at: int, **values: int) -> SettingsMoment:
    numbers = {int(name[1:]): value for name, value in values.items()}
    return SettingsMoment(sender=sender, values=numbers, moment=Moment(at, at, None))


FACTS = Http2Facts(settings=[settings(CLIENT, 5, s3=7), settings(SERVER, 10, s4=1), settings(SERVER, 20, s3=100)])


def test_the_first_settings_of_each_side() -> None:
    first = FACTS.first_settings(SERVER)
    assert first is not None
    assert first.moment.seen_at == 10
    assert Http2Facts().first_settings(CLIENT) is None


def test_the_servers_limit_holds_from_when_it_was_announced() -> None:
    assert [FACTS.concurrency_limit(at) for at in (5, 19, 20, 99)] == [None, None, 100, 100]


def test_the_last_announcement_counts() -> None:
    facts = Http2Facts(settings=[*FACTS.settings, settings(SERVER, 30, s3=1), settings(SERVER, 40, s1=0)])
    assert facts.concurrency_limit(50) == 1
