#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Send frames that are wrong in many ways to a gateway, and to the switch before
it: gateway_garbage.py INTERFACE MAC COUNT"""
import os
import random
import socket
import struct
import sys

interface, mac, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
gateway = bytes.fromhex(mac.replace(':', ''))
rng = random.Random(4391)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((interface, 0))
own = s.getsockname()[4]


def checksum(data):
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def address():
    """An address of the network, seldom of another one; never b's or a's."""
    last = rng.choice([0, 1, 100, 200, 254, 255])
    return rng.choice([bytes([10, 9, 0, last]), bytes([10, 9, 0, last]),
                       bytes([rng.randrange(256), 1, 2, 3])])


def ipv4():
    """A header with options of any bytes, lengths that lie, and fragments."""
    options = os.urandom(4 * rng.randrange(11))
    payload = rng.randbytes(rng.choice([0, 1, 7, 100, 1400]))
    head = 20 + len(options)
    total = rng.choice([head + len(payload)] * 3 + [0, 20, 65535])
    fixed = struct.pack('!BBHHHBBH4s4s', 0x40 | head // 4, 0, total, 1,
                        rng.choice([0, 0x4000, 0x2000, 0x1fff]), 64,
                        rng.choice([1, 2, 17, 6, 255]), 0, address(), address())
    return 0x0800, fixed + options + payload


def ipv6():
    payload = rng.randbytes(rng.choice([0, 4, 8, 24, 32, 1200]))
    kind = rng.choice([130, 131, 133, 134, 135, 136, 137, 143, 128])
    source = bytes.fromhex('fd09') + bytes(13) + bytes([rng.randrange(100, 200)])
    target = rng.choice([bytes.fromhex('ff02') + rng.randbytes(14),
                         bytes.fromhex('fd09') + bytes(13) + b'\xfe'])
    body = bytes([kind, 0, 0, 0]) + payload
    pseudo = source + target + struct.pack('!IxxxB', len(body), 58)
    body = body[:2] + struct.pack('!H', checksum(pseudo + body)) + body[4:]
    return 0x86dd, struct.pack('!IHBB', 6 << 28, len(body), 58,
                               rng.choice([1, 255])) + source + target + body


def arp():
    kind, size = rng.choice([(1, 6), (32, 20), (1, 20), (rng.randrange(65536), 6)])
    sender = rng.randbytes(size) + address()
    return 0x0806, struct.pack('!HHBBH', kind, 0x0800, size, 4,
                               rng.randrange(4)) + sender + bytes(size) + address()


def noise():
    return rng.randrange(65536), rng.randbytes(rng.randrange(1400))


for i in range(count):
    kind, packet = rng.choice([ipv4, ipv6, arp, noise])()
    # 0x88cc and the like may be taken for the host's own protocols: harmless.
    to = rng.choice([gateway, b'\xff' * 6, b'\x33\x33' + rng.randbytes(4),
                     b'\x01\x80\xc2\x00\x00' + rng.randbytes(1)])
    source = rng.choice([own, own, b'\x02' + rng.randbytes(5), b'\xff' * 6])
    cut = rng.randrange(len(packet) + 1) if rng.random() < 0.2 else len(packet)
    try:
        s.send(to + source + struct.pack('!H', kind) + packet[:cut])
    except OSError:
        pass  # longer than the interface's MTU
