#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Repeats the RoCEv1 frames that pass an interface, each spoilt in one way that a
receiver must notice: roce1_garbage.py INTERFACE SECONDS SEED. Says at the end
how many it sent of each kind.
"""
import collections
import random
import socket
import struct
import sys
import time
import zlib

TYPE = 0x8915
ETH_P_ALL = 3
GRH, BTH = 14, 54


def seal(frame):
    """A right ICRC, so that only the spoilt field tells."""
    masked = bytearray(b"\xff" * 8 + frame[GRH:-4])
    masked[8] |= 0x0f
    masked[9:12] = b"\xff" * 3
    masked[15] = 0xff
    masked[8 + 40 + 4] = 0xff
    frame[-4:] = struct.pack("<I", zlib.crc32(masked))


def flip(frame, rng):
    # Traffic class, flow label, hop limit and congestion marks may change.
    at = rng.randrange(BTH + 5, len(frame))
    frame[at] ^= 1 << rng.randrange(8)


def length(frame, rng):
    frame[GRH + 4:GRH + 6] = struct.pack(">H", rng.randrange(1 << 16))


def cut(frame, rng):
    del frame[rng.randrange(GRH, len(frame)):]


def source(frame, rng):
    frame[GRH + 8 + rng.randrange(12, 16)] ^= 1 << rng.randrange(8)
    seal(frame)


def destination(frame, rng):
    frame[GRH + 24 + rng.randrange(12, 16)] ^= 1 << rng.randrange(8)
    seal(frame)


def following(frame, rng):
    frame[GRH + 6] = rng.choice([0, 6, 17, 58])
    seal(frame)


def group(frame, rng):
    frame[0] |= 1


def elsewhere(frame, rng):
    """To a queue pair that does not exist, of any slot."""
    frame[BTH + 5:BTH + 8] = rng.randrange(1 << 24).to_bytes(3, "big")
    seal(frame)


SPOILERS = [flip, length, cut, source, destination, following, group,
            elsewhere]


def main():
    interface, seconds, seed = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    rng, sent, own = random.Random(seed), collections.Counter(), set()
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((interface, ETH_P_ALL))
    s.settimeout(0.2)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            frame, address = s.recvfrom(9000)
        except socket.timeout:
            continue
        # What this program sends passes the interface as well.
        outgoing = address[2] == socket.PACKET_OUTGOING
        if frame in own:
            own.discard(frame)
            continue
        if not outgoing or frame[12:14] != struct.pack(">H", TYPE) or \
                len(frame) < BTH + 16:
            continue
        spoil = rng.choice(SPOILERS)
        spoilt = bytearray(frame)
        spoil(spoilt, rng)
        if spoilt == frame:
            continue
        s.send(spoilt)
        own.add(bytes(spoilt))
        sent[spoil.__name__] += 1
    print(sum(sent.values()), "sent:",
          ", ".join("%s %d" % pair for pair in sorted(sent.items())))


main()
