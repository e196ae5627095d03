"""What counts as a failure."""

from __future__ import annotations

import pytest

from netdiag.records.exchange import Outcome
from tests.support.fabricated import exchange

NO_FAILURE = {Outcome.OK, Outcome.UNKNOWN, Outcome.INCOMPLETE, Outcome.SUPERSEDED}


@pytest.mark.parametrize("outcome", Outcome)
def test_what_a_capture_does_not_show_is_no_failure(outcome: Outcome) -> None:
    assert outcome.failed == (outcome not in NO_FAILURE)
    assert exchange("wait 1", outcome=outcome).failed == outcome.failed
