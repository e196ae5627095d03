"""A scenario with a real server: on loopback (tier T1), or in namespaces with the emulated path and a name server (tier T2).

What the modelled hosts of T0 know to the nanosecond is known here from the server's own log (kernel stamps where it has them) and, on T2, from
the link's log of every frame. So losses, queues and repairs are in the truth as they really were, not as the settings would have them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netdiag.errors import UsageError
from netdiag.lab.builder.http_request import body_of, header_pairs
from netdiag.lab.emulator import LinkRow
from netdiag.lab.link_truth import LinkedConnection, by_client_port
from netdiag.lab.namespaces import SERVER_IPV4, SERVER_IPV6
from netdiag.lab.scenario import Request, Scenario
from netdiag.lab.server import LabServer
from netdiag.lab.testbed import HOST, Testbed
from netdiag.lab.truth import ServedExchange, TruthLog

_SAME_LOOKUP_NS = 20_000_000
"""The next name of a search list is asked for sooner than this after the answer before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTruth:
    """One exchange as it should look at the client; None for what this scenario does not determine."""

    served: ServedExchange
    dns_ns: int | None = None
    tcp_ns: int | None = None
    tls_ns: int | None = None
    """On T2, from the link's log; TLS 1.3 only."""
    wait_ns: int | None = None
    transfer_ns: int | None = None

    def phases(self) -> dict[str, int]:
        """What is known, by phase."""
        known = {
            "dns": self.dns_ns,
            "tcp": self.tcp_ns,
            "tls": self.tls_ns,
            "wait": self.wait_ns,
            "transfer": self.transfer_ns,
        }
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a client needs to make the scenario's request."""

    url: str
    ca_file: str | None
    """None on clear text."""
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    protocol: str
    """``h2`` or ``http/1.1``."""
    run: Callable[[Sequence[str]], bytes] | None
    """Runs a program on the client's side of the path and returns its standard output; None on loopback."""


Client = Callable[[Target], Any]


def on_tier(tier: str, scenario: Scenario, client: Client) -> tuple[Any, list[LiveTruth]]:
    """``T1`` or ``T2``. Raises UsageError for another tier, PrivilegeMissing where namespaces cannot be made."""
    if tier not in ("T1", "T2"):
        raise UsageError(f"tier {tier!r} has no real server: it is none of T1, T2")
    return on_loopback(scenario, client) if tier == "T1" else on_testbed(scenario, client)


def on_loopback(scenario: Scenario, client: Client) -> tuple[Any, list[LiveTruth]]:
    """Tier T1: serve the scenario, let the client make its calls; returns what the client returned, and the truth."""
    with LabServer(scenario.server) as server:
        result = client(_target(scenario, server.url, server.ca_file, None))
        return result, _truths(server.log.settle(), [])


def on_testbed(scenario: Scenario, client: Client) -> tuple[Any, list[LiveTruth]]:
    """Tier T2. Raises PrivilegeMissing where namespaces cannot be made."""
    done = run_on_testbed(scenario, client)
    return done.result, done.truths


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedRun:
    """A scenario on tier T2, and everybody's log of it."""

    result: Any
    """What the client returned."""
    truths: list[LiveTruth]
    link: list[LinkRow]
    dns: list[dict[str, Any]]
    """The name server's."""


def run_on_testbed(scenario: Scenario, client: Client) -> TestbedRun:
    """As ``on_testbed``, with the logs of link and name server. Raises PrivilegeMissing where namespaces cannot be made."""
    with Testbed(path=scenario.path, server=scenario.server, zone=_zone(scenario)) as bed:
        bed.resolver_options(_resolver_options(scenario))

        def run(command: Sequence[str]) -> bytes:
            return bed.run(command, timeout_s=120.0).stdout

        result = client(_target(scenario, bed.url, bed.server.ca_file, run))
        log = bed.server.log.settle()
    return TestbedRun(result=result, truths=_truths(log, bed.link_rows), link=bed.link_rows, dns=bed.dns_rows)


def _target(scenario: Scenario, url: str, ca_file: str, run: Callable[[Sequence[str]], bytes] | None) -> Target:
    """The first request of the scenario: a probe repeats one call."""
    plan = scenario.connections[0]
    request = plan.requests[0]
    return Target(
        url=url + request.path,
        ca_file=ca_file if scenario.server.tls else None,
        method=request.method,
        headers=_headers(request),
        body=body_of(request),
        protocol=plan.protocol,
        run=run,
    )


def _headers(request: Request) -> tuple[tuple[str, str], ...]:
    """The scenario's own fields and knobs; what a client says of itself is its own affair."""
    return tuple((name, value) for name, value in header_pairs(request) if name not in ("user-agent", "accept"))


# --- truth ---------------------------------------------------------------------------------------------------------


def _truths(log: TruthLog, link: Sequence[LinkRow]) -> list[LiveTruth]:
    linked = by_client_port(link)
    return [_truth(served, log, linked.get(_port(served)), link) for served in log.exchanges()]


