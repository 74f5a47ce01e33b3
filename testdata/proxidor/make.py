#!/usr/bin/env python3
"""Writes the vectors of the Proxidor protocol beside this file; README.md describes them.

Everything here comes from the specification: requests are put together byte by byte, and what they
are answered with is worked out by the short rules below, which share no code with any implementation.
"""

import ipaddress
import json
import pathlib

# --- The network: three routers in a row, 1000 Mbit/s between them, 1 ms and 20 ms. ---------------

ROUTERS = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
LATENCY = [1.0, 20.0]
INTERNAL = [
    ("192.0.2.0/26", 0), ("192.0.2.64/26", 1), ("192.0.2.128/26", 2),
    ("2001:db8:1::/48", 0), ("2001:db8:2::/48", 1), ("2001:db8:3::/48", 2),
]
# prefix, exit, AS distance, AS number
ROUTES = [
    ("198.51.100.0/24", 2, 2, 64501),
    ("203.0.113.0/24", 0, 1, 64502),
    ("203.0.113.128/25", 2, 1, 64503),
    ("2001:db8:8000::/33", 2, 3, 64504),
]
DEFAULT = "8 * as_distance + 0.5 * internal_hops + 10 / min_bandwidth"


def network(metrics, default_router=None):
    links = []
    for low, latency in enumerate(LATENCY):
        for a, b in ((low, low + 1), (low + 1, low)):
            links.append({"from": ROUTERS[a], "to": ROUTERS[b], "bandwidth_mbit": 1000.0,
                          "latency_ms": latency, "weight": 1, "congestion": 0.0, "loss": 0.0})
    return {
        "routers": ROUTERS,
        "links": links,
        "internal": [{"prefix": p, "router": ROUTERS[r]} for p, r in INTERNAL],
        "routes": [{"prefix": p, "exit": ROUTERS[r], "as_distance": d, "as_number": n}
                   for p, r, d, n in ROUTES],
        "metrics": metrics,
        "default_router": default_router,
    }


METRICS = [{"name": "default", "cost": DEFAULT}, {"name": "latency", "cost": "latency"}]
NETWORKS = {
    "row": network(METRICS),
    "row with a default router": network(METRICS, ROUTERS[2]),
    "row with one metric": network(METRICS[:1]),
}


def place(net):
    """Where the longest prefix that covers all of `net` is: router and AS distance."""
    found = None
    for prefix, router, distance in [(p, r, 0) for p, r in INTERNAL] + [r[:3] for r in ROUTES]:
        prefix = ipaddress.ip_network(prefix)
        if prefix.version == net.version and net.subnet_of(prefix):
            if found is None or prefix.prefixlen > found[0]:
                found = (prefix.prefixlen, router, distance)
    return None if found is None else found[1:]


def cost(metric, source, candidate):
    """None: nothing is known. Without a source all that is known costs the same."""
    there = place(ipaddress.ip_network(candidate, strict=False))
    if there is None:
        return None
    if source is None:
        return 0.0
    router, distance = there
    low, high = sorted((source, router))
    if metric == 1:
        return sum(LATENCY[low:high])
    return 8 * distance + 0.5 * (high - low) + (0.01 if high > low else 0.0)


def ranking(metric, source, candidates):
    costs = [cost(metric, source, c) for c in candidates]
    order = sorted(range(len(candidates)),
                   key=lambda i: (costs[i] is None, costs[i] or 0.0, i))
    return [candidates[i] for i in order]


# --- Bytes. ---------------------------------------------------------------------------------------

KEY = bytes(range(16))
OTHER_KEY = bytes(range(16, 32))
WIDTH = {1: 4, 2: 16, 3: 5, 4: 17}


def siphash(key, data):
    """SipHash-2-4, after the paper."""
    mask = (1 << 64) - 1
    rotate = lambda x, b: (x << b | x >> 64 - b) & mask
    k0, k1 = (int.from_bytes(key[i:i + 8], "little") for i in (0, 8))
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rounds(count):
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0 = v0 + v1 & mask; v1 = rotate(v1, 13) ^ v0; v0 = rotate(v0, 32)
            v2 = v2 + v3 & mask; v3 = rotate(v3, 16) ^ v2
            v0 = v0 + v3 & mask; v3 = rotate(v3, 21) ^ v0
            v2 = v2 + v1 & mask; v1 = rotate(v1, 17) ^ v2; v2 = rotate(v2, 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at:at + 8], "little")
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v0 ^ v1 ^ v2 ^ v3


