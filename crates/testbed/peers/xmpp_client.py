#!/usr/bin/python3
"""A plain client of XMPP (RFC 6120) for tests: signs in without TLS and sends or waits.

usage: xmpp_client.py ADDRESS USER PASSWORD send TO TEXT
       xmpp_client.py ADDRESS USER PASSWORD wait

USER and TO are NAME@DOMAIN. `wait` writes `ready` when it is signed in and `message FROM: TEXT` for
each message.
"""

import base64
import re
import socket
import sys
from xml.sax.saxutils import escape, unescape


class Stream:
    """A connection, read until something that is waited for has come."""

    def __init__(self, address, domain):
        self.socket = socket.create_connection((address, 5222), timeout=60)
        self.domain, self.text = domain, ""

    def send(self, text):
        self.socket.sendall(text.encode())

    def wait(self, pattern):
        """What matches first; it and all before it are forgotten."""
        while not (found := re.search(pattern, self.text, re.DOTALL)):
            data = self.socket.recv(65536)
            if not data:
                raise EOFError("the server closed after: " + self.text)
            self.text += data.decode()
        self.text = self.text[found.end():]
        return found

    def open(self):
        self.send(
            "<?xml version='1.0'?><stream:stream to='%s' version='1.0' xmlns='jabber:client'"
            " xmlns:stream='http://etherx.jabber.org/streams'>" % self.domain
        )
        self.wait("</stream:features>")


def main():
    address, user, password, what = sys.argv[1:5]
    name, domain = user.split("@")
    stream = Stream(address, domain)
    stream.open()
    secret = base64.b64encode(("\0%s\0%s" % (name, password)).encode()).decode()
    sasl = "urn:ietf:params:xml:ns:xmpp-sasl"
    stream.send("<auth xmlns='%s' mechanism='PLAIN'>%s</auth>" % (sasl, secret))
    stream.wait("<success")
    stream.open()
    stream.send(
        "<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"
    )
    stream.wait("</iq>")
    stream.send("<presence/>")
    if what == "send":
        to, text = sys.argv[5:7]
        stream.send("<message to='%s' type='chat'><body>%s</body></message>" % (to, escape(text)))
        stream.send("</stream:stream>")
        stream.wait("</stream:stream>")
        return
    stream.wait("<presence")
    print("ready")
    stream.socket.settimeout(None)
    while True:
        found = stream.wait("<message[^>]*from=['\"]([^'\"]*)['\"].*?<body>(.*?)</body>")
        print("message %s: %s" % (found[1], unescape(found[2])))


main()