def _port(served: ServedExchange) -> int:
    return int(served.client.rpartition(":")[2] or 0)


def _truth(
    served: ServedExchange, log: TruthLog, linked: LinkedConnection | None, link: Sequence[LinkRow]
) -> LiveTruth:
    first = served.request == 0
    if linked is None:
        return LiveTruth(
            served=served, wait_ns=served.wait_ns, transfer_ns=_between(served.headers_at, served.response_last_at)
        )
    head_at = _deliverable(linked, served.headers_end_offset)
    return LiveTruth(
        served=served,
        dns_ns=_dns_ns(link, linked) if first else None,
        tcp_ns=linked.connect_ns if first else None,
        tls_ns=_tls_ns(log, served.connection, linked) if first else None,
        wait_ns=_between(_sent(linked, served.request_last_at), head_at),
        transfer_ns=_between(head_at, _deliverable(linked, served.response_end_offset)),
    )


def _sent(linked: LinkedConnection, received_at: int | None) -> int | None:
    """When the client first sent the last of what the server had by an instant."""
    end = None if received_at is None else linked.up.end_of_what_came_by(received_at)
    return None if end is None else linked.up.first_sent_at(end - 1)


def _deliverable(linked: LinkedConnection, end_offset: int | None) -> int | None:
    return None if end_offset is None else linked.down.deliverable_at(end_offset)


def _tls_ns(log: TruthLog, connection: int, linked: LinkedConnection) -> int | None:
    """ClientHello to the client's Finished, the first that it sends once the server's flight is complete. None before TLS 1.3, whose
    handshake ends with the server's Finished."""
    done = log.of("tls-done", connection=connection)
    if not done or done[0].facts["version"] != "TLSv1.3":
        return None
    flights = log.of("server-flight", connection=connection)
    complete_at = _deliverable(linked, sum(row.facts["size_bytes"] for row in flights))
    if complete_at is None:
        return None
    answered = [row.arrived_at for _, row in linked.up.rows if row.arrived_at >= complete_at]
    return _between(linked.up.first_sent_at(0), min(answered, default=None))


def _dns_ns(link: Iterable[LinkRow], linked: LinkedConnection) -> int | None:
    """First question to last answer of the last lookup before the connection's SYN."""
    opened = linked.up.syn_at
    if opened is None:
        return None
    earlier = [row.arrived_at for row in link if row.kind == "syn" and row.arrived_at < opened]
    since = max(earlier, default=0)
    lookup = _last_lookup([row for row in link if row.kind == "dns" and since < row.arrived_at < opened])
    asked = [row.arrived_at for row in lookup if row.direction == "up"]
    told = [row.left_at for row in lookup if row.direction == "down" and row.left_at is not None]
    return max(told) - min(asked) if asked and told else None


def _last_lookup(datagrams: Sequence[LinkRow]) -> list[LinkRow]:
    """The probe looks the name up before its trials, too: a lookup begins when nothing was asked or answered for a while."""
    lookup: list[LinkRow] = []
    unanswered = 0
    quiet_since = 0
    for row in sorted(datagrams, key=lambda row: row.arrived_at):
        if row.direction == "up":
            if not unanswered and row.arrived_at - quiet_since > _SAME_LOOKUP_NS:
                lookup = []
            unanswered += 1
        elif row.left_at is not None:
            unanswered -= 1
            quiet_since = row.left_at
        lookup.append(row)
    return lookup


def _between(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start


def _zone(scenario: Scenario) -> Mapping[str, Mapping[str, Any]]:
    """The scenario's treatment of its server's name, for the testbed's name and address; its resolver's round trip is a delay there."""
    how = scenario.zone.get(scenario.hosts.name)
    addresses = {"AAAA": [SERVER_IPV6]} if scenario.ip_version == 6 else {"A": [SERVER_IPV4]}
    told = {} if how is None else dataclasses.asdict(how)
    far_ms = scenario.resolver.rtt_ms if scenario.resolver is not None else 0.0
    delays = {kind: far_ms + told.get("delay_ms", {}).get(kind, 0.0) for kind in ("A", "AAAA")}
    lost = len(scenario.resolver.drop_queries) if scenario.resolver is not None else 0
    silent = dict.fromkeys(("A", "AAAA"), lost) if lost else told.get("silent", {})
    return {HOST: {**told, "addresses": addresses, "delay_ms": delays, "silent": silent}}


def _resolver_options(scenario: Scenario) -> str:
    """resolv.conf(5); the name has one dot, and search suffixes come before it only when more are asked for."""
    resolver = scenario.resolver
    if resolver is None:
        return ""
    search = f"search {' '.join(resolver.search)}\noptions ndots:3\n" if resolver.search else ""
    return f"{search}options timeout:{max(1, round(resolver.timeout_ms / 1e3))} attempts:{resolver.attempts}"
