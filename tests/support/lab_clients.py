"""Independent clients of the lab's server."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from netdiag.lab import LabServer

CHAT = "/v1/chat/completions"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: no second client")


def curl(server: LabServer, path: str, *options: str) -> subprocess.CompletedProcess[str]:
    """curl, trusting the server's authority."""
    command = ["curl", "-sS", "--cacert", server.ca_file, "--noproxy", "*", *options, server.url + path]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
