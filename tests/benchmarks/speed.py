"""Whole commands side by side, in turns: A B C, A B C, … so that a slow minute of the machine hits all alike.

    python -m tests.benchmarks.speed [FOLDER] [--rounds 5] [--scale 1.0] [--only many]

Prints, per file, the median wall and CPU seconds, packets/s, MB/s and peak memory of each command, and how many times netdiag's wall and CPU
time each took, pair by pair: on a busy machine only CPU seconds are worth anything. scapy and pyshark are timed on the first 20,000 packets
only, and so is netdiag beside them: nobody waits two hours for a table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.big_captures import make_all

_FIELDS = (  # noqa: SIM905  twenty-four quoted names read worse
    "frame.number frame.time_epoch ip.src ip.dst ipv6.src tcp.srcport tcp.dstport tcp.stream tcp.flags tcp.seq tcp.ack tcp.len "
    "tcp.window_size tcp.analysis.retransmission tcp.analysis.ack_rtt tls.record.content_type tls.handshake.type "
    "tls.handshake.extensions_server_name http.request.method http.request.uri http.response.code http2.headers.path http2.streamid dns.qry.name"
).split()  # fmt: skip


@dataclass
class Timing:
    """One command over the rounds."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)


def run(command: list[str], timing: Timing) -> None:
    """One run; output is thrown away. Peak memory is that of the largest process of the tree that the kernel accounts to the child; it
    cannot be told below this process's own, which the child begins as."""
    started = time.perf_counter()
    # As installed: compiled modules are kept.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, _, usage = os.wait4(process.pid, 0)
    timing.wall_s.append(time.perf_counter() - started)
    timing.cpu_s.append(usage.ru_utime + usage.ru_stime)
    timing.peak_mb.append(usage.ru_maxrss / 1024)


def commands(file: Path) -> dict[str, list[str]]:
    """What is compared on one file; programs that are not installed are left out (and said so by their absence)."""
    keys = file.with_suffix(".keys")
    with_keys = ["-o", f"tls.keylog_file:{keys}"] if keys.exists() else []
    own = [sys.executable, "-m", "netdiag", "analyze", str(file), *(["--keylog", str(keys)] if keys.exists() else [])]
    chosen = {
        "netdiag analyze": own,
        "netdiag analyze --jobs 1": [*own, "--jobs", "1"],
        "tshark -T fields": [
            "tshark",
            "-r",
            str(file),
            "-n",
            "-T",
            "fields",
            *with_keys,
            *(x for f in _FIELDS for x in ("-e", f)),
        ],
        "tcptrace -l -r -n": ["tcptrace", "-l", "-r", "-n", str(file)],
        "capinfos": ["capinfos", "-c", str(file)],
        "cat": ["cat", str(file)],
    }
    return {name: c for name, c in chosen.items() if shutil.which(c[0])}


def small_commands(file: Path) -> dict[str, list[str]]:
    """The Python rivals, on a short file."""
    scapy = f"from scapy.all import PcapReader\nfor p in PcapReader({str(file)!r}): pass"
    pyshark = f"import pyshark\nc = pyshark.FileCapture({str(file)!r}, keep_packets=False)\nfor p in c: pass\nc.close()"
    return {
        "netdiag analyze (20 k)": [sys.executable, "-m", "netdiag", "analyze", str(file)],
        "scapy PcapReader (20 k)": [sys.executable, "-c", scapy],
        "pyshark FileCapture (20 k)": [sys.executable, "-c", pyshark],
    }


def compare(title: str, chosen: dict[str, list[str]], file: Path, packets: int, rounds: int) -> None:
    """Run and print one table."""
    timings = {name: Timing() for name in chosen}
    for command in chosen.values():
        run([*command[:3], "--version"] if command[1:2] == ["-m"] else ["cat", str(file)], Timing())  # warm caches
    for _ in range(rounds):
        for name, command in chosen.items():
            run(command, timings[name])
    size_mb = file.stat().st_size / 1e6
    print(f"\n{title}: {packets:,} packets, {size_mb:,.0f} MB, median of {rounds}")
    print(f"{'':28s}{'wall s':>9s}{'CPU s':>9s}{'kpkt/s':>9s}{'MB/s':>9s}{'peak MB':>9s}{'× wall':>9s}{'× CPU':>9s}")
    ours = next(iter(timings.values()))
    for name, timing in timings.items():
        wall = statistics.median(timing.wall_s)
        row = f"{name:28s}{wall:9.2f}{statistics.median(timing.cpu_s):9.2f}{packets / wall / 1e3:9.0f}{size_mb / wall:9.0f}"
        ratios = (_ratio(timing.wall_s, ours.wall_s), _ratio(timing.cpu_s, ours.cpu_s))
        print(f"{row}{statistics.median(timing.peak_mb):9.0f}{ratios[0]:9.2f}{ratios[1]:9.2f}", flush=True)


def _ratio(theirs: list[float], ours: list[float]) -> float:
    return statistics.median(a / max(b, 1e-3) for a, b in zip(theirs, ours, strict=True))


def count_packets(file: Path) -> int:
    """By netdiag's own reader; the oracle tests hold it against capinfos."""
    from netdiag.capture.source import open_capture

    with open_capture(str(file)) as capture:
        return sum(len(window.packets) for window in capture.windows())


def first_packets(file: Path, out: Path, count: int) -> bool:
    """A short copy, by editcap; False where that is not installed."""
    if not shutil.which("editcap"):
        return False
    return (
        subprocess.run(["editcap", "-r", "-F", "pcap", str(file), str(out), f"1-{count}"], check=False).returncode == 0
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder", nargs="?", type=Path, help="where the large captures are kept (default: a temporary folder)"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0: a million packets, a gigabyte")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="netdiag-bench-") as temporary:
        files = make_all(options.folder or Path(temporary), scale=options.scale)
        for name, file in files.items():
            if options.only in name:
                compare(name, commands(file), file, count_packets(file), options.rounds)
        short = Path(temporary) / "short.pcap"
        if options.only in "many" and first_packets(files["many"], short, 20_000):
            compare("the first 20 k packets", small_commands(short), short, 20_000, min(options.rounds, 2))


if __name__ == "__main__":
    main()
