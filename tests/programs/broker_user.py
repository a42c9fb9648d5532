# SPDX-License-Identifier: BSD-2-Clause
"""What one user may cost the others of a host: an unprivileged program that
speaks to the broker itself. broker_user.py CASE...; each prints "ok CASE" or
"not ok CASE: why". Root's broker must be running, and root hold slot 1."""
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

CLAIM, GRANT, REFUSE, REJOIN, WELCOME, STATUS = 1, 2, 3, 4, 5, 6
BIND, LISTEN, HELLO = 32, 33, 40
TCP = 0x106
ATTACH_FILTER, DETACH_FILTER, LOCK_FILTER = 26, 27, 44
ATTACH_REUSEPORT_CBPF, DETACH_REUSEPORT_BPF = 51, 68
ROOTS_QPN = 1 << 15 | 5


class Refused(Exception):
    pass


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(b"\0verbena/broker")
    return s


def ask(s, kind, slot=0, fds=()):
    """The answer's kind, its error, its text and its descriptors."""
    m = struct.pack(">BBHiII", kind, 1, slot, 0, 0, os.getpid()) + bytes(144)
    try:
        socket.send_fds(s, [m], fds)
        m, fds, _, _ = socket.recv_fds(s, 160, 3)
    except (BrokenPipeError, ConnectionResetError) as e:
        raise Refused("the session is over") from e
    if not m:
        raise Refused("the session is over")
    return m[0], struct.unpack(">i", m[4:8])[0], text(m), fds


def text(m):
    return m[16:136].split(b"\0")[0].decode()


def ipv4(address):
    return bytes(10) + b"\xff\xff" + socket.inet_aton(address)


CM_BYTES = 448  # VB_IPC_CM_BYTES of wire/ipc_cm.h


def say(s, kind, number=0, port=0, src=bytes(16), qpn=0, flags=0):
    m = struct.pack(">BBBBHHHIIi", kind, VERSION, 0, flags, TCP, port, 0,
                    number, 0, 0)
    m += src + bytes(3 * 16) + struct.pack(">IQI", 0, 0, qpn)
    s.send(m + bytes(CM_BYTES - len(m)))


def hear(s):
    m = s.recv(CM_BYTES)
    if len(m) != CM_BYTES:
        raise Refused("the session is over")
    return struct.unpack(">i", m[18:22])[0]


def last_words(s):
    """A message. Linux reports that the broker closed without reading ours
    before it gives what the broker said."""
    try:
        return s.recv(CM_BYTES)
    except ConnectionResetError:
        return s.recv(CM_BYTES)


def believed():
    """Does the broker take root's queue pair for ours?"""
    with connect() as s:
        say(s, HELLO, qpn=ROOTS_QPN)
        return hear(s) == 0


def sockets():
    """Of the kinds that belong to a slot, and not of one."""
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    name = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return udp, name


def tries_to_rejoin():
    udp, name = sockets()
    for fds in (), (udp.fileno(),), (udp.fileno(), name.fileno()):
        with connect() as s:
            try:
                kind, error, _, _ = ask(s, REJOIN, 1, fds)
                if kind == WELCOME or believed():
                    return f"root's slot is ours, by {len(fds)} descriptors"
                if error not in (errno.EPERM, errno.EAGAIN):
                    return f"error {error}"
            except Refused:
                pass
    return None


def rejoin():
    """Root's slot, with nothing and with what is not it."""
    return tries_to_rejoin()


def rejoin_first():
    """The same while one broker follows another, for 3 s."""
    until = time.monotonic() + 3
    while time.monotonic() < until:
        try:
            why = tries_to_rejoin()
        except OSError:
            why = None
        if why:
            return why
        time.sleep(0.01)
    return None


def sessions():
    held, refusal = [], None
    while len(held) < 2000 and not refusal:
        s = connect()
        try:
            say(s, HELLO)
        except BrokenPipeError:
            pass  # the broker has closed; its answer waits
        answer = last_words(s)
        if len(answer) == CM_BYTES:
            held.append(s)
        else:
            refusal = text(answer) if answer else "nothing"
    if not refusal or "one user may have 320" not in refusal:
        return f"{len(held)} sessions, then {refusal}"
    return others_work()


def slots():
    held, refusal = [], None
    while len(held) < 300 and not refusal:
        s = connect()
        kind, _, why, fds = ask(s, CLAIM)
        if kind == GRANT:
            held.append((s, fds))
        else:
            refusal = why
    if len(held) != 128 or "one user may have 128" not in refusal:
        return f"{len(held)} slots, then {refusal}"
    # What is kept without a session is held all the same.
    for s, _ in held:
        s.close()
    time.sleep(0.3)
    if ask(connect(), CLAIM)[0] == GRANT:
        return "more without sessions"
    return others_work()


