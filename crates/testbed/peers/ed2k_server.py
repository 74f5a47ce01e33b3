#!/usr/bin/python3
"""An eDonkey server for tests: as much of it as aMule needs to share a file.

usage: ed2k_server.py ADDRESS PORT [obfuscated]

Listens on PORT (TCP) and PORT + 4 (UDP), gives everybody a high id, keeps who offers which file and
answers searches and questions for sources. With `obfuscated` it tells clients of each other that
they can and want to hide what they say. Writes `ready` when it serves and `file HASH SIZE NAME` for
each file that is offered.

The protocol has no standard; the message numbers are those of eMule's and aMule's sources
(include/protocol/ed2k/Client2Server/TCP.h and UDP.h) and of Kulbak and Bickson, "The eMule Protocol
Specification" (2005), sections 6.2 and 6.3. A message is its protocol (E3 plain, D4 packed with
zlib), the length of the rest (32 bits, little-endian), its number and its body.
"""

import socket
import socketserver
import struct
import sys
import threading
import zlib

PLAIN, PACKED = 0xE3, 0xD4

# From clients over TCP.
LOGIN, SERVER_LIST, OFFER_FILES, SEARCH = 0x01, 0x14, 0x15, 0x16
GET_SOURCES, GET_SOURCES_HIDDEN = 0x19, 0x23
# To clients over TCP.
SEARCH_RESULT, STATUS, MESSAGE, ID_CHANGE = 0x33, 0x34, 0x38, 0x40
FOUND_SOURCES, FOUND_SOURCES_HIDDEN = 0x42, 0x44
# Over UDP.
UDP_STATUS, UDP_STATUS_ANSWER, UDP_SOURCES, UDP_FOUND = 0x96, 0x97, 0x9A, 0x9B

# What the server can do, in ID_CHANGE: packed messages, new tags, obfuscated connections.
CAN_PACK, CAN_NEW_TAGS, CAN_HIDE = 0x01, 0x08, 0x400
# What a source can do, in FOUND_SOURCES_HIDDEN: hide, wants to hide, its user's hash follows.
HIDES, WANTS_TO_HIDE, HAS_HASH = 0x01, 0x02, 0x80

FILE_NAME, FILE_SIZE = 0x01, 0x02


class Reader:
    """Takes values from a message; a struct.error when it is too short."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.body, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0]

    def tag(self):
        """A tag's name (a number or bytes) and its value; integers, floats and strings."""
        kind = self.take("B")
        if kind & 0x80:
            kind, name = kind & 0x7F, self.take("B")
        else:
            name = self.take("%ds" % self.take("H"))
            name = name[0] if len(name) == 1 else name
        if 0x11 <= kind <= 0x20:
            return name, self.take("%ds" % (kind - 0x10))
        if kind == 0x02:
            return name, self.take("%ds" % self.take("H"))
        form = {0x03: "I", 0x04: "f", 0x08: "H", 0x09: "B", 0x0B: "Q"}.get(kind)
        if form is None:
            raise ValueError("tag of kind %#x" % kind)
        return name, self.take(form)


class State:
    """Who is here, and which files they offer."""

    def __init__(self, address, hidden):
        self.address, self.hidden = address, hidden
        self.lock = threading.Lock()
        self.users = {}  # connection -> (address, port, hash)
        self.files = {}  # hash -> [name, size, {connections}]

    def sources(self, file, asker):
        """The users that offer a file, without who asks."""
        with self.lock:
            _, _, offers = self.files.get(file, (b"", 0, set()))
            return [self.users[who] for who in offers if who in self.users and who is not asker]

    def found(self, file, asker):
        users = self.sources(file, asker)
        entries = b"".join(socket.inet_aton(a) + struct.pack("<H", p) for a, p, _ in users)
        return file + bytes([len(users)]) + entries

    def found_hidden(self, file, asker):
        users = self.sources(file, asker)
        can = HIDES | WANTS_TO_HIDE | HAS_HASH
        entries = b"".join(
            socket.inet_aton(a) + struct.pack("<HB", p, can) + h for a, p, h in users
        )
        return file + bytes([len(users)]) + entries


