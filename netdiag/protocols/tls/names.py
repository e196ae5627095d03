"""Numbers of the TLS registries with their names. Unknown values are kept and shown as numbers, never dropped."""

from __future__ import annotations

from enum import IntEnum


class ContentType(IntEnum):
    """RFC 8446 section 5.1; the last one is netdiag's own mark."""

    CHANGE_CIPHER_SPEC = 20
    ALERT = 21
    HANDSHAKE = 22
    APPLICATION_DATA = 23
    HEARTBEAT = 24
    SSL2_HELLO = 128
    """A ClientHello in SSL 2.0 framing (RFC 5246 appendix E.2): a header of two octets, no content type on the wire."""


class HandshakeType(IntEnum):
    """RFC 8446 section 4, with the messages of earlier versions."""

    HELLO_REQUEST = 0
    CLIENT_HELLO = 1
    SERVER_HELLO = 2
    HELLO_VERIFY_REQUEST = 3
    NEW_SESSION_TICKET = 4
    END_OF_EARLY_DATA = 5
    HELLO_RETRY_REQUEST_DRAFT = 6
    """A message of its own up to draft 21; since then a ServerHello with a fixed random."""
    ENCRYPTED_EXTENSIONS = 8
    CERTIFICATE = 11
    SERVER_KEY_EXCHANGE = 12
    CERTIFICATE_REQUEST = 13
    SERVER_HELLO_DONE = 14
    CERTIFICATE_VERIFY = 15
    CLIENT_KEY_EXCHANGE = 16
    CLIENT_CERTIFICATE_REQUEST = 17
    FINISHED = 20
    CERTIFICATE_URL = 21
    CERTIFICATE_STATUS = 22
    SUPPLEMENTAL_DATA = 23
    KEY_UPDATE = 24
    COMPRESSED_CERTIFICATE = 25
    """RFC 8879."""
    EKT_KEY = 26
    NEXT_PROTOCOL = 67
    MESSAGE_HASH = 254


class ExtensionType(IntEnum):
    """The extensions that netdiag reads (IANA TLS ExtensionType registry)."""

    SERVER_NAME = 0
    SUPPORTED_GROUPS = 10
    ALPN = 16
    ENCRYPT_THEN_MAC = 22
    """RFC 7366."""
    EXTENDED_MASTER_SECRET = 23
    """RFC 7627."""
    TRUNCATED_HMAC = 4
    """RFC 6066 section 7."""
    SESSION_TICKET = 35
    """RFC 5077."""
    KEY_SHARE_DRAFT = 40
    """key_share up to draft 22."""
    PRE_SHARED_KEY = 41
    EARLY_DATA = 42
    SUPPORTED_VERSIONS = 43
    KEY_SHARE = 51
    NEXT_PROTOCOL_NEGOTIATION = 13172
    APPLICATION_SETTINGS_OLD = 17513
    APPLICATION_SETTINGS = 17613
    """draft-vvv-tls-alps, in browsers."""
    ENCRYPTED_CLIENT_HELLO = 0xFE0D
    """RFC 9849. An outer extension, whether real or GREASE."""
    ENCRYPTED_SERVER_NAME = 0xFFCE
    """The draft before ECH."""
    RENEGOTIATION_INFO = 0xFF01


SSL2, SSL3, TLS10, TLS11, TLS12, TLS13 = 0x0002, 0x0300, 0x0301, 0x0302, 0x0303, 0x0304

_VERSIONS = {
    SSL2: "SSLv2",
    SSL3: "SSLv3",
    TLS10: "TLSv1.0",
    TLS11: "TLSv1.1",
    TLS12: "TLSv1.2",
    TLS13: "TLSv1.3",
    0x0101: "TLCP",
}


def version_name(number: int) -> str:
    """``TLSv1.3``; ``TLSv1.3 draft 19`` for 0x7f13 and for the numbers Facebook and Google used; ``0x1234`` where unknown."""
    draft = draft_of(number)
    if draft is not None:
        return f"TLSv1.3 draft {draft}"
    return _VERSIONS.get(number) or f"0x{number:04x}"


