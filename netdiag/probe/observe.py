"""An instrument for an application's own client: its requests recorded from inside, by the same backend that the probe uses.

Works with ``httpx`` and with its successor ``httpx2``, which share their shape: a client has transports, a transport has a pool of
``httpcore`` (or ``httpcore2``), a pool has a network backend. None of these has a public door, so this file knows their private names; all
of them are here, and tests hold them fast.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from netdiag.errors import UsageError
from netdiag.probe import kernel
from netdiag.probe.async_backend import AsyncRecordingBackend
from netdiag.probe.backend import RecordingBackend
from netdiag.probe.observation import Observation
from netdiag.probe.resolver import Resolver
from netdiag.probe.tls import KeyLog
from netdiag.probe.tls_offer import TlsOffer
from netdiag.probe.translated import translated
from netdiag.probe.watched import watched_async, watched_sync


@contextmanager
def instrumented(client: Any, keylog: KeyLog) -> Iterator[Observation]:
    """Record what the client does inside the block. Connections that it had open before are used as they are, and not recorded.

    ``client`` is an ``httpx.Client``, ``httpx.AsyncClient`` or one of httpx2. Raises ``UsageError`` for anything else.
    """
    observation = Observation(keylog)
    offer = TlsOffer(protocol=None)
    backend = RecordingBackend(observation.recorder, Resolver(observation.clock), offer, allow_link_local=True)
    undo: list[Callable[[], None]] = []
    try:
        with kernel.stamping():
            for holder, name, transport in _transports(client):
                undo += _record_pool(transport, backend, observation)
                _set(holder, name, _watching(transport, observation), undo)
            yield observation
    finally:
        for step in reversed(undo):
            step()
        observation.recorder.stop()


def _transports(client: Any) -> list[tuple[Any, Any, Any]]:
    """(holder, key or attribute, transport) of every way that the client may take."""
    if not hasattr(client, "_transport") or not hasattr(client, "_mounts"):
        raise UsageError(f"{type(client).__name__} is no client of httpx or httpx2")
    found = [(client, "_transport", client._transport)]
    found += [
        (client._mounts, pattern, transport) for pattern, transport in client._mounts.items() if transport is not None
    ]
    usable = [row for row in found if hasattr(row[2], "_pool") and hasattr(row[2]._pool, "_network_backend")]
    if not usable:
        raise UsageError("the client's transport does not go through httpcore, so there is nothing to record")
    return usable


def _record_pool(transport: Any, backend: RecordingBackend, observation: Observation) -> list[Callable[[], None]]:
    pool, undo = transport._pool, list[Callable[[], None]]()
    core = sys.modules[type(pool).__module__.partition(".")[0]]
    is_async = hasattr(pool, "handle_async_request")
    recording = AsyncRecordingBackend(backend) if is_async else backend
    _set(pool, "_network_backend", translated(recording, core, is_async=is_async), undo)
    try:
        _set(pool._ssl_context, "keylog_filename", pool._ssl_context.keylog_filename, undo)
        observation.keylog.attach(pool._ssl_context)
    except (AttributeError, TypeError):
        observation.unopened += 1
    return undo


def _set(holder: Any, name: Any, value: Any, undo: list[Callable[[], None]]) -> None:
    """Set an attribute or an item, and note how to set it back."""
    if isinstance(holder, dict):
        before = holder[name]
        holder[name] = value
        undo.append(lambda: holder.__setitem__(name, before))
    else:
        before = getattr(holder, name)
        setattr(holder, name, value)
        undo.append(lambda: setattr(holder, name, before))


def _watching(transport: Any, observation: Observation) -> Any:
    """The transport with every request watched; a subclass of the client library's own base, since it asks for that."""
    library = sys.modules[type(transport).__module__.partition(".")[0]]
    watched = watched_async if hasattr(transport, "handle_async_request") else watched_sync
    return watched(transport, observation, library)
