"""How long a probe waits: between its calls, so that one does not disturb the next, and after a server refused one."""

from __future__ import annotations

GAP_S = 0.25
"""Between two calls, at least."""
GAP_ROUND_TRIPS = 5
"""Where so many of the first connection's round trips take longer than ``GAP_S``: closing handshakes and the last call's tail are over by
then."""
UNASKED_PAUSE_S = 1.0
"""After a refusal that names no time; and up to as much again by chance."""
LONGEST_ASKED_S = 60
"""A server that asks for a longer pause ends the run."""
