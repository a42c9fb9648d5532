#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Send frames with VLAN tags, or hear them and compare: gateway_vlan.py say|hear
INTERFACE. The kernel needs no VLAN interface for it: it gives a packet socket the
outer tag beside the frame (PACKET_AUXDATA)."""
import socket
import struct
import sys

SOL_PACKET, PACKET_AUXDATA = 263, 8
TYPE = 0x88b5       # for experiments (IEEE 802)
TAGS = [0x0007, 0xa007, 0x6fff]     # priority, and VLAN

s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
s.bind((sys.argv[2], 0))
if sys.argv[1] == 'say':
    for tag in TAGS:
        s.send(b'\xff' * 6 + b'\x02\0\0\0\0\x09' +
               struct.pack('!HHH', 0x8100, tag, TYPE) + b'verbena' * 9)
    sys.exit()
print('listening', flush=True)
wanted = list(TAGS)
while wanted:
    frame, extra, _, _ = s.recvmsg(2048, 256)
    tag = None
    for level, kind, data in extra:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci, _ = struct.unpack('IIIHHHH', data[:20])
            tag = tci if status & 0x10 else None
    if frame[12:14] == struct.pack('!H', TYPE) and tag == wanted[0] and \
            frame[14:] == b'verbena' * 9:
        wanted.pop(0)
