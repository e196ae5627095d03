"""What a TCP connection speaks, told from its first octets and never from its port."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from netdiag.protocols.http2.frames import PREFACE, surely_frames
from netdiag.wire.chunk import Chunk

PREFIX_BYTES = 64
"""As many octets of each direction are enough for every protocol below."""

# A connection that is captured from its middle may begin anywhere in HTTP/1; a start-line is still one.
_REQUEST = re.compile(rb"\s{0,4}[A-Z][A-Z\-]{1,31} (?:/|\*|[a-z]+://|[^\s/]+:\d|\S+ HTTP/1)")
_METHODS = re.compile(
    rb"\s{0,4}(?:GET|HEAD|POST|PUT|DELETE|CONNECT(?= [^ {]+:\d)|OPTIONS|TRACE|PATCH|PROPFIND|PROPPATCH|MKCOL|COPY|MOVE|LOCK|UNLOCK|SEARCH|REPORT"
    rb"|SUBSCRIBE|NOTIFY|PURGE|MKCALENDAR|BPROPFIND|M-SEARCH|ACL|LINK|UNLINK|BIND|QUERY|SOURCE|RPC_IN_DATA|RPC_OUT_DATA) "
)
_RTSP = re.compile(rb"(?:OPTIONS|DESCRIBE|SETUP|PLAY|ANNOUNCE|TEARDOWN|RECORD|PAUSE) rtsp|RTSP/1\.")
_SIP = re.compile(rb"(?:INVITE|REGISTER|OPTIONS|SUBSCRIBE|NOTIFY|MESSAGE|ACK|BYE|CANCEL) sips?:|SIP/2\.0 ")
_SMTP = re.compile(rb"220[ -][^\r\n]*(?:E?SMTP|smtp|[Pp]ostfix|Exim|[Mm]ail)")
_SMTP_CLIENT = re.compile(rb"(?:EHLO|HELO|ehlo|helo|LHLO) ")
_FTP = re.compile(rb"220[ -]")
_FTP_CLIENT = re.compile(rb"(?:USER|AUTH|user) ")


@lru_cache(maxsize=1024)
def identify(client_prefix: bytes, server_prefix: bytes) -> str | None:
    """``tls``, ``http/1``, ``h2``, ``socks5``, ``socks4``, or the name of something else that is recognised; None when it is not.

    The prefixes are the first octets captured of each direction (``PREFIX_BYTES`` are enough); either may be empty. Connections of one
    program begin alike.
    """
    for name, speaks in _PROTOCOLS:
        if speaks(client_prefix, server_prefix):
            return name
    return None


def peek(chunks: Iterable[Chunk], count: int = PREFIX_BYTES) -> tuple[bytes, Iterator[Chunk]]:
    """The first ``count`` octets (fewer where the direction is shorter, or has a gap before them), and all chunks again."""
    rows = iter(chunks)
    seen: list[Chunk] = []
    prefix = b""
    for row in rows:
        if row.missing_before and seen:
            rows = itertools.chain([row], rows)
            break
        seen.append(row)
        prefix += row.data[: count - len(prefix)]
        if len(prefix) >= count:
            break
    return prefix, itertools.chain(seen, rows)


def _is_tls(client: bytes, server: bytes) -> bool:
    # A server's record may answer what a proxy was asked for in clear, its consent not captured.
    return _tls_record(client) or _sslv2_hello(client) or (_tls_record(server) and _METHODS.match(client) is None)


def _tls_record(octets: bytes) -> bool:
    """A record header of TLS or SSL 3: type 20 to 24, version 3.0 to 3.4, a length that can be."""
    return len(octets) >= 5 and 20 <= octets[0] <= 24 and octets[1] == 3 and octets[2] <= 4 and octets[3] <= 0x48


def _sslv2_hello(octets: bytes) -> bool:
    """A ClientHello in SSL 2 format (RFC 5246 appendix E.2) that offers SSL 3 or TLS."""
    return len(octets) >= 5 and bool(octets[0] & 0x80) and octets[2] == 1 and octets[3] == 3 and octets[4] <= 3


def _is_h2(client: bytes, server: bytes) -> bool:
    if client.startswith(PREFACE[:16]) or (len(client) >= 4 and PREFACE.startswith(client)):
        return True
    return surely_frames(client) or surely_frames(server)


def _is_http1(client: bytes, server: bytes) -> bool:
    if _METHODS.match(client) or server.lstrip(b"\r\n").startswith(b"HTTP/1."):
        return True
    return _REQUEST.match(client) is not None and not client.startswith((b"RTSP", b"SIP"))


def _is_socks5(client: bytes, server: bytes) -> bool:
    """RFC 1928 section 3: version, number of methods, as many methods; the answer is two octets."""
    if len(client) < 3 or client[0] != 5 or not client[1] or len(client) < 2 + client[1]:
        return False
    return not server or (server[0] == 5 and len(server) >= 2)


def _is_socks4(client: bytes, server: bytes) -> bool:
    """Version 4, CONNECT or BIND, port, address, user id ended by zero; the answer begins with zero."""
    if len(client) < 9 or client[0] != 4 or client[1] not in (1, 2) or client.find(b"\0", 8) < 0:
        return False
    return not server or (server[0] == 0 and len(server) >= 2 and 90 <= server[1] <= 93)


def _is_dns(client: bytes, server: bytes) -> bool:
    """RFC 1035 section 4.2.2: a length, then a message with one question and opcode QUERY."""
    return _is_dns_message(client) or _is_dns_message(server)


def _is_dns_message(octets: bytes) -> bool:
    if len(octets) < 14 or octets[4] & 0x78 or octets[6:8] != b"\0\1":
        return False
    answered, authorities = octets[4] & 0x80, int.from_bytes(octets[10:12], "big")
    # A query has no answer; in the authority section stands what an incremental transfer begins from (RFC 1995 section 3).
    possible = bool(answered) or (octets[8:10] == b"\0\0" and authorities <= 1)
    return possible and 17 <= int.from_bytes(octets[:2], "big") <= 4096


def _starts(client_marks: tuple[bytes, ...], server_marks: tuple[bytes, ...] = ()) -> Callable[[bytes, bytes], bool]:
    def speaks(client: bytes, server: bytes) -> bool:
        return client.startswith(client_marks) or (bool(server_marks) and server.startswith(server_marks))

    return speaks


def _is_postgresql(client: bytes, server: bytes) -> bool:
    """SSLRequest, GSSENCRequest, or a startup message of protocol 3.0."""
    return client[:8] in (b"\0\0\0\x08\x04\xd2\x16\x2f", b"\0\0\0\x08\x04\xd2\x16\x30") or (
        client[:2] == b"\0\0" and client[4:8] == b"\0\3\0\0"
    )


def _is_mysql(client: bytes, server: bytes) -> bool:
    """The greeting: packet number 0, protocol version 10, a version text."""
    return (
        len(server) >= 8
        and server[3:5] == b"\0\x0a"
        and server[0] >= 20
        and server[5:6].isdigit()
        and b"\0" in server[5:40]
    )


# The order matters where one pattern could be another's: the stricter first.
_PROTOCOLS: tuple[tuple[str, Callable[[bytes, bytes], bool]], ...] = (
    ("tls", _is_tls),
    ("dns", _is_dns),
    ("h2", _is_h2),
    ("rtsp", lambda c, s: _RTSP.match(c) is not None or (_RTSP.match(s) is not None and not _is_http1(c, b""))),
    ("sip", lambda c, s: _SIP.match(c) is not None or (_SIP.match(s) is not None and not _is_http1(c, b""))),
    ("nats", _starts((b"CONNECT {",), (b"INFO {",))),
    ("smtp", lambda c, s: _SMTP.match(s) is not None or _SMTP_CLIENT.match(c) is not None),
    ("http/1", _is_http1),
    ("socks5", _is_socks5),
    ("socks4", _is_socks4),
    ("ssh", _starts((b"SSH-",), (b"SSH-",))),
    ("ftp", lambda c, s: _FTP.match(s) is not None and (not c or _FTP_CLIENT.match(c) is not None)),
    ("pop3", _starts((), (b"+OK",))),
    ("imap", _starts((), (b"* OK", b"* PREAUTH", b"* BYE"))),
    ("proxy-protocol", _starts((b"PROXY TCP", b"PROXY UNKNOWN", b"\r\n\r\n\0\r\nQUIT\n"))),
    ("bittorrent", _starts((b"\x13BitTorrent protocol",), (b"\x13BitTorrent protocol",))),
    ("rdp", lambda c, s: c[:2] == b"\3\0" and c[5:6] == b"\xe0"),
    ("smb", lambda c, s: c[:1] == b"\0" and c[4:8] in (b"\xffSMB", b"\xfeSMB")),
    ("postgresql", _is_postgresql),
    ("mysql", _is_mysql),
    ("redis", lambda c, s: re.match(rb"\*\d{1,4}\r\n\$\d", c) is not None),
    ("mqtt", lambda c, s: c[:1] == b"\x10" and (b"\0\4MQTT" in c[:12] or b"\0\6MQIsdp" in c[:14])),
    ("amqp", _starts((b"AMQP",))),
    ("ldap", lambda c, s: c[:1] == b"\x30" and c[2:4] == b"\2\1" and c[5:6] == b"\x60"),
    ("irc", _starts((b"NICK ", b"CAP LS", b"PASS "))),
)
