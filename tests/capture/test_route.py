"""Routes are asked of the kernel; name servers of resolv.conf."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from netdiag.capture.route import interface_to, interfaces_to, is_loopback, loopback_name, name_servers

linux = pytest.mark.skipif(sys.platform != "linux", reason="rtnetlink is Linux only")


@linux
def test_loopback() -> None:
    assert interface_to("127.0.0.1") == "lo" == loopback_name()
    assert interface_to("127.200.3.4") == "lo"
    assert is_loopback("lo")


@linux
@pytest.mark.peers
@pytest.mark.skipif(shutil.which("ip") is None, reason="ip (iproute2) is not installed")
@pytest.mark.parametrize("address", ["127.0.0.1", "8.8.8.8", "192.0.2.200", "2001:4860:4860::8888", "::1"])
def test_agrees_with_iproute2(address: str) -> None:
    done = subprocess.run(["ip", "route", "get", address], check=False, capture_output=True, text=True, timeout=5)
    words = done.stdout.split()
    expected = words[words.index("dev") + 1] if done.returncode == 0 and "dev" in words else None
    assert interface_to(address) == expected


def test_one_address_per_interface() -> None:
    assert interfaces_to(["127.0.0.1", "127.0.0.2"]) == {loopback_name(): "127.0.0.1"}
    assert interfaces_to([]) == {}


def test_name_servers(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text(
        "# comment\nsearch lab\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\nnameserver nonsense\noptions x\n"
    )
    assert name_servers(str(file)) == ("127.0.0.53", "fe80::1")
    assert name_servers(str(tmp_path / "absent")) == ()
