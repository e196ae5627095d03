"""What goes into the record-length grammar and what comes out: sessions, the ends of their handshakes, turns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netdiag.plain import plain
from netdiag.wire.tables import Bool, Int32, Int64, Table

Int8 = NDArray[np.int8]


@plain(frozen=True, slots=True, kw_only=True)
class Sessions(Table):
    """What the hellos of each connection say, one row per connection with TLS records, in the order of their ids."""

    connection: Int32
    tls13: Bool
    finished_length: Int32
    """Record length of an encrypted Finished alone in its record (TLS 1.3); 0 when the cipher suite is not known."""
    overhead: Int32
    """Record length − content; NONE where it is not fixed (CBC) or not known."""
    h2: Int8
    """1 chosen, 0 not possible, NONE offered but the choice is encrypted."""
    server_hello_at: Int64
    """NONE when no ServerHello was captured: the handshake is not in the capture."""
    rtt_ns: Int64
    """Round trip to the server; 0 when not known."""


@plain(frozen=True, slots=True, kw_only=True)
class Ends(Table):
    """Where the handshake of each session ends for the client; rows as in ``Sessions``."""

    finished_at: Int64
    """NONE when it did not end, or is not in the capture."""
    earliest_at: Int64
    finished_row: Int64
    """Row of the client's Finished in the records; NONE."""
    packet: Int64
    exact: Bool
    """Record types tell (TLS 1.2); otherwise sizes do, or (``earliest_at`` < ``finished_at``) only bounds."""


@plain(frozen=True, slots=True, kw_only=True)
class Turns(Table):
    """One request and its answer as far as records tell, in order. NONE where that half was not seen."""

    session: Int32
    """Row in ``Sessions``."""
    request_first_at: Int64
    request_first_packet: Int64
    request_last_at: Int64
    request_last_packet: Int64
    request_earliest_at: Int64
    """Lower bound of ``request_last_at``: HTTP/2 records after the first may be other requests."""
    response_first_at: Int64
    response_first_packet: Int64
    response_earliest_at: Int64
    """Lower bound of ``response_first_at``."""
    response_latest_at: Int64
    response_last_at: Int64
    response_last_packet: Int64
    response_end_latest_at: Int64
    """Upper bound of ``response_last_at``: an empty DATA frame that ends a stream looks like a SETTINGS ACK."""
    request_bytes: Int64
    """Record lengths."""
    response_bytes: Int64
    separable: Bool
    """False when requests overlapped, so that this is several of them."""
    h2: Bool
    head_last_at: Int64
    """Last octet before the body was held back for 100 (Continue); this and what follows is NONE for all other requests."""
    head_last_packet: Int64
    continued_at: Int64
    continued_packet: Int64
    body_first_at: Int64
    body_first_packet: Int64


def no_turns() -> Turns:
    """No rows."""
    none = np.empty(0, np.int64)
    names = Turns.__dataclass_fields__
    special = {"session": none.astype(np.int32), "separable": none.astype(bool), "h2": none.astype(bool)}
    return Turns(**{name: special.get(name, none) for name in names})
