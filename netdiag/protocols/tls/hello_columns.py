"""ClientHello and ServerHello of many connections at once: the few facts that the key-less grammar needs, as columns.

Only hellos without any irregularity are read here, and which those are is part of the answer. All others are for ``handshake``, which says
what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from netdiag.plain import plain
from netdiag.protocols.tls.names import ExtensionType
from netdiag.protocols.tls.server_hello import HELLO_RETRY_RANDOM
from netdiag.wire.octets import BIG16, BIG32, OCTET, Octets
from netdiag.wire.tables import NONE, Bool, Int64

_H2 = int.from_bytes(b"h2", "big")
_RANDOM = np.dtype("V32")
_MOST_EXTENSIONS = 64
_MOST_NAMES = 16


@plain(frozen=True, slots=True, kw_only=True)
class ClientHellos:
    """One row per message."""

    regular: Bool
    """Well formed to the last octet; the other columns hold only then."""
    offers_h2: Bool
    offers_settings: Bool
    """draft-vvv-tls-alps."""
    offers_early: Bool
    """0-RTT data."""


@plain(frozen=True, slots=True, kw_only=True)
class ServerHellos:
    """One row per message."""

    regular: Bool
    """Well formed to the last octet, no HelloRetryRequest, and no draft of TLS 1.3; the other columns hold only then."""
    version: Int64
    """The version chosen: supported_versions where present, else the field of old."""
    suite: Int64
    h2: Int64
    """1: h2 (or one of its drafts) chosen in clear; 0: another protocol; NONE: none is named."""


def client_hellos(octets: Octets, at: Int64, end: Int64) -> ClientHellos:
    """Of the message bodies ``at:end`` (RFC 8446 section 4.1.2)."""
    regular = end - at >= 35
    suites = at + 35 + octets.column(at + 34, OCTET)
    regular &= suites + 2 <= end
    compressions = suites + 2 + octets.column(suites, BIG16)
    regular &= compressions < end
    block = compressions + 1 + octets.column(compressions, OCTET)
    wanted = (
        ExtensionType.ALPN,
        ExtensionType.APPLICATION_SETTINGS,
        ExtensionType.APPLICATION_SETTINGS_OLD,
        ExtensionType.EARLY_DATA,
    )
    found = _extensions(octets, block, end, regular, wanted)
    regular &= found.regular
    alpn = found.place[ExtensionType.ALPN]
    settings = found.place[ExtensionType.APPLICATION_SETTINGS] != NONE
    settings |= found.place[ExtensionType.APPLICATION_SETTINGS_OLD] != NONE
    names = _names_h2(octets, alpn, found.size[ExtensionType.ALPN], regular)
    return ClientHellos(
        regular=regular & (names != NONE),
        offers_h2=names == 1,
        offers_settings=settings,
        offers_early=found.place[ExtensionType.EARLY_DATA] != NONE,
    )


def server_hellos(octets: Octets, at: Int64, end: Int64) -> ServerHellos:
    """Of the message bodies ``at:end`` (RFC 8446 section 4.1.3)."""
    regular = end - at >= 38
    retry = octets.rows(at + 2, _RANDOM) == np.frombuffer(HELLO_RETRY_RANDOM, _RANDOM)[0]
    suite_at = at + 35 + octets.column(at + 34, OCTET)
    regular &= ~retry & (suite_at + 3 <= end)
    found = _extensions(octets, suite_at + 3, end, regular, (ExtensionType.SUPPORTED_VERSIONS, ExtensionType.ALPN))
    chosen = found.place[ExtensionType.SUPPORTED_VERSIONS]
    named = (chosen != NONE) & (found.size[ExtensionType.SUPPORTED_VERSIONS] >= 2)
    version = np.where(named, octets.column(np.where(named, chosen, at), BIG16), octets.column(at, BIG16))
    h2, well_named = _chosen_h2(octets, found.place[ExtensionType.ALPN], found.size[ExtensionType.ALPN])
    regular &= found.regular & well_named & (version >= 0x0300) & (version <= 0x0304)
    return ServerHellos(regular=regular, version=version, suite=octets.column(suite_at, BIG16), h2=h2)


@plain(slots=True)
class _Extensions:
    """Place (of the data) and size of each wanted extension, NONE where it is absent."""

    regular: Bool
    place: Mapping[int, Int64]
    size: Mapping[int, Int64]


def _extensions(octets: Octets, block: Int64, end: Int64, regular: Bool, wanted: tuple[int, ...]) -> _Extensions:
    """All blocks in lock step, one extension further each time. The first of several equal ones counts."""
    place = {kind: np.full(len(block), NONE, np.int64) for kind in wanted}
    size = {kind: np.full(len(block), NONE, np.int64) for kind in wanted}
    good = regular & ((block == end) | (block + 2 <= end))
    good[good] &= (block[good] == end[good]) | (block[good] + 2 + octets.column(block[good], BIG16) == end[good])
    rows = np.flatnonzero(good & (block < end))
    at, stop = block[rows] + 2, end[rows]
    for _ in range(_MOST_EXTENSIONS):
        going = at < stop
        if not going.all():
            rows, at, stop = rows[going], at[going], stop[going]
        if not rows.size:
            break
        head = octets.column(at, BIG32)
        kind, length = head >> 16, head & 0xFFFF
        whole = at + 4 + length <= stop
        if not whole.all():
            good[rows[~whole]] = False
            rows, at, stop, kind, length = rows[whole], at[whole], stop[whole], kind[whole], length[whole]
        for one in wanted:
            hit = np.flatnonzero(kind == one)
            hit = hit[place[one][rows[hit]] == NONE]
            place[one][rows[hit]], size[one][rows[hit]] = at[hit] + 4, length[hit]
        at = at + 4 + length
    good[rows] = False
    return _Extensions(good, place, size)


def _names_h2(octets: Octets, place: Int64, size: Int64, regular: Bool) -> Int64:
    """Of each ALPN extension (RFC 7301 section 3.1): 1 when ``h2`` is in it, 0 when not, NONE when it is too long to say."""
    out = np.zeros(len(place), np.int64)
    rows = np.flatnonzero(regular & (place != NONE))
    at, stop = place[rows] + 2, place[rows] + size[rows]
    for _ in range(_MOST_NAMES):
        going = at < stop
        rows, at, stop = rows[going], at[going], stop[going]
        if not rows.size:
            return out
        length = octets.column(at, OCTET)
        sane = (length > 0) & (at + 1 + length <= stop)
        rows, at, stop, length = rows[sane], at[sane], stop[sane], length[sane]
        hit = (length == 2) & (octets.column(at + 1, BIG16) == _H2)
        out[rows[hit]] = 1
        rows, at, stop = rows[~hit], (at + 1 + length)[~hit], stop[~hit]
    out[rows] = NONE
    return out


def _chosen_h2(octets: Octets, place: Int64, size: Int64) -> tuple[Int64, Bool]:
    """(1, 0 or NONE as in ``ServerHellos.h2``, whether the extension holds exactly one name, or is absent)."""
    h2 = np.full(len(place), NONE, np.int64)
    good = np.ones(len(place), np.bool_)
    rows = np.flatnonzero(place != NONE)
    if not rows.size:
        return h2, good
    length = octets.column(place[rows] + 2, OCTET)
    first = octets.column(place[rows] + 3, BIG16)
    grease = (length == 2) & (first & 0x0F0F == 0x0A0A)
    good[rows] = (size[rows] == length + 3) & (length >= 2) & ~grease
    h2[rows] = first == _H2
    return h2, good