class Client(socketserver.BaseRequestHandler):
    """One connection of a client."""

    def handle(self):
        self.state = self.server.state
        try:
            while True:
                protocol, length = struct.unpack("<BI", self.exactly(5))
                if not 0 < length < 1 << 20:
                    return
                number, body = self.exactly(1)[0], self.exactly(length - 1)
                if protocol == PACKED:
                    body = zlib.decompress(body)
                self.message(number, body)
        except (EOFError, OSError, struct.error, ValueError, zlib.error) as why:
            print("connection from %s:%d ends: %r" % (*self.client_address, why))
        finally:
            with self.state.lock:
                self.state.users.pop(self, None)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.request.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def send(self, number, body):
        self.request.sendall(struct.pack("<BIB", PLAIN, len(body) + 1, number) + body)

    def message(self, number, body):
        state, reader = self.state, Reader(body)
        if number == LOGIN:
            user, _, port = reader.take("16s"), reader.take("I"), reader.take("H")
            address = self.client_address[0]
            with state.lock:
                state.users[self] = (address, port, user)
            welcome = b"A server for tests"
            self.send(MESSAGE, struct.pack("<H", len(welcome)) + welcome)
            can = CAN_PACK | CAN_NEW_TAGS | (CAN_HIDE if state.hidden else 0)
            self.send(ID_CHANGE, socket.inet_aton(address) + struct.pack("<I", can))
            self.send(STATUS, struct.pack("<II", len(state.users), len(state.files)))
            print("login %s:%d" % (address, port))
        elif number == OFFER_FILES:
            for _ in range(reader.take("I")):
                self.offered(reader)
        elif number == GET_SOURCES:
            self.send(FOUND_SOURCES, state.found(body[:16], self))
        elif number == GET_SOURCES_HIDDEN:
            self.send(FOUND_SOURCES_HIDDEN, state.found_hidden(body[:16], self))
        elif number == SEARCH:
            self.send(SEARCH_RESULT, self.search(body))

    def offered(self, reader):
        file, _, _ = reader.take("16s"), reader.take("I"), reader.take("H")
        tags = dict(reader.tag() for _ in range(reader.take("I")))
        name, size = tags.get(FILE_NAME, b""), tags.get(FILE_SIZE, 0)
        with self.state.lock:
            self.state.files.setdefault(file, (name, size, set()))[2].add(self)
        print("file %s %d %s" % (file.hex(), size, name.decode(errors="replace")))

    def search(self, body):
        """Answers a search for one word (01, length, word); every other expression finds all."""
        word = body[3:] if body[:1] == b"\x01" else b""
        results, count = b"", 0
        with self.state.lock:
            for file, (name, size, offers) in self.state.files.items():
                if word.lower() not in name.lower():
                    continue
                source = next((self.state.users[o] for o in offers if o in self.state.users), None)
                if source is None:
                    continue
                address, port, _ = source
                results += file + socket.inet_aton(address) + struct.pack("<HI", port, 2)
                results += struct.pack("<BHBH", 2, 1, FILE_NAME, len(name)) + name
                results += struct.pack("<BHBI", 3, 1, FILE_SIZE, size)
                count += 1
        return struct.pack("<I", count) + results


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def answer_udp(udp, state):
    while True:
        data, who = udp.recvfrom(2048)
        if len(data) >= 6 and data[0] == PLAIN and data[1] == UDP_STATUS:
            numbers = (len(state.users), len(state.files), 1000, 100, 1000, 0, 0)
            body = data[2:6] + struct.pack("<IIIIIII", *numbers)
            udp.sendto(bytes([PLAIN, UDP_STATUS_ANSWER]) + body, who)
        elif len(data) >= 18 and data[0] == PLAIN and data[1] == UDP_SOURCES:
            found = state.found(data[2:18], None)
            if found[16]:
                udp.sendto(bytes([PLAIN, UDP_FOUND]) + found, who)


def main():
    address, port = sys.argv[1], int(sys.argv[2])
    state = State(address, "obfuscated" in sys.argv[3:])
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((address, port + 4))
    threading.Thread(target=answer_udp, args=(udp, state), daemon=True).start()
    with Server((address, port), Client) as server:
        server.state = state
        print("ready")
        server.serve_forever()


main()
