"""What TCP can do to a request: losses by kind, windows, resets, and what a capture itself leaves out or doubles."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from tests.captures.kinds.formats import GET, OK
from tests.captures.kinds.kind import in_clear, of_frames
from tests.support.conversation import CLIENT, SERVER, SYN_OPTIONS, Conversation
from tests.support.http_bytes import head
from tests.support.packets import ACK, EPOCH_NS, FIN, PSH, RST, SYN, Timed, ethernet, ipv4

LONG = head("HTTP/1.1 200 OK\nContent-Length: 5840") + bytes(5840)
PIECES = [LONG[start : start + 1460] for start in range(0, len(LONG), 1460)]


def talk(number: int = 0) -> Conversation:
    """A connection of its own second and port."""
    return Conversation(client=("10.0.0.1", 40000 + number), server=("10.0.0.2", 80), at_ns=EPOCH_NS + number * 10**10)


def asked(number: int = 0) -> Conversation:
    """Opened with a round trip of 20 ms, and the request acknowledged."""
    one = talk(number).opens()
    one.after(0.1).client(GET)
    one.after(20).acks(SERVER)
    return one


def timeout(number: int) -> Conversation:
    """The request is lost and sent again when its timer expires."""
    one = talk(number).opens()
    lost = one.after(0.1).client(GET)
    one.after(220).again(lost)
    return answered(one)


def answered(one: Conversation) -> Conversation:
    """The whole answer, a round trip later, and the close."""
    one.after(20)
    for piece in PIECES:
        one.server(piece)
    one.acks(CLIENT)
    return closed(one)


def closed(one: Conversation) -> Conversation:
    """FINs, the server's a round trip after the client's."""
    one.say(CLIENT, b"", flags=FIN | ACK)
    one.after(20).say(SERVER, b"", flags=FIN | ACK)
    one.acks(CLIENT)
    return one


def fast(number: int) -> Conversation:
    """The second segment of the answer is lost behind the capture point; three duplicate acknowledgements bring it again."""
    one = asked(number)
    one.server(PIECES[0])
    one.acks(CLIENT)
    lost = one.server(PIECES[1], captured=False)
    for piece in PIECES[2:]:
        one.server(piece)
        one.after(0.05).acks(CLIENT, 1460)
    one.after(20).again(lost)
    one.acks_everything(CLIENT)
    return closed(one)


def spurious(number: int) -> Conversation:
    """The server sends again what the client has: the acknowledgement says so (D-SACK, RFC 2883)."""
    one = asked(number)
    again = one.server(PIECES[0])
    one.acks(CLIENT)
    one.after(300).again(again)
    first = one.isns[SERVER] + 1
    one.after(0.05).acks(CLIENT, options=b"\x05\x0a" + struct.pack(">II", first, first + 1460))
    for piece in PIECES[1:]:
        one.server(piece)
    one.acks(CLIENT)
    return closed(one)


def syn_twice(number: int) -> Conversation:
    """Nobody answers the first SYN."""
    one = talk(number)
    one.packet(CLIENT, flags=SYN, options=SYN_OPTIONS)
    one.after(1000).opens()
    one.client(GET)
    return answered(one)


def overtaken(number: int) -> Conversation:
    """Two segments of the answer change places on the way: the late one has the IP identification of its place."""
    one = asked(number)
    one.server(PIECES[0])
    one.sent[SERVER] += 1460
    one.after(0.2).packet(SERVER, PIECES[2], flags=ACK | PSH, identification=30_011)
    one.after(0.3).packet(SERVER, PIECES[1], flags=ACK | PSH, identification=30_010, offset=1460)
    one.sent[SERVER] += 1460
    for piece in PIECES[3:]:
        one.server(piece)
    one.acks_everything(CLIENT)
    return closed(one)


def closed_window(number: int) -> Conversation:
    """The client's window closes for half a second; the server asks whether it is open again."""
    one = asked(number)
    one.server(PIECES[0])
    one.window[CLIENT] = 0
    one.acks(CLIENT)
    one.after(200).packet(SERVER, PIECES[1][:1])
    one.after(0.1).acks(CLIENT)
    one.after(300)
    one.window[CLIENT] = 512
    one.acks(CLIENT)
    for piece in PIECES[1:]:
        one.server(piece)
    one.acks(CLIENT)
    return closed(one)


