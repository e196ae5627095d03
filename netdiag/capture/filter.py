"""What to capture, as libpcap text for dumpcap and tshark, and as a classic BPF program for a packet socket of our own.

The program needs no libpcap to compile it: it is assembled here, over the kernel's link-layer independent offsets (linux/filter.h
SKF_NET_OFF), so the same program suits Ethernet, loopback and tunnels.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass

DNS_PORT, HTTPS_PORT = 53, 443
SNAP_BYTES = 262_144
"""Whole packets, segmentation-offload frames of loopback included: decryption needs every octet."""


@dataclass(frozen=True, slots=True)
class Rule:
    """TCP and UDP (QUIC, DNS) from or to a port, of one host or of any."""

    port: int
    host: str | None = None


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """The rules, plus ICMP and ICMPv6, plus later fragments (which carry no ports)."""

    rules: tuple[Rule, ...]
    all_tcp: bool = False
    """Every TCP packet, whatever its port: for a program whose targets are not known beforehand."""

    def text(self) -> str:
        """The filter in libpcap's language (pcap-filter(7))."""
        ports = (_rule_text(rule) for rule in self.rules)
        return " or ".join(
            (*(("tcp",) if self.all_tcp else ()), *ports, "icmp", "icmp6", "(ip[6:2] & 0x1fff != 0)", "(ip6 proto 44)")
        )

    def program(self, *, drop_outgoing: bool) -> bytes:
        """struct sock_filter[]. ``drop_outgoing``: on loopback every packet passes twice, and one copy is enough (as libpcap does)."""
        return _assemble(list(_program(self, drop_outgoing=drop_outgoing)))


def target_filter(ports: set[int], hosts: tuple[str, ...] = (), extra: tuple[Rule, ...] = ()) -> CaptureFilter:
    """A filter for a probe: the target's ports, narrowed to its addresses where they are known, DNS, and ``extra`` (proxy, marker)."""
    targets = [Rule(port, host) for port in sorted(ports) for host in hosts or (None,)]
    return CaptureFilter(tuple(dict.fromkeys((*targets, Rule(DNS_PORT), *extra))))


def _rule_text(rule: Rule) -> str:
    port = f"port {rule.port}"
    return port if rule.host is None else f"(host {rule.host} and {port})"


# --- classic BPF (linux/bpf_common.h, linux/filter.h) ---

_LD_W, _LD_H, _LD_B = 0x20, 0x28, 0x30  # BPF_LD | size | BPF_ABS
_LD_H_IND = 0x48
_AND, _LSH, _TAX, _RET = 0x54, 0x64, 0x07, 0x06
_JEQ, _JSET, _JA = 0x15, 0x45, 0x05
_NET = 0xFFF00000  # SKF_NET_OFF: the network header
_AD_PROTOCOL, _AD_PKTTYPE = 0xFFFFF000, 0xFFFFF004  # SKF_AD_OFF + SKF_AD_PROTOCOL, SKF_AD_PKTTYPE
_PACKET_OUTGOING = 4
_ETHERTYPE_IPV4, _ETHERTYPE_IPV6 = 0x0800, 0x86DD
_ICMP, _TCP, _UDP, _FRAGMENT, _ICMPV6 = 1, 6, 17, 44, 58

_Step = tuple[int, int, str, str]
"""(operation, operand, label when true, label when false); an empty label is the next step."""


@dataclass(frozen=True, slots=True)
class _Label:
    name: str


def _program(filter_: CaptureFilter, *, drop_outgoing: bool) -> Iterator[_Step | _Label]:
    if drop_outgoing:
        yield (_LD_W, _AD_PKTTYPE, "", "")
        yield (_JEQ, _PACKET_OUTGOING, "", "protocol")
        yield (_RET, 0, "", "")
        yield _Label("protocol")
    yield (_LD_W, _AD_PROTOCOL, "", "")
    yield (_JEQ, _ETHERTYPE_IPV4, "ipv4", "")
    yield (_JEQ, _ETHERTYPE_IPV6, "", "neither")
    yield (_JA, 0, "ipv6", "")
    yield _Label("neither")
    yield (_RET, 0, "", "")
    yield _Label("ipv4")
    yield from _ipv4(filter_.rules, all_tcp=filter_.all_tcp)
    yield _Label("ipv6")
    yield from _ipv6(filter_.rules, all_tcp=filter_.all_tcp)


