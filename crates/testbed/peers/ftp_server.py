#!/usr/bin/python3
"""An FTP server for tests.

usage: ftp_server.py ADDRESS FOLDER

Serves FOLDER on port 21 to the user `anonymous`, who may also write. Writes `ready` when it serves.
"""

import logging
import sys

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer


def main():
    logging.disable(logging.WARNING)
    handler = FTPHandler
    handler.authorizer = DummyAuthorizer()
    handler.authorizer.add_anonymous(sys.argv[2], perm="elradfmw")
    server = FTPServer((sys.argv[1], 21), handler)
    print("ready")
    server.serve_forever()


main()
