#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ipoib_ask.py INTERFACE own|garbage|ADDRESS: a question to the process of an
IPoIB interface, as wire/ipoib.h has it, or bytes that are none."""
import ipaddress
import socket
import struct
import sys

HEAD = '>BBHIiIIQ16s16s4x'


def main():
    interface, what = sys.argv[1:]
    ip = bytes(16)
    if what not in ('own', 'garbage'):
        ip = ipaddress.ip_address(what).packed
        if len(ip) == 4:
            ip = bytes(10) + b'\xff\xff' + ip
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect('\0verbena/ipoib/' + interface)
    question = struct.pack(HEAD, 1 if what == 'own' else 2, 1, 0, 0, 0, 0, 0, 0,
                           ip, bytes(16))
    try:
        s.send(question if what != 'garbage' else b'\xff' * len(question))
        answer = s.recv(100)
    except ConnectionError:
        answer = b''
    if not answer:
        print('closed')
        return
    _, _, port, pkey, error, mtu, _, guid, _, gid = struct.unpack(HEAD, answer)
    if error:
        print('error', error)
    elif what == 'own':
        print(f'guid {guid:x} port {port} pkey {pkey:x} mtu {mtu}', end=' ')
    print('gid', ipaddress.IPv6Address(gid))


main()
