#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A fabric without clients has no descriptor left: fabric_starved.py SOCKET PID

PID is the fabric's process. It ends with status 0 if the fabric does not run in
circles while a program waits, and serves that program when there are
descriptors again."""
import os
import resource
import select
import socket
import struct
import sys
import time

MAGIC = 0x756d4104
QUIET = 1.0  # seconds
path, pid = sys.argv[1], int(sys.argv[2])


def cpu_seconds():
    with open(f'/proc/{pid}/stat', encoding='ascii') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


taken = set(map(int, os.listdir(f'/proc/{pid}/fd')))
free = min(set(range(len(taken) + 1)) - taken)
before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(path)
s.send(struct.pack('=IIiI', MAGIC, 2, 0, 0) + b'Hca3'.ljust(65, b'\0') +
       bytes([1, 0, 0]))
begun = cpu_seconds()
time.sleep(QUIET)
spent = cpu_seconds() - begun
print(f'{spent:.2f} s of the processor in {QUIET} s')
assert spent < QUIET / 4, 'the fabric runs in circles'
assert not select.select([s], [], [], 0)[0], 'it is served: there was no limit'
resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
assert select.select([s], [], [], 5)[0], 'who waits is not served'
assert len(s.recv(64)) == 16
