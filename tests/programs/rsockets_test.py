# SPDX-License-Identifier: BSD-2-Clause
"""What programs expect of sockets, under `verbena run --rsockets`: one "ok" or
"not ok" a line. usage: rsockets_test.py ADDRESS [TEST...]"""
import ctypes
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time

address = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
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
    select.select([], [c], [], 20)
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


def duplicates():
    c, a = pair(listener())
    one = os.dup(a.fileno())
    a.close()
    c.sendall(b'x')
    assert os.read(one, 10) == b'x'
    two = os.dup(one)
    os.close(one)
    assert select.select([], [two], [], 20)[1] == [two]
    os.write(two, b'abc')
    select.select([c], [], [], 20)
    assert c.recv(3) == b'abc'
    os.close(two)
    select.select([c], [], [], 20)
    assert c.recv(1) == b''


def duplicates_over_others():
    """What cannot be done changes nothing; what has a number's place, only
    that."""
    s = listener()
    c, a = pair(s)
    number = a.detach()
    for bad in lambda: os.dup2(999, number), lambda: os.dup2(-1, number):
        try:
            bad()
        except OSError:
            pass
    c.sendall(b'x')
    assert os.read(number, 1) == b'x'
    kept = os.dup(number)
    r, w = os.pipe()
    os.dup2(r, number)
    os.write(w, b'p')
    assert os.read(number, 10) == b'p'
    c.sendall(b'y')
    assert os.read(kept, 1) == b'y'
    other, b = pair(s)
    os.dup2(b.fileno(), kept)
    b.close()
    other.sendall(b'z')
    assert os.read(kept, 1) == b'z'
    select.select([c], [], [], 20)
    assert c.recv(1) == b''
    os.close(kept)
    select.select([other], [], [], 20)
    assert other.recv(1) == b''
    os.write(w, b'q')
    assert os.read(number, 10) == b'q'


def without_a_descriptor_left():
    c, a = pair(listener())
    number = a.detach()
    r, w = os.pipe()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(r), limit[1]))
    try:
        os.dup2(r, number)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    os.write(w, b'p')
    assert os.read(number, 10) == b'p'
    select.select([c], [], [], 20)
    assert c.recv(1) == b''


def a_set_that_nothing_replaces():
    c, a = pair(listener())
    e = select.epoll()
    e.register(a, select.EPOLLIN)
    assert libc.dup3(0, e.fileno(), 1) == -1
    c.send(b'x')
    assert e.poll(5) == [(a.fileno(), select.EPOLLIN)]
    number = os.dup2(os.open('/dev/null', os.O_RDONLY), e.fileno())
    assert os.read(number, 1) == b''


def numbers_out_of_sight():
    c, a = pair(listener())
    kept = os.dup(a.fileno())
    number = a.fileno()
    a.close()
    libc.close_range(number, number, 0)
    c.sendall(b'x')
    assert os.read(kept, 1) == b'x'


def as_a_file():
    c, a = pair(listener())
    c.setblocking(True)
    libc.fdopen.restype = ctypes.c_void_p
    f = ctypes.c_void_p(libc.fdopen(a.fileno(), b'r+'))
    assert libc.fileno(f) == a.detach()
    line = ctypes.create_string_buffer(20)
    c.sendall(b'question\n')
    libc.fgets.restype = ctypes.c_void_p
    assert libc.fgets(line, len(line), f) and line.value == b'question\n'
    libc.fputs(b'answer', f)
    assert libc.fclose(f) == 0
    assert c.recv(20, socket.MSG_WAITALL) == b'answer'


def closed_by_exec():
    s = listener()
    c, a = pair(s)
    fds = [os.dup(a.fileno())]
    for inheritable in False, True:
        fds.append(os.dup2(a.fileno(), 200 + inheritable, inheritable))
    expected = [False, False, True]
    assert [os.get_inheritable(fd) for fd in fds] == expected

    def work():
        assert [os.get_inheritable(fd) for fd in fds] == expected
        c.sendall(b'x')
        assert os.read(fds[0], 1) == b'x'
        assert [os.get_inheritable(fd) for fd in fds] == expected
        s.setblocking(False)
        assert not s.get_inheritable()

    assert os.waitpid(child(work), 0)[1] == 0


def child(work):
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as e:
        print('not ok rsockets: a child:', repr(e), flush=True)
        os._exit(1)


def everything(c):
    got = b''
    while True:
        more = c.recv(65536)
        if not more:
            return got
        got += more


def child_that_answers():
    s = listener()
    c, a = pair(s)
    c.setblocking(True)

    def work():
        s.close()
        c.close()
        heard = a.recv(100)
        assert a.getpeername() == expected
        a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        a.sendall(heard * 100000)

    expected = c.getsockname()
    pid = child(work)
    a.close()
    c.sendall(b'hello')
    assert everything(c) == b'hello' * 100000
    assert os.waitpid(pid, 0)[1] == 0


