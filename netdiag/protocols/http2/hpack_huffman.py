"""The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B), decoded an octet at a time.

The code is canonical, so the lengths of its codes are the whole table. A state is what is left of an unfinished code; a transition takes
one octet and is worked out the first time it is needed: no table has to be built before the first header is read.
"""

from __future__ import annotations

_EOS = 256
_START = 1

# Length in bits of each symbol's code, 0 to 255 and EOS.
_LENGTHS = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b080606060505050606060606"
    "060607080f060c0a0d06070707070707070707070707070707070707070707070807080d130d0e060f050605060506060605070706060605"
    "06070605050607070707070f0b0e0d1c14161414161616171617171717171817181816171817171717151617161717181615141616171715"
    "1716161815161717151516151716171714161616171616171a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b"
    "14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a1e"
)


class HuffmanError(ValueError):
    """EOS inside the string, or padding that is not the beginning of EOS (RFC 7541 section 5.2)."""


def _codes() -> dict[tuple[int, int], int]:
    """(length, code) to symbol, from the lengths alone."""
    codes: dict[tuple[int, int], int] = {}
    code, length = 0, 0
    for symbol in sorted(range(257), key=lambda s: (_LENGTHS[s], s)):
        code <<= _LENGTHS[symbol] - length
        length = _LENGTHS[symbol]
        codes[length, code] = symbol
        code += 1
    return codes


class HuffmanDecoder:
    """A cache of transitions and of whole strings; one for the process is enough (it holds nothing of any one stream but octets).

    Long strings (cookies, content security policies) come back on every connection of a client, but only few of them are kept.
    """

    _MAX_STRINGS, _MAX_STRING_BYTES = 4096, 256
    _MAX_LONG_STRINGS, _MAX_LONG_STRING_BYTES = 128, 16 << 10

    def __init__(self) -> None:
        self._codes = _codes()
        # A state is the bits of an unfinished code behind a 1. Fewer than 257 exist: the code's inner nodes. Several threads may meet one
        # for the first time at once, and then work out the same.
        self._transitions: dict[int, list[tuple[int, bytes] | None]] = {_START: [None] * 256}
        """By state and octet: the next state, and the symbols that ended."""
        self._strings: dict[bytes, bytes] = {}
        self._long_strings: dict[bytes, bytes] = {}

    def decode(self, octets: bytes) -> bytes:
        """The string. Raises ``HuffmanError`` for a malformed one."""
        kept, most = self._strings, self._MAX_STRINGS
        if len(octets) > self._MAX_STRING_BYTES:
            kept, most = self._long_strings, self._MAX_LONG_STRINGS
        known = kept.get(octets)
        if known is not None:
            return known
        text = self._decode(octets)
        if len(octets) <= self._MAX_LONG_STRING_BYTES:
            if len(kept) >= most:
                kept.clear()
            kept[octets] = text
        return text

    def _decode(self, octets: bytes) -> bytes:
        transitions = self._transitions
        state = _START
        out: list[bytes] = []
        for octet in octets:
            state, symbols = transitions[state][octet] or self._work_out(state, octet)
            out.append(symbols)
        if state.bit_length() > 8 or state & (state + 1):
            raise HuffmanError("Huffman padding is not the beginning of EOS")
        return b"".join(out)

    def _work_out(self, state: int, octet: int) -> tuple[int, bytes]:
        bits = state.bit_length() - 1
        value = state ^ 1 << bits
        out = bytearray()
        for shift in range(7, -1, -1):
            bits, value = bits + 1, value << 1 | (octet >> shift & 1)
            symbol = self._codes.get((bits, value))
            if symbol is None:
                continue
            if symbol == _EOS:
                raise HuffmanError("EOS inside a Huffman string")
            out.append(symbol)
            bits, value = 0, 0
        step = 1 << bits | value, bytes(out)
        self._transitions.setdefault(step[0], [None] * 256)
        self._transitions[state][octet] = step
        return step
