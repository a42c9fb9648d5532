#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check the sources against the table of rooms in CONTRIBUTING.md.

    scripts/rooms.py includes    every #include between rooms is in the table,
                                 and the table permits nothing that is unused
    scripts/rooms.py lines       no source file is longer than 700 lines, of
                                 tests neither
    scripts/rooms.py names       no two files of a library have a static
                                 function of the same name: profilers and
                                 debuggers show the name only
    scripts/rooms.py self-test   the checks fail where they must

Each finding is one line, FILE:LINE: what is wrong. The exit status is 1 when
there is one. The table's rows are | level | `room` | may see | purpose |. In
the third column only words in backquotes count: the name of a room permits all
its headers but *_priv.h, the name of a header permits that header alone.
"""
import os
import re
import sys
import tempfile

TABLE = 'CONTRIBUTING.md'
ROW = re.compile(r'\|\s*(\d+)\s*\|\s*`([a-z/]+)`\s*\|([^|]*)\|')
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
# These directories hold no room. Tests may look into the rooms that they test.
NO_ROOMS = ('tests', 'bench', 'demo', 'lab', 'scripts', 'docs', 'ci')
MOST_LINES = 700
# The sources of each library and program. The few files of base/ and wire/ that
# a library does not link count, too.
LOW = r'(base|wire)/.*'
LIBRARIES = {
    'libibverbs': rf'{LOW}|(core|link|ib|iwarp|near|engine|front/verbs)/.*',
    'librdmacm':
        rf'{LOW}|iwarp/setup.c|front/(rdmacm/.*|rsockets/(?!preload).*)',
    'librspreload': r'base/.*|front/rsockets/(preload|fdset).*',
    'libverbena-files': rf'{LOW}|(core|link|engine|front/(files|netlink))/.*',
    'verbena':
        rf'{LOW}|(core|link|ib|iwarp|near|engine|mgmt|broker)/.*|'
        r'(fabric|fabricd|cli)/.*',
    'libibumad':
        rf'{LOW}|engine/(fabric_(ask|path|places)|runtime_dir).c|front/umad/.*',
    'verbena-ipoib': rf'{LOW}|ipoib/.*',
}
STATIC = re.compile(
    r'^static (?!inline)(?:[\w*]+\s+|__attribute__\(.*?\)\)\s+)*?'
    r'\**(?!VB_|__attribute__)(\w+)\(', re.M)
# Files that were longer before the limit was, and how long they may be. None of
# them grows. Remove an entry when its file has been split.
LONGER = {}


class Room:
    def __init__(self, line, level, allowed):
        self.line = line
        self.level = level
        self.allowed = allowed
        self.used = set()


def read_table(root):
    """Return the rooms by name."""
    rooms = {}
    with open(os.path.join(root, TABLE), encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            row = ROW.match(line)
            if row:
                rooms[row[2]] = Room(number, int(row[1]),
                                     re.findall(r'`([^`]+)`', row[3]))
    return rooms


def sources(root, left_out=NO_ROOMS):
    """Yield the paths of the .c and .h files outside of @left_out."""
    for where, dirs, files in os.walk(root):
        relative = os.path.relpath(where, root)
        if relative == '.':
            dirs[:] = [d for d in dirs if d not in left_out and
                       not d.startswith(('.', 'build'))]
        dirs.sort()
        for name in sorted(files):
            if name.endswith(('.c', '.h')):
                yield os.path.normpath(os.path.join(relative, name))


def room_of(rooms, path):
    """Return the innermost room that holds @path, or None."""
    holders = [name for name in rooms if path.startswith(name + '/')]
    return max(holders, key=len, default=None)


def check_table(rooms):
    """Whole rooms are below; a single header may also stand beside."""
    for name, room in rooms.items():
        for entry in room.allowed:
            other = rooms.get(entry) or rooms.get(room_of(rooms, entry))
            if not other:
                yield f'{TABLE}:{room.line}: `{entry}` is in no room'
            elif other.level > room.level - (entry in rooms):
                yield f'{TABLE}:{room.line}: {name} is not above `{entry}`'


def check_include(rooms, mine, header):
    """Return why room @mine may not include @header, or None."""
    theirs = room_of(rooms, header)
    room = rooms[mine]
    if theirs is None:
        return f'"{header}" is in no room'
    if theirs == mine:
        return None
    if header in room.allowed:
        room.used.add(header)
        return None
    if header.endswith('_priv.h'):
        return f'"{header}" is private to {theirs}'
    if theirs in room.allowed:
        room.used.add(theirs)
        return None
    return f'{mine} may not see "{header}" ({TABLE}:{room.line})'


def check_file(root, rooms, path):
    mine = room_of(rooms, path)
    if mine is None:
        yield f'{path}:1: the file is in no room of {TABLE}'
        return
    with open(os.path.join(root, path), encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            include = INCLUDE.match(line)
            why = include and check_include(rooms, mine, include[1])
            if why:
                yield f'{path}:{number}: {why}'


def check_includes(root):
    rooms = read_table(root)
    if not rooms:
        yield f'{TABLE}:1: there is no table of rooms'
        return
    yield from check_table(rooms)
    for path in sources(root):
        yield from check_file(root, rooms, path)
    for name, room in rooms.items():
        for entry in room.allowed:
            if entry not in room.used:
                yield (f'{TABLE}:{room.line}: {name} includes nothing of '
                       f'`{entry}`')


def check_lines(root, longer):
    seen = set()
    for path in sources(root, ()):
        with open(os.path.join(root, path), encoding='utf-8') as f:
            lines = sum(1 for _ in f)
        most = longer.get(path, MOST_LINES)
        seen.add(path)
        if lines > most:
            yield f'{path}:{lines}: {lines} lines, {most} at most'
        elif path in longer and lines <= MOST_LINES:
            print(f'# {path} has {lines} lines: remove it from LONGER')
    for path in sorted(set(longer) - seen):
        print(f'# {path} is gone: remove it from LONGER')


def check_names(root):
    where = {} # files by the names of their static functions
    for path in sources(root):
        if path.endswith('.c'):
            with open(os.path.join(root, path), encoding='utf-8') as f:
                for name in STATIC.findall(f.read()):
                    where.setdefault(name, set()).add(path)
    for library, files in LIBRARIES.items():
        for name, paths in where.items():
            found = sorted(p for p in paths if re.fullmatch(files, p))
            if len(found) > 1:
                yield (f'{found[1]}:1: {library} has another {name}(), of '
                       f'{found[0]}')


def self_test():
    """Yield what the checks say that they should not, or do not say."""
    table = ('| 0 | `low` | | |\n| 1 | `mid` | `low` | |\n'
             '| 1 | `side` | `low`, `mid/door.h` | |\n')
    good = {TABLE: table, 'low/a.h': '', 'mid/door.h': '#include "low/a.h"\n',
            'side/s.c': '#include "low/a.h"\n#include "mid/door.h"\n'}
    cases = [
        ({}, None),
        ({'low/b.c': '/* up */\n#include "mid/door.h"\n'},
         'low/b.c:2: low may not see "mid/door.h"'),
        ({'mid/x.h': '', 'side/t.c': '#include "mid/x.h"\n'},
         'side/t.c:1: side may not see "mid/x.h"'),
        ({'low/l_priv.h': '', 'mid/t.c': '#include "low/l_priv.h"\n'},
         'mid/t.c:1: "low/l_priv.h" is private to low'),
        ({'attic/a.c': ''}, 'attic/a.c:1: the file is in no room'),
        ({TABLE: table.replace('`low` | | |', '`low` | `mid` | |')},
         f'{TABLE}:1: low is not above `mid`'),
        ({'side/s.c': '#include "low/a.h"\n'},
         f'{TABLE}:3: side includes nothing of `mid/door.h`'),
        ({'low/long.c': '\n' * (MOST_LINES + 1)},
         f'low/long.c:{MOST_LINES + 1}: '),
        ({'tests/long.h': '\n' * (MOST_LINES + 1)},
         f'tests/long.h:{MOST_LINES + 1}: '),
        ({'low/n.c': 'static const int *go(void)\n{\n}\n',
          'wire/n.c': 'static int go(int a)\n{\n}\n',
          'wire/o.c': 'static int VB_UNCHECKED other(int a)\n{\n}\n',
          'base/n.c': 'static void\nother(int a)\n{\n}\n',
          TABLE: table + '| 0 | `wire` | | |\n| 0 | `base` | | |\n'},
         'wire/o.c:1: libibverbs has another other(), of base/n.c'),
        ({'fabric/n.c': 'static void give(void)\n{\n}\n',
          'fabricd/n.c': 'static bool give(int a)\n{\n}\n',
          TABLE: table + '| 0 | `fabric` | | |\n| 1 | `fabricd` | | |\n'},
         'fabricd/n.c:1: verbena has another give(), of fabric/n.c'),
        ({'base/n.c': 'static void walk(void)\n{\n}\n',
          'front/umad/n.c': 'static bool walk(int a)\n{\n}\n',
          TABLE: table + '| 0 | `base` | | |\n| 1 | `front/umad` | | |\n'},
         'front/umad/n.c:1: libibumad has another walk(), of base/n.c'),
    ]
    for change, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**good, **change}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, 'w', encoding='utf-8') as f:
                    f.write(text)
            said = [*check_includes(root), *check_lines(root, {}),
                    *check_names(root)]
        if expected is None and said:
            yield f'self-test: a good tree is refused: {said[0]}'
        elif expected and not any(s.startswith(expected) for s in said):
            yield f'self-test: nothing says {expected!r}, but {said}'


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    checks = {
        'includes': lambda: check_includes(root),
        'lines': lambda: check_lines(root, LONGER),
        'names': lambda: check_names(root),
        'self-test': self_test,
    }
    if len(sys.argv) != 2 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    findings = list(checks[sys.argv[1]]())
    for finding in findings:
        print(finding)
    sys.exit(bool(findings))


if __name__ == '__main__':
    main()
