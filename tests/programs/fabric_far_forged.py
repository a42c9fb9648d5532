#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Messages of a stranger to the sockets of links between processes.

    fabric_far_forged.py HOST PORT...

They come from another port than the peer's, and from many."""
import os
import socket
import struct
import sys


def message(kind, size):
    head = b'\x56\x66\x4c\x01' + bytes([kind, 0, 0, 0])
    return head + os.urandom(size)


host, ports = sys.argv[1], [int(p) for p in sys.argv[2:]]
for turn in range(200):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for port in ports:
            for kind, size in ((1, 40), (2, 16), (2, 1400), (3, 40), (1, 3)):
                s.sendto(message(kind, size), (host, port))
            s.sendto(struct.pack('>QQ', turn, turn), (host, port))
            s.sendto(b'', (host, port))
