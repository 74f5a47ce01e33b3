#!/usr/bin/python3
"""A BitTorrent client made of libtorrent, with one torrent.

usage: libtorrent_peer.py PORT TORRENT FOLDER plain|hidden|utp [ADDRESS PORT]...

Fetches TORRENT into FOLDER, or has it there already, and seeds it. `plain` speaks readable over TCP,
`hidden` only with message stream encryption over TCP, `utp` readable over uTP. Writes `ready` when it
listens and `done` when the file is whole. Peers at ADDRESS and PORT need not be found.
"""

import sys
import time

import libtorrent

PORT, TORRENT, FOLDER, HOW, *PEERS = sys.argv[1:]
# Forced or disabled; with RC4 or as it comes (settings_pack.hpp).
POLICY, LEVEL = (0, 2) if HOW == "hidden" else (2, 3)

session = libtorrent.session({
    "listen_interfaces": "0.0.0.0:%s,[::]:%s" % (PORT, PORT),
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "out_enc_policy": POLICY,
    "in_enc_policy": POLICY,
    "allowed_enc_level": LEVEL,
    "enable_outgoing_utp": HOW == "utp",
    "enable_incoming_utp": HOW == "utp",
    "enable_outgoing_tcp": HOW != "utp",
    "enable_incoming_tcp": HOW != "utp",
})
while not session.is_listening():
    time.sleep(0.05)
torrent = session.add_torrent({"ti": libtorrent.torrent_info(TORRENT), "save_path": FOLDER})
for peer in zip(PEERS[::2], PEERS[1::2]):
    torrent.connect_peer((peer[0], int(peer[1])))
print("ready")
while not torrent.status().is_seeding:
    time.sleep(0.1)
print("done")
while True:
    time.sleep(60)
