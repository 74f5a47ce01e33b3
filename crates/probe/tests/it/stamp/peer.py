"""A STAMP reflector and a STAMP sender of scapy's layer, each a few packets long.

peer.py reflect: prints the port on which it listens on loopback, then reflects until it is ended.
peer.py send PORT SSID: sends three packets to that port on loopback, and prints what came back, a line of
JSON each: the fields by the names that scapy has for them.
"""

import json
import socket
import sys
import time

from scapy.contrib.stamp import (
    ErrorEstimate,
    STAMPSessionReflectorTestUnauthenticated as Reflected,
    STAMPSessionSenderTestUnauthenticated as Test,
    STAMPTestTLV,
)
from scapy.layers.inet import UDP

UNIX_ZERO = 2208988800
EXTRA_PADDING = 1
# Scapy 2.5 names the flags from the wrong end: its "U" is the lowest bit, RFC 8972's the highest.
UNRECOGNISED = 0x80


def now():
    """NTP's 64 bits of the present."""
    ns = time.time_ns()
    return ((ns // 10**9 + UNIX_ZERO) << 32) | ((ns % 10**9 << 32) // 10**9)


def dissect(layer, payload):
    """What scapy makes of a datagram. Its layers ask their parent, the UDP header, for the length; scapy 2.5
    gives them none by itself.
    """
    return layer(payload, _parent=UDP(len=8 + len(payload)))


def raw(packet, name, value=None):
    """A field of 64 bits as it is on the wire, without the decimals that scapy has for it."""
    if value is not None:
        packet.fields[name] = value
    return packet.fields[name]


def reflect():
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    print(receiver.getsockname()[1], flush=True)
    count = 0
    while True:
        payload, sender = receiver.recvfrom(2000)
        received = now()
        test = dissect(Test, payload)
        # U is cleared in what is understood.
        tlvs = [
            STAMPTestTLV(
                flags=0 if tlv.type == EXTRA_PADDING else tlv.flags,
                type=tlv.type,
                len=tlv.len,
                value=tlv.value,
            )
            for tlv in test.tlv_objects
        ]
        reply = Reflected(
            seq=count,
            err_estimate=ErrorEstimate(S=1, Z=0, scale=22, multiplier=1),
            ssid=test.ssid,
            seq_sender=test.seq,
            err_estimate_sender=test.err_estimate,
            ttl_sender=63,
            tlv_objects=tlvs,
        )
        raw(reply, "ts_rx", received)
        raw(reply, "ts_sender", raw(test, "ts"))
        raw(reply, "ts", now())
        receiver.sendto(bytes(reply), sender)
        count += 1


def send(port, ssid):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.settimeout(60)
    sender.connect(("127.0.0.1", port))
    for seq in range(3):
        padding = STAMPTestTLV(flags=UNRECOGNISED, type=EXTRA_PADDING, len=5, value=b"abcde")
        unknown = STAMPTestTLV(flags=UNRECOGNISED, type=201, len=2, value=b"xy")
        test = Test(
            seq=seq,
            err_estimate=ErrorEstimate(S=1, Z=0, scale=20, multiplier=9),
            ssid=ssid,
            tlv_objects=[padding, unknown],
        )
        sent = raw(test, "ts", now())
        sender.send(bytes(test))
        payload = sender.recv(2000)
        came = now()
        reply = dissect(Reflected, payload)
        times = [sent, raw(reply, "ts_rx"), raw(reply, "ts"), came]
        print(
            json.dumps(
                {
                    "length": [len(bytes(test)), len(payload)],
                    "seq": reply.seq,
                    "ssid": reply.ssid,
                    "seq_sender": reply.seq_sender,
                    "ts_sender": raw(reply, "ts_sender") == sent,
                    "ordered": times == sorted(times),
                    "err_estimate": bytes(reply.err_estimate).hex(),
                    "err_estimate_sender": bytes(reply.err_estimate_sender).hex(),
                    "ttl_sender": reply.ttl_sender,
                    "mbz": [reply.mbz1, reply.mbz2],
                    "tlvs": [
                        [int(tlv.flags), tlv.type, tlv.value.decode()] for tlv in reply.tlv_objects
                    ],
                }
            ),
            flush=True,
        )


if sys.argv[1] == "reflect":
    reflect()
else:
    send(int(sys.argv[2]), int(sys.argv[3]))
