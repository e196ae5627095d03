"""What counts as a failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netdiag.records.exchange import Outcome
from netdiag.records.stream import EventKind
from tests.support.analyses import streamed
from tests.support.fabricated import exchange

NO_FAILURE = {Outcome.OK, Outcome.UNKNOWN, Outcome.INCOMPLETE, Outcome.SUPERSEDED}


@pytest.mark.parametrize("outcome", Outcome)
def test_what_a_capture_does_not_show_is_no_failure(outcome: Outcome) -> None:
    assert outcome.failed == (outcome not in NO_FAILURE)
    assert exchange("wait 1", outcome=outcome).failed == outcome.failed


def test_a_stream_that_ends_with_an_error_failed_whatever_its_status() -> None:
    one = streamed().exchanges[0]
    assert one.stream is not None
    assert not one.failed
    told = replace(one.stream.timeline[-1], kind=EventKind.ERROR)
    broken = replace(one, stream=replace(one.stream, timeline=(*one.stream.timeline[:-1], told)))
    assert broken.stream is not None
    assert broken.stream.tells_an_error
    assert broken.failed
