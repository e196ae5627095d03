"""Large captures for benchmarks, made by repeating real conversations: each copy has its own client address and its own start.

    python -m tests.benchmarks.big_captures FOLDER

Four files, as in the goals: ``many`` (1 M packets in 31 k short TLS connections), ``bulk`` (1 GB over a few connections), ``keyed`` (200 k
requests on few HTTP/2 connections, with their keys; needs nghttpd, h2load and the right to capture) and ``clear`` (100 k packets of HTTP/1).
And ``sessions``: 5,000 of the connections of ``many``, with their keys.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netdiag.capture.source import open_capture
from netdiag.lab.builder.output import record
from netdiag.lab.certificates import Authority
from netdiag.lab.scenario import bundled

REPOSITORY = Path(__file__).resolve().parents[2]
_HEADER = struct.Struct("<IHHiIII")
_MICROSECONDS, _ETHERNET = 0xA1B2C3D4, 1
_ETHERNET_BYTES = 14
START_US = 1_700_000_000_000_000
_BLOCK_ROWS = 50_000
SHORT = ("h1", "h2", "tls12-h1", "h1-reused", "h2-several-streams", "h1-stream", "h2-stream", "path-slow-link")
"""Conversations of 16 to 60 packets, 32 on average, with one to four requests: a million packets are 31,250 connections."""


@dataclass(frozen=True)
class Frame:
    """One Ethernet frame of a template, relative to the template's first."""

    at_us: int
    data: bytes
    from_client: bool


