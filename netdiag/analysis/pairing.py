"""DNS resolution to connection: which lookup did this connection wait for?

A lookup belongs to a connection when one of its answers has the connection's server address and came before the SYN, and the SYN is not
much later (then the address came from a cache): soon after the answer for the first connection, together with that one or while an attempt
was still open (RFC 8305) or just failed for the others. All queries of one client for one name belong together:
A, AAAA and HTTPS, the search list's names, retries. A client may ask over IPv4 and connect over IPv6, or ask a stub resolver on its own
loopback address.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from netdiag.analysis.marks import Mark
from netdiag.plain import plain
from netdiag.records.dns import NameResolution

ANSWER_TO_SYN_NS = 1_000_000_000
"""An answer older than this when the SYN leaves was a cached address: nobody waits that long to connect."""
TOGETHER_NS = 20_000_000
"""Connections opened so soon after the first one waited for the same answer; a later one had the address from a cache."""
SAME_LOOKUP_NS = 1_000_000_000
"""Queries for one name with a longer silence between them are two lookups."""
_FINAL = ("NOERROR", "NXDOMAIN")
"""Answers after which no resolver asks for the same again (RFC 2308: that there is no such name is an answer)."""
RETRY_NS = 5_500_000_000
"""How long an unanswered query is waited for: glibc's and most resolvers' 5 s, and some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dial:
    """What pairing needs to know of one connection."""

    connection_id: int
    client: str
    server: str
    syn_at: int
    names: frozenset[str] = frozenset()
    """SNI and host of the first request, lower case; empty when nothing names the server."""
    established_at: int | None = None
    """SYN-ACK; until then another attempt may be started beside this one."""
    failed_at: int | None = None
    """When the client can have given this attempt up, None for one that succeeded: another address may follow soon after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The dns phase of the connections that waited for it. ``resolutions`` are indices into the list given to ``pair``."""

    name: str
    query: Mark
    answer: Mark
    resolutions: tuple[int, ...]
    tried_at: int | None = None
    """When the first of the name's other addresses was tried that had not answered when this one's SYN left; None for the first address."""
    superseded: bool = False
    """This attempt led nowhere, and one to another address did."""


def pair(resolutions: Sequence[NameResolution], dials: Iterable[Dial]) -> dict[int, Lookup]:
    """Connection id to the lookup it waited for; connections that used a cached or literal address are absent."""
    by_address: dict[str, list[_Answer]] = defaultdict(list)
    for lookup in _lookups(resolutions):
        for address, answered_at in lookup.addresses.items():
            by_address[address].append(_Answer(answered_at, lookup))
    waited: dict[int, Lookup] = {}
    attempts: dict[int, list[Dial]] = defaultdict(list)
    for dial in sorted(dials, key=lambda d: d.syn_at):
        found = _waited_for(dial, by_address.get(dial.server, []))
        if found is None:
            continue
        found.dialled(dial)
        attempts[id(found)].append(dial)
        phase = found.phase(resolutions)
        if phase is not None:
            waited[dial.connection_id] = phase
    for together in attempts.values():
        _tell_of_each_other(together, waited)
    return waited


def _tell_of_each_other(together: list[Dial], waited: dict[int, Lookup]) -> None:
    """Attempts of one lookup: which of them waited for another address, and which were given up for one."""
    if len({dial.server for dial in together}) == 1:
        return
    for dial in together:
        others = [other for other in together if other.server != dial.server]
        tried = [o.syn_at for o in others if o.syn_at < dial.syn_at and not _answered_by(o, dial.syn_at)]
        given_up = dial.established_at is None and any(other.established_at is not None for other in others)
        if dial.connection_id in waited and (tried or given_up):
            waited[dial.connection_id] = replace(
                waited[dial.connection_id], tried_at=min(tried, default=None), superseded=given_up
            )


def _answered_by(dial: Dial, at: int) -> bool:
    return dial.established_at is not None and dial.established_at <= at


@plain(slots=True)
class _Queries:
    """All queries of one client for one name in one go."""

    client: str
    base: str
    members: list[int]
    addresses: dict[str, int]
    """Address to the time of the answer that brought it first."""
    ends_at: int
    """Last answer, or when an unanswered query stops being waited for."""
    satisfied: dict[str, int] = field(default_factory=dict)
    """Type of record to when it was answered for good: who asks for it again after that looks the name up anew."""
    first_syn_at: int | None = None
    reach_at: int = 0
    """Once there was a SYN: until when others still belong to this lookup."""

    def dialled(self, dial: Dial) -> None:
        """Remember an attempt to one of the addresses."""
        if self.first_syn_at is None:
            self.first_syn_at = dial.syn_at
        self.reach_at = max(self.reach_at, self.first_syn_at + TOGETHER_NS)
        if dial.failed_at is not None:
            self.reach_at = max(self.reach_at, dial.failed_at + ANSWER_TO_SYN_NS)
        elif dial.established_at is not None:
            self.reach_at = max(self.reach_at, dial.established_at)

    def phase(self, resolutions: Sequence[NameResolution]) -> Lookup | None:
        """First query to last answer before the first SYN; None where times that go back leave none of these before it."""
        before = self.first_syn_at or 0
        asked = [resolutions[i] for i in self.members]
        asked = [r for r in asked if r.query_at is not None and r.query_at <= before]
        answered = [r for r in asked if r.response_at is not None and r.response_at <= before]
        if not answered:
            return None
        first = min(asked, key=lambda r: r.query_at or 0)
        last = max(answered, key=lambda r: r.response_at or 0)
        return Lookup(
            name=self.base,
            query=Mark(first.query_at or 0, first.query_packet),
            answer=Mark(last.response_at or 0, last.response_packet),
            resolutions=tuple(self.members),
        )


