"""What the backends share, with a process that only says lines."""

from __future__ import annotations

from typing import Any, cast

import pytest

from netdiag.capture.child import Child
from netdiag.capture.child_backend import ChildBackend, conclusion, failure, last_word, parsed
from netdiag.capture.live import CaptureFailed, Counts
from netdiag.errors import PrivilegeMissing, ToolMissing


class Talker:
    """Stands in for ``Child``: it has said its lines, and has ended when told so."""

    def __init__(self, *lines: str, ended: bool = False) -> None:
        self.lines = list(lines)
        self._ended = ended
        self.stopped = 0

    def wait_for(self, wanted: Any, timeout_s: float) -> str | None:
        return next((line for line in self.lines if wanted(line)), None)

    def ended(self) -> bool:
        return self._ended

    def stop(self, timeout_s: float) -> int:
        self.stopped += 1
        return 0


class Backend(ChildBackend):
    def counts(self, lines: list[str]) -> Counts:
        return Counts(received=len(lines), dropped=0)

    def begin(self, child: Talker) -> None:
        self._begin(cast("Child", child), 1.0)


def test_a_ready_process_is_kept_and_counted_once_when_it_stops() -> None:
    backend, child = Backend(), Talker('{"state": "ready"}', "…")
    backend.begin(child)
    assert backend.trouble() is None
    assert (backend.stop().received, backend.stop().received, child.stopped) == (2, 2, 1)


def test_one_that_is_not_ready_is_stopped_and_says_why() -> None:
    backend, child = Backend(), Talker('{"state": "forbidden", "reason": "not yours"}')
    with pytest.raises(PrivilegeMissing, match="not yours"):
        backend.begin(child)
    assert child.stopped == 1


def test_one_that_has_ended_is_trouble_in_its_own_words() -> None:
    backend = Backend()
    backend.begin(Talker('{"state": "ready"}', "killed", ended=True))
    assert backend.trouble() == "the capture process has ended: killed"


@pytest.mark.parametrize(
    ("state", "kind"), [("forbidden", PrivilegeMissing), ("missing", ToolMissing), ("broken", CaptureFailed)]
)
def test_a_failure_by_its_state(state: str, kind: type[Exception]) -> None:
    assert type(failure({"state": state}, ["line"])) is kind


@pytest.mark.parametrize("line", [None, "", "no json", "[1]", "3"])
def test_what_is_no_object_says_nothing(line: str | None) -> None:
    assert parsed(line) == {}


def test_the_conclusion_is_the_last_that_says_done() -> None:
    assert conclusion(['{"state": "done", "received": 1}', '{"state": "done", "received": 2}', "x"])["received"] == 2
    assert conclusion([]) == {}


def test_silence_has_words_too() -> None:
    assert last_word([]) == "no word from the capture process"