def sign(message, key):
    """Fills the block of a message whose block is zero."""
    return message[:12] + siphash(key, message).to_bytes(8, "big") + message[20:]


def kind(candidate):
    six = ":" in candidate
    return (4 if six else 3) if "/" in candidate else (2 if six else 1)


def raw(candidate):
    address, _, length = candidate.partition("/")
    packed = ipaddress.ip_address(address).packed
    return packed + bytes([int(length)]) if length else packed


def header(*, version=0, servcode=0, q=0, opcode=0, a=0, s4=0, s6=0, zero=0, rcode=0,
           ident=0x01020304, ttl=0, category=0, auth=0):
    word = (version << 28 | servcode << 16 | q << 15 | opcode << 11 | a << 10 | s4 << 9 | s6 << 8
            | zero << 4 | rcode)
    return (word.to_bytes(4, "big") + ident.to_bytes(4, "big") + ttl.to_bytes(2, "big")
            + bytes([category, auth]))


def tlv(number, payload, *, n=0, al=0, at=0, size=None):
    attribute = bytes(range(0xA0, 0xA0 + (0, 4, 8, 16)[al]))
    size = 4 + len(attribute) + len(payload) if size is None else size
    return bytes([number, n << 7 | al << 5 | at]) + size.to_bytes(2, "big") + attribute + payload


def runs(candidates, limit=None, used=0):
    """TLVs, one a run of one type, as far as they stay within the limit; and what was written."""
    written, groups = [], []
    for candidate in candidates:
        same = groups and kind(groups[-1][0]) == kind(candidate)
        used += WIDTH[kind(candidate)] + (0 if same else 4)
        if limit is not None and used > limit:
            break
        if same:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
        written.append(candidate)
    out = b""
    for i, group in enumerate(groups):
        out += tlv(kind(group[0]), b"".join(map(raw, group)), n=int(i + 1 < len(groups)))
    return out, written


# --- Cases. ---------------------------------------------------------------------------------------

CLIENT = "192.0.2.10"       # at router 1
FAR_CLIENT = "192.0.2.140"  # at router 3
UNKNOWN = "100.64.0.9"      # the network does not know it
FILES = {}
DEFAULT_SETTINGS = {"ttl": 60, "sources": [], "key": None, "required": False}


def add(file, name, rule, request, *, net="row", client=CLIENT, query=None, **outcome):
    settings = dict(DEFAULT_SETTINGS, **outcome.pop("settings", {}))
    case = {"name": name, "rule": rule, "network": net, "settings": settings, "from": client}
    if query is not None:
        case["query"] = query
    case["request"] = request.hex()
    case.update(outcome)
    FILES.setdefault(file, []).append(case)


def servcode_of(net):
    return 0 if net is None else (1 << len(NETWORKS[net]["metrics"])) - 1


def error(file, name, rule, request, rcode, *, net="row", ident=0x01020304, **more):
    reply = header(servcode=servcode_of(net), q=1, rcode=rcode, ident=ident)
    add(file, name, rule, request, net=net, rcode=rcode, reply=reply.hex(), **more)


def drop(file, name, rule, request, why, **more):
    add(file, name, rule, request, drop=why, **more)


def answer(file, name, rule, request, candidates, *, at=0, metric=0, net="row", tag=None,
           ident=0x01020304, settings=None, query=None, client=CLIENT):
    """A request that is ranked as from the router `at`."""
    settings = settings or {}
    ordered = ranking(metric, at, candidates)
    front = 12 + (8 if tag else 0)
    mixed = len({kind(c) for c in candidates}) > 1
    longest = 1472 if tag else min(1472, len(request))
    lists, written = runs(ordered, longest if mixed else None, front)
    rcode = 0 if len(written) == len(ordered) else 6
    reply = header(servcode=servcode_of(net), q=1, a=int(bool(tag)), rcode=rcode, ident=ident,
                   ttl=settings.get("ttl", 60), auth=int(bool(tag)))
    reply = reply + bytes(8 if tag else 0) + lists
    reply = sign(reply, tag) if tag else reply
    add(file, name, rule, request, net=net, client=client, query=query, settings=settings,
        rcode=rcode, reply=reply.hex(), ranking=written)


