"""netdiag against the truth of conversations that nobody wrote down: two implementations that share no line must agree to the nanosecond."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from netdiag import api
from netdiag.lab.compare import errors, sum_is_total
from netdiag.lab.score import run
from tests.support.scenarios import AT_LENGTH, QUICK, SCENARIOS, scenario_of


def assert_exact(document: dict[str, Any]) -> None:
    done = run(scenario_of(document), api.analyze)
    wrong = [e for e in errors(done.recorded.truth, done.analysis) if e.error_ns != 0]
    assert wrong == []
    assert sum_is_total(done.analysis) == []


@QUICK
@given(document=SCENARIOS)
def test_every_phase_of_a_drawn_conversation(document: dict[str, Any]) -> None:
    assert_exact(document)


@pytest.mark.slow
@AT_LENGTH
@given(document=SCENARIOS)
def test_every_phase_of_many_drawn_conversations(document: dict[str, Any]) -> None:
    assert_exact(document)
