"""A scenario with a real server: on loopback (tier T1), or in namespaces with the emulated path and a name server (tier T2).

What the modelled hosts of T0 know to the nanosecond is known here from the server's own log and the path's settings, so the truth of a phase is
an expectation with the machine's scheduling in it: hold medians to it, not single values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netdiag.lab.namespaces import SERVER_IPV4
from netdiag.lab.scenario import Scenario
from netdiag.lab.server import LabServer
from netdiag.lab.testbed import HOST, Testbed
from netdiag.lab.truth import ServedExchange


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTruth:
    """One exchange as it should look at the client; None for what this scenario does not determine."""

    served: ServedExchange
    dns_ns: int | None
    tcp_ns: int | None
    wait_ns: int | None
    transfer_ns: int | None

    def phases(self) -> dict[str, int]:
        """What is known, by phase."""
        known = {"dns": self.dns_ns, "tcp": self.tcp_ns, "wait": self.wait_ns, "transfer": self.transfer_ns}
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a client needs to make the scenario's request."""

    url: str
    ca_file: str
    method: str
    headers: tuple[tuple[str, str], ...]
    run: Callable[[Sequence[str]], bytes] | None
    """Runs a program on the client's side of the path and returns its standard output; None on loopback."""


Client = Callable[[Target], Any]


def on_loopback(scenario: Scenario, client: Client) -> tuple[Any, list[LiveTruth]]:
    """Tier T1: serve the scenario, let the client make its calls; returns what the client returned, and the truth."""
    with LabServer(scenario.server) as server:
        result = client(_target(scenario, server.url, server.ca_file, None))
        served = server.log.settle().exchanges()
    return result, [_truth(s, rtt_ns=0, dns_ns=None) for s in served]


def on_testbed(scenario: Scenario, client: Client) -> tuple[Any, list[LiveTruth]]:
    """Tier T2. Raises PrivilegeMissing where namespaces cannot be made."""
    with Testbed(path=scenario.path, server=scenario.server, zone=_zone(scenario)) as bed:

        def run(command: Sequence[str]) -> bytes:
            return bed.run(command, timeout_s=120.0).stdout

        result = client(_target(scenario, bed.url, bed.server.ca_file, run))
        served = bed.server.log.settle().exchanges()
    return result, [_truth(s, rtt_ns=_rtt_ns(scenario), dns_ns=_dns_ns(scenario)) for s in served]


def _target(scenario: Scenario, url: str, ca_file: str, run: Callable[[Sequence[str]], bytes] | None) -> Target:
    """The first request of the scenario: a probe repeats one call."""
    request = scenario.connections[0].requests[0]
    headers = [tuple(part.strip() for part in line.split(":", 1)) for line in request.headers]
    return Target(
        url=url + request.path,
        ca_file=ca_file,
        method=request.method,
        headers=tuple((h[0], h[1]) for h in headers),
        run=run,
    )


def _truth(served: ServedExchange, *, rtt_ns: int, dns_ns: int | None) -> LiveTruth:
    transfer = None
    if served.response_last_at is not None and served.headers_at is not None:
        transfer = served.response_last_at - served.headers_at
    return LiveTruth(
        served=served,
        dns_ns=dns_ns,
        tcp_ns=rtt_ns or None,
        wait_ns=None if served.wait_ns is None else served.wait_ns + rtt_ns,
        transfer_ns=transfer,
    )


def _rtt_ns(scenario: Scenario) -> int:
    return round((scenario.path.up.delay_ms + scenario.path.down.delay_ms) * 1e6)


def _dns_ns(scenario: Scenario) -> int | None:
    """The testbed's name server is behind the same path; the slower of the two questions decides."""
    delays = [delay for name in scenario.zone.values() for delay in name.delay_ms.values()]
    return _rtt_ns(scenario) + round(max(delays, default=0.0) * 1e6)


def _zone(scenario: Scenario) -> Mapping[str, Mapping[str, Any]]:
    """The scenario's treatment of its server's name, for the testbed's name and address."""
    how = scenario.zone.get(scenario.hosts.name)
    if how is None:
        return {HOST: {"addresses": {"A": [SERVER_IPV4]}}}
    return {HOST: {**dataclasses.asdict(how), "addresses": {"A": [SERVER_IPV4]}}}
