#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Send a fabric's process what no library would: fabric_forged.py SOCKET PID

Each connection sends some messages, right at first, then of any bytes and with
any descriptor; some never read. It ends with status 0 if the fabric, process
PID, takes connections all the while, and if what it keeps for those that do not
read is bounded and whole."""
import json
import os
import random
import socket
import struct
import sys

MAGIC = 0x756d4104
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

# A MAD that is refused comes back. The socket's queue holds some hundred of
# them; the fabric keeps the others, and loses none.
def refused(number):
    return head(5, 256) + struct.pack('=IIIII', 7, 0, 0, 0, 0) + bytes(44) + \
        bytes(8) + struct.pack('>Q', number) + bytes(240)


REFUSED = 3000
for s in deaf:
    for number in range(REFUSED):
        assert send(s, refused(number))
attached().close()
for s in deaf:
    for number in range(REFUSED):
        message = s.recv(4096)
        assert len(message) == 16 + 64 + 24, len(message)
        assert struct.unpack('>Q', message[-16:-8])[0] == number


# Answers that nobody reads: the fabric keeps 64 MiB of them. Each answer is
# whole, or an error instead, or the connection has ended.
def resident():
    with open(f'/proc/{sys.argv[2]}/status', encoding='ascii') as f:
        return int(next(x for x in f if x.startswith('VmRSS')).split()[1]) << 10


def results(s):
    text = b''
    while True:
        message = s.recv(65536)
        if not message:
            return
        result = struct.unpack('=IIiI', message[:16])[2]
        if result == 0 and len(message) > 16:
            text += message[16:]
            continue
        if result == 0:
            assert len(json.loads(text)['nodes']) == 6, 'half an answer'
        yield result
        text = b''


ASK = head(6, 9) + b'show\njson'
LATE = 5000
s = connect()
for _ in range(LATE):
    assert send(s, ASK)
answers = results(s)
assert all(next(answers) == 0 for _ in range(LATE)), 'an answer is missing'
s.close()

before, peak, s, asked = resident(), 0, connect(), 0
while asked < 100000 and send(s, ASK):
    asked += 1
    if asked % 100 == 0:
        peak = max(peak, resident())
attached().close()
print(f'{asked} answers are not read: {(peak - before) >> 20} MiB more')
assert 16 << 20 < peak - before < 192 << 20
try:
    whole = sum(result == 0 for result in results(s))
except ConnectionError:
    whole = 0
print(f'{whole} of them were there')
assert asked < 100000 or whole < asked
last = attached()
print('still there')
