"""Numbers of what comes next, in one space of integers: ``space | value``. Whatever no layer takes ends up counted under its name."""

from __future__ import annotations

from enum import IntEnum

LINK_TYPE = 1 << 16
"""LINKTYPE_ values."""
UNASSIGNED_LINK_TYPE = 0xFF00
"""With the number of a link layer that has no LINKTYPE_ value: that of a snoop file (RFC 1761 section 3)."""
ETHERTYPE = 2 << 16
IP_PROTOCOL = 3 << 16
PPP = 4 << 16
LLC = 5 << 16
"""DSAP values."""
NLPID = 6 << 16
INNER = 7 << 16
"""Values of ``Inner``."""
SPACES = 0xFFFF0000

IPV4 = ETHERTYPE | 0x0800
IPV6 = ETHERTYPE | 0x86DD
ETHERNET = LINK_TYPE | 1
MPLS = ETHERTYPE | 0x8847
TCP = IP_PROTOCOL | 6
UDP = IP_PROTOCOL | 17
ICMP = IP_PROTOCOL | 1
ICMPV6 = IP_PROTOCOL | 58


class Inner(IntEnum):
    """Layers and ends that have no number of their own elsewhere."""

    RAW_IP = INNER | 1
    """IPv4 or IPv6, as the first four bits say."""
    LLC_HEADER = INNER | 2
    PPP_FRAME = INNER | 3
    FRAGMENT_4 = INNER | 4
    FRAGMENT_6 = INNER | 5
    ERSPAN_1 = INNER | 6
    ERSPAN_2 = INNER | 7
    ERSPAN_3 = INNER | 8
    WLAN = INNER | 9
    MPLS_PAYLOAD = INNER | 10
    VXLAN = INNER | 11
    VXLAN_GPE = INNER | 12
    GENEVE = INNER | 13
    TEREDO = INNER | 14
    GTP_U = INNER | 15
    L2TP = INNER | 16
    WLAN_PADDED = INNER | 18
    CAPWAP = INNER | 19
    AYIYA = INNER | 21
    WLAN_SWAPPED = INNER | 20
    """Some controllers write the octets of the frame control the wrong way round."""
    DATAGRAM = INNER | 17
    """A UDP datagram that is not a tunnel."""
    # Ends, by what they are called in ``not_decoded``:
    NOT_A_PACKET = INNER | 100
    WLAN_ENCRYPTED = INNER | 101
    WLAN_NO_DATA = INNER | 102
    UNKNOWN_INTERFACE = INNER | 103
    IP_VERSION = INNER | 104
    TOO_DEEP = INNER | 105
    BAD_HEADER = INNER | 106
    CONTROL = INNER | 107
    """Control messages of a tunnel protocol."""
    RAW_802_3 = INNER | 108


INNER_NAMES = {
    Inner.NOT_A_PACKET: "no packet (custom block, journal or event)",
    Inner.WLAN_ENCRYPTED: "802.11 encrypted",
    Inner.WLAN_NO_DATA: "802.11 management, control or no data",
    Inner.UNKNOWN_INTERFACE: "unknown interface",
    Inner.IP_VERSION: "not an IP version",
    Inner.TOO_DEEP: "nested too deep",
    Inner.BAD_HEADER: "impossible header",
    Inner.CONTROL: "tunnel control message",
    Inner.RAW_802_3: "IPX in raw 802.3",
    Inner.FRAGMENT_4: "ip fragment of a packet that is a fragment itself",
    Inner.FRAGMENT_6: "ip fragment of a packet that is a fragment itself",
}

ETHERTYPE_NAMES = {
    0x0806: "arp",
    0x0842: "wake-on-lan",
    0x2000: "cdp",
    0x6003: "decnet",
    0x8035: "rarp",
    0x809B: "appletalk",
    0x80F3: "aarp",
    0x8137: "ipx",
    0x8808: "ethernet flow control",
    0x8809: "lacp",
    0x8863: "pppoe discovery",
    0x888E: "eapol",
    0x8892: "profinet",
    0x88A2: "ata over ethernet",
    0x88A4: "ethercat",
    0x88B5: "local experimental ethertype",
    0x88BA: "iec 61850",
    0x88CC: "lldp",
    0x88E1: "homeplug",
    0x88E5: "macsec",
    0x88F7: "ptp",
    0x8902: "cfm",
    0x8906: "fcoe",
    0x8914: "fcoe initialization",
    0x8915: "roce",
    0x9000: "loopback",
}

IP_PROTOCOL_NAMES = {
    1: "icmp",
    2: "igmp",
    8: "egp",
    9: "igrp",
    46: "rsvp",
    50: "esp",
    58: "icmpv6",
    59: "no next header",
    88: "eigrp",
    89: "ospf",
    103: "pim",
    108: "ipcomp",
    112: "vrrp",
    115: "l2tpv3",
    132: "sctp",
    136: "udp-lite",
}

PPP_NAMES = {
    0x003D: "ppp multilink",
    0x00FD: "ppp compressed",
    0x8021: "ipcp",
    0x8057: "ipv6cp",
    0x80FD: "ppp ccp",
    0xC021: "lcp",
    0xC023: "ppp pap",
    0xC025: "ppp lqr",
    0xC223: "ppp chap",
}

LLC_NAMES = {0x42: "spanning tree", 0xE0: "ipx", 0xF0: "netbios", 0xFE: "iso", 0x04: "sna", 0xAA: "llc snap"}

