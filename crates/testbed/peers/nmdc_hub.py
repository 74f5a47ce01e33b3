#!/usr/bin/python3
"""A hub of Direct Connect that speaks NMDC: as much of it as clients need to share files.

usage: nmdc_hub.py ADDRESS PORT

Lets everybody in, tells all of all, and passes on searches, their results and requests to connect.
Writes `ready` when it serves. Commands end with `|`, see https://nmdc.sourceforge.io/NMDC.html.
"""

import socketserver
import sys
import threading

LOCK = threading.RLock()
USERS = {}


class User(socketserver.BaseRequestHandler):
    """One connection; NAME is known once the client has asked for it."""

    name, info = None, ""

    def say(self, *commands):
        self.request.sendall("".join(command + "|" for command in commands).encode("latin-1"))

    def handle(self):
        self.say("$Lock EXTENDEDPROTOCOLABCABCABCABCABCABC Pk=nigh", "$HubName test")
        waiting = ""
        while data := self.request.recv(65536):
            *commands, waiting = (waiting + data.decode("latin-1")).split("|")
            with LOCK:
                for command in commands:
                    self.command(command)

    def finish(self):
        with LOCK:
            if USERS.get(self.name) is self:
                del USERS[self.name]
                to_all("$Quit " + self.name)

    def command(self, command):
        word, _, rest = command.partition(" ")
        if word == "$Supports":
            self.say("$Supports NoGetINFO NoHello")
        elif word == "$ValidateNick":
            self.name = rest
            USERS[rest] = self
            self.say("$Hello " + rest)
        elif word == "$GetNickList":
            self.say("$NickList " + "".join(name + "$$" for name in USERS), "$OpList ")
            self.say(*(user.info for user in USERS.values() if user.info))
        elif word == "$MyINFO":
            self.info = command
            to_all(command)
        elif word == "$ConnectToMe":
            to_one(rest.split(" ")[0], command)
        elif word == "$RevConnectToMe":
            to_one(rest.split(" ")[-1], command)
        elif word == "$SR":
            # The last field is who asked.
            result, _, name = command.rpartition("\x05")
            to_one(name, result)
        elif word == "$Search" or command.startswith("<"):
            to_all(command)


def to_one(name, command):
    if name in USERS:
        USERS[name].say(command)


def to_all(command):
    for user in list(USERS.values()):
        user.say(command)


class Hub(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


with Hub((sys.argv[1], int(sys.argv[2])), User) as hub:
    print("ready")
    hub.serve_forever()
