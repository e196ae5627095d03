"""By what a request tells which attempt of a call it is."""

from __future__ import annotations

import pytest

from netdiag.protocols.retry_marks import COUNT, KEYS, bears_mark


@pytest.mark.parametrize("name", [COUNT, *KEYS])
def test_any_mark_may_tell(name: str) -> None:
    assert bears_mark([("accept", "*/*"), (name, "")])


def test_other_fields_tell_nothing() -> None:
    assert not bears_mark([("accept", "*/*"), ("x-request-id", "7")])
    assert not bears_mark([])
