# SPDX-License-Identifier: BSD-2-Clause
"""A NETLINK_RDMA socket behaves as the kernel's does."""
import os
import select
import socket
import struct

NETLINK_RDMA = 20
GET, QP_GET, NLDEV = 1, 10, 5
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3


def request(command, flags, attributes=b""):
    return struct.pack("=IHHII", 16 + len(attributes), NLDEV << 10 | command,
                       REQUEST | flags, 42, 0) + attributes


def heads(data):
    while data:
        length, kind, flags, seq, pid = struct.unpack_from("=IHHII", data)
        yield kind, flags, seq, pid, data[16:length]
        data = data[(length + 3) & ~3:]


def opened(flags=0):
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | flags,
                         NETLINK_RDMA)


def told(name, holds):
    assert holds, name
    print(name)


s = opened()
s.bind((0, 0))
told("its name is the process's number", s.getsockname() == (os.getpid(), 0))
told("what kind it is", s.getsockopt(socket.SOL_SOCKET, 39) == 16 and
     s.getsockopt(socket.SOL_SOCKET, 38) == NETLINK_RDMA)
t = opened()
t.bind((0, 0))
told("another socket has another name",
     t.getsockname()[0] not in (0, os.getpid()))
t.bind((4711, 0))
told("a name of one's choice", t.getsockname() == (4711, 0))
try:
    opened().bind((4711, 0))
    taken = False
except OSError as e:
    taken = e.errno == 98
told("a name that is taken", taken)

told("nothing to read", not select.select([s], [], [], 0)[0])
s.sendto(request(GET, DUMP), (0, 0))
told("something to read", select.select([s], [], [], 0)[0])
data, sender = s.recvfrom(4096)
told("from the kernel", sender == (0, 0))
answers = list(heads(data))
told("a list and its end",
     [a[0] for a in answers] == [NLDEV << 10 | GET] * 2 + [DONE])
told("for the one who asked",
     all(a[2:4] == (42, os.getpid()) for a in answers))

copy = os.dup(t.fileno())
u = socket.socket(fileno=copy)
u.sendmsg([request(GET, ACK)[:8], request(GET, ACK)[8:]])
kind, flags, seq, pid, body = next(heads(t.recv(4096)))
told("a copy of it is it, too", kind == ERROR and pid == 4711)
told("an error with the request",
     struct.unpack_from("=i", body)[0] == -22 and len(body) == 20)

n = opened(socket.SOCK_NONBLOCK)
try:
    n.recv(100)
    empty = False
except BlockingIOError:
    empty = True
told("it does not wait that should not", empty)

child = os.fork()
if child == 0:
    s.send(request(GET, DUMP))
    os._exit(0 if len(s.recv(4096)) > 100 else 1)
told("in a child, too", os.waitpid(child, 0)[1] == 0)

v = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
v.bind((0, 0))
v.send(struct.pack("=IHHIIBxxxi", 24, 18, REQUEST | DUMP, 1, 0, 0, 0))
told("other netlink sockets are the kernel's", next(heads(v.recv(65536)))[0] == 16)

# A list that is longer than what a socket holds.
import ctypes
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_get_device_name.restype = ctypes.c_char_p
for name in ("ibv_open_device", "ibv_alloc_pd"):
    getattr(verbs, name).restype = ctypes.c_void_p
devices = verbs.ibv_get_device_list(None)
verbs.ibv_open_device.argtypes = verbs.ibv_alloc_pd.argtypes = [ctypes.c_void_p]
context = verbs.ibv_open_device(devices[0])
verbs.ibv_get_device_index.argtypes = [ctypes.c_void_p]
COUNT = 5000
assert all([verbs.ibv_alloc_pd(context) for i in range(COUNT)])
index = verbs.ibv_get_device_index(devices[0])
s.send(request(14, DUMP, struct.pack("=HHI", 8, 1, index)))
seen, done = set(), False
while not done:
    for kind, flags, seq, pid, body in heads(s.recv(4096)):
        done = done or kind == DONE
        at = body.find(struct.pack("=HH", 8, 60))
        while kind == NLDEV << 10 | 14 and at >= 0:
            seen.add(struct.unpack_from("=I", body, at + 4)[0])
            at = body.find(struct.pack("=HH", 8, 60), at + 8)
told("a list of thousands", len(seen) == COUNT)
