"""Tier T2: a token's segment is really lost between two kernels, or the server really pauses; the stall is charged to the right one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from netdiag.lab.live import Target, on_testbed
from netdiag.lab.scenario import parse
from tests.support.testbed import probe_command

pytestmark = [pytest.mark.netns, pytest.mark.xdist_group("timing")]

SCENARIO = """
[path]
rtt_ms = {rtt}
{path}
[answer]
wait_ms = 40
stream = true
events = 30
gap_ms = {gap}
{answer}
[[connection]]
protocol = "http/1.1"
[[connection.request]]
"""
LOSS = 'down = { drops = [{ what = "data", nth = %d }] }'
PAUSE = "pause_after = 12\npause_ms = 300"
SURE_NS = 60_000_000
"""What a busy machine seldom does by itself."""
SHORTEST_LOSS_NS = 25_000_000
"""A round trip of 10 ms and the next token 30 ms later repair a loss in about 40 ms."""


def probe(target: Target, capture: str) -> dict[str, Any]:
    assert target.run is not None
    command = probe_command(target, "-n", "1", "--arm", "h1", "--capture", capture)
    command += [word for name, value in target.headers for word in ("-H", f"{name}: {value}")]
    document: dict[str, Any] = json.loads(target.run([*command, "-d", target.body.decode()]))
    return document


def stalls(
    *, rtt: int, gap: int, path: str = "", answer: str = "", capture: str = "auto", least_ns: int = SURE_NS
) -> list[dict[str, Any]]:
    scenario = parse(SCENARIO.format(rtt=rtt, gap=gap, path=path, answer=answer))
    document, _ = on_testbed(scenario, lambda target: probe(target, capture))
    (exchange,) = document["exchanges"]
    return [s for s in exchange["stream"]["stalls"] if s["excess_ns"] > least_ns]


def retried(wanted: set[str], **scenario: Any) -> list[dict[str, Any]]:
    """A busy machine stalls streams of its own; what is wrong three times is wrong."""
    for _ in range(3):
        found = stalls(**scenario)
        if {s["cause"] for s in found} == wanted:
            break
    return found


@pytest.mark.parametrize(("rtt", "gap", "nth"), [(10, 30, 16), (10, 100, 16), (100, 30, 16), (100, 100, 16)])
def test_a_lost_segment_is_the_network_s(rtt: int, gap: int, nth: int) -> None:
    found = retried({"network"}, rtt=rtt, gap=gap, path=LOSS % nth, least_ns=SHORTEST_LOSS_NS)
    assert {s["cause"] for s in found} == {"network"}, found
    assert max(found, key=lambda s: s["excess_ns"])["method"] in ("hole", "packet-count", "conservation")


def test_a_pause_is_the_server_s_on_the_same_path() -> None:
    found = retried({"server"}, rtt=40, gap=30, answer=PAUSE)
    assert [s["cause"] for s in found] == ["server"]
    assert found[0]["shift_share"] > 0.7


@pytest.mark.parametrize("capture", ["auto", "none"])
def test_a_clean_path_has_no_stall(capture: str) -> None:
    assert retried(set(), rtt=40, gap=30, capture=capture) == []


def test_without_packets_conservation_tells_both_apart() -> None:
    lost = retried({"network"}, rtt=100, gap=30, path=LOSS % 16, capture="none")
    assert {(s["cause"], s["method"]) for s in lost} == {("network", "conservation")}
    late = retried({"server"}, rtt=100, gap=30, answer=PAUSE, capture="none")
    assert {(s["cause"], s["method"]) for s in late} == {("server", "conservation")}
