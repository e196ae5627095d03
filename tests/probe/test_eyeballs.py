"""Happy Eyeballs on loopback: refused at once, black holes, both families."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Iterator

import pytest

from netdiag.probe.clock import ProbeClock
from netdiag.probe.eyeballs import interleave, race
from tests.support.probing import open_descriptors


@pytest.fixture
def port() -> Iterator[int]:
    """A listening port on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.fixture
def black_hole() -> Iterator[tuple[str, int]]:
    """An address that answers no SYN: its accept queue is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.77", 0))
        server.listen(0)
        address = server.getsockname()
        fillers = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(address)
            fillers.append(filler)
        time.sleep(0.05)
        yield address
        for filler in fillers:
            filler.close()


def test_families_take_turns_and_keep_their_order() -> None:
    assert interleave(["::1", "::2", "::3", "10.0.0.1", "10.0.0.2"]) == ["::1", "10.0.0.1", "::2", "10.0.0.2", "::3"]
    assert interleave(["10.0.0.1", "::1"]) == ["10.0.0.1", "::1"]
    assert interleave([]) == []


def test_a_refused_address_starts_the_next_at_once(port: int) -> None:
    result = race(["::1", "127.0.0.1"], port, clock=ProbeClock(), timeout_s=5)
    assert result.winner is not None
    result.winner.close()
    refused, connected = result.attempts
    assert (refused.address, refused.outcome) == ("::1", "refused")
    assert (connected.address, connected.outcome) == ("127.0.0.1", "connected")
    assert connected.started_at - refused.started_at < 100_000_000


def test_a_host_without_ipv6_goes_on_with_ipv4(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ipv6.disable=1``: the kernel makes no socket of that family, whatever addresses a name has."""
    make = socket.socket

    def without_ipv6(family: int, kind: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return make(family, kind)

    monkeypatch.setattr("netdiag.probe.eyeballs.socket.socket", without_ipv6)
    result = race(["2001:db8::1", "127.0.0.1"], port, clock=ProbeClock(), timeout_s=5)
    monkeypatch.undo()
    assert result.winner is not None
    result.winner.close()
    assert [(a.address, a.outcome) for a in result.attempts] == [
        ("2001:db8::1", "unreachable"),
        ("127.0.0.1", "connected"),
    ]


def test_a_black_hole_costs_250_ms(black_hole: tuple[str, int]) -> None:
    address, port = black_hole
    with socket.create_server(("127.0.0.1", port)):
        result = race([address, "127.0.0.1"], port, clock=ProbeClock(), timeout_s=5)
    assert result.winner is not None
    result.winner.close()
    outcomes = {attempt.address: attempt for attempt in result.attempts}
    assert outcomes[address].outcome == "abandoned"
    assert outcomes["127.0.0.1"].outcome == "connected"
    delay_ns = outcomes["127.0.0.1"].started_at - outcomes[address].started_at
    assert 240_000_000 < delay_ns < 400_000_000


def test_nobody_answers(black_hole: tuple[str, int]) -> None:
    address, port = black_hole
    began_s = time.monotonic()
    result = race([address], port, clock=ProbeClock(), timeout_s=0.3)
    assert time.monotonic() - began_s < 1.0
    assert result.winner is None
    assert [attempt.outcome for attempt in result.attempts] == ["timeout"]


def test_everything_refused_leaves_nothing_open() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        before = open_descriptors()
        result = race(["127.0.0.1", "127.0.0.2", "::1"], port, clock=ProbeClock(), timeout_s=2)
    assert result.winner is None
    assert {attempt.outcome for attempt in result.attempts} == {"refused"}
    assert open_descriptors() == before - 1