def draft_of(number: int) -> int | None:
    """The draft of TLS 1.3 that a version number stands for; None for released versions. Drafts used 0x7fNN, Facebook 0xfbNN, Google 0x7eNN."""
    return number & 0xFF if number >> 8 in (0x7F, 0xFB, 0x7E) else None


def is_tls13(number: int | None) -> bool:
    """Whether a negotiated version follows the rules of TLS 1.3, drafts included."""
    return number is not None and (number == TLS13 or draft_of(number) is not None)


def is_grease(number: int) -> bool:
    """RFC 8701: 0x0a0a, 0x1a1a … 0xfafa mean nothing and are sent to keep peers tolerant."""
    return number & 0x0F0F == 0x0A0A and number >> 8 == number & 0xFF


_GROUPS = {
    0x0013: "secp192r1",
    0x0014: "secp224k1",
    0x0015: "secp224r1",
    0x0016: "secp256k1",
    0x0017: "secp256r1",
    0x0018: "secp384r1",
    0x0019: "secp521r1",
    0x001A: "brainpoolP256r1",
    0x001B: "brainpoolP384r1",
    0x001C: "brainpoolP512r1",
    0x001D: "x25519",
    0x001E: "x448",
    0x001F: "brainpoolP256r1tls13",
    0x0020: "brainpoolP384r1tls13",
    0x0021: "brainpoolP512r1tls13",
    0x0022: "GC256A",
    0x0023: "GC256B",
    0x0024: "GC256C",
    0x0025: "GC256D",
    0x0026: "GC512A",
    0x0027: "GC512B",
    0x0028: "GC512C",
    0x0029: "curveSM2",
    0x0100: "ffdhe2048",
    0x0101: "ffdhe3072",
    0x0102: "ffdhe4096",
    0x0103: "ffdhe6144",
    0x0104: "ffdhe8192",
    0x0200: "MLKEM512",
    0x0201: "MLKEM768",
    0x0202: "MLKEM1024",
    0x11EB: "SecP256r1MLKEM768",
    0x11EC: "X25519MLKEM768",
    0x11ED: "SecP384r1MLKEM1024",
    0x11EE: "curveSM2MLKEM768",
    0x4138: "CECPQ2",
    0x6399: "X25519Kyber768Draft00",
    0x639A: "SecP256r1Kyber768Draft00",
    0x639B: "X25519Kyber512Draft00",
    0xFF01: "arbitrary_explicit_prime_curves",
    0xFF02: "arbitrary_explicit_char2_curves",
    0x0001: "sect163k1",
    0x0002: "sect163r1",
    0x0003: "sect163r2",
    0x0004: "sect193r1",
    0x0005: "sect193r2",
    0x0006: "sect233k1",
    0x0007: "sect233r1",
    0x0008: "sect239k1",
    0x0009: "sect283k1",
    0x000A: "sect283r1",
    0x000B: "sect409k1",
    0x000C: "sect409r1",
    0x000D: "sect571k1",
    0x000E: "sect571r1",
    0x000F: "secp160k1",
    0x0010: "secp160r1",
    0x0011: "secp160r2",
    0x0012: "secp192k1",
}


def group_name(number: int) -> str:
    """Named group (IANA TLS Supported Groups registry); ``0x1234`` where unknown."""
    return _GROUPS.get(number) or f"0x{number:04x}"


_ALERTS = {
    0: "close_notify",
    1: "end_of_early_data",
    10: "unexpected_message",
    20: "bad_record_mac",
    21: "decryption_failed",
    22: "record_overflow",
    30: "decompression_failure",
    40: "handshake_failure",
    41: "no_certificate",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    52: "too_many_cids_requested",
    60: "export_restriction",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    86: "inappropriate_fallback",
    90: "user_canceled",
    100: "no_renegotiation",
    109: "missing_extension",
    110: "unsupported_extension",
    111: "certificate_unobtainable",
    112: "unrecognized_name",
    113: "bad_certificate_status_response",
    114: "bad_certificate_hash_value",
    115: "unknown_psk_identity",
    116: "certificate_required",
    117: "general_error",
    120: "no_application_protocol",
    121: "ech_required",
}


def alert_name(description: int) -> str:
    """RFC 8446 section 6; ``alert N`` where unknown."""
    return _ALERTS.get(description) or f"alert {description}"
