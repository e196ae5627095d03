"""What a probe shall do, as data: targets, arms, trials, their random order, and the limits that keep it polite.

A *trial* is one round in which every arm makes one call, in random order, so that whatever changes over time hits all arms alike. With more
than one trial asked for, an extra trial 0 goes first: it is shown, but statistics leave it out, since it pays for cold caches everywhere.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from netdiag.errors import UsageError
from netdiag.probe import llm
from netdiag.protocols.redact import redact_target
from netdiag.version import __version__

USER_AGENT = f"netdiag/{__version__}"

MAX_REQUESTS = 1_000
MAX_CONCURRENCY = 20
MAX_PER_SECOND = 50
MAX_BODY_READ_BYTES = 16 << 20
MAX_READ_BYTES = 256 << 20
"""Ceilings that no option lifts: a measuring tool must not become a load generator (robustness)."""

FEW_BROKEN = 2
"""So many broken rounds are borne however small the plan."""

CAPTURE_BACKENDS = ("auto", "dumpcap", "scapy", "pyshark", "none")
PROTOCOLS = ("h1", "h2")
WARMTHS = ("cold", "warm", "resumed")
ROUTES = ("proxy", "direct")
FAMILIES = ("ipv4", "ipv6")
TLS_VERSIONS = ("tls1.2", "tls1.3")
DELIVERIES = ("stream", "whole")
CLIENTS = ("shared", "separate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of making the same call. Written as words joined by ``+``: ``h2``, ``h1+warm``, ``h2+ipv6+tls1.2``, ``h1+direct``."""

    name: str
    """As the user wrote it; with several URLs the host is added in front."""
    url: str
    protocol: str = "h1"
    """``h1`` or ``h2``: the only ALPN name offered."""
    warmth: str = "cold"
    """``cold``: a new connection per call. ``warm``: one kept connection. ``resumed``: a new connection with the last one's TLS session."""
    family: str | None = None
    """``ipv4`` or ``ipv6``; None races both."""
    tls_version: str | None = None
    """``tls1.2`` or ``tls1.3``; None leaves it to both sides."""
    proxied: bool = True
    """False: connect directly although a proxy is configured."""
    delivery: str | None = None
    """With ``ProbeConfig.llm``: ``stream`` or ``whole`` answer; None leaves it to the call."""
    concurrency: int = 1
    """Calls at once in each of its trials."""
    separate: bool = False
    """Each of them with a client of its own; otherwise one client is shared."""
    idle_s: float | None = None
    """How long its kept connection lies idle before each call: such a call comes after an uncounted one that uses the connection."""

    @property
    def warms_up(self) -> bool:
        """Whether each counted call comes after one that only makes its connection busy."""
        return self.warmth == "warm" and self.idle_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One call to make."""

    number: int
    """0 for the extra first round that statistics leave out."""
    arm: Arm


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeConfig:
    """Everything the user can choose; curl's names where curl has the option. Checked on creation: ``UsageError`` says what cannot be."""

    urls: tuple[str, ...]
    arms: tuple[str, ...] = PROTOCOLS
    trials: int = 4
    """Counted calls per arm; one more (trial 0) comes first unless this is 1. The default makes 10 requests over two arms."""
    warm: bool = False
    """Arms that name no warmth reuse one kept connection each."""
    method: str | None = None
    """None: GET, or POST with a body."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    insecure: bool = False
    """Do not verify certificates; marked in every result."""
    cacert: str | None = None
    """PEM file that replaces the system's trust anchors."""
    resolve: tuple[str, ...] = ()
    """``HOST:PORT:ADDRESS[,ADDRESS]`` as curl's ``--resolve``; no name resolution takes place for it."""
    timeout_s: float = 30.0
    """For one attempt: from submit to the last octet."""
    connect_timeout_s: float = 10.0
    """For name resolution and TCP together."""
    tls_timeout_s: float = 10.0
    read_timeout_s: float | None = None
    """Longest silence of the server inside a response (a ping is life, too); None leaves only ``timeout_s``."""
    first_event_timeout_s: float | None = None
    """From submit to the first event of a stream (a ping is none), or the first octet of another body."""
    capture: str = "auto"
    interface: str | None = None
    """None: by the route to the target."""
    save_capture: str | None = None
    """Keep the capture here (pcapng); None removes it after the analysis."""
    embed_keys: bool = False
    """Write our sessions' keys into the kept capture: it is then as secret as the traffic."""
    keep_keys: str | None = None
    """Keep the key log here (0600)."""
    seed: int | None = None
    """Of the random order; None draws one."""
    idle_s: float | None = None
    """Pause before every call but the first (with ``warm``: how long the connection lies idle). None: 250 ms, or five round trips where
    that is longer, so that the last call's closing handshake and tail are over."""
    concurrency: int = 1
    """Calls in flight at once, in batches, on the shared client of each arm that says nothing else (``k8``, ``separate``)."""
    proxy: str | None = None
    """``http://`` or ``https://`` URL; None: none, whatever the environment says."""
    follow_redirects: bool = False
    policy: str = "none"
    """Retry policy by name: see ``netdiag.probe.attempts``."""
    user_agent: str = USER_AGENT
    llm: llm.LlmCall | None = None
    """A call of a model's API: it makes path, further headers and body; ``body`` must then be None."""
    max_body_bytes: int = MAX_BODY_READ_BYTES
    allow_link_local: bool = False
    """Permit link-local and cloud-metadata targets."""

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise UsageError(problem)

    @property
    def effective_method(self) -> str:
        """The method that goes out."""
        return (self.method or ("GET" if self.body is None and self.llm is None else "POST")).upper()

    def body_for(self, arm: Arm) -> bytes | None:
        """What the arm's requests carry."""
        return self.body if self.llm is None else llm.body(self.llm, arm.url, stream=self._streams(arm))

    def headers_for(self, arm: Arm) -> tuple[tuple[str, str], ...]:
        """The header fields of the arm's requests; the user's own replace the API's of the same name."""
        if self.llm is None:
            return self.headers
        own = {name.lower() for name, _ in self.headers}
        made = llm.headers(self.llm, arm.url, stream=self._streams(arm))
        return (*(pair for pair in made if pair[0] not in own), *self.headers)

    def _streams(self, arm: Arm) -> bool:
        assert self.llm is not None
        return self.llm.stream if arm.delivery is None else arm.delivery == "stream"

    def arm_list(self) -> tuple[Arm, ...]:
        """Every arm for every URL, in the order given."""
        several = len(self.urls) > 1
        targets = self.urls if self.llm is None else [llm.endpoint(url, self.llm.api) for url in self.urls]
        return tuple(
            parse_arm(text, url, warm=self.warm, several=several, concurrency=self.concurrency)
            for url in targets
            for text in self.arms
        )

    @property
    def rounds(self) -> range:
        """Trial numbers: 0 is the uncounted one."""
        return range(1, 2) if self.trials == 1 else range(self.trials + 1)

    @property
    def repeats_broken_rounds(self) -> bool:
        """Whether a round in which the server refused a call is made again: only where there are pairs to be broken."""
        return self.trials > 1 and len(self.arm_list()) > 1

    @property
    def most_broken_rounds(self) -> int:
        """More of them end the run: a tenth of the plan, but two in any case."""
        return max(FEW_BROKEN, self.trials // 10)

    def order(self) -> Iterator[Trial]:
        """All calls in the order they are made: by trial, the arms shuffled in each."""
        shuffler = random.Random(self.seed)
        arms = list(self.arm_list())
        for number in self.rounds:
            shuffler.shuffle(arms)
            yield from (Trial(number=number, arm=arm) for arm in arms)

    def request_count(self) -> int:
        """Requests that this plan makes without retries and redirects."""
        return len(self.rounds) * sum(arm.concurrency * (2 if arm.warms_up else 1) for arm in self.arm_list())


def parse_arm(text: str, url: str, *, warm: bool = False, several: bool = False, concurrency: int = 1) -> Arm:
    """An arm from its words. Raises ``UsageError`` for a word that is none, or two that exclude each other."""
    chosen: dict[str, str] = {}
    for word in text.lower().split("+"):
        kind = _kind_of_word(word)
        if kind is None:
            raise UsageError(
                f"arm {text!r}: {word!r} is none of {', '.join(_ALL_WORDS)}, k2 to k{MAX_CONCURRENCY}, idle6s"
            )
        if kind in chosen:
            raise UsageError(f"arm {text!r}: {chosen[kind]!r} and {word!r} exclude each other")
        chosen[kind] = word
    return Arm(
        name=f"{urlsplit(url).netloc.rpartition('@')[2]} {text}" if several else text,
        url=url,
        protocol=chosen.get("protocol", "h1"),
        warmth=chosen.get("warmth", "warm" if warm else "cold"),
        family=chosen.get("family"),
        tls_version=chosen.get("tls_version"),
        proxied=chosen.get("route") != "direct",
        delivery=chosen.get("delivery"),
        concurrency=int(chosen["concurrency"][1:]) if "concurrency" in chosen else concurrency,
        separate=chosen.get("clients") == "separate",
        idle_s=idle_of_word(chosen["idle"]) if "idle" in chosen else None,
    )


_WORDS = {
    "protocol": PROTOCOLS,
    "warmth": WARMTHS,
    "family": FAMILIES,
    "tls_version": TLS_VERSIONS,
    "route": ROUTES,
    "delivery": DELIVERIES,
    "clients": CLIENTS,
}
_CONCURRENCY_WORD = re.compile(r"k\d{1,3}")
_IDLE_WORD = re.compile(r"idle(\d{1,6}(?:\.\d{1,3})?)(ms|s|min)")
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
_ALL_WORDS = tuple(word for words in _WORDS.values() for word in words)


def _kind_of_word(word: str) -> str | None:
    if _CONCURRENCY_WORD.fullmatch(word):
        return "concurrency"
    if _IDLE_WORD.fullmatch(word):
        return "idle"
    return next((kind for kind, words in _WORDS.items() if word in words), None)


def idle_of_word(word: str) -> float | None:
    """Seconds of ``idle6s``, ``idle500ms``; None for another word."""
    found = _IDLE_WORD.fullmatch(word)
    return None if found is None else float(found[1]) * _SECONDS[found[2]]


def _problems(config: ProbeConfig) -> Iterator[str]:
    if not config.urls:
        yield "no URL to probe"
    for url in config.urls:
        yield from _url_problems(url)
    if not config.arms:
        yield "no arm left to try"
    if len(set(config.arms)) < len(config.arms):
        yield "the same arm is given twice"
    for text in config.arms:
        yield from _arm_problems(parse_arm(text, ""), config.warm)
    if config.trials < 1:
        yield f"{config.trials} trials: at least 1 is needed"
    if not 1 <= config.concurrency <= MAX_CONCURRENCY:
        yield f"concurrency {config.concurrency} is outside 1 to {MAX_CONCURRENCY}"
    if (count := config.request_count()) > MAX_REQUESTS:
        yield f"{count} requests are more than the {MAX_REQUESTS} that netdiag makes in one run"
    if config.capture not in CAPTURE_BACKENDS:
        yield f"capture backend {config.capture!r} is none of {', '.join(CAPTURE_BACKENDS)}"
    if config.proxy is not None and urlsplit(config.proxy).scheme not in ("http", "https"):
        yield f"proxy {redact_target(config.proxy)!r}: only http:// and https:// proxies are supported"
    limits = (
        config.timeout_s,
        config.connect_timeout_s,
        config.tls_timeout_s,
        config.read_timeout_s,
        config.first_event_timeout_s,
    )
    if min(limit for limit in limits if limit is not None) <= 0:
        yield "a time limit must be above 0 s"
    if config.idle_s is not None and not 0 <= config.idle_s <= 3_600:
        yield "the pause must be between 0 s and 3600 s"
    yield from _header_problems(config)
    yield from _llm_problems(config)


def _arm_problems(arm: Arm, warm: bool) -> Iterator[str]:
    if not 1 <= arm.concurrency <= MAX_CONCURRENCY:
        yield f"arm {arm.name!r}: concurrency {arm.concurrency} is outside 1 to {MAX_CONCURRENCY}"
    if arm.idle_s is not None and not 0 <= arm.idle_s <= 3_600:
        yield f"arm {arm.name!r}: the pause must be between 0 s and 3600 s"
    if arm.idle_s is not None and arm.warmth != "warm" and not warm:
        yield f"arm {arm.name!r}: only a kept connection lies idle (add warm)"


def _url_problems(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError as error:
        yield f"{url!r} is no URL: {error}"
        return
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok:
        hint = f"; write https://{url}" if "://" not in url and re.fullmatch(r"[\w.-]+(:\d+)?(/\S*)?", url) else ""
        yield f"{url!r} is no http:// or https:// URL{hint}"
    if parts.username or parts.password:
        yield "a password in the URL would end up in results: use -H 'Authorization: …'"


def _header_problems(config: ProbeConfig) -> Iterator[str]:
    for name, value in config.headers:
        if not name or any(c in name for c in " :\r\n\0") or any(c in value for c in "\r\n\0"):
            yield f"header {name!r} cannot be sent"


def _llm_problems(config: ProbeConfig) -> Iterator[str]:
    chosen = {word for text in config.arms for word in text.lower().split("+")} & set(DELIVERIES)
    if config.llm is None:
        if chosen:
            yield f"an arm with {chosen.pop()!r} needs a call of a model's API (--llm)"
        return
    if config.body is not None:
        yield "a call of a model's API makes the body itself"
    if chosen and not llm.can_choose(config.llm):
        yield f"an arm with {chosen.pop()!r} needs a body that is a JSON object"
    yield from llm.problems(config.llm, config.urls)
