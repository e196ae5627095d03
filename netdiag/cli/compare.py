"""``netdiag compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from netdiag.cli.console import common_options
from netdiag.cli.durations import MILLISECONDS

if TYPE_CHECKING:
    from netdiag.records.statistics import Comparison
    from netdiag.stats.samples import Sample


@click.command(epilog="Exit codes: 0 ok, 64 usage, or nothing that could be compared, 65 input.")
@click.argument("first", type=click.Path())
@click.argument("second", required=False, type=click.Path())
@click.option("--keylog", type=click.Path(dir_okay=False), help="TLS session keys, for capture files.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="For capture files: host=, port=, sni=, time=FROM..TO; repeatable.",
)
@click.option(
    "--arm", "arms", multiple=True, metavar="NAME", help="Only these arms; the first is the baseline. Repeatable."
)
@click.option(
    "--margin",
    type=MILLISECONDS,
    metavar="MS",
    help="Smallest difference that matters.  [default: 20 ms or 5 % of the baseline]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparisons as JSON.")
@common_options
def compare(
    first: str,
    second: str | None,
    keylog: str | None,
    filters: tuple[str, ...],
    arms: tuple[str, ...],
    margin: float | None,
    as_json: bool,
) -> None:
    """Which is faster, by how much, with what certainty: two arms of one run, two runs, or two capture files.

    FIRST and SECOND are results (-o NAME.json of probe or analyze, --jsonl of watch) or captures. With one of them its arms are compared, pair by pair;
    with two, calls of the same kind (cold or reused, by protocol) that both have.

    \b
    netdiag probe https://example.com/ -n 20 -o run.json
    netdiag compare run.json
    netdiag compare monday.json tuesday.json
    netdiag compare fast.pcapng slow.pcapng --filter host=api.example.com

    Verdicts follow from the 95 % interval of the typical difference (Hodges-Lehmann) and the margin; "cannot tell" is one of them.
    """
    from netdiag.cli.console import ascii_only, show, width_of
    from netdiag.errors import UsageError
    from netdiag.export.json import plain
    from netdiag.export.terminal.comparison import comparison_lines

    margin_ns = None if margin is None else round(margin * 1e6)
    a = _samples(first, keylog, filters)
    rows = _arms(a, arms, margin_ns) if second is None else _runs(a, _samples(second, keylog, filters), arms, margin_ns)
    if not rows:
        sides = [a] if second is None else [a, _samples(second, keylog, filters)]
        raise UsageError(
            f"nothing to compare: that takes at least two counted calls on both sides, and there are {_counts(sides)}",
            advice="netdiag probe URL -n 20 -o run.json makes pairs of calls over two protocols.",
        )
    if as_json:
        import json

        click.echo(json.dumps([plain(row) for row in rows], indent=2))
    else:
        show(comparison_lines(rows, width=width_of(), ascii_only=ascii_only()))


def _counts(sides: list[list[Sample]]) -> str:
    """``3 of http/1.1, against 1 of h2``."""
    from netdiag.stats.samples import by_arm

    told = (", ".join(f"{len(rows)} of {arm}" for arm, rows in by_arm(side).items()) or "none" for side in sides)
    return ", against ".join(told)


def _samples(path: str, keylog: str | None, filters: tuple[str, ...]) -> list[Sample]:
    text = _json_text(path)
    if text is None:
        return _from_capture(path, keylog, filters)
    from netdiag.errors import CaptureFileError, UsageError
    from netdiag.stats.samples import samples_of_document, samples_of_lines

    if filters:
        raise UsageError("--filter is for capture files; a result holds what its run chose")
    rows = _rows(path, text)
    try:
        return samples_of_document(rows[0]) if "exchanges" in rows[0] else samples_of_lines(rows)
    except (KeyError, TypeError, AttributeError) as error:
        raise CaptureFileError(f"not a result of netdiag as the schema says: {error!r}", path=path) from error


def _json_text(path: str) -> str | None:
    """What is in the file; None when it does not begin as JSON does."""
    from pathlib import Path

    from netdiag.errors import CaptureFileError

    try:
        with Path(path).open("rb") as file:
            if not file.read(64).lstrip().startswith(b"{"):
                return None
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CaptureFileError(f"cannot be read: {error.strerror}", path=path) from error
    except ValueError as error:
        raise CaptureFileError(f"no JSON: {error}", path=path) from error


def _rows(path: str, text: str) -> list[dict[str, Any]]:
    """One document of a run, or the exchanges of JSON lines."""
    import json

    from netdiag.errors import CaptureFileError
    from netdiag.export.json import EXCHANGE_SCHEMA_NAME, SCHEMA_NAME, SCHEMA_VERSION

    try:
        rows = [json.loads(text)]
    except ValueError as error:
        rows = _lines(text)
        if not rows:
            raise CaptureFileError(f"no JSON: {error}", path=path) from error
    kinds = {(row.get("schema"), row.get("schema_version")) if isinstance(row, dict) else None for row in rows}
    known = [(name, SCHEMA_VERSION) for name in (SCHEMA_NAME, EXCHANGE_SCHEMA_NAME)]
    if kinds not in ({known[0]}, {known[1]}) or (kinds == {known[0]} and len(rows) > 1):
        raise CaptureFileError("no result of netdiag (schema netdiag/analysis, version 1)", path=path)
    return rows


def _lines(text: str) -> list[dict[str, Any]]:
    """JSON lines; empty where one of them is none. The last may be cut: whoever wrote it was ended."""
    import json

    lines = [line for line in text.split("\n") if line.strip()]
    rows = []
    for place, line in enumerate(lines):
        try:
            rows.append(json.loads(line))
        except ValueError:
            return rows if place == len(lines) - 1 else []
    return rows


def _from_capture(path: str, keylog: str | None, filters: tuple[str, ...]) -> list[Sample]:
    from netdiag.analysis.selection import select
    from netdiag.cli.inputs import parse_filters
    from netdiag.cli.reading import read
    from netdiag.stats.distribution import statistics
    from netdiag.stats.samples import samples

    analysis = read(path, keylog, in_full=True)
    chosen = parse_filters(filters).filter(analysis.source.first_at)
    part = select(analysis, chosen) if chosen else analysis
    return samples(part.exchanges, statistics(part.exchanges), analysis.connections)


def _arms(rows: list[Sample], wanted: tuple[str, ...], margin_ns: int | None) -> list[Comparison]:
    """Arms of one run against the first: paired where they have rounds, else as two samples."""
    from netdiag.stats.arms import compare_samples
    from netdiag.stats.comparison import adjust
    from netdiag.stats.samples import by_arm

    arms = by_arm(rows)
    names = list(wanted) or sorted(arms)
    _check(names, arms)
    paired = all(row.trial is not None for row in rows)
    found: list[Comparison] = []
    for other in names[1:]:
        given = {} if paired else {"name_a": names[0], "name_b": other}
        found += compare_samples(arms[names[0]], arms[other], margin_ns=margin_ns, **given)
    return list(adjust(found))


def _runs(a: list[Sample], b: list[Sample], wanted: tuple[str, ...], margin_ns: int | None) -> list[Comparison]:
    """Two runs, arm by arm; cold and reused calls are arms of their own and never mix."""
    from netdiag.stats.arms import compare_samples
    from netdiag.stats.comparison import adjust
    from netdiag.stats.samples import by_arm

    left, right = by_arm(a), by_arm(b)
    names = list(wanted) or [name for name in sorted(left) if name in right]
    _check(names, {**left, **right})
    pairs = [(left.get(n, []), right.get(n, []), f"first: {n}", f"second: {n}") for n in names]
    found = [
        c
        for x, y, name_a, name_b in pairs
        for c in compare_samples(x, y, margin_ns=margin_ns, name_a=name_a, name_b=name_b)
    ]
    return list(adjust(found))


def _check(names: list[str], arms: dict[str, list[Sample]]) -> None:
    from netdiag.errors import UsageError

    for name in names:
        if name not in arms:
            raise UsageError(f"there is no arm {name!r}; there are {', '.join(arms) or 'none'}")
