"""Proxidor over UDP: a request with a list of candidates, a reply with the same list, best first.

All integers are in network byte order. A request is a fixed header of 12 bytes, optionally an
authentication block of 8 and a source, and one TLV for each run of candidates of one type::

    from nigh_oracle import Oracle
    ranking = Oracle("192.0.2.53").ask(["198.51.100.7", "2001:db8::9", "203.0.113.0/24"])
    ranking.candidates        # best first
    ranking.ttl               # seconds for which this holds
"""

from __future__ import annotations

import enum
import hmac
import ipaddress
import itertools
import secrets
import socket
import struct
import time
from dataclasses import dataclass
from typing import Iterable, List, Optional, Sequence, Tuple, Union

from .siphash import siphash24

PORT = 8899
"""UDP port of an oracle unless configured otherwise."""

Candidate = Union[
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network
]
"""What can be ranked: an address or a prefix of either family."""

Source = Union[str, ipaddress.IPv4Network, ipaddress.IPv6Network]
"""From where to rank instead of the sender's address: an address or a prefix."""

_HEADER = struct.Struct("!HHIHBB")
_TLV_HEADER = struct.Struct("!BBH")
_BLOCK = 8
_REPLY = 1 << 15
_AUTHENTICATED = 1 << 10
_SOURCE4 = 1 << 9
_SOURCE6 = 1 << 8

# Of each TLV type: bytes of one candidate, most of them in one datagram.
_SIZE = {1: 4, 2: 16, 3: 5, 4: 17}
_MOST = {1: 363, 2: 90, 3: 290, 4: 85}
_LONGEST = 1498
_LONGEST_REPLY = 1472  # where its types are mixed


class Rcode(enum.IntEnum):
    """The result of a request."""

    NO_ERROR = 0
    MALFORMED = 1
    NOT_SUPPORTED = 2
    REFUSED = 3
    NOT_AUTHENTICATED = 4
    BUSY = 5
    CUT = 6


class OracleError(Exception):
    """The question was not answered."""


class NoReply(OracleError):
    """No reply came in time; the request or the reply was lost, or the source is over its rate."""


class MalformedReply(OracleError):
    """The datagram is not a reply to the request."""


class Refused(OracleError):
    """The server answered with an error."""

    def __init__(self, rcode: int) -> None:
        try:
            name = Rcode(rcode).name.lower().replace("_", " ")
        except ValueError:
            name = "an error this client does not know"
        super().__init__(f"the oracle answers: {name} (rcode {rcode})")
        self.rcode = rcode


@dataclass(frozen=True)
class Ranking:
    """An answer."""

    candidates: List[Candidate]
    """What was asked, best first."""
    ttl: int
    """Seconds for which the ranking holds."""
    metrics: int
    """Bit n is set if the server has the n-th metric; bit 0 is its default."""
    cut: bool
    """The reply did not fit: what is missing ranks below what is there."""


def candidate(text: Union[str, Candidate]) -> Candidate:
    """A candidate from its text: an address, or a prefix if there is a ``/``."""
    if not isinstance(text, str):
        return text
    if "/" in text:
        return ipaddress.ip_network(text, strict=False)
    return ipaddress.ip_address(text)


def _type(of: Candidate) -> int:
    prefix = isinstance(of, (ipaddress.IPv4Network, ipaddress.IPv6Network))
    return (3 if prefix else 1) + (of.version == 6)


def _wire_size(run: Tuple[int, List[Candidate]]) -> int:
    kind, candidates = run
    return _TLV_HEADER.size + len(candidates) * _SIZE[kind]


def _value(of: Candidate) -> bytes:
    if isinstance(of, (ipaddress.IPv4Network, ipaddress.IPv6Network)):
        return of.network_address.packed + bytes([of.prefixlen])
    return of.packed


