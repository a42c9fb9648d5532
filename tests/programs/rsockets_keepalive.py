# SPDX-License-Identifier: BSD-2-Clause
"""A connection on which nobody says anything, under `verbena run --rsockets`.
usage: rsockets_keepalive.py ADDRESS serve | idle | stopped | watch"""
import errno
import os
import signal
import socket
import sys
import time

address, what = (sys.argv[1], 9099), sys.argv[2]

if what == 'serve':
    s = socket.socket()
    s.bind(address)
    s.listen(8)
    while True:
        c, _ = s.accept()
        c.recv(1)
        c.close()

if what == 'stopped':  # for longer than all probes together would take
    me = os.getpid()
    if os.fork() == 0:
        time.sleep(2)
        os.kill(me, signal.SIGSTOP)
        time.sleep(5)
        os.kill(me, signal.SIGCONT)
        os._exit(0)

c = socket.create_connection(address, 5)
c.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
print('quiet', flush=True)
if what == 'idle':  # the other end is there, and says so
    c.settimeout(4.5)
elif what == 'stopped':
    c.settimeout(9)
else:
    c.settimeout(15)
before = time.time()
try:
    c.recv(1)
    print('the end')
except OSError as e:  # the time limit has no number
    took = 'soon' if time.time() - before < 6 else 'late'
    print(errno.errorcode[e.errno] if e.errno else 'nothing', took)
