"""tshark as the witness: one run over the file, a few fields of each packet of interest, the conclusions drawn here."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from netdiag.errors import CaptureFileError, ToolMissing
from netdiag.protocols.redact import redact_target
from netdiag.verify.facts import CaptureFacts, ConnectionFacts

_SEPARATOR, _AGGREGATOR = "\x1e", "\x1f"
_FIELDS = (
    "frame.number", "frame.time_epoch", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.stream", "tcp.srcport", "tcp.dstport",
    "tcp.flags", "tcp.len", "tls.handshake.type", "tls.handshake.extensions_server_name", "tls.handshake.extensions_alpn_str",
    "tls.handshake.version", "tls.handshake.extensions.supported_version", "tls.handshake.random", "http.request.method",
    "http.request.uri", "http.response.code", "http2.headers.method", "http2.headers.path", "http2.headers.authority",
    "http2.headers.status", "udp.srcport", "dns.qry.name", "dns.flags.response", "dns.flags.opcode", "dns.retransmit_response",
    "icmp.type", "icmpv6.type", "frame.protocols", "_ws.malformed",
)  # fmt: skip
_SYN, _ACK, _RST = 2, 16, 4
_AROUND_TLS = re.compile(r":tcp:(openvpn|tds)\b.*:tls")
"""Protocols that cut TLS into packets of their own."""
_CLIENT_HELLO, _SERVER_HELLO = "1", "2"
_RETRY_RANDOM = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c"
"""The ServerHello random that makes it a HelloRetryRequest (RFC 8446 section 4.1.3)."""
_VERSIONS = {0x0300: "SSLv3", 0x0301: "TLSv1.0", 0x0302: "TLSv1.1", 0x0303: "TLSv1.2", 0x0304: "TLSv1.3"}


@dataclass(slots=True)
class _Stream:
    """What is known so far of one tcp.stream."""

    facts: ConnectionFacts
    client: str | None = None
    hellos: int = 0
    server_hellos: int = 0
    statuses: list[int] = field(default_factory=list)


def version() -> str:
    """tshark's version. Raises ``ToolMissing``."""
    done = subprocess.run([_program(), "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+(?:\.\d+)?", done.stdout)
    return found[0] if found else "of unknown version"


def witness(path: str, *, keylog: str | None = None, timeout_s: float = 600.0) -> CaptureFacts:
    """What tshark says of the file. Raises ``ToolMissing`` without tshark and ``CaptureFileError`` when it cannot read the file at all."""
    streams: dict[int, _Stream] = {}
    facts = CaptureFacts(packets=0)
    for row in _rows(path, keylog, timeout_s):
        facts.packets += 1
        _take(row, streams, facts)
    facts.connections = [streams[number].facts for number in sorted(streams)]
    return facts


def _program() -> str:
    program = shutil.which("tshark")
    if program is None:
        raise ToolMissing("tshark is not installed", advice="install Wireshark's command line tools (package tshark)")
    return program


def _rows(path: str, keylog: str | None, timeout_s: float) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryFile() as errors:
        code = yield from _run(_command(path, keylog), errors, timeout_s)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if code and not Path(path).exists():
        raise CaptureFileError("no such file", path=path)
    if code and any("isn't a capture file" in line or "in a file of type" in line for line in said):
        raise CaptureFileError(f"tshark cannot read it: {said[-1] if said else code}", path=path)


def _command(path: str, keylog: str | None) -> list[str]:
    command = [_program(), "-n", "-r", path, "-T", "fields", "-o", "tcp.reassemble_out_of_order:TRUE"]
    command += ["-E", f"separator={_SEPARATOR}", "-E", f"aggregator={_AGGREGATOR}"]
    command += [f"-otls.keylog_file:{keylog}"] if keylog else []
    return command + [part for name in _FIELDS for part in ("-e", name)]


def _run(command: list[str], errors: IO[bytes], timeout_s: float) -> Generator[dict[str, str], None, int]:
    """tshark's rows, and in the end its exit code."""
    # It reads preferences of the user who runs it; a folder of its own keeps the witness the same everywhere.
    with tempfile.TemporaryDirectory(prefix="netdiag-verify-") as home:
        environment = {**os.environ, "HOME": home, "WIRESHARK_CONFIG_DIR": home}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        try:
            assert process.stdout is not None
            yield from filter(None, map(_row, process.stdout))
            return process.wait(timeout_s)
        finally:
            process.kill()
            process.communicate()


def _row(line: bytes) -> dict[str, str] | None:
    """None for what is no row of the fields asked for."""
    values = line.decode("utf-8", "replace").rstrip("\n").split(_SEPARATOR)
    return dict(zip(_FIELDS, values, strict=True)) if len(values) == len(_FIELDS) else None


def _take(row: dict[str, str], streams: dict[int, _Stream], facts: CaptureFacts) -> None:
    if row["_ws.malformed"]:
        facts.malformed.add(int(row["frame.number"]))
    # An update or a notification (RFC 2136, 1996) resolves no name.
    answers = row["dns.flags.response"] in ("1", "True") and _first(row["dns.flags.opcode"]) in ("", "0")
    if answers and row["udp.srcport"] == "53" and not _is_error_report(row):
        name = _first(row["dns.qry.name"]).rstrip(".").lower()
        facts.names["" if name == "<root>" else name, int(row["frame.number"])] += 1
        if row["dns.retransmit_response"]:
            facts.repeated.add(int(row["frame.number"]))
    if not row["tcp.stream"] or _is_error_report(row):
        return
    number = int(_last(row["tcp.stream"]))
    source, destination = _endpoints(row)
    stream = streams.get(number)
    if stream is None:
        pair = sorted((source, destination))
        stream = streams[number] = _Stream(
            ConnectionFacts(pair=(pair[0], pair[1]), first_packet=int(row["frame.number"]))
        )
    _handshake(row, stream, source)
    _hellos(row, stream)
    _messages(row, stream.facts)


def _is_error_report(row: dict[str, str]) -> bool:
    """An ICMP error quotes headers of another packet; an sFlow datagram is full of samples of them."""
    return bool(row["icmp.type"] or row["icmpv6.type"]) or ":sflow" in row["frame.protocols"]


def _handshake(row: dict[str, str], stream: _Stream, source: str) -> None:
    frame, flags, facts = int(row["frame.number"]), int(_last(row["tcp.flags"]), 16), stream.facts
    if flags & (_SYN | _ACK) == _SYN and facts.syn_packet is None:
        facts.syn_packet, stream.client, facts.syn_at = frame, source, _nanoseconds(row["frame.time_epoch"])
    elif flags & (_SYN | _ACK) == _SYN | _ACK:
        if facts.syn_ack_packet is None:
            facts.syn_ack_packet = frame
    elif (
        flags & (_ACK | _RST) == _ACK and facts.syn_ack_packet and source == stream.client and facts.ack_packet is None
    ):
        facts.ack_packet = frame


def _hellos(row: dict[str, str], stream: _Stream) -> None:
    types, facts = row["tls.handshake.type"].split(_AGGREGATOR), stream.facts
    if row["tls.handshake.type"] and (around := _AROUND_TLS.search(row["frame.protocols"])):
        facts.inside = around[1]
    if _CLIENT_HELLO in types and facts.client_hello_packet is None:
        facts.client_hello_packet = int(row["frame.number"])
        facts.client_hello_at = _nanoseconds(row["frame.time_epoch"])
        facts.sni = _first(row["tls.handshake.extensions_server_name"]) or None
        alpn = row["tls.handshake.extensions_alpn_str"]
        facts.alpn_offered = tuple(alpn.split(_AGGREGATOR)) if alpn else ()
    if (
        _SERVER_HELLO in types
        and facts.server_hello_packet is None
        and _RETRY_RANDOM not in row["tls.handshake.random"]
    ):
        facts.server_hello_packet = int(row["frame.number"])
        facts.server_hello_at = _nanoseconds(row["frame.time_epoch"])
        chosen = row["tls.handshake.extensions.supported_version"] if _CLIENT_HELLO not in types else ""
        legacy = row["tls.handshake.version"].split(_AGGREGATOR)
        value = int(_last(chosen) or legacy[types.index(_SERVER_HELLO) if len(legacy) == len(types) else 0] or "0", 16)
        facts.tls_version = _VERSIONS.get(value)


def _messages(row: dict[str, str], facts: ConnectionFacts) -> None:
    for method, target in zip(_all(row["http.request.method"]), _all(row["http.request.uri"]), strict=False):
        facts.requests[method, _plain(target)] += 1
    methods, paths = _all(row["http2.headers.method"]), [redact_target(p) for p in _all(row["http2.headers.path"])]
    if len(methods) == len(paths):
        facts.requests.update(zip(methods, paths, strict=True))
    elif not paths:
        facts.requests.update(zip(methods, _all(row["http2.headers.authority"]), strict=False))
    for status in (*_all(row["http.response.code"]), *_all(row["http2.headers.status"])):
        if (status.isdigit() and int(status) >= 200) or status == "101":
            facts.statuses[int(status)] += 1


def _plain(target: str) -> str:
    """An absolute target's path (RFC 9112 section 3.2.2): netdiag keeps the rest of it apart. A witness's words go through the same
    redaction as ours, or its differences would tell what we keep to ourselves."""
    return redact_target(re.sub(r"(?i)^https?://[^/?#]*", "", target) or "/")


def _endpoints(row: dict[str, str]) -> tuple[str, str]:
    """Of the innermost IP header, which tshark lists last."""
    layers = [layer for layer in row["frame.protocols"].split(":") if layer in ("ip", "ipv6")]
    inner = layers[-1] if layers else "ip"
    source, destination = f"{inner}.src", f"{inner}.dst"
    return _endpoint(row[source], row["tcp.srcport"]), _endpoint(row[destination], row["tcp.dstport"])


def _endpoint(addresses: str, ports: str) -> str:
    try:
        address = ipaddress.ip_address(_last(addresses))
    except ValueError:
        return f"?:{_last(ports)}"
    return f"[{address}]:{_last(ports)}" if address.version == 6 else f"{address}:{_last(ports)}"


def _all(value: str) -> list[str]:
    return value.split(_AGGREGATOR) if value else []


def _first(value: str) -> str:
    return value.split(_AGGREGATOR)[0]


def _last(value: str) -> str:
    return value.rsplit(_AGGREGATOR, 1)[-1]


def _nanoseconds(seconds: str) -> int | None:
    whole, _, fraction = seconds.partition(".")
    return int(whole) * 1_000_000_000 + int((fraction + "000000000")[:9]) if whole.lstrip("-").isdigit() else None
