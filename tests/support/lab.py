"""Fixtures and helpers around a running lab server."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from netdiag.lab import Behaviour, LabConfig, LabServer

StartLab = Callable[..., LabServer]


def client_for(server: LabServer, protocol: str = "http/1.1", **options: Any) -> httpx.Client:
    """An httpx client that trusts the server and speaks one protocol."""
    is_h2 = protocol == "h2"
    verify: Any = ssl.create_default_context(cafile=server.ca_file) if server.config.tls else True
    return httpx.Client(verify=verify, http1=not is_h2, http2=is_h2, base_url=server.url, trust_env=False, **options)


def eventually(condition: Callable[[], object], seconds: float = 2.0) -> None:
    """Wait for something that another thread is about to make true; fails when it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


@pytest.fixture
def start_lab() -> Iterator[StartLab]:
    """Start servers that stop with the test: ``start_lab(tickets=0, behaviour=Behaviour(wait_ms=50))``."""
    with ExitStack() as stack:

        def start(behaviour: Behaviour | None = None, **settings: Any) -> LabServer:
            config = LabConfig(behaviour=behaviour or Behaviour(), **settings)
            return stack.enter_context(LabServer(config))

        yield start


@pytest.fixture(params=["http/1.1", "h2"])
def protocol(request: pytest.FixtureRequest) -> str:
    """Both protocols, one after the other."""
    return str(request.param)