LINK_TYPE_NAMES = {
    0: "NULL",
    1: "ETHERNET",
    2: "EXP_ETHERNET",
    3: "AX25",
    4: "PRONET",
    5: "CHAOS",
    6: "IEEE802_5 (token ring)",
    7: "ARCNET_BSD",
    8: "SLIP",
    9: "PPP",
    10: "FDDI",
    12: "RAW",
    14: "RAW",
    50: "PPP_HDLC",
    51: "PPP_ETHER",
    99: "SYMANTEC_FIREWALL",
    100: "ATM_RFC1483",
    101: "RAW",
    104: "C_HDLC",
    105: "IEEE802_11",
    107: "FRELAY",
    108: "LOOP",
    109: "ENC",
    113: "LINUX_SLL",
    114: "LTALK",
    117: "PFLOG",
    119: "IEEE802_11_PRISM",
    122: "IP_OVER_FC",
    123: "SUNATM",
    127: "IEEE802_11_RADIOTAP",
    129: "ARCNET_LINUX",
    138: "APPLE_IP_OVER_IEEE1394",
    139: "MTP2_WITH_PHDR",
    140: "MTP2",
    141: "MTP3",
    142: "SCCP",
    143: "DOCSIS",
    144: "LINUX_IRDA",
    147: "USER0",
    148: "USER1",
    149: "USER2",
    163: "IEEE802_11_AVS",
    165: "BACNET_MS_TP",
    166: "PPP_PPPD",
    169: "GPRS_LLC",
    170: "GPF_T",
    177: "LINUX_LAPD",
    182: "MFR",
    187: "BLUETOOTH_HCI_H4",
    189: "USB_LINUX",
    192: "PPI",
    195: "IEEE802_15_4_WITHFCS",
    196: "SITA",
    197: "ERF",
    201: "BLUETOOTH_HCI_H4_WITH_PHDR",
    202: "AX25_KISS",
    203: "LAPD",
    204: "PPP_WITH_DIR",
    205: "C_HDLC_WITH_DIR",
    206: "FRELAY_WITH_DIR",
    209: "IPMB_LINUX",
    212: "LIN",
    215: "IEEE802_15_4_NONASK_PHY",
    219: "MPLS",
    220: "USB_LINUX_MMAPPED",
    224: "FC_2",
    225: "FC_2_WITH_FRAME_DELIMS",
    226: "IPNET",
    227: "CAN_SOCKETCAN",
    228: "IPV4",
    229: "IPV6",
    230: "IEEE802_15_4_NOFCS",
    231: "DBUS",
    235: "DVB_CI",
    236: "MUX27010",
    237: "STANAG_5066_D_PDU",
    239: "NFLOG",
    240: "NETANALYZER",
    241: "NETANALYZER_TRANSPARENT",
    242: "IPOIB",
    243: "MPEG_2_TS",
    244: "NG40",
    245: "NFC_LLCP",
    247: "INFINIBAND",
    248: "SCTP",
    249: "USBPCAP",
    250: "RTAC_SERIAL",
    251: "BLUETOOTH_LE_LL",
    252: "WIRESHARK_UPPER_PDU",
    253: "NETLINK",
    254: "BLUETOOTH_LINUX_MONITOR",
    255: "BLUETOOTH_BREDR_BB",
    256: "BLUETOOTH_LE_LL_WITH_PHDR",
    257: "PROFIBUS_DL",
    258: "PKTAP",
    259: "EPON",
    260: "IPMI_HPM_2",
    261: "ZWAVE_R1_R2",
    262: "ZWAVE_R3",
    263: "WATTSTOPPER_DLM",
    264: "ISO_14443",
    265: "RDS",
    266: "USB_DARWIN",
    268: "SDLC",
    270: "LORATAP",
    271: "VSOCK",
    272: "NORDIC_BLE",
    273: "DOCSIS31_XRA31",
    274: "ETHERNET_MPACKET",
    275: "DISPLAYPORT_AUX",
    276: "LINUX_SLL2",
    278: "OPENVIZSLA",
    279: "EBHSCR",
    280: "VPP_DISPATCH",
    281: "DSA_TAG_BRCM",
    282: "DSA_TAG_BRCM_PREPEND",
    283: "IEEE802_15_4_TAP",
    284: "DSA_TAG_DSA",
    285: "DSA_TAG_EDSA",
    288: "USB_2_0",
    290: "ETW",
    292: "ZBOSS_NCP",
}
"""https://www.tcpdump.org/linktypes.html"""


def link_type_name(value: int) -> str:
    """``ETHERNET``, ``IEEE802_15_4_WITHFCS`` …; the number where it has no name."""
    if value >= UNASSIGNED_LINK_TYPE:
        return f"snoop data link {value & 0xFF}"
    return LINK_TYPE_NAMES.get(value, str(value))


def name_of(code: int) -> str:
    """How packets that end at ``code`` are called in ``not_decoded``."""
    space, value = code & SPACES, code & 0xFFFF
    if space == LINK_TYPE:
        return f"link type {link_type_name(value)}"
    if space == ETHERTYPE:
        return ETHERTYPE_NAMES.get(value, f"ethertype 0x{value:04x}")
    if space == IP_PROTOCOL:
        return IP_PROTOCOL_NAMES.get(value, f"ip protocol {value}")
    if space == PPP:
        return PPP_NAMES.get(value, f"ppp protocol 0x{value:04x}")
    if space == LLC:
        return LLC_NAMES.get(value, f"llc 0x{value:02x}")
    if space == NLPID:
        return f"nlpid 0x{value:02x}"
    return INNER_NAMES.get(Inner(code), Inner(code).name.lower())