def broker_seconds():
    """The processor time of the broker, which other work does not lengthen."""
    with open(f"/proc/{os.environ['BROKER']}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def binds():
    """One port at as many addresses of loopback as may be; then more."""
    s, refused = connect(), 0
    begun = broker_seconds()
    for i in range(25000):
        say(s, BIND, i + 1, 7000, ipv4(f"127.1.{i >> 8}.{i & 255}"))
        status = hear(s)
        refused += status == errno.ENOBUFS
        if status not in (0, errno.ENOBUFS):
            return f"error {status}"
    took = broker_seconds() - begun
    if refused != 25000 - 16384 or took > 10:
        return f"{refused} refused, after {took:.1f} s of the broker"
    return others_work()


def unread():
    """Questions without end, of a session that reads no answer."""
    s = connect()
    s.settimeout(5)
    asked = 0
    try:
        while asked < 400000:
            say(s, HELLO)
            asked += 1
    except (BrokenPipeError, ConnectionResetError):
        pass
    if asked == 400000:
        return f"{asked} answers wait"
    return others_work()


def squat():
    """The report says whose the names are that no broker gave away."""
    held, wanted = [], f"user {os.getuid()} bound the names of 9 slots"
    for i in range(1, 257):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            s.bind(b"\0verbena/slot/%d" % i)
            held.append(s)
        except OSError:
            s.close()
        if len(held) == 9:
            break
    with connect() as s:
        time.sleep(1.1)  # the broker looks once a second
        _, _, report, _ = ask(s, STATUS)
    return None if wanted in report else report


def packet(slot):
    """The first bytes of a packet for a queue pair of this slot."""
    return struct.pack(">II", 0, slot << 15 | 5) + bytes(24)


def slots_socket(fds):
    u = socket.socket(fileno=fds[0])
    u.setblocking(False)
    return u


def heard(u):
    try:
        return len(u.recv(9000)) > 0
    except BlockingIOError:
        return False


def bpf_program(result):
    """One instruction, which returns a constant. The second value must live as
    long as the first one is used."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, result))
    return struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)), code


def steering():
    """A slot's holder steers nobody's packets, and leaves no filter behind."""
    with connect() as s:
        _, _, _, fds = ask(s, CLAIM)
        u = slots_socket(fds)
        program, _code = bpf_program(0)
        for option, value in ((ATTACH_REUSEPORT_CBPF, program),
                              (ATTACH_FILTER, program),
                              (DETACH_FILTER, 0), (LOCK_FILTER, 0)):
            try:
                u.setsockopt(socket.SOL_SOCKET, option, value)
                return f"socket option {option} is allowed"
            except PermissionError:
                pass
        # This one the kernel allows to each holder: the broker mends it.
        u.setsockopt(socket.SOL_SOCKET, DETACH_REUSEPORT_BPF, 0)
        why = others_work()
        for fd in fds[1:]:
            os.close(fd)
    return why


def keep():
    """A former holder, which keeps the socket, hears nothing of the next."""
    s = connect()
    _, _, _, fds = ask(s, CLAIM)
    u = slots_socket(fds)
    for fd in fds[1:]:
        os.close(fd)
    s.close()
    time.sleep(0.3)
    print("other", flush=True)
    count = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        count += heard(u)
    if sys.stdin.readline().strip() != "well":
        return "the next user's slot does not work"
    return f"{count} packets of the next user" if count else None


def own_packets():
    """The next user, who gets each packet for the slot."""
    with connect() as s:
        kind, _, why, fds = ask(s, CLAIM)
        if kind != GRANT:
            return why
        slot = int(socket.socket(fileno=fds[1]).getsockname().split(b"/")[-1])
        u, count = slots_socket(fds), 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tx:
            for _ in range(50):
                tx.sendto(packet(slot), ("127.0.0.1", 4791))
                time.sleep(0.01)
                count += heard(u)
    return None if count == 50 else f"{count} of 50 packets"


def addresses():
    """Of another host, of no host."""
    s = connect()
    for i, a in enumerate(("192.0.2.1", "224.0.0.1", "255.255.255.255")):
        say(s, BIND, i + 1, 7100, ipv4(a))
        status = hear(s)
        if status != errno.EADDRNOTAVAIL:
            return f"{a}: error {status}"
    for i, a in enumerate(("127.0.0.1", "0.0.0.0")):
        say(s, BIND, i + 11, 7200 + i, ipv4(a))
        if hear(s):
            return a
    return None


def lingering():
    """A TCP socket whose close() waits an hour for a peer that does not read."""
    with socket.create_server(("127.0.0.1", 0)) as l:
        c = socket.create_connection(l.getsockname())
        reader = l.accept()[0]
    c.setblocking(False)
    try:
        while True:
            c.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                 struct.pack("ii", 1, 3600))
    return c, reader


def linger():
    """Sockets that linger: one that the broker reads, and one that waits unread
    in a session that the broker closes."""
    readers, open_sessions = [], []
    for before in ([], [bytes(20)]):
        s = connect()
        open_sessions.append(s)
        c, reader = lingering()
        readers.append(reader)
        for m in before:
            s.send(m)
        try:
            socket.send_fds(s, [bytes(20)], [c.fileno()])
        except OSError:
            pass  # closed already
        # If the broker has closed its copy before, this close waits.
        threading.Thread(target=c.close, daemon=True).start()
    return others_work()


FUSE_INIT, FUSE_LOOKUP, FUSE_GETATTR, FUSE_OPEN, FUSE_FLUSH = 26, 1, 3, 14, 25


def fuse_attributes(node):
    mode = 0o40755 if node == 1 else 0o100666
    return struct.pack("<6Q10I", node, *[0] * 8, mode, 1, *[0] * 3, 4096, 0)


def serve_fuse(fd, asks):
    """A file system with one file, which answers all but FLUSH."""
    answers = {
        FUSE_INIT: lambda n: struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 12, 10,
                                         4096, 1, 1, *[0] * 9),
        FUSE_LOOKUP: lambda n: struct.pack("<4Q2I", 2, 0, 100, 100, 0, 0) +
        fuse_attributes(2),
        FUSE_GETATTR: lambda n: struct.pack("<Q2I", 100, 0, 0) +
        fuse_attributes(n),
        FUSE_OPEN: lambda n: struct.pack("<Q2I", 1, 0, 0),
    }
    while True:
        _, op, unique, node = struct.unpack("<2I2Q", os.read(fd, 1 << 19)[:24])
        if op == FUSE_FLUSH:
            os.write(asks, b"f")
        elif op in answers:
            b = answers[op](node)
            os.write(fd, struct.pack("<IiQ", 16 + len(b), 0, unique) + b)
        elif op not in (2, 36, 42):  # these have no answer
            os.write(fd, struct.pack("<IiQ", 16, -errno.ENOSYS, unique))


def mount_fuse(at):
    """Mounts at @at in a mount namespace of this process. None: no FUSE."""
    libc = ctypes.CDLL(None, use_errno=True)
    user = os.getuid()
    if libc.unshare(0x10000000 | 0x20000):  # CLONE_NEWUSER | CLONE_NEWNS
        return None
    try:
        with open("/proc/self/uid_map", "w", encoding="ascii") as f:
            f.write(f"0 {user} 1")
        with open("/proc/self/setgroups", "w", encoding="ascii") as f:
            f.write("deny")
        with open("/proc/self/gid_map", "w", encoding="ascii") as f:
            f.write(f"0 {user} 1")
        fd = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        return None
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0"
    return None if libc.mount(b"x", at.encode(), b"fuse", 6,
                              options.encode()) else fd


def flush():
    """Files of a file system of this user's that never answers FLUSH: more than
    the broker has threads for."""
    at = tempfile.mkdtemp(dir="/dev/shm")
    fd = mount_fuse(at)
    if fd is None:
        return "skip: FUSE cannot be mounted here"
    heard, asks = os.pipe()
    server = os.fork()
    if not server:
        serve_fuse(fd, asks)
    sender = os.fork()
    if not sender:
        os.close(fd)  # or the file system would outlive its server
        for _ in range(80):
            with connect() as s:
                f = os.open(at + "/f", os.O_RDWR)
                socket.send_fds(s, [bytes(20)], [f])
            # The file stays open here: closing it would wait, too.
        signal.pause()
    os.read(heard, 1)
    why = others_work()
    os.kill(server, signal.SIGKILL)
    os.kill(sender, signal.SIGKILL)
    os.close(fd)  # now the file system has ended, and nobody waits for it
    return why


def others_work():
    """While all of that is held: the tests' shell looks, and says so."""
    print("look", flush=True)
    if sys.stdin.readline().strip() != "well":
        return "root is kept out"
    return None


def main():
    failed = False
    for name in sys.argv[2:]:
        try:
            why = globals()[name]()
        except (OSError, Refused) as e:
            why = repr(e)
        if why and why.startswith("skip"):
            print(why, flush=True)
            continue
        print(f"not ok {name}: {why}" if why else f"ok {name}", flush=True)
        failed |= bool(why)
    sys.exit(failed)


VERSION = int(sys.argv[1])
main()
