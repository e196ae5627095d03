"""The front door: a source goes through the analysis and comes out as an ``Analysis``. Wiring only; nothing else in netdiag does it."""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from netdiag.analysis.gather import gather
from netdiag.analysis.pipeline import Analysed, analyse
from netdiag.analysis.rows import Rows
from netdiag.capture.source import CaptureFile, open_capture
from netdiag.capture.spill import Spill
from netdiag.collection import seldom
from netdiag.errors import KeyLogError, UsageError
from netdiag.parallel import default_jobs, map_threaded
from netdiag.protocols.tls.keylog import KeyLog, merge_keylogs
from netdiag.records.analysis import Analysis
from netdiag.records.source import EvidenceLevel, Secrets, Source
from netdiag.stats.distribution import statistics
from netdiag.wire.codes import link_type_name
from netdiag.wire.octets import LARGE_BYTES
from netdiag.wire.tables import Window

if TYPE_CHECKING:
    from netdiag.probe.command import CommandConfig, Observation
    from netdiag.probe.measure import Measurement
    from netdiag.probe.plan import ProbeConfig
    from netdiag.records.command import CommandRun
    from netdiag.records.lanes import ExchangeLanes
    from netdiag.records.verification import Verification

__all__ = ["analyze", "annotate", "aprobe", "lanes", "observe", "open_capture", "probe", "run_command"]

Progress = Callable[[int, int | None], None]
"""Called with the octets of the file read so far and its size."""


def analyze(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    keylog: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    jobs: int | None = None,
    in_full: bool = False,
) -> Analysis:
    """Split every request of a capture file into its phases.

    ``path`` is a file name, ``-`` for standard input, or an open binary file. ``keylog`` is a TLS key log (SSLKEYLOGFILE format); secrets
    embedded in a pcapng are used in any case. Raises ``CaptureFileError`` when the file is no capture netdiag reads and ``KeyLogError``
    when the key log cannot be opened; damaged traffic is in the result's ``anomalies``. ``jobs`` threads share the work on a large
    capture (by default as many as there are processors, four at most, and one where memory is dear); the result is the same. So it is with
    ``in_full``, for whoever is going to ask for every connection and exchange: what these say is then worked out at once.
    """
    given = None if keylog is None else _read_keylog(keylog)
    return _with_retries(_analyze(path, given, progress, jobs, in_full=in_full))


def probe(
    config: ProbeConfig | str | Sequence[str],
    *,
    progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
    **options: Any,
) -> Analysis:
    """Make requests while capturing, and split every one of them into its phases.

    ``config`` is a whole plan, or one or several URLs with the plan's other fields as keywords. ``progress`` is called with (requests
    made, requests planned); ``stop`` ends the run between two requests. Works inside a running event loop too, which it blocks meanwhile
    (``aprobe`` does not). Raises ``UsageError`` for what cannot be tried, and ``Unavailable`` when a capture backend that was asked for
    by name does not work; what the network and the servers do is in the result.
    """
    from netdiag.probe.measure import measured

    with measured(_plan(config, options), progress=progress, stop=stop) as measurement:
        return _concluded_probe(_joined(measurement))


