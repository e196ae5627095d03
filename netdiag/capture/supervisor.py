"""Runs one program until our standard input ends, then interrupts it, and copies what it writes into a file. Started by path, with
nothing but the standard library.

Whatever happens to netdiag, even a SIGKILL, the kernel closes its end of the pipe: so no capture process outlives it. (PR_SET_PDEATHSIG
would not do: it is cleared when a program with file capabilities, as dumpcap usually has, is executed.)

The copy is there because dumpcap hands packets to a pipe as soon as it has them, but to a file only twice a second.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

PATIENCE_S = 2.0
_LOOK_S = 0.05
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
_CHUNK_BYTES = 1 << 20


def main(path: str, command: list[str]) -> int:
    """The program's exit code; 128 + signal when a signal ended it."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    signal.signal(signal.SIGINT, lambda number, frame: None)
    source, sink = os.pipe()
    _enlarge(source)
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        child = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, sink, 1)])
    except OSError as error:
        os.write(2, f"{error.filename or command[0]}: {error.strerror}\n".encode())
        return 127
    os.close(sink)
    try:
        _copy_until_told(source, target, stop)
        return _end(child, source, target)
    except OSError as error:  # the disk is full, or a limit reached: the program has nowhere to write
        os.close(source)
        _end_at_once(child)
        os.write(2, f"{path}: {error.strerror}\n".encode())
        return 1


def _copy_until_told(source: int, target: int, stop: list[int]) -> None:
    """Until standard input ends, a SIGTERM comes, or the program closes its output."""
    while not stop:
        ready, _, _ = select.select([0, source], [], [], _LOOK_S)
        if source in ready and not _copy(source, target):
            return
        if 0 in ready:
            return


def _end(child: int, source: int, target: int) -> int:
    """Interrupt, and kill when that does not help in time; take what is still in the pipe."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
        patience_ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < patience_ends:
            if not select.select([source], [], [], 0.02)[0] or _copy(source, target):
                continue
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return 1


def _end_at_once(child: int) -> None:
    """Without its output, which nobody takes any more."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
        patience_ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < patience_ends:
            if os.waitpid(child, os.WNOHANG)[0]:
                return
            time.sleep(_LOOK_S)


def _copy(source: int, target: int) -> int:
    """One piece; 0 at the end."""
    if hasattr(os, "splice"):
        return os.splice(source, target, _CHUNK_BYTES)
    data = os.read(source, _CHUNK_BYTES)
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
    return len(data)


def _enlarge(pipe: int) -> None:
    """So that a slow disk does not make the program wait. Linux only."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]) & 0xFF)
