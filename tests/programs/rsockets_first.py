# SPDX-License-Identifier: BSD-2-Clause
"""The first connection of a program, asked for when the broker of its host has
just been killed, under `verbena run --rsockets`: rsockets_first.py ADDRESS
What it is told must be that it is connected: the next broker does not know at
once whose its queue pair is."""
import os
import signal
import socket
import sys
import threading


def broker():
    here = os.readlink("/proc/self/ns/net")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if (words[0].endswith(b"verbena") and words[1:2] == [b"broker"]
                    and os.readlink(f"/proc/{pid}/ns/net") == here):
                return int(pid)
        except OSError:
            pass
    sys.exit("no broker")


def echo(listener):
    peer, _ = listener.accept()
    peer.sendall(peer.recv(1))
    peer.close()


listener = socket.socket()
listener.bind((sys.argv[1], 7008))
listener.listen()
threading.Thread(target=echo, args=(listener,), daemon=True).start()
s = socket.socket()
s.settimeout(20)  # so that nothing falls back to TCP
os.kill(broker(), signal.SIGKILL)
s.connect((sys.argv[1], 7008))
s.sendall(b"x")
print("ok" if s.recv(1) == b"x" else "not ok")
s.close()
