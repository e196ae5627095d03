"""Resolution: overrides as curl's, literals, failures, and a resolver that hangs."""

from __future__ import annotations

import socket
import time

import pytest

from netdiag.errors import UsageError
from netdiag.probe.clock import ProbeClock
from netdiag.probe.failures import ResolveFailed
from netdiag.probe.resolver import Resolver


def test_given_addresses_need_no_question() -> None:
    resolver = Resolver(ProbeClock(), ["llm.example:443:10.1.2.3,[2001:db8::1]", "*:8443:10.9.9.9"])
    resolved = resolver.resolve("LLM.example", 443, timeout_s=1)
    assert resolved.addresses == ("10.1.2.3", "2001:db8::1")
    assert resolved.span is None
    assert resolved.source == "given"
    assert resolver.resolve("anything.example", 8443, timeout_s=1).addresses == ("10.9.9.9",)


def test_literals() -> None:
    resolver = Resolver(ProbeClock())
    assert resolver.resolve("192.0.2.7", 443, timeout_s=1).addresses == ("192.0.2.7",)
    assert resolver.resolve("[2001:DB8::7]", 443, timeout_s=1).addresses == ("2001:db8::7",)


def test_the_system_is_asked_and_stamped() -> None:
    clock = ProbeClock()
    before = clock.now()
    resolved = Resolver(clock).resolve("localhost", 80, timeout_s=5)
    assert "127.0.0.1" in resolved.addresses
    assert resolved.span is not None
    assert resolved.source == "hosts"
    assert before <= resolved.span.started_at <= resolved.span.ended_at <= clock.now()


def test_hosts_file_is_known_beforehand() -> None:
    assert "127.0.0.1" in Resolver(ProbeClock()).without_asking("localhost", 80)
    assert Resolver(ProbeClock()).without_asking("not-in-hosts.invalid", 80) == ()


def test_failure_keeps_its_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object, **_options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(ResolveFailed, match="nowhere") as caught:
        Resolver(ProbeClock()).resolve("nowhere.example", 80, timeout_s=1)
    assert caught.value.span is not None


def test_a_hanging_resolver_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: time.sleep(1.0) or [])
    began_s = time.monotonic()
    with pytest.raises(ResolveFailed, match="no answer from the resolver"):
        Resolver(ProbeClock()).resolve("slow.example", 80, timeout_s=0.1)
    assert time.monotonic() - began_s < 0.6


@pytest.mark.parametrize("text", ["host", "host:443", "host:x:10.0.0.1", "host:443:not-an-address", ":443:10.0.0.1"])
def test_bad_overrides(text: str) -> None:
    with pytest.raises(UsageError, match="--resolve"):
        Resolver(ProbeClock(), [text])
