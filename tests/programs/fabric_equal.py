#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do two topologies in ibnetdiscover's format have the same links?

    fabric_equal.py FILE FILE

Nodes are compared by description, or by id where they have none."""
import re
import sys

NODE = re.compile(r'(Switch|Ca|Hca|Rt)\s+\d+\s+"([^"]+)"(?:\s*#\s*"([^"]*)")?')
PORT = re.compile(r'\[(\d+)\][^"]*"([^"]+)"\s*\[(\d+)\]')


def links(path):
    names, ports, node = {}, [], None
    with open(path, encoding='utf-8') as f:
        for line in f:
            head, port = NODE.match(line), PORT.match(line)
            if head:
                node = head[2]
                names[node] = head[3] or node
            elif port and node:
                ports.append(((node, port[1]), (port[2], port[3])))
    return {frozenset((names.get(n, n), int(p)) for n, p in ends)
            for ends in ports}


def main():
    want, have = links(sys.argv[1]), links(sys.argv[2])
    for link in sorted(map(sorted, want - have)):
        print('missing', link)
    for link in sorted(map(sorted, have - want)):
        print('too many', link)
    return want != have or not want


sys.exit(main())