def kept_alive(number: int) -> Conversation:
    """Two keep-alive probes in 90 s of silence, then a second request."""
    one = answered_open(asked(number))
    for _ in range(2):
        one.after(30_000).packet(CLIENT, offset=one.sent[CLIENT] - 1)
        one.after(20).packet(SERVER)
    one.after(30_000).client(GET)
    one.after(20).server(OK)
    return closed(one)


def answered_open(one: Conversation) -> Conversation:
    """The short answer."""
    one.after(15).server(OK)
    one.acks(CLIENT)
    return one


def refused(number: int) -> Conversation:
    """RST for the SYN."""
    one = talk(number)
    one.packet(CLIENT, flags=SYN, options=SYN_OPTIONS)
    one.got[SERVER] = 0
    one.after(20).packet(SERVER, flags=RST | ACK)
    return one


def half_open(number: int) -> Conversation:
    """The SYN is answered by nobody."""
    one = talk(number)
    for wait_ms in (0, 1000, 2000, 4000):
        one.after(wait_ms).packet(CLIENT, flags=SYN, options=SYN_OPTIONS)
    return one


def reset_while_waiting(number: int) -> Conversation:
    """RST instead of an answer."""
    one = asked(number)
    return one.after(500).resets(SERVER)


def reset_in_the_answer(number: int) -> Conversation:
    """RST after half of the answer."""
    one = asked(number)
    one.server(PIECES[0])
    one.server(PIECES[1])
    return one.after(40).resets(SERVER)


def never_captured(number: int) -> Conversation:
    """A segment of the answer that the client acknowledges is not in the file: the capture missed it, nothing was lost."""
    one = asked(number)
    one.server(PIECES[0])
    one.server(PIECES[1], captured=False)
    for piece in PIECES[2:]:
        one.server(piece)
    one.after(0.05).acks_everything(CLIENT)
    return closed(one)


def begun_late(number: int) -> Conversation:
    """The capture begins in the middle of the connection: no SYN, and the end of an answer first."""
    one = talk(number)
    one.server(PIECES[-1])
    one.acks(CLIENT)
    one.after(100).client(GET)
    one.after(20).server(OK)
    return closed(one)


def of(*makers: Callable[[int], Conversation]) -> list[Timed]:
    """One connection of each."""
    return [frame for number, make in enumerate(makers) for frame in make(number).frames]


def twice() -> Iterable[Timed]:
    """Each packet is in the file twice, as on a switch's mirror port."""
    for at, frame in asked_and_answered():
        yield at, frame
        yield at + 3_000, frame


def asked_and_answered() -> list[Timed]:
    """Nothing wrong."""
    return closed(answered_open(asked())).frames


