"""Numbers that DNS messages carry, and their mnemonics (IANA, "Domain Name System (DNS) Parameters")."""

from __future__ import annotations

TYPE_NAMES: dict[int, str] = {
    1: "A",
    2: "NS",
    5: "CNAME",
    6: "SOA",
    10: "NULL",
    12: "PTR",
    13: "HINFO",
    15: "MX",
    16: "TXT",
    17: "RP",
    24: "SIG",
    25: "KEY",
    28: "AAAA",
    29: "LOC",
    33: "SRV",
    35: "NAPTR",
    37: "CERT",
    39: "DNAME",
    41: "OPT",
    43: "DS",
    44: "SSHFP",
    46: "RRSIG",
    47: "NSEC",
    48: "DNSKEY",
    50: "NSEC3",
    51: "NSEC3PARAM",
    52: "TLSA",
    53: "SMIMEA",
    59: "CDS",
    60: "CDNSKEY",
    61: "OPENPGPKEY",
    64: "SVCB",
    65: "HTTPS",
    99: "SPF",
    249: "TKEY",
    250: "TSIG",
    251: "IXFR",
    252: "AXFR",
    255: "ANY",
    256: "URI",
    257: "CAA",
}
"""IANA, "Resource Record (RR) TYPEs"."""

RCODE_NAMES: dict[int, str] = {
    0: "NOERROR",
    1: "FORMERR",
    2: "SERVFAIL",
    3: "NXDOMAIN",
    4: "NOTIMP",
    5: "REFUSED",
    6: "YXDOMAIN",
    7: "YXRRSET",
    8: "NXRRSET",
    9: "NOTAUTH",
    10: "NOTZONE",
    16: "BADVERS",
    23: "BADCOOKIE",
}


def type_name(number: int) -> str:
    """The mnemonic of a QTYPE, or ``TYPE65`` (RFC 3597 section 5)."""
    return TYPE_NAMES.get(number, f"TYPE{number}")


def rcode_name(number: int) -> str:
    """The mnemonic of a response code, or ``RCODE99``."""
    return RCODE_NAMES.get(number, f"RCODE{number}")
