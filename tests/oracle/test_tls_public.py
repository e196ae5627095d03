"""TLS of every public capture against what tshark said (truth.jsonl): hellos, choices, Finished, alerts. Prints the agreement per field."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from netdiag.api import analyze
from netdiag.protocols.tls.names import version_name
from netdiag.protocols.tls.suite_names import suite_name
from netdiag.records.connection import Connection
from netdiag.records.tls import TlsSession
from tests.support.agreement import Field, check_agreement
from tests.support.public_captures import epoch_ns, folder, keylog_of
from tests.support.tools import needs_public_captures, public_truth

KNOWN = {
    ("arkime+arkime/arkime_synthetic.pcap", 97, "version"): (
        "made-up ServerHello whose supported_versions is empty: tshark reads the number of the next extension (0x002c) as the version"
    ),
    ("cisco+mercury/afl_data__corner-cases.pcap", 2, "*"): (
        "a lone encrypted Finished whose ciphertext begins with 02 00 00 00, an empty ServerHello for whoever parses it; tshark does"
    ),
}
"""(capture, stream, field or * for all) -> why netdiag says something else than tshark."""

_USED: set[tuple[str, int, str]] = set()

_CLOSE_NS = 1_000


def _version(shown: str | None) -> str | None:
    if shown is None:
        return None
    if "draft 0x" in shown:
        return version_name(int(shown[-6:], 16))
    return shown


def _expected(tls: dict[str, Any], t0: int) -> Iterator[tuple[str, Any]]:
    if "client_hello" in tls:
        yield "sni", tls["sni"]
        yield "alpn_offered", tuple(tls["alpn_offered"])
    yield "version", _version(tls.get("version"))
    yield "cipher", suite_name(int(tls["cipher"], 16)) if "cipher" in tls else None
    yield "hello_retry_request", "hello_retry_request" in tls
    if "alpn" in tls:
        yield "alpn", tls["alpn"]
    for name in ("client_hello", "server_hello"):
        if name in tls:
            yield f"{name}_frame", tls[name]["frame"]
    if "server_hello" in tls:
        yield "server_hello_time", t0 + round(tls["server_hello"]["t"] * 1e9)
    if "client_finished" in tls and "server_finished" in tls:
        yield "decrypted", True
        ended = max(tls[name]["t"] for name in ("client_finished", "server_finished"))
        yield "finished_time", t0 + round(min(ended, _false_start(tls)) * 1e9)
    if tls.get("alerts"):
        yield "alerts", sorted((a["from"], a["desc"]) for a in tls["alerts"])
    if "server_took_psk" in tls and _version(tls.get("version")) == "TLSv1.3":
        yield "resumed", tls["server_took_psk"]


def _false_start(tls: dict[str, Any]) -> float:
    """When the client began to send, which ends its handshake too."""
    first = tls.get("client_first_app_data")
    return max(first["t"], tls["client_finished"]["t"]) if first else float("inf")


_TIMES = {"server_hello_time": "server_hello_at", "finished_time": "finished_at"}


def _found(session: TlsSession, name: str, expected: Any) -> Any:
    if name in _TIMES:
        at = getattr(session, _TIMES[name])
        return expected if at is not None and abs(at - expected) < _CLOSE_NS else at
    if name == "alerts":
        return sorted((a.sender, a.description) for a in session.alerts)
    attribute = {
        "cipher": "cipher_suite",
        "client_hello_frame": "client_hello_packet",
        "server_hello_frame": "server_hello_packet",
    }
    return getattr(session, attribute.get(name, name))


def _session(connections: dict[tuple[Any, ...], list[Connection]], stream: dict[str, Any]) -> TlsSession | None:
    """The session of the connection with this 4-tuple (in either order) whose packets include the hello's frame."""
    ends = tuple(stream["client"]), tuple(stream["server"])
    frames = [stream["tls"][n]["frame"] for n in ("client_hello", "server_hello") if n in stream["tls"]]
    for key in (ends, ends[::-1]):
        for connection in connections.get(key, []):
            first, last = connection.first_packet or 0, connection.last_packet or 0
            if connection.tls is not None and all(first <= frame <= last for frame in frames):
                return connection.tls
    return None


def _by_ends(connections: Iterator[Connection] | Any) -> dict[tuple[Any, ...], list[Connection]]:
    found: dict[tuple[Any, ...], list[Connection]] = defaultdict(list)
    for c in connections:
        found[(c.client.address, c.client.port), (c.server.address, c.server.port)].append(c)
    return found


@pytest.fixture(scope="module")
def agreement() -> dict[str, Field]:
    fields: dict[str, Field] = defaultdict(Field)
    for truth in public_truth():
        streams = [s for s in truth["streams"] if s.get("tls", {}).keys() & {"client_hello", "server_hello"}]
        if not streams:
            continue
        path = truth["path"]
        connections = _by_ends(analyze(folder() / path, keylog=keylog_of(path)).connections)
        for stream in streams:
            session = _session(connections, stream)
            for name, expected in _expected(stream["tls"], epoch_ns(truth)):
                found = None if session is None else _found(session, name, expected)
                if found == expected and session is not None:
                    fields[name].same += 1
                elif known := {(path, stream["stream"], name), (path, stream["stream"], "*")} & KNOWN.keys():
                    fields[name].named += 1
                    _USED.update(known)
                else:
                    fields[name].different.append(f"{path} stream {stream['stream']}: {found!r}, tshark {expected!r}")
    return fields


@needs_public_captures
def test_agreement_per_field(agreement: dict[str, Field], capsys: pytest.CaptureFixture[str]) -> None:
    check_agreement("tls", agreement, capsys)
    assert agreement["sni"].same > 400
    assert set(KNOWN) == _USED, "a difference that is named is there no more"


@needs_public_captures
def test_the_end_of_the_handshake_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """The same captures with their key logs and without: how far off the end of the handshake is when only record sizes tell."""
    errors: dict[str, list[int]] = defaultdict(list)
    unknown: list[str] = []
    for truth in public_truth():
        path = truth["path"]
        if keylog_of(path) is None:
            continue
        keyed, blind = (analyze(folder() / path, keylog=log).connections for log in (keylog_of(path), None))
        for with_keys, without in zip(keyed, blind, strict=True):
            exact, guess = with_keys.tls, without.tls
            if exact is None or guess is None or not exact.decrypted or exact.finished_at is None:
                continue
            if guess.finished_at is None:
                unknown.append(f"{path} connection {with_keys.id} ({exact.version})")
            else:
                errors[exact.version or "?"].append(abs(guess.finished_at - exact.finished_at))
    lines = [
        f"  {v}: {len(e)} handshakes, {sum(1 for x in e if not x)} exact, largest error {max(e) / 1e6:.3f} ms"
        for v, e in sorted(errors.items())
    ]
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join([*lines, *(f"  not told: {one}" for one in unknown)]) + "\n")
    assert sum(map(len, errors.values())) > 100
    assert all(error == 0 for version, found in errors.items() if version != "TLSv1.3" for error in found)
    assert max(errors["TLSv1.3"]) < 1_000_000
    assert not unknown