def clock_set_back() -> Iterable[Timed]:
    """The capturing host's clock goes back by 5 s during the answer."""
    frames = asked_and_answered()
    for place, (at, frame) in enumerate(frames):
        yield (at if place < len(frames) // 2 else at - 5 * 10**9), frame


def reused_pair() -> Iterable[Timed]:
    """The same two ports twice: another initial sequence number is another connection."""
    for at_ns, isns in ((EPOCH_NS, (1000, 5000)), (EPOCH_NS + 10**9, (900_000, 700_000))):
        one = Conversation(server=("10.0.0.2", 80), at_ns=at_ns, isns=isns)
        one.opens().client(GET)
        yield from closed(answered_open(one)).frames


def sequence_wrap() -> Iterable[Timed]:
    """The numbers wrap inside the answer."""
    one = Conversation(server=("10.0.0.2", 80), isns=(2**32 - 20, 2**32 - 3000))
    one.opens().client(GET)
    return answered(one).frames


def fast_open() -> Iterable[Timed]:
    """The request comes with the SYN (RFC 7413)."""
    one = talk()
    cookie = b"\x22\x0a" + b"cookie!!"
    one.packet(CLIENT, GET, flags=SYN, options=SYN_OPTIONS + cookie)
    one.sent[CLIENT] = one.got[SERVER] = len(GET)
    one.after(20).packet(SERVER, flags=SYN | ACK, options=SYN_OPTIONS)
    one.after(0.05).acks(CLIENT)
    return closed(answered_open(one)).frames


def super_segments() -> Iterable[Timed]:
    """Segmentation offload: the answer in one frame of 40 kB, whose IP length is 0."""
    body = bytes(40_000)
    one = asked()
    one.server(head(f"HTTP/1.1 200 OK\nContent-Length: {len(body)}") + body)
    one.acks(CLIENT)
    for at, frame in closed(one).frames:
        yield at, frame[:16] + b"\0\0" + frame[18:] if len(frame) > 40_000 else frame


def unreachable() -> Iterable[Timed]:
    """A router says that the port cannot be reached, about each of three SYNs."""
    for at, frame in half_open(0).frames[:3]:
        yield at, frame
        message = struct.pack(">BBHI", 3, 13, 0, 0) + frame[14:42]
        yield at + 5_000_000, ethernet(ipv4(message, source="10.0.0.254", destination="10.0.0.1", protocol=1))


def pushed_in_one_direction() -> Iterable[Timed]:
    """Only the server's packets were captured (asymmetric routing)."""
    server = bytes((10, 0, 0, 2))
    return [(at, frame) for at, frame in asked_and_answered() if frame[26:30] == server]


def with_timestamps() -> Iterable[Timed]:
    """Time stamps of TCP in each packet (RFC 7323), the server's clock in milliseconds."""
    one = asked()
    stamp = b"\x01\x01\x08\x0a" + struct.pack(">II", 77_000, 1000)
    one.after(15).packet(SERVER, OK, flags=ACK | PSH, options=stamp)
    one.sent[SERVER] = one.got[CLIENT] = len(OK)
    one.acks(CLIENT, options=b"\x01\x01\x08\x0a" + struct.pack(">II", 1015, 77_000))
    return closed(one).frames


KINDS = (
    of_frames(
        "tcp-resent",
        "sent again: by timer, by duplicate ACKs, in vain (D-SACK), the SYN; the last is only reordering",
        lambda: of(timeout, fast, spurious, syn_twice, overtaken),
    ),
    of_frames("tcp-zero-window", "the client's window closes for half a second", lambda: of(closed_window)),
    of_frames("tcp-keep-alive", "keep-alive probes between two requests", lambda: of(kept_alive)),
    of_frames(
        "tcp-failures",
        "refused, never answered, reset before and in the answer",
        lambda: of(refused, half_open, reset_while_waiting, reset_in_the_answer),
    ),
    of_frames(
        "capture-gaps",
        "what the capture missed is no loss; another begins late",
        lambda: of(never_captured, begun_late),
    ),
    of_frames("captured-twice", "each packet twice in the file", twice),
    of_frames("clock-set-back", "the clock goes back by 5 s during the answer", clock_set_back),
    of_frames("one-direction", "only the server's packets", pushed_in_one_direction),
    of_frames("reused-pair", "two connections over the same ports", reused_pair),
    of_frames("sequence-wrap", "sequence numbers wrap in the answer", sequence_wrap),
    of_frames("tcp-fast-open", "the request travels with the SYN", fast_open),
    of_frames("tcp-time-stamps", "TCP time stamps", with_timestamps),
    of_frames("offload", "a frame of 40 kB with IP length 0", super_segments),
    of_frames("icmp-unreachable", "a router says that the host cannot be reached", unreachable),
    of_frames("nothing-wrong", "one request, for comparison with all of these", asked_and_answered),
    of_frames(
        "never-closed", "the capture ends with the connection open", lambda: in_clear((0, GET), (1, OK), closed_by=None)
    ),
)