def template(file: Path) -> list[Frame]:
    """The frames of a capture with one IPv4 client on Ethernet; the client is whoever sent the first frame."""
    frames: list[Frame] = []
    with open_capture(str(file)) as capture:
        for window in capture.windows():
            octets = memoryview(window.buffer)
            rows = window.packets
            for at, start, size in zip(
                rows.captured_at.tolist(), rows.data_offset.tolist(), rows.captured_bytes.tolist(), strict=True
            ):
                data = bytes(octets[start : start + size])
                if data[12:14] == b"\x08\x00" and data[23] == 6:
                    frames.append(Frame(at // 1000, data, False))
    first = frames[0]
    client = first.data[26:30] + first.data[34:36]
    return [Frame(f.at_us - first.at_us, f.data, f.data[26:30] + f.data[34:36] == client) for f in frames]


def before_the_close(frames: list[Frame]) -> list[Frame]:
    """Up to the first FIN."""
    return list(itertools.takewhile(lambda frame: not frame.data[47] & 1, frames))


def clear_text() -> list[Frame]:
    """Two requests of HTTP/1.1 without TLS, one of them streamed: the lab's scenario."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "clear.pcapng"
        file.write_bytes(record(bundled("clear-text")).capture)
        return template(file)


def repeat(
    templates: list[list[Frame]],
    copies: int,
    out: Path,
    *,
    spread_s: float,
    start_us: int = START_US,
    first_copy: int = 0,
) -> int:
    """Write ``copies`` conversations, the templates in turn, spread over ``spread_s``. Returns the number of packets.

    ``first_copy`` numbers the first one's client, for a file that is written in several stretches.
    """
    random = np.random.default_rng(7 + first_copy)
    starts = np.sort(random.integers(0, int(spread_s * 1e6), copies)) + start_us
    frames = [f for t in templates for f in t]
    first_frame = np.cumsum([0] + [len(t) for t in templates])
    times, frame_of, copy_of = [], [], []
    for which, frames_of_template in enumerate(templates):
        mine = np.arange(which, copies, len(templates))
        for i, frame in enumerate(frames_of_template):
            times.append(starts[mine] + frame.at_us)
            frame_of.append(np.full(len(mine), first_frame[which] + i))
            copy_of.append(mine)
    at, frame_index, copy = (np.concatenate(x) for x in (times, frame_of, copy_of))
    order = np.argsort(at, kind="stable")
    with out.open("wb") as file:
        file.write(_HEADER.pack(_MICROSECONDS, 2, 4, 0, 0, 262_144, _ETHERNET))
        for begin in range(0, len(order), _BLOCK_ROWS):
            rows = order[begin : begin + _BLOCK_ROWS]
            file.write(_block(frames, at[rows], frame_index[rows], copy[rows] + first_copy).tobytes())
    return len(order)


def _block(
    frames: list[Frame], at: NDArray[np.int64], index: NDArray[np.int64], copy: NDArray[np.int64]
) -> NDArray[np.uint8]:
    sizes = np.array([16 + len(f.data) for f in frames])[index]
    ends = np.cumsum(sizes)
    block = np.empty(int(ends[-1]), np.uint8)
    for i in np.unique(index).tolist():
        rows = np.nonzero(index == i)[0]
        block[(ends - sizes)[rows][:, None] + np.arange(16 + len(frames[i].data))] = _records(
            frames[i], at[rows], copy[rows]
        )
    return block


def _records(frame: Frame, at: NDArray[np.int64], copy: NDArray[np.int64]) -> NDArray[np.uint8]:
    records = np.empty((len(at), 16 + len(frame.data)), np.uint8)
    head = np.empty((len(at), 4), "<u4")
    head[:, 0], head[:, 1] = at // 1_000_000, at % 1_000_000
    head[:, 2] = head[:, 3] = len(frame.data)
    records[:, :16] = head.view(np.uint8).reshape(len(at), 16)
    records[:, 16:] = np.frombuffer(frame.data, np.uint8)
    place = 16 + _ETHERNET_BYTES + (12 if frame.from_client else 16)
    base = int(ipaddress.ip_address("10.0.0.1"))
    records[:, place : place + 4] = (copy + base).astype(">u4").view(np.uint8).reshape(len(at), 4)
    return records


def secrets_of(file: Path) -> bytes:
    """The keys inside a capture. Copies of a conversation keep its randoms, so they hold for all of them."""
    with open_capture(str(file)) as capture:
        for _ in capture.windows():
            pass
        return b"\n".join(capture.secrets)


def bulk(handshake: list[Frame], out: Path, *, connections: int = 5, megabytes: int = 1000) -> int:
    """A long download on each of a few connections: the template's handshake, then full-sized segments with an ACK for every second one.

    The records are opaque: without keys nobody looks inside. Returns the number of packets.
    """
    data = next(f for f in handshake if not f.from_client and len(f.data) > 200)
    acknowledgement = next(f for f in handshake[2:] if f.from_client)
    segments = megabytes * 1_000_000 // connections // 1448
    packets = 0
    with out.open("wb") as file:
        file.write(_HEADER.pack(_MICROSECONDS, 2, 4, 0, 0, 262_144, _ETHERNET))
        for number in range(connections):
            for frame in handshake:
                row = _records(frame, np.array([START_US + frame.at_us]), np.array([number]))
                file.write(row.tobytes())
            last_server, last_client = _next_sequence(handshake, False), _next_sequence(handshake, True)
            start = START_US + handshake[-1].at_us + 1000
            rows = _download(data.data, acknowledgement.data, segments, start, number, last_server, last_client)
            packets += len(handshake) + segments + segments // 2
            file.write(rows)
    return packets


def _next_sequence(frames: list[Frame], from_client: bool) -> int:
    last = [f.data for f in frames if f.from_client is from_client][-1]
    ip_bytes, sequence = struct.unpack_from("!H", last, 16)[0], struct.unpack_from("!I", last, 38)[0]
    return int(sequence + ip_bytes - 20 - (last[46] >> 4) * 4 + bool(last[47] & 2))


def _download(
    data: bytes, ack: bytes, segments: int, start_us: int, copy: int, server_seq: int, client_seq: int
) -> bytes:
    head_bytes = _ETHERNET_BYTES + 20 + (data[46] >> 4) * 4
    stream = np.random.default_rng(copy).integers(0, 256, segments * 1448, dtype=np.uint8)
    heads = np.arange(0, len(stream) - 5, 5 + 16_401)
    for i, octet in enumerate((23, 3, 3, 16_401 >> 8, 16_401 & 255)):
        stream[heads + i] = octet
    at = start_us + 12 * np.arange(segments)
    frame = bytearray(data[:head_bytes])
    struct.pack_into("!H", frame, 16, head_bytes - _ETHERNET_BYTES + 1448)
    down = _records(Frame(0, bytes(frame) + bytes(1448), False), at, np.full(segments, copy))
    down[:, 16 + head_bytes :] = stream.reshape(segments, 1448)
    down[:, 16 + 38 : 16 + 42] = _u4(server_seq + 1448 * np.arange(segments))
    down[:, 16 + 42 : 16 + 46] = _u4(np.full(segments, client_seq))
    up_head = bytearray(ack[: _ETHERNET_BYTES + 20 + (ack[46] >> 4) * 4])
    struct.pack_into("!H", up_head, 16, len(up_head) - _ETHERNET_BYTES)
    up_head[47] = 16
    up = _records(Frame(0, bytes(up_head), True), at[1::2] + 6, np.full(segments // 2, copy))
    up[:, 16 + 38 : 16 + 42] = _u4(np.full(segments // 2, client_seq))
    up[:, 16 + 42 : 16 + 46] = _u4(server_seq + 1448 * (np.arange(segments // 2) * 2 + 2))
    pairs = np.concatenate([down[: segments // 2 * 2].reshape(segments // 2, -1), up], axis=1)
    return pairs.tobytes() + (down[-1].tobytes() if segments % 2 else b"")


def _u4(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    return (values & 0xFFFFFFFF).astype(">u4").view(np.uint8).reshape(len(values), 4)


def keyed(out: Path, keylog: Path, *, requests: int = 200_000, connections: int = 4) -> None:
    """Real HTTP/2 over real TLS: h2load against nghttpd on loopback, captured by dumpcap or tcpdump. Raises ``RuntimeError`` without them."""
    recorder = shutil.which("tcpdump")
    if not (recorder and shutil.which("nghttpd") and shutil.which("h2load")):
        raise RuntimeError("needs tcpdump, nghttpd and h2load")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "index.html").write_bytes(b"x" * 300)
        credential = Authority().issue(("localhost", "127.0.0.1"))
        (folder / "cert.pem").write_bytes(credential.chain)
        (folder / "key.pem").write_bytes(credential.key)
        port = _free_port()
        server = [
            shutil.which("nghttpd") or "",
            "-a",
            "127.0.0.1",
            "-d",
            str(folder),
            str(port),
            str(folder / "key.pem"),
            str(folder / "cert.pem"),
        ]
        capture = [
            recorder,
            "-i",
            "lo",
            "-w",
            str(out),
            "-B",
            "262144",
            "-Z",
            "root",
            "--immediate-mode",
            "tcp",
            "port",
            str(port),
        ]
        recording = subprocess.Popen(capture, stderr=subprocess.PIPE, text=True)
        started = [recording, subprocess.Popen(server)]
        try:
            for line in recording.stderr or ():
                if "listening on" in line:  # only now is anything captured
                    break
            _wait_for(port)
            load = [shutil.which("h2load") or "", "-n", str(requests), "-c", str(connections), "-m", "10"]
            with_keys = os.environ | {"SSLKEYLOGFILE": str(keylog)}
            subprocess.run(
                [*load, f"https://127.0.0.1:{port}/index.html"], env=with_keys, check=True, stdout=subprocess.DEVNULL
            )
            time.sleep(1)
        finally:
            for process in started:
                process.terminate()
                process.wait()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_all(folder: Path, *, scale: float = 1.0) -> dict[str, Path]:
    """The files, where they are not there yet; ``keyed`` is left out where it cannot be made."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.pcap" for name in ("many", "bulk", "clear", "sessions", "keyed")}
    conversations = [REPOSITORY / "captures" / f"{name}.pcapng" for name in SHORT]
    secure = [template(one) for one in conversations]
    if not files["many"].exists():
        repeat(secure, round(1_000_000 * scale / (sum(map(len, secure)) / len(secure))), files["many"], spread_s=60)
    if not files["bulk"].exists():
        bulk(before_the_close(secure[0]), files["bulk"], megabytes=round(1000 * scale))
    if not files["clear"].exists():
        clear = clear_text()
        repeat([clear], round(100_000 * scale / len(clear)), files["clear"], spread_s=20)
    if not files["sessions"].exists():
        repeat(secure, round(5_000 * scale), files["sessions"], spread_s=20)
        files["sessions"].with_suffix(".keys").write_bytes(b"\n".join(map(secrets_of, conversations)))
    if not files["keyed"].exists():
        try:
            keyed(files["keyed"], folder / "keyed.keys", requests=round(200_000 * scale))
        except RuntimeError as error:
            print(f"keyed: {error}")
            del files["keyed"]
    return files


if __name__ == "__main__":
    for made, path in make_all(Path(sys.argv[1])).items():
        print(made, path, f"{path.stat().st_size / 1e6:.0f} MB")
