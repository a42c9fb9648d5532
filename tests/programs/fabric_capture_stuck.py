#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program that asks for a capture and reads nothing of it.

    fabric_capture_stuck.py RUNTIME-DIRECTORY FABRIC VERBENA

The fabric lives on, and tells the program in time that the capture ended."""
import glob
import socket
import struct
import subprocess
import sys
import time

MAGIC, COMMAND, HEAD = 0x756d4104, 6, struct.Struct('=IIiI')
runtime, name, verbena = sys.argv[1:]
paths = glob.glob(f'/run/verbena/fabric-{name}/socket') + glob.glob(
    f'{runtime}/verbena/fabric-{name}/socket')


def load():
    """Make frames pass the port."""
    subprocess.run([verbena, 'run', '--device', f'ib:{name}/Hca3', '--', 'sh',
                    '-c', 'for i in $(seq 30); do saquery -p; done'],
                   stdout=subprocess.DEVNULL, check=True)


with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
    s.connect(paths[0])
    text = b'capture\nSwitch1\nall\nflow'
    s.send(HEAD.pack(MAGIC, COMMAND, 0, len(text)) + text)
    # The first 8 MB wait in the fabric; more is lost.
    end = time.time() + 60
    while time.time() < end:
        load()
        if subprocess.run([verbena, 'fabric', 'show', '--name', name],
                          stdout=subprocess.DEVNULL).returncode:
            sys.exit('the fabric is dead')
        if time.time() > end - 45:
            break
    s.settimeout(10)
    got = 0
    while True:
        piece = s.recv(65536)
        if not piece:
            sys.exit('it closed the connection')
        magic, kind, result, length = HEAD.unpack(piece[:HEAD.size])
        got += length
        if result:
            print(got, result, piece[HEAD.size:].decode())
            sys.exit(0 if result < 0 and b'nobody has read' in piece else 1)
        if got > 64 << 20:
            sys.exit('the fabric kept more than it may')