def _ipv4(rules: tuple[Rule, ...], *, all_tcp: bool) -> Iterator[_Step | _Label]:
    yield (_LD_B, _NET + 9, "", "")
    yield (_JEQ, _ICMP, "v4-all", "")
    yield (_JEQ, _TCP, "v4-all" if all_tcp else "v4-fragment", "")
    yield (_JEQ, _UDP, "v4-fragment", "")
    yield (_RET, 0, "", "")
    yield _Label("v4-fragment")
    yield (_LD_H, _NET + 6, "", "")
    yield (_JSET, 0x1FFF, "v4-all", "v4-ports")
    yield _Label("v4-all")
    yield (_RET, SNAP_BYTES, "", "")
    yield _Label("v4-ports")
    yield (_LD_B, _NET, "", "")  # header length in words, times 4, is where the ports are
    yield (_AND, 0x0F, "", "")
    yield (_LSH, 2, "", "")
    yield (_TAX, 0, "", "")
    for number, rule in enumerate(rules):
        if rule.host is None or ":" not in rule.host:
            yield from _rule(rule, f"v4-{number}", (_LD_H_IND, _NET), source=12, destination=16)
    yield (_RET, 0, "", "")


def _ipv6(rules: tuple[Rule, ...], *, all_tcp: bool) -> Iterator[_Step | _Label]:
    """Extension headers other than a fragment's are not walked: hosts do not send them with TCP."""
    yield (_LD_B, _NET + 6, "", "")
    yield (_JEQ, _ICMPV6, "v6-all", "")
    yield (_JEQ, _FRAGMENT, "v6-all", "")
    yield (_JEQ, _TCP, "v6-all" if all_tcp else "v6-ports", "")
    yield (_JEQ, _UDP, "v6-ports", "")
    yield (_RET, 0, "", "")
    yield _Label("v6-all")
    yield (_RET, SNAP_BYTES, "", "")
    yield _Label("v6-ports")
    for number, rule in enumerate(rules):
        if rule.host is None or ":" in rule.host:
            yield from _rule(rule, f"v6-{number}", (_LD_H, _NET + 40), source=8, destination=24)
    yield (_RET, 0, "", "")


def _rule(rule: Rule, name: str, ports: tuple[int, int], *, source: int, destination: int) -> Iterator[_Step | _Label]:
    """Every rule ends in a return of its own, since a conditional jump reaches 255 steps at most."""
    load, offset = ports
    yield (load, offset, "", "")
    yield (_JEQ, rule.port, f"{name}-host", "")
    yield (load, offset + 2, "", "")
    yield (_JEQ, rule.port, f"{name}-host", f"{name}-no")
    yield _Label(f"{name}-host")
    if rule.host is not None:
        words = struct.unpack(f">{len(_packed(rule.host)) // 4}I", _packed(rule.host))
        yield from _address(words, _NET + source, f"{name}-yes", f"{name}-other")
        yield _Label(f"{name}-other")
        yield from _address(words, _NET + destination, f"{name}-yes", f"{name}-no")
    yield _Label(f"{name}-yes")
    yield (_RET, SNAP_BYTES, "", "")
    yield _Label(f"{name}-no")


def _address(words: tuple[int, ...], offset: int, yes: str, no: str) -> Iterator[_Step | _Label]:
    for place, word in enumerate(words):
        last = place == len(words) - 1
        yield (_LD_W, offset + 4 * place, "", "")
        yield (_JEQ, word, yes if last else "", no)


def _packed(host: str) -> bytes:
    return ipaddress.ip_address(host).packed


def _assemble(steps: list[_Step | _Label]) -> bytes:
    """Labels to forward distances."""
    places: dict[str, int] = {}
    code: list[_Step] = []
    for step in steps:
        if isinstance(step, _Label):
            places[step.name] = len(code)
        else:
            code.append(step)
    return b"".join(_instruction(here, step, places) for here, step in enumerate(code))


def _instruction(here: int, step: _Step, places: dict[str, int]) -> bytes:
    operation, operand, yes, no = step
    if operation == _JA:
        return struct.pack("=HBBI", operation, 0, 0, places[yes] - here - 1)
    distances = [places[label] - here - 1 if label else 0 for label in (yes, no)]
    return struct.pack("=HBBI", operation, *distances, operand)
