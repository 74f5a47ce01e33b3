"""Clients of nigh's oracle, which ranks candidate addresses by the operator's view of distance.

Standard library only. Two protocols, one order:

* :mod:`nigh_oracle.proxidor` asks over UDP: one datagram for the request, one for the reply.
* :mod:`nigh_oracle.alto` asks over HTTPS (RFC 7285).

>>> from nigh_oracle import Oracle
>>> Oracle("192.0.2.53").rank(["198.51.100.7", "203.0.113.9"])      # doctest: +SKIP
[IPv4Address('203.0.113.9'), IPv4Address('198.51.100.7')]
"""

from .alto import AltoClient, AltoError
from .proxidor import (
    Candidate,
    MalformedReply,
    NoReply,
    Oracle,
    OracleError,
    Ranking,
    Rcode,
    Refused,
)

__all__ = [
    "AltoClient",
    "AltoError",
    "Candidate",
    "MalformedReply",
    "NoReply",
    "Oracle",
    "OracleError",
    "Ranking",
    "Rcode",
    "Refused",
]
