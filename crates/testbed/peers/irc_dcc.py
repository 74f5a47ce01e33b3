#!/usr/bin/python3
"""A client of IRC for tests that sends and takes files by DCC.

usage: irc_dcc.py SERVER NICK send TO FILE
       irc_dcc.py SERVER NICK take FOLDER

`send` offers a file to the user TO at an address and port of its own, writes `ready`, and sends it to
who connects there. `take` writes `ready` when it is signed in; of each file that it is offered it writes
`got NAME` when the file is whole in FOLDER, else `lost NAME`.

The offer is `DCC SEND NAME ADDRESS PORT SIZE`, its address a number; who takes the file says after each
piece how much has come, in four bytes (Rollo, "A description of the DCC protocol").
"""

import ipaddress
import os
import re
import socket
import struct
import sys

# How long the other client may be silent.
PATIENCE = 60


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


def send(server, nick, to, path):
    connection, _ = sign_in(server, nick)
    address = connection.getsockname()[0]
    with open(path, "rb") as file:
        content = file.read()
    with socket.create_server((address, 0)) as listener:
        where = (int(ipaddress.ip_address(address)), listener.getsockname()[1])
        offer = "DCC SEND %s %d %d %d" % (os.path.basename(path), *where, len(content))
        say(connection, "PRIVMSG %s :\x01%s\x01" % (to, offer))
        print("ready")
        peer, _ = listener.accept()
        peer.sendall(content)
        while peer.recv(4096):
            pass


def take(server, nick, folder):
    connection, lines = sign_in(server, nick)
    print("ready")
    for line in lines:
        if line.startswith("PING"):
            say(connection, line.strip().replace("PING", "PONG", 1))
        offer = re.search(r"\x01DCC SEND (\S+) (\d+) (\d+) (\d+)\x01", line)
        if offer is None:
            continue
        name, (address, port, size) = offer[1], map(int, offer.groups()[1:])
        content = fetch((str(ipaddress.ip_address(address)), port), size)
        if content is None:
            print("lost", name)
            continue
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        print("got", name)


def fetch(peer, size):
    """A file of that size; none when it does not come."""
    content = b""
    try:
        with socket.create_connection(peer, timeout=PATIENCE) as connection:
            while len(content) < size:
                piece = connection.recv(65536)
                if not piece:
                    return None
                content += piece
                connection.sendall(struct.pack(">I", len(content) & 0xFFFFFFFF))
    except OSError:
        return None
    return content


def main():
    server, nick, what = sys.argv[1:4]
    {"send": send, "take": take}[what](server, nick, *sys.argv[4:])


main()
