# SPDX-License-Identifier: BSD-2-Clause
"""A long, lossy cable between two network namespaces: Ethernet frames from one
tap device to the other, each so much later, some of them never.

usage: wan.py NETNS NETNS MILLISECONDS PERCENT

The device is wan0 in each. "up" is said when both are there; it lasts until it
is killed, and the devices as long."""
import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
MOST = 65536


def tap_in(netns):
    with open(netns) as f:
        if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET):
            sys.exit(os.strerror(ctypes.get_errno()))
    fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack('16sH', b'wan0',
                                           IFF_TAP | IFF_NO_PI))
    return fd


def receive(fd, then, queue, loss):
    try:
        while True:
            frame = os.read(fd, MOST)
            if random.random() >= loss:
                queue.append((then, frame))
    except BlockingIOError:
        pass


def deliver(fd, now, queue):
    while queue and queue[0][0] <= now:
        try:
            os.write(fd, queue.popleft()[1])
        except OSError:  # the device is down, or full: lost
            pass


ends = [tap_in(netns) for netns in sys.argv[1:3]]
delay, loss = float(sys.argv[3]) / 1000, float(sys.argv[4]) / 100
queues = [collections.deque() for _ in ends]  # to each end
random.seed(1)
print('up', flush=True)
while True:
    due = [queue[0][0] for queue in queues if queue]
    wait = max(min(due) - time.monotonic(), 0) if due else None
    ready = select.select(ends, [], [], wait)[0]
    now = time.monotonic()
    for i, fd in enumerate(ends):
        if fd in ready:
            receive(fd, now + delay, queues[1 - i], loss)
    for fd, queue in zip(ends, queues):
        deliver(fd, now, queue)
