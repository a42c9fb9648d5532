#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Remove what `make install` has installed: scripts/uninstall.py BUILD

Only files that the build directory would install are removed, then links to
them, and the directories that are empty then and are the project's own.
"""
import json
import os
import subprocess
import sys

OWN = 'verbena'


def installed(build):
    text = subprocess.check_output(['meson', 'introspect', build, '--installed'])
    return sorted(set(json.loads(text).values()))


def remove(path):
    """Remove the file and the links to it that stand beside it."""
    where, name = os.path.split(path)
    if not os.path.isdir(where):
        return 0
    links = [n for n in os.listdir(where)
             if os.path.islink(os.path.join(where, n)) and
             os.readlink(os.path.join(where, n)) == name]
    count = 0
    for n in links + [name]:
        if os.path.lexists(os.path.join(where, n)):
            os.remove(os.path.join(where, n))
            count += 1
    return count


def remove_own_directory(where):
    while f'/{OWN}' in where and os.path.isdir(where) and not os.listdir(where):
        os.rmdir(where)
        where = os.path.dirname(where)
        if os.path.basename(where) != OWN:
            break


def main():
    root = os.environ.get('DESTDIR', '')
    paths = [root + p for p in installed(sys.argv[1])]
    count = sum(remove(p) for p in paths)
    for where in sorted({os.path.dirname(p) for p in paths}, reverse=True):
        if os.path.basename(where) in (OWN, 'umad'):
            remove_own_directory(where)
    print(f'{count} files removed' if count else 'nothing was installed there')


main()
