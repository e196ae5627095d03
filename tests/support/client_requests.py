"""Requests as a client saw them, for tests."""

from __future__ import annotations

from typing import Any

from netdiag.records.recording import ClientRequest


def request(id: int, **fields: Any) -> ClientRequest:
    """One on connection 0 that ended at 100 ns; any field may be given."""
    plain: dict[str, Any] = {
        "call_id": id,
        "attempt": 0,
        "arm": "h1",
        "trial": 1,
        "connection_id": 0,
        "stream_id": None,
        "method": "GET",
        "url": "https://host.test/",
        "authority": "host.test",
        "path": "/",
        "reused": False,
        "submitted_at": 0,
        "ended_at": 100,
    }
    return ClientRequest(id=id, **(plain | fields))
