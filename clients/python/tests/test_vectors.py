"""The vectors of testdata/proxidor, which the server is tested on too."""

import ipaddress
import json
import pathlib
import unittest
from typing import Any, Dict, Iterator, List, Optional

from nigh_oracle import Rcode, Refused
from nigh_oracle.proxidor import Candidate, candidate, decode_reply, encode_request

FOLDER = pathlib.Path(__file__).parents[3] / "testdata" / "proxidor"
FILES = ("plain", "lists", "sources", "authentication", "errors")


def vectors() -> Iterator[Dict[str, Any]]:
    for name in FILES:
        yield from json.loads((FOLDER / f"{name}.json").read_text())


def key_of(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else bytes.fromhex(text)


def has_host_bits(text: str) -> bool:
    """Prefixes are sent without host bits: such a request is not what this client writes."""
    return "/" in text and str(ipaddress.ip_network(text, strict=False)) != text


class Vectors(unittest.TestCase):
    def test_requests_are_written_as_the_vectors_have_them(self) -> None:
        written = 0
        for vector in vectors():
            query = vector.get("query")
            if query is None:
                continue
            prefixes = [*query["candidates"], query["source4"] or "", query["source6"] or ""]
            if any(map(has_host_bits, prefixes)):
                continue
            request = encode_request(
                [candidate(each) for each in query["candidates"]],
                query["identification"],
                metric=query["metric"],
                key=key_of(query["key"]),
                source4=query["source4"],
                source6=query["source6"],
            )
            self.assertEqual(request.hex(), vector["request"], vector["name"])
            written += 1
        self.assertGreater(written, 40)

    def test_replies_are_read_as_the_vectors_have_them(self) -> None:
        rankings = refusals = 0
        for vector in vectors():
            if "reply" not in vector:
                continue
            with self.subTest(vector["name"]):
                reply = bytes.fromhex(vector["reply"])
                identification = int.from_bytes(reply[4:8], "big")
                key = key_of((vector.get("query") or {}).get("key"))
                if vector["rcode"] in (Rcode.NO_ERROR, Rcode.CUT):
                    ranking = decode_reply(reply, identification, key)
                    expected: List[Candidate] = [candidate(each) for each in vector["ranking"]]
                    self.assertEqual(ranking.candidates, expected)
                    self.assertEqual(ranking.ttl, vector["settings"]["ttl"])
                    self.assertEqual(ranking.cut, vector["rcode"] == Rcode.CUT)
                    rankings += 1
                else:
                    with self.assertRaises(Refused) as caught:
                        decode_reply(reply, identification, key)
                    self.assertEqual(caught.exception.rcode, vector["rcode"])
                    refusals += 1
        self.assertGreater(rankings, 40)
        self.assertGreater(refusals, 40)
