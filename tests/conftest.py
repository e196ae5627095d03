"""Options and fixtures for all tests."""

from __future__ import annotations

import contextlib
import signal

import pytest

from netdiag.probe import pauses
from tests.support.golden import Golden


def pytest_configure() -> None:
    """A shell's background job ignores SIGINT, and so would every program that the tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate",
        action="store_true",
        help="write expected results (golden texts, captures/*.expected.json) anew instead of comparing; review the diff",
    )


@pytest.fixture(scope="session")
def regenerate(request: pytest.FixtureRequest) -> bool:
    """Whether expected results shall be written anew."""
    return bool(request.config.getoption("--regenerate"))


@pytest.fixture
def golden(request: pytest.FixtureRequest, regenerate: bool) -> Golden:
    """Compares text with ``golden/NAME`` beside the test's file."""
    return Golden(request.path.parent / "golden", regenerate=regenerate)


@pytest.fixture(autouse=True)
def without_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause between two calls of a probe keeps them apart on a real network; on loopback it only takes time."""
    monkeypatch.setattr(pauses, "GAP_S", 0.0)
    monkeypatch.setattr(pauses, "GAP_ROUND_TRIPS", 0)
    monkeypatch.setattr(pauses, "UNASKED_PAUSE_S", 0.0)
