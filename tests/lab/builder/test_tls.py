"""The modelled TLS in all its variants: both sides agree, and tshark (given the key log) reads what they said."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from netdiag.lab.builder.build import build
from netdiag.lab.builder.observe import RecordEnds
from netdiag.lab.builder.output import record_built
from netdiag.lab.builder.tls_keys import SUITES
from netdiag.lab.scenario import from_mapping

VARIANTS: dict[str, dict[str, Any]] = {
    **{f"1.3-{name}": {"tls": {"server": {"suite": name}}} for name in SUITES["1.3"]},
    **{f"1.2-{name}": {"server": {"tls_maximum": "1.2"}, "tls": {"server": {"suite": name}}} for name in SUITES["1.2"]},
    "1.3-retry-p256": {"server": {"groups": "secp256r1"}},
    "1.3-retry-p384": {"server": {"groups": "secp384r1"}},
    "1.2-p384": {"server": {"tls_maximum": "1.2", "groups": "secp384r1"}},
    "1.3-coalesced": {"tls": {"server": {"coalesce": True, "tickets_with_flight": True}}},
    "1.3-padded": {"tls": {"server": {"pad_to": 2000}, "client": {"pad_to": 600}}},
    "1.3-large-hello": {"tls": {"client": {"hello_bytes": 1800}}},
    "1.3-no-tickets": {"server": {"tickets": 0}},
    "1.3-refused-tickets": {"server": {"refuse_tickets": True}},
    "1.2-no-tickets": {"server": {"tls_maximum": "1.2", "tickets": 0}},
    "1.2-false-start": {"server": {"tls_maximum": "1.2"}, "tls": {"client": {"false_start": True}}},
    "1.3-early-data": {"tls": {"client": {"early_data": True}, "server": {"early_data": True}}},
    "1.2-client-only": {"tls": {"client": {"versions": ["1.2"]}}},
}


def two_connections(variant: str, protocol: str) -> Any:
    """One after the other, so that the second may resume."""
    plans = [
        {"protocol": protocol, "request": [{}, {"think_ms": 5}]},
        {"protocol": protocol, "after": 0, "request": [{}]},
    ]
    return from_mapping({"path": {"rtt_ms": 20}, "connection": plans, **VARIANTS[variant]}, name=variant)


@pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_both_sides_agree(variant: str, protocol: str) -> None:
    built = build(two_connections(variant, protocol))
    assert [m.outcome for m in built.marks] == ["ok"] * 3
    resumes = variant not in ("1.3-no-tickets", "1.3-refused-tickets", "1.2-no-tickets")
    for run, resumed in zip(built.runs, (False, resumes), strict=True):
        assert run.session is not None
        assert run.server_session is not None
        assert run.session.version == run.server_session.version == variant[:3]
        assert run.session.resumed == run.server_session.resumed == resumed
        assert run.session.alpn == run.server_session.alpn == protocol


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed: no witness for the modelled TLS")
@pytest.mark.parametrize("variant", VARIANTS)
def test_tshark_reads_it(variant: str, tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(record_built(build(two_connections(variant, "http/1.1"))).capture)
    command = [
        "tshark",
        "-r",
        str(file),
        "-T",
        "fields",
        "-e",
        "http.request.method",
        "-e",
        "http.response.code",
        "-e",
        "_ws.malformed",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    cells = [cell for line in result.stdout.splitlines() for cell in line.split("\t") if cell]
    assert sorted(cells) == ["200"] * 3 + ["POST"] * 3


def test_padding_hides_sizes() -> None:
    built = build(two_connections("1.3-padded", "http/1.1"))
    end = built.runs[0].winner
    assert end is not None
    ends = RecordEnds.of(end.sender.stream, tls=True).ends
    sizes = {b - a for a, b in pairwise(ends)}
    assert 600 + 1 + 16 + 5 in sizes


def test_a_large_hello_takes_two_segments() -> None:
    built = build(two_connections("1.3-large-hello", "h2"))
    session = built.runs[0].session
    assert session is not None
    assert session.hello[1] - session.hello[0] == 1800 + 5
