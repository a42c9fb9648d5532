#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ipoib_stream.py receive PORT | send ADDRESS PORT MEGABYTES

receive: take one TCP connection to its end, and print the SHA-256 of all bytes.
send: send random bytes, and print their SHA-256.
"""
import hashlib
import os
import socket
import sys


def receive(port):
    s = socket.create_server(('', port))
    print('listening', flush=True)
    s.settimeout(60)
    connection, _ = s.accept()
    connection.settimeout(60)
    digest = hashlib.sha256()
    while data := connection.recv(1 << 20):
        digest.update(data)
    print('sum', digest.hexdigest(), flush=True)


def send(address, port, megabytes):
    s = socket.create_connection((address, port), 30)
    digest = hashlib.sha256()
    for _ in range(megabytes):
        data = os.urandom(1 << 20)
        s.sendall(data)
        digest.update(data)
    s.shutdown(socket.SHUT_WR)
    s.recv(1)
    print('sum', digest.hexdigest(), flush=True)


def main():
    if sys.argv[1] == 'receive':
        receive(int(sys.argv[2]))
    else:
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))


main()
