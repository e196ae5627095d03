"""A scenario: one TOML file that describes a conversation and what is wrong with it, for every tier of the lab.

Everything has a default; an unknown key or an impossible value is a UsageError that names it. ``netdiag/lab/scenarios/*.toml`` are examples.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import ipaddress
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path as FilePath
from typing import Any

from netdiag.errors import UsageError
from netdiag.lab.behaviour import DEFAULT, Behaviour, changed
from netdiag.lab.config import LabConfig
from netdiag.lab.host_settings import (
    CaptureSettings,
    ResolverSettings,
    TcpSettings,
    TlsClientSettings,
    TlsServerSettings,
)
from netdiag.lab.name_server import Name
from netdiag.lab.path import Path
from netdiag.lab.strict import build, checked
from netdiag.lab.tls_server import check as check_tls

TIERS = ("T0", "T1", "T2")
_ADDRESSES = {
    4: {"client": "192.0.2.10", "server": "203.0.113.5", "resolver": "192.0.2.53"},
    6: {"client": "2001:db8::10", "server": "2001:db8:5::5", "resolver": "2001:db8::53"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Who is where (documentation addresses, RFC 5737 and RFC 3849)."""

    client: str
    server: str
    resolver: str
    name: str = "api.example.test"
    """The server's name, for SNI, authority and certificate."""
    port: int = 443
    silent: Sequence[str] = ()
    """Addresses where nobody is: a SYN to them is never answered."""
    refusing: Sequence[str] = ()
    """Addresses that answer a SYN with RST."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of a connection."""

    method: str = "POST"
    path: str = "/v1/chat/completions"
    headers: Sequence[str] = ()
    """``name: value``."""
    body_bytes: int = 200
    """0 for none; the body is JSON, padded to this size."""
    body_ms: float = 0.0
    """The body is written evenly over this time, in ``body_pieces``."""
    body_pieces: int = 1
    expect_continue: bool = False
    at_ms: float | None = None
    """When it starts, counted from the moment the connection is ready; requests with it do not wait for earlier ones on HTTP/2."""
    think_ms: float = 0.0
    """Without ``at_ms``: after the previous answer has ended."""
    cancel_ms: float | None = None
    """The client gives up this long after its last octet (RST_STREAM, or the connection's end on HTTP/1)."""
    read_pause_after: int | None = None
    """The client stops reading after so many octets of body, for ``read_pause_ms``: its window fills."""
    read_pause_ms: float = 0.0
    answer: Behaviour = DEFAULT
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """``answer`` as the scenario spells it, for the request's ``x-lab`` head field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPlan:
    """One connection of the client."""

    protocol: str = "http/1.1"
    """``http/1.1`` or ``h2``; what ALPN is to choose."""
    opens_at_ms: float = 0.0
    after: int | None = None
    """Opens when the connection of this number (from 0) has ended, ``opens_at_ms`` later."""
    addresses: Sequence[str] = ()
    """Tried in this order; empty: what the name resolves to, or the server's address."""
    race_ms: float | None = None
    """Happy Eyeballs (RFC 8305): start the next address after this long; None: only when the previous has failed."""
    connect_timeout_ms: float | None = None
    timeout_ms: float | None = None
    """The client gives up the whole connection this long after it began to connect."""
    resolve: bool = True
    """Look the name up first, where the scenario has a resolver."""
    port: int | None = None
    """The client's port."""
    stays_ms: float = 0.0
    """The client keeps the connection open this long after the last answer."""
    wait_for_settings: bool = False
    """HTTP/2: no second request before the server's SETTINGS has come (as httpcore)."""
    window_bytes: int | None = None
    """HTTP/2: the client's initial window for answers."""
    requests: tuple[Request, ...] = (Request(),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything about one conversation."""

    name: str
    title: str
    shows: str = ""
    """What a reader should see in it."""
    seed: int = 1
    tiers: Sequence[str] = ("T0",)
    ip_version: int = 4
    hosts: Hosts
    server: LabConfig = field(default_factory=LabConfig)
    path: Path = field(default_factory=Path)
    client_tcp: TcpSettings = field(default_factory=TcpSettings)
    server_tcp: TcpSettings = field(default_factory=TcpSettings)
    client_tls: TlsClientSettings = field(default_factory=TlsClientSettings)
    server_tls: TlsServerSettings = field(default_factory=TlsServerSettings)
    resolver: ResolverSettings | None = None
    zone: Mapping[str, Name] = field(default_factory=dict)
    connections: tuple[ConnectionPlan, ...] = (ConnectionPlan(),)
    capture: CaptureSettings = field(default_factory=CaptureSettings)
    cause: str | None = None
    """The knob that injects this scenario's cause, as ``path.rtt_ms`` or ``answer.wait_ms``: what a sweep varies."""
    cause_phase: str | None = None
    """The phase in which its milliseconds should be found."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """As it was written, so that variations can be made from it."""


def load(path: str | FilePath) -> Scenario:
    """Read a file, or one of the bundled scenarios by name. Raises UsageError."""
    file = FilePath(path)
    if not file.suffix and not file.exists():
        return bundled(str(path))
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the scenario: {error.strerror}", path=str(path)) from None
    return parse(text, name=file.stem)


def bundled_names() -> list[str]:
    """Names of the scenarios that come with netdiag, sorted."""
    folder = resources.files("netdiag.lab") / "scenarios"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def bundled_text(name: str) -> str:
    """A bundled scenario as it is written. Raises UsageError with the names there are."""
    names = bundled_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.6) or [one for one in names if name in one][:3]
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(f"there is no scenario {name!r}", advice=f"{hint}All of them: netdiag lab list")
    return (resources.files("netdiag.lab") / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")


def bundled(name: str) -> Scenario:
    """A bundled scenario. Raises UsageError."""
    return parse(bundled_text(name), name=name)


def parse(text: str, *, name: str = "scenario") -> Scenario:
    """From TOML text. Raises UsageError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the scenario is no TOML: {error}", path=name) from None
    return from_mapping(document, name=name)


def from_mapping(document: Mapping[str, Any], *, name: str = "scenario") -> Scenario:
    """From a parsed document. Raises UsageError that begins with the scenario's name."""
    try:
        scenario = _scenario(dict(document), name)
        return dataclasses.replace(scenario, document=document)
    except UsageError as error:
        raise UsageError(error.message, path=name, advice=error.advice) from None


def varied(scenario: Scenario, changes: Mapping[str, Any]) -> Scenario:
    """The same scenario with knobs set by their dotted names (``path.rtt_ms``, ``answer.wait_ms``). Raises UsageError."""
    document = copy.deepcopy(dict(scenario.document))
    for name, value in changes.items():
        *tables, key = name.split(".")
        table = document
        for part in tables:
            table = table.setdefault(part, {})
        table[key] = value
    return from_mapping(document, name=scenario.name)


def knob(scenario: Scenario, name: str) -> Any:
    """A knob as the scenario sets it; None where it leaves it alone."""
    table: Any = scenario.document
    for part in name.split("."):
        table = table.get(part) if isinstance(table, Mapping) else None
    return table


_TABLES = ("hosts", "server", "answer", "path", "tcp", "tls", "dns", "connection", "capture")
_PLAIN = ("title", "shows", "seed", "tiers", "ip_version", "cause", "cause_phase")


def _scenario(document: dict[str, Any], name: str) -> Scenario:
    tables = {key: document.pop(key) for key in _TABLES if key in document}
    unknown = [key for key in document if key not in _PLAIN]
    if unknown:
        known = ", ".join(sorted((*_TABLES, *_PLAIN)))
        raise UsageError(f"unknown key {unknown[0]!r}", advice=f"known: {known}")
    plain = checked(Scenario, document, "scenario", without=("document",))
    _check_plain(plain)
    base = changed(DEFAULT, tables.get("answer", {}), where="answer")
    hosts = _hosts(tables.get("hosts", {}), plain.get("ip_version", 4))
    tls = _pair(tables.get("tls", {}), "tls", TlsClientSettings, TlsServerSettings)
    tcp = _pair(tables.get("tcp", {}), "tcp", TcpSettings, TcpSettings)
    resolver, zone = _dns(tables.get("dns"), hosts)
    return Scenario(
        name=name,
        **{"title": name, **plain},
        hosts=hosts,
        server=_server(tables.get("server", {}), base, hosts, plain.get("seed", 1)),
        path=Path.from_mapping({"seed": plain.get("seed", 1), **tables.get("path", {})}),
        client_tcp=tcp[0],
        server_tcp=tcp[1],
        client_tls=tls[0],
        server_tls=tls[1],
        resolver=resolver,
        zone=zone,
        connections=_connections(tables.get("connection"), base),
        capture=build(CaptureSettings, tables.get("capture", {}), "capture"),
    )


def _check_plain(plain: Mapping[str, Any]) -> None:
    if plain.get("ip_version", 4) not in _ADDRESSES:
        raise UsageError(f"ip_version must be 4 or 6, not {plain['ip_version']}")
    for tier in plain.get("tiers", ()):
        if tier not in TIERS:
            raise UsageError(f"tiers: {tier!r} is none of {', '.join(TIERS)}")


def _hosts(values: Mapping[str, Any], ip_version: int) -> Hosts:
    hosts = Hosts(**{**_ADDRESSES[ip_version], **checked(Hosts, values, "hosts")})
    for address in (hosts.client, hosts.server, hosts.resolver, *hosts.silent, *hosts.refusing):
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise UsageError(f"hosts: {address!r} is no IP address") from None
    if not 0 < hosts.port < 65536:
        raise UsageError(f"hosts: port {hosts.port} is not between 1 and 65535")
    return hosts


def _server(values: Mapping[str, Any], base: Behaviour, hosts: Hosts, seed: int) -> LabConfig:
    config = build(LabConfig, values, "server", without=("behaviour", "host", "port", "names", "keylog", "seed"))
    check_tls(config)
    names = dict.fromkeys((hosts.name, "localhost", "127.0.0.1", "::1", hosts.server))
    return dataclasses.replace(config, behaviour=base, names=tuple(names), seed=seed)


def _pair(values: Mapping[str, Any], where: str, client: type[Any], server: type[Any]) -> tuple[Any, Any]:
    unknown = [key for key in values if key not in ("client", "server")]
    if unknown:
        raise UsageError(f"{where}: unknown key {unknown[0]!r}", advice="known: client, server")
    sides = (("client", client), ("server", server))
    first, second = (build(kind, values.get(side, {}), f"{where}.{side}") for side, kind in sides)
    return first, second


def _dns(values: Mapping[str, Any] | None, hosts: Hosts) -> tuple[ResolverSettings | None, dict[str, Name]]:
    if values is None:
        return None, {}
    rest = dict(values)
    names = rest.pop("names", {})
    settings = build(ResolverSettings, rest, "dns")
    zone = {name: Name.from_mapping(name, how) for name, how in names.items()}
    if hosts.name not in zone:
        kind = "AAAA" if ":" in hosts.server else "A"
        zone[hosts.name] = Name(addresses={kind: (hosts.server,)})
    return settings, zone


def _connections(values: Any, base: Behaviour) -> tuple[ConnectionPlan, ...]:
    if values is None:
        return (ConnectionPlan(requests=(Request(answer=base),)),)
    if not isinstance(values, list) or not values:
        raise UsageError("connection must be one or more [[connection]] tables")
    plans = tuple(_connection(v, i, base) for i, v in enumerate(values))
    for i, plan in enumerate(plans):
        if plan.after is not None and plan.after >= i:
            raise UsageError(f"connection {i}: after must name an earlier connection, not {plan.after}")
    return plans


def _connection(values: Mapping[str, Any], index: int, base: Behaviour) -> ConnectionPlan:
    where = f"connection {index}"
    rest = dict(values)
    requests = rest.pop("request", [{}])
    plan = build(ConnectionPlan, rest, where, without=("requests",))
    if plan.protocol not in ("h2", "http/1.1"):
        raise UsageError(f"{where}: protocol must be h2 or http/1.1, not {plan.protocol!r}")
    made = tuple(_request(r, f"{where}, request {i}", base) for i, r in enumerate(requests))
    return dataclasses.replace(plan, requests=made)


def _request(values: Mapping[str, Any], where: str, base: Behaviour) -> Request:
    rest = dict(values)
    knobs = rest.pop("answer", {})
    request = build(Request, rest, where, without=("knobs", "answer"))
    for header in request.headers:
        if ":" not in header:
            raise UsageError(f"{where}: header {header!r} is not NAME: VALUE")
    if request.body_pieces < 1:
        raise UsageError(f"{where}: body_pieces must be at least 1")
    return dataclasses.replace(request, answer=changed(base, knobs, where=f"{where}, answer"), knobs=knobs)
