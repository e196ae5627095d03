"""A scenario that cannot be is one sentence that names what is wrong."""

from __future__ import annotations

import pytest

from netdiag.errors import UsageError
from netdiag.lab.scenario import bundled, bundled_names, load, parse


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour = 1", "'colour'"),
        ("[path]\nrrt_ms = 1", "'rrt_ms'"),
        ("[path.up]\nloss = 2", "loss"),
        ("[answer]\nwait = 5", "'wait'"),
        ("[answer]\nwait_ms = -1", "wait_ms"),
        ("[answer]\nwait_ms = 'soon'", "wait_ms"),
        ("[answer]\nstatus = 42", "status"),
        ("[server]\nport = 1", "'port'"),
        ("[tcp.client]\nmss = 10", "mss"),
        ("[tcp.middle]\nmss = 1000", "'middle'"),
        ("[capture]\nat = 'moon'", "at"),
        ("[hosts]\nserver = 'example.com'", "'example.com'"),
        ("[dns]\nttl = 3", "'ttl'"),
        ("[dns.names.'a.test']\nadresses = {}", "'adresses'"),
        ("[[connection]]\nprotocol = 'h3'", "h3"),
        ("[[connection]]\nafter = 0", "after"),
        ("[[connection]]\n[[connection.request]]\nverb = 'GET'", "'verb'"),
        ("[[connection]]\n[[connection.request]]\nanswer = { wait = 1 }", "'wait'"),
        ("[[connection]]\n[[connection.request]]\nheaders = ['nonsense']", "nonsense"),
        ("tiers = ['T9']", "T9"),
        ("ip_version = 5", "5"),
        ("title = ", "TOML"),
    ],
)
def test_names_what_cannot_be(text: str, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, name="mine")
    assert named in caught.value.message
    assert str(caught.value).startswith("mine: ")
    assert "\n" not in caught.value.message


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        bundled("clean-http1")
    assert "Did you mean clean-h1" in (caught.value.advice or "")
    with pytest.raises(UsageError) as caught:
        bundled("no-such")
    assert caught.value.advice == "All of them: netdiag lab list"


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="cannot read the scenario"):
        load("/nonexistent/x.toml")


@pytest.mark.parametrize("name", bundled_names())
def test_bundled_scenarios_say_what_they_are(name: str) -> None:
    scenario = bundled(name)
    assert scenario.title != name
    assert scenario.shows
