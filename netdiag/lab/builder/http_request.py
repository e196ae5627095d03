"""What both of the modelled client's protocols share: a request's octets, and the pauses in writing and reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from netdiag.lab.answers import KNOB_HEADER
from netdiag.lab.builder.marks import ExchangeMarks
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.link import Sent
from netdiag.lab.scenario import Request

CONTINUE_PATIENCE_MS = 1000.0
"""How long the client waits for 100 before it sends the body anyway (RFC 9110 section 10.1.1; curl's default)."""
USER_AGENT = "netdiag-lab-client"
Note = Callable[[ExchangeMarks], None]


def body_of(request: Request) -> bytes:
    """JSON of exactly ``body_bytes`` octets (or as small as it can be)."""
    if not request.body_bytes:
        return b""
    document = {"model": "lab-1", "stream": request.answer.stream is not False, "prompt": ""}
    bare = len(json.dumps(document))
    document["prompt"] = "a" * max(0, request.body_bytes - bare)
    return json.dumps(document).encode()


def header_pairs(request: Request) -> list[tuple[str, str]]:
    """The request's own fields; its knobs travel in one of them, as with the real server."""
    pairs = [("user-agent", USER_AGENT), ("accept", "*/*")]
    if request.body_bytes:
        pairs.append(("content-type", "application/json"))
    if request.knobs:
        pairs.append((KNOB_HEADER, ",".join(f"{k}={_text(v)}" for k, v in request.knobs.items() if k != "schedule")))
    if request.expect_continue:
        pairs.append(("expect", "100-continue"))
    for line in request.headers:
        name, _, value = line.partition(":")
        pairs.append((name.strip().lower(), value.strip()))
    return pairs


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def write_pieces(request: Request, body: bytes, send: Callable[[bytes, bool], object]) -> list[Sent]:
    """Write a body evenly over ``body_ms``."""
    count = min(request.body_pieces, max(1, len(body)))
    edges = [len(body) * i // count for i in range(count + 1)]
    start, out = Stamp.now(), []
    for i in range(count):
        await until(start.after(ns(request.body_ms) * i // max(1, count - 1)))
        sent = send(body[edges[i] : edges[i + 1]], i == count - 1)
        out.append(await sent)  # type: ignore[misc]
    return out


@dataclass(slots=True)
class ReadPause:
    """Stops reading once, when so much of a body has come."""

    request: Request
    taken_bytes: int = 0
    done: bool = False

    async def after(self, size: int) -> None:
        """Another ``size`` octets have come: waits if this is where reading stops."""
        self.taken_bytes += size
        limit = self.request.read_pause_after
        if limit is not None and not self.done and self.taken_bytes >= limit:
            self.done = True
            await until(Stamp.now().after(ns(self.request.read_pause_ms)))
