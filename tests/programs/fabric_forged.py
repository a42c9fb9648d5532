#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Send a fabric's process what no library would: fabric_forged.py SOCKET

Each connection sends some messages, right at first, then of any bytes and with
any descriptor; some never read. It ends with status 0 if the fabric takes
connections all the while."""
import os
import random
import socket
import struct
import sys

MAGIC = 0x756d4102
random.seed(1)


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect(sys.argv[1])
    return s


def head(kind, length=0):
    return struct.pack('=IIiI', MAGIC, kind, 0, length)


def where(kind, node, port):
    return head(kind) + node.ljust(65, b'\0') + bytes([port]) + b'\0\0'


def send(s, data, fds=()):
    try:
        socket.send_fds(s, [data], fds)
        return True
    except OSError:
        return False


def attached():
    s = connect()
    send(s, where(2, b'Hca3', 1))
    assert struct.unpack('=IIiI', s.recv(64))[2] == 0
    return s


def mad(agent, length, timeout):
    header = struct.pack('=IIIII', agent, 0, timeout, 3, 0) + random.randbytes(44)
    return head(5, length) + header + random.randbytes(length)


deaf = [attached() for _ in range(4)]
for turn in range(300):
    s = attached() if turn % 3 else connect()
    pipe = os.pipe()
    memory = os.memfd_create('x')
    for _ in range(8):
        fds = random.choice([(), (pipe[0],), (memory,), (pipe[0], memory)])
        kind = random.randrange(8)
        message = random.choice([
            random.randbytes(random.randrange(1, 400)),
            head(kind) + random.randbytes(random.randrange(200)),
            head(5, random.randrange(2**32)) + random.randbytes(64),
            mad(random.randrange(3), random.randrange(300), 100),
            # an agent of any class, with and without a socket for the answer
            head(3) + random.randbytes(32),
        ])
        if not send(s, message, fds):
            break
    for fd in (*pipe, memory):
        os.close(fd)
    s.close()
for s in deaf:
    for _ in range(50):
        send(s, head(3) + struct.pack('=BBBxIQQ', 4, 1, 0, 0, 0, 0))
        send(s, mad(0, 256, 10))
last = attached()
print('still there')