def child_that_execs():
    c, a = pair(listener())
    c.setblocking(True)

    def work():
        os.dup2(a.fileno(), 0)
        os.dup2(a.fileno(), 1)
        os.execv('/usr/bin/tr', ['tr', 'a-z', 'A-Z'])

    pid = child(work)
    a.close()
    c.sendall(b'hello')
    c.shutdown(socket.SHUT_WR)
    assert everything(c) == b'HELLO'
    assert os.waitpid(pid, 0)[1] == 0


def patiently_connected():
    """With a time limit, which leaves no way back to TCP."""
    for _ in range(40):
        try:
            return socket.create_connection((address, port), 20)
        except (ConnectionRefusedError, ConnectionAbortedError):
            time.sleep(0.2)


def children_that_accept():
    s = listener()

    def work():
        for _ in range(3):
            a, _ = s.accept()
            a.sendall(b'%d' % os.getpid())
            a.close()

    pids = [child(work) for _ in range(2)]
    seen = [int(everything(patiently_connected())) for _ in range(6)]
    assert sorted(set(seen)) == sorted(pids)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)


def a_peer_that_closes_at_once():
    """The peer has closed before connect() returns, which succeeds even so. The
    peer runs first, since the client is idle on the same processor."""
    s = listener()
    s.listen(200)
    processor = min(os.sched_getaffinity(0))

    def calls():
        os.sched_setaffinity(0, {processor})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        for _ in range(200):
            with socket.create_connection((address, port), 20) as c:
                assert everything(c) == b'x'

    def answers():
        os.sched_setaffinity(0, {processor})
        while True:
            a, _ = s.accept()
            a.sendall(b'x')
            a.close()

    server = child(answers)
    time.sleep(0.5)
    client = child(calls)
    status = os.waitpid(client, 0)[1]
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    assert status == 0


def broker():
    """This host's: of the same network namespace."""
    here = os.readlink('/proc/self/ns/net')
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/cmdline' % pid, 'rb') as f:
                words = f.read().split(b'\0')
            if (words[1:2] == [b'broker'] and words[0].endswith(b'verbena') and
                    os.readlink('/proc/%s/ns/net' % pid) == here):
                return int(pid)
        except OSError:
            pass
    return None


def until_there_is(what, seconds=8):
    end = time.time() + seconds
    while not what() and time.time() < end:
        time.sleep(0.05)
    return what()


# The child tells the next broker first, since its parent is stopped.
def child_that_accepts_under_another_broker():
    s = listener()

    def accepts():
        a, _ = s.accept()
        a.sendall(b'%d' % os.getpid())
        a.close()

    def stops_and_starts():
        os.kill(parent, signal.SIGSTOP)
        os.kill(old, signal.SIGKILL)
        until_there_is(lambda: broker() not in (None, old))
        time.sleep(0.5)
        os.kill(parent, signal.SIGCONT)

    parent, old = os.getpid(), broker()
    assert old
    pid = child(accepts)
    time.sleep(1)
    other = child(stops_and_starts)
    os.waitpid(other, 0)
    time.sleep(0.5)
    heard = int(everything(patiently_connected()))
    assert heard == pid
    os.waitpid(pid, 0)


def child_that_is_killed():
    c, a = pair(listener())
    c.settimeout(20)
    pid = child(lambda: (a.recv(1), time.sleep(100)))
    a.close()
    c.sendall(b'x')
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert c.recv(1) == b''


def child_that_leaves_much_behind():
    """Nobody reads what it wrote: its parent waits, and does not turn."""
    c, a = pair(listener())
    r, w = os.pipe()

    def work():
        total = 0
        a.settimeout(0.3)
        try:
            while True:
                total += a.send(b'x' * 65536)
        except TimeoutError:
            os.write(w, b'%d' % total)

    pid = child(work)
    a.close()
    os.waitpid(pid, 0)
    before = time.process_time()
    time.sleep(1)
    assert time.process_time() - before < 0.2, 'it spins'
    c.settimeout(20)
    assert len(everything(c)) == int(os.read(r, 20))


def child_that_sends_datagrams():
    """A stream has no place for them: it is told so."""
    a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    b.bind((address, 9099))
    a.connect((address, 9099))

    def work():
        try:
            a.send(b'x')
        except OSError:
            return
        raise AssertionError('nobody heard it')

    pid = child(work)
    assert os.waitpid(pid, 0)[1] == 0


def called(s):
    """A process that connects, says one byte and waits; and our end."""
    def calls():
        c = patiently_connected()
        c.sendall(b'x')
        c.recv(1)

    caller = child(calls)
    return caller, s.accept()[0]


