#!/usr/bin/python3
"""A client of IRC for tests that sends and takes files by DCC.

usage: irc_dcc.py SERVER NICK send TO FILE [passive]
       irc_dcc.py SERVER NICK take FOLDER

`send` offers a file to the user TO at an address and port of its own, writes `ready`, and sends it to
who connects there; `passive`, it sends it to where TO says. `take` writes `ready` when it is signed in; of each file that it is offered it writes
`got NAME` when the file is whole in FOLDER, else `lost NAME`.

The offer is `DCC SEND NAME ADDRESS PORT SIZE`, its address a number; who takes the file says after each
piece how much has come, in four bytes (Rollo, "A description of the DCC protocol"). A passive offer has
port 0 and a token behind the size; its answer is the same with the port where the file is waited for.
"""

import ipaddress
import os
import re
import socket
import struct
import sys

# How long the other client may be silent.
TIMEOUT = 60
# What a passive offer and its answer have in common.
TOKEN = 7
# Nick, name, address, port, size and token of an offer.
OFFER = re.compile(
    r":([^!]+)!\S+ PRIVMSG \S+ :\x01DCC SEND (\S+) (\d+) (\d+) (\d+)(?: (\d+))?\x01"
)


def sign_in(server, nick):
    """A connection to the server, and its lines."""
    connection = socket.create_connection((server, 6667))
    lines = connection.makefile("r", encoding="utf-8", newline="\r\n")
    say(connection, "NICK %s" % nick)
    say(connection, "USER %s 0 * :%s" % (nick, nick))
    for line in lines:
        if re.match(r":\S+ 001 ", line):
            return connection, lines
    raise EOFError("the server closed")


def say(connection, line):
    connection.sendall((line + "\r\n").encode())


def offer(connection, to, *words):
    say(connection, "PRIVMSG %s :\x01DCC SEND %s\x01" % (to, " ".join(map(str, words))))


def number(address):
    return int(ipaddress.ip_address(address))


def send(server, nick, to, path, *passive):
    connection, lines = sign_in(server, nick)
    address = connection.getsockname()[0]
    name = os.path.basename(path)
    with open(path, "rb") as file:
        content = file.read()
    if passive:
        offer(connection, to, name, number(address), 0, len(content), TOKEN)
        print("ready")
        answers = (OFFER.search(line) for line in lines)
        answer = next(answer for answer in answers if answer)
        peer = socket.create_connection((str(ipaddress.ip_address(int(answer[3]))), int(answer[4])))
    else:
        with socket.create_server((address, 0)) as listener:
            port = listener.getsockname()[1]
            offer(connection, to, name, number(address), port, len(content))
            print("ready")
            peer, _ = listener.accept()
    with peer:
        peer.sendall(content)
        while peer.recv(4096):
            pass


def take(server, nick, folder):
    connection, lines = sign_in(server, nick)
    print("ready")
    for line in lines:
        if line.startswith("PING"):
            say(connection, line.strip().replace("PING", "PONG", 1))
        offered = OFFER.search(line)
        if offered is None:
            continue
        nick, name = offered[1], offered[2]
        address, port, size = map(int, offered.groups()[2:5])
        if port == 0:
            content = await_file(connection, nick, name, size, offered[6])
        else:
            content = connect(address, port, size)
        if content is None:
            print("lost", name)
            continue
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        print("got", name)


def connect(address, port, size):
    """A file that is fetched."""
    try:
        peer = (str(ipaddress.ip_address(address)), port)
        return receive(socket.create_connection(peer, timeout=TIMEOUT), size)
    except OSError:
        return None


def await_file(connection, nick, name, size, token):
    """A file that is brought."""
    own = connection.getsockname()[0]
    try:
        with socket.create_server((own, 0)) as listener:
            listener.settimeout(TIMEOUT)
            offer(connection, nick, name, number(own), listener.getsockname()[1], size, token)
            peer, _ = listener.accept()
            return receive(peer, size)
    except OSError:
        return None


def receive(peer, size):
    """A file of that size; none when it does not come."""
    content = b""
    with peer:
        peer.settimeout(TIMEOUT)
        while len(content) < size:
            piece = peer.recv(65536)
            if not piece:
                return None
            content += piece
            peer.sendall(struct.pack(">I", len(content) & 0xFFFFFFFF))
    return content


def main():
    server, nick, what = sys.argv[1:4]
    {"send": send, "take": take}[what](server, nick, *sys.argv[4:])


main()