def padding(candidates, used):
    """Empty TLVs, so that a mixed request is as long as its longest reply."""
    kinds = [kind(candidate) for candidate in candidates]
    runs_here = 1 + sum(a != b for a, b in zip(kinds, kinds[1:]))
    others = len(kinds) - max(map(kinds.count, kinds))
    count = min(min(2 * others + 1, len(kinds)) - runs_here, max(0, 1472 - used) // 4)
    return tlv(1, b"", n=1) * count


def asked(file, name, rule, candidates, *, metric=None, source4=None, source6=None, tag=None,
          fields=None, at=0, error_code=None, **more):
    """A request as a client writes it."""
    fields = dict(fields or {})
    ident = fields.get("ident", 0x01020304)
    out = header(servcode=0 if metric is None else 1 << metric, a=int(bool(tag)),
                 s4=int(bool(source4)), s6=int(bool(source6)), auth=int(bool(tag)), **fields)
    out += bytes(8 if tag else 0) + b"".join(raw(s) for s in (source4, source6) if s)
    lists = runs(candidates)[0]
    if not tag:
        out += padding(candidates, len(out) + len(lists))
    out += lists
    out = sign(out, tag) if tag else out
    query = {"identification": ident, "metric": metric, "source4": source4, "source6": source6,
             "key": tag.hex() if tag else None, "candidates": candidates}
    # What a client has no reason to write, it has no reason to be tested on.
    query = None if set(fields) - {"ident"} else query
    if error_code is not None:
        return error(file, name, rule, out, error_code, query=query, **more)
    answer(file, name, rule, out, candidates, at=at, metric=metric or 0, tag=tag, ident=ident,
           query=query, **more)


NEAR, MIDDLE, FAR = "192.0.2.1", "192.0.2.65", "192.0.2.129"
OUT1, OUT2, OUT3 = "198.51.100.7", "203.0.113.7", "203.0.113.200"
NOWHERE = "100.64.0.1"
NEAR6, MIDDLE6, FAR6, OUT6 = "2001:db8:1::1", "2001:db8:2::1", "2001:db8:3::1", "2001:db8:8000::1"
NOWHERE6 = "3fff::1"
ALL = [OUT1, NOWHERE, FAR, OUT3, NEAR, OUT2, MIDDLE]
KEYED = {"key": KEY.hex()}
DEMANDED = {"key": KEY.hex(), "required": True}


def four(*candidates):
    return tlv(1, b"".join(map(raw, candidates)))


def plain():
    f = "plain"
    asked(f, "best first", "A reply carries the same candidates, best first.", [FAR, MIDDLE, NEAR])
    asked(f, "all kinds of paths", "best first; the longest prefix counts", ALL)
    asked(f, "from another router the order is another", "rank from the sender's address", ALL,
          client=FAR_CLIENT, at=2)
    asked(f, "from a sender beyond an exit", "rank from the sender's address", ALL,
          client="198.51.100.99", at=2)
    asked(f, "from an IPv6 sender", "rank from the sender's address", ALL,
          client="2001:db8:3::9", at=2)
    asked(f, "from an IPv4 sender that an IPv6 socket sees", "rank from the sender's address", ALL,
          client="::ffff:192.0.2.140", at=2)
    asked(f, "from a sender that the network does not know", "Equal costs keep the order of the "
          "request. A candidate that the server knows nothing of goes last.", ALL,
          client=UNKNOWN, at=None)
    asked(f, "an unknown sender counts as at the default router", "the configured default router",
          ALL, client=UNKNOWN, net="row with a default router", at=2)
    asked(f, "one candidate", "at least 1", [FAR])
    asked(f, "equal costs", "Equal costs keep the order of the request.",
          ["192.0.2.130", MIDDLE, "192.0.2.129", "192.0.2.131", "192.0.2.66"])
    asked(f, "unknown candidates", "A candidate that the server knows nothing of goes last.",
          [NOWHERE, OUT1, "100.64.0.2", NEAR])
    asked(f, "only unknown candidates", "Equal costs keep the order of the request.",
          ["100.64.0.2", NOWHERE])
    asked(f, "duplicates", "A candidate that occurs twice occurs twice in the reply.",
          [FAR, NEAR, FAR, NOWHERE, NEAR, NOWHERE])
    asked(f, "363 addresses", "At most 363 IPv4 addresses in a datagram",
          [f"192.0.2.{(i * 37) % 256}" for i in range(363)])
    asked(f, "identification of all ones", "Identification is returned untouched.", [FAR, NEAR],
          fields={"ident": 0xFFFFFFFF})
    asked(f, "identification 0", "Identification is returned untouched.", [FAR, NEAR],
          fields={"ident": 0})
    asked(f, "TTL in a request", "TTL: set by the server; ignored in requests.", [FAR, NEAR],
          fields={"ttl": 4711})
    asked(f, "configured TTL", "60 unless configured", [FAR, NEAR], settings={"ttl": 300})
    asked(f, "Zero and Rcode in a request", "ignored, zero in the reply", [FAR, NEAR],
          fields={"zero": 15, "rcode": 3})
    asked(f, "the default metric by its bit", "bit 0 the default", ALL, metric=0)
    asked(f, "a named metric", "a request with one bit set asks for that metric", ALL, metric=1)
    asked(f, "a server with one metric", "in a reply the server may set bits for the metrics it has",
          ALL, net="row with one metric")
    error(f, "no ranking", "no ranking is loaded yet: Rcode 5", header() + four(NEAR), 5, net=None)
    error(f, "a metric of which nothing can be said without a ranking", "Rcode 5",
          header(servcode=8) + four(NEAR), 5, net=None)


def lists():
    f = "lists"
    six = [OUT6, NOWHERE6, FAR6, MIDDLE6, NEAR6]
    asked(f, "IPv6 addresses", "Type 2: IPv6 addresses", six)
    asked(f, "90 IPv6 addresses", "At most 90 IPv6 addresses",
          [f"2001:db8:{1 + i % 4}::{i:x}" for i in range(90)])
    nets = ["198.51.100.0/25", "192.0.2.128/26", "192.0.2.64/27", "192.0.2.1/32"]
    asked(f, "IPv4 prefixes", "Type 3: IPv4 prefixes", nets)
    asked(f, "290 IPv4 prefixes", "prefixes of 5 bytes: 290",
          [f"192.0.2.{(i * 37) % 256}/32" for i in range(290)])
    asked(f, "IPv6 prefixes", "Type 4: IPv6 prefixes",
          ["2001:db8:8000::/34", "2001:db8:3::/64", "2001:db8:1::7/128", "2001:db8:2::/48"])
    asked(f, "85 IPv6 prefixes", "prefixes: 85",
          [f"2001:db8:{1 + i % 4}:{i:x}::/64" for i in range(85)])
    asked(f, "prefixes that nothing covers as a whole",
          "A candidate that the server knows nothing of goes last.",
          ["0.0.0.0/0", "192.0.2.0/24", "203.0.113.0/24", "203.0.113.128/25", "192.0.2.128/25"])
    asked(f, "host bits in prefixes", "host bits set in a prefix: taken as the prefix; a reply "
          "carries the same candidates",
          ["192.0.2.191/26", "203.0.113.255/24", "203.0.113.255/25", "192.0.2.3/31"])
    asked(f, "host bits in IPv6 prefixes", "host bits set in a prefix: taken as the prefix",
          ["2001:db8:3:ffff::1/48", "2001:db8:2::1/47", "2001:db8:1::1/64"])
    mixed = [OUT1, FAR6, NEAR, "192.0.2.64/26", OUT6, MIDDLE6, "2001:db8:1::/48", NOWHERE]
    asked(f, "mixed types", "each run of one type in rank order is a TLV", mixed)
    asked(f, "mixed types whose runs join", "each run of one type in rank order is a TLV",
          [NEAR, MIDDLE6, "192.0.2.2", FAR6, "192.0.2.3"])
    asked(f, "mixed types from elsewhere", "reading them in order gives the ranking", mixed,
          client=FAR_CLIENT, at=2)
    answer(f, "a mixed reply is not longer than its request",
           "without a tag no reply is longer than its request",
           header() + tlv(1, raw(OUT1) + raw(NEAR), n=1) + tlv(2, raw(FAR6) + raw(MIDDLE6)),
           [OUT1, NEAR, FAR6, MIDDLE6])
    answer(f, "TLVs of one type become one", "A request's TLVs are merged into one list. If all "
           "are of one type it is one TLV",
           header() + tlv(1, raw(FAR), n=1) + tlv(1, raw(MIDDLE) + raw(OUT1), n=1) + four(NEAR),
           [FAR, MIDDLE, OUT1, NEAR])
    for al, length in ((1, 4), (2, 8), (3, 16)):
        answer(f, f"an attribute of {length} bytes",
               "attributes are skipped and never returned",
               header() + tlv(1, raw(FAR) + raw(NEAR), al=al, at=5), [FAR, NEAR])
    answer(f, "attributes of two TLVs", "attributes are skipped and never returned",
           header() + tlv(2, raw(FAR6), n=1, al=3, at=31) + tlv(1, raw(NEAR), al=1), [FAR6, NEAR])
    answer(f, "AT without an attribute", "AT given while AL is none: ignored",
           header() + tlv(1, raw(FAR) + raw(NEAR), at=31), [FAR, NEAR])
    answer(f, "an empty TLV before another", "an empty TLV beside others that are not: ignored",
           header() + tlv(2, b"", n=1) + four(FAR, NEAR), [FAR, NEAR])
    answer(f, "an empty TLV behind another", "an empty TLV beside others that are not: ignored",
           header() + tlv(1, raw(FAR) + raw(NEAR), n=1) + tlv(4, b"", al=2), [FAR, NEAR])
    # Runs of one candidate: an IPv4 and an IPv6 address of equal cost, alternating.
    pairs = [c for i in range(52) for c in (f"192.0.2.{i}", f"2001:db8:1::{i:x}")]
    full = pairs + ["192.0.2.60/32"]
    # 12 + 52 * (8 + 20) = 1468 bytes; a prefix more would be 1477, an address more 1476.
    lists_of = b"".join(tlv(kind(c), raw(c), n=int(i + 1 < len(full))) for i, c in enumerate(full))
    answer(f, "a mixed reply that is too long", "where it would pass 1,472 bytes it is cut and its "
           "Rcode is 6: what is missing ranks below what is there", header() + lists_of, full)
    # Equal costs: the addresses of an IPv4 run take 4 bytes each, so 1472 bytes can be met.
    exact = ["192.0.2.60"] + pairs
    lists_of = (tlv(1, raw(exact[0]) + raw(exact[1]), n=1)
                + b"".join(tlv(kind(c), raw(c), n=int(i + 1 < len(exact) - 2))
                           for i, c in enumerate(exact[2:])))
    answer(f, "a mixed reply of 1,472 bytes", "where it would pass 1,472 bytes it is cut",
           header() + lists_of, exact)
    # Best last: what is cut is what ranks lowest, not what came last.
    backwards = ([f"2001:db8:3::{i:x}" for i in range(60)] + ["192.0.2.1"] * 120)
    asked(f, "the worst of a mixed reply is left out", "what is missing ranks below what is there",
          backwards)


def sources():
    f = "sources"
    allowed = {"sources": ["192.0.2.0/28", "2001:db8:1::/64"]}
    rule = "if 4, an IPv4 address and a prefix length follow: rank from that source"
    asked(f, "an IPv4 source", rule, ALL, source4="192.0.2.128/26", settings=allowed, at=2)
    asked(f, "an IPv4 address as source", rule, ALL, source4="192.0.2.70/32", settings=allowed, at=1)
    asked(f, "host bits in a source", "host bits set in a prefix: taken as the prefix", ALL,
          source4="192.0.2.150/26", settings=allowed, at=2)
    asked(f, "an IPv6 source", "then, if 6, an IPv6 address and a prefix length", ALL,
          source6="2001:db8:3::/64", settings=allowed, at=2)
    asked(f, "both sources", "the IPv4 one if the network knows it", ALL,
          source4="192.0.2.64/32", source6="2001:db8:3::/64", settings=allowed, at=1)
    asked(f, "both sources, the IPv4 one unknown", "else the IPv6 one", ALL,
          source4="100.64.0.0/24", source6="2001:db8:3::/64", settings=allowed, at=2)
    asked(f, "an unknown source", "no source is known: all candidates are equal", ALL,
          source4="100.64.0.0/24", settings=allowed, at=None)
    asked(f, "a source that no prefix covers as a whole", "taken as the prefix", ALL,
          source4="192.0.2.1/24", settings=allowed, at=None)
    asked(f, "an unknown source and a default router", "the configured default router", ALL,
          source4="100.64.0.0/24", settings=allowed, net="row with a default router", at=2)
    asked(f, "allowed by the IPv6 address", "clients that the configuration allows", ALL,
          source4="192.0.2.128/26", settings=allowed, client="2001:db8:1::5", at=2)
    asked(f, "allowed by the IPv4 address that an IPv6 socket sees",
          "clients that the configuration allows", ALL, source4="192.0.2.128/26",
          settings=allowed, client="::ffff:192.0.2.10", at=2)
    asked(f, "allowed by authentication", "clients that the configuration allows, or that "
          "authenticate, may give a source", ALL, source4="192.0.2.128/26", settings=KEYED,
          tag=KEY, at=2)
    refused = "a source from a client that may not give one: Rcode 3"
    asked(f, "refused", refused, ALL, source4="192.0.2.128/26", error_code=3)
    asked(f, "refused to the next address", refused, ALL, source4="192.0.2.128/26",
          settings=allowed, client="192.0.2.16", error_code=3)
    asked(f, "an IPv6 source refused", refused, ALL, source6="2001:db8:3::/64", settings=allowed,
          client=FAR_CLIENT, error_code=3)
    error(f, "a block of type 0 is no authentication", refused,
          header(a=1, s4=1) + bytes(8) + raw("192.0.2.128/26") + four(*ALL), 3, settings=KEYED)
    error(f, "refused before it is busy", refused,
          header(s4=1) + raw("192.0.2.128/26") + four(NEAR), 3, net=None)
    answer(f, "a source with all its fields and 363 candidates", "At most 363; 1,498 bytes",
           sign(header(a=1, s4=1, s6=1, auth=1) + bytes(8) + raw("192.0.2.128/26")
                + raw("2001:db8:1::/48") + four(*[NEAR, FAR, OUT1] * 121), KEY),
           [NEAR, FAR, OUT1] * 121, at=2, tag=KEY, settings=KEYED)


def authentication():
    f = "authentication"
    type1 = "Type 1: SipHash-2-4 over the datagram with the block zeroed; the reply carries one too"
    asked(f, "a tag", type1, ALL, tag=KEY, settings=KEYED)
    asked(f, "a tag that is demanded", type1, ALL, tag=KEY, settings=DEMANDED)
    asked(f, "a tag over a mixed list", type1, [OUT6, NEAR, FAR6], tag=KEY, settings=KEYED)
    asked(f, "a tag and a cut reply", "where it would pass 1,472 bytes it is cut",
          [f"2001:db8:3::{i:x}" for i in range(60)] + ["192.0.2.1"] * 119, tag=KEY, settings=KEYED)
    asked(f, "no tag where a key is configured but none demanded", "Type 0: none", ALL,
          settings=KEYED)
    answer(f, "a block of type 0", "type 0: none (a block that is present is skipped); the reply "
           "carries a block only if the request carried one of type 1",
           header(a=1) + bytes(range(8)) + four(*ALL), ALL)
    answer(f, "a block of type 0 where there is a key", "type 0: none",
           header(a=1) + bytes(8) + four(*ALL), ALL, settings=KEYED)
    good = sign(header(a=1, auth=1) + bytes(8) + four(*ALL), KEY)
    wrong = "type 1 and the tag is wrong: Rcode 4, and no tag"
    for at, what in ((0, "servcode"), (4, "identification"), (9, "TTL"), (3, "Zero field"),
                     (12, "tag's first byte"), (19, "tag's last byte"), (len(good) - 1, "last byte")):
        bit = 0x10 if at == 3 else 1
        changed = good[:at] + bytes([good[at] ^ bit]) + good[at + 1:]
        if at == 0:
            changed = good[:1] + bytes([1]) + good[2:]
        ident = int.from_bytes(changed[4:8], "big")
        error(f, f"changed: {what}", wrong, changed, 4, settings=KEYED, ident=ident)
    asked(f, "a tag of another key", wrong, ALL, tag=OTHER_KEY, settings=KEYED, error_code=4)
    error(f, "a tag in the other byte order", "the tag is the 64-bit value in network byte order",
          good[:12] + good[12:20][::-1] + good[20:], 4, settings=KEYED)
    error(f, "a zero tag", wrong, header(a=1, auth=1) + bytes(8) + four(NEAR), 4, settings=KEYED)
    none = "no or type 0 authentication where the configuration demands type 1: Rcode 4"
    asked(f, "none where it is demanded", none, ALL, settings=DEMANDED, error_code=4)
    error(f, "type 0 where it is demanded", none, header(a=1) + bytes(8) + four(NEAR), 4,
          settings=DEMANDED)
    error(f, "no key", "type 1 where no key is configured: Rcode 2", good, 2)
    error(f, "type 2", "an authentication type not listed: Rcode 2",
          header(a=1, auth=2) + bytes(8) + four(NEAR), 2, settings=KEYED)
    error(f, "type 255 without a block", "an authentication type not listed: Rcode 2",
          header(auth=255) + four(NEAR), 2)
    error(f, "a type without a block", "authentication type not 0 while A is 0: Rcode 1",
          header(auth=1) + four(NEAR), 1, settings=KEYED)
    error(f, "wrong tag before refused source", "order of the questions",
          header(a=1, s4=1, auth=1) + bytes(8) + raw("192.0.2.0/24") + four(NEAR), 4,
          settings=KEYED)
    error(f, "wrong tag before no ranking", "order of the questions",
          header(a=1, auth=1) + bytes(8) + four(NEAR), 4, settings=KEYED, net=None)
    error(f, "malformed before wrong tag", "what can be told from the datagram comes first",
          header(a=1, auth=1) + bytes(8), 1, settings=KEYED)


def errors():
    f = "errors"
    request = header() + four(FAR, NEAR)
    for length in (0, 1, 11):
        drop(f, f"{length} bytes", "answered if at least the fixed header can be read; otherwise "
             "it is dropped and counted", request[:length], "short")
    drop(f, "a reply", "Q is 1: dropped and counted", header(q=1, ttl=60) + four(NEAR), "reply")
    drop(f, "a reply of another version", "Q is 1: dropped and counted",
         header(version=1, q=1) + four(NEAR), "reply")
    unsupported = "Version, Opcode or Service category not 0: Rcode 2"
    for version in (1, 15):
        error(f, f"version {version}", unsupported, header(version=version) + four(NEAR), 2)
    for opcode in (1, 15):
        error(f, f"operation {opcode}", unsupported, header(opcode=opcode) + four(NEAR), 2)
    for category in (1, 255):
        error(f, f"category {category}", unsupported, header(category=category) + four(NEAR), 2)
    error(f, "another version of any form", unsupported, header(version=2), 2)
    metric = "a Servcode bit of a metric that does not exist; more than one bit set: Rcode 2"
    for bit in (2, 11):
        error(f, f"metric {bit}", metric, header(servcode=1 << bit) + four(NEAR), 2)
    error(f, "a second metric where there is one", metric, header(servcode=2) + four(NEAR), 2,
          net="row with one metric")
    error(f, "two metrics", metric, header(servcode=3) + four(NEAR), 2)
    error(f, "all metrics", metric, header(servcode=0xFFF) + four(NEAR), 2)
    for number in (0, 5, 255):
        error(f, f"TLV type {number}", "a TLV type not listed: Rcode 2",
              header() + tlv(number, raw(NEAR)), 2)
    error(f, "a second TLV of type 5", "a TLV type not listed: Rcode 2",
          header() + tlv(1, raw(NEAR), n=1) + tlv(5, b""), 2)
    few = "fewer bytes than a header, block, TLV header, attribute or Size promises: Rcode 1"
    error(f, "the fixed header alone", few, request[:12], 1)
    for length in (13, 15):
        error(f, f"{length - 12} bytes of a TLV header", few, request[:length], 1)
    error(f, "a TLV header without its candidates", few, request[:16], 1)
    error(f, "a byte too few", few, request[:-1], 1)
    error(f, "seven bytes of a block", few, header(a=1) + bytes(7), 1)
    error(f, "a block and nothing else", few, header(a=1) + bytes(8), 1)
    error(f, "four bytes of an IPv4 source", few, header(s4=1) + bytes(4), 1)
    error(f, "sixteen bytes of an IPv6 source", few, header(s6=1) + bytes(16), 1)
    error(f, "an IPv4 source where both are promised", few,
          header(s4=1, s6=1) + raw("192.0.2.0/24") + bytes(16), 1)
    error(f, "an attribute that is not there", few,
          header() + bytes([1, 3 << 5, 0, 20]) + bytes(12), 1)
    error(f, "a Size over the end", few, header() + tlv(1, raw(NEAR), size=12), 1)
    error(f, "a Size of all ones", few, header() + tlv(1, raw(NEAR), size=65535), 1)
    small = "Size smaller than its header and attribute: Rcode 1"
    for size in (0, 3):
        error(f, f"a Size of {size}", small, header() + tlv(1, raw(NEAR), size=size), 1)
    error(f, "a Size less than header and attribute", small,
          header() + tlv(1, bytes(4), al=3, size=19), 1)
    whole = "no whole number of candidates: Rcode 1"
    for number, length in ((1, 5), (2, 17), (3, 4), (4, 16)):
        error(f, f"{length} bytes of type {number}", whole, header() + tlv(number, bytes(length)), 1)
    chain = "NH set on the last TLV, or bytes behind it: Rcode 1"
    error(f, "N on the last TLV", chain, header() + tlv(1, raw(NEAR), n=1), 1)
    error(f, "a byte behind the last TLV", chain, header() + four(NEAR) + b"\0", 1)
    error(f, "a TLV behind the last TLV", chain, header() + four(NEAR) + four(FAR), 1)
    none = "no candidate at all: Rcode 1"
    error(f, "an empty TLV", none, header() + tlv(1, b""), 1)
    error(f, "four empty TLVs", none,
          header() + b"".join(tlv(t, b"", n=int(t < 4), al=t - 1) for t in (1, 2, 3, 4)), 1)
    many = "more than 363 IPv4 (or prefixes of 5 bytes: 290) or 90 IPv6 (prefixes: 85): Rcode 1"
    for candidate, count in ((NEAR, 364), (NEAR6, 91), ("192.0.2.1/32", 291),
                             ("2001:db8:1::/64", 86)):
        error(f, f"{count} of type {kind(candidate)}", many,
              header() + tlv(kind(candidate), raw(candidate) * count), 1)
    error(f, "364 addresses in two TLVs", many,
          header() + tlv(1, raw(NEAR) * 182, n=1) + tlv(1, raw(NEAR) * 182), 1)
    error(f, "1,499 bytes", "a datagram over 1,498 bytes: Rcode 1",
          header(a=1, s4=1, s6=1) + bytes(8) + bytes(22) + tlv(1, raw(NEAR) * 363) + b"\0", 1)
    error(f, "1,499 bytes that would be another error", "a datagram over 1,498 bytes: Rcode 1",
          header() + tlv(9, bytes(1483)), 1)
    long = "a prefix length over 32 or 128 (in candidates and sources): Rcode 1"
    error(f, "an IPv4 candidate of 33 bits", long,
          header() + tlv(3, raw("192.0.2.0/24") + bytes([192, 0, 2, 0, 33])), 1)
    error(f, "an IPv6 candidate of 129 bits", long, header() + tlv(4, bytes(16) + b"\x81"), 1)
    error(f, "an IPv4 candidate of 255 bits", long, header() + tlv(3, bytes(4) + b"\xff"), 1)
    allowed = {"sources": ["0.0.0.0/0"]}
    error(f, "an IPv4 source of 33 bits", long, header(s4=1) + bytes(4) + b"\x21" + four(NEAR), 1,
          settings=allowed)
    error(f, "an IPv6 source of 129 bits", long, header(s6=1) + bytes(16) + b"\x81" + four(NEAR), 1,
          settings=allowed)
    error(f, "malformed before busy", "what can be told from the datagram comes first",
          header() + tlv(1, b""), 1, net=None)
    error(f, "not supported before malformed", "the fixed header comes first",
          header(version=1, auth=1) + b"\0", 2)
    error(f, "identification of an error", "an error reply has the request's Identification",
          header(ident=0xFEDCBA98), 1, ident=0xFEDCBA98)


def main():
    for make in (plain, lists, sources, authentication, errors):
        make()
    folder = pathlib.Path(__file__).parent
    for name, content in [("networks", NETWORKS), *FILES.items()]:
        if isinstance(content, list):
            text = "[\n" + ",\n".join(json.dumps(case) for case in content) + "\n]\n"
        else:
            text = json.dumps(content, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text)
    print(sum(map(len, FILES.values())), "vectors")


if __name__ == "__main__":
    main()
