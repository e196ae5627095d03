"""``python -m netdiag.lab.inside [--resolver FILE] -- COMMAND …``: become COMMAND, ending with the parent, with another resolv.conf.

The bind mount lives in a mount namespace of this process alone, so nothing outside changes and nothing is left behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000


def main(arguments: list[str]) -> None:
    """Never returns: the process becomes the command, or exits with 69 and the reason on standard error."""
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() == 1:  # the parent was gone before the line above
        sys.exit(1)
    if options[:1] == ["--resolver"]:
        _bind(libc, options[1], os.path.realpath("/etc/resolv.conf"))
    os.execvp(command[0], command)


def _bind(libc: ctypes.CDLL, source: str, target: str) -> None:
    failed = (
        libc.unshare(_CLONE_NEWNS)
        or libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
        or libc.mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND, None)
    )
    if failed:
        sys.stderr.write(f"cannot replace {target}: {os.strerror(ctypes.get_errno())}\n")
        sys.exit(69)


if __name__ == "__main__":
    main(sys.argv[1:])
