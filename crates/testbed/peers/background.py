#!/usr/bin/python3
"""What is on a network beside file sharing: servers and clients of the usual protocols.

usage: background.py serve ADDRESS CERTIFICATE
       background.py talk ADDRESS SEED COUNT

`serve` listens for HTTP (80), HTTPS (443), SMTP (25), DNS (53), packets in the form of WireGuard's
(51820) and flows of random bytes (TCP 7000, UDP 7001), and writes `ready`. CERTIFICATE is a file
with key and certificate. `talk` opens COUNT flows of each kind; what it sends follows from SEED.

Random flows are as much like hidden file sharing as random bytes can be: in one third both first
messages have the lengths of message stream encryption's (96 to 608 bytes), in another third they
begin with a length as Noise's handshakes over TCP do, the rest has any lengths.
"""

import http.client
import http.server
import os
import random
import smtplib
import socket
import socketserver
import ssl
import struct
import sys
import threading

HTTP, HTTPS, SMTP, DNS, WIREGUARD, RANDOM_TCP, RANDOM_UDP = 80, 443, 25, 53, 51820, 7000, 7001


class Web(http.server.BaseHTTPRequestHandler):
    """Answers /SIZE/anything with that many bytes."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = os.urandom(int(self.path.split("/")[1]))
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Mail(socketserver.StreamRequestHandler):
    """Takes every mail and forgets it."""

    def handle(self):
        self.wfile.write(b"220 mail.test ESMTP\r\n")
        for line in self.rfile:
            word = line.split()[0].upper() if line.split() else b""
            if word == b"DATA":
                self.wfile.write(b"354 go ahead\r\n")
                for text in self.rfile:
                    if text == b".\r\n":
                        break
                self.wfile.write(b"250 taken\r\n")
            elif word == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 mail.test\r\n")


class RandomServer(socketserver.BaseRequestHandler):
    """Answers each message with random bytes of a length that its first two bytes give."""

    def handle(self):
        while True:
            data = self.request.recv(65536)
            if not data:
                return
            self.request.sendall(answer(data))


def answer(data):
    """Random bytes that look as what they answer: with a length before them or without."""
    begins_with_length = len(data) > 2 and int.from_bytes(data[:2], "big") == len(data) - 2
    count = 96 + data[-1] * 2
    body = os.urandom(count)
    return struct.pack(">H", count) + body if begins_with_length else body


class Udp(socketserver.ThreadingUDPServer):
    allow_reuse_address = True
    daemon_threads = True


class Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


class RandomUdp(socketserver.BaseRequestHandler):
    def handle(self):
        data, udp = self.request
        udp.sendto(answer(data), self.client_address)


class WireGuard(socketserver.BaseRequestHandler):
    """Answers an initiation (type 1) with a response (type 2, 92 bytes), data with data."""

    def handle(self):
        data, udp = self.request
        if data[:1] == b"\x01":
            udp.sendto(b"\x02\0\0\0" + os.urandom(88), self.client_address)
        else:
            udp.sendto(b"\x04\0\0\0" + os.urandom(len(data) - 4), self.client_address)


class Names(socketserver.BaseRequestHandler):
    """Answers every question for an address (RFC 1035) with one of RFC 5737."""

    def handle(self):
        data, udp = self.request
        question = data[12:]
        record = b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 300, 4) + bytes([192, 0, 2, data[1]])
        head = data[:2] + b"\x81\x80\0\1\0\1\0\0\0\0"
        udp.sendto(head + question + record, self.client_address)


def serve(address, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    secure = http.server.ThreadingHTTPServer((address, HTTPS), Web)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    servers = [
        http.server.ThreadingHTTPServer((address, HTTP), Web),
        secure,
        Tcp((address, SMTP), Mail),
        Udp((address, DNS), Names),
        Udp((address, WIREGUARD), WireGuard),
        Tcp((address, RANDOM_TCP), RandomServer),
        Udp((address, RANDOM_UDP), RandomUdp),
    ]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    print("ready")
    for thread in threads:
        thread.join()


def web(address, draw):
    connection = http.client.HTTPConnection(address, HTTP, timeout=20)
    for _ in range(draw.randint(1, 3)):
        connection.request("GET", "/%d/file.bin" % draw.randint(0, 5000))
        connection.getresponse().read()
    connection.close()


def secure_web(address, draw):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if draw.random() < 0.5:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection((address, HTTPS), timeout=20) as plain:
        name = "host%d.example.org" % draw.randint(0, 99)
        with context.wrap_socket(plain, server_hostname=name) as stream:
            stream.sendall(b"GET /%d/x HTTP/1.1\r\nHost: x\r\n\r\n" % draw.randint(0, 3000))
            stream.recv(65536)


def mail(address, draw):
    with smtplib.SMTP(address, SMTP, local_hostname="client.test", timeout=20) as smtp:
        text = "Subject: %d\r\n\r\n%s" % (draw.random() * 1e6, "text " * draw.randint(1, 200))
        smtp.sendmail("a@test.example", ["b@test.example"], text)


def datagrams(address, port, messages):
    """One flow: each message waits for its answer; one that is lost stays so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(2)
        udp.connect((address, port))
        for message in messages:
            udp.send(message)
            try:
                udp.recv(65536)
            except TimeoutError:
                pass


def names(address, draw):
    label = b"host%d" % draw.randint(0, 10**6)
    question = bytes([len(label)]) + label + b"\7example\3org\0\0\1\0\1"
    datagrams(address, DNS, [draw.randbytes(2) + b"\1\0\0\1\0\0\0\0\0\0" + question])


def wireguard(address, draw):
    data = [b"\4\0\0\0" + draw.randbytes(28 + 16 * draw.randint(0, 60)) for _ in range(6)]
    datagrams(address, WIREGUARD, [b"\1\0\0\0" + draw.randbytes(144)] + data)


def random_udp(address, draw):
    datagrams(address, RANDOM_UDP, [draw.randbytes(draw.randint(1, 1200)) for _ in range(5)])


def random_tcp(address, draw):
    kind = draw.randint(0, 2)
    with socket.create_connection((address, RANDOM_TCP), timeout=20) as stream:
        for _ in range(draw.randint(2, 5)):
            length = draw.randint(*((96, 608), (48, 200), (1, 1400))[kind])
            message = draw.randbytes(length)
            if kind == 1:
                message = struct.pack(">H", length) + message
            stream.sendall(message)
            stream.recv(65536)


def talk(address, seed, count):
    draw = random.Random(seed)
    for _ in range(count):
        for flow in (web, secure_web, mail, names, wireguard, random_udp, random_tcp):
            flow(address, draw)


def main():
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3])
    else:
        talk(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))


main()