def encode_request(
    candidates: Sequence[Candidate],
    identification: int,
    *,
    metric: Optional[int] = None,
    key: Optional[bytes] = None,
    source4: Optional[Source] = None,
    source6: Optional[Source] = None,
) -> bytes:
    """The datagram that asks for a ranking.

    ``metric`` n asks for the server's n-th metric; without it the server takes its default. With a
    ``key`` of 16 bytes the request is authenticated. A source of either family asks to rank from
    there instead of from the sender's address, which the server must allow.
    """
    if not candidates:
        raise ValueError("nothing to rank: give at least one candidate")
    if metric is not None and not 0 <= metric <= 11:
        raise ValueError(f"metrics are numbered 0 to 11, not {metric}")
    for kind, most in _MOST.items():
        count = sum(_type(each) == kind for each in candidates)
        if count > most:
            raise ValueError(f"at most {most} candidates of this kind fit a datagram, not {count}")
    flags, extension = 0, b""
    if source4 is not None:
        flags |= _SOURCE4
        extension += _value(ipaddress.IPv4Network(source4, strict=False))
    if source6 is not None:
        flags |= _SOURCE6
        extension += _value(ipaddress.IPv6Network(source6, strict=False))
    if key is not None:
        flags |= _AUTHENTICATED
        extension = bytes(_BLOCK) + extension
    servcode = 0 if metric is None else 1 << metric
    head = _HEADER.pack(servcode, flags, identification, 0, 0, 1 if key is not None else 0)
    runs = [(kind, list(run)) for kind, run in itertools.groupby(candidates, _type)]
    if key is None:
        # A server sends no longer reply than the request was: empty TLVs for the runs that it may have more.
        most = max(sum(_type(each) == kind for each in candidates) for kind in _MOST)
        longest = min(2 * (len(candidates) - most) + 1, len(candidates))
        size = _HEADER.size + len(extension) + sum(map(_wire_size, runs))
        room = max(0, (_LONGEST_REPLY - size) // _TLV_HEADER.size)
        runs[:0] = [(1, [])] * min(longest - len(runs), room)
    body = b""
    for position, (kind, run) in enumerate(runs):
        more = 0x80 if position + 1 < len(runs) else 0
        body += _TLV_HEADER.pack(kind, more, _wire_size((kind, run))) + b"".join(map(_value, run))
    datagram = head + extension + body
    if len(datagram) > _LONGEST:
        raise ValueError(f"a datagram has at most {_LONGEST} bytes: ask for fewer candidates at once")
    if key is not None:
        tag = siphash24(key, datagram).to_bytes(_BLOCK, "big")
        datagram = head + tag + datagram[_HEADER.size + _BLOCK :]
    return datagram


def decode_reply(datagram: bytes, identification: int, key: Optional[bytes] = None) -> Ranking:
    """The ranking in a reply.

    Raises :class:`Refused` for an error reply and :class:`MalformedReply` for anything that is not a
    reply to the request with this ``identification``, under this ``key``.
    """
    if len(datagram) < _HEADER.size:
        raise MalformedReply(f"{len(datagram)} bytes are too short for a header")
    first, flags, identity, ttl, category, authentication = _HEADER.unpack_from(datagram)
    if not flags & _REPLY or first >> 12 or category:
        raise MalformedReply("not a reply of Proxidor's version 0")
    if identity != identification:
        raise MalformedReply("a reply to another request")
    rcode = flags & 0xF
    if rcode not in (Rcode.NO_ERROR, Rcode.CUT):
        raise Refused(rcode)
    at = _HEADER.size
    if flags & _AUTHENTICATED:
        block = datagram[at : at + _BLOCK]
        if len(block) < _BLOCK:
            raise MalformedReply("cut within the authentication block")
        if key is not None and authentication == 1:
            zeroed = datagram[:at] + bytes(_BLOCK) + datagram[at + _BLOCK :]
            if not hmac.compare_digest(siphash24(key, zeroed).to_bytes(_BLOCK, "big"), block):
                raise MalformedReply("its tag is wrong: not from this oracle, or another key")
        at += _BLOCK
    if key is not None and not (flags & _AUTHENTICATED and authentication == 1):
        raise MalformedReply("not authenticated, though the request was")
    at += (5 if flags & _SOURCE4 else 0) + (17 if flags & _SOURCE6 else 0)
    return Ranking(_decode_tlvs(datagram, at), ttl, first & 0xFFF, rcode == Rcode.CUT)


def _decode_tlvs(datagram: bytes, at: int) -> List[Candidate]:
    candidates: List[Candidate] = []
    more = True
    while more:
        if len(datagram) < at + _TLV_HEADER.size:
            raise MalformedReply("cut within a TLV's header")
        kind, bits, size = _TLV_HEADER.unpack_from(datagram, at)
        more = bool(bits & 0x80)
        begin = at + _TLV_HEADER.size + (0, 4, 8, 16)[bits >> 5 & 3]
        end = at + size
        width = _SIZE.get(kind)
        if width is None:
            raise MalformedReply(f"TLV type {kind} is not known")
        if end > len(datagram) or end < begin or (end - begin) % width:
            raise MalformedReply(f"a TLV has an impossible size of {size} bytes")
        candidates += (_decode(kind, datagram[i : i + width]) for i in range(begin, end, width))
        at = end
    if at != len(datagram):
        raise MalformedReply(f"{len(datagram) - at} bytes behind the last TLV")
    return candidates


def _decode(kind: int, value: bytes) -> Candidate:
    try:
        if kind in (1, 2):
            return ipaddress.ip_address(value)
        return ipaddress.ip_network((value[:-1], value[-1]), strict=False)
    except ValueError as error:
        raise MalformedReply(str(error)) from error


class Oracle:
    """An oracle at an address, asked over UDP.

    ``timeout`` is in seconds for each try; a request is sent ``tries`` times at most.
    """

    def __init__(
        self,
        host: str,
        port: int = PORT,
        *,
        timeout: float = 0.5,
        tries: int = 3,
        key: Optional[bytes] = None,
    ) -> None:
        self.host, self.port = host, port
        self.timeout, self.tries, self.key = timeout, tries, key

    def rank(
        self, candidates: Iterable[Union[str, Candidate]], metric: Optional[int] = None
    ) -> List[Candidate]:
        """The candidates, best first."""
        return self.ask(candidates, metric=metric).candidates

    def ask(
        self,
        candidates: Iterable[Union[str, Candidate]],
        *,
        metric: Optional[int] = None,
        source: Optional[Source] = None,
    ) -> Ranking:
        """The whole answer; raises :class:`OracleError`, or ``OSError`` if nothing can be sent."""
        asked = [candidate(each) for each in candidates]
        identification = secrets.randbits(32)
        net = None if source is None else ipaddress.ip_network(source, strict=False)
        request = encode_request(
            asked,
            identification,
            metric=metric,
            key=self.key,
            source4=net if isinstance(net, ipaddress.IPv4Network) else None,
            source6=net if isinstance(net, ipaddress.IPv6Network) else None,
        )
        family, kind, protocol, _, address = socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as sock:
            # Connected: the kernel drops what does not come from the oracle.
            sock.connect(address)
            for _ in range(self.tries):
                try:
                    sock.send(request)
                except ConnectionRefusedError:
                    continue  # the port was closed at the previous try
                ranking = self._receive(sock, identification)
                if ranking is not None:
                    return ranking
        raise NoReply(
            f"no reply from {self.host} port {self.port} "
            f"after {self.tries} tries of {self.timeout} s each"
        )

    def _receive(self, sock: socket.socket, identification: int) -> Optional[Ranking]:
        """The reply, or nothing if none comes in time; other datagrams are skipped."""
        end = time.monotonic() + self.timeout
        while (left := end - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                datagram = sock.recv(65535)
            except (socket.timeout, ConnectionRefusedError):
                continue
            try:
                return decode_reply(datagram, identification, self.key)
            except MalformedReply:
                continue
        return None
