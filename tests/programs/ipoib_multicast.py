#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ipoib_multicast.py receive|send 4|6 GROUP INTERFACE [BYTES]

receive: become a member, and wait up to 20 s for a datagram. send: send ten a
second for 3 s.
"""
import socket
import struct
import sys
import time

PORT = 4711


def main():
    what, family, group, interface = sys.argv[1:5]
    size = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    index = socket.if_nametoindex(interface)
    v4 = family == '4'
    s = socket.socket(socket.AF_INET if v4 else socket.AF_INET6,
                      socket.SOCK_DGRAM)
    address = socket.inet_pton(s.family, group)
    if what == 'send':
        if v4:
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                         struct.pack('4s4si', address, bytes(4), index))
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
        else:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        for _ in range(30):
            s.sendto((b'hello' * size)[:size], (group, PORT))
            time.sleep(0.1)
        return
    s.bind(('', PORT))
    if v4:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                     struct.pack('4s4si', address, bytes(4), index))
    else:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                     address + struct.pack('i', index))
    print('member', flush=True)
    s.settimeout(20)
    data, peer = s.recvfrom(65536)
    print('heard', len(data), 'bytes', data[:5].decode(), 'from', peer[0],
          flush=True)


main()
