"""Live tests need the right to capture, and say so when they have it not."""

from __future__ import annotations

import pytest

from netdiag.capture.privileges import ability
from tests.support.lab import start_lab

__all__ = ["start_lab"]

_ABILITY = ability()


def skip_unless_allowed(name: str) -> None:
    """Skip with the reason that ``netdiag doctor`` gives."""
    recorder = next(r for r in _ABILITY.recorders if r.name == name)
    if not recorder.allowed:
        pytest.skip(f"{name} cannot capture here: {recorder.reason}")


@pytest.fixture(params=["dumpcap", "scapy", "pyshark"])
def backend_name(request: pytest.FixtureRequest) -> str:
    """Every backend that may capture here."""
    skip_unless_allowed(request.param)
    return str(request.param)


@pytest.fixture(params=["dumpcap", "scapy"])
def fast_backend(request: pytest.FixtureRequest) -> str:
    """Those that start at once."""
    skip_unless_allowed(request.param)
    return str(request.param)
