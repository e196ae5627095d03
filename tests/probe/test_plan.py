"""Plans: what is refused, how arms are written, in which order trials come."""

from __future__ import annotations

from collections import Counter

import pytest

from netdiag.errors import UsageError
from netdiag.probe.plan import ProbeConfig, parse_arm

URL = "https://example.com/"


def test_default_plan_is_ten_requests_over_two_arms() -> None:
    config = ProbeConfig(urls=(URL,))
    assert config.request_count() == 10
    assert [arm.protocol for arm in config.arm_list()] == ["h1", "h2"]
    assert all(arm.warmth == "cold" for arm in config.arm_list())


def test_every_trial_has_every_arm_once_and_orders_differ() -> None:
    config = ProbeConfig(urls=(URL,), trials=30, seed=7)
    trials = list(config.order())
    by_number = Counter(trial.number for trial in trials)
    assert by_number == dict.fromkeys(range(31), 2)
    firsts = Counter(trials[i].arm.name for i in range(0, len(trials), 2))
    assert min(firsts["h1"], firsts["h2"]) >= 8


def test_same_seed_same_order() -> None:
    first, second = (list(ProbeConfig(urls=(URL,), seed=3, trials=9).order()) for _ in range(2))
    assert first == second


def test_a_single_trial_is_counted() -> None:
    assert [trial.number for trial in ProbeConfig(urls=(URL,), trials=1, arms=("h1",)).order()] == [1]


def test_arm_words() -> None:
    arm = parse_arm("h2+warm+ipv6+tls1.3+direct", URL)
    assert (arm.protocol, arm.warmth, arm.family, arm.tls_version, arm.proxied) == (
        "h2",
        "warm",
        "ipv6",
        "tls1.3",
        False,
    )


def test_several_urls_name_their_host() -> None:
    config = ProbeConfig(urls=("https://a.example/", "https://b.example:8443/"), arms=("h2",))
    assert [arm.name for arm in config.arm_list()] == ["a.example h2", "b.example:8443 h2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"urls": ()}, "no URL"),
        ({"urls": ("ftp://x/",)}, "no http:// or https:// URL"),
        ({"urls": ("https://user:secret@x/",)}, "password in the URL"),
        ({"urls": ("https://[::1/",)}, "no URL"),
        ({"arms": ("h3",)}, "'h3' is none of"),
        ({"arms": ("h1+h2",)}, "exclude each other"),
        ({"arms": ("h1", "h1")}, "given twice"),
        ({"arms": ()}, "no arm"),
        ({"trials": 0}, "at least 1"),
        ({"trials": 600}, "more than the 1000"),
        ({"concurrency": 21}, "outside 1 to 20"),
        ({"capture": "tcpdump"}, "none of auto"),
        ({"timeout_s": 0.0}, "above 0"),
        ({"headers": (("a\r\nb", "c"),)}, "cannot be sent"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        ProbeConfig(**({"urls": (URL,)} | options))  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_method_follows_the_body() -> None:
    assert ProbeConfig(urls=(URL,)).effective_method == "GET"
    assert ProbeConfig(urls=(URL,), body=b"x").effective_method == "POST"
    assert ProbeConfig(urls=(URL,), body=b"x", method="put").effective_method == "PUT"
