"""A capture larger than memory should need: peak memory, and how the time grows with the file.

    python -m tests.benchmarks.large [FOLDER] [--gigabytes 10] [--flows 20000]

Makes a file of short TLS connections, so many of them at any moment, analyses its first half and all of it, and prints wall and CPU seconds,
the peak memory (anonymous memory and mapped pages together, as the kernel counts them) and the ratio of the two times. The file stays in
FOLDER for another run; without one it is made in a temporary folder.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.big_captures import REPOSITORY, SHORT, START_US, Frame, repeat, template
from tests.benchmarks.speed import Timing, run

STRETCH = 200_000
"""Connections that are written at a time: the generator itself stays small."""
_FILE_HEADER_BYTES = 24


def make(out: Path, gigabytes: float, flows: int) -> None:
    """Write the file: ``flows`` connections are open at a time."""
    templates = [template(REPOSITORY / "captures" / f"{name}.pcapng") for name in SHORT]
    copies = int(gigabytes * 1e9 / _mean(templates, lambda frames: sum(16 + len(f.data) for f in frames)))
    spread_s = copies * _mean(templates, lambda frames: frames[-1].at_us / 1e6) / flows
    part = out.with_suffix(".part")
    for done in range(0, copies, STRETCH):
        count = min(STRETCH, copies - done)
        start_us = START_US + int(done / copies * spread_s * 1e6)
        repeat(templates, count, part, spread_s=spread_s * count / copies, start_us=start_us, first_copy=done)
        with part.open("rb") as more, out.open("ab") as whole:
            more.seek(_FILE_HEADER_BYTES if done else 0)
            shutil.copyfileobj(more, whole, 1 << 24)
    part.unlink()


def _mean(templates: list[list[Frame]], size: Callable[[list[Frame]], float]) -> float:
    return sum(map(size, templates)) / len(templates)


def halved(whole: Path) -> Path:
    """Its first half; the last packet may be cut."""
    half = whole.with_name(f"half-of-{whole.name}")
    if not half.exists():
        left = whole.stat().st_size // 2
        with whole.open("rb") as source, half.open("wb") as out:
            while left:
                left -= out.write(source.read(min(left, 1 << 24)))
    return half


def _apart(work: Callable[..., None], *arguments: object) -> None:
    """In a process of its own: the kernel counts the memory of whoever starts a program as that program's, too."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("the file could not be made")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--flows", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="netdiag-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        whole = folder / f"large-{options.gigabytes:g}.pcap"
        if not whole.exists():
            _apart(make, whole, options.gigabytes, options.flows)
        walls = []
        for file in (halved(whole), whole):
            timing = Timing()
            run([sys.executable, "-m", "netdiag", "analyze", str(file)], timing)
            walls.append(timing.wall_s[0])
            size_gb = file.stat().st_size / 1e9
            print(
                f"{size_gb:6.2f} GB {timing.wall_s[0]:8.1f} s wall {timing.cpu_s[0]:8.1f} s CPU "
                f"{size_gb * 1000 / timing.wall_s[0]:6.0f} MB/s {timing.peak_mb[0]:6.0f} MB peak",
                flush=True,
            )
        print(f"time(2N) / time(N) = {walls[1] / walls[0]:.2f}")


if __name__ == "__main__":
    main()