@plain(frozen=True, slots=True)
class _Answer:
    answered_at: int
    lookup: _Queries


def _waited_for(dial: Dial, answers: list[_Answer]) -> _Queries | None:
    """The latest fresh answer before the SYN; by name where the connection says which, and asked by the same client if it can be."""
    fresh = [a for a in answers if _may_be_same_host(a.lookup, dial) and _fresh(a, dial.syn_at)]
    if dial.names:
        fresh = [a for a in fresh if _is_for(a.lookup.base, dial.names)]
    own = [a for a in fresh if a.lookup.client == dial.client]
    return max(own or fresh, key=lambda a: a.answered_at).lookup if fresh else None


def _may_be_same_host(lookup: _Queries, dial: Dial) -> bool:
    """One address of a host is not known to be another's: a name must agree where the families differ; loopback is always this host."""
    if lookup.client == dial.client or lookup.client.startswith("127.") or lookup.client == "::1":
        return True
    # An attempt that came to nothing names nobody; that its address was just answered has to do.
    return (bool(dial.names) or dial.failed_at is not None) and (":" in lookup.client) != (":" in dial.client)


def _fresh(answer: _Answer, syn_at: int) -> bool:
    """Within reach of the answer, or of an earlier attempt to another of its addresses (RFC 8305, or one after the other)."""
    lookup = answer.lookup
    reach_at = lookup.ends_at + ANSWER_TO_SYN_NS if lookup.first_syn_at is None else lookup.reach_at
    return answer.answered_at <= syn_at <= reach_at


def _is_for(base: str, names: frozenset[str]) -> bool:
    """The search list appends suffixes to what was asked for (resolv.conf(5))."""
    return any(base == name or base.startswith(name + ".") for name in names)


def _lookups(resolutions: Sequence[NameResolution]) -> list[_Queries]:
    """Group queries by client and name, split at long silences; names of one search list join under the shortest of them."""
    chains: dict[tuple[str, str], list[_Queries]] = defaultdict(list)
    order = sorted(
        (i for i, r in enumerate(resolutions) if r.query_at is not None),
        key=lambda i: (resolutions[i].query_at, len(resolutions[i].name)),
    )
    for i in order:
        _add(chains, resolutions[i], i)
    return _merge_search_lists([lookup for chain in chains.values() for lookup in chain])


def _add(chains: dict[tuple[str, str], list[_Queries]], resolution: NameResolution, index: int) -> None:
    name = resolution.name.lower().rstrip(".")
    chain = chains[resolution.client.address, name]
    query_at = resolution.query_at or 0
    ends_at = resolution.response_at if resolution.response_at is not None else query_at + RETRY_NS
    if not chain or query_at - chain[-1].ends_at > SAME_LOOKUP_NS or _asked_anew(chain[-1], resolution):
        chain.append(_Queries(resolution.client.address, name, [], {}, ends_at))
    lookup = chain[-1]
    lookup.members.append(index)
    lookup.ends_at = max(lookup.ends_at, ends_at)
    if resolution.response_at is not None:
        if resolution.rcode in _FINAL and not resolution.truncated:
            lookup.satisfied.setdefault(resolution.type, resolution.response_at)
        for address in resolution.addresses:
            lookup.addresses.setdefault(address, resolution.response_at)


def _asked_anew(lookup: _Queries, resolution: NameResolution) -> bool:
    """A program without a cache asks for every connection; a retry follows silence or an error, never an answer that is final."""
    answered_at = lookup.satisfied.get(resolution.type)
    return answered_at is not None and answered_at <= (resolution.query_at or 0)


def _merge_search_lists(lookups: list[_Queries]) -> list[_Queries]:
    """``name.suffix`` asked just before or after ``name`` by the same client is part of the same lookup."""
    by_client: dict[str, list[_Queries]] = defaultdict(list)
    for lookup in lookups:
        by_client[lookup.client].append(lookup)
    kept: list[_Queries] = []
    for group in by_client.values():
        kept += _merged(group)
    return kept


def _merged(group: list[_Queries]) -> list[_Queries]:
    by_name: dict[str, list[_Queries]] = defaultdict(list)
    for lookup in group:
        by_name[lookup.base].append(lookup)
    absorbed: set[int] = set()
    for lookup in group:
        if lookup.addresses:
            continue
        for base in _parents(lookup.base):
            near = [t for t in by_name.get(base, ()) if t.addresses and _adjoin(lookup, t)]
            target = min(near, key=lambda t: _distance(lookup, t), default=None)
            if target is not None:
                target.members += lookup.members
                absorbed.add(id(lookup))
                break
    return [lookup for lookup in group if id(lookup) not in absorbed]


def _parents(name: str) -> list[str]:
    """``a.b.corp.example`` may have been made from ``a``, ``a.b`` …, the longest first."""
    labels = name.split(".")
    return [".".join(labels[:n]) for n in range(len(labels) - 1, 0, -1)]


def _distance(suffixed: _Queries, plain: _Queries) -> tuple[bool, int]:
    """The next lookup of the name that ends after it; only without one the last before it."""
    return plain.ends_at < suffixed.ends_at, abs(plain.ends_at - suffixed.ends_at)


def _adjoin(suffixed: _Queries, plain: _Queries) -> bool:
    return abs(plain.ends_at - suffixed.ends_at) <= RETRY_NS + SAME_LOOKUP_NS
