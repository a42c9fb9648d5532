#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ipoib_ask.py INTERFACE own|garbage|ADDRESS: a question to the process of an
IPoIB interface, as wire/ipoib.h has it, or bytes that are none."""
import ipaddress
import os
import socket
import struct
import sys

HEAD = '>BBHIiIIQ16s16sI'
SO_NETNS_COOKIE = 71


def path_of(interface, s):
    """The socket's file: of root's process, or in the user's directory."""
    space = struct.unpack('=Q', s.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE,
                                             8))[0]
    with open('/proc/sys/kernel/random/boot_id', 'rb') as f:
        for byte in f.read(64):
            space = (space ^ byte) * 0x100000001b3 % 2**64
    leaf = f'ipoib-{space:x}-{interface}'
    for directory in ('/run/verbena',
                      os.environ.get('XDG_RUNTIME_DIR', '') + '/verbena'):
        if os.path.exists(f'{directory}/{leaf}'):
            return f'{directory}/{leaf}'
    return f'/run/verbena/{leaf}'


def main():
    interface, what = sys.argv[1:]
    ip = bytes(16)
    if what not in ('own', 'garbage'):
        ip = ipaddress.ip_address(what).packed
        if len(ip) == 4:
            ip = bytes(10) + b'\xff\xff' + ip
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    question = struct.pack(HEAD, 1 if what == 'own' else 2, 2, 0, 0, 0, 0, 0, 0,
                           ip, bytes(16), 0)
    try:
        s.connect(path_of(interface, s))
        s.send(question if what != 'garbage' else b'\xff' * len(question))
        answer = s.recv(100)
    except (ConnectionError, PermissionError):
        answer = b''
    if not answer:
        print('closed')
        return
    _, _, port, pkey, error, mtu, _, guid, _, gid, qkey = struct.unpack(HEAD, answer)
    if error:
        print('error', error)
    elif what == 'own':
        print(f'guid {guid:x} port {port} pkey {pkey:x} mtu {mtu} '
              f'qkey {qkey:x}', end=' ')
    print('gid', ipaddress.IPv6Address(gid))


main()