async def aprobe(
    config: ProbeConfig | str | Sequence[str],
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Analysis:
    """As ``probe``, in a worker thread. Cancelling it ends the run after the request in flight."""
    import asyncio

    stop = threading.Event()
    try:
        return await asyncio.to_thread(probe, config, progress=progress, stop=stop, **options)
    finally:
        stop.set()


def run_command(config: CommandConfig | Sequence[str], **options: Any) -> CommandRun:
    """Run a program under a capture and analyse its connections, with the session keys that its TLS library logs.

    ``config`` is a whole plan, or the command's words with the plan's other fields as keywords. The program has this process's input and
    output. Its connections are known by its sockets while it runs and by its keys; where neither tells, all traffic is kept and the note
    says so. Raises ``ToolMissing`` when the program cannot be started and ``Unavailable`` when nothing may capture here.
    """
    from netdiag.probe.command import CommandConfig, observed
    from netdiag.records.command import CommandRun

    plan = config if isinstance(config, CommandConfig) else CommandConfig(command=tuple(config), **options)
    with observed(plan) as observation:
        return CommandRun(
            analysis=_analysed_command(observation),
            exit_code=observation.exit_code,
            started_at=observation.started_at,
            ended_at=observation.ended_at,
        )


def lanes(
    path: str | os.PathLike[str],
    exchange_id: int,
    *,
    keylog: str | os.PathLike[str] | None = None,
    analysis: Analysis | None = None,
) -> ExchangeLanes:
    """The packets, TLS records, messages and holes behind one exchange of a capture file, for ``plot.lanes``.

    ``analysis`` is the file's, where it is there already. Raises ``UsageError`` when there is no such exchange (or the file is standard
    input, which cannot be read again), and what ``analyze`` raises.
    """
    from netdiag.analysis.behind import behind
    from netdiag.records.labels import exchange_of

    if os.fspath(path) == "-":
        raise UsageError("standard input cannot be read again for its packets; give a file")
    whole = analyze(path, keylog=keylog) if analysis is None else analysis
    exchange = exchange_of(whole, exchange_id)
    if exchange is None:
        raise UsageError(f"there is no request {exchange_id}: there are {len(whole.exchanges)}, numbered from 0")
    with open_capture(path) as capture:
        return behind(gather(capture.windows()), whole, exchange)


def annotate(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    analysis: Analysis,
    keylog: str | os.PathLike[str] | None = None,
    only_its_connections: bool = False,
    embed_keys: bool = False,
) -> int:
    """Copy a capture to ``target`` (pcapng, 0600) with a comment on every packet in which a phase begins or ends; how many packets.

    ``analysis`` is the file's, or a part of it: with ``only_its_connections`` its packets alone are copied. ``embed_keys`` writes the
    session keys of ``keylog`` and of the original into the copy, which is then as secret as the traffic. Raises ``OutputError``, and
    ``UsageError`` for standard input, which cannot be read again.
    """
    from netdiag.analysis.behind import frames_of
    from netdiag.capture.annotate import copy
    from netdiag.export.comments import comments
    from netdiag.outfile import replacing

    if os.fspath(path) == "-":
        raise UsageError("standard input cannot be read again for its packets; give a file")
    with open_capture(path) as capture:
        # After this the capture's own secrets are known, too.
        gathered = gather(capture.windows())
        wanted = frames_of(gathered, analysis) if only_its_connections else None
        given = [] if keylog is None else [_read_keylog(keylog)]
        keys = b"\n".join([*given, *capture.secrets]) if embed_keys else b""
        with replacing(target, mode=0o600) as file:
            return copy(capture, file, comments=comments(analysis), wanted=wanted, keylog=keys)


def verify(path: str | os.PathLike[str], *, keylog: str | os.PathLike[str] | None = None) -> Verification:
    """What tshark says of a capture file beside what netdiag says, field by field.

    Raises what ``analyze`` raises, ``ToolMissing`` without tshark, and ``UsageError`` for standard input, which cannot be read twice.
    """
    from netdiag.verify import compare, facts, tshark

    if os.fspath(path) == "-":
        raise UsageError("standard input cannot be read once more by tshark; give a file")
    ours = facts.facts_of(analyze(path, keylog=keylog, in_full=True))
    theirs = tshark.witness(os.fspath(path), keylog=None if keylog is None else os.fspath(keylog))
    return compare.verify(ours, theirs, witness=f"tshark {tshark.version()}")


class Observed:
    """The result of ``observe``; ``analysis`` is None until its block has ended."""

    def __init__(self) -> None:
        self.analysis: Analysis | None = None

    def __repr__(self) -> str:
        return f"<Observed {self.analysis!r}>"


@contextmanager
def observe(client: Any, *, capture: str = "auto", interface: str | None = None) -> Iterator[Observed]:
    """Record what an application's own HTTP client does inside the block, and analyse it when the block ends.

    ``client`` is an ``httpx.Client`` or ``httpx.AsyncClient``, or one of ``httpx2`` (what current OpenAI and Anthropic libraries use: their
    clients keep theirs in ``_client``). It works as before, with its own settings. Raises ``UsageError`` for anything else.
    """
    from netdiag.probe.measure import observed_client

    with observed_client(client, capture=capture, interface=interface) as session:
        found = Observed()
        try:
            yield found
        finally:
            found.analysis = _concluded_probe(_with_retries(_joined(session.conclude())))


def _plan(config: ProbeConfig | str | Sequence[str], options: dict[str, Any]) -> ProbeConfig:
    from netdiag.probe.plan import ProbeConfig

    if isinstance(config, ProbeConfig):
        return dataclasses.replace(config, **options)
    return ProbeConfig(urls=(config,) if isinstance(config, str) else tuple(config), **options)


def _joined(measurement: Measurement) -> Analysis:
    from netdiag.analysis.join import join, without_packets
    from netdiag.analysis.matching import ours

    recording, captured = measurement.recording, measurement.captured
    if captured is None:
        return without_packets(recording, _source_without_packets(measurement))
    analysis = _analyze(captured.path, recording.keylog, None, in_full=True)
    source = dataclasses.replace(
        analysis.source,
        kind="probe",
        path=measurement.saved,
        dropped_packets=captured.counts.dropped,
        capture_backend=captured.backend,
        note=measurement.note,
        verification=recording.verification,
        unsupported=recording.unsupported,
    )
    return join(ours(dataclasses.replace(analysis, source=source), recording), recording)


def _with_retries(analysis: Analysis) -> Analysis:
    """With the calls that an application's client library made in several attempts. (A probe knows its own.)"""
    from netdiag.analysis.retries import with_inferred_calls

    changed, calls = with_inferred_calls(analysis.exchanges, analysis.calls)
    exchanges = analysis.exchanges
    if changed and isinstance(exchanges, Rows):
        for place, exchange in changed.items():
            exchanges.put(place, exchange)
    elif changed:
        exchanges = tuple(changed.get(place, exchange) for place, exchange in enumerate(exchanges))
    return dataclasses.replace(analysis, exchanges=exchanges, calls=calls)


def _concluded_probe(joined: Analysis) -> Analysis:
    from netdiag.stats.arms import compare_arms

    rows = statistics(joined.exchanges, joined.connections)
    return dataclasses.replace(
        joined, statistics=rows, comparisons=compare_arms(joined.exchanges, rows, joined.connections)
    )


def _analysed_command(observation: Observation) -> Analysis:
    from netdiag.analysis.matching import of_program
    from netdiag.analysis.selection import Filter, select

    captured = observation.captured
    analysis = _with_retries(_analyze(captured.path, observation.keylog, None, in_full=True))
    randoms = {random.hex() for random in _all_keys(observation.keylog, []).secrets}
    own = of_program(analysis.connections, observation.connections, randoms)
    known = bool(observation.connections or randoms)
    chosen = select(analysis, Filter(connections=own or (-1,))) if known else analysis
    notes = (
        *captured.notes,
        *(
            ()
            if known or not analysis.connections
            else ("the program's own connections could not be told apart: this is all traffic of that time",)
        ),
    )
    source = dataclasses.replace(
        analysis.source,
        kind="probe",
        path=observation.saved,
        dropped_packets=captured.counts.dropped,
        capture_backend=captured.backend,
        note="; ".join(notes) or None,
    )
    return dataclasses.replace(chosen, source=source, statistics=statistics(chosen.exchanges))


def _source_without_packets(measurement: Measurement) -> Source:
    return Source(
        kind="probe",
        path=None,
        format=None,
        packets=0,
        link_types=(),
        first_at=None,
        last_at=None,
        timestamp_resolution_ns=None,
        dropped_packets=None,
        evidence_level=measurement.level,
        note=measurement.note,
        verification=measurement.recording.verification,
        unsupported=measurement.recording.unsupported,
    )


def _analyze(
    path: str | os.PathLike[str] | BinaryIO,
    given: bytes | None,
    progress: Progress | None,
    jobs: int | None = None,
    *,
    in_full: bool = False,
) -> Analysis:
    with open_capture(path) as capture, seldom():
        secrets: list[KeyLog] = []

        def keys() -> KeyLog | None:
            secrets.append(_all_keys(given, capture.secrets))
            return secrets[0] or None

        if jobs is None:  # in a large file they would gain little, and each has memory of its own
            jobs = default_jobs() if capture.size_bytes < LARGE_BYTES else 1
        run = functools.partial(map_threaded, jobs=jobs)
        found = analyse(
            _reported(capture, progress),
            keylog=keys,
            run=run,
            storage=Spill(capture.buffer),
            size_bytes=capture.size_bytes,
            in_full=in_full,
        )
        return _conclude(capture, found, secrets[0] if secrets else KeyLog())


def check_keylog(path: str | os.PathLike[str]) -> None:
    """Raises ``KeyLogError`` when the key log cannot be opened, before any work is done."""
    _read_keylog(path)


def _read_keylog(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise KeyLogError(f"the key log cannot be read: {error.strerror}", path=os.fspath(path)) from error


def _all_keys(given: bytes | None, embedded: list[bytes]) -> KeyLog:
    texts = [] if given is None else [("key log", given)]
    return merge_keylogs([*texts, *(("embedded secrets", text) for text in embedded)])


def _reported(capture: CaptureFile, progress: Progress | None) -> Iterator[Window]:
    for window in capture.windows():
        yield window
        if progress is not None:
            progress(window.end_offset, capture.size_bytes)


def _conclude(capture: CaptureFile, found: Analysed, keys: KeyLog) -> Analysis:
    return Analysis(
        source=_source(capture, found, keys),
        connections=found.connections,
        resolutions=found.resolutions,
        exchanges=found.exchanges,
        statistics=statistics(found.exchanges),
        anomalies=(*capture.anomalies, *keys.anomalies, *found.anomalies),
    )


def _source(capture: CaptureFile, found: Analysed, keys: KeyLog) -> Source:
    gathered = found.gathered
    return Source(
        kind="file",
        path=capture.path,
        format=capture.format,
        packets=capture.packets,
        link_types=tuple(link_type_name(value) for value in gathered.link_types),
        first_at=gathered.first_at,
        last_at=gathered.last_at,
        timestamp_resolution_ns=capture.timestamp_resolution_ns,
        dropped_packets=capture.dropped_packets,
        cut_at_byte=capture.cut_at_byte,
        evidence_level=EvidenceLevel.L3 if found.opened else EvidenceLevel.L2,
        secrets=Secrets(entries=keys.entries, used=found.opened),
        not_decoded=gathered.not_decoded,
    )
