"""The Proxidor client: bytes against the specification, and questions to a server on loopback."""

import ipaddress
import socket
import struct
import threading
import unittest
from typing import Callable, List, Optional

from nigh_oracle import MalformedReply, NoReply, Oracle, Rcode, Refused
from nigh_oracle.proxidor import candidate, decode_reply, encode_request
from nigh_oracle.siphash import siphash24

KEY = bytes(range(16))


def hexed(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def ask(*texts: str, **how: object) -> bytes:
    return encode_request([candidate(each) for each in texts], 0x01020304, **how)  # type: ignore[arg-type]


class Requests(unittest.TestCase):
    def test_plain(self) -> None:
        self.assertEqual(
            ask("192.0.2.1", "192.0.2.2"),
            hexed("0000 0000 01020304 0000 00 00  01 00 000c  c0000201 c0000202"),
        )

    def test_runs_of_types_are_chained(self) -> None:
        self.assertEqual(
            ask("192.0.2.1", "2001:db8::1", "10.0.0.0/8", "2001:db8::/32", "192.0.2.2")[12:],
            hexed(
                "01 80 0008 c0000201"
                "02 80 0014 20010db8 00000000 00000000 00000001"
                "03 80 0009 0a000000 08"
                "04 80 0015 20010db8 00000000 00000000 00000000 20"
                "01 00 0008 c0000202"
            ),
        )

    def test_metric_is_one_bit(self) -> None:
        self.assertEqual(ask("192.0.2.1", metric=3)[:2], hexed("0008"))
        with self.assertRaises(ValueError):
            ask("192.0.2.1", metric=12)

    def test_sources_follow_the_header(self) -> None:
        four = ask("192.0.2.1", source4="198.51.100.0/24")
        self.assertEqual((four[2:4], four[12:17]), (hexed("0200"), hexed("c6336400 18")))
        six = ask("192.0.2.1", source6="2001:db8::1")
        self.assertEqual((six[2:4], six[28]), (hexed("0100"), 128))

    def test_the_tag_is_over_the_datagram_with_its_block_zeroed(self) -> None:
        request = ask("192.0.2.1", key=KEY)
        self.assertEqual((request[2:4], request[11]), (hexed("0400"), 1))
        zeroed = request[:12] + bytes(8) + request[20:]
        self.assertEqual(request[12:20], siphash24(KEY, zeroed).to_bytes(8, "big"))

    def test_limits_are_the_protocols(self) -> None:
        for text, most in (("192.0.2.1", 363), ("::1", 90), ("10.0.0.0/8", 290), ("::/8", 85)):
            ask(*[text] * most)
            with self.assertRaisesRegex(ValueError, str(most)):
                ask(*[text] * (most + 1))
        with self.assertRaisesRegex(ValueError, "at least one"):
            ask()


class Replies(unittest.TestCase):
    reply = hexed("0003 8000 01020304 003c 00 00  01 00 000c  c0000202 c0000201")

    def test_plain(self) -> None:
        ranking = decode_reply(self.reply, 0x01020304)
        self.assertEqual([str(each) for each in ranking.candidates], ["192.0.2.2", "192.0.2.1"])
        self.assertEqual((ranking.ttl, ranking.metrics, ranking.cut), (60, 3, False))

    def test_cut(self) -> None:
        self.assertTrue(decode_reply(self.reply[:3] + b"\x06" + self.reply[4:], 0x01020304).cut)

    def test_every_rcode(self) -> None:
        for rcode in (1, 2, 3, 4, 5, 9):
            with self.assertRaises(Refused) as caught:
                decode_reply(self.reply[:3] + bytes([rcode]) + self.reply[4:12], 0x01020304)
            self.assertEqual(caught.exception.rcode, rcode)

    def test_what_is_no_reply_to_the_request(self) -> None:
        for bad in (
            b"",
            self.reply[:11],
            ask("192.0.2.1"),
            self.reply[:7] + b"\x05" + self.reply[8:],
            self.reply[:-1],
            self.reply + b"\x00",
            self.reply[:12] + hexed("01 80 000c") + self.reply[16:],
            self.reply[:12] + hexed("09 00 000c") + self.reply[16:],
            self.reply[:12] + hexed("01 00 0003") + self.reply[16:],
            self.reply[:12] + hexed("03 00 0009 0a000000 21"),
        ):
            with self.assertRaises(MalformedReply, msg=bad.hex()):
                decode_reply(bad, 0x01020304)

    def test_a_reply_under_a_key_must_be_tagged_rightly(self) -> None:
        with self.assertRaisesRegex(MalformedReply, "not authenticated"):
            decode_reply(self.reply, 0x01020304, KEY)
        head = self.reply[:2] + b"\x84" + self.reply[3:11] + b"\x01"
        tag = siphash24(KEY, head + bytes(8) + self.reply[12:]).to_bytes(8, "big")
        good = head + tag + self.reply[12:]
        self.assertEqual(len(decode_reply(good, 0x01020304, KEY).candidates), 2)
        with self.assertRaisesRegex(MalformedReply, "tag is wrong"):
            decode_reply(good[:-1] + b"\x09", 0x01020304, KEY)


class Server:
    """A UDP server on loopback that answers with what a function makes of each request."""

    def __init__(self, answer: Callable[[bytes], List[bytes]]) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.seen = 0
        self._answer = answer
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # An empty datagram ends it.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        self.socket.close()

    def _serve(self) -> None:
        while True:
            request, client = self.socket.recvfrom(65535)
            if not request:
                return
            self.seen += 1
            for reply in self._answer(request):
                self.socket.sendto(reply, client)


def reversed_reply(request: bytes, identification: Optional[int] = None) -> bytes:
    """A reply to a plain IPv4 request: its candidates in reverse order."""
    found = struct.unpack_from("!I", request, 4)[0]
    values = [request[at : at + 4] for at in range(16, len(request), 4)]
    identity = found if identification is None else identification
    head = struct.pack("!HHIHBB", 1, 0x8000, identity, 60, 0, 0)
    return head + request[12:16] + b"".join(reversed(values))


class Asking(unittest.TestCase):
    asked = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]

    def test_an_answer(self) -> None:
        with Server(lambda request: [reversed_reply(request)]) as server:
            ranked = Oracle("127.0.0.1", server.port).rank(self.asked)
        self.assertEqual(ranked, [ipaddress.ip_address(each) for each in reversed(self.asked)])

    def test_a_lost_request_is_sent_again(self) -> None:
        with Server(lambda request: [reversed_reply(request)] if server.seen > 1 else []) as server:
            Oracle("127.0.0.1", server.port, timeout=0.05, tries=5).rank(self.asked)
            self.assertGreater(server.seen, 1)

    def test_replies_of_unknown_peers_are_skipped(self) -> None:
        with Server(lambda request: [b"x", reversed_reply(request, 7), reversed_reply(request)]) as server:
            self.assertEqual(len(Oracle("127.0.0.1", server.port).rank(self.asked)), 3)

    def test_no_answer(self) -> None:
        with Server(lambda _: []) as server:
            with self.assertRaisesRegex(NoReply, "after 2 tries"):
                Oracle("127.0.0.1", server.port, timeout=0.01, tries=2).rank(self.asked)

    def test_nobody_there(self) -> None:
        with Server(lambda _: []) as server:
            port = server.port
        with self.assertRaises(NoReply):
            Oracle("127.0.0.1", port, timeout=0.01, tries=3).rank(self.asked)

    def test_a_refusal(self) -> None:
        def refuse(request: bytes) -> List[bytes]:
            return [b"\x00\x01\x80\x03" + request[4:8] + bytes(4)]

        with Server(refuse) as server, self.assertRaises(Refused) as caught:
            Oracle("127.0.0.1", server.port).ask(self.asked, source="198.51.100.1")
        self.assertEqual(caught.exception.rcode, Rcode.REFUSED)
