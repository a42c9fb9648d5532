#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""More programs than a fabric has room for: fabric_crowd.py SOCKET PID LEAST

PID is the fabric's process. It ends with status 0 if the fabric serves at least
LEAST programs at once, does not run in circles while more wait, and serves who
waits when others have left."""
import os
import resource
import select
import socket
import struct
import sys
import time

MAGIC = 0x756d4104
CROWD = 1100  # more than the fabric takes; the backlog holds 128
QUIET = 1.0   # seconds

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
path, pid, least = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
least = min(least, hard - 100)


def attach():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect(path)
    where = struct.pack('=IIiI', MAGIC, 2, 0, 0)
    s.send(where + b'Hca3'.ljust(65, b'\0') + bytes([1, 0, 0]))
    return s


def served(s, patience):
    poll = select.poll()
    poll.register(s, select.POLLIN)
    return bool(poll.poll(patience * 1000)) and len(s.recv(64)) == 16


def cpu_seconds():
    fields = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


inside, waiting = [], []
while len(waiting) < 20 and len(inside) < CROWD:
    s = attach()
    (inside if not waiting and served(s, 2) else waiting).append(s)
print(f'{len(inside)} programs are served, {len(waiting)} wait')
assert len(inside) >= least, 'too few are served'
assert waiting, 'there is no limit'
before = cpu_seconds()
time.sleep(QUIET)
used = cpu_seconds() - before
print(f'{used:.2f} s of the processor in {QUIET} s')
assert used < QUIET / 4, 'the fabric runs in circles'
for s in inside[:len(waiting)]:
    s.close()
for s in waiting:
    assert served(s, 5), 'who waits is not served'
