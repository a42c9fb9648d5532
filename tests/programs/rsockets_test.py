# SPDX-License-Identifier: BSD-2-Clause
"""What programs expect of sockets, under `verbena run --rsockets`: one "ok" or
"not ok" a line. usage: rsockets_test.py ADDRESS"""
import os
import select
import socket
import sys
import time

address = sys.argv[1]
port = 9100


def listener():
    global port
    port += 1
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(8)
    return s


def pair(s):
    """A client that does not wait, since one thread plays both."""
    c = socket.socket()
    c.setblocking(False)
    c.connect_ex((address, port))
    a, _ = s.accept()
    select.select([], [c], [], 5)
    assert c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    return c, a


def child_that_closes():
    s = listener()
    pid = os.fork()
    if pid == 0:
        s.close()
        os._exit(0)
    os.waitpid(pid, 0)
    c, a = pair(s)
    pid = os.fork()
    if pid == 0:
        a.close()
        os._exit(0)
    os.waitpid(pid, 0)
    c.send(b'x')
    assert a.recv(1) == b'x'


def not_blocking():
    s = listener()
    s.setblocking(False)
    try:
        s.accept()
    except BlockingIOError:
        pass
    else:
        raise AssertionError('accept() did not say EAGAIN')
    s.setblocking(True)
    c, a = pair(s)
    a.setblocking(False)
    try:
        a.recv(1)
    except BlockingIOError:
        return
    raise AssertionError('recv() did not say EAGAIN')


def one_shot_is_quiet():
    c, a = pair(listener())
    e = select.epoll()
    e.register(a.fileno(), select.EPOLLIN | select.EPOLLONESHOT)
    c.send(b'x')
    assert e.poll(2) == [(a.fileno(), select.EPOLLIN)]
    c.send(b'y')
    before = time.process_time()
    assert e.poll(0.5) == []
    assert time.process_time() - before < 0.2, 'it spins'
    e.modify(a.fileno(), select.EPOLLIN)
    assert e.poll(2) == [(a.fileno(), select.EPOLLIN)]


def all_have_their_turn():
    s = listener()
    one, two = pair(s), pair(s)
    e = select.epoll()
    for c, a in one, two:
        e.register(a.fileno(), select.EPOLLIN)
        c.send(b'x')
    seen = set()
    for _ in range(20):
        seen.update(fd for fd, _ in e.poll(1, 1))
    assert len(seen) == 2


def half_closed():
    c, a = pair(listener())
    c.setblocking(True)
    c.sendall(b'all')
    c.shutdown(socket.SHUT_WR)
    assert a.recv(10, socket.MSG_WAITALL) == b'all' and a.recv(1) == b''
    a.sendall(b'back')
    a.close()
    assert c.recv(10, socket.MSG_WAITALL) == b'back' and c.recv(1) == b''


def another_file_with_its_number():
    c, a = pair(listener())
    r, w = os.pipe()
    fd = a.detach()
    os.dup2(r, fd)
    os.write(w, b'pipe')
    assert os.read(fd, 10) == b'pipe'


def quiet_costs_nothing():
    kept = pair(listener())
    kept[0].send(b'x')
    assert kept[1].recv(1) == b'x'
    time.sleep(0.5)
    before = time.process_time()
    time.sleep(2)
    assert time.process_time() - before < 0.002


for test in (child_that_closes, not_blocking, one_shot_is_quiet,
             all_have_their_turn, half_closed, another_file_with_its_number,
             quiet_costs_nothing):
    try:
        test()
        print('ok rsockets', test.__name__.replace('_', ' '), flush=True)
    except Exception as e:
        print('not ok rsockets', test.__name__.replace('_', ' '), repr(e),
              flush=True)
