"""A built scenario as a capture with the truth beside it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path

from netdiag.errors import OutputError
from netdiag.lab.builder.build import Built, build
from netdiag.lab.builder.capture import frames_at_tap, write_capture
from netdiag.lab.builder.derive import truth_of
from netdiag.lab.builder.truth import Truth
from netdiag.lab.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Recorded:
    """The octets of a pcapng and what is true about them."""

    capture: bytes
    truth: Truth
    keylog: bytes
    """All session secrets, whether or not the capture holds them."""


def record(scenario: Scenario) -> Recorded:
    """Build a scenario and capture it."""
    return record_built(build(scenario))


def record_built(built: Built) -> Recorded:
    """Capture what was built; the scenario's ``[capture]`` decides how."""
    settings = built.scenario.capture
    frames = frames_at_tap(built.sightings, settings)
    truth = truth_of(built, frames)
    file = io.BytesIO()
    write_capture(file, frames, settings, built.keylog, _comments(truth))
    return Recorded(file.getvalue(), truth, built.keylog.octets)


def _comments(truth: Truth) -> dict[int, str]:
    out: dict[int, str] = {}
    for index, exchange in enumerate(truth.exchanges):
        what = f"exchange {index}: {exchange.method} {exchange.path}"
        if exchange.request_packet is not None:
            out[exchange.request_packet] = f"{what} begins"
        if exchange.response_packet is not None:
            out[exchange.response_packet] = f"{what}: response {exchange.status} begins"
    return out


def write(scenario: Scenario, folder: Path) -> tuple[Path, Path]:
    """``NAME.pcapng`` and ``NAME.truth.json`` in a folder; returns both. Raises OutputError."""
    recorded = record(scenario)
    capture, side_file = folder / f"{scenario.name}.pcapng", folder / f"{scenario.name}.truth.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        capture.write_bytes(recorded.capture)
        side_file.write_text(json.dumps(recorded.truth.to_dict(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write: {error.strerror}", path=str(error.filename or folder)) from None
    return capture, side_file
