"""What the user must fix, as one tree by phase. Bad traffic is never an exception: it becomes an ``Anomaly`` row.

NetdiagError
├── UsageError            64  impossible option or combination, unknown scenario key
├── CaptureFileError      65  the file cannot be read as a capture at all
│   ├── NotACapture       65  empty, text, a key log … : no capture of any kind
│   └── UnsupportedFormat 65  a capture or archive (ERF, ZIP …) of a format netdiag does not read
├── KeyLogError           65  the key log cannot be opened
├── Unavailable           69  something this machine lacks
│   ├── ToolMissing       69  dumpcap, tshark, an extra package
│   └── PrivilegeMissing  69  no right to capture, no namespaces
├── OutputError           73  a result cannot be written
└── ProbeError            75  no request could be made at all

Every error carries ``exit_code`` (sysexits) and, where they are known, ``path`` and ``offset``.
"""

from __future__ import annotations

from typing import ClassVar


class NetdiagError(Exception):
    """Base of everything netdiag raises on purpose: one clear sentence, and the way out in ``advice``."""

    exit_code: ClassVar[int] = 70
    code: ClassVar[str] = "error"

    def __init__(
        self, message: str, *, path: str | None = None, offset: int | None = None, advice: str | None = None
    ) -> None:
        """``path`` and ``offset`` (octets from the start of the file) say where; ``advice`` says what to do next."""
        super().__init__(message)
        self.message = message
        self.path = path
        self.offset = offset
        self.advice = advice

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        at = f" (at byte {self.offset})" if self.offset is not None else ""
        way_out = f"\n{self.advice}" if self.advice else ""
        return f"{where}{self.message}{at}{way_out}"


class UsageError(NetdiagError):
    """An option, a value or a scenario key that cannot be."""

    exit_code = 64
    code = "usage"


class CaptureFileError(NetdiagError):
    """The input cannot be read as a capture file at all (a damaged but recognisable file is analysed as far as it goes)."""

    exit_code = 65
    code = "capture-file"


READS = "netdiag reads pcap, pcapng and snoop, also compressed with gzip, zstd or lz4."
"""What to say next to somebody who gave something else."""


class NotACapture(CaptureFileError):
    """Something else than a capture. In a folder it is passed over: key logs and notes lie beside captures."""

    code = "not-a-capture"


class UnsupportedFormat(CaptureFileError):
    """A capture or an archive of a format that netdiag does not read."""

    code = "unsupported-format"


class KeyLogError(NetdiagError):
    """The key log file cannot be opened or is no text at all (single bad lines are anomalies)."""

    exit_code = 65
    code = "key-log"


class Unavailable(NetdiagError):
    """Something that this machine lacks."""

    exit_code = 69
    code = "unavailable"


class ToolMissing(Unavailable):
    """An external program or an optional package is not installed."""

    code = "tool-missing"


class PrivilegeMissing(Unavailable):
    """The operating system does not allow it: packet capture, namespaces."""

    code = "privilege-missing"


class OutputError(NetdiagError):
    """A result file cannot be created or written."""

    exit_code = 73
    code = "output"


class ProbeError(NetdiagError):
    """The probe could not make any request."""

    exit_code = 75
    code = "probe"
