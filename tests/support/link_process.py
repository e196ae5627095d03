"""The link process of the lab over a topology of network namespaces."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path as FilePath

from netdiag.lab.emulator import LinkRow, read_log
from netdiag.lab.namespaces import Topology
from netdiag.lab.path import Path


@contextlib.contextmanager
def link(top: Topology, folder: FilePath, **path: object) -> Iterator[list[LinkRow]]:
    """The link process over ``top``; yields a list that holds the log's rows afterwards."""
    config, log = folder / "path.json", folder / "link.log"
    config.write_text(json.dumps(Path.from_mapping(path).to_mapping()))
    command = [sys.executable, "-m", "netdiag.lab.emulator", str(config), str(log), "c", "s"]
    process = top.link.start(command, stdout=subprocess.PIPE)
    rows: list[LinkRow] = []
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield rows
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        process.stdout.close()
    rows.extend(read_log(log))
