#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Messages of a stranger to the sockets of links between processes.

    fabric_far_forged.py HOST PORT...

They come from another port than the peer's, and from many."""
import os
import socket
import struct
import sys
import zlib


def message(kind, size):
    """A random message whose header's check is right (docs/WIRE.md 7)."""
    start, rest = b'\x56\x66\x4c\x01' + bytes([kind]), os.urandom(size)
    header = rest[:40 if kind == 1 else 16]
    check = zlib.crc32(start + bytes(3) + header) & 0xffffff
    return start + check.to_bytes(3, 'big') + rest


host, ports = sys.argv[1], [int(p) for p in sys.argv[2:]]
for turn in range(200):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for port in ports:
            for kind, size in ((1, 40), (2, 16), (2, 1400), (3, 40), (1, 3)):
                s.sendto(message(kind, size), (host, port))
            s.sendto(struct.pack('>QQ', turn, turn), (host, port))
            s.sendto(b'', (host, port))
