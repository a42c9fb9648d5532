#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays systemd: makes the socket of verbena.socket, and starts the broker when
someone calls, twice.

    packaging_socket.py VERBENA UNIT
"""
import os
import re
import select
import socket
import subprocess
import sys
import time

VERBENA, UNIT = sys.argv[1:]


def listen():
    with open(UNIT, encoding='utf-8') as f:
        name = re.search(r'^ListenSequentialPacket=@(.*)$', f.read(), re.M)[1]
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind('\0' + name)
    s.listen(1024)
    return s


def broker(s, pid=None, fds='1'):
    """Start it as sd_listen_fds(3) says."""
    def give():
        if s.fileno() == 3:
            os.set_inheritable(3, True)
        else:
            os.dup2(s.fileno(), 3)
        os.environ['LISTEN_PID'] = str(pid or os.getpid())
        os.environ['LISTEN_FDS'] = fds
        os.execv(VERBENA, [VERBENA, 'broker', '--linger', '0.2'])
    child = os.fork()
    if child == 0:
        give()
    return child


def ask():
    return subprocess.Popen([VERBENA, 'status'], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def once(s, turn):
    asking = ask()
    if not select.select([s], [], [], 10)[0]:
        print(f'not ok nobody called ({turn})')
        return
    child = broker(s)
    said = asking.communicate(timeout=20)[0]
    started = time.monotonic()
    status = os.waitpid(child, 0)[1]
    good = (f'PID {child}' in said and status == 0 and
            time.monotonic() - started < 15)
    print('ok' if good else 'not ok',
          f'the broker serves at a socket that it was given, {turn}',
          '' if good else f'# {said.strip()}, status {status}')


s = listen()
once(s, 'and ends when idle')
once(s, 'and again')
# Another socket than its own is refused.
other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
refused = os.waitpid(broker(other), 0)[1] >> 8
print('ok' if refused == 1 else 'not ok', 'it refuses another socket')
refused = os.waitpid(broker(s, fds='2'), 0)[1] >> 8
print('ok' if refused == 1 else 'not ok', 'it refuses two sockets')
# Variables that were meant for its parent do not count; the name is taken.
busy = os.waitpid(broker(s, pid=1), 0)[1] >> 8
print('ok' if busy == 1 else 'not ok', 'it leaves sockets of another process')
