"""The testbed of network namespaces, for tests that make one call on the client's side of a path."""

from __future__ import annotations

import sys

import pytest

from netdiag.lab.live import Target
from netdiag.lab.namespaces import why_not

_REASON = why_not()
needs_namespaces = [
    pytest.mark.netns,
    pytest.mark.skipif(_REASON is not None, reason=f"no network namespaces here: {_REASON}"),
]


def probe_command(target: Target, *options: str) -> list[str]:
    """``netdiag probe --json`` of a target."""
    assert target.ca_file is not None
    command = [sys.executable, "-m", "netdiag", "probe", target.url, "-X", target.method, "--cacert", target.ca_file]
    return [*command, "--json", *options]
