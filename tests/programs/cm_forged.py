# SPDX-License-Identifier: BSD-2-Clause
"""One connection request (a CM REQ to queue pair 1) whose rdma_cm header names
any ends: cm_forged.py FROM TO CALLER LISTENER PORT, four IPv4 addresses."""
import os
import socket
import struct
import sys
import zlib

IP_MTU_DISCOVER, PROBE = 10, 3
ROCE_PORT, SOURCE_PORT = 4791, 50001
sender, to, caller, listener = map(socket.inet_aton, sys.argv[1:5])
port = int(sys.argv[5])


def mapped(address):
    return bytes(10) + b"\xff\xff" + address


def request():
    mad = bytearray(256)
    mad[0:4] = 1, 7, 2, 3
    mad[8:16] = os.urandom(8)
    mad[16:18] = struct.pack(">H", 0x10)
    mad[24:28] = os.urandom(4)
    mad[32:40] = struct.pack(">Q", 0x0106 << 16 | port)
    mad[40:48] = os.urandom(8)  # the adapter
    mad[56:59] = b"\x00\x80\x01"  # queue pair
    mad[67] = 20 << 3 | 1  # timeout, RC, flow control
    mad[71] = 20 << 3 | 7
    mad[72:76] = b"\xff\xff\x37\xf0"  # P_Key, MTU 1024, 15 tries
    mad[76:80] = b"\xff\xff\xff\xff"
    mad[80:96], mad[96:112] = mapped(sender), mapped(to)
    mad[117], mad[119] = 64, 19 << 3
    mad[164:168] = bytes([0, 0x40]) + struct.pack(">H", SOURCE_PORT)
    mad[180:184], mad[196:200] = caller, listener
    return bytes(mad)


def icrc(payload):
    """What the kernel will put in front counts, changing fields as ones."""
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0xff, 32 + len(payload), 0,
                     0x4000, 0xff, 17, 0xffff, sender, to)
    udp = struct.pack(">HHHH", SOURCE_PORT, ROCE_PORT, 12 + len(payload),
                      0xffff)
    covered = payload[:4] + b"\xff" + payload[5:]
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + covered))


head = bytes([0x64, 0x40, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0,
              0x80, 1, 0, 0, 0, 0, 0, 1])
packet = head + request()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PROBE)
s.bind((sys.argv[1], SOURCE_PORT))
s.sendto(packet + icrc(packet), (sys.argv[2], ROCE_PORT))
