"""Name resolution before a request, and what looks like it."""

from __future__ import annotations

from collections.abc import Iterable

from tests.captures.kinds.formats import GET, OK
from tests.captures.kinds.kind import Kind, in_clear, of_frames
from tests.support.dns_bytes import a, answer, message, name, pointer, record
from tests.support.packets import EPOCH_NS, TcpTalk, Timed, udp_frame

CLIENT, RESOLVER, SERVER = "10.0.0.1", "10.0.0.53", "10.0.0.2"
HOST = "api.example.com"
QUESTION = pointer(12)
MS = 1_000_000


def asked(at_ms: float, octets: bytes, port: int = 50000) -> Timed:
    """From the client to the resolver."""
    return EPOCH_NS + int(at_ms * MS), udp_frame(octets, source=(CLIENT, port), destination=(RESOLVER, 53))


def told(at_ms: float, octets: bytes, port: int = 50000) -> Timed:
    """From the resolver to the client."""
    return EPOCH_NS + int(at_ms * MS), udp_frame(octets, source=(RESOLVER, 53), destination=(CLIENT, port))


def then_requested(at_ms: float, server: str = SERVER) -> list[Timed]:
    """The request to the address."""
    return in_clear((0, GET), (1, OK), ends=((CLIENT, 40000), (server, 80)), at_ns=EPOCH_NS + int(at_ms * MS))


def both_families() -> Iterable[Timed]:
    """A and AAAA at once; a chain of aliases; the request goes to IPv4."""
    chain = record(QUESTION, "CNAME", name("edge.example.net")), a(name("edge.example.net"), SERVER)
    yield asked(0, message(HOST, id_=1))
    yield asked(0.1, message(HOST, "AAAA", id_=2))
    yield told(12, answer(HOST, *chain, id_=1))
    yield told(14, answer(HOST, chain[0], type_="AAAA", id_=2))
    yield from then_requested(14.2)


def asked_again() -> Iterable[Timed]:
    """No answer for 5 s."""
    yield asked(0, message(HOST, id_=7))
    yield asked(5000, message(HOST, id_=7))
    yield told(5011, answer(HOST, a(QUESTION, SERVER), id_=7))
    yield from then_requested(5011.1)


def search_list() -> Iterable[Timed]:
    """Two suffixes are tried before the name itself (Kubernetes: ndots 5)."""
    for number, suffix in enumerate((".default.svc.cluster.local", ".svc.cluster.local")):
        yield asked(20 * number, message(HOST + suffix, id_=20 + number))
        yield told(20 * number + 10, answer(HOST + suffix, id_=20 + number, rcode=3))
    yield asked(40, message(HOST, id_=30))
    yield told(52, answer(HOST, a(QUESTION, SERVER), id_=30))
    yield from then_requested(52.1)


def truncated() -> Iterable[Timed]:
    """The answer does not fit: the same question over TCP."""
    yield asked(0, message(HOST, id_=9))
    yield told(10, answer(HOST, id_=9, truncated=True))
    question, reply = message(HOST, id_=10), answer(HOST, *(a(QUESTION, f"10.0.0.{n}") for n in range(2, 42)), id_=10)
    talk = TcpTalk(client=(CLIENT, 41000), server=(RESOLVER, 53), at_ns=EPOCH_NS + 11 * MS, step_ns=50_000)
    talk.handshake(rtt_ns=10 * MS)
    talk.say(0, len(question).to_bytes(2, "big") + question, acked=False)
    talk.say(1, len(reply).to_bytes(2, "big") + reply, after_ns=11 * MS)
    yield from talk.finish(0, after_ns=10 * MS).frames
    yield from then_requested(60)


def no_such_name() -> Iterable[Timed]:
    """NXDOMAIN, and nothing follows."""
    yield asked(0, message("api.exmaple.com", id_=4))
    yield told(9, answer("api.exmaple.com", id_=4, rcode=3))


def multicast() -> Iterable[Timed]:
    """mDNS among real questions is nobody's name resolution."""
    yield EPOCH_NS, udp_frame(message("printer.local"), source=(CLIENT, 5353), destination=("224.0.0.251", 5353))
    yield asked(1, message(HOST, id_=5))
    yield told(8, answer(HOST, a(QUESTION, SERVER), id_=5))
    yield from then_requested(8.1)


KINDS: tuple[Kind, ...] = (
    of_frames("dns-both-families", "A and AAAA, a chain of aliases", both_families),
    of_frames("dns-retry", "the first question is lost", asked_again),
    of_frames("dns-search-list", "two suffixes first", search_list),
    of_frames("dns-truncated", "the answer comes over TCP", truncated),
    of_frames("dns-no-such-name", "NXDOMAIN", no_such_name),
    of_frames("dns-multicast", "mDNS is ignored", multicast),
)