def child_whose_peer_is_gone():
    """A stopped process answers nobody: others are served, and forked."""
    s = listener()
    caller, a = called(s)
    ours = child(lambda: (a.recv(1), time.sleep(0.6)))
    a.close()
    time.sleep(0.4)
    os.kill(caller, signal.SIGSTOP)
    os.waitpid(ours, 0)
    time.sleep(0.3)
    before = time.time()
    os.waitpid(child(lambda: None), 0)
    took = time.time() - before
    os.kill(caller, signal.SIGKILL)
    os.waitpid(caller, 0)
    assert took < 0.5, took


def child_whose_socket_gets_another_number():
    """The parent puts a stranger's in its place: the child's stays its own."""
    s = listener()
    c, a = pair(s)
    other, stranger = pair(s)
    r, w = os.pipe()
    for turn in 1, 2:
        pid = child(lambda: (os.read(r, 1), a.recv(1), a.sendall(b'mine')))
        if turn == 2:
            os.dup2(stranger.fileno(), a.fileno())
        os.write(w, b'g')
        c.sendall(b'x')
        select.select([c], [], [], 20)
        assert c.recv(10) == b'mine'
        assert os.waitpid(pid, 0)[1] == 0
    select.select([c], [], [], 20)
    assert c.recv(10) == b''
    a.sendall(b'still there')
    select.select([other], [], [], 20)
    assert other.recv(20) == b'still there'


def number_of_one_that_says_goodbye():
    s = listener()
    caller, a = called(s)
    a.recv(1)
    os.kill(caller, signal.SIGSTOP)
    number = a.detach()
    closing = threading.Thread(target=os.close, args=(number,))
    closing.start()
    time.sleep(0.2)
    r, w = os.pipe()
    os.dup2(r, number)
    os.kill(caller, signal.SIGKILL)
    os.waitpid(caller, 0)
    closing.join()
    os.write(w, b'p')
    assert os.read(number, 1) == b'p'


def child_that_keeps_it_open():
    c, a = pair(listener())
    c.settimeout(20)
    pid = child(lambda: time.sleep(0.5))
    before = time.time()
    a.close()
    assert c.recv(1) == b'' and time.time() - before > 0.3
    os.waitpid(pid, 0)


# Their descriptors are closed by calls that run in our memory.
def programs_that_are_spawned():
    c, a = pair(listener())
    for _ in range(3):
        subprocess.run(['true'], close_fds=True, stdin=subprocess.DEVNULL)
        c.send(b'x')
        assert a.recv(1) == b'x'


def no_key_of_thread_data():
    """The program has them all: nobody else's value is taken for ours."""
    while libc.pthread_key_create(ctypes.byref(ctypes.c_uint()), None) == 0:
        pass
    c, a = pair(listener())
    c.send(b'x')
    p = select.poll()
    p.register(a, select.POLLIN)
    assert p.poll(20000) and a.recv(1) == b'x'
    before = time.process_time()
    assert p.poll(500) == []
    assert time.process_time() - before < 0.2, 'it spins'


def elsewhere(name, **env):
    """A test in an interpreter of its own."""
    said = subprocess.run([sys.executable, __file__, address, name],
                          env=dict(os.environ, **env), stdout=subprocess.PIPE)
    assert said.stdout.startswith(b'ok'), said.stdout


def what_a_peer_that_is_gone_holds_up():
    elsewhere('child_whose_peer_is_gone', VERBENA_NEAR='off')


def what_has_the_number_of_one_that_says_goodbye():
    elsewhere('number_of_one_that_says_goodbye', VERBENA_NEAR='off')


def without_a_key_of_thread_data():
    elsewhere('no_key_of_thread_data', VERBENA_LOG='error')


def datagrams_of_children():
    elsewhere('child_that_sends_datagrams', VERBENA_RSOCKETS='all')


tests = (child_that_closes, not_blocking, one_shot_is_quiet,
         all_have_their_turn, half_closed, another_file_with_its_number,
         duplicates, duplicates_over_others, without_a_descriptor_left,
         a_set_that_nothing_replaces, numbers_out_of_sight, as_a_file,
         closed_by_exec, child_whose_socket_gets_another_number,
         what_has_the_number_of_one_that_says_goodbye,
         child_that_answers, child_that_execs,
         children_that_accept, a_peer_that_closes_at_once,
         child_that_accepts_under_another_broker,
         child_that_is_killed, child_that_leaves_much_behind,
         what_a_peer_that_is_gone_holds_up, datagrams_of_children,
         without_a_key_of_thread_data,
         child_that_keeps_it_open, programs_that_are_spawned,
         quiet_costs_nothing)
if len(sys.argv) > 2:
    tests = [globals()[name] for name in sys.argv[2:]]
for test in tests:
    try:
        test()
        print('ok rsockets', test.__name__.replace('_', ' '), flush=True)
    except Exception as e:
        print('not ok rsockets', test.__name__.replace('_', ' '), repr(e),
              flush=True)
